//! A transformation as one screen: the answer, the passes, what was taken back, what is open.

use veracity_report::{TextOptions, rewrites};
use veracity_results::{RewriteChecks, RewriteLog};

/// Two passes: one rewrite of the first is right, one of the second was taken back.
pub(crate) fn log() -> RewriteLog {
    serde_json::from_value(serde_json::json!({
        "schema_version": "1.0", "tool_version": "0.1.0", "original_sha256": "", "result_sha256": "",
        "signature": "", "provenance": true, "rounds": 1, "settled": true,
        "nodes_before": 3, "nodes_after": 2, "order": [0, 1],
        "passes": [
            {"name": "remove-no-ops", "version": 1, "class": "exact-bits", "signature": ""},
            {"name": "fuse-batch-norm", "version": 1, "class": "exact-real", "signature": ""},
        ],
        "records": [{
            "id": 0, "pass": "remove-no-ops", "version": 1, "class": "exact-bits", "round": 0,
            "index": 0, "reason": "\"b\" is \"a\"",
        }],
        "rejected": [{
            "pass": "fuse-batch-norm", "nodes": ["bn"], "reason": "folded",
            "problem": "\"y\" is off by 0.9",
        }],
        "declined": [{"pass": "fuse-batch-norm", "name": "bn2", "reason": "it is shared"}],
    }))
    .unwrap()
}

pub(crate) fn checks(verdict: &str) -> RewriteChecks {
    let reason = (verdict != "proved").then_some("the window cannot be run");
    serde_json::from_value(serde_json::json!({
        "schema_version": "1.0", "engine": "ort", "engine_version": "1.31.1",
        "validation": "local", "seed": 0, "inputs": ["normal"], "verdict": verdict,
        "coverage": {
            "proved": usize::from(verdict == "proved"), "disproved": 0,
            "not_comparable": usize::from(verdict != "proved"),
        },
        "rewrites": [{
            "id": 0, "pass": "remove-no-ops", "class": "exact-bits", "index": 0, "why": "\"b\" is \"a\"",
            "verdict": verdict, "kept": true, "rule": "same bits", "max_abs": 0.0, "scale": 1.0,
            "sets": ["normal"], "reason": reason,
        }],
        "cumulative": [], "notes": [],
    }))
    .unwrap()
}

fn text(log: &RewriteLog, checks: Option<&RewriteChecks>) -> String {
    let options = TextOptions { width: 80, ..TextOptions::default() };
    rewrites::text("net.onnx", log, checks, &options)
}

#[test]
fn what_was_taken_back_is_told_with_its_reason() {
    let text = text(&log(), Some(&checks("proved")));
    for line in [
        "net.onnx: proved 3 nodes became 2 in 1 round; checked on ort 1.31.1 (local)",
        "remove-no-ops    exact-bits          1           0  0          proved",
        "fuse-batch-norm  exact-real          0           1  -          -",
        "taken back: fuse-batch-norm at bn: \"y\" is off by 0.9",
        "1 rewrite: 1 proved, 0 disproved, 0 not comparable; 1 taken back",
    ] {
        assert!(text.lines().any(|found| found == line), "{line:?} is not in\n{text}");
    }
}

#[test]
fn what_could_not_be_checked_is_never_proved() {
    let text = text(&log(), Some(&checks("not_comparable")));
    assert!(text.starts_with("net.onnx: not comparable"), "{text}");
    assert!(text.contains("(\"b\" is \"a\"): the window cannot be"), "{text}");
    assert!(!text.contains("1 proved"), "{text}");
}

#[test]
fn without_checks_nothing_is_proved() {
    let text = text(&log(), None);
    assert!(text.starts_with("net.onnx: not checked"), "{text}");
    assert!(!text.contains("proved"), "{text}");
}

#[test]
fn a_model_that_nobody_changed_is_called_so() {
    let unchanged =
        RewriteLog { records: Vec::new(), rejected: Vec::new(), nodes_after: 3, ..log() };
    let text = text(&unchanged, Some(&checks("proved")));
    assert!(text.starts_with("net.onnx: unchanged its 3 nodes stay as they are"), "{text}");
}

#[test]
fn lines_fit_the_page() {
    let text = text(&log(), Some(&checks("proved")));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(
        rewrites::markdown("net.onnx", &log(), None).contains("| remove-no-ops | exact-bits |")
    );
}
