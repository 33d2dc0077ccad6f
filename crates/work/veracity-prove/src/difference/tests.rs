use veracity_results::{
    Coverage, Environment, ErrorOverTime, NodeProof, NonFinite, Reference, Role, RolloutPort,
    RolloutProof, SampleProof, SessionRecord,
};

use super::*;

fn measured(min_atol: f64) -> Measurement {
    Measurement {
        elements: 4,
        compared: 4,
        differing: 4,
        max_abs: min_atol,
        mean_abs: min_atol,
        rms: min_atol,
        max_rel: min_atol,
        max_abs_reference: 1.0,
        reference_range: Some((0.0, 1.0)),
        candidate_range: Some((0.0, 1.0)),
        worst: None,
        non_finite: NonFinite::default(),
        tolerance: Tolerance::EXACT,
        outside: 4,
        min_atol,
        ulp_histogram: Vec::new(),
        max_ulp: 1,
        percentiles: None,
    }
}

fn sample(verdict: Verdict, measurement: Option<Measurement>) -> SampleProof {
    SampleProof {
        label: "sample 0".into(),
        verdict,
        reference: "float32[4]".into(),
        candidate: "float32[4]".into(),
        measurement,
        reasons: Vec::new(),
    }
}

fn port(name: &str, verdict: Verdict, measurement: Option<Measurement>) -> PortProof {
    PortProof {
        port: name.into(),
        verdict,
        tolerance: Tolerance::EXACT,
        unstable: false,
        samples: vec![sample(verdict, measurement)],
    }
}

fn node(ports: Vec<PortProof>) -> NodeProof {
    NodeProof {
        node: "policy".into(),
        verdict: ports.iter().map(|port| port.verdict).max().unwrap_or(Verdict::NotComparable),
        samples: 1,
        passes: None,
        fresh: 0,
        tried: 0,
        adequacy: None,
        ports,
        reasons: Vec::new(),
        assumptions: Vec::new(),
        fresh_note: None,
    }
}

fn proof(ports: Vec<PortProof>) -> Proof {
    Proof {
        schema_version: "1.0".into(),
        veracity_version: "0.1.0".into(),
        subject: Subject::default(),
        reference: Reference::default(),
        environment: Environment::default(),
        policy: TolerancePolicy::new(Tolerance::EXACT),
        verdict: Verdict::NotComparable,
        coverage: Coverage::default(),
        nodes: if ports.is_empty() { Vec::new() } else { vec![node(ports)] },
        rollout: RolloutProof::default(),
        inputs: Vec::new(),
        pipeline: None,
        assumptions: Vec::new(),
        findings: Vec::new(),
        advice: Vec::new(),
    }
}

fn of(verdict: Verdict, measurement: Option<Measurement>) -> Proof {
    proof(vec![port("policy/action", verdict, measurement)])
}

fn judged_port(before: &Proof, after: &Proof) -> Judged {
    let found = difference(before, after);
    let worse = worse_than(before, after);
    assert_eq!(worse.len(), found.worse().count(), "both follow one rule: {found:#?}");
    assert!(worse.iter().all(|found| found.code == codes::BASELINE_WORSE));
    let [port] = &found.ports[..] else { panic!("one port: {found:#?}") };
    port.judged
}

#[test]
fn a_port_is_judged_by_its_verdict_and_by_the_tolerance_that_would_pass() {
    use Judged::{Better, Gone, New, Same, Worse};
    use Verdict::{Disproved, NotComparable, Proved};
    let nan = || {
        let non_finite = NonFinite { mismatching: 1, ..NonFinite::default() };
        Measurement { non_finite, ..measured(0.0) }
    };
    let absent = proof(Vec::new());
    for (before, after, expected) in vec![
        (of(Proved, None), of(Proved, None), Same),
        (of(Proved, Some(measured(1e-9))), of(Proved, Some(measured(1e-3))), Same),
        (of(Proved, None), of(NotComparable, None), Worse),
        (of(Proved, None), of(Disproved, None), Worse),
        (of(NotComparable, None), of(Disproved, None), Worse),
        (of(NotComparable, None), of(NotComparable, None), Same),
        (of(NotComparable, None), of(Proved, None), Better),
        (of(Disproved, None), of(NotComparable, None), Better),
        (of(Disproved, None), of(Proved, None), Better),
        (of(Disproved, Some(measured(1.0))), of(Disproved, Some(measured(2.0))), Same),
        (of(Disproved, Some(measured(1.0))), of(Disproved, Some(measured(2.001))), Worse),
        (of(Disproved, Some(measured(2.001))), of(Disproved, Some(measured(1.0))), Better),
        (of(Disproved, Some(measured(1.0))), of(Disproved, None), Worse),
        (of(Disproved, Some(measured(1.0))), of(Disproved, Some(nan())), Worse),
        (of(Disproved, Some(nan())), of(Disproved, Some(measured(1.0))), Better),
        (of(Disproved, Some(nan())), of(Disproved, None), Same),
        (of(Proved, None), absent.clone(), Gone),
        (of(Disproved, None), absent.clone(), Gone),
        (absent.clone(), of(Proved, None), New),
        (absent.clone(), of(NotComparable, None), New),
        (absent.clone(), of(Disproved, None), Worse),
    ] {
        assert_eq!(judged_port(&before, &after), expected, "{before:#?}\n{after:#?}");
    }
}

#[test]
fn a_proof_is_the_same_as_itself() {
    let itself = of(Verdict::Disproved, Some(measured(1.0)));
    assert!(difference(&itself, &itself).is_empty());
    assert_eq!(worse_than(&itself, &itself), []);
}

#[test]
fn nan_that_is_accepted_does_not_count_as_hopeless() {
    let non_finite = NonFinite { matching_nan: 1, ..NonFinite::default() };
    let both = |min_atol| Measurement { non_finite: non_finite.clone(), ..measured(min_atol) };
    let mut proofs = [1.0, 3.0].map(|atol| of(Verdict::Disproved, Some(both(atol))));
    assert_eq!(judged_port(&proofs[0], &proofs[1]), Judged::Same);
    for proof in &mut proofs {
        proof.policy.equal_nan = true;
    }
    assert_eq!(judged_port(&proofs[0], &proofs[1]), Judged::Worse);
}

#[test]
fn the_worst_sample_counts() {
    let with = |atols: [f64; 2]| {
        let samples = atols.map(|atol| sample(Verdict::Disproved, Some(measured(atol))));
        let port = port("policy/action", Verdict::Disproved, None);
        proof(vec![PortProof { samples: samples.into(), ..port }])
    };
    assert_eq!(judged_port(&with([1.0, 5.0]), &with([5.0, 0.5])), Judged::Same);
    assert_eq!(judged_port(&with([1.0, 5.0]), &with([11.0, 0.5])), Judged::Worse);
}

#[test]
fn the_same_port_alone_and_over_time_is_judged_twice() {
    let rolled = |verdict| {
        let mut found = of(Verdict::Proved, None);
        found.rollout.verdict = Some(verdict);
        found.rollout.ports = vec![RolloutPort {
            port: "policy/action".into(),
            role: Role::Output,
            source: "policy/action".into(),
            verdict,
            tolerance: Tolerance::EXACT,
            measurement: measured(1.0),
            first_divergence: None,
            over_time: ErrorOverTime::default(),
        }];
        found
    };
    let found = difference(&rolled(Verdict::Proved), &rolled(Verdict::Disproved));
    let judged: Vec<_> = found.ports.iter().map(|port| (port.section, port.judged)).collect();
    assert_eq!(judged, [(Section::Node, Judged::Same), (Section::Rollout, Judged::Worse)]);
    let worse = worse_than(&rolled(Verdict::Proved), &rolled(Verdict::Disproved));
    assert_eq!(worse[0].message, "\"policy/action\" over time was proved and is disproved");
}

#[test]
fn a_node_that_is_not_run_any_more_is_worse() {
    let before = of(Verdict::Proved, None);
    let mut after = before.clone();
    after.nodes[0].ports[0].samples.clear();
    after.nodes[0].verdict = Verdict::NotComparable;
    assert_eq!(judged_port(&before, &after), Judged::Worse);
    after.nodes[0].ports.clear();
    let judged: Vec<_> = difference(&before, &after).ports.iter().map(|p| p.judged).collect();
    assert_eq!(judged, [Judged::New, Judged::Gone]);
    assert_eq!(worse_than(&before, &after).len(), 1);
}

#[test]
fn another_tolerance_is_given_as_a_hint() {
    let before = of(Verdict::Proved, None);
    let mut after = of(Verdict::Disproved, None);
    after.nodes[0].ports[0].tolerance = Tolerance::new(1e-6, 0.0).unwrap();
    let found = worse_than(&before, &after);
    assert_eq!(
        found[0].to_string(),
        "policy/action: error[VER1114]: \"policy/action\" was proved and is disproved"
    );
    assert_eq!(
        found[0].hints,
        ["the tolerance is not that of the baseline: atol 1e-6, rtol 0e0, not atol 0e0, rtol 0e0"]
    );
}

#[test]
fn every_change_around_the_numbers_is_named() {
    let before = of(Verdict::Proved, None);
    let mut after = before.clone();
    after.subject.files.insert("policy.onnx.data".into(), "ab".into());
    after.reference.seed = Some(3);
    after.environment.threads = 4;
    after.environment.sessions = vec![SessionRecord {
        node: "policy".into(),
        engine: "ort".into(),
        engine_version: "1.24.2".into(),
        device: "cpu".into(),
    }];
    after.policy.ports.insert("policy/action".into(), Tolerance::EXACT);
    let found = difference(&before, &after);
    let names = |changes: &[Change]| -> Vec<String> {
        changes.iter().map(|change| change.what.clone()).collect()
    };
    assert_eq!(names(&found.subject), ["file policy.onnx.data"]);
    assert_eq!(names(&found.reference), ["seed"]);
    assert_eq!(names(&found.environment), ["device of policy", "engine of policy", "threads"]);
    assert_eq!(names(&found.policy), ["policy/action"]);
    let threads = found.environment.last().unwrap();
    assert_eq!((threads.before.as_deref(), threads.after.as_deref()), (Some("0"), Some("4")));
    assert!(!found.is_empty());
}

#[test]
fn what_tracing_had_not_warned_of_is_worse_wherever_the_line_is_now() {
    let warning = |line: u32, message: &str| {
        let place = Place { line: Some(line), ..Place::node("policy") };
        Diagnostic::warning(codes::FROZEN_VALUE, message).at(place).hint("keep it a tensor")
    };
    let noticed = |findings: Vec<Diagnostic>| Proof { findings, ..of(Verdict::Proved, None) };
    let before = noticed(vec![warning(3, "a branch")]);
    for (after, expected) in [
        (vec![], vec![]),
        (vec![warning(9, "a branch")], vec![]),
        (vec![warning(3, "a number")], vec!["VER0911 is new: a number"]),
        (vec![warning(3, "a branch"), warning(4, "a branch")], vec!["VER0911 is new: a branch"]),
    ] {
        let after = noticed(after);
        let worse = worse_than(&before, &after);
        let found = difference(&before, &after);
        assert_eq!(found.noticed.len(), worse.len());
        assert_eq!(found.is_worse(), !worse.is_empty());
        let said: Vec<&str> = worse.iter().map(|found| found.message.as_str()).collect();
        assert_eq!(said, expected);
        assert!(worse.iter().all(|found| found.code == codes::BASELINE_WORSE));
        assert!(worse.iter().all(|found| found.hints == ["keep it a tensor"]));
    }
}
