//! What is in a bundle.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use veracity::spec::{AxisNames, Direction, Edge, FileRecord, Map, Node, PortRef, PortSpec, Value};
use veracity::tensor::Tensor;
use veracity::{Inspection, ModelFacts};

use super::style::{self, paint};
use super::table::{Cell, Column, Table};
use super::text::{count, number, printable, size};

/// Names of one axis that are written out; more would be cut on any terminal.
const MAX_NAMES: usize = 64;

/// Digits of a hash that tell files apart for the eye.
const SHORT_HASH: usize = 12;

/// A bundle, for people. `initial` holds the first values of feedback inputs.
pub(crate) fn render(
    inspection: &Inspection<'_>,
    initial: &BTreeMap<PortRef, Tensor>,
    width: usize,
) -> String {
    let spec = inspection.spec;
    let mut text = header(inspection);
    for (index, node) in spec.nodes.iter().enumerate() {
        let facts = inspection.models.iter().find(|facts| facts.node == node.name);
        text += &node_header(index + 1, node, facts);
        text += &port_table(node, width);
    }
    text += &wiring(&spec.data_flow, &spec.feedback_flow, initial, width);
    text += &pipeline(&spec.pipeline_inputs, &spec.pipeline_outputs, width);
    if let Some(block) = &spec.veracity {
        let files = block.files.iter().map(|(path, record)| (path.as_str(), record));
        text += &file_table(files, width);
    }
    text += &system(&spec.system, width);
    text
}

fn heading(title: &str) -> String {
    format!("\n{}\n", paint(style::HEADING, title))
}

fn header(inspection: &Inspection<'_>) -> String {
    let path = Path::new(&inspection.bundle);
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let spec = inspection.spec;
    let frequency = match spec.configs.frequency {
        Some(hertz) => format!("{hertz} Hz"),
        None => "no frequency".to_owned(),
    };
    let facts =
        format!("format {}, {frequency}, {}", spec.version, count(spec.nodes.len(), "node"));
    let name = paint(style::HEADING, &printable(&name));
    format!("{name}: {facts}\n{}\n", printable(&inspection.bundle))
}

fn node_header(position: usize, node: &Node, facts: Option<&ModelFacts>) -> String {
    let mut text = heading(&format!("{position}. {}", printable(&node.name)));
    let Some(model) = &node.model else {
        return text + "   no model\n";
    };
    let bytes = facts.map_or_else(String::new, |facts| format!(", {}", size(facts.file_bytes)));
    let hash = model.sha256.to_string();
    let hash = short_hash(&hash);
    let path = printable(model.path.as_str()).into_owned();
    let _ = writeln!(text, "   {path} ({}{bytes}, sha256 {hash})", model.backend);
    let known = facts.map(graph_facts).unwrap_or_default();
    if !known.is_empty() {
        let _ = writeln!(text, "   {}", known.join(", "));
    }
    text
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

fn port_table(node: &Node, width: usize) -> String {
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
    table.render(3, width)
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
    width: usize,
) -> String {
    if data.is_empty() && feedback.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        Column::left("when"),
        Column::left("from").flexible(),
        Column::left("to").flexible(),
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
    heading("wiring") + &table.render(2, width)
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

fn pipeline(inputs: &[PortRef], outputs: &[PortRef], width: usize) -> String {
    let mut table = Table::new([Column::left(""), Column::left("port").flexible()]);
    for (label, ports) in [("in", inputs), ("out", outputs)] {
        for port in ports {
            table.row([Cell::styled(style::FAINT, label), Cell::from(port.to_string())]);
        }
    }
    heading("pipeline") + &table.render(2, width)
}

fn file_table<'a>(files: impl Iterator<Item = (&'a str, &'a FileRecord)>, width: usize) -> String {
    let columns = [Column::left("file").flexible(), Column::right("size"), Column::left("sha256")];
    let mut table = Table::new(columns);
    for (path, record) in files {
        let hash = record.sha256.to_string();
        table.row([path, &size(record.size), short_hash(&hash)].map(Cell::from));
    }
    heading("files") + &table.render(2, width)
}

fn system(facts: &Map, width: usize) -> String {
    if facts.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new([Column::left("what").flexible(), Column::left("version").flexible()]);
    for (key, value) in facts.iter() {
        table.row([key, &plain_value(value)].map(Cell::from));
    }
    heading("made with") + &table.render(2, width)
}

fn plain_value(value: &Value) -> String {
    match value.as_text() {
        Some(text) => text.to_owned(),
        None => serde_json::to_string(value).unwrap_or_default(),
    }
}
