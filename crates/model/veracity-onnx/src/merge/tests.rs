//! Merged models, line by line.

mod refused;

use veracity_diag::Refusal;
use veracity_tensor::{DType, Tensor};

use super::{Edge, PortRef, Stage, merge};
use crate::build::{entry, opset_import};
use crate::generated::onnx::{FunctionProto, ModelProto, TensorAnnotation};
use crate::text::text;
use crate::{Dim, GraphBuilder, Model, Node};

/// `y = x + w`
fn add() -> GraphBuilder {
    let weights = Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap();
    GraphBuilder::new("add", 18)
        .input("x", DType::F32, [2])
        .initializer("w", &weights)
        .node(Node::new("Add", ["x", "w"], ["y"]).named("add"))
        .output("y", DType::F32, [2])
}

fn finish(builder: GraphBuilder) -> Model {
    builder.finish().unwrap()
}

/// Changes parts of a model that the builder has no words for.
fn altered(builder: GraphBuilder, change: impl FnOnce(&mut ModelProto)) -> Model {
    let mut proto = finish(builder).proto().clone();
    change(&mut proto);
    Model::checked(proto).unwrap()
}

fn edge<'a>(from: PortRef<'a>, to: PortRef<'a>) -> Edge<'a> {
    Edge { from, to }
}

/// Two stages `a` and `b` with `a/y` feeding `b/x`; `outputs` are exposed.
fn chain(a: &Model, b: &Model, outputs: &[PortRef<'_>]) -> Result<Model, Refusal> {
    let stages = [Stage { name: "a", model: a }, Stage { name: "b", model: b }];
    merge(&stages, &[edge(("a", "y"), ("b", "x"))], outputs)
}

#[track_caller]
fn assert_text(model: &Model, expected: &str) {
    let lines = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
    };
    assert_eq!(lines(&text(model)), lines(expected), "{}", text(model));
}

#[test]
fn a_connected_input_becomes_the_value_that_feeds_it() {
    let model = finish(add());
    assert_text(
        &chain(&model, &model, &[("b", "y")]).unwrap(),
        "input a/x: float32 [2]
         constant a/w
         constant b/w
         node a/y = Add(a/x, a/w) # a/add
         node b/y = Add(a/y, b/w) # b/add
         value a/y: float32 [2]
         output b/y: float32 [2]",
    );
}

#[test]
fn an_output_can_feed_many_and_be_exposed_too() {
    let model = finish(add());
    let pair = finish(
        GraphBuilder::new("pair", 18)
            .input("l", DType::F32, [2])
            .input("r", DType::F32, [2])
            .input("free", DType::F32, [2])
            .node(Node::new("Sum", ["l", "r", "free"], ["y"]))
            .output("y", DType::F32, [2]),
    );
    let stages = [Stage { name: "a", model: &model }, Stage { name: "b", model: &pair }];
    let edges = [edge(("a", "y"), ("b", "l")), edge(("a", "y"), ("b", "r"))];
    assert_text(
        &merge(&stages, &edges, &[("b", "y"), ("a", "y")]).unwrap(),
        "input a/x: float32 [2]
         input b/free: float32 [2]
         constant a/w
         node a/y = Add(a/x, a/w) # a/add
         node b/y = Sum(a/y, a/y, b/free)
         output b/y: float32 [2]
         output a/y: float32 [2]",
    );
}

#[test]
fn a_value_that_a_stage_hands_on_reaches_those_behind_it() {
    let relay = || GraphBuilder::new("relay", 18).input("x", DType::F32, [2]);
    let relay = finish(relay().output("x", DType::F32, [2]));
    let model = finish(add());
    let stages = [
        Stage { name: "a", model: &model },
        Stage { name: "b", model: &relay },
        Stage { name: "c", model: &model },
    ];
    let edges = [edge(("a", "y"), ("b", "x")), edge(("b", "x"), ("c", "x"))];
    assert_text(
        &merge(&stages, &edges, &[("b", "x"), ("c", "y")]).unwrap(),
        "input a/x: float32 [2]
         constant a/w
         constant c/w
         node a/y = Add(a/x, a/w) # a/add
         node c/y = Add(a/y, c/w) # c/add
         node b/x = Identity(a/y) # b/x (handed on)
         value a/y: float32 [2]
         output b/x: float32 [2]
         output c/y: float32 [2]",
    );
    // Nothing feeds the relay: its input and its output are one value.
    assert_text(
        &merge(&stages[1..2], &[], &[("b", "x")]).unwrap(),
        "input b/x: float32 [2]
         output b/x: float32 [2]",
    );
}

#[test]
fn a_constant_can_be_an_output_and_feed_a_stage() {
    let constant = Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap();
    let source = GraphBuilder::new("constant", 18).initializer("y", &constant);
    let source = finish(source.output("y", DType::F32, [2]));
    assert_text(
        &chain(&source, &finish(add()), &[("a", "y"), ("b", "y")]).unwrap(),
        "constant a/y
         constant b/w
         node b/y = Add(a/y, b/w) # b/add
         output a/y: float32 [2]
         output b/y: float32 [2]",
    );
}

#[test]
fn an_input_with_a_value_of_its_own_becomes_a_constant() {
    let model = finish(add().input("w", DType::F32, [2]));
    assert_text(
        &merge(&[Stage { name: "a", model: &model }], &[], &[("a", "y")]).unwrap(),
        "input a/x: float32 [2]
         constant a/w
         node a/y = Add(a/x, a/w) # a/add
         output a/y: float32 [2]",
    );
}

/// An `If` whose branches use `x` from around them, a loop body that defines its own `x`, and a
/// branch that defines `x` only after it was used.
fn with_bodies() -> Model {
    let capture = GraphBuilder::new("capture", 18).node(Node::new("Relu", ["x"], ["t"])).output(
        "t",
        DType::F32,
        [2],
    );
    let shadow_by_input = GraphBuilder::new("body", 18)
        .input("x", DType::F32, [2])
        .node(Node::new("Add", ["x", "w"], ["t"]))
        .output("t", DType::F32, [2]);
    let shadow_later = GraphBuilder::new("late", 18)
        .node(Node::new("Neg", ["x"], ["u"]))
        .node(Node::new("Scan", ["u", ""], ["x"]).graph("body", shadow_by_input))
        .node(Node::new("Abs", ["x"], ["t"]))
        .output("t", DType::F32, [2]);
    finish(
        GraphBuilder::new("branches", 18)
            .input("c", DType::Bool, [0; 0])
            .input("x", DType::F32, [2])
            .initializer("w", &Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap())
            .node(
                Node::new("If", ["c"], ["y"])
                    .graph("then_branch", capture)
                    .graph("else_branch", shadow_later),
            )
            .output("y", DType::F32, [2]),
    )
}

#[test]
fn bodies_see_the_values_around_them_unless_they_define_their_own() {
    assert_text(
        &chain(&finish(add()), &with_bodies(), &[("b", "y")]).unwrap(),
        "input a/x: float32 [2]
         input b/c: bool []
         constant a/w
         constant b/w
         node a/y = Add(a/x, a/w) # a/add
         node b/y = If(b/c)
           then_branch:
             node b/t = Relu(a/y)
             output b/t: float32 [2]
           else_branch:
             node b/u = Neg(a/y)
             node b/x = Scan(b/u, )
               body:
                 input b/x: float32 [2]
                 node b/t = Add(b/x, b/w)
                 output b/t: float32 [2]
             node b/t = Abs(b/x)
             output b/t: float32 [2]
         value a/y: float32 [2]
         output b/y: float32 [2]",
    );
}

#[test]
fn axis_names_and_metadata_belong_to_their_stage() {
    let batch = |port: &str| (port.to_owned(), DType::F32, [Dim::from("batch")]);
    let (input, output) = (batch("x"), batch("y"));
    let model = finish(
        GraphBuilder::new("relu", 18)
            .metadata("task", "walk")
            .input(input.0, input.1, input.2)
            .node(Node::new("Relu", ["x"], ["y"]))
            .output(output.0, output.1, output.2),
    );
    let merged = chain(&model, &model, &[("b", "y")]).unwrap();
    assert_eq!(merged.inputs()[0].dims, Some(vec![Dim::from("a/batch")]));
    assert_eq!(merged.outputs()[0].dims, Some(vec![Dim::from("b/batch")]));
    let metadata = [("a/task", "walk"), ("b/task", "walk")];
    assert_eq!(merged.metadata(), metadata.map(|(k, v)| (k.to_owned(), v.to_owned())));
}

#[test]
fn quantization_notes_follow_their_values() {
    let note = |tensor: &str| TensorAnnotation {
        tensor_name: Some(tensor.to_owned()),
        quant_parameter_tensor_names: vec![entry("SCALE_TENSOR", "w")],
    };
    let model = altered(add(), |proto| {
        let graph = proto.graph.as_mut().unwrap();
        graph.quantization_annotation.extend([note("x"), note("y")]);
    });
    let merged = chain(&model, &model, &[("b", "y")]).unwrap();
    let notes = &merged.graph().quantization_annotation;
    let shown: Vec<_> = notes
        .iter()
        .map(|note| (note.tensor_name(), note.quant_parameter_tensor_names[0].value()))
        .collect();
    assert_eq!(shown, [("a/x", "a/w"), ("a/y", "a/w"), ("b/y", "b/w")]);
}

fn function(domain: &str, body_op: &str) -> FunctionProto {
    FunctionProto {
        domain: Some(domain.to_owned()),
        name: Some("Twice".to_owned()),
        input: vec!["i".to_owned()],
        output: vec!["o".to_owned()],
        node: vec![Node::new(body_op, ["i", "i"], ["o"]).into()],
        ..FunctionProto::default()
    }
}

fn with_function(body_op: &str) -> Model {
    let builder = add().node(Node::new("Twice", ["y"], ["z"]).domain("mine"));
    altered(builder, |proto| {
        proto.opset_import.push(opset_import("mine", 1));
        proto.functions.push(function("mine", body_op));
    })
}

#[test]
fn functions_and_operator_versions_of_all_stages_are_kept_once() {
    let plain = altered(add(), |proto| {
        proto.opset_import[0].domain = Some("ai.onnx".to_owned());
        proto.ir_version = Some(10);
    });
    let merged = chain(&with_function("Add"), &plain, &[("b", "y")]).unwrap();
    assert_eq!(merged.proto().opset_import, [opset_import("", 18), opset_import("mine", 1)]);
    assert_eq!(merged.proto().functions, [function("mine", "Add")]);
    assert_eq!((merged.ir_version(), merged.opset()), (10, Some(18)));
    let twice = chain(&with_function("Add"), &with_function("Add"), &[("b", "y")]).unwrap();
    assert_eq!(twice.proto().functions.len(), 1);
}
