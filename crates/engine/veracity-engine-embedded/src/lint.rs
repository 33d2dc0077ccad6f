//! Refuses every model that tract is not known to compute correctly.
//!
//! A node passes when a [`Rule`](rule::Rule) allows its operator, every one of its attributes and
//! the dtypes of its inputs; what no rule mentions is refused. The dtypes are followed through the
//! graph here and not asked of tract: it holds some 64-bit integers as something else (see
//! [`Value::Sizes`]), and which ones is what must be known.
//!
//! Shapes are not judged. A shape that tract cannot handle is an error or a panic there, never a
//! wrong number.

mod conditions;
mod judge;
mod rule;
mod table;
mod value;

use std::collections::HashMap;
use std::ops::RangeInclusive;

use tract_onnx::pb::{GraphProto, ModelProto, NodeProto};
use veracity_diag::{Diagnostic, Place, Reporter, Result, codes};
use veracity_engine::Ports;

use crate::lint::value::Value;

/// Versions of the default operators that the rules were made for. Before 13 several operators
/// meant something else; what comes after 22 has not been looked at.
const OPSETS: RangeInclusive<i64> = 13..=22;

/// Nodes that are listed one by one; a file may have millions.
const MAX_LISTED: usize = 50;

/// Values by name.
type Values<'a> = HashMap<&'a str, Value>;

/// Refuses a model with anything in it that tract may compute wrongly, naming every such node.
/// `op_count` is the number of nodes in the whole file, those hidden in functions included.
pub(crate) fn check(model: &ModelProto, ports: &Ports, op_count: usize) -> Result<()> {
    let mut reporter = Reporter::new();
    let empty = GraphProto::default();
    let graph = model.graph.as_ref().unwrap_or(&empty);
    check_opset(model, &mut reporter);
    let mut values = known_values(graph, ports, &mut reporter);
    let mut refused = 0;
    for node in &graph.node {
        if let Err(reason) = check_node(node, &mut values) {
            refused += 1;
            if refused <= MAX_LISTED {
                reporter.report(node_finding(node, &reason));
            }
        }
    }
    if refused > MAX_LISTED {
        reporter.report(finding(format!("{} more nodes are refused", refused - MAX_LISTED)));
    }
    // Subgraphs have been refused with their nodes by now.
    if !reporter.has_errors() && op_count != graph.node.len() {
        reporter.report(finding("the model has functions of its own".to_owned()));
    }
    reporter.finish().map(drop)
}

fn check_opset(model: &ModelProto, reporter: &mut Reporter) {
    let mut versions = model.opset_import.iter().filter(|import| is_default_domain(&import.domain));
    let problem = match (versions.next().map(|import| import.version), versions.next()) {
        (Some(version), None) if OPSETS.contains(&version) => return,
        (Some(version), None) => format!("the model uses operator set {version}"),
        (None, _) => "the model names no operator set".to_owned(),
        (Some(_), Some(_)) => "the model names two operator sets".to_owned(),
    };
    let (first, last) = (OPSETS.start(), OPSETS.end());
    reporter.report(finding(format!("{problem}; {first} to {last} are supported")));
}

/// What exists before the first node runs: inputs as declared, and initializers.
fn known_values<'a>(
    graph: &'a GraphProto,
    ports: &'a Ports,
    reporter: &mut Reporter,
) -> Values<'a> {
    let mut values = Values::new();
    for port in &ports.inputs {
        let value = value::supported(port.dtype).map_or_else(
            |reason| {
                reporter.report(finding(format!("input {:?}: {reason}", port.name)));
                Value::Unknown
            },
            Value::Plain,
        );
        values.insert(&port.name, value);
    }
    for tensor in &graph.initializer {
        let value = value::of_tensor(tensor).unwrap_or_else(|reason| {
            reporter.report(finding(format!("initializer {:?}: {reason}", tensor.name)));
            Value::Unknown
        });
        if values.insert(&tensor.name, value).is_some() {
            let name = &tensor.name;
            reporter.report(finding(format!("the value {name:?} is given more than once")));
        }
    }
    if !graph.sparse_initializer.is_empty() {
        reporter.report(finding("the model has sparse initializers".to_owned()));
    }
    values
}

/// Judges a node and adds what it gives. What a refused node gives is unknown, so that the nodes
/// after it are not refused for its fault.
fn check_node<'a>(node: &'a NodeProto, values: &mut Values<'a>) -> std::result::Result<(), String> {
    let judged = read_inputs(node, values).and_then(|inputs| judge::outputs_of(node, &inputs));
    let (given, mut outcome) = match judged {
        Ok(given) => (given, Ok(())),
        Err(reason) => (vec![Value::Unknown; node.output.len()], Err(reason)),
    };
    for (name, value) in node.output.iter().zip(given) {
        // tract would connect every reader to the last of them.
        if !name.is_empty() && values.insert(name, value).is_some() {
            outcome = Err(format!("the value {name:?} is given more than once"));
        }
    }
    outcome
}

fn read_inputs(
    node: &NodeProto,
    values: &Values<'_>,
) -> std::result::Result<Vec<Option<Value>>, String> {
    let read = |name: &String| match values.get(name.as_str()) {
        _ if name.is_empty() => Ok(None),
        Some(value) => Ok(Some(value.clone())),
        None => Err(format!("nothing before it gives its input {name:?}")),
    };
    node.input.iter().map(read).collect()
}

fn is_default_domain(domain: &str) -> bool {
    domain.is_empty() || domain == "ai.onnx"
}

fn node_finding(node: &NodeProto, reason: &str) -> Diagnostic {
    let name = if node.name.is_empty() { node.output.first() } else { Some(&node.name) };
    let place = Place { node: name.cloned(), ..Place::default() };
    finding(format!("operator {}: {reason}", node.op_type)).at(place)
}

fn finding(message: String) -> Diagnostic {
    Diagnostic::error(codes::ENGINE_UNSUPPORTED, message).hint("use `--engine ort` for this model")
}
