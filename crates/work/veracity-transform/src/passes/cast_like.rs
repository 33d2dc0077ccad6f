//! `CastLike` with a type that is known becomes `Cast`, which does not wait for another value.
//!
//! Exporters write it to give constants the type of an activation; as long as it stands, the
//! constant seems to depend on what the model computes.

use veracity_onnx::{Node, Patch};

use crate::{Class, Found, Pass, View};

/// Writes the type that is known into the node.
#[derive(Clone, Copy, Debug, Default)]
pub struct ResolveCastLike;

impl Pass for ResolveCastLike {
    fn name(&self) -> &'static str {
        "resolve-cast-like"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "makes a cast to the type of another value a cast to that type"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("CastLike") {
            let (Some(given), Some(like), Some(value)) =
                (node.input(0), node.input(1), node.output(0))
            else {
                continue;
            };
            let Some(dtype) = view.dtype(like) else {
                found.decline(id, format!("the type of {like:?} is not known"));
                continue;
            };
            let mut cast =
                Node::new("Cast", [given], [value]).named(node.name()).dtype("to", dtype);
            for (key, text) in node.metadata() {
                cast = cast.with_metadata(key, text);
            }
            let reason = format!("{like:?} is of type {dtype}");
            found.propose(id, Patch::because(reason).change(id, cast));
        }
    }
}
