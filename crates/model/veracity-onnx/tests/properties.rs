//! Laws that hold for any model and any damage to it.
//!
//! `VERACITY_FUZZ_CASES=1000000 cargo test --release -p veracity-onnx --test properties` fuzzes for
//! long.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use bytes::Bytes;
use proptest::prelude::*;
use veracity_onnx::{Dim, Edge, GraphBuilder, Model, Node, Stage, check_ports, merge};
use veracity_tensor::{DType, Shape, Tensor};

#[path = "../../../base/veracity-tensor/tests/support/memory.rs"]
mod memory;
#[path = "../../../base/veracity-tensor/tests/support/mutate.rs"]
mod mutate;

use memory::within_memory;
use mutate::{config, in_time, mutate, mutations};

/// Every seed is below 1 KiB; an empty attribute takes 2 bytes in a file and 1.5 KiB in memory.
const MEMORY_LIMIT: usize = 16 << 20;

fn dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(DType::ALL.to_vec())
}

fn dims() -> impl Strategy<Value = Vec<Dim>> {
    let dim = prop_oneof![
        (0_usize..5).prop_map(Dim::Fixed),
        "[a-z]{1,3}".prop_map(Dim::Named),
        Just(Dim::Unknown)
    ];
    prop::collection::vec(dim, 0..4)
}

fn node(depth: u32) -> BoxedStrategy<Node> {
    let value = || "[a-d]{0,1}";
    let plain = (
        "[A-Z][a-z]{1,5}",
        prop::collection::vec(value(), 0..3),
        value(),
        any::<i64>(),
        any::<f32>(),
    )
        .prop_map(|(op, inputs, output, int, float)| {
            Node::new(op, inputs, [output])
                .int("i", int)
                .float("f", float)
                .string("s", "text")
                .ints("is", [int, 0])
                .floats("fs", [float])
        });
    if depth == 0 {
        return plain.boxed();
    }
    (plain.clone(), graph(depth - 1))
        .prop_map(|(node, body)| node.graph("body", body))
        .boxed()
        .prop_union(plain.boxed())
        .boxed()
}

fn graph(depth: u32) -> impl Strategy<Value = GraphBuilder> {
    let port = || ("[a-d]", dtype(), dims());
    let weights = ("[a-d]", dtype(), prop::collection::vec(0_usize..4, 0..3));
    (
        prop::collection::vec(port(), 0..3),
        prop::collection::vec(weights, 0..2),
        prop::collection::vec(node(depth), 0..4),
        prop::collection::vec(port(), 0..3),
        prop::collection::vec(("[a-z]{0,4}", ".{0,8}"), 0..2),
    )
        .prop_map(|(inputs, weights, nodes, outputs, metadata)| {
            let mut graph = GraphBuilder::new("g", 18);
            for (name, dtype, dims) in inputs {
                graph = graph.input(name, dtype, dims);
            }
            for (name, dtype, dims) in weights {
                graph = graph.initializer(name, &Tensor::zeros(dtype, Shape::new(dims).unwrap()));
            }
            graph = nodes.into_iter().fold(graph, GraphBuilder::node);
            for (name, dtype, dims) in outputs {
                graph = graph.output(name, dtype, dims);
            }
            metadata.into_iter().fold(graph, |graph, (key, value)| graph.metadata(key, value))
        })
}

/// A model that is whole and has a bit of everything.
fn sample() -> Model {
    let weights = Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap();
    let body = GraphBuilder::new("then", 18).node(Node::new("Relu", ["x"], ["t"])).output(
        "t",
        DType::F32,
        [2],
    );
    GraphBuilder::new("sample", 18)
        .input("c", DType::Bool, [0; 0])
        .input("x", DType::F32, [Dim::from("n")])
        .initializer("w", &weights)
        .node(Node::new("Constant", [""; 0], ["k"]).tensor("value", &weights))
        .node(
            Node::new("If", ["c"], ["b"])
                .graph("then_branch", body.clone())
                .graph("else_branch", body),
        )
        .node(Node::new("Sum", ["b", "w", "k"], ["y"]))
        .output("y", DType::F32, [Dim::Unknown])
        .metadata("key", "value")
        .finish()
        .unwrap()
}

/// Everything that can be asked of a model.
fn use_everywhere(model: &Model) {
    let (inputs, outputs) = (model.inputs(), model.outputs());
    let _ = (model.opset(), model.producer(), model.metadata(), model.op_count());
    let _ = (model.op_types(), model.external_data(), format!("{model:?}"));
    let shape = Shape::from([2]);
    let _ = check_ports(model, &[("x", DType::F32, &shape)], &[("y", DType::F32, &shape)]);
    let stages = [Stage { name: "a", model }, Stage { name: "b", model }];
    let exposed: Vec<_> = outputs.iter().map(|output| ("b", output.name.as_str())).collect();
    for input in &inputs {
        for output in &outputs {
            let edge = Edge { from: ("a", &output.name), to: ("b", &input.name) };
            if let Ok(merged) = merge(&stages, &[edge], &exposed) {
                let bytes = merged.to_bytes().unwrap();
                let again = Model::from_bytes(bytes.clone().into()).unwrap();
                assert_eq!(again.to_bytes().unwrap(), bytes);
            }
        }
    }
}

/// Whether the bytes are a model; asked within limits of time and memory.
fn read(bytes: Vec<u8>) -> Option<Model> {
    in_time(|| within_memory(MEMORY_LIMIT, || Model::from_bytes(Bytes::from(bytes)))).ok()
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_damaged_model_is_refused_or_read_but_never_panics(mutations in mutations()) {
        let seed = sample().to_bytes().unwrap();
        let damaged = mutate(&seed, &seed, &mutations);
        if let Some(model) = read(damaged) {
            use_everywhere(&model);
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Some(model) = read(bytes) {
            use_everywhere(&model);
        }
    }

    #[test]
    fn any_graph_survives_its_bytes(graph in graph(2)) {
        let model = graph.finish().unwrap();
        let bytes = model.to_bytes().unwrap();
        let read = Model::from_bytes(Bytes::from(bytes.clone())).unwrap();
        prop_assert_eq!(read.to_bytes().unwrap(), bytes);
        use_everywhere(&read);
    }
}
