//! How a session behaves from run to run.

use std::slice::from_ref;

use veracity_diag::codes;
use veracity_engine::{
    Device, Engine as _, ModelBytes, ModelFormat, ModelSource, OptimizationLevel, Port,
    SessionOptions,
};
use veracity_engine_embedded::EmbeddedEngine;
use veracity_onnx::{Dim, GraphBuilder, Node};
use veracity_tensor::{DType, Tensor};

use crate::harness::{
    agree, floats, integers, like, load, one_node, ports, read, shared, source, tensor, write,
};

/// One unit that adds its input to a tenth of its state, squashed by tanh.
fn recurrent(op: &str, gates: usize, states: usize) -> (GraphBuilder, Vec<Tensor>, Vec<Tensor>) {
    let inputs = vec![tensor([1, 1, 1], &[0.3f32]); 1 + states];
    let outputs =
        [vec![tensor([1, 1, 1, 1], &[0f32])], vec![tensor([1, 1, 1], &[0f32]); states]].concat();
    let graph = crate::harness::graph(18, &inputs, &outputs)
        .initializer("w", &tensor([1, gates, 1], &vec![0.7f32; gates]))
        .initializer("r", &tensor([1, gates, 1], &vec![0.1f32; gates]));
    let names = ["x0", "w", "r", "", "", "x1", "x2"];
    let node = Node::new(
        op,
        names.into_iter().take(5 + states),
        (0..=states).map(|index| format!("y{index}")),
    );
    (graph.node(node.int("hidden_size", 1)), inputs, outputs)
}

#[test]
fn a_recurrent_operator_starts_every_run_from_the_state_that_it_is_given() {
    for (op, gates, states) in [("GRU", 3, 1), ("RNN", 1, 1), ("LSTM", 4, 2)] {
        let (graph, inputs, outputs) = recurrent(op, gates, states);
        let mut session = load(graph, &ports(&inputs, &outputs)).unwrap();
        let memory: Vec<_> = inputs.iter().map(shared).collect();
        let results: Vec<_> = outputs.iter().map(like).collect();
        let binding = session.bind(&memory, &results).unwrap();
        let mut run = || {
            session.run(binding).unwrap();
            read(&results[1])
        };
        let first = run();
        assert_eq!(run(), first, "{op} remembers");
        write(&memory[1], &tensor([1, 1, 1], &[-0.9f32]));
        assert_ne!(run(), first, "{op} ignores its state");
    }
}

#[test]
fn an_rnn_gives_what_its_formula_says() {
    let (graph, inputs, outputs) = recurrent("RNN", 1, 1);
    let actual = crate::harness::run(graph, &inputs, &outputs).unwrap();
    let expected = tensor([1, 1, 1], &[(0.7f32 * 0.3 + 0.1 * 0.3).tanh()]);
    assert!(agree(&expected, &actual[1]), "{:?}", actual[1].as_slice::<f32>());
}

#[test]
fn a_session_survives_a_run_that_failed() {
    let inputs = [floats(&[1.0, 2.0]), integers(&[1])];
    let outputs = [floats(&[0.0])];
    let graph = one_node("Gather", &inputs, &[], &outputs, |node| node);
    let mut session = load(graph, &ports(&inputs, &outputs)).unwrap();
    let memory: Vec<_> = inputs.iter().map(shared).collect();
    let result = like(&outputs[0]);
    let binding = session.bind(&memory, from_ref(&result)).unwrap();
    write(&memory[1], &integers(&[5]));
    let refusal = session.run(binding).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::ENGINE_RUN_FAILED);
    assert!(refusal.to_string().contains("panicked"), "{refusal}");
    write(&memory[1], &integers(&[-1]));
    session.run(binding).unwrap();
    assert_eq!(read(&result), floats(&[2.0]));
}

#[test]
fn inputs_that_are_not_finite_are_refused_and_computed_infinities_are_not() {
    let inputs = [floats(&[0.0, 1.0])];
    let graph = || one_node("Reciprocal", &inputs, &[], &inputs, |node| node);
    let actual = crate::harness::run(graph(), &inputs, &inputs).unwrap();
    assert_eq!(actual, [floats(&[f32::INFINITY, 1.0])]);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let refusal = crate::harness::run(graph(), &[floats(&[0.0, bad])], &inputs).unwrap_err();
        let problem = refusal.first_error();
        assert_eq!(problem.code, codes::ENGINE_RUN_FAILED, "{bad}");
        assert_eq!(problem.place.port.as_deref(), Some("x0"));
        assert!(problem.hints[0].contains("--engine ort"));
    }
}

#[test]
fn open_axes_take_the_declared_size_and_outputs_the_declared_order() {
    let graph = GraphBuilder::new("open", 18)
        .input("x0", DType::F32, [Dim::from("batch"), Dim::from(2)])
        .node(Node::new("Neg", ["x0"], ["y1"]))
        .node(Node::new("Abs", ["y1"], ["y0"]))
        .node(Node::new("Exp", ["y1"], ["unused"]))
        .output("y1", DType::F32, [Dim::from("batch"), Dim::from(2)])
        .output("unused", DType::F32, [Dim::Unknown, Dim::from(2)])
        .output("y0", DType::F32, [Dim::Unknown, Dim::from(2)]);
    let inputs = [tensor([3, 2], &[1.0f32, -2.0, 3.0, -4.0, 5.0, -6.0])];
    let expected = [
        tensor([3, 2], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]),
        tensor([3, 2], &[-1.0f32, 2.0, -3.0, 4.0, -5.0, 6.0]),
    ];
    assert_eq!(crate::harness::run(graph, &inputs, &expected).unwrap(), expected);
}

#[test]
fn every_level_of_optimization_gives_the_same() {
    let inputs = [tensor([1, 2], &[0.5f32, -1.0])];
    let outputs = [tensor([1, 2], &[0f32; 2])];
    let weight = tensor([2, 2], &[1.0f32, -2.0, 0.5, 4.0]);
    let graph = one_node("Gemm", &inputs, &[weight, floats(&[0.25, -0.5])], &outputs, |n| n);
    let source = source(graph);
    for optimization in [OptimizationLevel::None, OptimizationLevel::Basic, OptimizationLevel::All]
    {
        let options = SessionOptions { optimization, ..SessionOptions::default() };
        let mut session =
            EmbeddedEngine.load(&source, &ports(&inputs, &outputs), &options).unwrap();
        let result = like(&outputs[0]);
        let binding = session.bind(&[shared(&inputs[0])], from_ref(&result)).unwrap();
        session.run(binding).unwrap();
        assert_eq!(read(&result), tensor([1, 2], &[0.25f32, -5.5]), "{optimization:?}");
    }
}

#[test]
fn what_the_engine_is_not_for_is_refused() {
    let inputs = [floats(&[1.0])];
    let source = source(one_node("Abs", &inputs, &[], &inputs, |node| node));
    let ports = ports(&inputs, &inputs);
    let cuda = SessionOptions { device: Device::Cuda(0), ..SessionOptions::default() };
    let refused = |source: &ModelSource, options: &SessionOptions| {
        EmbeddedEngine.load(source, &ports, options).map(drop).unwrap_err().first_error().code
    };
    assert_eq!(refused(&source, &cuda), codes::DEVICE_UNAVAILABLE);
    let options = SessionOptions::default();
    let script = ModelSource { format: ModelFormat::TorchScript, ..source };
    assert_eq!(refused(&script, &options), codes::ENGINE_UNSUPPORTED_FORMAT);
    let absent = tempfile::tempdir().unwrap().path().join("absent.onnx");
    let absent = ModelSource { format: ModelFormat::Onnx, bytes: ModelBytes::File(absent) };
    assert_eq!(refused(&absent, &options), codes::FILE_NOT_FOUND);
    for bytes in [&b"no model"[..], b""] {
        let source =
            ModelSource { format: ModelFormat::Onnx, bytes: ModelBytes::Memory(bytes.into()) };
        assert_eq!(refused(&source, &options), codes::ENGINE_LOAD_FAILED);
    }
    let mut doubled = ports.clone();
    doubled.outputs.push(Port::new("y0", DType::F32, [1]));
    let graph = one_node("Abs", &inputs, &[], &inputs, |node| node);
    let refusal = load(graph, &doubled).map(drop).unwrap_err();
    assert_eq!(refusal.first_error().code, codes::DUPLICATE_PORT);
}
