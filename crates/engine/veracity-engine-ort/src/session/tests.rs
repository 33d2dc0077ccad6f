//! What holds for every run, however inputs and outputs are passed.

use std::path::PathBuf;
use std::sync::Arc;

use veracity_engine::{
    Device, Engine, ModelBytes, ModelFormat, ModelSource, OptimizationLevel, Port, Ports, Session,
    SessionOptions,
};
use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::{DType, Element, Shape, Tensor};

use super::*;
use crate::test_library::engine;

const OPSET: i64 = 18;

/// Memory that shows whether it was written to.
const POISON: u8 = 0xA5;

fn source(graph: GraphBuilder) -> ModelSource {
    let bytes = graph.finish().unwrap().to_bytes().unwrap();
    ModelSource { format: ModelFormat::Onnx, bytes: ModelBytes::Memory(Arc::from(bytes)) }
}

fn load(graph: GraphBuilder, ports: &Ports, passing: Passing) -> Session {
    let engine = engine();
    let options = SessionOptions { device: Device::Cpu, ..SessionOptions::default() };
    let (session, device) =
        crate::create::create(&engine.library, &source(graph).bytes, &options).unwrap();
    let (names, runner) = engine.examine(session, ports).unwrap();
    let model = OrtModel::new(runner, names, passing, device.to_string(), Place::default());
    Session::new(ports.clone(), model)
}

fn shared(tensor: &Tensor) -> SharedTensor {
    let shared = SharedTensor::zeros(tensor.dtype(), tensor.shape().clone());
    write(&shared, tensor);
    shared
}

fn write(shared: &SharedTensor, tensor: &Tensor) {
    // SAFETY: the tests run sessions in the thread that calls this.
    unsafe { shared.bytes_mut() }.copy_from_slice(tensor.bytes());
}

fn read(shared: &SharedTensor) -> Tensor {
    // SAFETY: as above.
    unsafe { shared.to_tensor() }
}

fn poisoned(port: &Port) -> SharedTensor {
    let shared = SharedTensor::zeros(port.dtype, port.shape.clone());
    // SAFETY: nobody else has it yet.
    unsafe { shared.bytes_mut() }.fill(POISON);
    shared
}

fn tensor<E: Element>(dims: &[usize], elements: &[E]) -> Tensor {
    Tensor::from_slice(Shape::new(dims).unwrap(), elements).unwrap()
}

fn port(name: &str, tensor: &Tensor) -> Port {
    Port::new(name, tensor.dtype(), tensor.shape().clone())
}

fn dims(tensor: &Tensor) -> Vec<usize> {
    tensor.shape().dims().to_vec()
}

/// A graph from `x` to `y`, of these tensors' dtypes and shapes.
fn graph(x: &Tensor, y: &Tensor, nodes: impl IntoIterator<Item = Node>) -> GraphBuilder {
    let empty = GraphBuilder::new("graph", OPSET).input("x", x.dtype(), dims(x)).output(
        "y",
        y.dtype(),
        dims(y),
    );
    nodes.into_iter().fold(empty, GraphBuilder::node)
}

/// Runs a model twice, passing in either way, and expects these outputs each time.
fn expect(graph: &GraphBuilder, inputs: &[(&str, &Tensor)], outputs: &[(&str, &Tensor)]) {
    let ports_of = |side: &[(&str, &Tensor)]| side.iter().map(|(n, t)| port(n, t)).collect();
    let ports = Ports { inputs: ports_of(inputs), outputs: ports_of(outputs) };
    for passing in [Passing::Once, Passing::EveryRun] {
        let mut model = load(graph.clone(), &ports, passing);
        let fed: Vec<_> = inputs.iter().map(|(_, tensor)| shared(tensor)).collect();
        let fetched: Vec<_> = ports.outputs.iter().map(poisoned).collect();
        let binding = model.bind(&fed, &fetched).unwrap();
        for _ in 0..2 {
            model.run(binding).unwrap();
            for ((name, expected), memory) in outputs.iter().zip(&fetched) {
                assert_eq!(read(memory), **expected, "{name}, {passing:?}");
                // SAFETY: no session runs now.
                unsafe { memory.bytes_mut() }.fill(POISON);
            }
        }
    }
}

#[test]
fn every_dtype_goes_in_and_out() {
    for dtype in DType::ALL {
        let mut x = Tensor::zeros(dtype, Shape::from([2, 3]));
        if dtype == DType::Bool {
            x.bytes_mut().copy_from_slice(&[1, 0, 0, 1, 1, 0]);
        } else {
            for (value, byte) in (1..).zip(x.bytes_mut()) {
                *byte = value;
            }
        }
        expect(&graph(&x, &x, [Node::new("Identity", ["x"], ["y"])]), &[("x", &x)], &[("y", &x)]);
    }
}

#[test]
fn scalars_and_empty_tensors_are_tensors() {
    for x in [tensor(&[], &[2.5_f32]), tensor::<f32>(&[0, 3], &[]), tensor::<f32>(&[0], &[])] {
        let negated: Vec<f32> = x.as_slice().unwrap().iter().map(|x: &f32| -x).collect();
        let y = tensor(&dims(&x), &negated);
        expect(&graph(&x, &y, [Node::new("Neg", ["x"], ["y"])]), &[("x", &x)], &[("y", &y)]);
    }
}

#[test]
fn an_output_that_is_an_input_is_copied() {
    let x = tensor(&[3], &[1.0_f32, 2.0, 3.0]);
    let y = tensor(&[3], &[-1.0_f32, -2.0, -3.0]);
    let repeating = graph(&x, &y, [Node::new("Neg", ["x"], ["y"])]).output("x", DType::F32, [3]);
    expect(&repeating, &[("x", &x)], &[("x", &x), ("y", &y)]);
    expect(&repeating, &[("x", &x)], &[("x", &x)]);
}

#[test]
fn an_output_that_is_a_constant_is_copied() {
    let x = tensor(&[1], &[0.0_f32]);
    let y = tensor(&[3], &[1_i64, 2, 3]);
    expect(&graph(&x, &y, []).initializer("y", &y), &[("x", &x)], &[("y", &y)]);
    let by_node = Node::new::<&str, _>("Constant", [], ["y"]).tensor("value", &y);
    expect(&graph(&x, &y, [by_node]), &[("x", &x)], &[("y", &y)]);
}

#[test]
fn outputs_of_operators_that_move_no_data_are_copied() {
    let x = tensor(&[1, 2, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
    let flat = tensor(&[4], &[1.0_f32, 2.0, 3.0, 4.0]);
    let square = tensor(&[2, 2], &[1.0_f32, 2.0, 3.0, 4.0]);
    let shape = tensor(&[1], &[-1_i64]);
    let axes = tensor(&[1], &[0_i64]);
    for (y, node) in [
        (&flat, Node::new("Reshape", ["x", "shape"], ["y"])),
        (&square, Node::new("Squeeze", ["x", "axes"], ["y"])),
        (&x, Node::new("Dropout", ["x"], ["y"])),
        (&x, Node::new("Cast", ["x"], ["y"]).int("to", 1)),
    ] {
        let graph = graph(&x, y, [node]).initializer("shape", &shape).initializer("axes", &axes);
        expect(&graph, &[("x", &x)], &[("y", y)]);
    }
}

#[test]
fn outputs_of_branches_and_loops_are_copied() {
    let x = tensor(&[2], &[1.0_f32, 2.0]);
    let condition = |value: u8| Tensor::from_bytes(DType::Bool, Shape::scalar(), &[value]).unwrap();
    let branch = |name: &str, op: &str| {
        GraphBuilder::new(name, OPSET).output("branch", DType::F32, [2_usize]).node(Node::new(
            op,
            ["x"],
            ["branch"],
        ))
    };
    let node = Node::new("If", ["condition"], ["y"])
        .graph("then_branch", branch("then", "Neg"))
        .graph("else_branch", branch("else", "Identity"));
    let graph = graph(&x, &x, [node]).input("condition", DType::Bool, [0_usize; 0]);
    for (value, y) in [(1, tensor(&[2], &[-1.0_f32, -2.0])), (0, x.clone())] {
        let condition = condition(value);
        expect(&graph, &[("x", &x), ("condition", &condition)], &[("y", &y)]);
    }

    let body = GraphBuilder::new("body", OPSET)
        .input("step", DType::I64, [0_usize; 0])
        .input("going", DType::Bool, [0_usize; 0])
        .input("carried", DType::F32, [2_usize])
        .output("going_on", DType::Bool, [0_usize; 0])
        .output("doubled", DType::F32, [2_usize])
        .node(Node::new("Identity", ["going"], ["going_on"]))
        .node(Node::new("Add", ["carried", "carried"], ["doubled"]));
    let graph = GraphBuilder::new("loop", OPSET)
        .input("x", DType::F32, [2_usize])
        .input("trips", DType::I64, [0_usize; 0])
        .output("y", DType::F32, [2_usize])
        .node(Node::new("Loop", ["trips", "", "x"], ["y"]).graph("body", body));
    for (trips, y) in [(0_i64, x.clone()), (3, tensor(&[2], &[8.0_f32, 16.0]))] {
        let trips = tensor(&[], &[trips]);
        expect(&graph, &[("x", &x), ("trips", &trips)], &[("y", &y)]);
    }
}

#[test]
fn outputs_that_are_not_declared_need_no_memory() {
    let x = tensor(&[1], &[7_i64]);
    let y = tensor(&[1], &[-7_i64]);
    let nodes = [Node::new("Neg", ["x"], ["y"]), Node::new("Abs", ["x"], ["z"])];
    let graph = graph(&x, &y, nodes).output("z", DType::I64, [1_usize]);
    expect(&graph, &[("x", &x)], &[("y", &y)]);
    expect(&graph, &[("x", &x)], &[]);
}

#[test]
fn a_failed_run_is_refused_and_the_next_one_is_right() {
    let good = tensor(&[1], &[1_i64]);
    let y = tensor(&[1], &[20_i64]);
    let graph = graph(&good, &y, [Node::new("Gather", ["data", "x"], ["y"])])
        .initializer("data", &tensor(&[2], &[10_i64, 20]));
    let ports = Ports { inputs: vec![port("x", &good)], outputs: vec![port("y", &y)] };
    for passing in [Passing::Once, Passing::EveryRun] {
        let mut model = load(graph.clone(), &ports, passing);
        let (input, output) = (shared(&tensor(&[1], &[7_i64])), poisoned(&ports.outputs[0]));
        let binding =
            model.bind(std::slice::from_ref(&input), std::slice::from_ref(&output)).unwrap();
        for _ in 0..2 {
            write(&input, &tensor(&[1], &[7_i64]));
            let refusal = model.run(binding).unwrap_err();
            assert_eq!(refusal.first_error().code, codes::ENGINE_RUN_FAILED);
            assert!(refusal.first_error().message.contains("indices"), "{refusal}");
            write(&input, &good);
            model.run(binding).unwrap();
            assert_eq!(read(&output), y);
        }
    }
}

#[test]
fn an_output_of_another_shape_than_declared_is_refused() {
    let x = tensor(&[4], &[1.0_f32, 0.0, 2.0, 0.0]);
    let y = tensor(&[1, 2], &[0_i64, 2]);
    let graph = GraphBuilder::new("graph", OPSET)
        .input("x", DType::F32, [4_usize])
        .output("y", DType::I64, [veracity_onnx::Dim::from(1), "count".into()])
        .node(Node::new("NonZero", ["x"], ["y"]));
    let ports = Ports { inputs: vec![port("x", &x)], outputs: vec![port("y", &y)] };
    for passing in [Passing::Once, Passing::EveryRun] {
        let mut model = load(graph.clone(), &ports, passing);
        let (input, output) = (shared(&x), poisoned(&ports.outputs[0]));
        let binding =
            model.bind(std::slice::from_ref(&input), std::slice::from_ref(&output)).unwrap();
        for other in [[1.0_f32, 1.0, 1.0, 0.0], [0.0; 4], [3.0; 4]] {
            write(&input, &tensor(&[4], &other));
            let refusal = model.run(binding).unwrap_err();
            assert_eq!(refusal.first_error().code, codes::ENGINE_OUTPUT_MISMATCH, "{refusal}");
            write(&input, &x);
            model.run(binding).unwrap();
            assert_eq!(read(&output), y);
        }
    }
}

#[test]
fn a_scalar_of_the_model_runs_as_whatever_was_declared_but_never_changes_its_shape() {
    let (scalar, list) = (tensor(&[], &[1.0_f32]), tensor(&[1], &[1.0_f32]));
    let graph = graph(&scalar, &scalar, [Node::new("Neg", ["x"], ["y"])]);
    for (x, y, runs) in [
        (&scalar, &scalar, true),
        (&list, &list, true),
        (&scalar, &list, false),
        (&list, &scalar, false),
    ] {
        let ports = Ports { inputs: vec![port("x", x)], outputs: vec![port("y", y)] };
        for passing in [Passing::Once, Passing::EveryRun] {
            let mut model = load(graph.clone(), &ports, passing);
            let binding = model.bind(&[shared(x)], &[shared(y)]).unwrap();
            assert_eq!(model.run(binding).is_ok(), runs, "{x:?} to {y:?}");
        }
    }
}

#[test]
fn bindings_take_turns_and_see_what_was_written_last() {
    let x = tensor(&[2], &[1.0_f32, 2.0]);
    let ports = Ports { inputs: vec![port("x", &x)], outputs: vec![port("y", &x)] };
    let doubling = graph(&x, &x, [Node::new("Add", ["x", "x"], ["y"])]);
    for passing in [Passing::Once, Passing::EveryRun] {
        let mut model = load(doubling.clone(), &ports, passing);
        let (here, there) = ([shared(&x)], [shared(&x)]);
        let forth = model.bind(&here, &there).unwrap();
        let back = model.bind(&there, &here).unwrap();
        for _ in 0..3 {
            model.run(forth).unwrap();
            model.run(back).unwrap();
        }
        assert_eq!(read(&here[0]), tensor(&[2], &[64.0_f32, 128.0]));
        // A session goes to another thread, and lives on without anybody else's memory.
        let here = here.map(|tensor| {
            write(&tensor, &x);
            tensor
        });
        std::thread::spawn(move || model.run(forth).map(|()| model)).join().unwrap().unwrap();
        drop(here);
        assert_eq!(read(&there[0]), tensor(&[2], &[2.0_f32, 4.0]));
    }
}

#[test]
fn memory_that_does_not_fit_is_refused() {
    let x = tensor(&[2], &[1.0_f32, 2.0]);
    let ports = Ports { inputs: vec![port("x", &x)], outputs: vec![port("y", &x), port("z", &x)] };
    let graph = graph(&x, &x, [Node::new("Neg", ["x"], ["y"]), Node::new("Abs", ["x"], ["z"])])
        .output("z", DType::F32, [2_usize]);
    let mut model = load(graph, &ports, Passing::Once);
    let memory = || shared(&x);
    let (a, b, c) = (memory(), memory(), memory());
    let long = shared(&tensor(&[3], &[0.0_f32; 3]));
    let whole = shared(&tensor(&[2], &[0_i32; 2]));
    for (inputs, outputs) in [
        (vec![a.clone()], vec![a.clone(), b.clone()]),
        (vec![a.clone()], vec![b.clone(), b.clone()]),
        (vec![a.clone()], vec![b.clone()]),
        (vec![], vec![b.clone(), c.clone()]),
        (vec![long], vec![b.clone(), c.clone()]),
        (vec![whole], vec![b.clone(), c.clone()]),
    ] {
        let refusal = model.bind(&inputs, &outputs).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::ENGINE_BIND_MISMATCH, "{refusal}");
    }
    assert!(model.bind(&[a], &[b, c]).is_ok());
}

#[test]
fn what_cannot_be_loaded_is_refused_with_its_code() {
    let x = tensor(&[2], &[1.0_f32, 2.0]);
    let ports = Ports { inputs: vec![port("x", &x)], outputs: vec![port("y", &x)] };
    let good = source(graph(&x, &x, [Node::new("Neg", ["x"], ["y"])]));
    let with_node = |node| source(graph(&x, &x, [node]));
    let of = |format, bytes| ModelSource { format, bytes };
    let memory = |bytes: &[u8]| of(ModelFormat::Onnx, ModelBytes::Memory(Arc::from(bytes)));
    let file = |path: &str| of(ModelFormat::Onnx, ModelBytes::File(PathBuf::from(path)));
    let default = SessionOptions::default();
    let many = SessionOptions { threads: 4096.try_into().unwrap(), ..default.clone() };
    let cuda = SessionOptions { device: Device::Cuda(99), ..default.clone() };
    for (source, options, code) in [
        (memory(b""), &default, codes::ENGINE_LOAD_FAILED),
        (memory(b"not a model"), &default, codes::ENGINE_LOAD_FAILED),
        (memory(b"not a model"), &cuda, codes::ENGINE_LOAD_FAILED),
        (file("no such file"), &default, codes::FILE_NOT_FOUND),
        (file("nul\0"), &default, codes::FILE_NOT_FOUND),
        (
            of(ModelFormat::TorchScript, good.bytes.clone()),
            &default,
            codes::ENGINE_UNSUPPORTED_FORMAT,
        ),
        (with_node(Node::new("NoSuchOp", ["x"], ["y"])), &default, codes::ENGINE_UNSUPPORTED),
        (with_node(Node::new("Neg", ["w"], ["y"])), &default, codes::ENGINE_LOAD_FAILED),
        (good.clone(), &many, codes::OPTION_INVALID),
        (good.clone(), &cuda, codes::DEVICE_UNAVAILABLE),
    ] {
        let refusal = engine().load(&source, &ports, options).expect_err("it cannot be loaded");
        assert_eq!(refusal.first_error().code, code, "{refusal}");
    }
}

#[test]
fn every_option_gives_the_same_values() {
    let x = tensor(&[2], &[1.0_f32, 2.0]);
    let ports = Ports { inputs: vec![port("x", &x)], outputs: vec![port("y", &x)] };
    let source = source(graph(&x, &x, [Node::new("Neg", ["x"], ["y"])]));
    for optimization in [OptimizationLevel::None, OptimizationLevel::Basic, OptimizationLevel::All]
    {
        for threads in [1, 2] {
            let threads = threads.try_into().unwrap();
            let options = SessionOptions { threads, device: Device::Auto, optimization };
            let mut session = engine().load(&source, &ports, &options).unwrap();
            let (input, output) = ([shared(&x)], [poisoned(&ports.outputs[0])]);
            let binding = session.bind(&input, &output).unwrap();
            session.run(binding).unwrap();
            assert_eq!(read(&output[0]), tensor(&[2], &[-1.0_f32, -2.0]));
        }
    }
}
