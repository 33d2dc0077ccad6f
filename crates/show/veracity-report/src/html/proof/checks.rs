//! Everything that has a verdict, as a table.

use veracity_results::{Measurement, Part, PortProof, Proof, ProofRow};

use super::super::table::{Cell, Column, Row, controls, table};
use super::super::words::{class, number};
use crate::drift::verdict;
use crate::text::why_unknown;

const COLUMNS: [Column; 13] = [
    Column::number("#"),
    Column::text("verdict"),
    Column::text("port"),
    Column::text("checked"),
    Column::text("type"),
    Column::number("samples"),
    Column::number("largest error"),
    Column::number("RMS"),
    Column::number("relative"),
    Column::number("ULP"),
    Column::number("outside"),
    Column::text("tolerance"),
    Column::text("why"),
];

/// Where links to a check lead to.
pub(super) fn id(index: usize) -> String {
    format!("check-{}", index + 1)
}

/// A row for each verdict.
pub(super) fn checks(proof: &Proof) -> String {
    let rows = proof.rows();
    let rows: Vec<Row> = rows.iter().enumerate().map(|(i, row)| check(i, proof, row)).collect();
    if rows.is_empty() {
        return "<p>Nothing was compared.</p>\n".to_owned();
    }
    controls("ports", "port, type, reason") + &table("ports", &COLUMNS, &rows)
}

#[expect(clippy::cast_precision_loss, reason = "a key to sort by")]
fn check(index: usize, proof: &Proof, row: &ProofRow<'_>) -> Row {
    let measured = measurements(row);
    let most = |of: fn(&Measurement) -> f64| match measured.iter().map(|one| of(one)) {
        values if values.len() == 0 => Cell::Number(f64::NAN, String::new()),
        values => {
            let value = values.fold(0.0, f64::max);
            Cell::Number(value, number(value))
        }
    };
    let total = |of: fn(&Measurement) -> u64| {
        let value: u64 = measured.iter().map(|one| of(one)).sum();
        Cell::Number(value as f64, value.to_string())
    };
    let ulp = measured.iter().map(|one| one.max_ulp).max().unwrap_or(0);
    let samples = match row.part {
        Part::Port(_, port) => port.samples.len(),
        Part::RolloutPort(rollout, _) => rollout.ticks,
        Part::Node(_) | Part::Rollout(_) => 0,
    };
    let is_known = row.verdict == veracity_results::Verdict::Proved && !row.is_unstable();
    let why = if is_known { String::new() } else { why_unknown(row) };
    let cells = vec![
        Cell::Number(index as f64, (index + 1).to_string()),
        Cell::State(verdict(row.verdict).to_owned()),
        port(proof, row),
        Cell::Short(part(row)),
        Cell::Code(kind(proof, row)),
        Cell::Number(samples as f64, samples.to_string()),
        most(|one| one.max_abs),
        most(|one| one.rms),
        most(|one| one.max_rel),
        Cell::Number(ulp as f64, ulp.to_string()),
        total(|one| one.outside + one.non_finite.mismatching),
        Cell::Short(tolerance(row)),
        Cell::Text(why),
    ];
    Row { id: Some(id(index)), verdict: Some(class(row.verdict)), cells }
}

/// The name of what was checked, which leads to its node.
fn port(proof: &Proof, row: &ProofRow<'_>) -> Cell {
    let node = row.name.split('/').next().unwrap_or_default();
    match proof.nodes.iter().position(|one| one.node == node) {
        Some(index) => Cell::Link(super::nodes::id(index), row.name.to_owned()),
        None => Cell::Code(row.name.to_owned()),
    }
}

/// How it was checked.
fn part(row: &ProofRow<'_>) -> String {
    if row.is_rollout() { "over time" } else { "node alone" }.to_owned()
}

/// Dtype and shape, where something is known about them.
fn kind(proof: &Proof, row: &ProofRow<'_>) -> String {
    let name = match row.part {
        Part::Port(_, port) => &port.port,
        Part::RolloutPort(_, port) => &port.source,
        Part::Node(_) | Part::Rollout(_) => return String::new(),
    };
    let mut ports = proof.nodes.iter().flat_map(|node| &node.ports);
    let sample = ports.find(|port| port.port == *name).and_then(|port| port.samples.first());
    sample.map_or_else(String::new, |sample| sample.reference.clone())
}

fn tolerance(row: &ProofRow<'_>) -> String {
    let Some(found) = row.tolerance() else { return String::new() };
    if found.atol() == 0.0 && found.rtol() == 0.0 {
        return "equal".to_owned();
    }
    format!("atol {}, rtol {}", short(found.atol()), short(found.rtol()))
}

/// Small numbers are read more easily with an exponent.
fn short(value: f64) -> String {
    let text = format!("{value:?}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// What was measured: for each sample of a node alone, once over time.
pub(super) fn measurements<'p>(row: &ProofRow<'p>) -> Vec<&'p Measurement> {
    match row.part {
        Part::Port(_, port) => of_samples(port),
        Part::RolloutPort(_, port) => vec![&port.measurement],
        Part::Node(_) | Part::Rollout(_) => Vec::new(),
    }
}

fn of_samples(port: &PortProof) -> Vec<&Measurement> {
    port.samples.iter().filter_map(|sample| sample.measurement.as_ref()).collect()
}
