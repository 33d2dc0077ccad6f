//! The JSON Schemas of the files that Veracity writes, kept beside the documentation.
//!
//! The types make them; this writes them down, or says which that are written down are not what
//! they make. They print them from an example of their crate, because a dependency of this tool on
//! their feature `schema` would switch it on in every build of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What there are schemas of, and where each is kept. The number is the major version of the format.
const FILES: [(&str, &str); 4] = [
    ("proof", "docs/schema/proof-1.json"),
    ("drift", "docs/schema/drift-1.json"),
    ("rewrites", "docs/schema/rewrites-1.json"),
    ("model-diff", "docs/schema/model-diff-1.json"),
];

/// Writes the schemas.
pub(crate) fn write() -> Result<String, String> {
    for (of_what, file) in FILES {
        let path = path(file);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| format!("{file}: {error}"))?;
        }
        std::fs::write(&path, generate(of_what)?).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(format!("schema: {} are written", names()))
}

/// Refuses schemas that are not current.
pub(crate) fn check() -> Result<String, String> {
    let mut stale = Vec::new();
    for (of_what, file) in FILES {
        let written =
            std::fs::read_to_string(path(file)).map_err(|error| format!("{file}: {error}"))?;
        if written != generate(of_what)? {
            stale.push(file);
        }
    }
    if stale.is_empty() {
        Ok(format!("schema: {} are current", names()))
    } else {
        Err(format!("not what the types make: {}: run `cargo xtask schema`", stale.join(", ")))
    }
}

fn names() -> String {
    FILES.map(|(_, file)| file).join(", ")
}

fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file)
}

fn generate(of_what: &str) -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--package", "veracity-results"])
        .args(["--features", "schema", "--example", "schema", "--", of_what])
        .output()
        .map_err(|error| format!("cargo run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| format!("the schema is no text: {error}"))
}
