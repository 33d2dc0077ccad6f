//! A proof that was written once must be readable for good.
//!
//! The files under `golden` are never changed: a new version of the format gets a new file. Each is
//! read, written again without a loss, and held to the committed schema.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kept;
mod schema;

use kept::Format;
use serde_json::json;
use veracity_results::{PROOF_SCHEMA_VERSION, Proof, Verdict};

const PROOFS: Format = Format {
    golden: &[
        ("1.0", include_str!("golden/proof-1.0.json")),
        ("1.1", include_str!("golden/proof-1.1.json")),
    ],
    schema: include_str!("../../../../docs/schema/proof-1.json"),
};

#[test]
fn proofs_of_every_version_are_read_without_a_loss() {
    PROOFS.is_read::<Proof>();
    for (_, value) in PROOFS.files() {
        let proof: Proof = serde_json::from_value(value).unwrap();
        let rows = proof.rows();
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        assert_eq!(count(Verdict::Proved), proof.coverage.proved);
        assert_eq!(count(Verdict::Disproved), proof.coverage.disproved);
        assert_eq!(count(Verdict::NotComparable), proof.coverage.not_comparable);
    }
}

#[test]
fn proofs_of_every_version_fit_the_schema() {
    PROOFS.fits_its_schema(PROOF_SCHEMA_VERSION);
}

#[test]
fn what_the_schema_refuses_is_refused_by_the_reader_too() {
    PROOFS.refuses::<Proof>(&[
        ("", "verdict", Some(json!("maybe"))),
        ("", "subject", None),
        ("/subject", "files", Some(json!({"a": 1}))),
        ("/policy/default", "atol", Some(json!("small"))),
        ("/environment", "threads", Some(json!(-1))),
        ("/nodes/0/ports/0", "tolerance", None),
        ("/nodes/0/ports/0/samples/0", "label", None),
        ("/nodes/0/ports/0/samples/0/measurement", "max_abs", Some(json!(null))),
        ("/nodes/0/ports/0/samples/0/measurement", "reference_range", Some(json!([1.0]))),
        ("/nodes/2/reasons/0", "severity", Some(json!("fatal"))),
        ("/rollout/ports/0", "role", Some(json!("input"))),
        ("/rollout/first_divergence", "tick", Some(json!(0.5))),
        ("/inputs/0", "constant", Some(json!("no"))),
        ("", "nodes", Some(json!({}))),
    ]);
}

#[test]
fn fields_that_a_later_version_adds_do_not_disturb() {
    let mut value = PROOFS.first();
    value["colour"] = json!("green");
    value["rollout"]["seconds"] = json!(1.5);
    assert!(serde_json::from_value::<Proof>(value).is_ok());
}

#[test]
fn what_tracing_noticed_is_read_without_a_loss_and_fits_the_schema() {
    let mut value = PROOFS.first();
    value["nodes"][0]["passes"] = json!(6);
    value["findings"] = json!([{
        "code": "VER0911",
        "severity": "warning",
        "message": "a value left for Python",
        "place": {"file": "me/walk.py", "line": 7, "node": "policy"},
        "hints": ["keep it a tensor"],
    }]);
    let proof: Proof = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(proof.warnings(), 1);
    assert_eq!(serde_json::to_value(&proof).unwrap(), value);
    let schema: serde_json::Value = serde_json::from_str(PROOFS.schema).unwrap();
    assert_eq!(schema::problems(&schema, &value), Vec::<String>::new());
    value["findings"][0]["severity"] = json!("fatal");
    assert_ne!(schema::problems(&schema, &value), Vec::<String>::new());
}
