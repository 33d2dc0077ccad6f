//! A proof that was written once must be readable for good.
//!
//! The files under `golden` are never changed: a new version of the format gets a new file. Each is
//! read, written again without a loss, and held to the committed schema.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod schema;

use serde_json::{Value, json};
use veracity_results::{PROOF_SCHEMA_VERSION, Proof, Verdict};

const GOLDEN: [(&str, &str); 1] = [("1.0", include_str!("golden/proof-1.0.json"))];
const SCHEMA: &str = include_str!("../../../../docs/schema/proof-1.json");

fn golden() -> impl Iterator<Item = (&'static str, Value)> {
    GOLDEN.iter().map(|(version, text)| (*version, serde_json::from_str(text).unwrap()))
}

#[test]
fn proofs_of_every_version_are_read_without_a_loss() {
    for (version, value) in golden() {
        let proof: Proof = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(proof.schema_version, version);
        let rows = proof.rows();
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        assert_eq!(count(Verdict::Proved), proof.coverage.proved);
        assert_eq!(count(Verdict::Disproved), proof.coverage.disproved);
        assert_eq!(count(Verdict::NotComparable), proof.coverage.not_comparable);
        assert_eq!(serde_json::to_value(&proof).unwrap(), value);
    }
}

#[test]
fn there_is_a_golden_proof_of_the_version_that_is_written() {
    assert_eq!(GOLDEN.last().unwrap().0, PROOF_SCHEMA_VERSION);
}

#[test]
fn proofs_of_every_version_fit_the_schema() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    for (version, value) in golden() {
        assert_eq!(schema::problems(&schema, &value), Vec::<String>::new(), "{version}");
    }
}

#[test]
fn what_the_schema_refuses_is_refused_by_the_reader_too() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let (_, whole) = golden().next().unwrap();
    for (pointer, key, replacement) in [
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
    ] {
        let mut broken = whole.clone();
        let holder = broken.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
        assert!(holder.contains_key(key), "{pointer}/{key}");
        match replacement {
            Some(value) => holder.insert(key.to_owned(), value),
            None => holder.remove(key),
        };
        assert_ne!(schema::problems(&schema, &broken), Vec::<String>::new(), "{pointer}/{key}");
        assert!(serde_json::from_value::<Proof>(broken).is_err(), "{pointer}/{key}");
    }
}

#[test]
fn fields_that_a_later_version_adds_do_not_disturb() {
    let (_, mut value) = golden().next().unwrap();
    value["colour"] = json!("green");
    value["rollout"]["seconds"] = json!(1.5);
    assert!(serde_json::from_value::<Proof>(value).is_ok());
}
