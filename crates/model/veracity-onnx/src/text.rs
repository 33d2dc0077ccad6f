//! Graphs as text, for tests.

use std::fmt::Write as _;

use crate::generated::onnx::{AttributeProto, GraphProto, ValueInfoProto};
use crate::model::initializer_names;
use crate::{Model, ValueInfo};

/// A line for each input, initializer, node, described value and output; subgraphs are indented.
pub(crate) fn text(model: &Model) -> String {
    let mut text = String::new();
    write_graph(&mut text, model.graph(), "");
    text
}

fn write_graph(text: &mut String, graph: &GraphProto, indent: &str) {
    let mut line = |what: &str, content: String| {
        writeln!(text, "{indent}{what} {content}").expect("writing to a string");
    };
    let values = |infos: &[ValueInfoProto]| {
        let shown = infos.iter().map(ValueInfo::from_proto);
        shown.map(|value| format!("{}: {value}", value.name)).collect::<Vec<_>>()
    };
    for input in values(&graph.input) {
        line("input", input);
    }
    initializer_names(graph).for_each(|name| line("constant", name.to_owned()));
    for node in &graph.node {
        let (inputs, outputs) = (node.input.join(", "), node.output.join(", "));
        let name = node.name.as_deref().map(|name| format!(" # {name}")).unwrap_or_default();
        line("node", format!("{outputs} = {}({inputs}){name}", node.op_type()));
        for AttributeProto { name, g, .. } in &node.attribute {
            let Some(body) = g else { continue };
            let mut nested = String::new();
            write_graph(&mut nested, body, "    ");
            let name = name.as_deref().unwrap_or_default();
            line(" ", format!("{name}:\n{}", nested.trim_end()));
        }
    }
    for value in values(&graph.value_info) {
        line("value", value);
    }
    for output in values(&graph.output) {
        line("output", output);
    }
}
