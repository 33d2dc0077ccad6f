//! The nodes that show why a small integer tensor has the elements that are known of it.

use veracity_onnx::{Node, NodeId};

use crate::View;

/// The nodes behind a value with known elements, back to constants and to the sizes of tensors.
/// They show why the elements are what they are, also where some are only known by name.
pub(super) fn witnesses(view: &View<'_>, value: &str) -> Vec<NodeId> {
    let mut found: Vec<NodeId> = Vec::new();
    let mut open = vec![value.to_owned()];
    while let Some(value) = open.pop() {
        let counts = view.fact(&value).is_some_and(|fact| fact.elements.is_some());
        let Some((id, node)) = view.graph().producer(&value).filter(|_| counts) else { continue };
        if !found.contains(&id) {
            found.push(id);
            if !reads_sizes(node) {
                open.extend(node.inputs().iter().cloned());
            }
        }
    }
    found.sort_unstable();
    found
}

/// Whether a node gives sizes of its input, whatever the elements of that are.
pub(super) fn reads_sizes(node: &Node) -> bool {
    node.is("Shape") || node.is("Size")
}
