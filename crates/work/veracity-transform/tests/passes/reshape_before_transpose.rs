//! `reshape-before-transpose`

use veracity_onnx::{Dim, GraphBuilder, Node, Weight};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::ReshapeBeforeTranspose;

use crate::support::{holds, left_alone, lines};

fn ints(all: &[i64]) -> Tensor {
    Tensor::from_slice([all.len()], all).unwrap()
}

/// Values that are given a shape, turned, and given a shape again.
fn model(dims: &[Dim], first: &[i64], perm: &[i64], last: &[i64]) -> GraphBuilder {
    GraphBuilder::new("graph", 18)
        .input("x", DType::F32, dims.to_vec())
        .initializer("s", &ints(first))
        .initializer("t", &ints(last))
        .node(Node::new("Reshape", ["x", "s"], ["a"]))
        .node(Node::new("Transpose", ["a"], ["b"]).ints("perm", perm))
        .node(Node::new("Reshape", ["b", "t"], ["y"]))
}

fn finished(builder: GraphBuilder, rank: usize) -> veracity_onnx::Model {
    builder.output("y", DType::F32, vec![Dim::Unknown; rank]).finish().unwrap()
}

fn fixed(sizes: &[usize]) -> Vec<Dim> {
    sizes.iter().map(|&size| Dim::Fixed(size)).collect()
}

/// Sizes, the first shape, the order and the last shape.
type Case = (&'static [usize], &'static [i64], &'static [i64], &'static [i64]);

#[test]
fn axes_of_size_1_come_and_go_before_the_transposition() {
    let cases: [Case; 6] = [
        // An axis of size 1 comes, as for heads of attention.
        (&[5, 12], &[5, 3, 4], &[1, 0, 2], &[1, 3, 5, 4]),
        // It goes.
        (&[5, 1, 12], &[1, 5, 1, 3, 4], &[3, 1, 2, 0, 4], &[3, 5, 1, 4]),
        (&[2, 3, 4], &[4, 1, 6], &[2, 1, 0], &[6, 4]),
        (&[2, 3, 4], &[4, 6], &[1, 0], &[1, 6, 1, 1, 4, 1]),
        (&[4, 6], &[2, 2, 6], &[2, 0, 1], &[6, 2, 2, 1]),
        // Everything is of size 1.
        (&[1], &[1, 1], &[1, 0], &[1, 1, 1]),
    ];
    for (dims, first, perm, last) in cases {
        let model = finished(model(&fixed(dims), first, perm, last), last.len());
        let graph = holds(&ReshapeBeforeTranspose, &model);
        assert_eq!(lines(&graph), ["y_in = Reshape(x, y_shape)", "y = Transpose(y_in)"]);
    }
}

#[test]
fn squeezes_count_as_well() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [6_usize, 4])
        .initializer("s", &ints(&[0]))
        .node(Node::new("Unsqueeze", ["x", "s"], ["a"]))
        .node(Node::new("Transpose", ["a"], ["b"]).ints("perm", [2, 0, 1]))
        .node(Node::new("Squeeze", ["b"], ["y"]))
        .output("y", DType::F32, [4_usize, 6])
        .finish()
        .unwrap();
    let graph = holds(&ReshapeBeforeTranspose, &model);
    assert_eq!(lines(&graph), ["y_in = Reshape(x, y_shape)", "y = Transpose(y_in)"]);
    assert_eq!(graph.weight("y_shape").and_then(Weight::ints), Some(vec![6, 4]));
}

#[test]
fn another_change_of_shape_stays() {
    let splits = model(&fixed(&[2, 6]), &[6, 2], &[1, 0], &[2, 3, 2]);
    left_alone(ReshapeBeforeTranspose, &finished(splits, 3), "");
    let merges = model(&fixed(&[2, 6]), &[2, 2, 3], &[1, 0, 2], &[4, 3]);
    left_alone(ReshapeBeforeTranspose, &finished(merges, 2), "");
    // The same sizes in another place: a different order of elements.
    let moved = model(&fixed(&[6]), &[2, 3], &[1, 0], &[2, 1, 3]);
    left_alone(ReshapeBeforeTranspose, &finished(moved, 3), "");
}

#[test]
fn sizes_that_are_not_known_are_left_alone() {
    let dims = vec![Dim::from("N"), Dim::Fixed(12)];
    let named = model(&dims, &[0, 3, 4], &[1, 0, 2], &[1, 3, -1, 4]);
    left_alone(ReshapeBeforeTranspose, &finished(named, 4), "not every size");
    let empty = model(&fixed(&[0, 12]), &[0, 3, 4], &[1, 0, 2], &[1, 3, -1, 4]);
    left_alone(ReshapeBeforeTranspose, &finished(empty, 4), "may be empty");
}

#[test]
fn what_others_read_stays() {
    let three = || model(&fixed(&[5, 12]), &[5, 3, 4], &[1, 0, 2], &[1, 3, 5, 4]);
    let inner = three().output("a", DType::F32, [5_usize, 3, 4]);
    left_alone(ReshapeBeforeTranspose, &finished(inner, 4), "has other readers");
    let turned = three().output("b", DType::F32, [3_usize, 5, 4]);
    left_alone(ReshapeBeforeTranspose, &finished(turned, 4), "");
}
