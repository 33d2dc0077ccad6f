//! Time of one run of a tiny MLP (48-256-128-12), for looking at.
//!
//! `cargo run --release -p veracity-engine-ort --example latency`
#![expect(clippy::print_stdout, reason = "an example shows its result")]

use std::sync::Arc;
use std::time::Instant;

use veracity_diag::Result;
use veracity_engine::{
    Device, Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, SessionOptions,
};
use veracity_engine_ort::{OrtEngine, Search};
use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::{DType, Shape, SharedTensor, Tensor};

const SIZES: [usize; 4] = [48, 256, 128, 12];
const WARM_UP: usize = 1_000;
const RUNS: usize = 20_000;

fn main() -> Result<()> {
    let engine = OrtEngine::find(&Search::default())?;
    println!("ONNX Runtime {} from {}", engine.version(), engine.library().display());
    let source = mlp()?;
    for threads in [1, 2] {
        let threads = threads.try_into().expect("not zero");
        let options = SessionOptions { threads, device: Device::Cpu, ..SessionOptions::default() };
        let mut nanos = measure(&engine, &source, &options)?;
        nanos.sort_unstable();
        let at = |percent: usize| nanos[nanos.len() * percent / 100];
        println!("threads {threads}: p50 {} ns, p99 {} ns", at(50), at(99));
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
        let weight = Tensor::zeros(DType::F32, Shape::from([sizes[0], sizes[1]]));
        let bias = Tensor::zeros(DType::F32, Shape::from([sizes[1]]));
        let names = ["x", "w", "b", "g"].map(|name| format!("{name}{layer}"));
        let next = format!("x{}", layer + 1);
        graph = graph
            .initializer(&names[1], &weight)
            .initializer(&names[2], &bias)
            .node(Node::new("Gemm", &names[..3], [&names[3]]))
            .node(Node::new("Elu", [&names[3]], [next]));
    }
    let bytes = ModelBytes::Memory(Arc::from(graph.finish()?.to_bytes()?));
    Ok(ModelSource { format: ModelFormat::Onnx, bytes })
}

/// Times of single runs, in nanoseconds.
fn measure(
    engine: &OrtEngine,
    source: &ModelSource,
    options: &SessionOptions,
) -> Result<Vec<u128>> {
    let port = |name: &str, size| Port::new(name, DType::F32, [1, size]);
    let ports = Ports { inputs: vec![port("x0", SIZES[0])], outputs: vec![port("x3", SIZES[3])] };
    let memory = |port: &Port| SharedTensor::zeros(port.dtype, port.shape.clone());
    let mut session = engine.load(source, &ports, options)?;
    let binding = session.bind(&[memory(&ports.inputs[0])], &[memory(&ports.outputs[0])])?;
    let mut nanos = Vec::with_capacity(WARM_UP + RUNS);
    for _ in 0..WARM_UP + RUNS {
        let start = Instant::now();
        session.run(binding)?;
        nanos.push(start.elapsed().as_nanos());
    }
    Ok(nanos.split_off(WARM_UP))
}
