//! Takes out what nothing depends on.

use std::collections::HashSet;

use veracity_onnx::{NodeId, Patch};

use crate::{Class, Found, Pass, View};

/// Takes out nodes and weights that no output of the model depends on.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoveDeadCode;

impl Pass for RemoveDeadCode {
    fn name(&self) -> &'static str {
        "remove-dead-code"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "takes out nodes and weights that no output depends on"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        let graph = view.graph();
        let mut dead: HashSet<NodeId> = HashSet::new();
        // Last first, so that what only dead nodes read is dead as well.
        for (id, node) in graph.nodes().rev() {
            let needed = node.outputs().iter().any(|value| {
                graph.is_output(value) || graph.readers(value).any(|reader| !dead.contains(&reader))
            });
            if !needed {
                dead.insert(id);
                found.propose(id, Patch::because("nothing reads it").remove(id));
            }
        }
        // A weight that is an input as well belongs to how the model is called.
        let unread = |name: &&str| {
            graph.weight(name).is_some()
                && !graph.is_output(name)
                && graph.readers(name).all(|reader| dead.contains(&reader))
        };
        let mut patch = Patch::because("nothing reads them");
        patch.drop_weights =
            graph.weights().map(|(name, _)| name).filter(unread).map(str::to_owned).collect();
        if !patch.drop_weights.is_empty() {
            // All at once: there may be thousands, and no node that they belong to.
            found.propose(NodeId(u32::MAX), patch);
        }
    }
}
