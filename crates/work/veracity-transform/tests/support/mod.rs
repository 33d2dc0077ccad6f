//! What the tests of all passes share: one pass run alone, graphs as lines, and the answers of an
//! engine before and after.
#![allow(dead_code, clippy::allow_attributes, reason = "not every test file uses all of it")]

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use veracity_engine::{
    Engine, ModelBytes, ModelFormat, ModelSource, OptimizationLevel, SessionOptions,
};
use veracity_engine_ort::{OrtEngine, Search};
use veracity_onnx::{Dim, Graph, Model};
use veracity_tensor::{DType, Shape, Tensor};
use veracity_transform::{
    Class, Limits, LogOptions, Pass, Pipeline, Transformed, Trusting, record, replay, reverse,
    transform,
};

/// ONNX Runtime of the project's Python environment.
pub(crate) fn ort() -> &'static OrtEngine {
    static ENGINE: OnceLock<OrtEngine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv/lib");
        let pythons = std::fs::read_dir(lib).into_iter().flatten().flatten();
        let site_packages: Vec<PathBuf> =
            pythons.map(|python| python.path().join("site-packages")).collect();
        let search = Search { library: None, site_packages };
        OrtEngine::find(&search).expect("no ONNX Runtime: run `make setup` first")
    })
}

/// Runs passes over a model, without a judge.
pub(crate) fn run(passes: Vec<Box<dyn Pass>>, model: &Model) -> Transformed {
    let graph = Graph::new(model.clone()).unwrap();
    transform(graph, &Pipeline::new(passes), Limits::default(), &mut Trusting).unwrap()
}

/// The nodes of a graph as lines: `y = Mul(b, w)`.
pub(crate) fn lines(graph: &Graph) -> Vec<String> {
    let line = |node: &veracity_onnx::Node| {
        format!("{} = {}({})", node.outputs().join(", "), node.op_type(), node.inputs().join(", "))
    };
    graph.nodes().map(|(_, node)| line(node)).collect()
}

/// Runs a pass alone and checks what holds for every pass: it finds something, a second run finds
/// nothing, the same model gives the same bytes, and the answers are what its class promises on
/// normal, wide, zero and special inputs; its log replays to the same bytes and leads back to the
/// original's. Gives the graph.
pub(crate) fn holds<P: Pass + Clone + 'static>(pass: &P, model: &Model) -> Graph {
    let boxed = || -> Vec<Box<dyn Pass>> { vec![Box::new(pass.clone())] };
    let once = run(boxed(), model);
    assert!(!once.rewrites.is_empty(), "{} finds nothing in {model:?}", pass.name());
    let changed = once.graph.to_model().unwrap();
    let twice = run(boxed(), &changed);
    assert_eq!(twice.rewrites.len(), 0, "{}: a second run finds something", pass.name());
    let again = run(boxed(), model).graph.to_model().unwrap();
    assert_eq!(again.to_bytes().unwrap(), changed.to_bytes().unwrap(), "not the same bytes");
    same_answers(model, &changed, pass.class());
    replays_and_reverses(model, &Pipeline::new(boxed()), &once);
    once.graph
}

/// The log of what was done gives the same bytes again, with notes and without, and the original's
/// bytes back, also after it was JSON.
pub(crate) fn replays_and_reverses(model: &Model, pipeline: &Pipeline, done: &Transformed) {
    let bytes = |model: &Model| model.to_bytes().unwrap();
    for provenance in [false, true] {
        let made = record(model, pipeline, done, LogOptions { provenance }).unwrap();
        let json = serde_json::to_string(&made.log).unwrap();
        let log = serde_json::from_str(&json).unwrap();
        let again = replay(model, &log, &made.elements).unwrap();
        assert!(bytes(&again) == bytes(&made.model), "the log does not replay");
        let back = reverse(&made.model, &log, &made.elements).unwrap();
        assert!(bytes(&back) == bytes(model), "the log does not lead back");
        if !provenance {
            let plain = done.graph.to_model().unwrap();
            assert!(bytes(&made.model) == bytes(&plain), "a log changes the result");
        }
    }
}

/// Runs a pass alone and checks that it changes nothing and says why; `""` when it is to see no
/// match at all.
pub(crate) fn left_alone<P: Pass + 'static>(pass: P, model: &Model, reason: &str) {
    let name = pass.name();
    let done = run(vec![Box::new(pass)], model);
    assert!(done.rewrites.is_empty(), "{name} changes {:?}", lines(&done.graph));
    let declined = &done.declined[name];
    if reason.is_empty() {
        assert!(declined.is_empty(), "{declined:?}");
    } else {
        let said = declined.iter().any(|one| one.reason.contains(reason));
        assert!(said, "{name} should say {reason:?}: {declined:?}");
    }
}

/// Compares the answers of two models on several kinds of inputs.
pub(crate) fn same_answers(before: &Model, after: &Model, class: Class) {
    for kind in KINDS {
        let inputs = inputs(before, *kind);
        let (one, two) = (answers(before, &inputs), answers(after, &inputs));
        for ((name, one), (_, two)) in one.iter().zip(&two) {
            assert_eq!((one.dtype(), one.shape()), (two.dtype(), two.shape()), "{name} {kind:?}");
            let same = match class {
                Class::ExactBits => one.bytes() == two.bytes() || both_nan(one, two),
                _ => near(one, two),
            };
            assert!(same, "{name} on {kind:?} inputs:\n{one:?}\n{two:?}");
        }
    }
}

/// Kinds of inputs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Normal,
    Wide,
    Zero,
    Special,
}

pub(crate) const KINDS: &[Kind] = &[Kind::Normal, Kind::Wide, Kind::Zero, Kind::Special];

/// Inputs for a model, sizes without a number being 2.
pub(crate) fn inputs(model: &Model, kind: Kind) -> Vec<(String, Tensor)> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from((state >> 40) as u32) / f64::from(1_u32 << 24) * 4.0 - 2.0
    };
    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.0, -1.0, 1e-40];
    let mut made = Vec::new();
    for info in model.inputs() {
        let size = |dim: &Dim| match dim {
            Dim::Fixed(size) => *size,
            _ => 2,
        };
        let dims: Vec<usize> = info.dims.unwrap().iter().map(size).collect();
        let shape = Shape::new(dims).unwrap();
        let elements: Vec<f64> = (0..shape.elements())
            .map(|index| match kind {
                Kind::Normal => next(),
                Kind::Wide => next() * 10_f64.powf(next() * 1.5),
                Kind::Zero => 0.0,
                Kind::Special => special[index % special.len()],
            })
            .collect();
        made.push((info.name, tensor(info.dtype.unwrap(), shape, &elements)));
    }
    made
}

/// What a model answers, run as it stands, by output.
pub(crate) fn answers(model: &Model, inputs: &[(String, Tensor)]) -> Vec<(String, Tensor)> {
    try_answers(model, inputs).unwrap()
}

/// What a model answers, or why it cannot be run.
pub(crate) fn try_answers(
    model: &Model,
    inputs: &[(String, Tensor)],
) -> veracity_diag::Result<Vec<(String, Tensor)>> {
    let bytes = ModelBytes::Memory(Arc::from(model.to_bytes().unwrap()));
    answers_of(model, bytes, inputs)
}

/// What a file answers, run as it stands, by output.
pub(crate) fn file_answers(path: &Path, inputs: &[(String, Tensor)]) -> Vec<(String, Tensor)> {
    answers_of(&Model::read(path).unwrap(), ModelBytes::File(path.to_owned()), inputs).unwrap()
}

fn answers_of(
    model: &Model,
    bytes: ModelBytes,
    inputs: &[(String, Tensor)],
) -> veracity_diag::Result<Vec<(String, Tensor)>> {
    let source = ModelSource { format: ModelFormat::Onnx, bytes };
    let options =
        SessionOptions { optimization: OptimizationLevel::None, ..SessionOptions::default() };
    let given: Vec<(&str, &Tensor)> =
        inputs.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let names: Vec<String> = model.outputs().into_iter().map(|output| output.name).collect();
    let wanted: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = ort().evaluate(&source, &given, &wanted, &options)?;
    Ok(names.into_iter().zip(found.into_iter().map(Option::unwrap)).collect())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "made-up numbers")]
fn tensor(dtype: DType, shape: Shape, elements: &[f64]) -> Tensor {
    let bytes: Vec<u8> = match dtype {
        DType::F32 => elements.iter().flat_map(|one| (*one as f32).to_le_bytes()).collect(),
        DType::F64 => elements.iter().flat_map(|one| one.to_le_bytes()).collect(),
        DType::F16 => {
            elements.iter().flat_map(|one| half::f16::from_f64(*one).to_le_bytes()).collect()
        }
        DType::I64 => elements.iter().flat_map(|one| (*one as i64).to_le_bytes()).collect(),
        DType::I32 => elements.iter().flat_map(|one| (*one as i32).to_le_bytes()).collect(),
        DType::U8 => elements.iter().map(|one| one.abs() as u8).collect(),
        DType::Bool => elements.iter().map(|one| u8::from(*one > 0.0)).collect(),
        other => panic!("no inputs of type {other} are made here"),
    };
    Tensor::from_bytes(dtype, shape, &bytes).unwrap()
}

fn both_nan(one: &Tensor, two: &Tensor) -> bool {
    let same =
        |one: &f32, two: &f32| one.to_bits() == two.to_bits() || (one.is_nan() && two.is_nan());
    match (one.as_slice::<f32>(), two.as_slice::<f32>()) {
        (Some(one), Some(two)) => one.iter().zip(two).all(|(one, two)| same(one, two)),
        _ => false,
    }
}

/// Within a few roundings of the largest finite element; what is not finite must be the same.
fn near(one: &Tensor, two: &Tensor) -> bool {
    let (Some((one, rounding)), Some((two, _))) = (widened(one), widened(two)) else {
        return one.bytes() == two.bytes();
    };
    let finite = one.iter().filter(|value| value.is_finite());
    let largest = finite.fold(0.0_f64, |most, value| most.max(value.abs()));
    one.iter().zip(&two).all(|(one, two)| {
        one.total_cmp(two).is_eq()
            || (one.is_nan() && two.is_nan())
            || (one - two).abs() <= 64.0 * rounding * largest
    })
}

/// The elements of a float tensor as float64, and half the distance from 1 to the next number.
fn widened(tensor: &Tensor) -> Option<(Vec<f64>, f64)> {
    Some(match tensor.dtype() {
        DType::F32 => {
            let all = tensor.as_slice::<f32>()?.iter();
            (all.map(|&one| one.into()).collect(), 2.0_f64.powi(-24))
        }
        DType::F64 => (tensor.as_slice::<f64>()?.to_vec(), 2.0_f64.powi(-53)),
        DType::F16 => {
            let all = tensor.as_slice::<half::f16>()?.iter();
            (all.map(|one| one.to_f64()).collect(), 2.0_f64.powi(-11))
        }
        _ => return None,
    })
}
