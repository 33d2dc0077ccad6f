//! Two models of the same names: the operators that differ are named, whatever else differs.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod common;

use std::collections::BTreeMap;

use common::ort;
use half::f16;
use veracity_diag::{Place, Refusal, codes};
use veracity_drift::{
    Allowance, DriftOptions, Inputs, Pursuit, Rule, Rules, Side, drift, held, pair, worse_than,
};
use veracity_engine::{Engine, SessionOptions};
use veracity_engine_embedded::EmbeddedEngine;
use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_results::{DriftReport, DriftRow, ProgramStatus, Verdict};
use veracity_tensor::{DType, Tensor};

/// A model `y = tanh(relu(x * w) + b)`, and what may be changed about it. Nothing inside is
/// declared.
#[derive(Clone)]
struct Chain {
    weight: f32,
    dtype: DType,
    activation: &'static str,
    output: &'static str,
    batch: usize,
}

impl Default for Chain {
    fn default() -> Self {
        let (weight, dtype, batch) = (0.75, DType::F32, 2);
        Self { weight, dtype, activation: "Relu", output: "y", batch }
    }
}

impl Chain {
    fn constant(&self, values: [f32; 4]) -> Tensor {
        match self.dtype {
            DType::F16 => Tensor::from_slice([4], &values.map(f16::from_f32)).unwrap(),
            DType::F64 => Tensor::from_slice([4], &values.map(f64::from)).unwrap(),
            _ => Tensor::from_slice([4], &values).unwrap(),
        }
    }

    fn model(&self) -> Model {
        GraphBuilder::new("chain", 20)
            .input("x", self.dtype, [self.batch, 4])
            .initializer("w", &self.constant([self.weight, 1.5, -0.5, 2.0]))
            .initializer("b", &self.constant([0.1, -0.2, 0.3, 0.0]))
            .node(Node::new("Mul", ["x", "w"], ["product"]))
            .node(Node::new(self.activation, ["product"], ["active"]))
            .node(Node::new("Add", ["active", "b"], ["sum"]))
            .node(Node::new("Tanh", ["sum"], [self.output]))
            .output(self.output, self.dtype, [self.batch, 4])
            .finish()
            .unwrap()
    }
}

fn inputs() -> Inputs {
    let values: Vec<f32> = (0..8_u8).map(|i| f32::from(i) / 3.0 - 1.2).collect();
    BTreeMap::from([("x".to_owned(), Tensor::from_slice([2, 4], &values).unwrap())])
}

fn compared_on(
    engines: [&dyn Engine; 2],
    models: [&Model; 2],
    inputs: &Inputs,
    options: &DriftOptions,
) -> Result<DriftReport, Refusal> {
    let (session, place) = (SessionOptions::default(), Place::default());
    let side = |index: usize| Side {
        model: models[index],
        engine: engines[index],
        session: &session,
        place: &place,
    };
    pair(&side(0), &side(1), inputs, options, &Pursuit::default())
}

fn compared(reference: &Model, candidate: &Model) -> DriftReport {
    let options = DriftOptions::default();
    compared_on([ort(), ort()], [reference, candidate], &inputs(), &options).unwrap()
}

fn row<'r>(report: &'r DriftReport, name: &str) -> &'r DriftRow {
    report.rows.iter().find(|row| row.name == name).unwrap()
}

fn disproved(report: &DriftReport) -> Vec<&str> {
    let rows = report.rows.iter().filter(|row| row.verdict == Verdict::Disproved);
    rows.map(|row| row.name.as_str()).collect()
}

#[test]
fn a_model_is_itself_value_by_value_without_any_declaration() {
    let model = Chain::default().model();
    let report = compared(&model, &model);
    assert_eq!((report.verdict, &report.origin), (Verdict::Proved, &None));
    let names: Vec<&str> = report.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["product", "active", "sum", "y"]);
    assert_eq!(report.rows[0].shape, [2, 4]);
    assert!(report.unmapped.is_empty() && report.notes.is_empty());
}

#[test]
fn only_the_operator_that_differs_is_guilty() {
    let right = Chain::default();
    for (wrong, guilty) in [
        (Chain { weight: 0.76, ..right.clone() }, "product"),
        (Chain { activation: "Abs", ..right.clone() }, "active"),
    ] {
        let report = compared(&right.model(), &wrong.model());
        assert_eq!(disproved(&report), [guilty]);
        assert_eq!(report.origin.as_deref(), Some(guilty));
        assert!(row(&report, "y").accumulated.max_abs > 1e-3, "it shows at the end");
        let fate = report.program.iter().find(|value| value.name == guilty).unwrap();
        assert_eq!(fate.status, ProgramStatus::Disproved);
    }
}

#[test]
fn outputs_belong_together_by_position() {
    let renamed = Chain { output: "action", ..Chain::default() };
    let report = compared(&Chain::default().model(), &renamed.model());
    assert_eq!(report.verdict, Verdict::Proved);
    assert_eq!(row(&report, "action").reference, "float32 \"y\"");
}

#[test]
fn less_memory_means_more_runs_and_the_same_answer() {
    let models = [Chain::default().model(), Chain { weight: 0.76, ..Chain::default() }.model()];
    let whole = compared(&models[0], &models[1]);
    for memory_bytes in [1, 40, 100] {
        let options = DriftOptions { memory_bytes, ..DriftOptions::default() };
        let models = [&models[0], &models[1]];
        let report = compared_on([ort(), ort()], models, &inputs(), &options).unwrap();
        assert_eq!(report, whole, "{memory_bytes} bytes");
    }
}

#[test]
fn engines_are_compared_on_one_model() {
    let model = Chain::default().model();
    let options = DriftOptions::default();
    let run = |engines| compared_on(engines, [&model, &model], &inputs(), &options).unwrap();
    let report = run([ort(), &EmbeddedEngine]);
    assert_eq!((report.verdict, report.rows.len()), (Verdict::Proved, 4));
    assert_eq!(report.session.engine, "embedded");
    assert_eq!(run([&EmbeddedEngine, ort()]).verdict, Verdict::Proved);
}

#[test]
fn narrower_types_get_the_budget_of_the_narrower_type() {
    let [half, single, double] =
        [DType::F16, DType::F32, DType::F64].map(|dtype| Chain { dtype, ..Chain::default() });
    // ONNX Runtime has no Tanh for float64.
    let without_tanh = |chain: &Chain| {
        let chain = chain.model();
        chain.showing(&["sum"]).unwrap()
    };
    for (reference, candidate, epsilon) in
        [(&single, &half, 1e-3), (&half, &single, 1e-3), (&double, &single, 1.2e-7)]
    {
        let report = compared(&without_tanh(reference), &without_tanh(candidate));
        assert_eq!(report.verdict, Verdict::Proved, "{:?}", disproved(&report));
        let sum = row(&report, "sum");
        assert_eq!(sum.dtype, candidate.dtype.name());
        assert_eq!(sum.reference, reference.dtype.name());
        assert!(sum.budget > 4.0 * epsilon * sum.scale && sum.budget < 80.0 * epsilon * sum.scale);
        assert!(report.notes[0].contains("both get the same numbers"), "{:?}", report.notes);
    }
}

#[test]
fn a_fault_in_a_narrower_model_is_found_beside_the_rounding() {
    let single = Chain::default();
    let half = Chain { dtype: DType::F16, weight: 0.80, ..Chain::default() };
    assert_eq!(disproved(&compared(&single.model(), &half.model())), ["product"]);
}

#[test]
fn what_overflows_in_the_narrower_type_is_never_proved() {
    let single = Chain { weight: 1e6, ..Chain::default() };
    let half = Chain { dtype: DType::F16, ..single.clone() };
    let report = compared(&single.model(), &half.model());
    assert_eq!(report.origin.as_deref(), Some("product"));
    assert!(row(&report, "product").introduced.mismatching > 0);
}

/// A float island between casts has the budget of the type that it computes in.
#[test]
fn what_is_computed_in_a_narrower_type_gets_its_budget() {
    let cast = GraphBuilder::new("cast", 20)
        .input("x", DType::F32, [2_usize, 4])
        .initializer("w", &Chain { dtype: DType::F16, ..Chain::default() }.constant([0.3; 4]))
        .node(Node::new("Cast", ["x"], ["narrow"]).int("to", 10))
        .node(Node::new("Mul", ["narrow", "w"], ["scaled"]))
        .node(Node::new("Cast", ["scaled"], ["product"]).int("to", 1))
        .output("product", DType::F32, [2_usize, 4])
        .finish()
        .unwrap();
    let single = GraphBuilder::new("single", 20)
        .input("x", DType::F32, [2_usize, 4])
        .initializer("w", &Chain::default().constant([0.3; 4]))
        .node(Node::new("Mul", ["x", "w"], ["product"]))
        .output("product", DType::F32, [2_usize, 4])
        .finish()
        .unwrap();
    let report = compared(&single, &cast);
    assert_eq!(report.verdict, Verdict::Proved);
    let product = row(&report, "product");
    assert!(product.introduced.max_abs > 64.0 * f64::from(f32::EPSILON) * product.scale);
}

/// `y = x * w` with `x` and `w` on grids of steps of 1/16.
fn quantised(weight_step: f32, range: i8) -> Model {
    let scalar = |value: f32| Tensor::from_slice([0_usize; 0], &[value]).unwrap();
    let weights = [0.75_f32, 1.5, -0.5, 2.0].map(|weight| (weight / weight_step).round());
    #[expect(clippy::cast_possible_truncation, reason = "they were rounded")]
    let weights = Tensor::from_slice([4], &weights.map(|weight| weight as i8)).unwrap();
    GraphBuilder::new("quantised", 20)
        .input("x", DType::F32, [2_usize, 4])
        .initializer("w_quantized", &weights)
        .initializer("w_scale", &scalar(weight_step))
        .initializer("x_scale", &scalar(1.0 / 16.0))
        .initializer("x_zero_point", &Tensor::from_slice([0_usize; 0], &[range]).unwrap())
        .node(Node::new("QuantizeLinear", ["x", "x_scale", "x_zero_point"], ["x_q"]))
        .node(Node::new("DequantizeLinear", ["x_q", "x_scale", "x_zero_point"], ["x_d"]))
        .node(Node::new("DequantizeLinear", ["w_quantized", "w_scale"], ["w_d"]))
        .node(Node::new("Mul", ["x_d", "w_d"], ["product"]))
        .output("product", DType::F32, [2_usize, 4])
        .finish()
        .unwrap()
}

fn floats() -> Model {
    let model = Chain::default().model();
    model.showing(&["product"]).unwrap()
}

#[test]
fn quantising_is_charged_to_the_quantisation_and_not_to_the_operators() {
    let report = compared(&floats(), &quantised(1.0 / 32.0, 0));
    assert_eq!(report.verdict, Verdict::Proved, "{report:#?}");
    assert_eq!(row(&report, "x_d").reference, "float32 input \"x\"");
    assert_eq!(row(&report, "w_d").reference, "float32 constant \"w\"");
    let (rounded, product) = (row(&report, "x_d"), row(&report, "product"));
    assert!(rounded.introduced.max_abs > 0.01 && rounded.budget < 0.0313);
    assert!(product.introduced.max_abs < 1e-6, "its inputs are the reference's");
    assert!(product.accumulated.max_abs > 0.01, "what adds up is shown");
}

#[test]
fn a_range_that_is_too_small_and_a_weight_that_is_wrong_are_named() {
    // The zero point is near the upper end: what is above 1/2 is clipped.
    let report = compared(&floats(), &quantised(1.0 / 32.0, 119));
    assert_eq!(disproved(&report), ["x_d"]);
    let problem = row(&report, "x_d").problem.as_deref().unwrap();
    assert!(problem.contains("half a step of the quantisation"), "{problem}");

    let other = Chain { weight: 0.875, ..Chain::default() }.model();
    let report = compared(&other.showing(&["product"]).unwrap(), &quantised(1.0 / 32.0, 0));
    assert_eq!(disproved(&report), ["w_d"]);
}

#[test]
fn quantised_values_without_counterpart_are_judged_like_floats_and_say_so() {
    let quantised = GraphBuilder::new("quantised", 20)
        .input("x", DType::F32, [2_usize, 4])
        .initializer("other", &Tensor::from_slice([4], &[12_i8, 24, -8, 32]).unwrap())
        .initializer("s", &Tensor::from_slice([0_usize; 0], &[0.0626_f32]).unwrap())
        .node(Node::new("DequantizeLinear", ["other", "s"], ["d"]))
        .node(Node::new("Mul", ["x", "d"], ["product"]))
        .output("product", DType::F32, [2_usize, 4])
        .finish()
        .unwrap();
    let report = compared(&floats(), &quantised);
    assert_eq!(disproved(&report), ["product"]);
    assert!(row(&report, "product").problem.as_deref().unwrap().contains("quantised"));
}

#[test]
fn another_shape_is_a_fault_of_an_output_and_no_counterpart_inside() {
    let reshaped = |inner: bool| {
        let sizes = Tensor::from_slice([2], &[4_i64, 2]).unwrap();
        let names = if inner { ["product", "y"] } else { ["other", "product"] };
        let graph = GraphBuilder::new("reshaped", 20)
            .input("x", DType::F32, [2_usize, 4])
            .initializer("sizes", &sizes)
            .node(Node::new("Reshape", ["x", "sizes"], [names[0]]))
            .node(Node::new("Abs", [names[0]], [names[1]]));
        graph.output(names[1], DType::F32, [4_usize, 2]).finish().unwrap()
    };
    let report = compared(&floats(), &reshaped(false));
    assert_eq!((report.verdict, report.rows.len()), (Verdict::Disproved, 1));
    assert!(report.rows[0].problem.as_deref().unwrap().contains("[4, 2]"));

    let report = compared(&Chain::default().model(), &reshaped(true));
    assert_eq!(report.rows.len(), 1, "the output is a row");
    let listed = &report.unmapped[0];
    assert_eq!(listed.name, "product");
    assert!(listed.reason.as_deref().unwrap().contains("[2, 4] in the reference"));
}

#[test]
fn nothing_in_common_is_not_no_drift() {
    let other = GraphBuilder::new("other", 20)
        .input("x", DType::F32, [2_usize, 4])
        .node(Node::new("Abs", ["x"], ["unheard_of"]))
        .finish()
        .unwrap();
    let report = compared(&Chain::default().model(), &other);
    assert_eq!((report.verdict, report.rows.len()), (Verdict::NotComparable, 0));
    assert_eq!(report.reasons[0].code, codes::COMPARE_NOTHING);
}

#[test]
fn an_output_that_the_candidate_lacks_keeps_it_from_being_proved() {
    let shorter = Chain::default().model().showing(&["sum"]).unwrap();
    // By position its only output stands for the reference's: it has a name of its own there.
    let report = compared(&Chain::default().model(), &shorter);
    assert_eq!(report.verdict, Verdict::NotComparable);
    assert!(report.reasons[0].message.contains("\"y\" of the reference"), "{:?}", report.reasons);
}

#[test]
fn models_with_other_inputs_are_refused() {
    let other_name = GraphBuilder::new("other", 20)
        .input("observation", DType::F32, [2_usize, 4])
        .node(Node::new("Abs", ["observation"], ["y"]))
        .output("y", DType::F32, [2_usize, 4])
        .finish()
        .unwrap();
    let other_type = GraphBuilder::new("other", 20)
        .input("x", DType::I64, [2_usize, 4])
        .node(Node::new("Abs", ["x"], ["y"]))
        .output("y", DType::I64, [2_usize, 4])
        .finish()
        .unwrap();
    let other_shape = Chain { batch: 3, ..Chain::default() }.model();
    let options = DriftOptions::default();
    for other in [&other_name, &other_type, &other_shape] {
        let models = [&Chain::default().model(), other];
        let refused = compared_on([ort(), ort()], models, &inputs(), &options).unwrap_err();
        assert_eq!(refused.first_error().code, codes::PAIR_INPUTS_DIFFER, "{refused}");
    }
    let model = Chain::default().model();
    let refused = compared_on([ort(), ort()], [&model; 2], &Inputs::new(), &options).unwrap_err();
    assert_eq!(refused.first_error().code, codes::INPUT_MISSING);
}

#[test]
fn nan_is_never_proved() {
    let nan = Tensor::from_slice([2, 4], &[f32::NAN; 8]).unwrap();
    let inputs = BTreeMap::from([("x".to_owned(), nan)]);
    let (model, options) = (Chain::default().model(), DriftOptions::default());
    let report = compared_on([ort(), ort()], [&model, &model], &inputs, &options).unwrap();
    assert_eq!((report.verdict, report.origin), (Verdict::NotComparable, None));
}

fn rule(op: &str, allowance: Allowance) -> Rule {
    Rule { name: None, op: Some(op.to_owned()), module: None, allowance }
}

#[test]
fn rules_hold_for_the_operators_that_they_name() {
    let models = [Chain::default().model(), Chain { weight: 0.76, ..Chain::default() }.model()];
    let verdict = |rules: Vec<Rule>| {
        let options = DriftOptions { rules: rules.into(), ..DriftOptions::default() };
        compared_on([ort(), ort()], [&models[0], &models[1]], &inputs(), &options).unwrap()
    };
    assert_eq!(verdict(Vec::new()).verdict, Verdict::Disproved);
    let report = verdict(vec![rule("Mul", Allowance::Absolute(0.1))]);
    assert_eq!((report.verdict, row(&report, "product").budget), (Verdict::Proved, 0.1));
    assert_eq!(verdict(vec![rule("Mul", Allowance::Units(1e6))]).verdict, Verdict::Proved);
    let report =
        verdict(vec![rule("Tan?", Allowance::Absolute(0.1)), rule("Conv", Allowance::Skip)]);
    assert_eq!(report.verdict, Verdict::Disproved);
    assert_eq!(report.notes, ["rule 2 (op \"Conv\") holds for no value that was found"]);
}

#[test]
fn what_is_skipped_is_charged_to_the_next_value() {
    let models = [Chain::default().model(), Chain { weight: 0.76, ..Chain::default() }.model()];
    let rules = Rules::new([rule("Mul", Allowance::Skip)]);
    let options = DriftOptions { rules, ..DriftOptions::default() };
    let report =
        compared_on([ort(), ort()], [&models[0], &models[1]], &inputs(), &options).unwrap();
    assert_eq!(disproved(&report), ["active"]);
    let skipped = &report.unmapped[0];
    assert_eq!((skipped.name.as_str(), skipped.part_of.as_deref()), ("product", Some("active")));
    assert_eq!(skipped.reason.as_deref(), Some("rule 1 leaves it out"));
    assert_eq!(report.program[0].status, ProgramStatus::Folded);
    assert_eq!(report.program[0].into, ["active"]);
}

#[test]
fn rules_hold_for_an_export_beside_its_original_too() {
    let model = Chain { weight: 0.76, ..Chain::default() }.model();
    let report = compared(&Chain::default().model(), &Chain::default().model());
    assert_eq!(report.verdict, Verdict::Proved);
    let value = |name: &str| {
        let options = SessionOptions::default();
        let shown = Chain::default().model().showing(&[name]).unwrap();
        let bytes = veracity_engine::ModelBytes::Memory(shown.to_bytes().unwrap().into());
        let format = veracity_engine::ModelFormat::Onnx;
        let source = veracity_engine::ModelSource { format, bytes };
        let inputs = inputs();
        let found = ort().evaluate(&source, &[("x", &inputs["x"])], &[name], &options).unwrap();
        held(&found[0].as_ref().unwrap().view())
    };
    let references = BTreeMap::from([("y".to_owned(), value("y"))]);
    let given = BTreeMap::from([("x".to_owned(), held(&inputs()["x"].view()))]);
    let run = |rules: Rules| {
        let options = DriftOptions { rules, ..DriftOptions::default() };
        drift(&model, &given, &references, ort(), &options, None).unwrap()
    };
    assert_eq!(run(Rules::default()).verdict, Verdict::Disproved);
    let allowed = run(Rules::new([rule("Tanh", Allowance::Absolute(0.1))]));
    assert_eq!((allowed.verdict, allowed.notes.len()), (Verdict::Proved, 0));
    let skipped = run(Rules::new([rule("Tanh", Allowance::Skip)]));
    assert_eq!(skipped.verdict, Verdict::NotComparable, "an output that is left out is not proved");
}

#[test]
fn only_what_got_worse_is_worse() {
    let models = [Chain::default().model(), Chain { weight: 0.76, ..Chain::default() }.model()];
    let (good, bad) = (compared(&models[0], &models[0]), compared(&models[0], &models[1]));
    let messages = |old: &DriftReport, new: &DriftReport| -> Vec<String> {
        worse_than(old, new).into_iter().map(|found| found.to_string()).collect()
    };
    assert_eq!(messages(&good, &good), [""; 0]);
    assert_eq!(messages(&bad, &bad), [""; 0], "what was accepted is no news");
    assert_eq!(messages(&bad, &good), [""; 0], "better is not worse");
    let worse = messages(&good, &bad);
    assert!(worse[0].contains("it was proved and is disproved"), "{worse:?}");
    assert!(worse[1].contains("accumulates"), "the values after it: {worse:?}");

    let mut lost = good.clone();
    lost.rows.remove(1);
    let worse = messages(&good, &lost);
    assert!(worse[0].contains("active") && worse[0].contains("is not any more"), "{worse:?}");

    let much = compared(&models[0], &Chain { weight: 0.9, ..Chain::default() }.model());
    assert!(messages(&bad, &much)[0].contains("introduces"), "disproved in both, and much more so");

    let mut less = good.clone();
    less.verdict = Verdict::NotComparable;
    assert_eq!(messages(&good, &less).len(), 1, "a reason that is about no row");
}
