//! Values whose shapes nobody declared, and the graph that the library makes of a model.

use std::sync::Arc;

use veracity_diag::codes;
use veracity_engine::{
    Device, Engine, ModelBytes, ModelFormat, ModelSource, OptimizationLevel, SessionOptions,
};
use veracity_engine_ort::{OrtEngine, Search};
use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};

#[path = "support/library.rs"]
mod library;

/// `a = nonzero(x)`, whose size only a run can tell, `s = [a]`, `y = relu(conv(x))`.
fn model() -> Model {
    let ones = Tensor::from_slice([1, 1, 1, 1], &[2.0_f32]).expect("one");
    GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [1_usize, 1, 2, 2])
        .initializer("w", &ones)
        .node(Node::new("NonZero", ["x"], ["a"]))
        .node(Node::new("SequenceConstruct", ["a"], ["s"]))
        .node(Node::new("Conv", ["x", "w"], ["c"]))
        .node(Node::new("Relu", ["c"], ["y"]))
        .output("y", DType::F32, [1_usize, 1, 2, 2])
        .finish()
        .expect("it nests nowhere")
}

fn source(model: &Model) -> ModelSource {
    let bytes = model.to_bytes().expect("it is small");
    ModelSource { format: ModelFormat::Onnx, bytes: ModelBytes::Memory(Arc::from(bytes)) }
}

fn options(optimization: OptimizationLevel) -> SessionOptions {
    SessionOptions { device: Device::Cpu, optimization, ..SessionOptions::default() }
}

#[test]
fn outputs_come_in_the_shapes_that_they_have() {
    let x = Tensor::from_slice([1, 1, 2, 2], &[0.0_f32, 1.0, -1.0, 0.0]).expect("four");
    let shown = model().showing(&["a", "s", "y"]).expect("nodes give them");
    let options = options(OptimizationLevel::None);
    let found = library::engine()
        .evaluate(&source(&shown), &[("x", &x)], &["y", "a", "s"], &options)
        .expect("it runs");
    let [Some(y), Some(a), None] = &found[..] else { panic!("a sequence is no tensor: {found:?}") };
    assert_eq!(y.as_slice::<f32>(), Some(&[0.0, 2.0, 0.0, 0.0][..]));
    assert_eq!((a.dtype(), a.shape().dims()), (DType::I64, &[4, 2][..]));
}

#[test]
fn what_cannot_be_run_is_refused() {
    let options = options(OptimizationLevel::None);
    let run = |inputs: &[(&str, &Tensor)], outputs: &[&str]| {
        library::engine().evaluate(&source(&model()), inputs, outputs, &options)
    };
    let x = Tensor::zeros(DType::F32, [1_usize, 1, 2, 2].into());
    for (what, refused) in [
        ("no input", run(&[], &["y"])),
        ("no such output", run(&[("x", &x)], &["gone"])),
        ("a name with NUL", run(&[("x", &x)], &["y\0"])),
    ] {
        let refused = refused.expect_err(what);
        assert_eq!(refused.first_error().code, codes::ENGINE_RUN_FAILED, "{what}");
    }
}

#[test]
fn the_optimised_graph_is_a_model_again() {
    for (level, expected) in [
        (OptimizationLevel::None, &["NonZero", "SequenceConstruct", "Conv", "Relu"][..]),
        (
            OptimizationLevel::Extended,
            &["com.microsoft::FusedConv", "NonZero", "SequenceConstruct"],
        ),
    ] {
        let bytes =
            library::engine().optimized(&source(&model()), &options(level), &[]).expect("it loads");
        let optimized = Model::from_bytes(bytes.into()).expect("it is ONNX");
        let nodes = optimized.nodes();
        let kinds: Vec<&str> = nodes.iter().map(|node| node.op_type.as_str()).collect();
        assert_eq!(kinds, expected, "{level}");
    }
}
