//! A chain of operators with one fault: its operator is named, and nobody else.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(unsafe_code, reason = "memory that is counted has another owner")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::ort;
use veracity_diag::codes;
use veracity_drift::{Against, DriftOptions, Stream, Values, against_float64, drift, held};
use veracity_engine::{Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, SessionOptions};
use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_results::{DriftReport, Verdict};
use veracity_tensor::{DType, SharedTensor, Tensor};

const STEPS: usize = 6;

/// `v0 = tanh(x * w0)`, `v1 = tanh(v0 * w1)`, ...; the product inside has no name of the original.
/// The weights of one step may be wrong.
fn chain(wrong: Option<usize>) -> Model {
    let mut graph = GraphBuilder::new("chain", 20).input("x", DType::F32, [1_usize, 8]);
    for step in 0..STEPS {
        let factor = if wrong == Some(step) { 1.001 } else { 1.0 };
        let weights: Vec<f32> = (0..8_u8).map(|i| (0.9 + f32::from(i) / 40.0) * factor).collect();
        let before = if step == 0 { "x".to_owned() } else { format!("v{}", step - 1) };
        let (product, weight) = (format!("p{step}"), format!("w{step}"));
        graph = graph
            .initializer(weight.clone(), &Tensor::from_slice([8], &weights).unwrap())
            .node(Node::new("Mul", [before, weight], [product.clone()]))
            .node(Node::new("Tanh", [product], [format!("v{step}")]))
            .output(format!("v{step}"), DType::F32, [1_usize, 8]);
    }
    graph.finish().unwrap()
}

fn input() -> Tensor {
    let values: Vec<f32> = (0..8_u8).map(|i| f32::from(i) / 4.0 - 1.0).collect();
    Tensor::from_slice([1, 8], &values).unwrap()
}

/// What a model computes at `v0`, `v1`, ...
fn values(model: &Model) -> Values {
    let names: Vec<String> = (0..STEPS).map(|step| format!("v{step}")).collect();
    let port = |name: &str| Port::new(name, DType::F32, [1_usize, 8]);
    let ports =
        Ports { inputs: vec![port("x")], outputs: names.iter().map(|name| port(name)).collect() };
    let bytes = ModelBytes::Memory(Arc::from(model.to_bytes().unwrap()));
    let source = ModelSource { format: ModelFormat::Onnx, bytes };
    let mut session = ort().load(&source, &ports, &SessionOptions::default()).unwrap();
    let memory = || SharedTensor::zeros(DType::F32, [1_usize, 8].into());
    let outputs: Vec<SharedTensor> = names.iter().map(|_| memory()).collect();
    let binding = session.bind(&[held(&input().view())], &outputs).unwrap();
    session.run(binding).unwrap();
    names.into_iter().zip(outputs).collect()
}

fn inputs() -> Values {
    BTreeMap::from([("x".to_owned(), held(&input().view()))])
}

/// A copy of values with one of them replaced.
fn replaced(values: &Values, name: &str, tensor: &Tensor) -> Values {
    let mut values = values.clone();
    values.insert(name.to_owned(), held(&tensor.view()));
    values
}

fn compared(wrong: Option<usize>, options: &DriftOptions) -> DriftReport {
    let references = values(&chain(None));
    drift(&chain(wrong), &inputs(), &references, ort(), options, None).unwrap()
}

#[test]
fn an_export_that_computes_the_same_is_proved_operator_by_operator() {
    let report = compared(None, &DriftOptions::default());
    assert_eq!((report.verdict, report.origin, report.drift_origin), (Verdict::Proved, None, None));
    assert_eq!(report.rows.len(), STEPS);
    assert!(report.rows.iter().all(|row| row.introduced.max_abs == 0.0));
}

#[test]
fn a_fault_is_introduced_once_and_accumulates_afterwards() {
    for wrong in 0..STEPS {
        let report = compared(Some(wrong), &DriftOptions::default());
        let name = format!("v{wrong}");
        assert_eq!(report.origin.as_deref(), Some(name.as_str()));
        let guilty: Vec<&str> = report
            .rows
            .iter()
            .filter(|row| row.verdict == Verdict::Disproved)
            .map(|row| row.name.as_str())
            .collect();
        assert_eq!(guilty, [name.as_str()], "only one operator is wrong");
        let inherited = &report.rows[wrong + 1..];
        assert!(inherited.iter().all(|row| row.accumulated.max_abs > 0.0));
        assert_eq!(report.drift_origin.as_deref(), Some(name.as_str()));
    }
}

#[test]
fn less_memory_means_more_runs_and_the_same_answer() {
    let whole = compared(Some(2), &DriftOptions::default());
    for memory_bytes in [1, 32, 64, 100] {
        let options = DriftOptions { memory_bytes, ..DriftOptions::default() };
        assert_eq!(compared(Some(2), &options), whole, "{memory_bytes} bytes");
    }
}

#[test]
fn values_without_counterpart_are_listed_with_what_they_are_part_of() {
    let report = compared(None, &DriftOptions::default());
    let listed: Vec<(&str, Option<&str>)> =
        report.unmapped.iter().map(|one| (one.name.as_str(), one.part_of.as_deref())).collect();
    assert_eq!(listed[..2], [("p0", Some("v0")), ("p1", Some("v1"))]);
    assert_eq!(listed.len(), STEPS);
}

#[test]
fn nothing_to_compare_is_not_no_drift() {
    let options = DriftOptions::default();
    let report = drift(&chain(None), &inputs(), &Values::new(), ort(), &options, None).unwrap();
    assert_eq!(report.verdict, Verdict::NotComparable);
    assert_eq!(report.reasons[0].code, codes::COMPARE_NOTHING);
}

#[test]
fn an_output_without_counterpart_keeps_an_export_from_being_proved() {
    let mut references = values(&chain(None));
    references.remove("v5");
    let options = DriftOptions::default();
    let report = drift(&chain(None), &inputs(), &references, ort(), &options, None).unwrap();
    assert_eq!(report.verdict, Verdict::NotComparable);
    assert_eq!(report.reasons[0].code, codes::COMPARE_MISSING);
}

#[test]
fn another_shape_or_dtype_is_a_fault_of_that_operator() {
    let references = values(&chain(None));
    let options = DriftOptions::default();
    for other in [
        Tensor::zeros(DType::F32, [8_usize, 1].into()),
        Tensor::zeros(DType::F64, [1_usize, 8].into()),
    ] {
        let references = replaced(&references, "v3", &other);
        let report = drift(&chain(None), &inputs(), &references, ort(), &options, None).unwrap();
        assert_eq!(report.verdict, Verdict::Disproved);
        assert_eq!(report.origin.as_deref(), Some("v3"));
        assert!(report.rows[3].problem.is_some());
        let others = report.rows.iter().filter(|row| row.name != "v3");
        assert!(
            others.clone().count() == 5 && others.clone().all(|row| row.introduced.max_abs == 0.0)
        );
    }
}

#[test]
fn nan_is_never_proved() {
    let references = values(&chain(None));
    let options = DriftOptions::default();
    let nan = Tensor::from_slice([1, 8], &[f32::NAN; 8]).unwrap();
    let only_there = replaced(&references, "v2", &nan);
    let report = drift(&chain(None), &inputs(), &only_there, ort(), &options, None).unwrap();
    assert_eq!(report.origin.as_deref(), Some("v2"), "the export has numbers there");

    let everywhere: Values =
        references.keys().map(|name| (name.clone(), held(&nan.view()))).collect();
    let inputs = BTreeMap::from([("x".to_owned(), held(&nan.view()))]);
    let report = drift(&chain(None), &inputs, &everywhere, ort(), &options, None).unwrap();
    assert_eq!((report.verdict, report.origin), (Verdict::NotComparable, None));
}

#[test]
fn float64_says_how_wrong_each_side_is() {
    let references = values(&chain(None));
    let (options, mut kept) = (DriftOptions::default(), Values::new());
    let wrong = chain(Some(1));
    drift(&wrong, &inputs(), &references, ort(), &options, Some(&mut kept)).unwrap();
    // Truth: tanh in float64 of the very products.
    let truth = |step: usize| -> Tensor {
        let mut values: Vec<f64> = (0..8_u8).map(|i| f64::from(i) / 4.0 - 1.0).collect();
        for _ in 0..=step {
            for (i, value) in (0..8_u8).zip(&mut values) {
                *value = (*value * f64::from(0.9 + f32::from(i) / 40.0)).tanh();
            }
        }
        Tensor::from_slice([1, 8], &values).unwrap()
    };
    let of = |step: usize| {
        let name = format!("v{step}");
        let found = against_float64(&truth(step).view(), &references[&name], &kept[&name]);
        found.unwrap().unwrap()
    };
    assert!(of(0).candidate < 1e-6 && of(0).reference < 1e-6);
    assert!(of(1).candidate > 1e-5 && of(1).reference < 1e-6);
    let narrow = Tensor::zeros(DType::F32, [1_usize, 8].into());
    let none = against_float64(&narrow.view(), &references["v0"], &kept["v0"]).unwrap();
    assert_eq!(none, None, "float32 is not float64");
}

/// A value whose memory tells by its count whether it is still held.
fn counted(value: &SharedTensor) -> (SharedTensor, Arc<SharedTensor>) {
    let owner = Arc::new(value.clone());
    let (dtype, shape, start) = (value.dtype(), value.shape().clone(), value.as_mut_ptr());
    // SAFETY: the owner holds the memory, which nobody writes.
    let over = unsafe { SharedTensor::over(dtype, shape, start, Arc::clone(&owner)) };
    (over, owner)
}

#[test]
fn values_are_compared_as_they_come_in_whatever_order() {
    let references = values(&chain(None));
    let (model, inputs) = (chain(Some(2)), inputs());
    let whole = compared(Some(2), &DriftOptions::default());
    for memory_bytes in [1, 64, 1000] {
        let options = DriftOptions { memory_bytes, ..DriftOptions::default() };
        let against = Against { model: &model, inputs: &inputs, engine: ort(), options: &options };
        for order in [["v0", "v1", "v2", "v3", "v4", "v5"], ["v3", "v0", "v5", "v1", "v2", "v4"]] {
            let mut stream = Stream::new(&model, &|_| true, &options).unwrap();
            for name in order {
                stream.reference(name, references[name].clone(), None, &options).unwrap();
                stream.advance(&against).unwrap();
            }
            assert_eq!(stream.finish(&against).unwrap(), whole, "{memory_bytes} bytes, {order:?}");
        }
    }
}

/// `a = tanh(x)`, `b = tanh(a)`, `c = tanh(b)`, `y = a + c`.
fn bridged() -> Model {
    let graph = GraphBuilder::new("bridged", 20).input("x", DType::F32, [1_usize, 8]);
    let graph = graph
        .node(Node::new("Tanh", ["x"], ["a"]))
        .node(Node::new("Tanh", ["a"], ["b"]))
        .node(Node::new("Tanh", ["b"], ["c"]))
        .node(Node::new("Add", ["a", "c"], ["y"]));
    let outputs = ["a", "b", "c", "y"].into_iter();
    outputs
        .fold(graph, |graph, name| graph.output(name, DType::F32, [1_usize, 8]))
        .finish()
        .unwrap()
}

#[test]
fn a_value_is_held_until_nothing_reads_it_any_more() {
    let (model, inputs) = (bridged(), inputs());
    let options = DriftOptions { memory_bytes: 1, ..DriftOptions::default() };
    let like = held(&input().view());
    let placeholders: Values =
        ["a", "b", "c", "y"].map(|name| (name.to_owned(), like.clone())).into();
    let mut references = Values::new();
    drift(&model, &inputs, &placeholders, ort(), &options, Some(&mut references)).unwrap();

    let against = Against { model: &model, inputs: &inputs, engine: ort(), options: &options };
    let mut stream = Stream::new(&model, &|_| true, &options).unwrap();
    let mut owners = Vec::new();
    for (name, held) in [
        ("a", &["a"][..]),
        ("b", &["a", "b"]),
        ("c", &["a", "b", "c"]),
        // `b` was compared when `c` came, and `c` when `y` came.
        ("y", &["a", "c", "y"]),
    ] {
        let (value, owner) = counted(&references[name]);
        owners.push((name, owner));
        stream.reference(name, value, None, &options).unwrap();
        stream.advance(&against).unwrap();
        let still = owners.iter().filter(|(_, owner)| Arc::strong_count(owner) > 1);
        assert_eq!(still.map(|(name, _)| *name).collect::<Vec<_>>(), held, "after {name}");
    }
    let report = stream.finish(&against).unwrap();
    assert!(owners.iter().all(|(_, owner)| Arc::strong_count(owner) == 1));
    assert_eq!(report.verdict, Verdict::Proved);
    assert!(report.rows.iter().all(|row| row.accumulated.max_abs == 0.0));
}

#[test]
fn what_an_export_cannot_compute_hides_nothing_behind_it_in_little_memory_either() {
    let shape = Tensor::from_slice([2], &[8_i64, 1]).unwrap();
    // `b` is said to be what the original has there, and is not.
    let model = GraphBuilder::new("lies", 20)
        .input("x", DType::F32, [1_usize, 8])
        .initializer("shape", &shape)
        .node(Node::new("Tanh", ["x"], ["a"]))
        .node(Node::new("Reshape", ["a", "shape"], ["b"]))
        .node(Node::new("Reshape", ["b", "back"], ["c"]))
        .initializer("back", &Tensor::from_slice([2], &[1_i64, 8]).unwrap())
        .node(Node::new("Tanh", ["c"], ["y"]));
    let names = ["a", "b", "c", "y"];
    let model = names
        .into_iter()
        .fold(model, |graph, name| graph.output(name, DType::F32, [1_usize, 8]))
        .finish()
        .unwrap();
    let references: Values = names.map(|name| (name.to_owned(), held(&input().view()))).into();
    let of = |memory_bytes: usize| {
        let options = DriftOptions { memory_bytes, ..DriftOptions::default() };
        drift(&model, &inputs(), &references, ort(), &options, None).unwrap()
    };
    let whole = of(1 << 20);
    assert!(whole.rows[1].problem.is_some() && whole.rows[3].accumulated.max_abs.is_finite());
    assert_eq!(of(1), whole);
}
