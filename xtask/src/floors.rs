//! Dependencies point down only.
//!
//! The table in ARCHITECTURE.md is the rule, not a picture of it: it is read here and compared with
//! what `cargo metadata` says. A crate that is not in the table is an error, and so is a row
//! without a crate.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Lines between these markers hold the table.
const TABLE_START: &str = "<!-- floors -->";
const TABLE_END: &str = "<!-- /floors -->";

/// What each crate may use.
type MayUse = BTreeMap<String, BTreeSet<String>>;

/// Compares the workspace with the table.
pub(crate) fn check() -> Result<String, String> {
    let table = table_from_markdown(&read_architecture()?)?;
    let used = dependencies_from_metadata(&cargo_metadata()?);
    let found = violations(&table, &used);
    if found.is_empty() {
        Ok(format!("layers: {} crates keep to the floor table", used.len()))
    } else {
        Err(found.join("\n"))
    }
}

fn read_architecture() -> Result<String, String> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../ARCHITECTURE.md");
    std::fs::read_to_string(path).map_err(|error| format!("ARCHITECTURE.md: {error}"))
}

fn cargo_metadata() -> Result<Value, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Reads rows `| floor | `crate` | subject | `a`, `b` |`.
fn table_from_markdown(markdown: &str) -> Result<MayUse, String> {
    let (_, rest) = markdown.split_once(TABLE_START).ok_or("ARCHITECTURE.md has no floor table")?;
    let (table, _) = rest.split_once(TABLE_END).ok_or("the floor table has no end")?;
    let rows = table.lines().filter(|line| line.starts_with('|')).skip(2);
    let mut may_use = MayUse::new();
    for row in rows {
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [_, name, _, uses] = cells[..] else {
            return Err(format!("the floor table has a row without four cells: {row}"));
        };
        let name = names_in(name).into_iter().next().ok_or(format!("no crate in row: {row}"))?;
        may_use.insert(name, names_in(uses));
    }
    Ok(may_use)
}

/// Every word in backticks.
fn names_in(cell: &str) -> BTreeSet<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What each workspace crate uses outside of tests.
fn dependencies_from_metadata(metadata: &Value) -> MayUse {
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let name_of = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let ours: BTreeSet<String> = packages.iter().map(name_of).collect();
    let used_by = |package: &Value| {
        let all = package["dependencies"].as_array().cloned().unwrap_or_default();
        let normal = all.iter().filter(|dependency| dependency["kind"] != "dev");
        normal.map(name_of).filter(|name| ours.contains(name)).collect()
    };
    packages.iter().map(|package| (name_of(package), used_by(package))).collect()
}

fn violations(table: &MayUse, used: &MayUse) -> Vec<String> {
    let missing = table
        .keys()
        .filter(|name| !used.contains_key(*name))
        .map(|name| format!("{name}: in the floor table, but not in the workspace"));
    let crates = used.iter().flat_map(|(name, dependencies)| match table.get(name) {
        None => vec![format!("{name}: not in the floor table of ARCHITECTURE.md")],
        Some(allowed) => dependencies
            .difference(allowed)
            .map(|dependency| format!("{name} must not depend on {dependency}"))
            .collect(),
    });
    missing.chain(crates).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARKDOWN: &str = "<!-- floors -->\n\
        | floor | crate | subject | may use |\n|---|---|---|---|\n\
        | base | `low` | bytes | - |\n| top | `high` | work | `low` |\n<!-- /floors -->";

    fn used(pairs: &[(&str, &[&str])]) -> MayUse {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        pairs.iter().map(|(name, uses)| ((*name).to_owned(), owned(uses))).collect()
    }

    #[test]
    fn each_kind_of_violation_is_named() {
        let table = table_from_markdown(MARKDOWN).unwrap();
        for (what, workspace, expected) in [
            ("keeps the rules", used(&[("low", &[]), ("high", &["low"])]), None),
            (
                "points up",
                used(&[("low", &["high"]), ("high", &[])]),
                Some("low must not depend on high"),
            ),
            (
                "not listed",
                used(&[("low", &[]), ("high", &[]), ("new", &[])]),
                Some("new: not in the floor table of ARCHITECTURE.md"),
            ),
            (
                "row without crate",
                used(&[("low", &[])]),
                Some("high: in the floor table, but not in the workspace"),
            ),
        ] {
            let found = violations(&table, &workspace);
            assert_eq!(found.first().map(String::as_str), expected, "{what}");
        }
    }
}
