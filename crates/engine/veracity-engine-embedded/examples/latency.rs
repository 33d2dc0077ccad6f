//! How long one run of a small MLP (48-256-128-12) takes, for looking at.
//!
//! `cargo run --release -p veracity-engine-embedded --example latency`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::sync::Arc;
use std::time::Instant;

use veracity_diag::Result;
use veracity_engine::{
    Engine, ModelBytes, ModelFormat, ModelSource, OptimizationLevel, Port, Ports, SessionOptions,
};
use veracity_engine_embedded::EmbeddedEngine;
use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::{DType, SharedTensor, Tensor};

const SIZES: [usize; 4] = [48, 256, 128, 12];
const WARM_UP: usize = 200;
const RUNS: usize = 5_000;

fn main() -> Result<()> {
    println!("{}", EmbeddedEngine.version());
    let source = mlp()?;
    for optimization in [OptimizationLevel::None, OptimizationLevel::Basic, OptimizationLevel::All]
    {
        let mut nanos =
            measure(&source, &SessionOptions { optimization, ..SessionOptions::default() })?;
        nanos.sort_unstable();
        let at = |percent: usize| nanos[nanos.len() * percent / 100];
        println!("{optimization:?}: p50 {} ns, p99 {} ns", at(50), at(99));
    }
    Ok(())
}

fn mlp() -> Result<ModelSource> {
    let mut graph = GraphBuilder::new("mlp", 18).input("x0", DType::F32, [1, SIZES[0]]).output(
        "x3",
        DType::F32,
        [1, SIZES[3]],
    );
    for (layer, sizes) in SIZES.windows(2).enumerate() {
        // No zeros: a weight of 0 may be dropped from the graph.
        let weight = Tensor::from_slice([sizes[0], sizes[1]], &vec![0.02f32; sizes[0] * sizes[1]])?;
        let bias = Tensor::from_slice([sizes[1]], &vec![0.1f32; sizes[1]])?;
        let names = ["x", "w", "b", "g"].map(|name| format!("{name}{layer}"));
        graph = graph
            .initializer(&names[1], &weight)
            .initializer(&names[2], &bias)
            .node(Node::new("Gemm", &names[..3], [&names[3]]))
            .node(Node::new("Elu", [&names[3]], [format!("x{}", layer + 1)]));
    }
    let bytes = ModelBytes::Memory(Arc::from(graph.finish()?.to_bytes()?));
    Ok(ModelSource { format: ModelFormat::Onnx, bytes })
}

/// Times of single runs, in nanoseconds.
fn measure(source: &ModelSource, options: &SessionOptions) -> Result<Vec<u128>> {
    let port = |name: &str, size| Port::new(name, DType::F32, [1, size]);
    let ports = Ports { inputs: vec![port("x0", SIZES[0])], outputs: vec![port("x3", SIZES[3])] };
    let memory = |port: &Port| SharedTensor::zeros(port.dtype, port.shape.clone());
    let mut session = EmbeddedEngine.load(source, &ports, options)?;
    let binding = session.bind(&[memory(&ports.inputs[0])], &[memory(&ports.outputs[0])])?;
    let mut nanos = Vec::with_capacity(WARM_UP + RUNS);
    for _ in 0..WARM_UP + RUNS {
        let start = Instant::now();
        session.run(binding)?;
        nanos.push(start.elapsed().as_nanos());
    }
    Ok(nanos.split_off(WARM_UP))
}
