//! Reading and writing model files.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use bytes::Bytes;
use tempfile::tempdir;
use veracity_diag::{Code, codes};
use veracity_onnx::{Dim, GraphBuilder, Model, Node};
use veracity_tensor::{DType, Shape, Tensor};

fn weights() -> Tensor {
    let values: Vec<f32> = (0..12_u8).map(f32::from).collect();
    Tensor::from_slice([4, 3], &values).unwrap()
}

fn model() -> Model {
    let body = GraphBuilder::new("then", 18)
        .node(Node::new("Elu", ["h"], ["e"]).float("alpha", 0.5))
        .output("e", DType::F32, [1, 3]);
    GraphBuilder::new("policy", 18)
        .input("x", DType::F32, [Dim::from("batch"), Dim::from(4)])
        .input("c", DType::Bool, [0; 0])
        .input("w", DType::F32, [4, 3])
        .initializer("w", &weights())
        .node(Node::new("MatMul", ["x", "w"], ["h"]))
        .node(
            Node::new("If", ["c"], ["y"])
                .graph("then_branch", body.clone())
                .graph("else_branch", body),
        )
        .node(Node::new("FusedThing", ["y"], ["z"]).domain("com.example"))
        .output("z", DType::F32, [Dim::Unknown, Dim::from(3)])
        .metadata("task", "walk")
        .finish()
        .unwrap()
}

#[test]
fn a_file_tells_what_it_was_built_from() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("policy.onnx");
    model().write(&path).unwrap();
    let read = Model::read(&path).unwrap();
    let names = |values: Vec<veracity_onnx::ValueInfo>| {
        values.iter().map(|value| format!("{} {value}", value.name)).collect::<Vec<_>>()
    };
    assert_eq!(names(read.inputs()), ["x float32 [batch, 4]", "c bool []"]);
    assert_eq!(names(read.outputs()), ["z float32 [?, 3]"]);
    assert_eq!(read.opset(), Some(18));
    assert_eq!(read.metadata(), [("task".to_owned(), "walk".to_owned())]);
    assert!(read.producer().starts_with("veracity "));
    assert_eq!(read.op_count(), 5);
    let ops: Vec<_> = read.op_types().into_iter().collect();
    let expected = [("Elu", 2), ("If", 1), ("MatMul", 1), ("com.example::FusedThing", 1)];
    assert_eq!(ops, expected.map(|(op, count)| (op.to_owned(), count)));
    assert!(read.external_data().unwrap().is_empty());
}

#[test]
fn the_same_model_gives_the_same_bytes() {
    let bytes = model().to_bytes().unwrap();
    assert_eq!(bytes, model().to_bytes().unwrap());
    let again = Model::from_bytes(bytes.clone().into()).unwrap();
    assert_eq!(again.to_bytes().unwrap(), bytes);
}

#[test]
fn a_mapped_model_survives_its_file_being_replaced() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("m.onnx");
    model().write(&path).unwrap();
    let mapped = Model::read(&path).unwrap();
    let tiny = GraphBuilder::new("tiny", 18).finish().unwrap();
    tiny.write(&path).unwrap();
    assert_eq!(mapped.to_bytes().unwrap(), model().to_bytes().unwrap());
    assert_eq!(Model::read(&path).unwrap().to_bytes().unwrap(), tiny.to_bytes().unwrap());
    mapped.write(&path).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
}

fn code_of<T: std::fmt::Debug>(result: veracity_diag::Result<T>) -> Code {
    result.expect_err("must be refused").first_error().code
}

#[test]
fn what_is_no_model_is_refused_with_its_file() {
    let folder = tempdir().unwrap();
    let whole = model().to_bytes().unwrap();
    let without_graph = [0x08, 0x08];
    for (name, bytes) in [
        ("empty", &[][..]),
        ("text", b"this is not a model, it is a sentence"),
        ("zeros", &[0; 64]),
        ("ones", &[0xff; 64]),
        ("no graph", &without_graph),
        ("half", &whole[..whole.len() / 2]),
        ("all but one", &whole[..whole.len() - 1]),
        ("zip", b"PK\x03\x04\x14\x00\x00\x00\x08\x00"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let refusal = Model::read(&path).expect_err(name);
        assert_eq!(refusal.first_error().code, codes::ONNX_MALFORMED, "{name}");
        assert_eq!(refusal.first_error().place.file.as_deref(), path.to_str(), "{name}");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = tempdir().unwrap();
    assert_eq!(code_of(Model::read(folder.path())), codes::PATH_NOT_A_FILE);
    assert_eq!(code_of(Model::read(folder.path().join("absent"))), codes::FILE_NOT_FOUND);
    let large = folder.path().join("large");
    // Sparse: takes no room on the disk.
    fs::File::create(&large).unwrap().set_len(1 << 31).unwrap();
    assert_eq!(code_of(Model::read(&large)), codes::FILE_TOO_LARGE);
    let nowhere = folder.path().join("absent").join("m.onnx");
    assert_eq!(code_of(model().write(nowhere)), codes::FILE_UNWRITABLE);
}

/// A model with that many bodies within each other.
fn nested(depth: usize) -> veracity_diag::Result<Model> {
    let mut graph = GraphBuilder::new("innermost", 18);
    for _ in 0..depth {
        graph = GraphBuilder::new("g", 18)
            .node(Node::new("If", ["c"], ["y"]).graph("then_branch", graph));
    }
    graph.finish()
}

#[test]
fn bodies_nest_only_so_deep() {
    let deep = nested(30).unwrap().to_bytes().unwrap();
    assert_eq!(Model::from_bytes(deep.into()).unwrap().op_count(), 30);
    assert_eq!(code_of(nested(31)), codes::ONNX_MALFORMED);
    assert_eq!(code_of(nested(2000)), codes::ONNX_MALFORMED);
}

/// `levels` wrappers around nothing: nodes, attributes and graphs in turn, by hand, because no
/// model that deep can be built.
fn deep_bytes(levels: usize) -> Vec<u8> {
    let mut reversed = Vec::new();
    for level in 0..levels {
        let mut length = reversed.len();
        let mut varint = Vec::new();
        while length >= 0x80 {
            varint.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        varint.push(u8::try_from(length).unwrap());
        reversed.extend(varint.into_iter().rev());
        let field = [6, 5, 1][level % 3];
        reversed.push(field << 3 | 2);
    }
    reversed.into_iter().rev().collect()
}

#[test]
fn bytes_that_nest_without_end_are_refused() {
    let mut bytes = vec![0x08, 0x08, 0x3a];
    let graph = deep_bytes(30_000);
    let mut length = graph.len();
    while length >= 0x80 {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.extend(graph);
    assert_eq!(code_of(Model::from_bytes(Bytes::from(bytes))), codes::ONNX_MALFORMED);
}

#[test]
fn a_model_beyond_what_protobuf_can_hold_is_refused_when_written() {
    // One piece of memory, used as the weights of many stages: merging copies none of it.
    let weights = Tensor::zeros(DType::U8, Shape::from([64 << 20]));
    let part = GraphBuilder::new("part", 18)
        .initializer("w", &weights)
        .output("w", DType::U8, [64 << 20])
        .finish()
        .unwrap();
    drop(weights);
    let names: Vec<String> = (0..33).map(|index| format!("s{index}")).collect();
    let stages: Vec<_> =
        names.iter().map(|name| veracity_onnx::Stage { name, model: &part }).collect();
    let merged = veracity_onnx::merge(&stages, &[], &[("s0", "w")]).unwrap();
    assert_eq!(code_of(merged.to_bytes()), codes::FILE_TOO_LARGE);
}
