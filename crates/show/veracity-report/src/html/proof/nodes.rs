//! The nodes: their models, what ran them, their samples; and the inputs that were tried.

use std::fmt::Write as _;

use veracity_results::{Adequacy, NodeProof, PipelinePort, Proof, SampleProof, Verdict};

use super::super::escape::escape;
use super::super::facts::facts;
use super::super::table::{Cell, Column, Row, table};
use super::super::words::{class, number};
use super::noticed;
use crate::drift::verdict;
use crate::plain::count;
use crate::text::{planted_fault, samples_of};

/// Samples of a port that are listed.
const MOST_SAMPLES: usize = 100;

/// Where links to a node lead to.
pub(super) fn id(index: usize) -> String {
    format!("node-{}", index + 1)
}

/// Each node, to be unfolded.
pub(super) fn nodes(proof: &Proof) -> String {
    let mut html = String::new();
    for (index, node) in proof.nodes.iter().enumerate() {
        let open = if node.verdict == Verdict::Disproved { " open" } else { "" };
        let _ = write!(
            html,
            "<details class=\"card\" id=\"{}\"{open}>\n<summary>{} <span class=\"{}\">{}</span> \
             <span class=\"quiet\">{}, {}</span></summary>\n",
            id(index),
            escape(&node.node),
            class(node.verdict),
            verdict(node.verdict),
            samples_of(node),
            count(node.fresh + node.tried, "fresh input"),
        );
        html += &facts(&about(proof, node));
        for reason in &node.reasons {
            let _ = writeln!(html, "<p>{}</p>", escape(&reason.message));
        }
        html += &noticed::assumptions_of(node);
        html += &noticed::of_node(proof, &node.node);
        html += &ports(proof, node, index);
        html += &samples(node, index);
        html += "</details>\n";
    }
    html
}

fn about(proof: &Proof, node: &NodeProof) -> Vec<(&'static str, String)> {
    let model = proof.subject.models.iter().find(|model| model.node == node.node);
    let sessions = proof.environment.sessions.iter().filter(|session| session.node == node.node);
    let sessions: Vec<String> = sessions
        .map(|one| format!("{} {} ({})", one.engine, one.engine_version, one.device))
        .collect();
    let text = |of: Option<&String>| of.cloned().unwrap_or_default();
    vec![
        ("source", text(proof.reference.sources.get(&node.node))),
        ("model", text(model.map(|model| &model.path))),
        ("format", text(model.map(|model| &model.backend))),
        ("SHA-256", text(model.map(|model| &model.sha256))),
        ("ran on", sessions.join("; ")),
        ("inputs", if proof.pipeline.is_none() { inputs_of(proof, node) } else { String::new() }),
        ("fresh inputs", node.fresh_note.clone().unwrap_or_default()),
        ("planted faults", node.adequacy.as_ref().map_or_else(String::new, planted_faults)),
    ]
}

/// How many were found, and each of the others with its reason.
fn planted_faults(adequacy: &Adequacy) -> String {
    let mut parts = vec![adequacy.text()];
    parts.extend(adequacy.missed.iter().map(|fault| format!("missed: {}", planted_fault(fault))));
    let told = |fault| format!("no fault: {}", planted_fault(fault));
    parts.extend(adequacy.no_fault.iter().map(told));
    parts.join("; ")
}

fn inputs_of(proof: &Proof, node: &NodeProof) -> String {
    let inside = |port: &str| port.split_once('/').is_some_and(|(name, _)| name == node.node);
    let inputs = proof.inputs.iter().map(|input| input.port.as_str()).filter(|port| inside(port));
    inputs.collect::<Vec<_>>().join(", ")
}

/// What the description says about the ports of a node.
fn ports(proof: &Proof, node: &NodeProof, index: usize) -> String {
    let nodes = proof.pipeline.iter().flat_map(|pipeline| &pipeline.nodes);
    let Some(described) = nodes.into_iter().find(|one| one.name == node.node) else {
        return String::new();
    };
    let row = |side: &str, port: &PipelinePort| {
        let sizes: Vec<String> = port.shape.iter().map(u64::to_string).collect();
        let cells = vec![
            Cell::Short(side.to_owned()),
            Cell::Code(port.name.clone()),
            Cell::Short(format!("{}[{}]", port.dtype, sizes.join(", "))),
            Cell::Short(port.kind.clone().unwrap_or_default()),
            Cell::Short(port.unit.clone().unwrap_or_default()),
        ];
        Row { id: None, verdict: None, cells }
    };
    let inputs = described.inputs.iter().map(|port| row("input", port));
    let rows: Vec<Row> =
        inputs.chain(described.outputs.iter().map(|port| row("output", port))).collect();
    let columns = ["side", "port", "type", "kind", "unit"].map(Column::text);
    table(&format!("ports-{}", index + 1), &columns, &rows)
}

fn samples(node: &NodeProof, index: usize) -> String {
    let columns = [
        Column::text("verdict"),
        Column::text("port"),
        Column::text("sample"),
        Column::text("source"),
        Column::text("here"),
        Column::number("largest error"),
        Column::number("outside"),
    ];
    let mut rows = Vec::new();
    for port in &node.ports {
        let name = port.port.split_once('/').map_or(port.port.as_str(), |(_, name)| name);
        rows.extend(port.samples.iter().take(MOST_SAMPLES).map(|one| sample(name, one)));
    }
    table(&format!("samples-{}", index + 1), &columns, &rows)
}

#[expect(clippy::cast_precision_loss, reason = "a key to sort by")]
fn sample(port: &str, sample: &SampleProof) -> Row {
    let measured = sample.measurement.as_ref();
    let error = measured.map_or(f64::NAN, |one| one.max_abs);
    let outside = measured.map_or(0, |one| one.outside + one.non_finite.mismatching);
    let none = String::new();
    let cells = vec![
        Cell::State(verdict(sample.verdict).to_owned()),
        Cell::Code(port.to_owned()),
        Cell::Short(sample.label.clone()),
        Cell::Short(sample.reference.clone()),
        Cell::Short(sample.candidate.clone()),
        Cell::Number(error, if measured.is_some() { number(error) } else { none.clone() }),
        Cell::Number(outside as f64, if measured.is_some() { outside.to_string() } else { none }),
    ];
    Row { id: None, verdict: Some(class(sample.verdict)), cells }
}

/// What the inputs were; outside of that nothing was tried.
#[expect(clippy::cast_precision_loss, reason = "a key to sort by")]
pub(super) fn inputs(proof: &Proof) -> String {
    let columns = [
        Column::text("input"),
        Column::number("different values"),
        Column::number("smallest"),
        Column::number("largest"),
        Column::text("remark"),
    ];
    let row = |input: &veracity_results::InputCoverage| {
        let end = |value: Option<f64>| match value {
            Some(value) => Cell::Number(value, crate::plain::number(value)),
            None => Cell::Number(f64::NAN, String::new()),
        };
        let remark = if input.constant {
            "always the same: nothing is known about other values"
        } else {
            ""
        };
        let cells = vec![
            Cell::Code(input.port.clone()),
            Cell::Number(input.samples as f64, input.samples.to_string()),
            end(input.range.map(|(low, _)| low)),
            end(input.range.map(|(_, high)| high)),
            Cell::Text(remark.to_owned()),
        ];
        Row { id: None, verdict: None, cells }
    };
    let rows: Vec<Row> = proof.inputs.iter().map(row).collect();
    table("tried", &columns, &rows)
}
