//! `remove-no-ops`

use veracity_onnx::{Dim, GraphBuilder, Model, Node};
use veracity_tensor::{DType, Shape, Tensor};
use veracity_transform::passes::RemoveNoOps;

use crate::support::{holds, left_alone, lines};

fn ints(all: &[i64]) -> Tensor {
    Tensor::from_slice([all.len()], all).unwrap()
}

fn floats(dims: &[usize], number: f32) -> Tensor {
    let shape = Shape::new(dims).unwrap();
    Tensor::from_slice(shape.clone(), &vec![number; shape.elements()]).unwrap()
}

/// A node between two others, which reads `a` and then constants `c0`, `c1`, …
fn between(opset: i64, node: Node, dims: &[Dim], constants: &[Tensor]) -> Model {
    let mut node = node;
    let mut builder = GraphBuilder::new("graph", opset).input("x", DType::F32, dims.to_vec());
    for (index, tensor) in constants.iter().enumerate() {
        if node.inputs().len() <= index + 1 {
            node = node.with_input(index + 1, format!("c{index}"));
        }
        builder = builder.initializer(format!("c{index}"), tensor);
    }
    builder
        .node(Node::new("Abs", ["x"], ["a"]))
        .node(node)
        .node(Node::new("Neg", ["b"], ["y"]))
        .output("y", DType::F32, vec![Dim::Unknown; dims.len()])
        .finish()
        .unwrap()
}

fn op(name: &str) -> Node {
    Node::new(name, ["a"], ["b"])
}

fn fixed(sizes: &[usize]) -> Vec<Dim> {
    sizes.iter().map(|&size| Dim::Fixed(size)).collect()
}

fn goes(opset: i64, node: &Node, sizes: &[usize], constants: &[Tensor]) {
    let model = between(opset, node.clone(), &fixed(sizes), constants);
    assert_eq!(lines(&holds(&RemoveNoOps, &model)), ["a = Abs(x)", "y = Neg(a)"], "{node:?}");
}

fn stays(opset: i64, node: &Node, sizes: &[usize], constants: &[Tensor], reason: &str) {
    left_alone(RemoveNoOps, &between(opset, node.clone(), &fixed(sizes), constants), reason);
}

#[test]
fn an_identity_goes() {
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Identity", ["a"], ["b"]))
        .node(Node::new("Identity", ["b"], ["c"]))
        .node(Node::new("Neg", ["c"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    assert_eq!(lines(&holds(&RemoveNoOps, &model)), ["a = Relu(x)", "y = Neg(a)"]);
}

#[test]
fn an_output_that_is_an_input_keeps_its_node() {
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Identity", ["x"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    left_alone(RemoveNoOps, &model, "needs a node of its own");
}

#[test]
fn one_value_cannot_be_two_outputs() {
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Identity", ["a"], ["y"]))
        .output("a", DType::F32, [2_usize])
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    left_alone(RemoveNoOps, &model, "needs a node of its own");
}

#[test]
fn an_output_keeps_its_name() {
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Identity", ["a"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    assert_eq!(lines(&holds(&RemoveNoOps, &model)), ["y = Relu(x)"]);
}

#[test]
fn another_operator_of_the_same_name_stays() {
    stays(18, &op("Identity").domain("com.example"), &[2], &[], "");
}

#[test]
fn a_shape_that_is_there_already_goes() {
    goes(18, &op("Reshape"), &[2, 3], &[ints(&[2, 3])]);
    goes(18, &op("Reshape"), &[2, 3], &[ints(&[0, -1])]);
    goes(18, &op("Flatten"), &[2, 3], &[]);
    goes(18, &op("Expand"), &[2, 3], &[ints(&[1, 3])]);
    goes(18, &op("Expand"), &[2, 3], &[ints(&[1])]);
    goes(18, &op("Tile"), &[2, 3], &[ints(&[1, 1])]);
    goes(18, &op("Squeeze"), &[2, 3], &[ints(&[])]);
    goes(18, &op("Unsqueeze"), &[2, 3], &[ints(&[])]);
    goes(18, &op("Transpose").ints("perm", [0, 1, 2]), &[2, 3, 4], &[]);
    goes(18, &op("Transpose").ints("perm", [1, 0, 2]), &[1, 1, 4], &[]);
    goes(18, &op("Transpose"), &[5], &[]);
    goes(18, &op("Slice"), &[2, 3], &[ints(&[0]), ints(&[i64::MAX])]);
    goes(18, &op("Slice"), &[2, 3], &[ints(&[-3]), ints(&[9]), ints(&[1]), ints(&[1])]);
    goes(9, &op("Slice").ints("starts", [0]).ints("ends", [2]), &[2, 3], &[]);
    goes(18, &op("Pad"), &[2, 3], &[ints(&[0, 0, 0, 0])]);
    goes(10, &op("Pad").ints("pads", [0, 0, 0, 0]), &[2, 3], &[]);
    goes(18, &op("Concat").int("axis", 0), &[2, 3], &[]);
    goes(18, &op("Split").int("num_outputs", 1), &[2, 3], &[]);
    goes(18, &op("Split"), &[2, 3], &[ints(&[2])]);
    goes(18, &op("Sum"), &[2], &[]);
    goes(18, &op("Cast").dtype("to", DType::F32), &[2], &[]);
    goes(18, &op("CastLike"), &[2], &[floats(&[1], 1.0)]);
}

#[test]
fn another_shape_or_order_stays() {
    stays(18, &op("Reshape"), &[2, 3], &[ints(&[3, 2])], "");
    stays(18, &op("Flatten").int("axis", 0), &[2, 3], &[], "");
    stays(18, &op("Expand"), &[2, 3], &[ints(&[1, 2, 3])], "");
    stays(18, &op("Tile"), &[2, 3], &[ints(&[1, 2])], "");
    stays(18, &op("Transpose").ints("perm", [1, 0]), &[3, 3], &[], "");
    stays(18, &op("Transpose"), &[3, 3], &[], "");
    stays(18, &op("Transpose").ints("perm", [1, 0, 2]), &[1, 2, 4], &[], "");
    stays(18, &op("Slice"), &[2, 3], &[ints(&[1]), ints(&[2])], "");
    // Backwards: the same sizes and another order.
    let backwards = [ints(&[-1]), ints(&[i64::MIN]), ints(&[1]), ints(&[-1])];
    stays(18, &op("Slice"), &[2, 3], &backwards, "");
    // As much is cut off at one side as comes at the other.
    stays(18, &op("Pad"), &[2, 3], &[ints(&[1, 0, -1, 0])], "");
    stays(18, &op("Concat").int("axis", 0), &[2, 3], &[floats(&[0, 3], 1.0)], "");
    stays(18, &op("Cast").dtype("to", DType::F64), &[2], &[], "");
    stays(18, &op("CastLike"), &[2], &[ints(&[1])], "");
}

#[test]
fn sizes_with_the_same_name_are_the_same() {
    let dims = vec![Dim::from("N"), Dim::Fixed(3)];
    let model = |shape: &[i64]| between(18, op("Reshape"), &dims, &[ints(shape)]);
    let graph = holds(&RemoveNoOps, &model(&[-1, 3]));
    assert_eq!(lines(&graph), ["a = Abs(x)", "y = Neg(a)"]);
    left_alone(RemoveNoOps, &model(&[2, 3]), "");
    let unknown = vec![Dim::Unknown, Dim::Fixed(3)];
    left_alone(RemoveNoOps, &between(18, op("Reshape"), &unknown, &[ints(&[-1, 3])]), "");
}

#[test]
fn steps_that_are_not_known_keep_a_slice() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [3_usize])
        .input("steps", DType::I64, [1_usize])
        .initializer("start", &ints(&[0]))
        .initializer("end", &ints(&[i64::MAX]))
        .initializer("axis", &ints(&[0]))
        .node(Node::new("Abs", ["x"], ["a"]))
        .node(Node::new("Slice", ["a", "start", "end", "axis", "steps"], ["b"]))
        .node(Node::new("Neg", ["b"], ["y"]))
        .output("b", DType::F32, [3_usize])
        .output("y", DType::F32, [3_usize])
        .finish()
        .unwrap();
    left_alone(RemoveNoOps, &model, "its steps are not known");
}

#[test]
fn a_dropout_that_rests_goes() {
    let no = Tensor::from_bytes(DType::Bool, Shape::scalar(), &[0]).unwrap();
    let yes = Tensor::from_bytes(DType::Bool, Shape::scalar(), &[1]).unwrap();
    goes(18, &op("Dropout"), &[2], &[]);
    goes(18, &Node::new("Dropout", ["a", "c0", "c1"], ["b"]), &[2], &[floats(&[], 0.5), no]);
    goes(11, &op("Dropout"), &[2], &[]);
    let trains = Node::new("Dropout", ["a", "c0", "c1"], ["b"]);
    stays(18, &trains, &[2], &[floats(&[], 0.5), yes], "may be in training");
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Abs", ["x"], ["a"]))
        .node(Node::new("Dropout", ["a"], ["y", "mask"]))
        .output("y", DType::F32, [2_usize])
        .output("mask", DType::Bool, [2_usize])
        .finish()
        .unwrap();
    left_alone(RemoveNoOps, &model, "another of its outputs is read");
}

#[test]
fn neutral_constants_go_where_every_bit_is_kept() {
    for (name, number) in [("Mul", 1.0), ("Div", 1.0), ("Sub", 0.0), ("Add", -0.0)] {
        goes(18, &op(name), &[2, 3], &[floats(&[], number)]);
        goes(18, &op(name), &[2, 3], &[floats(&[3], number)]);
        goes(18, &op(name), &[2, 3], &[floats(&[1, 1], number)]);
    }
    for (name, number) in [("Mul", 1.0), ("Add", -0.0)] {
        goes(18, &Node::new(name, ["c0", "a"], ["b"]), &[2, 3], &[floats(&[3], number)]);
    }
}

#[test]
fn what_only_looks_neutral_stays() {
    stays(18, &op("Add"), &[2], &[floats(&[2], 0.0)], "turns -0.0 into 0.0");
    stays(18, &op("Sub"), &[2], &[floats(&[2], -0.0)], "");
    stays(18, &op("Mul"), &[2], &[floats(&[2], 1.000_000_1)], "");
    stays(18, &Node::new("Div", ["c0", "a"], ["b"]), &[2], &[floats(&[2], 1.0)], "");
    stays(18, &Node::new("Sub", ["c0", "a"], ["b"]), &[2], &[floats(&[2], 0.0)], "");
    stays(18, &op("Mul"), &[1, 3], &[floats(&[2, 3], 1.0)], "may change the shape");
    stays(18, &op("Mul"), &[3], &[floats(&[1, 3], 1.0)], "may change the shape");
    let unknown = vec![Dim::from("N")];
    let model = between(18, op("Mul"), &unknown, &[floats(&[2], 1.0)]);
    left_alone(RemoveNoOps, &model, "may change the shape");
    let one = Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap();
    stays(18, &op("Mul"), &[2], &[one], "");
}

#[test]
fn integers_have_one_zero() {
    let model = |name: &str, number: i64| {
        GraphBuilder::new("graph", 18)
            .input("x", DType::I64, [2_usize])
            .initializer("c", &ints(&[number]))
            .node(Node::new("Abs", ["x"], ["a"]))
            .node(Node::new(name, ["a", "c"], ["b"]))
            .node(Node::new("Neg", ["b"], ["y"]))
            .output("y", DType::I64, [2_usize])
            .finish()
            .unwrap()
    };
    for (name, number) in [("Add", 0), ("Sub", 0), ("Mul", 1), ("Div", 1)] {
        assert_eq!(lines(&holds(&RemoveNoOps, &model(name, number))).len(), 2, "{name}");
        left_alone(RemoveNoOps, &model(name, number + 1), "");
    }
}
