//! Which pieces of which files a model may point to.

use veracity_diag::Code;
use veracity_tensor::{DType, Shape, Tensor};

use super::*;
use crate::build::entry;
use crate::generated::onnx::{
    AttributeProto, FunctionProto, NodeProto, SparseTensorProto, TrainingInfoProto,
};
use crate::{GraphBuilder, Node};

fn external(name: &str, entries: &[(&str, &str)]) -> TensorProto {
    TensorProto {
        name: Some(name.to_owned()),
        dims: vec![2, 3],
        data_type: Some(DataType::Float.into()),
        data_location: Some(DataLocation::External.into()),
        external_data: entries.iter().map(|(key, value)| entry(*key, *value)).collect(),
        ..TensorProto::default()
    }
}

fn model_with(tensor: TensorProto) -> Model {
    let mut proto = GraphBuilder::new("g", 18).finish().unwrap().proto().clone();
    proto.graph.as_mut().unwrap().initializer.push(tensor);
    Model::checked(proto).unwrap()
}

#[test]
fn a_piece_of_a_file_is_found_with_its_size() {
    for (entries, offset, length) in [
        (&[("location", "w.bin")][..], 0, Some(24)),
        (&[("location", "w.bin"), ("offset", "4096"), ("length", "24")], 4096, Some(24)),
        (&[("location", "w.bin"), ("checksum", "abc")], 0, Some(24)),
    ] {
        let files = model_with(external("w", entries)).external_data().unwrap();
        let expected =
            ExternalFile { location: "w.bin".into(), offset, length, tensor: "w".into() };
        assert_eq!(files, [expected]);
    }
}

#[test]
fn locations_must_stay_in_the_folder_of_the_model() {
    for (location, expected) in [
        ("w.bin", None),
        ("weights/w.bin", None),
        ("./w.bin", None),
        ("..w", None),
        ("", Some(codes::ONNX_EXTERNAL_DATA)),
        ("w\0.bin", Some(codes::ONNX_EXTERNAL_DATA)),
        ("weights/", Some(codes::ONNX_EXTERNAL_DATA)),
        ("weights\\w.bin", Some(codes::ONNX_EXTERNAL_DATA)),
        ("/etc/passwd", Some(codes::PATH_ABSOLUTE)),
        ("\\\\host\\share", Some(codes::PATH_ABSOLUTE)),
        ("C:w.bin", Some(codes::PATH_ABSOLUTE)),
        ("..", Some(codes::PATH_LEAVES_BUNDLE)),
        ("a/../../w.bin", Some(codes::PATH_LEAVES_BUNDLE)),
        ("a\\..\\..\\w.bin", Some(codes::PATH_LEAVES_BUNDLE)),
    ] {
        assert_eq!(code_of(external("w", &[("location", location)])), expected, "{location:?}");
    }
}

fn code_of(tensor: TensorProto) -> Option<Code> {
    model_with(tensor).external_data().err().map(|refusal| refusal.first_error().code)
}

#[test]
fn sizes_must_be_possible() {
    let location = ("location", "w.bin");
    for entries in [
        &[][..],
        &[location, ("offset", "-1")],
        &[location, ("length", "12 bytes")],
        &[location, ("length", "23")],
        &[location, ("offset", "18446744073709551615")],
        &[location, ("offset", "99999999999999999999")],
    ] {
        let code = code_of(external("w", entries));
        assert_eq!(code, Some(codes::ONNX_EXTERNAL_DATA), "{entries:?}");
    }
    for dims in [vec![-1, 3], vec![i64::MAX, 2, 2], vec![i64::MAX, i64::MAX, i64::MAX]] {
        let tensor = TensorProto { dims: dims.clone(), ..external("w", &[location]) };
        assert_eq!(code_of(tensor), Some(codes::ONNX_EXTERNAL_DATA), "{dims:?}");
    }
}

#[test]
fn every_problem_is_reported_with_its_tensor() {
    let mut proto = model_with(external("a", &[("location", "/a")])).proto().clone();
    let second = external("b", &[("location", "../b")]);
    proto.graph.as_mut().unwrap().initializer.push(second);
    let refusal = Model::checked(proto).unwrap().external_data().unwrap_err();
    let places: Vec<_> = refusal.diagnostics().iter().map(|d| d.place.node.clone()).collect();
    assert_eq!(places, [Some("a".to_owned()), Some("b".to_owned())]);
}

#[test]
fn external_tensors_are_found_wherever_they_hide() {
    let at = |name: &str| external(name, &[("location", "w.bin")]);
    let attribute = |tensor| AttributeProto { t: Some(tensor), ..AttributeProto::default() };
    let node = |tensor| NodeProto {
        attribute: vec![attribute(tensor)],
        ..Node::new("Constant", [""; 0], ["c"]).into()
    };
    let sparse = |values, indices| SparseTensorProto {
        values: Some(values),
        indices: Some(indices),
        dims: vec![4],
    };
    let mut body = GraphBuilder::new("then", 18).finish().unwrap().graph().clone();
    body.initializer.push(at("subgraph"));
    let mut proto = model_with(at("graph")).proto().clone();
    let graph = proto.graph.as_mut().unwrap();
    graph.sparse_initializer.push(sparse(at("values"), at("indices")));
    graph.node.push(node(at("attribute")));
    graph.node.push(NodeProto {
        attribute: vec![AttributeProto { g: Some(body.clone()), ..AttributeProto::default() }],
        ..NodeProto::default()
    });
    proto.functions.push(FunctionProto {
        node: vec![node(at("function"))],
        attribute_proto: vec![attribute(at("default"))],
        ..FunctionProto::default()
    });
    body.initializer[0] = at("training");
    let training = TrainingInfoProto { algorithm: Some(body), ..TrainingInfoProto::default() };
    proto.training_info.push(training);

    let files = Model::checked(proto).unwrap().external_data().unwrap();
    let mut names: Vec<_> = files.iter().map(|file| file.tensor.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        ["attribute", "default", "function", "graph", "indices", "subgraph", "training", "values"]
    );
}

#[test]
fn weights_inside_of_the_model_are_not_external() {
    let weights = Tensor::zeros(DType::F32, Shape::from([3]));
    let model = GraphBuilder::new("g", 18).initializer("w", &weights).finish().unwrap();
    assert!(model.external_data().unwrap().is_empty());
    assert!(!model.has_external_data());
}
