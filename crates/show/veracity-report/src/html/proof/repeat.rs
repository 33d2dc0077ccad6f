//! What ran, on which bytes, and what to type in to run it again.

use std::fmt::Write as _;

use veracity_results::{Basis, Proof, Tolerance};

use super::super::facts::{commands, facts};
use super::super::table::{Cell, Column, Row, table};
use crate::plain::{count, exact, word};

/// The environment, the commands and the hashes of everything that took part.
pub(super) fn repeat(proof: &Proof) -> String {
    let reference = &proof.reference;
    let environment = &proof.environment;
    let mut engines: Vec<String> = Vec::new();
    for session in &environment.sessions {
        let engine = format!("{} {} ({})", session.engine, session.engine_version, session.device);
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    let about = [
        ("reference values", reference.made_with.clone()),
        ("seed of fresh inputs", reference.seed.map_or_else(String::new, |seed| seed.to_string())),
        ("ran on", engines.join("; ")),
        ("threads", count(environment.threads, "thread")),
        ("system", environment.system.clone()),
        ("Veracity", proof.veracity_version.clone()),
        ("schema", proof.schema_version.clone()),
    ];
    let lines = [verify(proof), check(proof)];
    let what = "<p>In the folder that holds the bundle:</p>\n";
    facts(&about) + what + &commands(&lines) + &hashes(proof)
}

fn verify(proof: &Proof) -> String {
    format!("veracity verify {}", word(&format!("{}/", proof.subject.bundle)))
}

/// The command that judges by the same tolerances, on the same engine.
fn check(proof: &Proof) -> String {
    let policy = &proof.policy;
    let mut line = format!("veracity check {}", word(&format!("{}/", proof.subject.bundle)));
    // `ort (python)` is the same engine, called by Python.
    let name = |engine: &'_ str| engine.split(' ').next().unwrap_or_default().to_owned();
    let mut engines: Vec<String> =
        proof.environment.sessions.iter().map(|session| name(&session.engine)).collect();
    engines.retain(|engine| ["ort", "embedded"].contains(&engine.as_str()));
    engines.dedup();
    if let [engine] = &engines[..] {
        let _ = write!(line, " --engine {engine}");
    }
    if proof.environment.threads > 1 {
        let _ = write!(line, " --threads {}", proof.environment.threads);
    }
    match policy.basis {
        // What the bundle's own proof was judged by is the default.
        Basis::Scaled => {}
        Basis::Auto => line += " --tolerance auto",
        Basis::Given => {
            let _ = write!(line, " --tolerance {}", tolerance(policy.default));
            for (port, own) in &policy.ports {
                let _ =
                    write!(line, " --tolerance {}", word(&format!("{port}:{}", tolerance(*own))));
            }
        }
    }
    if policy.equal_nan {
        line += " --equal-nan";
    }
    line
}

fn tolerance(tolerance: Tolerance) -> String {
    format!("atol={},rtol={}", exact(tolerance.atol()), exact(tolerance.rtol()))
}

fn hashes(proof: &Proof) -> String {
    let subject = &proof.subject;
    let row = |what: &str, hash: &str| Row {
        id: None,
        verdict: None,
        cells: vec![Cell::Code(what.to_owned()), Cell::Code(hash.to_owned())],
    };
    let description = std::iter::once(("(description)", &subject.description_sha256));
    let models = subject.models.iter().map(|model| (model.path.as_str(), &model.sha256));
    let files = subject.files.iter().map(|(path, hash)| (path.as_str(), hash));
    let known = description.chain(models).chain(files).filter(|(_, hash)| !hash.is_empty());
    let rows: Vec<Row> = known.map(|(what, hash)| row(what, hash)).collect();
    table("hashes", &["file", "SHA-256"].map(Column::text), &rows)
}
