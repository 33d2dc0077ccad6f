//! `fuse-matmul-add`

use veracity_onnx::{Dim, GraphBuilder, Model, Node};
use veracity_tensor::DType;
use veracity_transform::passes::FuseMatMulAdd;

use super::made::{Made, opaque, some};
use crate::support::{holds, left_alone, lines};

fn product() -> Node {
    Node::new("MatMul", ["x", "w"], ["a"])
}

fn sum() -> Node {
    Node::new("Add", ["a", "b"], ["y"])
}

fn with_bias(x: &[usize], bias: &[usize]) -> Made {
    Made::new(x, vec![product(), sum()], x.len())
        .with("w", some(&[4, 5], 1))
        .with("b", some(bias, 2))
}

#[test]
fn a_product_of_matrices_with_a_bias_is_a_gemm() {
    for bias in [&[5_usize][..], &[1, 5], &[1], &[], &[3, 1], &[3, 5]] {
        let graph = holds(&FuseMatMulAdd, &with_bias(&[3, 4], bias).model());
        assert_eq!(lines(&graph), ["y = Gemm(x, w, b)"], "{bias:?}");
    }
    let mut turned = with_bias(&[3, 4], &[5]);
    turned.nodes[1] = Node::new("Add", ["b", "a"], ["y"]);
    turned.x[0] = Dim::from("batch");
    assert_eq!(lines(&holds(&FuseMatMulAdd, &turned.model())), ["y = Gemm(x, w, b)"]);
}

#[test]
fn a_bias_that_is_computed_later_stands_before_the_gemm() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, ["m", "k"])
        .input("z", DType::F32, ["m", "n"])
        .input("w", DType::F32, ["k", "n"])
        .node(product())
        .node(Node::new("Relu", ["z"], ["b"]))
        .node(sum())
        .output("b", DType::F32, ["m", "n"])
        .output("y", DType::F32, ["m", "n"])
        .finish()
        .unwrap();
    let graph = holds(&FuseMatMulAdd, &model);
    assert_eq!(lines(&graph), ["b = Relu(z)", "y = Gemm(x, w, b)"]);
}

#[test]
fn other_numbers_of_axes_are_left_alone() {
    left_alone(FuseMatMulAdd, &with_bias(&[2, 3, 4], &[5]).model(), "3 axes, not 2");
    left_alone(FuseMatMulAdd, &with_bias(&[4], &[5]).model(), "1 axes, not 2");
    let mut unknown = with_bias(&[3, 4], &[5]);
    unknown.nodes.insert(0, opaque("x", "same"));
    unknown.nodes[1] = product().with_input(0, "same");
    left_alone(FuseMatMulAdd, &unknown.model(), "not known to have 2 axes");
}

#[test]
fn a_bias_that_makes_the_product_larger_is_left_alone() {
    for (bias, reason) in
        [(&[1_usize, 1, 5][..], "more than 2 axes"), (&[7, 1, 5], "more than 2 axes")]
    {
        let mut made = with_bias(&[3, 4], bias);
        made.outputs = vec![("y", 3)];
        left_alone(FuseMatMulAdd, &made.model(), reason);
    }
    let column = |bias: &[usize]| {
        Made::new(&[1, 4], vec![product(), sum()], 2)
            .with("w", some(&[4, 1], 1))
            .with("b", some(bias, 2))
    };
    left_alone(FuseMatMulAdd, &column(&[5]).model(), "spread over");
    left_alone(FuseMatMulAdd, &column(&[6, 1]).model(), "spread over");
    let mut named = with_bias(&[3, 4], &[3, 5]);
    named.x[0] = Dim::from("batch");
    left_alone(FuseMatMulAdd, &named.model(), "spread over");
}

#[test]
fn a_product_that_others_need_is_left_alone() {
    left_alone(FuseMatMulAdd, &with_bias(&[3, 4], &[5]).gives("a", 2).model(), "an output");
    let mut twice = with_bias(&[3, 4], &[5]);
    twice.nodes[1] = Node::new("Add", ["a", "a"], ["y"]);
    left_alone(FuseMatMulAdd, &twice.model(), "");
}

#[test]
fn integers_and_old_versions_are_left_alone() {
    let integers = GraphBuilder::new("graph", 18)
        .input("x", DType::I32, [3_usize, 4])
        .input("w", DType::I32, [4_usize, 5])
        .input("b", DType::I32, [5_usize])
        .node(product())
        .node(sum())
        .output("y", DType::I32, [3_usize, 5])
        .finish()
        .unwrap();
    left_alone(FuseMatMulAdd, &integers, "float type");
    left_alone(FuseMatMulAdd, &with_bias(&[3, 4], &[5]).opset(6).model(), "before opset 7");
}

/// A product of `x` and `t`, of which `reads` is transposed first.
fn transposed(node: Node, transpose: Node) -> Model {
    GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [3_usize, 4])
        .input("z", DType::F32, [5_usize, 3])
        .initializer("b", &some(&[5], 1))
        .node(transpose)
        .node(node)
        .output("y", DType::F32, ["m", "n"])
        .finish()
        .unwrap()
}

#[test]
fn a_transposed_matrix_is_read_as_it_was() {
    let perm =
        |name: &str, output: &str| Node::new("Transpose", [name], [output]).ints("perm", [1, 0]);
    let plain = |name: &str, output: &str| Node::new("Transpose", [name], [output]);
    let gemm = Node::new("Gemm", ["xt", "zt", "b"], ["y"]);
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [3_usize, 4])
        .input("z", DType::F32, [5_usize, 3])
        .initializer("b", &some(&[5], 1))
        .node(perm("x", "xt"))
        .node(plain("z", "zt"))
        .node(gemm)
        .output("y", DType::F32, ["m", "n"])
        .finish()
        .unwrap();
    let graph = holds(&FuseMatMulAdd, &model);
    assert_eq!(lines(&graph), ["y = Gemm(x, z, b)"]);
    let (_, node) = graph.producer("y").unwrap();
    assert_eq!((node.int_of("transA"), node.int_of("transB")), (Some(1), Some(1)));
    // What was turned already is turned back.
    let gemm = Node::new("Gemm", ["z", "xt"], ["y"]).int("transB", 1);
    let graph = holds(&FuseMatMulAdd, &transposed(gemm, perm("x", "xt")));
    assert_eq!(graph.producer("y").unwrap().1.int_of("transB"), Some(0));
    assert_eq!(lines(&graph), ["y = Gemm(z, x)"]);
}

#[test]
fn products_of_transposed_matrices_need_two_known_axes() {
    let product = |x: &[usize], perm: &[i64]| {
        let turn = Node::new("Transpose", ["x"], ["t"]).ints("perm", perm);
        let made = Made::new(x, vec![turn, Node::new("MatMul", ["w", "t"], ["y"])], x.len());
        made.with("w", some(&[5, 4], 1))
    };
    let graph = holds(&FuseMatMulAdd, &product(&[3, 4], &[1, 0]).model());
    assert_eq!(lines(&graph), ["y = Gemm(w, x)"]);
    left_alone(FuseMatMulAdd, &product(&[2, 3, 4], &[0, 2, 1]).model(), "3 axes, not 2");
    let old = product(&[3, 4], &[1, 0]).opset(10);
    left_alone(FuseMatMulAdd, &old.model(), "before opset 11");
    let mut unknown = product(&[3, 4], &[1, 0]);
    unknown.nodes.insert(0, opaque("x", "same"));
    unknown.nodes[1] = Node::new("Transpose", ["same"], ["t"]);
    left_alone(FuseMatMulAdd, &unknown.model(), "not known to have 2 axes");
}

#[test]
fn a_transposed_matrix_that_others_read_is_left_alone() {
    let turn = || Node::new("Transpose", ["x"], ["t"]).ints("perm", [1, 0]);
    let gemm = |one: &str| Node::new("Gemm", [one, "t"], ["y"]);
    let made = Made::new(&[4, 4], vec![turn(), gemm("x")], 2);
    left_alone(FuseMatMulAdd, &made.gives("t", 2).model(), "an output");
    let twice = Made::new(&[4, 4], vec![turn(), gemm("t")], 2);
    left_alone(FuseMatMulAdd, &twice.model(), "read twice");
    let bias = Made::new(&[4, 4], vec![turn(), Node::new("Gemm", ["x", "t", "t"], ["y"])], 2);
    left_alone(FuseMatMulAdd, &bias.model(), "read twice");
}
