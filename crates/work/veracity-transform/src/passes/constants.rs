//! `Constant` nodes become weights, so that the other passes look for constants in one place.

use veracity_onnx::Patch;

use crate::{Class, Found, Pass, View};

/// Holds what `Constant` nodes give as weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct HoldConstants;

impl Pass for HoldConstants {
    fn name(&self) -> &'static str {
        "hold-constants"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "holds what Constant nodes give as weights"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Constant") {
            let Some(value) = node.only_output() else { continue };
            match node.constant() {
                None => found.decline(id, "its value is not a plain tensor"),
                Some(_) if view.graph().is_output(value) => {
                    found.decline(id, "it is an output of the model");
                }
                Some(weight) => {
                    let patch = Patch::because("a constant").remove(id).weight(value, weight);
                    found.propose(id, patch);
                }
            }
        }
    }
}
