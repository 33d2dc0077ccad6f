//! The JSON Schema of proofs, kept beside the documentation.
//!
//! The types make it; this writes it down, or says that what is written down is not what they make.
//! They print it from an example of their crate, because a dependency of this tool on their
//! feature `schema` would switch it on in every build of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where it is kept. The number is the major version of the format.
const FILE: &str = "docs/schema/proof-1.json";

/// Writes the schema.
pub(crate) fn write() -> Result<String, String> {
    let path = path();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| format!("{FILE}: {error}"))?;
    }
    std::fs::write(&path, generate()?).map_err(|error| format!("{FILE}: {error}"))?;
    Ok(format!("schema: {FILE} is written"))
}

/// Refuses a schema that is not current.
pub(crate) fn check() -> Result<String, String> {
    let written = std::fs::read_to_string(path()).map_err(|error| format!("{FILE}: {error}"))?;
    if written == generate()? {
        Ok(format!("schema: {FILE} is current"))
    } else {
        Err(format!("{FILE} is not what the types make: run `cargo xtask schema`"))
    }
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(FILE)
}

fn generate() -> Result<String, String> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--locked", "--package", "veracity-results"])
        .args(["--features", "schema", "--example", "proof_schema"])
        .output()
        .map_err(|error| format!("cargo run: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    String::from_utf8(output.stdout).map_err(|error| format!("the schema is no text: {error}"))
}
