//! `transpose-to-reshape`

use veracity_onnx::{Dim, GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::TransposeToReshape;

use crate::support::{holds, left_alone, lines};

/// A transposition of values that were given their shape before.
fn model(dims: &[Dim], perm: &[i64]) -> Model {
    let shape: Vec<i64> = vec![0; dims.len()];
    GraphBuilder::new("graph", 18)
        .input("x", DType::F32, dims.to_vec())
        .initializer("s", &Tensor::from_slice([shape.len()], &shape).unwrap())
        .node(Node::new("Reshape", ["x", "s"], ["a"]))
        .node(Node::new("Transpose", ["a"], ["b"]).ints("perm", perm).named("turn"))
        .node(Node::new("Neg", ["b"], ["y"]))
        .output("y", DType::F32, vec![Dim::Unknown; dims.len()])
        .finish()
        .unwrap()
}

fn fixed(sizes: &[usize]) -> Vec<Dim> {
    sizes.iter().map(|&size| Dim::Fixed(size)).collect()
}

#[test]
fn moving_axes_of_size_1_is_a_change_of_shape() {
    let cases: [(&[usize], &[i64], &[i64]); 4] = [
        (&[1, 5, 3], &[1, 0, 2], &[5, 1, 3]),
        (&[5, 1, 3], &[0, 2, 1], &[5, 3, 1]),
        (&[1, 1, 4], &[2, 0, 1], &[4, 1, 1]),
        (&[2, 1, 1, 3], &[1, 0, 3, 2], &[1, 2, 3, 1]),
    ];
    for (dims, perm, shape) in cases {
        let graph = holds(&TransposeToReshape, &model(&fixed(dims), perm));
        assert_eq!(lines(&graph)[1], "b = Reshape(a, b_shape)");
        assert_eq!(graph.weight("b_shape").unwrap().ints().unwrap(), shape);
        assert_eq!(graph.producer("b").unwrap().1.name(), "turn");
    }
}

#[test]
fn one_size_may_be_a_name() {
    let dims = vec![Dim::Fixed(1), Dim::from("N"), Dim::Fixed(3)];
    let graph = holds(&TransposeToReshape, &model(&dims, &[1, 0, 2]));
    assert_eq!(graph.weight("b_shape").unwrap().ints().unwrap(), [-1, 1, 3]);
    let dims = vec![Dim::Fixed(1), Dim::from("N"), Dim::from("M")];
    left_alone(TransposeToReshape, &model(&dims, &[1, 0, 2]), "2 of its sizes are not known");
}

#[test]
fn other_axes_stay_where_they_are() {
    left_alone(TransposeToReshape, &model(&fixed(&[1, 5, 3]), &[0, 2, 1]), "");
    // A name may stand for 1, and for something else.
    let dims = vec![Dim::from("N"), Dim::Fixed(5)];
    left_alone(TransposeToReshape, &model(&dims, &[1, 0]), "");
    left_alone(TransposeToReshape, &model(&fixed(&[1, 0, 3]), &[1, 0, 2]), "may be empty");
}

#[test]
fn alone_it_stays_a_transposition() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [1_usize, 3])
        .node(Node::new("Abs", ["x"], ["a"]))
        .node(Node::new("Transpose", ["a"], ["b"]))
        .node(Node::new("Neg", ["b"], ["y"]))
        .output("y", DType::F32, [3_usize, 1])
        .finish()
        .unwrap();
    left_alone(TransposeToReshape, &model, "");
}
