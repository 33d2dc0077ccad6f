//! What cannot be merged, and the reason given.

use veracity_diag::{Code, Refusal, codes};
use veracity_tensor::DType;

use super::{add, altered, chain, edge, finish, with_function};
use crate::generated::onnx::tensor_proto::DataLocation;
use crate::generated::onnx::{NodeDeviceConfigurationProto, NodeProto, TrainingInfoProto};
use crate::merge::{Edge, PortRef, Stage, merge};
use crate::{GraphBuilder, Model, Node};

#[track_caller]
fn assert_refused(result: Result<Model, Refusal>, code: Code, message: &str) {
    let refusal = result.expect_err(message);
    let found = refusal.first_error();
    assert_eq!(found.code, code, "{found}");
    assert!(found.message.contains(message), "{found}");
}

#[test]
fn stages_that_cannot_be_part_of_a_merged_model_are_refused() {
    let plain = finish(add());
    let external = altered(add(), |proto| {
        let tensor = &mut proto.graph.as_mut().unwrap().initializer[0];
        tensor.data_location = Some(DataLocation::External.into());
    });
    let training = altered(add(), |proto| {
        proto.training_info.push(TrainingInfoProto::default());
    });
    let spread = altered(add(), |proto| {
        let node: &mut NodeProto = &mut proto.graph.as_mut().unwrap().node[0];
        node.device_configurations.push(NodeDeviceConfigurationProto::default());
    });
    let twice = finish(add().node(Node::new("Relu", ["w"], ["x"])));
    let newer = altered(add(), |proto| proto.opset_import[0].version = Some(21));
    let other_function = with_function("Mul");
    let builtin = finish(add().node(Node::new("Twice", ["y"], ["z"]).domain("mine")));
    let own_function = with_function("Add");
    for (a, b, message) in [
        (&external, &plain, "other files"),
        (&plain, &training, "training graph"),
        (&plain, &spread, "spread over devices"),
        (&plain, &twice, "defines value \"x\" twice"),
        (&plain, &newer, "version 21"),
        (&own_function, &other_function, "otherwise"),
        (&own_function, &builtin, "from the engine"),
        (&builtin, &own_function, "from the engine"),
    ] {
        assert_refused(chain(a, b, &[("b", "y")]), codes::ONNX_UNFUSABLE, message);
    }
}

/// Two stages that fit, and two that take something else than they give.
fn assert_edges_refused(edges: &[Edge<'_>], outputs: &[PortRef<'_>], code: Code, message: &str) {
    let model = finish(add());
    let abs = |dtype, size| {
        let graph = GraphBuilder::new("abs", 18).input("x", dtype, [size]);
        finish(graph.node(Node::new("Abs", ["x"], ["y"])).output("y", dtype, [size]))
    };
    let stages = [
        Stage { name: "a", model: &model },
        Stage { name: "b", model: &model },
        Stage { name: "ints", model: &abs(DType::I64, 2) },
        Stage { name: "wide", model: &abs(DType::F32, 3) },
    ];
    assert_refused(merge(&stages, edges, outputs), code, message);
}

#[test]
fn edges_that_do_not_fit_are_refused() {
    for (from, to, message) in [
        (("b", "y"), ("a", "x"), "before it"),
        (("a", "y"), ("a", "x"), "before it"),
        (("a", "y"), ("ints", "x"), "it is int64 [2], but is fed with float32 [2]"),
        (("a", "y"), ("wide", "x"), "it is float32 [3], but is fed with float32 [2]"),
        (("a", "y"), ("c", "x"), "no stage is called \"c\""),
    ] {
        let code = codes::ONNX_UNFUSABLE;
        assert_edges_refused(&[edge(from, to)], &[("b", "y")], code, message);
    }
    for (from, to, message) in
        [(("a", "q"), ("b", "x"), "no output \"q\""), (("a", "y"), ("b", "w"), "no input \"w\"")]
    {
        let code = codes::ONNX_PORT_MISSING;
        assert_edges_refused(&[edge(from, to)], &[("b", "y")], code, message);
    }
    let twice = [edge(("a", "y"), ("b", "x")); 2];
    assert_edges_refused(&twice, &[("b", "y")], codes::ONNX_UNFUSABLE, "two edges");
}

#[test]
fn outputs_must_exist_once() {
    for (outputs, code, message) in [
        (&[("b", "w")][..], codes::ONNX_PORT_MISSING, "no output \"w\""),
        (&[("b", "y"), ("b", "y")], codes::ONNX_UNFUSABLE, "exposed twice"),
        (&[], codes::ONNX_UNFUSABLE, "no output"),
    ] {
        assert_edges_refused(&[], outputs, code, message);
    }
}

#[test]
fn stage_names_must_keep_values_apart() {
    let model = finish(add());
    let named = |a, b| {
        let stages = [Stage { name: a, model: &model }, Stage { name: b, model: &model }];
        merge(&stages, &[], &[(b, "y")])
    };
    assert!(named("a", "b").is_ok());
    assert_refused(named("a", "a"), codes::ONNX_UNFUSABLE, "two stages");
    assert_refused(named("a", "b/c"), codes::ONNX_UNFUSABLE, "cannot be called");
    assert_refused(named("", "b"), codes::ONNX_UNFUSABLE, "cannot be called");
}
