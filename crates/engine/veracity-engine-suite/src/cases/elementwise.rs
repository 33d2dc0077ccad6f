//! One element in, one element out; and what happens to numbers that are none.

use veracity_engine::Engine;
use veracity_onnx::Node;

use crate::Case;
use crate::trial::Trial;
use crate::values::{bools, tensor};

pub(super) const CASES: &[Case] = &[
    Case { id: "where_picks_by_condition", run: where_picks },
    Case { id: "clip", run: clip },
    Case { id: "clip_without_upper_bound", run: clip_without_upper_bound },
    Case { id: "broadcast_of_two_sides", run: broadcast },
    Case { id: "nan_and_infinity_pass_through_arithmetic", run: not_finite },
];

fn where_picks(engine: &dyn Engine) -> Result<(), String> {
    let condition = bools([3], &[true, false, true]);
    let (a, b) = (tensor([3], &[1.0_f32, 2.0, 3.0]), tensor([3], &[-1.0_f32, -2.0, -3.0]));
    let picked = tensor([3], &[1.0_f32, -2.0, 3.0]);
    Trial::new(&[("c", &condition), ("a", &a), ("b", &b)], &[("y", &picked)])
        .node(Node::new("Where", ["c", "a", "b"], ["y"]))
        .check(engine)
}

fn clip(engine: &dyn Engine) -> Result<(), String> {
    let x = tensor([4], &[-2.0_f32, -0.5, 0.5, 2.0]);
    let y = tensor([4], &[-1.0_f32, -0.5, 0.5, 1.0]);
    Trial::new(&[("x", &x)], &[("y", &y)])
        .constant("low", &tensor([], &[-1.0_f32]))
        .constant("high", &tensor([], &[1.0_f32]))
        .node(Node::new("Clip", ["x", "low", "high"], ["y"]))
        .check(engine)
}

fn clip_without_upper_bound(engine: &dyn Engine) -> Result<(), String> {
    let x = tensor([3], &[-2.0_f32, 0.5, 2.0]);
    let y = tensor([3], &[0.0_f32, 0.5, 2.0]);
    Trial::new(&[("x", &x)], &[("y", &y)])
        .constant("low", &tensor([], &[0.0_f32]))
        .node(Node::new("Clip", ["x", "low", ""], ["y"]))
        .check(engine)
}

fn broadcast(engine: &dyn Engine) -> Result<(), String> {
    let (a, b) = (tensor([2, 1], &[10.0_f32, 20.0]), tensor([3], &[1.0_f32, 2.0, 3.0]));
    let sum = tensor([2, 3], &[11.0_f32, 12.0, 13.0, 21.0, 22.0, 23.0]);
    Trial::new(&[("a", &a), ("b", &b)], &[("sum", &sum)])
        .node(Node::new("Add", ["a", "b"], ["sum"]))
        .check(engine)
}

fn not_finite(engine: &dyn Engine) -> Result<(), String> {
    let (nan, inf) = (f32::NAN, f32::INFINITY);
    let a = tensor([6], &[nan, 1.0, inf, inf, -inf, 3.4e38]);
    let b = tensor([6], &[1.0, nan, 1.0, -inf, -1.0, 3.4e38]);
    let sum = tensor([6], &[nan, nan, inf, nan, -inf, inf]);
    let product = tensor([6], &[nan, nan, inf, -inf, inf, inf]);
    Trial::new(&[("a", &a), ("b", &b)], &[("sum", &sum), ("product", &product)])
        .node(Node::new("Add", ["a", "b"], ["sum"]))
        .node(Node::new("Mul", ["a", "b"], ["product"]))
        .within(0.0)
        .check(engine)
}
