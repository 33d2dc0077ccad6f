//! Merged models compute what their stages compute one after the other.

use veracity_engine::Engine;
use veracity_onnx::{Edge, GraphBuilder, Model, Node, Stage, merge};
use veracity_tensor::{DType, Tensor};

use crate::Case;
use crate::trial::{OPSET, check_model, graph, told};
use crate::values::{Closeness, bools, tensor};

pub(super) const CASES: &[Case] = &[
    Case { id: "merged_chain", run: chain },
    Case { id: "merged_with_a_stage_that_hands_on", run: handed_on },
    Case { id: "merged_with_branches_that_see_the_connected_input", run: branches },
];

fn pair(values: [f32; 2]) -> Tensor {
    tensor([2], &values)
}

/// `y = x + 10`, with names that other stages use too.
fn add_ten() -> Result<Model, String> {
    let x = pair([0.0; 2]);
    graph(&[("x", &x)], &[("y", &x)])
        .initializer("w", &pair([10.0; 2]))
        .node(Node::new("Add", ["x", "w"], ["y"]))
        .finish()
        .map_err(told("make"))
}

/// `y = x * 2`
fn double() -> Result<Model, String> {
    let x = pair([0.0; 2]);
    graph(&[("x", &x)], &[("y", &x)])
        .initializer("w", &pair([2.0; 2]))
        .node(Node::new("Mul", ["x", "w"], ["y"]))
        .finish()
        .map_err(told("make"))
}

fn chain(engine: &dyn Engine) -> Result<(), String> {
    let (first, second) = (add_ten()?, double()?);
    let stages = [Stage { name: "first", model: &first }, Stage { name: "second", model: &second }];
    let edges = [Edge { from: ("first", "y"), to: ("second", "x") }];
    let merged =
        merge(&stages, &edges, &[("second", "y"), ("first", "y")]).map_err(told("merge"))?;
    let (x, between, y) = (pair([1.0, 2.0]), pair([11.0, 12.0]), pair([22.0, 24.0]));
    let expected = [("second/y", &y), ("first/y", &between)];
    check_model(engine, &merged, &[("first/x", &x)], &expected, Closeness::Bits)
}

fn handed_on(engine: &dyn Engine) -> Result<(), String> {
    let (first, last) = (add_ten()?, double()?);
    let x = pair([1.0, 2.0]);
    let relay = graph(&[("x", &x)], &[("x", &x)]).finish().map_err(told("make"))?;
    let stages = [
        Stage { name: "first", model: &first },
        Stage { name: "relay", model: &relay },
        Stage { name: "last", model: &last },
    ];
    let edges = [
        Edge { from: ("first", "y"), to: ("relay", "x") },
        Edge { from: ("relay", "x"), to: ("last", "x") },
    ];
    let merged = merge(&stages, &edges, &[("relay", "x"), ("last", "y")]).map_err(told("merge"))?;
    let (between, y) = (pair([11.0, 12.0]), pair([22.0, 24.0]));
    let expected = [("relay/x", &between), ("last/y", &y)];
    check_model(engine, &merged, &[("first/x", &x)], &expected, Closeness::Bits)
}

/// `y = x + w` if `c`, else `-x`.
fn either() -> Result<Model, String> {
    let branch =
        |node: Node| GraphBuilder::new("branch", OPSET).node(node).output("t", DType::F32, [2]);
    let (c, x) = (bools([], &[true]), pair([0.0; 2]));
    graph(&[("c", &c), ("x", &x)], &[("y", &x)])
        .initializer("w", &pair([100.0; 2]))
        .node(
            Node::new("If", ["c"], ["y"])
                .graph("then_branch", branch(Node::new("Add", ["x", "w"], ["t"])))
                .graph("else_branch", branch(Node::new("Neg", ["x"], ["t"]))),
        )
        .finish()
        .map_err(told("make"))
}

fn branches(engine: &dyn Engine) -> Result<(), String> {
    let (first, second) = (add_ten()?, either()?);
    let stages = [Stage { name: "a", model: &first }, Stage { name: "b", model: &second }];
    let edges = [Edge { from: ("a", "y"), to: ("b", "x") }];
    let merged = merge(&stages, &edges, &[("b", "y")]).map_err(told("merge"))?;
    for (choice, expected) in [(true, [111.0, 112.0]), (false, [-11.0, -12.0])] {
        let (c, x) = (bools([], &[choice]), pair([1.0, 2.0]));
        let inputs = [("a/x", &x), ("b/c", &c)];
        check_model(engine, &merged, &inputs, &[("b/y", &pair(expected))], Closeness::Bits)?;
    }
    Ok(())
}
