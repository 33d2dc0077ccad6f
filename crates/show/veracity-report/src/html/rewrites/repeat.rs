//! What ran, on which bytes, and what to type in to do it again, to ask about it and to undo it.

use std::fmt::Write as _;

use veracity_results::PassRecord;

use super::super::facts::{commands, facts};
use super::Rewritten;
use crate::plain::word;

/// Stands for the original, whose name a log does not know.
const ORIGINAL: &str = "ORIGINAL.onnx";

/// The environment and the commands.
pub(super) fn repeat(of: &Rewritten<'_>) -> String {
    let Rewritten { name, log, checks, .. } = of;
    let checked = |text: fn(&veracity_results::RewriteChecks) -> String| {
        checks.map_or_else(String::new, text)
    };
    let about = [
        ("ran on", checked(|checks| format!("{} {}", checks.engine, checks.engine_version))),
        ("checked", checked(|checks| checks.validation.clone())),
        ("sets of inputs", checked(|checks| checks.inputs.join(", "))),
        ("seed of made-up inputs", checked(|checks| checks.seed.to_string())),
        ("original", log.original_sha256.clone()),
        ("result", log.result_sha256.clone()),
        ("signature of the passes", log.signature.clone()),
        ("Veracity", log.tool_version.clone()),
        ("schema", log.schema_version.clone()),
    ];
    let result = word(name);
    let lines = [
        transform(of),
        format!("veracity audit {result} --original {ORIGINAL}"),
        format!("veracity reverse {result} -o {ORIGINAL}"),
    ];
    let what =
        "<p>To do it again, to do every rewrite again and compare the bytes, and to undo it:</p>\n";
    facts(&about) + what + &commands(&lines) + &parameters(&log.passes)
}

fn transform(of: &Rewritten<'_>) -> String {
    let names: Vec<&str> = of.log.passes.iter().map(|pass| pass.name.as_str()).collect();
    let mut line = format!(
        "veracity transform {ORIGINAL} -o {} --passes {}",
        word(of.name),
        word(&names.join(","))
    );
    match of.checks {
        Some(checks) => {
            let _ = write!(line, " --validate {} --seed {}", word(&checks.validation), checks.seed);
            if checks.inputs.iter().any(|set| set.starts_with("recorded")) {
                line += " --inputs RECORDED.npz";
            }
        }
        None => line += " --validate off",
    }
    line
}

/// What passes were made with, where that is not what their names stand for.
fn parameters(passes: &[PassRecord]) -> String {
    let mut rows = Vec::new();
    for pass in passes {
        for (name, value) in &pass.parameters {
            let json = serde_json::to_value(value).unwrap_or_default();
            rows.push(format!("{} {name}={}", pass.name, json["value"]));
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    facts(&[("parameters of passes", rows.join("; "))])
}
