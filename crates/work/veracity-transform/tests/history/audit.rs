//! What a log answers about its result.

use veracity_diag::codes;
use veracity_onnx::Model;
use veracity_results::RewriteLog;
use veracity_transform::{Audit, LogOptions, Recorded, audit, record};

use crate::log::{code, made, model, pipeline, run};

fn asked<T>(question: impl Fn(&Audit<'_>) -> T) -> T {
    let Recorded { model, log, .. } = made();
    question(&Audit::new(&model, &log).unwrap())
}

#[test]
fn touched_nodes_are_listed_by_pass() {
    let all = asked(|audit| audit.transformed_nodes(None));
    assert_eq!(all.iter().map(|one| one.record).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let inverted = asked(|audit| audit.transformed_nodes(Some("invert")));
    assert_eq!(inverted.len(), 1);
    assert_eq!((inverted[0].removed[0].as_str(), inverted[0].added[0].as_str()), ("m", "divided"));
    assert!(asked(|audit| audit.transformed_nodes(Some("nobody"))).is_empty());
}

#[test]
fn values_are_followed_through_all_rewrites() {
    for (value, now, records) in [
        ("b", Some("a"), &[1][..]),
        ("m", Some("m"), &[]),
        ("c", Some("c"), &[]),
        ("x", Some("x"), &[]),
        ("w", None, &[2]),
        ("dead", None, &[3]),
    ] {
        let found = asked(|audit| audit.map_value(value)).unwrap();
        assert_eq!((found.now.as_deref(), found.records.as_slice()), (now, records), "{value}");
    }
    assert_eq!(code(asked(|audit| audit.map_value("nothing"))), codes::AUDIT_UNKNOWN);
}

#[test]
fn nodes_and_weights_are_explained() {
    for (name, from, records) in [
        ("divided", &["m"][..], &[1, 2][..]),
        ("m", &["m"], &[1, 2]),
        ("relu", &["relu", "same"], &[1]),
        ("sum", &["sum"], &[]),
        ("c", &["const"], &[0]),
        ("w_inverse", &["m"], &[1, 2]),
        ("kept", &[], &[]),
    ] {
        let found = asked(|audit| audit.explain(name)).unwrap();
        assert_eq!(
            (found.from.as_slice(), found.records.as_slice()),
            (&from.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>()[..], records),
            "{name}"
        );
        assert_eq!(found.reasons.len(), records.len());
    }
    assert_eq!(asked(|audit| audit.explain("divided")).unwrap().reasons[1], "invert: the inverse");
    let refused = asked(|audit| audit.explain("dividid")).unwrap_err();
    assert_eq!(refused.first_error().code, codes::AUDIT_UNKNOWN);
    assert!(format!("{:?}", refused.first_error().hints).contains("divided"));
}

#[test]
fn what_was_left_alone_has_its_reason() {
    use veracity_onnx::{GraphBuilder, Node};
    use veracity_tensor::DType;
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Identity", ["x"], ["a"]).named("same"))
        .node(Node::new("Mul", ["a", "a"], ["y"]).named("square"))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    let made = record(&model, &pipeline(), &run(&model), LogOptions::default()).unwrap();
    let audit = Audit::new(&made.model, &made.log).unwrap();
    for name in ["square", "y"] {
        let reasons = audit.why_not(name).unwrap();
        assert_eq!(reasons.len(), 1, "{name}");
        assert_eq!((reasons[0].pass.as_str(), reasons[0].name.as_str()), ("invert", "square"));
        assert_eq!(reasons[0].reason, "its factor is not constant");
    }
    assert!(audit.why_not("same").unwrap().is_empty());
    assert_eq!(code(audit.why_not("nobody")), codes::AUDIT_UNKNOWN);
}

#[test]
fn a_log_explains_its_result_and_nothing_else() {
    let Recorded { model: result, log, elements } = made();
    let original = model();
    let report = audit(&result, &log, Some((&original, &elements)));
    assert_eq!((report.explained, report.unexplained), (Some(true), None));
    assert_eq!((report.nodes_before, report.nodes_after), (7, 4));
    let counts: Vec<(usize, usize, usize)> =
        report.passes.iter().map(|pass| (pass.rewrites, pass.removed, pass.added)).collect();
    assert_eq!(counts, [(1, 1, 0), (1, 1, 0), (1, 1, 1), (1, 1, 0)]);
    assert_eq!((report.passes[2].weights_added, report.passes[2].weights_dropped), (1, 1));

    assert_eq!(audit(&result, &log, None).explained, None, "hashes alone do not show it");
    let other =
        result.with_attribute(0, "alpha", None).annotated([], [("key".to_owned(), String::new())]);
    let report = audit(&other, &log, Some((&original, &elements)));
    assert_eq!(report.explained, Some(false));
    assert_eq!(report.unexplained.unwrap().model[0].field, "metadata key");
    let mut forged: RewriteLog = log.clone();
    forged.declined.clear();
    forged.records[1].reason.clear();
    let report = audit(&result, &forged, Some((&original, &elements)));
    assert_eq!(report.explained, Some(false));
    assert!(report.problems.iter().any(|one| one.contains("VER1355")), "{:?}", report.problems);
}

#[test]
fn only_the_result_can_be_asked_about() {
    let log = made().log;
    let other: Model = model();
    assert_eq!(code(Audit::new(&other, &log)), codes::LOG_MISFIT);
}
