//! Both fronts build their dependencies with the same features.
//!
//! Cargo compiles a package again for every other set of features, and everything above it with it:
//! one difference far below doubles the time of a first build. `veracity-features` evens them out.

use std::collections::BTreeMap;
use std::process::Command;

const FRONTS: [&str; 2] = ["veracity-cli", "veracity-py"];

/// The features of each package; a package that is built for the host, too, has several sets.
type Features = BTreeMap<String, Vec<String>>;

/// Compares what the fronts switch on.
pub(crate) fn check() -> Result<String, String> {
    let [first, second] = FRONTS.map(|front| cargo_tree(front).map(|tree| features_from(&tree)));
    let found = differences(&first?, &second?);
    if found.is_empty() {
        Ok("features: both fronts share one build of their dependencies".to_owned())
    } else {
        Err(found.join("\n"))
    }
}

fn cargo_tree(front: &str) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--locked", "--edges=normal,build", "--prefix=none"])
        .args(["--no-dedupe", "--format={p}|{f}", "--package", front])
        .output()
        .map_err(|error| format!("cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|error| format!("cargo tree: {error}"))
}

/// Reads lines `serde v1.0.0|default,std`.
fn features_from(tree: &str) -> Features {
    let mut found = Features::new();
    for (package, features) in tree.lines().filter_map(|line| line.split_once('|')) {
        let sets = found.entry(package.to_owned()).or_default();
        if !sets.iter().any(|known| known == features) {
            sets.push(features.to_owned());
            sets.sort();
        }
    }
    found
}

fn differences(first: &Features, second: &Features) -> Vec<String> {
    let [cli, py] = FRONTS;
    let shared =
        first.iter().filter_map(|(package, one)| Some((package, one, second.get(package)?)));
    shared
        .filter(|(_, one, other)| one != other)
        .map(|(package, one, other)| {
            let (one, other) = (one.join(" and "), other.join(" and "));
            format!(
                "{package}: {cli} builds it with [{one}], {py} with [{other}]: even them out in \
                 veracity-features"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_packages_that_both_build_differently_are_named() {
        let cli = features_from("a v1|std\nb v1|x\nb v1|\nclap v4|color\na v1|std");
        let py = features_from("a v1|std\nb v1|x\npyo3 v1|");
        assert_eq!(differences(&cli, &cli), Vec::<String>::new());
        let found = differences(&cli, &py);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("b v1: veracity-cli builds it with [ and x]"), "{}", found[0]);
    }
}
