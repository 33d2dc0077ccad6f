//! `share-constants`

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Shape, Tensor};
use veracity_transform::passes::ShareConstants;

use crate::support::{holds, left_alone, lines};

fn floats(all: &[f32]) -> Tensor {
    Tensor::from_slice([all.len()], all).unwrap()
}

fn model(one: &Tensor, two: &Tensor) -> GraphBuilder {
    GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .initializer("v", one)
        .initializer("w", two)
        .node(Node::new("Add", ["x", "v"], ["a"]))
        .node(Node::new("Mul", ["a", "w"], ["y"]))
}

fn finished(builder: GraphBuilder) -> Model {
    builder.output("y", DType::F32, [2_usize]).finish().unwrap()
}

#[test]
fn weights_that_are_the_same_are_held_once() {
    let same = floats(&[1.0, -2.0]);
    let graph = holds(&ShareConstants, &finished(model(&same, &same)));
    assert_eq!(lines(&graph), ["a = Add(x, v)", "y = Mul(a, v)"]);
    assert_eq!(graph.weights().count(), 1);
}

#[test]
fn many_are_shared_in_one_go() {
    let mut builder = GraphBuilder::new("graph", 18).input("x", DType::F32, [700_usize]);
    let mut before = "x".to_owned();
    for number in 0..20_u8 {
        let tensor = floats(&vec![f32::from(number) / 4.0; 700][..]);
        let tensor = if number % 2 == 0 { floats(&[0.5; 700]) } else { tensor };
        builder = builder.initializer(format!("w{number}"), &tensor);
        let next = format!("v{number}");
        builder = builder.node(Node::new("Add", [before.as_str(), &format!("w{number}")], [&next]));
        before = next;
    }
    let model = builder.output(before, DType::F32, [700_usize]).finish().unwrap();
    assert_eq!(holds(&ShareConstants, &model).weights().count(), 11);
}

#[test]
fn what_differs_in_one_bit_type_or_shape_stays() {
    let zeros = (floats(&[0.0, 1.0]), floats(&[-0.0, 1.0]));
    left_alone(ShareConstants, &finished(model(&zeros.0, &zeros.1)), "");
    let row = Tensor::from_slice([1, 2], &[1.0_f32, 2.0]).unwrap();
    let shapes = model(&floats(&[1.0, 2.0]), &row).output("y", DType::F32, [1_usize, 2]);
    left_alone(ShareConstants, &shapes.finish().unwrap(), "");
    let types = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .initializer("v", &Tensor::from_slice(Shape::scalar(), &[1_i32]).unwrap())
        .initializer("w", &Tensor::from_slice(Shape::scalar(), &[f32::from_bits(1)]).unwrap())
        .node(Node::new("Add", ["x", "w"], ["y"]))
        .node(Node::new("Neg", ["v"], ["z"]))
        .output("y", DType::F32, [2_usize])
        .output("z", DType::I32, [0_usize; 0]);
    left_alone(ShareConstants, &types.finish().unwrap(), "");
    // Both ends are the same.
    let mut middle = vec![1.0_f32; 1000];
    let one = floats(&middle);
    middle[500] = 2.0;
    let long = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [1000_usize])
        .initializer("v", &one)
        .initializer("w", &floats(&middle))
        .node(Node::new("Add", ["x", "v"], ["a"]))
        .node(Node::new("Mul", ["a", "w"], ["y"]))
        .output("y", DType::F32, [1000_usize]);
    left_alone(ShareConstants, &long.finish().unwrap(), "");
}

#[test]
fn what_callers_see_stays() {
    let same = floats(&[1.0, 2.0]);
    let input = model(&same, &same).input("w", DType::F32, [2_usize]);
    left_alone(ShareConstants, &finished(input), "");
    let output = model(&same, &same).output("w", DType::F32, [2_usize]);
    left_alone(ShareConstants, &finished(output), "");
}

#[test]
fn bodies_follow() {
    let branch = |operator: &str| {
        let node = Node::new(operator, ["x", "w"], ["out"]);
        GraphBuilder::new("branch", 18).node(node).output("out", DType::F32, [2_usize])
    };
    let same = floats(&[1.0, 2.0]);
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .input("flag", DType::Bool, [0_usize; 0])
        .initializer("v", &same)
        .initializer("w", &same)
        .node(
            Node::new("If", ["flag"], ["a"])
                .graph("then_branch", branch("Add"))
                .graph("else_branch", branch("Sub")),
        )
        .node(Node::new("Mul", ["a", "v"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    assert_eq!(holds(&ShareConstants, &model).weights().count(), 1);
}
