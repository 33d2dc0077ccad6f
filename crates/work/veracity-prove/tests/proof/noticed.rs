//! What tracing noticed travels with the samples, and says why before numbers are guessed about.

use serde_json::json;
use veracity_diag::{Severity, codes};
use veracity_prove::rejudge;
use veracity_results::{NodeProof, Proof, Verdict};

use crate::common::chain;
use crate::support::{checked, policy, recorded, with_samples};

/// A chain of which one node is off by one on a sample, as tracing saw it.
fn off_by_one(sample: usize, metadata: &[(&str, &str)]) -> Proof {
    let (_folder, bundle) = recorded(chain(), 3);
    let bundle = with_samples(&bundle, |tensors, said| {
        let tensor = tensors.get_mut("recorded/second/out/shifted").unwrap();
        let values = tensor.as_mut_slice::<f32>().unwrap();
        let each = values.len() / 3;
        values[sample * each..(sample + 1) * each].iter_mut().for_each(|value| *value += 1.0);
        said.extend(metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    });
    checked(&bundle)
}

fn frozen(node: &str) -> String {
    finding("VER0911", node)
}

fn finding(code: &str, node: &str) -> String {
    json!([{
        "code": code,
        "severity": "warning",
        "message": "a value left for Python",
        "place": {"file": "me/walk.py", "line": 7, "node": node},
        "hints": ["keep it a tensor"],
    }])
    .to_string()
}

#[test]
fn what_the_samples_say_of_the_recording_is_in_the_proof() {
    let (_folder, bundle) = recorded(chain(), 3);
    let bundle = with_samples(&bundle, |_, said| {
        said.insert("findings".into(), frozen("second"));
        said.insert("passes".into(), json!({"second": 8}).to_string());
    });
    let proof = checked(&bundle);
    let verdicts: Vec<_> = proof.nodes.iter().map(|node| node.verdict).collect();
    assert_eq!(verdicts, [Verdict::Proved, Verdict::Conditional, Verdict::Proved]);
    assert_eq!(
        (proof.verdict, proof.rollout.verdict),
        (Verdict::Conditional, Some(Verdict::Conditional))
    );
    assert_eq!(proof.assumptions, proof.findings);
    let found = &proof.findings[0];
    assert_eq!((found.code, found.severity), (codes::FROZEN_VALUE, Severity::Warning));
    assert_eq!(found.place.node.as_deref(), Some("second"));
    assert_eq!(proof.warnings(), 1);
    let passes: Vec<_> = proof.nodes.iter().map(NodeProof::passes_kept).collect();
    assert_eq!(passes, [None, Some((3, 8)), None]);
    let rejudged = rejudge(&proof, &policy(1.0));
    assert_eq!((&rejudged.findings, rejudged.verdict), (&proof.findings, Verdict::Conditional));
}

#[test]
fn findings_are_assumptions_of_the_nodes_that_they_are_about() {
    let said = |code: &str, severity: &str, node: Option<&str>| {
        json!([{"code": code, "severity": severity, "message": "a doubt", "place": {"node": node}}])
            .to_string()
    };
    let (proved, conditional) = (Verdict::Proved, Verdict::Conditional);
    for (findings, expected) in [
        (said("VER0911", "warning", Some("first")), [conditional, proved, proved]),
        (said("VER0911", "warning", None), [conditional; 3]),
        (said("VER0911", "warning", Some("of another bundle")), [conditional; 3]),
        (said("VER0911", "note", Some("first")), [proved; 3]),
        (said("VER0323", "warning", Some("first")), [proved; 3]),
    ] {
        let (_folder, bundle) = recorded(chain(), 3);
        let bundle = with_samples(&bundle, |_, metadata| {
            metadata.insert("findings".into(), findings.clone());
        });
        let proof = checked(&bundle);
        let verdicts: Vec<_> = proof.nodes.iter().map(|node| node.verdict).collect();
        assert_eq!(verdicts, expected, "{findings}");
        assert_eq!(Some(proof.verdict), verdicts.into_iter().max(), "{findings}");
        let counted = proof.coverage.conditional > 0;
        assert_eq!(counted, proof.verdict == conditional, "{findings}");
    }
}

#[test]
fn numbers_give_no_advice_where_tracing_knows_the_cause() {
    let guesses =
        |proof: &Proof| proof.advice.iter().filter(|line| line.contains("second/")).count();
    let wrong = json!({"second": "VER0912 at me/walk.py:7: a tensor changes"}).to_string();
    let (cause, other) = (frozen("second"), frozen("third"));
    let changed = finding("VER0921", "second");
    for (sample, metadata, is_guessed) in [
        (2, vec![], true),
        (2, vec![("findings", cause.as_str())], false),
        (2, vec![("wrong", wrong.as_str())], false),
        // Another node's, and one that cannot be why the first pass is wrong.
        (2, vec![("findings", other.as_str())], true),
        (0, vec![("findings", cause.as_str())], true),
        // A weight that was changed after it was recorded can be.
        (0, vec![("findings", changed.as_str())], false),
    ] {
        let proof = off_by_one(sample, &metadata);
        assert_eq!(proof.nodes[1].verdict, Verdict::Disproved, "{metadata:?}");
        assert_eq!(guesses(&proof) > 0, is_guessed, "{metadata:?}: {:?}", proof.advice);
    }
}
