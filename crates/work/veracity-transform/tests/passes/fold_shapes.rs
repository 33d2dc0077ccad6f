//! `fold-shapes`

use veracity_onnx::{Dim, GraphBuilder, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::{FoldConstants, FoldShapes};

use crate::support::{holds, left_alone, lines, run, same_answers};

fn ints(all: &[i64]) -> Tensor {
    Tensor::from_slice([all.len()], all).unwrap()
}

fn weight(graph: &veracity_onnx::Graph, name: &str) -> Vec<i64> {
    graph.weight(name).and_then(veracity_onnx::Weight::ints).unwrap()
}

/// Flattens everything behind the first axis, as exporters write it.
fn flattening(dims: &[Dim]) -> GraphBuilder {
    GraphBuilder::new("graph", 18)
        .input("x", DType::F32, dims.to_vec())
        .initializer("zero", &ints(&[0]))
        .initializer("one", &ints(&[1]))
        .initializer("end", &ints(&[i64::MAX]))
        .node(Node::new("Shape", ["x"], ["shape"]))
        .node(Node::new("Gather", ["shape", "zero"], ["batch"]))
        .node(Node::new("Slice", ["shape", "one", "end"], ["inner"]))
        .node(Node::new("ReduceProd", ["inner"], ["count"]))
        .node(Node::new("Concat", ["batch", "count"], ["asked"]).int("axis", 0))
        .node(Node::new("Reshape", ["x", "asked"], ["y"]))
}

#[test]
fn sizes_that_are_numbers_are_held() {
    let dims = [2, 3, 4].map(Dim::Fixed);
    let model = flattening(&dims).output("y", DType::F32, [2_usize, 12]).finish().unwrap();
    let graph = holds(&FoldShapes, &model);
    assert_eq!(lines(&graph), ["y = Reshape(x, asked)"]);
    assert_eq!(weight(&graph, "asked"), [2, 12]);
}

#[test]
fn what_does_not_depend_on_a_name_is_held_all_the_same() {
    let dims = [Dim::from("N"), Dim::Fixed(3), Dim::Fixed(4)];
    let model = flattening(&dims)
        .output("y", DType::F32, [Dim::from("N"), Dim::Fixed(12)])
        .finish()
        .unwrap();
    let graph = holds(&FoldShapes, &model);
    assert_eq!(weight(&graph, "inner"), [3, 4]);
    assert_eq!(
        lines(&graph)[..4],
        [
            "shape = Shape(x)",
            "batch = Gather(shape, zero)",
            "asked = Concat(batch, count)",
            "y = Reshape(x, asked)",
        ]
    );
    let model = flattening(&dims).finish().unwrap();
    let folded = run(vec![Box::new(FoldShapes)], &model);
    let first = &folded.rewrites[0].applied;
    assert_eq!(first.context.len(), 1, "`Shape` shows what the sizes are");
}

#[test]
fn sizes_that_are_names_are_left_alone() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [Dim::from("N"), Dim::Fixed(3)])
        .node(Node::new("Shape", ["x"], ["shape"]))
        .node(Node::new("Size", ["x"], ["size"]))
        .node(Node::new("Add", ["shape", "size"], ["y"]))
        .output("y", DType::I64, [2_usize])
        .finish()
        .unwrap();
    left_alone(FoldShapes, &model, "not every size is a number");
}

#[test]
fn an_output_of_the_model_keeps_its_node() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize, 3])
        .node(Node::new("Shape", ["x"], ["shape"]))
        .output("shape", DType::I64, [2_usize])
        .finish()
        .unwrap();
    left_alone(FoldShapes, &model, "an output of the model");
}

#[test]
fn sizes_become_numbers_that_are_computed_with() {
    // One over the root of a size, as attention scales.
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize, 64])
        .initializer("last", &ints(&[-1]))
        .initializer("one", &Tensor::from_slice([1], &[1.0_f32]).unwrap())
        .node(Node::new("Shape", ["x"], ["shape"]))
        .node(Node::new("Gather", ["shape", "last"], ["width"]))
        .node(Node::new("Cast", ["width"], ["number"]).dtype("to", DType::F32))
        .node(Node::new("Sqrt", ["number"], ["root"]))
        .node(Node::new("Div", ["one", "root"], ["scale"]))
        .node(Node::new("Mul", ["x", "scale"], ["y"]))
        .output("y", DType::F32, [2_usize, 64])
        .finish()
        .unwrap();
    let done = run(vec![Box::new(FoldShapes), Box::new(FoldConstants::default())], &model);
    assert_eq!(lines(&done.graph), ["y = Mul(x, scale)"]);
    assert_eq!(done.graph.weight("scale").and_then(veracity_onnx::Weight::number), Some(0.125));
    same_answers(&model, &done.graph.to_model().unwrap(), veracity_transform::Class::ExactBits);
}
