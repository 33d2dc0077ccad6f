//! What is in a bundle.

use std::collections::BTreeMap;
use std::path::Path;

use veracity::spec::{AxisNames, Direction, Edge, FileRecord, Map, Node, PortRef, PortSpec, Value};
use veracity::tensor::Tensor;
use veracity::{Inspection, ModelFacts, ProofFacts};

use super::document::Document;
use super::style::{self, paint};
use super::table::{Cell, Column, Table};
use super::text::{count, number, printable, size};

/// Names of one axis that are written out; more would be cut on any terminal.
const MAX_NAMES: usize = 64;

/// Digits of a hash that tell files apart for the eye.
const SHORT_HASH: usize = 12;

/// A bundle, for people. `initial` holds the first values of feedback inputs.
pub(crate) fn document(
    inspection: &Inspection<'_>,
    initial: &BTreeMap<PortRef, Tensor>,
) -> Document {
    let spec = inspection.spec;
    let name = Path::new(&inspection.bundle).file_stem().unwrap_or_default().to_string_lossy();
    let mut document = Document::new(printable(&name));
    header(inspection, &name, &mut document);
    for (index, node) in spec.nodes.iter().enumerate() {
        let facts = inspection.models.iter().find(|facts| facts.node == node.name);
        node_header(index + 1, node, facts, &mut document);
        document.table(port_table(node), 3);
    }
    wiring(&spec.data_flow, &spec.feedback_flow, initial, &mut document);
    pipeline(&spec.pipeline_inputs, &spec.pipeline_outputs, &mut document);
    if let Some(block) = &spec.veracity {
        let files = block.files.iter().map(|(path, record)| (path.as_str(), record));
        file_table(files, &mut document);
    }
    system(&spec.system, &mut document);
    document
}

fn header(inspection: &Inspection<'_>, name: &str, document: &mut Document) {
    let spec = inspection.spec;
    let frequency = match spec.configs.frequency {
        Some(hertz) => format!("{hertz} Hz"),
        None => "no frequency".to_owned(),
    };
    let facts =
        format!("format {}, {frequency}, {}", spec.version, count(spec.nodes.len(), "node"));
    let name = paint(style::HEADING, &printable(name));
    document.line(format!("{name}: {facts}"));
    document.line(printable(&inspection.bundle));
    if let Some(proof) = &inspection.proof {
        proof_lines(proof, document);
    }
}

fn proof_lines(proof: &ProofFacts, document: &mut Document) {
    let under = match proof.assumptions.len() {
        0 => String::new(),
        open => format!(", under {}", count(open, "assumption")),
    };
    document.line(format!("proof: {}{under}", printable(&proof.standing)));
    for one in &proof.assumptions {
        document.line(format!("  {}: {}", one.code, printable(&one.message)));
    }
}

fn node_header(position: usize, node: &Node, facts: Option<&ModelFacts>, document: &mut Document) {
    document.heading(format!("{position}. {}", printable(&node.name)));
    let Some(model) = &node.model else {
        document.line("   no model");
        return;
    };
    let bytes = facts.map_or_else(String::new, |facts| format!(", {}", size(facts.file_bytes)));
    let hash = model.sha256.to_string();
    let hash = short_hash(&hash);
    let path = printable(model.path.as_str()).into_owned();
    document.line(format!("   {path} ({}{bytes}, sha256 {hash})", model.backend));
    let known = facts.map(graph_facts).unwrap_or_default();
    if !known.is_empty() {
        document.line(format!("   {}", known.join(", ")));
    }
}

fn graph_facts(facts: &ModelFacts) -> Vec<String> {
    let opset = facts.opset.map(|opset| format!("opset {opset}"));
    let operators = facts.operators.map(|operators| count(operators, "operator"));
    let producer = facts.producer.as_deref().filter(|producer| !producer.is_empty());
    let producer = producer.map(|producer| format!("made by {}", printable(producer)));
    opset.into_iter().chain(operators).chain(producer).collect()
}

fn short_hash(hash: &str) -> &str {
    hash.get(..SHORT_HASH).unwrap_or(hash)
}

fn port_table(node: &Node) -> Table {
    let mut table = Table::new([
        Column::left(""),
        Column::left("name").flexible(),
        Column::left("dtype"),
        Column::left("shape").flexible(),
        Column::left("kind").flexible(),
        Column::left("elements").flexible(),
    ]);
    for (label, direction) in [("in", Direction::Input), ("out", Direction::Output)] {
        for port in node.ports(direction) {
            table.row([
                Cell::styled(style::FAINT, label),
                Cell::from(&port.name),
                Cell::from(port.dtype.name()),
                Cell::from(port.shape.to_string()),
                Cell::from(port.kind.as_deref().unwrap_or_default()),
                Cell::from(elements(port)),
            ]);
        }
    }
    table
}

/// Names along the axes of a port, `x` between two axes.
fn elements(port: &PortSpec) -> String {
    let describe = |names: &AxisNames| match names {
        AxisNames::Unnamed => "-".to_owned(),
        AxisNames::Temporal => match port.temporal_period_ms {
            Some(period) => format!("time, every {period} ms"),
            None => "time".to_owned(),
        },
        AxisNames::Named(names) => names[..names.len().min(MAX_NAMES)].join(", "),
    };
    let axes = port.element_names.as_deref().unwrap_or_default();
    axes.iter().map(describe).collect::<Vec<_>>().join(" x ")
}

fn wiring(
    data: &[Edge],
    feedback: &[Edge],
    initial: &BTreeMap<PortRef, Tensor>,
    document: &mut Document,
) {
    if data.is_empty() && feedback.is_empty() {
        return;
    }
    let mut table = Table::new([
        Column::left("when"),
        Column::left("from").path(),
        Column::left("to").path(),
        Column::left("starts from").flexible(),
    ]);
    let mut edge = |when: &str, edge: &Edge, start: String| {
        table.row(
            [when, &edge.source.to_string(), &edge.target.to_string(), &start].map(Cell::from),
        );
    };
    for data in data {
        edge("same step", data, String::new());
    }
    for feedback in feedback {
        edge("next step", feedback, start(initial.get(&feedback.target)));
    }
    document.heading("wiring");
    document.table(table, 2);
}

/// The first value of a feedback input in a few words.
fn start(initial: Option<&Tensor>) -> String {
    let Some(tensor) = initial.filter(|tensor| tensor.bytes().iter().any(|&byte| byte != 0)) else {
        return "zeros".to_owned();
    };
    match range(tensor) {
        Some((low, high)) if low.to_bits() == high.to_bits() => number(low),
        Some((low, high)) => format!("{} to {}", number(low), number(high)),
        None => "no finite values".to_owned(),
    }
}

fn range(tensor: &Tensor) -> Option<(f64, f64)> {
    use veracity::compare::{MeasureOptions, measure};
    let options = MeasureOptions::new(veracity::results::Tolerance::EXACT);
    measure(&tensor.view(), &tensor.view(), &options).ok()?.reference_range
}

fn pipeline(inputs: &[PortRef], outputs: &[PortRef], document: &mut Document) {
    let mut table = Table::new([Column::left(""), Column::left("port").path()]);
    for (label, ports) in [("in", inputs), ("out", outputs)] {
        for port in ports {
            table.row([Cell::styled(style::FAINT, label), Cell::from(port.to_string())]);
        }
    }
    document.heading("pipeline");
    document.table(table, 2);
}

fn file_table<'a>(files: impl Iterator<Item = (&'a str, &'a FileRecord)>, document: &mut Document) {
    let columns = [Column::left("file").path(), Column::right("size"), Column::left("sha256")];
    let mut table = Table::new(columns);
    for (path, record) in files {
        let hash = record.sha256.to_string();
        table.row([path, &size(record.size), short_hash(&hash)].map(Cell::from));
    }
    document.heading("files");
    document.table(table, 2);
}

fn system(facts: &Map, document: &mut Document) {
    if facts.is_empty() {
        return;
    }
    let mut table =
        Table::new([Column::left("what").flexible(), Column::left("version").flexible()]);
    for (key, value) in facts.iter() {
        table.row([key, &plain_value(value)].map(Cell::from));
    }
    document.heading("made with");
    document.table(table, 2);
}

fn plain_value(value: &Value) -> String {
    match value.as_text() {
        Some(text) => text.to_owned(),
        None => serde_json::to_string(value).unwrap_or_default(),
    }
}
