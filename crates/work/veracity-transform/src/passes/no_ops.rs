//! Takes out nodes that hand on what they are given.

use veracity_onnx::{Node, NodeId, Patch};

use crate::{Class, Found, Pass, View};

/// Takes out nodes that hand on what they are given.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveNoOps;

impl Pass for RemoveNoOps {
    fn name(&self) -> &'static str {
        "remove-no-ops"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "takes out nodes that hand on what they are given"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            found.settle(id, hands_on(view, id, node));
        }
    }
}

fn hands_on(view: &View<'_>, id: NodeId, node: &Node) -> Result<Option<Patch>, String> {
    if !node.is("Identity") {
        return Ok(None);
    }
    let (Some(given), Some(value)) = (node.input(0), node.only_output()) else { return Ok(None) };
    let graph = view.graph();
    if graph.is_output(value) && (graph.producer(given).is_none() || graph.is_output(given)) {
        return Err(format!("the output {value:?} of the model needs a node of its own"));
    }
    Ok(Some(Patch::because(format!("{value:?} is {given:?}")).remove(id).replace(value, given)))
}
