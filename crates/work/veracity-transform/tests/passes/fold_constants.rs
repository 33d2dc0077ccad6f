//! `fold-constants`

use half::f16;
use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Shape, Tensor};
use veracity_transform::passes::FoldConstants;

use crate::support::{Kind, answers, holds, inputs, left_alone, lines};

fn small(index: usize) -> f32 {
    u16::try_from(index % 60_000).unwrap().into()
}

fn floats(dims: &[usize]) -> Tensor {
    let shape = Shape::new(dims).unwrap();
    let scales = [1.0_f32, -3.7e-3, 1e20, -0.0, 2.5, -1e-38, 0.1, 7e4];
    let number = |index: usize| scales[index % 8] * (1.0 + small(index) / 7.0);
    Tensor::from_slice(shape.clone(), &(0..shape.elements()).map(number).collect::<Vec<_>>())
        .unwrap()
}

fn positive(dims: &[usize]) -> Tensor {
    let shape = Shape::new(dims).unwrap();
    let number = |index: usize| 0.3_f32 + small(index) * 0.77;
    Tensor::from_slice(shape.clone(), &(0..shape.elements()).map(number).collect::<Vec<_>>())
        .unwrap()
}

fn ints(all: &[i64]) -> Tensor {
    Tensor::from_slice([all.len()], all).unwrap()
}

fn counted(dims: &[usize]) -> Tensor {
    let shape = Shape::new(dims).unwrap();
    let all: Vec<i64> = (0..).take(shape.elements()).map(|one| one * 7 % 11 - 3).collect();
    Tensor::from_slice(shape, &all).unwrap()
}

fn bools(all: &[u8]) -> Tensor {
    Tensor::from_bytes(DType::Bool, Shape::from([all.len()]), all).unwrap()
}

/// A model that gives what a node makes of constants, behind something that is not constant.
fn model(opset: i64, node: &Node, constants: &[Tensor], dtype: DType, dims: &[usize]) -> Model {
    let mut node = node.clone();
    let mut builder = GraphBuilder::new("graph", opset).input("x", DType::F32, dims.to_vec());
    for (index, tensor) in constants.iter().enumerate() {
        node = node.with_input(index, format!("c{index}"));
        builder = builder.initializer(format!("c{index}"), tensor);
    }
    builder
        .node(node)
        .node(Node::new("Shape", ["x"], ["shape"]))
        .node(Node::new("Reshape", ["c", "shape"], ["y"]))
        .output("y", dtype, dims.to_vec())
        .finish()
        .unwrap()
}

fn op(name: &str) -> Node {
    Node::new(name, [""; 0], ["c"])
}

/// The node is computed, to the bits that the engine gives.
fn folds(node: &Node, constants: &[Tensor], dtype: DType, dims: &[usize]) {
    folds_in(18, node, constants, dtype, dims);
}

fn folds_in(opset: i64, node: &Node, constants: &[Tensor], dtype: DType, dims: &[usize]) {
    let graph = holds(&FoldConstants::default(), &model(opset, node, constants, dtype, dims));
    assert_eq!(lines(&graph), ["shape = Shape(x)", "y = Reshape(c, shape)"], "{node:?}");
    assert_eq!(graph.weights().count(), 1, "what only the node read goes with it");
}

#[test]
fn arithmetic_that_is_rounded_once() {
    for name in ["Add", "Sub", "Mul", "Div"] {
        folds(&op(name), &[floats(&[5, 13]), positive(&[13])], DType::F32, &[5, 13]);
        folds(&op(name), &[counted(&[2, 3]), ints(&[5])], DType::I64, &[2, 3]);
        folds(&op(name), &[counted(&[3, 1]), ints(&[-2, 7])], DType::I64, &[3, 2]);
    }
    for name in ["Max", "Min"] {
        folds(&op(name), &[positive(&[37]), floats(&[1])], DType::F32, &[37]);
        folds(&op(name), &[counted(&[37]), ints(&[2])], DType::I64, &[37]);
    }
    folds(&op("Mod"), &[counted(&[20]), ints(&[3])], DType::I64, &[20]);
    folds(&op("Mod"), &[counted(&[20]), ints(&[-3])], DType::I64, &[20]);
    folds(&op("Mod").int("fmod", 1), &[counted(&[20]), ints(&[-3])], DType::I64, &[20]);
    for name in ["Neg", "Abs"] {
        folds(&op(name), &[floats(&[37])], DType::F32, &[37]);
        folds(&op(name), &[counted(&[37])], DType::I64, &[37]);
    }
    folds(&op("Sqrt"), &[positive(&[1031])], DType::F32, &[1031]);
}

#[test]
fn comparisons_logic_and_choice() {
    for name in ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"] {
        folds(&op(name), &[floats(&[3, 2]), floats(&[2])], DType::Bool, &[3, 2]);
        folds(&op(name), &[counted(&[9]), ints(&[2])], DType::Bool, &[9]);
    }
    for name in ["And", "Or", "Xor"] {
        folds(&op(name), &[bools(&[0, 0, 1, 1]), bools(&[0, 1, 0, 1])], DType::Bool, &[4]);
    }
    folds(&op("Not"), &[bools(&[0, 1])], DType::Bool, &[2]);
    folds(&op("Where"), &[bools(&[0, 1]), positive(&[3, 2]), floats(&[1])], DType::F32, &[3, 2]);
    folds(&op("Where"), &[bools(&[0, 1]), counted(&[3, 1]), ints(&[9])], DType::I64, &[3, 2]);
}

#[test]
fn casts() {
    let small = Tensor::from_slice([6], &[0.5_f32, -0.5, 1.99, -7.5, 100.0, -0.0]).unwrap();
    for to in [DType::F64, DType::F16, DType::I64, DType::I32, DType::I8, DType::Bool] {
        folds(&op("Cast").dtype("to", to), std::slice::from_ref(&small), to, &[6]);
    }
    folds(&op("Cast").dtype("to", DType::F16), &[floats(&[64])], DType::F16, &[64]);
    folds(&op("CastLike"), &[small, ints(&[1])], DType::I64, &[6]);
    let wide = ints(&[0, -1, 300, i64::MAX, i64::MIN, 1 << 40, (1 << 53) + 1, 16_777_217]);
    for to in [DType::F32, DType::F64, DType::I32, DType::U8, DType::Bool] {
        folds(&op("Cast").dtype("to", to), std::slice::from_ref(&wide), to, &[8]);
    }
    let half = [f16::from_f32(0.1), f16::INFINITY, f16::from_f32(-65504.0)];
    let half = Tensor::from_slice([3], &half).unwrap();
    folds(&op("Cast").dtype("to", DType::F32), &[half], DType::F32, &[3]);
}

#[test]
fn elements_that_are_moved() {
    let given = || floats(&[3, 4, 5]);
    for order in [[0, 2, 1], [2, 1, 0], [1, 0, 2], [1, 2, 0], [2, 0, 1]] {
        let size = |axis: i64| [3_usize, 4, 5][usize::try_from(axis).unwrap()];
        let dims = order.map(size);
        folds(&op("Transpose").ints("perm", order), &[given()], DType::F32, &dims);
        let large = floats(&[33, 40, 65]);
        let dims = order.map(|axis| [33_usize, 40, 65][usize::try_from(axis).unwrap()]);
        folds(&op("Transpose").ints("perm", order), &[large], DType::F32, &dims);
    }
    folds(&op("Transpose"), &[given()], DType::F32, &[5, 4, 3]);
    folds(&op("Transpose"), &[counted(&[70, 90])], DType::I64, &[90, 70]);
    folds(&op("Reshape"), &[given(), ints(&[0, -1])], DType::F32, &[3, 20]);
    folds(&op("Flatten").int("axis", 2), &[given()], DType::F32, &[12, 5]);
    folds(&op("Unsqueeze"), &[given(), ints(&[0, -1])], DType::F32, &[1, 3, 4, 5, 1]);
    folds(&op("Squeeze"), &[floats(&[1, 3, 1]), ints(&[0])], DType::F32, &[3, 1]);
    folds_in(11, &op("Squeeze").ints("axes", [2]), &[floats(&[1, 3, 1])], DType::F32, &[1, 3]);
    folds(&op("Expand"), &[floats(&[3, 1, 2]), ints(&[2, 1, 4, 1])], DType::F32, &[2, 3, 4, 2]);
    folds(&op("Expand"), &[floats(&[]), ints(&[2, 3])], DType::F32, &[2, 3]);
}

#[test]
fn elements_that_are_taken_out_and_put_together() {
    let given = || floats(&[6, 5]);
    let ranges: [(i64, i64, i64, usize); 5] =
        [(1, 4, 1, 3), (-1, i64::MIN, -1, 6), (0, i64::MAX, 2, 3), (4, 0, -3, 2), (3, 3, 1, 0)];
    for (start, end, step, count) in ranges {
        let told = [ints(&[start]), ints(&[end]), ints(&[0]), ints(&[step])];
        let all = [&[given()], &told[..]].concat();
        folds(&op("Slice"), &all, DType::F32, &[count, 5]);
    }
    let both = [given(), ints(&[-2, 1]), ints(&[i64::MAX, 9]), ints(&[0, 1]), ints(&[1, 2])];
    folds(&op("Slice"), &both, DType::F32, &[2, 2]);
    let old = op("Slice").ints("starts", [2]).ints("ends", [-1]).ints("axes", [1]);
    folds_in(9, &old, &[given()], DType::F32, &[6, 2]);
    for (axis, dims) in [(0, [4, 3, 2]), (1, [2, 6, 2]), (2, [2, 3, 4])] {
        let parts = [floats(&[2, 3, 2]), positive(&[2, 3, 2])];
        folds(&op("Concat").int("axis", axis), &parts, DType::F32, &dims);
    }
    folds(&op("Concat").int("axis", 0), &[ints(&[1]), ints(&[]), ints(&[2, 3])], DType::I64, &[3]);
    folds(&op("Gather").int("axis", 1), &[given(), ints(&[4, -1, 0])], DType::F32, &[6, 3]);
    let scalar = Tensor::from_slice(Shape::scalar(), &[-2_i64]).unwrap();
    folds(&op("Gather"), &[given(), scalar], DType::F32, &[5]);
    folds(&op("Tile"), &[floats(&[2, 3]), ints(&[2, 3])], DType::F32, &[4, 9]);
    let around = [floats(&[2, 3]), ints(&[1, 0, 2, 4]), positive(&[])];
    folds(&op("Pad"), &around, DType::F32, &[5, 7]);
    folds(&op("Pad"), &[floats(&[2, 3]), ints(&[0, 1, 1, 0])], DType::F32, &[3, 4]);
}

#[test]
fn tensors_that_are_made() {
    let seven = Tensor::from_slice([1], &[7_i64]).unwrap();
    folds(&op("ConstantOfShape").tensor("value", &seven), &[ints(&[2, 3])], DType::I64, &[2, 3]);
    folds(&op("ConstantOfShape"), &[ints(&[4])], DType::F32, &[4]);
    let scalar = |one: i64| Tensor::from_slice(Shape::scalar(), &[one]).unwrap();
    folds(&op("Range"), &[scalar(5), scalar(-90), scalar(-1)], DType::I64, &[95]);
    for upper in [0, 1] {
        let node = op("Trilu").int("upper", upper);
        folds(&node, &[floats(&[2, 3, 4])], DType::F32, &[2, 3, 4]);
        folds(&node, &[floats(&[4, 3]), scalar(-1)], DType::F32, &[4, 3]);
    }
}

#[test]
fn a_split_gives_all_of_its_parts() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [1_usize])
        .initializer("w", &floats(&[5, 2]))
        .initializer("sizes", &ints(&[3, 2]))
        .node(Node::new("Split", ["w", "sizes"], ["a", "b"]))
        .node(Node::new("Mul", ["a", "x"], ["y"]))
        .node(Node::new("Mul", ["b", "x"], ["z"]))
        .output("y", DType::F32, [3_usize, 2])
        .output("z", DType::F32, [2_usize, 2])
        .finish()
        .unwrap();
    let graph = holds(&FoldConstants::default(), &model);
    assert_eq!(lines(&graph), ["y = Mul(a, x)", "z = Mul(b, x)"]);
}

#[test]
fn a_chain_is_folded_to_its_end() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [3_usize, 2])
        .initializer("w", &floats(&[2, 3]))
        .initializer("k", &positive(&[2]))
        .node(Node::new("Transpose", ["w"], ["a"]))
        .node(Node::new("Mul", ["a", "k"], ["b"]))
        .node(Node::new("Sqrt", ["k"], ["d"]))
        .node(Node::new("Add", ["b", "d"], ["c"]))
        .node(Node::new("Add", ["x", "c"], ["y"]))
        .output("y", DType::F32, [3_usize, 2])
        .finish()
        .unwrap();
    let graph = holds(&FoldConstants::default(), &model);
    assert_eq!(lines(&graph), ["y = Add(x, c)"]);
    assert_eq!(graph.weights().map(|(name, _)| name).collect::<Vec<_>>(), ["c"]);
}

#[test]
fn what_engines_compute_in_different_ways_is_left_alone() {
    let refused = |node: &Node, constants: &[Tensor], dims: &[usize], reason: &str| {
        left_alone(FoldConstants::default(), &model(18, node, constants, DType::F32, dims), reason);
    };
    for name in ["Exp", "Erf", "Tanh", "Reciprocal", "Softmax"] {
        refused(&op(name), &[positive(&[3])], &[3], "rounded in different ways");
    }
    refused(
        &op("MatMul"),
        &[positive(&[2, 3]), positive(&[3, 2])],
        &[2, 2],
        "rounded in different ways",
    );
    refused(&op("RandomNormalLike"), &[positive(&[3])], &[3], "each time");
    let limits = Tensor::from_slice([2], &[f32::INFINITY, 1.0]).unwrap();
    refused(&op("Sub"), &[limits.clone(), limits], &[2], "not the same in every engine");
    let negative = Tensor::from_slice([1], &[-1.0_f32]).unwrap();
    refused(&op("Sqrt"), &[negative], &[1], "not the same in every engine");
    let zeros = |zero: f32| Tensor::from_slice([1], &[zero]).unwrap();
    refused(&op("Max"), &[zeros(0.0), zeros(-0.0)], &[1], "not the same in every engine");
    refused(&op("Where"), &[bools(&[1]), zeros(-0.0), zeros(1.0)], &[1], "some engines give 0.0");
    let wide = Tensor::from_slice([1], &[1e30_f32]).unwrap();
    let node = op("Cast").dtype("to", DType::I64);
    left_alone(
        FoldConstants::default(),
        &model(18, &node, &[wide], DType::I64, &[1]),
        "does not fit",
    );
    let by_zero = model(18, &op("Div"), &[ints(&[1]), ints(&[0])], DType::I64, &[1]);
    left_alone(FoldConstants::default(), &by_zero, "not the same in every engine");
    let strange = op("Add").domain("com.example");
    refused(&strange, &[positive(&[1]), positive(&[1])], &[1], "no standard operator");
}

#[test]
fn a_model_does_not_grow_by_much() {
    let node = op("Expand");
    let grown = model(18, &node, &[floats(&[1, 64]), ints(&[64, 64])], DType::F32, &[64, 64]);
    left_alone(FoldConstants { limit_bytes: 1000 }, &grown, "16384 bytes would come for");
    // A result of the same size takes the place of what it was made of.
    let turned = model(18, &op("Transpose"), &[floats(&[64, 64])], DType::F32, &[64, 64]);
    holds(&FoldConstants { limit_bytes: 1000 }, &turned);
    // As long as somebody else reads that, it stays.
    let shared = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [64_usize, 64])
        .initializer("w", &floats(&[64, 64]))
        .node(Node::new("Transpose", ["w"], ["c"]))
        .node(Node::new("Add", ["x", "c"], ["a"]))
        .node(Node::new("Add", ["a", "w"], ["y"]))
        .output("y", DType::F32, [64_usize, 64])
        .finish()
        .unwrap();
    left_alone(FoldConstants { limit_bytes: 1000 }, &shared, "would come for 0 that go");
    let graph = holds(&FoldConstants::default(), &shared);
    assert_eq!(graph.weights().count(), 2, "the shared weight stays");
}

#[test]
fn what_callers_can_change_is_no_constant() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .input("w", DType::F32, [2_usize])
        .initializer("w", &positive(&[2]))
        .node(Node::new("Neg", ["w"], ["c"]))
        .node(Node::new("Add", ["x", "c"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    left_alone(FoldConstants::default(), &model, "");
}

#[test]
fn an_output_of_the_model_keeps_its_node() {
    let model = GraphBuilder::new("graph", 18)
        .initializer("w", &positive(&[2]))
        .node(Node::new("Neg", ["w"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    left_alone(FoldConstants::default(), &model, "an output of the model");
    assert_eq!(answers(&model, &inputs(&model, Kind::Zero)).len(), 1);
}

#[test]
fn a_weight_that_a_body_reads_stays() {
    let branch = || {
        let node = Node::new("Add", ["x", "w"], ["out"]);
        GraphBuilder::new("branch", 18).node(node).output("out", DType::F32, [2_usize])
    };
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .input("flag", DType::Bool, [0_usize; 0])
        .initializer("w", &positive(&[2]))
        .node(Node::new("Neg", ["w"], ["c"]))
        .node(
            Node::new("If", ["flag"], ["b"])
                .graph("then_branch", branch())
                .graph("else_branch", branch()),
        )
        .node(Node::new("Add", ["b", "c"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    let graph = holds(&FoldConstants::default(), &model);
    assert_eq!(graph.weights().count(), 2);
}
