//! What tract computes wrongly, or may: refused when the model is loaded.

use std::slice::from_ref;

use veracity_diag::codes;
use veracity_engine::{Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, SessionOptions};
use veracity_engine_embedded::EmbeddedEngine;
use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::{DType, Shape, Tensor};

use crate::harness::{OPSET, booleans, floats, graph, integers, one_node, refusal, run, tensor};

/// Adds to a node.
type Change = fn(Node) -> Node;

/// A node on inputs and constants that must be refused, with a part of the reason.
struct Refused {
    reason: &'static str,
    op: &'static str,
    inputs: Vec<Tensor>,
    constants: Vec<Tensor>,
    output: Tensor,
    attributes: Change,
}

fn refused(reason: &'static str, op: &'static str, input: &Tensor, output: &Tensor) -> Refused {
    let (inputs, output) = (vec![input.clone()], output.clone());
    Refused { reason, op, inputs, constants: Vec::new(), output, attributes: |node| node }
}

impl Refused {
    fn with(mut self, attributes: Change) -> Self {
        self.attributes = attributes;
        self
    }

    fn and(mut self, constants: &[Tensor]) -> Self {
        self.constants = constants.to_vec();
        self
    }

    fn check(self) {
        let outputs = [self.output];
        let made = one_node(self.op, &self.inputs, &self.constants, &outputs, self.attributes);
        let refusal = refusal(made, &self.inputs, &outputs);
        let [problem] = refusal.diagnostics() else { panic!("{}: {refusal:?}", self.op) };
        assert_eq!(problem.code, codes::ENGINE_UNSUPPORTED, "{}: {refusal}", self.op);
        let operator = format!("operator {}: ", self.op);
        assert!(problem.message.starts_with(&operator), "{:?}", problem.message);
        assert!(problem.message.contains(self.reason), "{} in {problem:?}", self.reason);
        assert_eq!(problem.place.node.as_deref(), Some("y0"));
        assert!(problem.hints[0].contains("--engine ort"));
    }
}

fn zeros(dtype: DType, dims: &[usize]) -> Tensor {
    Tensor::zeros(dtype, Shape::new(dims).unwrap())
}

#[test]
fn operators_and_attributes_that_are_not_on_the_list() {
    let x = floats(&[0.5, 2.0]);
    let scalar = floats(&[0.0]);
    let image = zeros(DType::F32, &[1, 1, 5]);
    for case in [
        refused("it gives infinity", "Softplus", &x, &x),
        refused("it gives infinity", "ReduceLogSumExp", &x, &scalar),
        refused("its constants are not given", "Selu", &x, &x),
        refused("it is not supported", "Hardmax", &x, &x),
        refused("it is not supported", "NoSuchOperator", &x, &x),
        refused("the domain \"com.microsoft\"", "Abs", &x, &x)
            .with(|node| node.domain("com.microsoft")),
        refused("its attribute \"made_up\"", "Relu", &x, &x).with(|node| node.int("made_up", 0)),
        refused("unless its attribute \"alpha\" is 1", "Celu", &x, &x)
            .with(|node| node.float("alpha", 2.0)),
        refused("its attribute \"output_shape\"", "ConvTranspose", &image, &image)
            .and(&[zeros(DType::F32, &[1, 1, 3])])
            .with(|node| node.ints("output_shape", [5])),
        refused("unless its attribute \"mode\"", "Pad", &x, &x)
            .and(&[integers(&[0, 0])])
            .with(|node| node.string("mode", "wrap")),
        refused("its paddings are not", "Pad", &x, &scalar).and(&[integers(&[-1, 0])]),
        refused("unless its attribute \"reduction\"", "ScatterND", &x, &x)
            .and(&[tensor([1, 1], &[0i64]), floats(&[1.0])])
            .with(|node| node.string("reduction", "add")),
        refused("it does not say which value", "ConstantOfShape", &integers(&[2]), &x),
        refused("its input 1 is not supported", "Relu", &x, &x).and(&[floats(&[1.0])]),
        refused("floats need the attribute `fmod`", "Mod", &x, &x).and(&[floats(&[1.0])]),
    ] {
        case.check();
    }
}

#[test]
fn dtypes_that_are_computed_wrongly() {
    let wide = integers(&[1 << 40, 1]);
    let doubles = zeros(DType::F64, &[1, 2]);
    for case in [
        refused("int64 is not supported", "ReduceSum", &wide, &integers(&[0])),
        refused(
            "int8 is not supported",
            "ReduceSum",
            &zeros(DType::I8, &[2]),
            &tensor([1], &[0i8]),
        ),
        refused("int64 is not supported", "ReduceMean", &wide, &integers(&[0])),
        refused("int64 is not supported", "MatMul", &zeros(DType::I64, &[1, 1]), &wide)
            .and(&[zeros(DType::I64, &[1, 2])]),
        refused("float64 is not supported", "LayerNormalization", &doubles, &doubles)
            .and(&[zeros(DType::F64, &[2])]),
        refused("float64 is not supported", "Selu", &doubles, &doubles),
        refused("float64 is not supported", "Sigmoid", &doubles, &doubles),
        refused("bool is not supported", "Equal", &booleans(&[true]), &booleans(&[true]))
            .and(&[booleans(&[true])]),
        refused("a cast from float32 to int64", "Cast", &floats(&[3e9]), &integers(&[0]))
            .with(|node| node.int("to", 7)),
        refused("a cast from int64 to int64", "Cast", &wide, &wide).with(|node| node.int("to", 7)),
        refused("its inputs differ in dtype", "Add", &floats(&[1.0]), &floats(&[1.0]))
            .and(&[integers(&[1])]),
    ] {
        case.check();
    }
}

#[test]
fn recurrent_operators_with_options() {
    let x = zeros(DType::F32, &[1, 1, 2]);
    let weights = [zeros(DType::F32, &[1, 9, 2]), zeros(DType::F32, &[1, 9, 3])];
    let y = zeros(DType::F32, &[1, 1, 1, 3]);
    let options: [(&str, Change); 5] = [
        ("its attribute \"clip\"", |node| node.float("clip", 0.5)),
        ("unless its attribute \"direction\" is forward", |n| n.string("direction", "reverse")),
        ("unless its attribute \"direction\" is forward", |n| {
            n.string("direction", "bidirectional")
        }),
        ("unless its attribute \"layout\" is 0", |node| node.int("layout", 1)),
        ("its attribute \"activations\"", |node| node.string("activations", "Relu")),
    ];
    for op in ["GRU", "LSTM", "RNN"] {
        for (reason, option) in options {
            refused(reason, op, &x, &y).and(&weights).with(option).check();
        }
    }
    refused("it has no initial states", "LSTM", &x, &y).and(&weights).check();
    let lengths = [&weights[..], &[zeros(DType::F32, &[1, 18]), tensor([1], &[1i32])]].concat();
    refused("sequence lengths", "GRU", &x, &y).and(&lengths).check();
}

/// `Shape` gives what tract keeps as sizes; `and_then` computes with it.
fn on_sizes(wide: Option<&Tensor>, node: Node, output: &Tensor) -> (GraphBuilder, Vec<Tensor>) {
    let mut inputs = vec![zeros(DType::F32, &[2, 3])];
    inputs.extend(wide.cloned());
    let made = graph(OPSET, &inputs, from_ref(output))
        .initializer("small", &integers(&[5, -3]))
        .initializer("big", &integers(&[1 << 40, 1]))
        .node(Node::new("Shape", ["x0"], ["sizes"]))
        .node(node);
    (made, inputs)
}

#[test]
fn sizes_meet_only_what_is_not_cut() {
    let wide = integers(&[1 << 40, 1]);
    let pair = integers(&[0, 0]);
    let four = integers(&[0; 4]);
    for (other, node, output, reason) in [
        (None, Node::new("Add", ["sizes", "big"], ["y0"]), &pair, "would be cut"),
        (Some(&wide), Node::new("Mul", ["x1", "sizes"], ["y0"]), &pair, "would be cut"),
        (
            Some(&wide),
            Node::new("Concat", ["sizes", "x1"], ["y0"]).int("axis", 0),
            &four,
            "would be cut",
        ),
        (None, Node::new("Mod", ["sizes", "small"], ["y0"]), &pair, "are not supported"),
        (None, Node::new("Abs", ["sizes"], ["y0"]), &pair, "are not supported"),
    ] {
        let (made, inputs) = on_sizes(other, node, output);
        let refusal = refusal(made, &inputs, from_ref(output));
        assert!(refusal.first_error().message.contains(reason), "{refusal}");
    }
    let (made, inputs) = on_sizes(None, Node::new("Mul", ["sizes", "small"], ["y0"]), &pair);
    assert_eq!(run(made, &inputs, &[pair]).unwrap(), [integers(&[10, -9])]);
}

#[test]
fn every_refused_node_is_named_and_its_readers_are_not() {
    let x = [floats(&[1.0])];
    let made = graph(OPSET, &x, &x)
        .node(Node::new("Softplus", ["x0"], ["a"]).named("first"))
        .node(Node::new("Relu", ["a"], ["b"]).named("innocent"))
        .node(Node::new("Hardmax", ["b"], ["y0"]));
    let refusal = refusal(made, &x, &x);
    let nodes: Vec<_> =
        refusal.diagnostics().iter().map(|problem| problem.place.node.as_deref()).collect();
    assert_eq!(nodes, [Some("first"), Some("y0")]);
}

#[test]
fn a_graph_that_means_two_things_is_refused() {
    let x = [floats(&[1.0])];
    let twice = graph(OPSET, &x, &x).node(Node::new("Abs", ["x0"], ["y0"])).node(Node::new(
        "Neg",
        ["x0"],
        ["y0"],
    ));
    let early = graph(OPSET, &x, &x).node(Node::new("Abs", ["later"], ["y0"])).node(Node::new(
        "Neg",
        ["x0"],
        ["later"],
    ));
    for (made, reason) in
        [(twice, "is given more than once"), (early, "nothing before it gives its input \"later\"")]
    {
        let refusal = refusal(made, &x, &x);
        assert!(refusal.first_error().message.contains(reason), "{refusal}");
    }
}

#[test]
fn operator_sets_that_were_not_compared_are_refused() {
    let x = [floats(&[1.0])];
    for (opset, fine) in [(12, false), (13, true), (22, true), (23, false)] {
        let made = graph(opset, &x, &x).node(Node::new("Abs", ["x0"], ["y0"]));
        assert_eq!(run(made, &x, &x).is_ok(), fine, "{opset}");
    }
}

#[test]
fn a_list_of_refused_nodes_ends() {
    let x = [floats(&[1.0])];
    let mut made = graph(OPSET, &x, &x);
    for index in 0..80 {
        made = made.node(Node::new("Hardmax", ["x0"], [format!("h{index}")]));
    }
    let refusal = refusal(made.node(Node::new("Abs", ["x0"], ["y0"])), &x, &x);
    assert_eq!(refusal.diagnostics().len(), 51);
    assert!(refusal.diagnostics()[50].message.contains("30 more nodes"));
}

#[test]
fn a_product_of_integers_that_both_vary() {
    // tract would compute the square in floats: 46341 * 46341 must wrap, not saturate.
    let model = GraphBuilder::new("square", 18)
        .input("x", DType::I32, [2_usize])
        .node(Node::new("Mul", ["x", "x"], ["y"]).named("y0"))
        .output("y", DType::I32, [2_usize])
        .finish()
        .unwrap();
    let ports = Ports {
        inputs: vec![Port::new("x", DType::I32, [2])],
        outputs: vec![Port::new("y", DType::I32, [2])],
    };
    let bytes = ModelBytes::Memory(model.to_bytes().unwrap().into());
    let source = ModelSource { format: ModelFormat::Onnx, bytes };
    let refusal = EmbeddedEngine.load(&source, &ports, &SessionOptions::default()).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::ENGINE_UNSUPPORTED, "{refusal}");
    refused(
        "float16 is not supported",
        "ReduceL2",
        &zeros(DType::F16, &[2]),
        &zeros(DType::F16, &[1]),
    )
    .check();
}
