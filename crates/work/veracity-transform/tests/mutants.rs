//! Wrong rewrites, each of a kind that other tools let through, are rejected by the local check; the
//! right ones beside them are kept.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

#[path = "mutants/models.rs"]
mod models;
#[path = "support/rewriter.rs"]
mod rewriter;
#[path = "mutants/rewrites.rs"]
mod rewrites;
mod support;

use models::{
    Bn, clip, constant, conv_bn, divided, gathered, hard_swish, layer_norm, linear, matmul_bn_3d,
    plus_zero, projections, residual, shared_conv, transposed, twins, unary,
};
use rewriter::Rewriter;
use rewrites::{
    Fold, becomes, bias_column, composed, dropped_residual, fold, fold_last_axis, held,
    joined_hard_swish, joined_layer_norm, merged, other_epsilon, other_index, other_shape,
    other_type, reciprocal, shared_twin, skipped_add, unfit, zeroed,
};
use veracity_onnx::{Graph, Model};
use veracity_results::{RewriteChecks, Verdict};
use veracity_transform::judge::CheckOptions;
use veracity_transform::{Class, Found, Limits, Pipeline, Transformed, View};

fn checked(pass: Rewriter, model: &Model) -> (Transformed, RewriteChecks) {
    let graph = Graph::new(model.clone()).unwrap();
    // Rewrites of tests find their own result again.
    let limits = Limits { rounds: 1, sweeps: 1, ..Limits::default() };
    let pipeline = Pipeline::new(vec![Box::new(pass)]);
    pipeline.run_checked(graph, limits, support::ort(), CheckOptions::default()).unwrap()
}

type Case = (&'static str, Class, fn() -> Model, fn(&View<'_>, &mut Found));

const WRONG: &[Case] = &[
    (
        "relu becomes identity",
        Class::ExactBits,
        || unary("Relu"),
        |v, f| becomes(v, f, "Relu", "Identity"),
    ),
    (
        "relu becomes identity in real numbers",
        Class::ExactReal,
        || unary("Relu"),
        |v, f| becomes(v, f, "Relu", "Identity"),
    ),
    (
        "abs becomes identity",
        Class::ExactReal,
        || unary("Abs"),
        |v, f| becomes(v, f, "Abs", "Identity"),
    ),
    ("a clip becomes identity", Class::ExactReal, clip, |v, f| becomes(v, f, "Clip", "Identity")),
    ("a clip loses its upper bound", Class::ExactReal, clip, |v, f| becomes(v, f, "Clip", "Relu")),
    (
        "hard swish becomes relu",
        Class::ExactReal,
        || unary("HardSwish"),
        |v, f| becomes(v, f, "HardSwish", "Relu"),
    ),
    ("another epsilon", Class::ExactReal, || conv_bn(Bn::plain()), other_epsilon),
    (
        "one mean of a batch norm becomes 0",
        Class::ExactReal,
        || conv_bn(Bn::plain()),
        |v, f| zeroed(v, f, "BatchNormalization", 3),
    ),
    (
        "one channel of a convolution becomes 0",
        Class::ExactReal,
        || conv_bn(Bn::plain()),
        |v, f| zeroed(v, f, "Conv", 1),
    ),
    ("a residual is dropped", Class::ExactReal, residual, dropped_residual),
    (
        "the bias of a convolution is not scaled",
        Class::ExactReal,
        || conv_bn(Bn { bias: true, ..Bn::plain() }),
        |v, f| fold(v, f, Fold { scale_bias: false, ..Fold::RIGHT }),
    ),
    (
        "a missing bias counts as ones",
        Class::ExactReal,
        || conv_bn(Bn { affine: false, ..Bn::plain() }),
        |v, f| fold(v, f, Fold { shift: 1.0, ..Fold::RIGHT }),
    ),
    ("a convolution that others read is changed", Class::ExactReal, shared_conv, |v, f| {
        fold(v, f, Fold { in_place: true, ..Fold::RIGHT });
    }),
    (
        "the channels of a batch norm are the wrong axis",
        Class::ExactReal,
        matmul_bn_3d,
        fold_last_axis,
    ),
    ("a reciprocal is claimed to be exact", Class::ExactBits, || divided(3.0), reciprocal),
    ("a column of zeros stands for the bias", Class::ExactReal, linear, |v, f| {
        bias_column(v, f, 0.0);
    }),
    ("projections are merged in the wrong order", Class::ExactReal, projections, |v, f| {
        merged(v, f, true);
    }),
    ("transpositions are composed the wrong way", Class::ExactBits, transposed, |v, f| {
        composed(v, f, true);
    }),
    ("adding zero is held for nothing", Class::ExactBits, plus_zero, skipped_add),
    ("a twin with another attribute is shared", Class::ExactBits, twins, |v, f| {
        shared_twin(v, f, "b");
    }),
    ("a constant becomes another one", Class::ExactBits, constant, |v, f| held(v, f, 0.25)),
    ("another index is taken", Class::ExactBits, gathered, other_index),
    ("the result has another type", Class::ExactReal, || unary("Relu"), other_type),
    ("the result has another shape", Class::ExactBits, || unary("Relu"), other_shape),
    ("what comes cannot be run", Class::ExactReal, linear, unfit),
    (
        "an approximation is worse than allowed",
        Class::Approximate,
        || unary("Tanh"),
        |v, f| becomes(v, f, "Tanh", "HardSigmoid"),
    ),
];

#[test]
fn wrong_rewrites_are_rejected() {
    let mut missed = Vec::new();
    for (name, class, model, find) in WRONG {
        let model = model();
        let (done, checks) = checked(Rewriter { name, class: *class, find: *find }, &model);
        let rejected = done.rejected.len() == 1 && done.rewrites.is_empty();
        let blamed = checks.rewrites.first().is_some_and(|check| {
            check.verdict == Verdict::Disproved && !check.kept && check.reason.is_some()
        });
        if !rejected || !blamed {
            missed.push(format!("{name}: {:?}", checks.rewrites));
        }
        let bytes = |model: Model| model.to_bytes().unwrap();
        let original = Graph::new(model).unwrap().to_model().unwrap();
        assert_eq!(bytes(done.graph.to_model().unwrap()), bytes(original), "{name}");
    }
    assert!(missed.is_empty(), "{} are missed:\n{}", missed.len(), missed.join("\n"));
}

#[test]
fn a_corner_of_a_large_picture_shows_what_is_wrong_with_numbers() {
    let model = conv_bn(Bn { bias: true, places: 20, ..Bn::plain() });
    let right = |view: &View<'_>, found: &mut Found| fold(view, found, Fold::RIGHT);
    let wrong = |view: &View<'_>, found: &mut Found| {
        fold(view, found, Fold { scale_bias: false, ..Fold::RIGHT });
    };
    for (find, verdict) in
        [(right as fn(&View<'_>, &mut Found), Verdict::Proved), (wrong, Verdict::Disproved)]
    {
        let (_, checks) = checked(Rewriter { name: "fold", class: Class::ExactReal, find }, &model);
        let check = &checks.rewrites[0];
        assert_eq!(check.verdict, verdict, "{check:?}");
        let corners = check.sets.iter().filter(|set| set.contains("(corner)")).count();
        assert_eq!((check.sets[0].as_str(), corners), ("normal", 3), "{:?}", check.sets);
    }
}

/// Folding what is in training mode is wrong whether or not the engine can run that mode.
#[test]
fn a_batch_norm_in_training_mode_is_not_proved() {
    let model = conv_bn(Bn { training: true, ..Bn::plain() });
    let find = |view: &View<'_>, found: &mut Found| fold(view, found, Fold::RIGHT);
    let pass = Rewriter { name: "folded in training mode", class: Class::ExactReal, find };
    let (done, checks) = checked(pass, &model);
    assert_eq!(done.rewrites.len() + done.rejected.len(), 1);
    assert_ne!(checks.rewrites[0].verdict, Verdict::Proved, "{:?}", checks.rewrites);
}

const RIGHT: &[Case] = &[
    (
        "a batch norm is folded",
        Class::ExactReal,
        || conv_bn(Bn::plain()),
        |v, f| fold(v, f, Fold::RIGHT),
    ),
    (
        "with a bias",
        Class::ExactReal,
        || conv_bn(Bn { bias: true, ..Bn::plain() }),
        |v, f| fold(v, f, Fold::RIGHT),
    ),
    (
        "without scale and bias",
        Class::ExactReal,
        || conv_bn(Bn { affine: false, ..Bn::plain() }),
        |v, f| fold(v, f, Fold::RIGHT),
    ),
    ("a power of two divides exactly", Class::ExactBits, || divided(8.0), reciprocal),
    ("any number divides nearly", Class::ExactReal, || divided(3.0), reciprocal),
    ("a column of ones stands for the bias", Class::ExactReal, linear, |v, f| {
        bias_column(v, f, 1.0);
    }),
    ("projections are merged", Class::ExactReal, projections, |v, f| merged(v, f, false)),
    ("transpositions are composed", Class::ExactBits, transposed, |v, f| composed(v, f, false)),
    ("a twin is shared", Class::ExactBits, twins, |v, f| shared_twin(v, f, "c")),
    ("a constant is held", Class::ExactBits, constant, |v, f| held(v, f, 0.5)),
    ("a layer norm is joined", Class::ExactReal, layer_norm, joined_layer_norm),
    ("a hard swish is joined", Class::ExactReal, hard_swish, joined_hard_swish),
];

#[test]
fn right_rewrites_are_kept_and_proved() {
    let mut wrong = Vec::new();
    for (name, class, model, find) in RIGHT {
        let (done, checks) = checked(Rewriter { name, class: *class, find: *find }, &model());
        if done.rewrites.len() != 1 || checks.verdict != Verdict::Proved {
            wrong.push(format!("{name}: {:?} {:?}", checks.rewrites, checks.cumulative));
        }
    }
    assert!(wrong.is_empty(), "{} are not proved:\n{}", wrong.len(), wrong.join("\n"));
}
