//! Prints the JSON Schema of `proof.json`. `cargo xtask schema` keeps it in `docs/schema`.
//!
//! The schema is that of reading: what it requires is in every proof of this major version, and a
//! file of an earlier minor version still fits.

use std::io::Write as _;

use schemars::generate::SchemaSettings;
use veracity_results::Proof;

fn main() -> std::io::Result<()> {
    let schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Proof>();
    let text = serde_json::to_string_pretty(&schema)?;
    writeln!(std::io::stdout(), "{text}")
}
