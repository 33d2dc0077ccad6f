//! Puts the nodes of a model's own functions in the place of the nodes that call them.
//!
//! Every value of a function gets a new name for each call, attributes are those of the call or the
//! defaults of the function, and what is left out stays left out. Calls in bodies are replaced as
//! well, and calls within functions one sweep after the other. The functions stay in the model,
//! uncalled, so that every rewrite can be undone.

use veracity_onnx::Patch;

use crate::{Class, Found, Pass, View};

/// Puts functions of the model in the place of their calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct InlineFunctions;

impl Pass for InlineFunctions {
    fn name(&self) -> &'static str {
        "inline-functions"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "puts functions of the model in the place of their calls"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        let functions = view.graph().functions();
        if functions.is_empty() {
            return;
        }
        for (id, node) in view.graph().nodes() {
            let put = functions.inlined(node, &mut |base| view.fresh(base));
            let patch = put.map(|nodes| {
                nodes.map(|nodes| {
                    let because = format!("the function {:?} in its place", node.op_type());
                    nodes.into_iter().fold(Patch::because(because).remove(id), Patch::insert)
                })
            });
            found.settle(id, patch.map_err(|refusal| refusal.first_error().message.clone()));
        }
    }
}
