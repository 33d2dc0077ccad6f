//! Prints the JSON Schema of a file: of `proof.json` with the argument `proof`, of a drift report with
//! `drift`, of a log of rewrites with `rewrites`, of a difference of models with `model-diff`. `cargo xtask schema` keeps them in `docs/schema`.
//!
//! The schema is that of reading: what it requires is in every file of this major version, and a
//! file of an earlier minor version still fits.

use std::io::{Error, Write as _};

use schemars::Schema;
use schemars::generate::SchemaSettings;
use veracity_results::{CheckedLog, DriftReport, ModelDiff, Proof};

fn main() -> std::io::Result<()> {
    let of_what = std::env::args().nth(1).unwrap_or_default();
    let generator = SchemaSettings::draft2020_12().into_generator();
    let schema: Schema = match of_what.as_str() {
        "proof" => generator.into_root_schema_for::<Proof>(),
        "drift" => generator.into_root_schema_for::<DriftReport>(),
        "rewrites" => generator.into_root_schema_for::<CheckedLog>(),
        "model-diff" => generator.into_root_schema_for::<ModelDiff>(),
        _ => return Err(Error::other("say `proof`, `drift`, `rewrites` or `model-diff`")),
    };
    let text = serde_json::to_string_pretty(&schema)?;
    writeln!(std::io::stdout(), "{text}")
}
