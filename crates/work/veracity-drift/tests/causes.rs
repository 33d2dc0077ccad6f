//! What makes an operator wrong is found by experiment, and only by experiment.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;
mod faulty;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use common::ort;
use faulty::Faulty;
use veracity_diag::codes;
use veracity_drift::causes::{EXPLAINED_ROWS, Evidence, Original, Side, explain, needs};
use veracity_drift::{DriftOptions, Values, drift, held, repro};
use veracity_engine::{Engine, OptimizationLevel, SessionOptions};
use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_results::{AgainstFloat64, Cause, CauseKind, DriftReport, Verdict};
use veracity_tensor::{DType, Tensor};

/// Two axes, the second one twice as long.
const SIZES: [usize; 2] = [2, 4];

fn floats<const N: usize>(shape: [usize; N], step: f32) -> Tensor {
    let count: usize = shape.iter().product();
    let mut next = -1.0;
    let values: Vec<f32> = (0..count)
        .map(|_| {
            next += step;
            (next * 7.3).sin()
        })
        .collect();
    Tensor::from_slice(shape, &values).unwrap()
}

fn graph() -> GraphBuilder {
    GraphBuilder::new("graph", 20).input("x", DType::F32, SIZES)
}

/// A graph that ends in the value `y`.
fn finished(graph: GraphBuilder) -> Model {
    graph.output("y", DType::F32, SIZES).finish().unwrap()
}

fn one(node: Node) -> Model {
    finished(graph().node(node))
}

fn inputs() -> Values {
    BTreeMap::from([("x".to_owned(), held(&floats(SIZES, 0.37).view()))])
}

/// What the original gives at `y`.
fn reference(original: &Model) -> Values {
    let like = held(&Tensor::zeros(DType::F32, SIZES.into()).view());
    let placeholder = BTreeMap::from([("y".to_owned(), like)]);
    let mut kept = Values::new();
    let options = DriftOptions::default();
    drift(original, &inputs(), &placeholder, ort(), &options, Some(&mut kept)).unwrap();
    kept
}

/// Everything around an export and its original.
struct Case {
    export: Model,
    original: Option<Model>,
    references: Values,
    options: DriftOptions,
    named: Values,
}

impl Case {
    fn new(original: Model, export: Model) -> Self {
        let references = reference(&original);
        let options = DriftOptions::default();
        Self { export, original: Some(original), references, options, named: Values::new() }
    }

    fn report(&self, engine: &dyn Engine) -> DriftReport {
        drift(&self.export, &inputs(), &self.references, engine, &self.options, None).unwrap()
    }

    fn with_evidence<R>(
        &self,
        engine: &dyn Engine,
        second: Option<&dyn Engine>,
        work: impl FnOnce(&Evidence<'_>) -> R,
    ) -> R {
        let (none, names, inputs) = (BTreeSet::new(), BTreeMap::new(), inputs());
        let side = |model| Side { model, inputs: &inputs, weights: &none };
        let original = self.original.as_ref();
        work(&Evidence {
            export: side(&self.export),
            references: &self.references,
            original: original.map(|model| Original {
                side: side(model),
                names: &names,
                given: None,
            }),
            named: &self.named,
            engine,
            second,
            session: &self.options.session,
        })
    }

    fn cause_on(&self, engine: &dyn Engine, second: Option<&dyn Engine>) -> Cause {
        let mut report = self.report(engine);
        assert_eq!(report.verdict, Verdict::Disproved);
        self.with_evidence(engine, second, |evidence| {
            explain(&mut report, evidence, EXPLAINED_ROWS).unwrap();
        });
        report.rows.remove(0).cause.unwrap()
    }

    fn cause(&self) -> Cause {
        self.cause_on(ort(), None)
    }
}

/// `y = x * scale`, where the scale is rounded in some way before.
fn through(steps: &[Node], constants: &[(&str, Tensor)]) -> Model {
    let mut made = graph();
    for (name, tensor) in constants {
        made = made.initializer(*name, tensor);
    }
    finished(steps.iter().cloned().fold(made, GraphBuilder::node))
}

fn gemm(weight: &Tensor, trans_b: i64) -> Model {
    let node = Node::new("Gemm", ["x", "w"], ["y"]).int("transB", trans_b);
    through(&[node], &[("w", weight.clone())])
}

fn scaled(tensor: &Tensor, factor: f32) -> Tensor {
    let values: Vec<f32> =
        tensor.as_slice::<f32>().unwrap().iter().map(|value| value * factor).collect();
    Tensor::from_slice(tensor.shape().clone(), &values).unwrap()
}

fn turned(tensor: &Tensor) -> Tensor {
    let [rows, columns] = tensor.shape().dims() else { panic!("not a matrix") };
    let from = tensor.as_slice::<f32>().unwrap();
    let values: Vec<f32> =
        (0..rows * columns).map(|flat| from[(flat % rows) * columns + flat / rows]).collect();
    Tensor::from_slice([*columns, *rows], &values).unwrap()
}

#[test]
fn what_makes_the_error_vanish_is_the_cause() {
    let weight = floats([4, 4], 0.11);
    let int8 = [
        Node::new("QuantizeLinear", ["x", "s"], ["q"]),
        Node::new("DequantizeLinear", ["q", "s"], ["d"]),
        Node::new("Tanh", ["d"], ["y"]),
    ];
    let half = [
        Node::new("Cast", ["x"], ["h"]).int("to", 10),
        Node::new("Cast", ["h"], ["f"]).int("to", 1),
        Node::new("Tanh", ["f"], ["y"]),
    ];
    let scale = Tensor::from_slice([0_usize; 0], &[0.05_f32]).unwrap();
    let flipped = [
        Node::new("Relu", ["x"], ["r"]),
        Node::new("Transpose", ["r"], ["t"]),
        Node::new("Reshape", ["t", "sizes"], ["y"]),
    ];
    let sizes = Tensor::from_slice([2], &[2_i64, 4]).unwrap();
    let power = |by: f32| {
        let exponent = Tensor::from_slice([0_usize; 0], &[by]).unwrap();
        through(&[Node::new("Pow", ["x", "p"], ["y"])], &[("p", exponent)])
    };
    let cases = [
        (
            "weight",
            gemm(&weight, 0),
            gemm(&scaled(&weight, 1.001), 0),
            CauseKind::WeightBitMismatch,
        ),
        (
            "stored transposed",
            gemm(&weight, 0),
            gemm(&turned(&scaled(&weight, 1.001)), 1),
            CauseKind::WeightBitMismatch,
        ),
        ("transposed", gemm(&weight, 0), gemm(&weight, 1), CauseKind::AttributeMismatch),
        (
            "axis",
            one(Node::new("Softmax", ["x"], ["y"]).int("axis", 1)),
            one(Node::new("Softmax", ["x"], ["y"]).int("axis", 0)),
            CauseKind::AttributeMismatch,
        ),
        ("exponent", power(2.0), power(4.0), CauseKind::AttributeMismatch),
        (
            "operator",
            one(Node::new("Tanh", ["x"], ["y"])),
            one(Node::new("Sin", ["x"], ["y"])),
            CauseKind::OperatorMismatch,
        ),
        (
            "order",
            one(Node::new("Relu", ["x"], ["y"])),
            through(&flipped, &[("sizes", sizes)]),
            CauseKind::OperatorMismatch,
        ),
        (
            "int8",
            one(Node::new("Tanh", ["x"], ["y"])),
            through(&int8, &[("s", scale)]),
            CauseKind::PrecisionLoss,
        ),
        (
            "half",
            one(Node::new("Tanh", ["x"], ["y"])),
            through(&half, &[]),
            CauseKind::PrecisionLoss,
        ),
    ];
    for (what, original, export, expected) in cases {
        let cause = Case::new(original, export).cause();
        assert_eq!(cause.kind, expected, "{what}: {cause:?}");
    }
}

#[test]
fn another_order_of_axes_is_found_through_another_shape() {
    let original = one(Node::new("Relu", ["x"], ["y"]));
    let steps = [Node::new("Relu", ["x"], ["r"]), Node::new("Transpose", ["r"], ["y"])];
    let export = steps.into_iter().fold(graph(), GraphBuilder::node);
    let export = export.output("y", DType::F32, [4_usize, 2]).finish().unwrap();
    let cause = Case::new(original, export).cause();
    assert_eq!(cause.kind, CauseKind::LayoutMismatch);
    assert!(cause.detail.contains("[1, 0]"), "{}", cause.detail);
}

#[test]
fn a_value_in_a_narrower_type_is_a_loss_of_precision() {
    let weight = floats([4, 4], 0.11);
    let halves: Vec<half::f16> =
        weight.as_slice::<f32>().unwrap().iter().map(|&value| half::f16::from_f32(value)).collect();
    let halves = Tensor::from_slice([4, 4], &halves).unwrap();
    let export = graph()
        .initializer("w", &halves)
        .node(Node::new("Cast", ["x"], ["h"]).int("to", 10))
        .node(Node::new("Gemm", ["h", "w"], ["y"]))
        .output("y", DType::F16, SIZES)
        .finish()
        .unwrap();
    let case = Case::new(gemm(&weight, 0), export);
    assert!(case.report(ort()).rows[0].problem.is_some(), "the types differ");
    let found = case.cause();
    assert_eq!(found.kind, CauseKind::PrecisionLoss, "{found:?}");
    assert!(found.detail.contains("the original's weights"), "{}", found.detail);
}

/// A convolution over `[1, 2, 4]`, alone or with a batch norm behind it.
#[test]
fn a_weight_that_a_batch_norm_was_folded_into_is_found() {
    let column = |step: f32| {
        let mut column = floats([2], step);
        let values = column.as_mut_slice::<f32>().unwrap();
        for value in values.iter_mut() {
            *value = value.abs() + 0.5;
        }
        column
    };
    let (scale, shift, mean, variance) = (column(0.3), column(0.4), column(0.5), column(0.6));
    let weight = floats([2, 2, 1], 0.21);
    let spread = |graph: GraphBuilder| {
        graph
            .initializer("sizes", &Tensor::from_slice([3], &[1_i64, 2, 4]).unwrap())
            .initializer("back", &Tensor::from_slice([2], &[2_i64, 4]).unwrap())
            .node(Node::new("Reshape", ["x", "sizes"], ["image"]))
    };
    let original = spread(graph())
        .initializer("w", &weight)
        .initializer("scale", &scale)
        .initializer("shift", &shift)
        .initializer("mean", &mean)
        .initializer("variance", &variance)
        .node(Node::new("Conv", ["image", "w"], ["c"]))
        .node(Node::new("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]))
        .node(Node::new("Reshape", ["n", "back"], ["y"]));
    let at = |tensor: &Tensor, i: usize| tensor.as_slice::<f32>().unwrap()[i];
    let factor = |i: usize| at(&scale, i) / (at(&variance, i) + 1e-5).sqrt();
    let folded: Vec<f32> = (0..4).map(|i| at(&weight, i) * factor(i / 2)).collect();
    let bias: Vec<f32> = (0..2).map(|i| at(&shift, i) - at(&mean, i) * factor(i)).collect();
    let export = |by: f32| {
        let folded: Vec<f32> = folded.iter().map(|value| value * by).collect();
        finished(
            spread(graph())
                .initializer("folded", &Tensor::from_slice([2, 2, 1], &folded).unwrap())
                .initializer("bias", &Tensor::from_slice([2], &bias).unwrap())
                .node(Node::new("Conv", ["image", "folded", "bias"], ["n"]))
                .node(Node::new("Reshape", ["n", "back"], ["y"])),
        )
    };
    let original = finished(original);
    let right = Case::new(original.clone(), export(1.0));
    assert_eq!(right.report(ort()).verdict, Verdict::Proved, "the fold is right");
    let cause = Case::new(original, export(1.001)).cause();
    assert_eq!(cause.kind, CauseKind::WeightBitMismatch, "{cause:?}");
    assert!(cause.detail.starts_with("`folded` differs"), "{}", cause.detail);
}

#[test]
fn without_the_originals_graph_its_weights_are_enough() {
    let weight = floats([4, 4], 0.11);
    let mut case = Case::new(gemm(&weight, 0), gemm(&scaled(&weight, 1.01), 0));
    case.original = None;
    assert_eq!(case.cause().kind, CauseKind::Unknown, "nothing is known about the weight");
    case.named.insert("w".to_owned(), held(&weight.view()));
    assert_eq!(case.cause().kind, CauseKind::WeightBitMismatch);
}

fn tanh() -> Case {
    let tanh = || one(Node::new("Tanh", ["x"], ["y"]));
    Case::new(tanh(), tanh())
}

#[test]
fn an_operator_that_does_not_repeat_itself_is_told() {
    #[expect(clippy::cast_precision_loss, reason = "a few runs")]
    let unstable = Faulty(|_, runs| 0.1 + runs as f32);
    assert_eq!(tanh().cause_on(&unstable, None).kind, CauseKind::Nondeterminism);
    let threaded = Faulty(|options, _| if options.threads.get() > 1 { 0.0 } else { 0.1 });
    let cause = tanh().cause_on(&threaded, None);
    assert_eq!(cause.kind, CauseKind::Nondeterminism);
    assert!(cause.detail.contains("with 2 threads"), "{}", cause.detail);
}

#[test]
fn an_operator_that_is_right_alone_is_not_to_blame_itself() {
    // Wrong while the comparison is made, right afterwards.
    let report = tanh().report(&Faulty(|_, _| 0.1));
    for (level, expected) in [
        (OptimizationLevel::None, CauseKind::Nondeterminism),
        (OptimizationLevel::All, CauseKind::Fusion),
    ] {
        let (mut case, mut report) = (tanh(), report.clone());
        case.options.session.optimization = level;
        case.with_evidence(ort(), None, |evidence| explain(&mut report, evidence, 1).unwrap());
        assert_eq!(report.rows[0].cause.as_ref().unwrap().kind, expected);
    }
}

#[test]
fn what_the_engine_makes_of_the_graph_is_told() {
    let rewriting = Faulty(|options, _| match options.optimization {
        OptimizationLevel::None => 0.0,
        _ => 0.1,
    });
    let mut case = tanh();
    case.options.session.optimization = OptimizationLevel::All;
    let found = case.cause_on(&rewriting, None);
    assert_eq!(found.kind, CauseKind::Fusion);
    assert!(found.detail.contains("level All"), "{}", found.detail);
}

#[test]
fn a_kernel_is_wrong_when_another_engine_and_float64_say_so() {
    let wrong = Faulty(|_, _| 0.1);
    assert_eq!(tanh().cause_on(&wrong, Some(ort())).kind, CauseKind::OpImplementation);
    let alone = tanh().cause_on(&wrong, None);
    assert_eq!(alone.kind, CauseKind::Unknown, "there is nobody to agree with the original");

    let case = tanh();
    let mut report = case.report(&wrong);
    report.rows[0].float64 = Some(AgainstFloat64 { reference: 0.2, candidate: 0.1 });
    case.with_evidence(&wrong, Some(ort()), |evidence| {
        explain(&mut report, evidence, EXPLAINED_ROWS).unwrap();
    });
    let found = report.rows[0].cause.clone().unwrap();
    assert_eq!(found.kind, CauseKind::Unknown, "float64 is nearer to the export");
    assert!(found.ruled_out.iter().any(|line| line.contains("float64")), "{found:?}");
}

#[test]
fn what_nothing_explains_lists_what_was_ruled_out() {
    let mut case = tanh();
    let other = floats(SIZES, 0.9);
    case.references.insert("y".to_owned(), held(&other.view()));
    let found = case.cause_on(ort(), Some(&Faulty(|_, _| 0.0)));
    assert_eq!(found.kind, CauseKind::Unknown);
    let tried: Vec<&str> =
        found.ruled_out.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(tried, ["nondeterminism", "layout", "attributes", "operators", "kernel"]);
}

#[test]
fn only_the_first_rows_are_looked_into_and_only_wrong_ones() {
    let weight = floats([4, 4], 0.11);
    let case = Case::new(gemm(&weight, 0), gemm(&scaled(&weight, 1.01), 0));
    let mut report = case.report(ort());
    case.with_evidence(ort(), None, |evidence| {
        assert_eq!(needs(&report, evidence, 1).unwrap().named, BTreeSet::from(["w".to_owned()]));
        assert!(needs(&report, evidence, 0).unwrap().named.is_empty());
        explain(&mut report, evidence, 0).unwrap();
    });
    let found = report.rows[0].cause.clone().unwrap();
    assert!(found.detail.contains("not looked into"), "{}", found.detail);

    let right = Case::new(gemm(&weight, 0), gemm(&weight, 0));
    let mut report = right.report(ort());
    right.with_evidence(ort(), None, |evidence| explain(&mut report, evidence, 8).unwrap());
    assert_eq!(report.rows[0].cause, None);
}

#[test]
fn a_repro_is_whole_and_shows_what_it_showed() {
    let weight = floats([4, 4], 0.11);
    let mut case = Case::new(gemm(&weight, 0), gemm(&scaled(&weight, 1.01), 0));
    let threads = NonZeroUsize::new(2).unwrap();
    case.options.session = SessionOptions { threads, ..case.options.session };
    let report = case.report(ort());
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("repro");
    let write = |row: Option<&str>| {
        case.with_evidence(ort(), None, |evidence| repro::write(&target, &report, evidence, row))
    };
    assert_eq!(write(None).unwrap().as_deref(), Some("y"));
    let record = repro::read(&target).unwrap();
    assert_eq!((record.value.as_str(), record.threads), ("y", 2));
    let again = repro::run(&target, ort()).unwrap();
    assert!(again.shows && again.repeats, "{again:?}");
    let elsewhere = repro::run(&target, &Faulty(|_, _| 0.5)).unwrap();
    assert!(elsewhere.shows && !elsewhere.repeats, "{elsewhere:?}");

    let refused = write(Some("nobody")).unwrap_err();
    assert_eq!(refused.first_error().code, codes::REPRO_ROW_UNKNOWN);
    std::fs::write(target.join("mine.txt"), "mine").unwrap();
    assert_eq!(write(None).unwrap_err().first_error().code, codes::REPRO_FOLDER_TAKEN);
    assert!(target.join("mine.txt").exists());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left behind");

    let forgotten = Case { references: Values::new(), ..case };
    let refused = forgotten.with_evidence(ort(), None, |evidence| {
        repro::write(&target, &report, evidence, None).unwrap_err()
    });
    assert_eq!(refused.first_error().code, codes::REPRO_ROW_UNKNOWN);
}

#[test]
fn a_value_that_cannot_be_computed_does_not_hide_the_others() {
    // `a` is declared with the shape of the original and has another one; `y` cannot be computed
    // from it, and `z` does not need it.
    let sizes = Tensor::from_slice([2], &[4_i64, 2]).unwrap();
    let model = graph()
        .initializer("sizes", &sizes)
        .node(Node::new("Reshape", ["x", "sizes"], ["a"]))
        .node(Node::new("Add", ["a", "x"], ["y"]))
        .node(Node::new("Relu", ["x"], ["z"]))
        .output("a", DType::F32, SIZES)
        .output("y", DType::F32, SIZES)
        .output("z", DType::F32, SIZES)
        .finish()
        .unwrap();
    let x = inputs()["x"].clone();
    let z = reference(&one(Node::new("Relu", ["x"], ["y"])))["y"].clone();
    let y = reference(&one(Node::new("Add", ["x", "x"], ["y"])))["y"].clone();
    let references: Values = [("a", x), ("y", y), ("z", z)].map(|(k, v)| (k.to_owned(), v)).into();
    let options = DriftOptions::default();
    let report = drift(&model, &inputs(), &references, ort(), &options, None).unwrap();
    let [a, y, z] = &report.rows[..] else { panic!("three rows") };
    assert_eq!((a.verdict, y.verdict, z.verdict), {
        (Verdict::Disproved, Verdict::Proved, Verdict::Proved)
    });
    assert!(a.problem.as_deref().unwrap().contains("another shape"));
    assert_eq!((y.accumulated.max_abs, z.accumulated.max_abs), (f64::INFINITY, 0.0));
    assert_eq!(report.origin.as_deref(), Some("a"));
}
