//! What the numbers of a value can have to do with what a window gives.

use veracity_onnx::Node;

use super::adverse::Adverse;
use super::window::{Side, Window};
use crate::Class;

/// Operators that hand elements on as they are, wherever they put them.
const MOVING: [&str; 18] = [
    "Identity",
    "Reshape",
    "Transpose",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Expand",
    "Tile",
    "Slice",
    "Split",
    "Concat",
    "Gather",
    "GatherElements",
    "GatherND",
    "DepthToSpace",
    "SpaceToDepth",
    "Shape",
    "Size",
];

/// The kinds of made-up values that a window is held to. One is enough where elements are only
/// moved: what they are changes nothing.
pub(super) fn kinds(window: &Window, class: Class) -> &'static [Adverse] {
    let moves = |side: &Side| side.nodes.iter().all(is_moving);
    let all = Adverse::for_class(class);
    if moves(&window.before) && moves(&window.after) { &all[..all.len().min(1)] } else { all }
}

fn is_moving(node: &Node) -> bool {
    node.op_domain().is_empty() && MOVING.contains(&node.op_type())
}

/// Whether the elements of a value matter to a window, and not only their type and number.
pub(super) fn looks_at(window: &Window, name: &str) -> bool {
    let looks = |node: &Node| {
        let places = node.inputs().iter().enumerate().filter(|(_, input)| *input == name);
        match node.op_type() {
            "Shape" | "Size" => false,
            "CastLike" => places.clone().any(|(place, _)| place == 0),
            _ => node.reads().contains(name),
        }
    };
    let handed_on = window.outputs.iter().any(|(old, new)| old == name || new == name);
    handed_on || window.before.nodes.iter().chain(&window.after.nodes).any(looks)
}
