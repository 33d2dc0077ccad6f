//! Ports in unusual numbers and places.

use veracity_engine::Engine;
use veracity_onnx::{Dim, GraphBuilder, Node};
use veracity_tensor::DType;

use crate::Case;
use crate::trial::{OPSET, Trial};
use crate::values::tensor;

pub(super) const CASES: &[Case] = &[
    Case { id: "several_inputs_and_outputs_keep_their_order", run: several },
    Case { id: "declared_order_counts_not_the_models", run: declared_order },
    Case { id: "an_output_of_the_model_need_not_be_declared", run: undeclared_output },
    Case { id: "an_output_may_be_a_constant", run: constant_output },
    Case { id: "an_output_may_be_an_input", run: handed_on },
    Case { id: "an_input_may_be_unused", run: unused_input },
    Case { id: "an_open_axis_takes_the_declared_size", run: open_axis },
    Case { id: "names_need_not_be_identifiers", run: odd_names },
];

/// Two inputs that must not be mixed up, and two outputs likewise.
fn difference_and_sum() -> GraphBuilder {
    GraphBuilder::new("case", OPSET)
        .input("a", DType::F32, [2])
        .input("b", DType::F32, [2])
        .node(Node::new("Sub", ["a", "b"], ["difference"]))
        .node(Node::new("Add", ["a", "b"], ["sum"]))
        .output("difference", DType::F32, [2])
        .output("sum", DType::F32, [2])
}

fn several(engine: &dyn Engine) -> Result<(), String> {
    let (a, b) = (tensor([2], &[5.0_f32, 7.0]), tensor([2], &[1.0_f32, 2.0]));
    let (difference, sum) = (tensor([2], &[4.0_f32, 5.0]), tensor([2], &[6.0_f32, 9.0]));
    let expected = [("difference", &difference), ("sum", &sum)];
    Trial::on(difference_and_sum(), &[("a", &a), ("b", &b)], &expected).check(engine)
}

fn declared_order(engine: &dyn Engine) -> Result<(), String> {
    let (a, b) = (tensor([2], &[5.0_f32, 7.0]), tensor([2], &[1.0_f32, 2.0]));
    let (difference, sum) = (tensor([2], &[4.0_f32, 5.0]), tensor([2], &[6.0_f32, 9.0]));
    let expected = [("sum", &sum), ("difference", &difference)];
    Trial::on(difference_and_sum(), &[("b", &b), ("a", &a)], &expected).check(engine)
}

fn undeclared_output(engine: &dyn Engine) -> Result<(), String> {
    let (a, b) = (tensor([2], &[5.0_f32, 7.0]), tensor([2], &[1.0_f32, 2.0]));
    let sum = tensor([2], &[6.0_f32, 9.0]);
    Trial::on(difference_and_sum(), &[("a", &a), ("b", &b)], &[("sum", &sum)]).check(engine)
}

fn constant_output(engine: &dyn Engine) -> Result<(), String> {
    let (x, y) = (tensor([2], &[1.0_f32, -2.0]), tensor([2], &[-1.0_f32, 2.0]));
    let constant = tensor([3], &[7_i64, 8, 9]);
    Trial::new(&[("x", &x)], &[("y", &y), ("constant", &constant)])
        .constant("constant", &constant)
        .node(Node::new("Neg", ["x"], ["y"]))
        .check(engine)
}

fn handed_on(engine: &dyn Engine) -> Result<(), String> {
    let (x, y) = (tensor([2], &[1.0_f32, -2.0]), tensor([2], &[-1.0_f32, 2.0]));
    Trial::new(&[("x", &x)], &[("y", &y), ("x", &x)])
        .node(Node::new("Neg", ["x"], ["y"]))
        .check(engine)
}

fn unused_input(engine: &dyn Engine) -> Result<(), String> {
    let (x, y) = (tensor([2], &[1.0_f32, -2.0]), tensor([2], &[-1.0_f32, 2.0]));
    Trial::new(&[("unused", &tensor([5], &[0_i64; 5])), ("x", &x)], &[("y", &y)])
        .node(Node::new("Neg", ["x"], ["y"]))
        .check(engine)
}

fn open_axis(engine: &dyn Engine) -> Result<(), String> {
    let dims = || [Dim::from("batch"), Dim::from(2)];
    let graph = GraphBuilder::new("case", OPSET)
        .input("x", DType::F32, dims())
        .node(Node::new("Neg", ["x"], ["y"]))
        .output("y", DType::F32, dims());
    let x = tensor([3, 2], &[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = tensor([3, 2], &[-1.0_f32, -2.0, -3.0, -4.0, -5.0, -6.0]);
    Trial::on(graph, &[("x", &x)], &[("y", &y)]).check(engine)
}

fn odd_names(engine: &dyn Engine) -> Result<(), String> {
    let (x, y) = (tensor([1], &[1.0_f32]), tensor([1], &[-1.0_f32]));
    Trial::new(&[("policy/obs.1 (é)", &x)], &[("/out:0", &y)])
        .node(Node::new("Neg", ["policy/obs.1 (é)"], ["/out:0"]))
        .check(engine)
}
