//! The branch of an `If` whose condition is known.

use crate::Node;
use crate::edit::splice::{Fresh, Splice};
use crate::edit::{Graph, Weight};
use crate::generated::onnx::{GraphProto, NodeProto};
use crate::model::initializer_names;

/// What a branch computes, as part of the graph around it.
#[derive(Debug)]
pub struct Branch {
    /// Its nodes, which give the outputs of the `If`.
    pub nodes: Vec<Node>,
    /// Its weights.
    pub weights: Vec<(String, Weight)>,
}

impl Graph {
    /// The branch that an `If` of the main graph takes for this condition, under names that `fresh`
    /// gives. Says why when it cannot stand there.
    pub fn branch(
        &self,
        node: &Node,
        condition: bool,
        fresh: &mut dyn FnMut(&str) -> String,
    ) -> Result<Branch, String> {
        let name = if condition { "then_branch" } else { "else_branch" };
        let body = node.proto().attribute.iter().find(|one| one.name() == name);
        let body = body.and_then(|one| one.g.as_ref()).ok_or("it does not have this branch")?;
        let Some(prefix) = node.outputs().iter().find(|name| !name.is_empty()) else {
            return Err("it gives nothing".to_owned());
        };
        spliced(body, node, prefix, fresh)
    }
}

fn spliced(
    body: &GraphProto,
    node: &Node,
    prefix: &str,
    fresh: &mut Fresh<'_>,
) -> Result<Branch, String> {
    if !body.input.is_empty() || node.outputs().len() > body.output.len() {
        return Err("the branch does not fit the node".to_owned());
    }
    if !body.sparse_initializer.is_empty() || !body.quantization_annotation.is_empty() {
        return Err("the branch holds more than plain nodes and weights".to_owned());
    }
    let mut fresh = |name: &str| fresh(&format!("{prefix}/{name}"));
    let mut splice = Splice::branch(prefix, &mut fresh);
    let mut handed_on = Vec::new();
    let mut taken = Vec::new();
    let held: Vec<&str> = initializer_names(body).collect();
    for (output, called) in body.output.iter().zip(node.outputs()) {
        let name = output.name();
        let computed = body.node.iter().any(|node| node.output.iter().any(|one| one == name));
        if called.is_empty() {
            continue;
        }
        if computed && !held.contains(&name) && !taken.contains(&name) {
            splice.expect(name, called);
            taken.push(name);
        } else {
            handed_on.push((name, called));
        }
    }
    let weights = body.initializer.iter().map(|tensor| {
        let mut held = tensor.clone();
        held.name = None;
        (splice.define(tensor.name()), Weight(held))
    });
    let weights = weights.collect();
    let nodes = body.node.iter().map(|node| Ok(Node::from(splice.node(node)?)));
    let mut nodes = nodes.collect::<Result<Vec<Node>, String>>()?;
    for (name, called) in handed_on {
        nodes.push(identity(splice.name(name)?, called).into());
    }
    Ok(Branch { nodes, weights })
}

/// A node that hands a value on under another name.
pub(super) fn identity(from: String, to: &str) -> NodeProto {
    NodeProto {
        op_type: Some("Identity".to_owned()),
        input: vec![from],
        output: vec![to.to_owned()],
        ..NodeProto::default()
    }
}
