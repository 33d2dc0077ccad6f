//! Proofs of one kind each.

use std::collections::BTreeMap;

use veracity_diag::{Diagnostic, Place, codes};
use veracity_results::{
    Coverage, Divergence, Environment, ErrorOverTime, InputCoverage, Measurement, ModelSubject,
    NodeProof, NonFinite, Origin, Percentiles, PortProof, Proof, Reference, Role, RolloutPort,
    RolloutProof, SampleProof, SessionRecord, Subject, Tolerance, TolerancePolicy, Verdict, Worst,
};

pub(crate) fn tolerance() -> Tolerance {
    Tolerance::new(1e-5, 1e-3).unwrap()
}

/// Twelve elements that agree to the last digits.
pub(crate) fn close() -> Measurement {
    Measurement {
        elements: 12,
        compared: 12,
        differing: 3,
        max_abs: 1.192_092_895_507_812_5e-7,
        mean_abs: 2e-8,
        rms: 4e-8,
        max_rel: 1.1e-7,
        max_abs_reference: 2.25,
        reference_range: Some((-1.5, 2.25)),
        candidate_range: Some((-1.5, 2.25)),
        worst: Some(Worst {
            index: vec![0, 7],
            reference: 1.0,
            candidate: 1.000_000_119_209_289_6,
        }),
        non_finite: NonFinite::default(),
        tolerance: tolerance(),
        outside: 0,
        min_atol: 0.0,
        ulp_histogram: Vec::new(),
        max_ulp: 1,
        percentiles: None,
    }
}

/// Twelve elements of which four are off.
pub(crate) fn far() -> Measurement {
    Measurement {
        differing: 12,
        max_abs: 0.0213,
        mean_abs: 0.0018,
        rms: 0.0062,
        max_rel: 0.0203,
        candidate_range: Some((-1.5, 2.271_3)),
        worst: Some(Worst { index: vec![0, 7], reference: 1.0482, candidate: 1.0695 }),
        outside: 4,
        min_atol: 0.020_251_8,
        max_ulp: 178_956,
        percentiles: Some(Percentiles {
            p50: 1e-6,
            p75: 0.001,
            p90: 0.012,
            p99: 0.0209,
            p995: 0.0211,
        }),
        ..close()
    }
}

/// One NaN and two infinities that only the exported model has.
pub(crate) fn not_finite() -> Measurement {
    Measurement {
        compared: 9,
        non_finite: NonFinite {
            candidate_nan: 1,
            candidate_inf: 2,
            mismatching: 3,
            first_mismatch: Some(vec![0, 2]),
            ..NonFinite::default()
        },
        ..close()
    }
}

pub(crate) fn sample(label: &str, verdict: Verdict, measurement: Measurement) -> SampleProof {
    SampleProof {
        label: label.into(),
        verdict,
        reference: "float32[1, 12]".into(),
        candidate: "float32[1, 12]".into(),
        measurement: Some(measurement),
        reasons: Vec::new(),
    }
}

pub(crate) fn port(name: &str, samples: Vec<SampleProof>) -> PortProof {
    let verdict = samples.iter().map(|sample| sample.verdict).max();
    PortProof {
        port: name.into(),
        verdict: verdict.unwrap_or(Verdict::NotComparable),
        tolerance: tolerance(),
        unstable: false,
        samples,
    }
}

pub(crate) fn good_port(name: &str) -> PortProof {
    let samples = (0..5).map(|n| sample(&format!("sample {n}"), Verdict::Proved, close()));
    port(name, samples.collect())
}

pub(crate) fn bad_port(name: &str, measurement: Measurement) -> PortProof {
    port(name, vec![sample("sample 0", Verdict::Disproved, measurement)])
}

pub(crate) fn node(name: &str, ports: Vec<PortProof>) -> NodeProof {
    let verdict = ports.iter().map(|port| port.verdict).max();
    NodeProof {
        node: name.into(),
        verdict: verdict.unwrap_or(Verdict::NotComparable),
        samples: 5,
        passes: None,
        fresh: 8,
        tried: 0,
        adequacy: None,
        ports,
        reasons: Vec::new(),
        assumptions: Vec::new(),
        fresh_note: None,
    }
}

/// A node about which something is said as a whole; nothing of it was compared.
pub(crate) fn refused_node(name: &str, verdict: Verdict, reason: Diagnostic) -> NodeProof {
    let unreached =
        ["action", "value"].map(|port_name| port(&format!("{name}/{port_name}"), vec![]));
    let reasons = vec![reason.at(Place::node(name))];
    NodeProof { verdict, samples: 0, fresh: 0, reasons, ..node(name, unreached.into()) }
}

pub(crate) fn rollout_port(name: &str, role: Role, diverges: Option<usize>) -> RolloutPort {
    let (verdict, measurement) = match diverges {
        None => (Verdict::Proved, close()),
        Some(_) => (Verdict::Disproved, far()),
    };
    RolloutPort {
        port: name.into(),
        role,
        source: name.into(),
        verdict,
        tolerance: tolerance(),
        measurement,
        first_divergence: diverges,
        over_time: over_time(diverges),
    }
}

/// Five ticks that are equal, or off from one of them on.
fn over_time(diverges: Option<usize>) -> ErrorOverTime {
    let mut found = ErrorOverTime::new(&(0..5));
    for tick in 0..5 {
        found.add(tick, diverges.map_or(0.0, |first| if tick < first { 1e-7 } else { 0.0213 }));
    }
    found
}

pub(crate) fn rollout(ports: Vec<RolloutPort>) -> RolloutProof {
    let diverging = |port: &RolloutPort| {
        let (tick, port, role) = (port.first_divergence?, port.port.clone(), port.role);
        Some(Divergence { tick, port, role })
    };
    RolloutProof {
        verdict: ports.iter().map(|port| port.verdict).max(),
        ticks: 5,
        steps: 10,
        resets: 2,
        first_divergence: ports.iter().filter_map(diverging).min_by_key(|first| first.tick),
        ports,
        reasons: Vec::new(),
    }
}

/// A proof of these nodes and this roll-out, summed up as a prover does.
pub(crate) fn proof(nodes: Vec<NodeProof>, rollout: RolloutProof) -> Proof {
    let session = |node: &NodeProof| SessionRecord {
        node: node.node.clone(),
        engine: "ort".into(),
        engine_version: "1.24.2".into(),
        device: "cpu".into(),
    };
    let model =
        |node: &NodeProof| ModelSubject { node: node.node.clone(), ..ModelSubject::default() };
    let mut proof = Proof {
        schema_version: "1.0".into(),
        veracity_version: "0.1.0".into(),
        subject: Subject {
            bundle: "walk".into(),
            models: nodes.iter().map(model).collect(),
            files: BTreeMap::new(),
            ..Subject::default()
        },
        reference: Reference {
            origin: Origin::Python,
            made_with: "torch 2.11.0".into(),
            sources: [("policy".to_owned(), "me/walk.py:7".to_owned())].into(),
            seed: Some(7),
        },
        environment: Environment {
            sessions: nodes.iter().map(session).collect(),
            threads: 1,
            system: "linux x86_64".into(),
            ..Environment::default()
        },
        policy: TolerancePolicy::new(tolerance()),
        verdict: Verdict::NotComparable,
        coverage: Coverage::default(),
        nodes,
        rollout,
        inputs: vec![InputCoverage {
            port: "policy/obs".into(),
            samples: 5,
            constant: false,
            range: Some((-1.0, 1.0)),
        }],
        pipeline: None,
        assumptions: Vec::new(),
        findings: Vec::new(),
        advice: Vec::new(),
    };
    let verdicts: Vec<Verdict> = proof.rows().iter().map(|row| row.verdict).collect();
    proof.coverage = Coverage::of(verdicts.iter().copied());
    proof.verdict = verdicts.into_iter().max().unwrap_or(Verdict::NotComparable);
    proof
}

pub(crate) fn clean() -> Proof {
    let nodes = vec![
        node("encoder", vec![good_port("encoder/z")]),
        node("policy", vec![good_port("policy/action")]),
    ];
    let ports = vec![
        rollout_port("policy/action", Role::Output, None),
        rollout_port("policy/h", Role::Feedback, None),
    ];
    proof(nodes, rollout(ports))
}

/// One proof of each kind of finding.
pub(crate) fn everything() -> Proof {
    let mut unstable = good_port("head/noise");
    (unstable.unstable, unstable.verdict) = (true, Verdict::NotComparable);
    let mut wobbling = good_port("head/logits");
    wobbling.unstable = true;
    let mut head = node("head", vec![unstable, wobbling]);
    let message = "the same inputs gave values that differ by up to 1.5e0";
    head.reasons =
        vec![Diagnostic::warning(codes::UNSTABLE, message).at(Place::port("head", "noise"))];
    head.fresh_note = Some("the code cannot be run again".into());
    let absent = Diagnostic::error(codes::NODE_NOT_RUN, "no engine here runs pt2 models");
    let nodes = vec![
        node("encoder", vec![good_port("encoder/z")]),
        node(
            "policy",
            vec![bad_port("policy/action", far()), bad_port("policy/value", not_finite())],
        ),
        refused_node("vision", Verdict::NotComparable, absent),
        head,
    ];
    let ports = vec![
        rollout_port("policy/action", Role::Output, Some(2)),
        rollout_port("policy/h", Role::Feedback, Some(1)),
        rollout_port("encoder/z", Role::Inner, None),
    ];
    let mut proof = proof(nodes, rollout(ports));
    for port in ["encoder/mode", "encoder/gain", "head/mask", "head/scale"] {
        let (port, range) = (port.into(), Some((1.0, 1.0)));
        proof.inputs.push(InputCoverage { port, samples: 1, constant: true, range });
    }
    proof.environment.sessions[3].engine = "torch".into();
    proof.environment.sessions[3].engine_version = "2.11.0".into();
    proof.advice = vec!["look at the inputs of policy that nobody marked".into()];
    proof
}

/// A proof that holds, of which tracing noticed something and not every pass was kept.
pub(crate) fn noticed() -> Proof {
    let mut found = clean();
    found.nodes[1].passes = Some(6);
    let frozen = "a value of `policy` left for Python as a truth value: what Python made of it is \
                  fixed";
    let place = |line| Place { line: Some(line), ..Place::node("policy") }.with_file("me/walk.py");
    found.findings = vec![
        Diagnostic::warning(codes::FROZEN_VALUE, frozen).at(place(12)).hint("keep it a tensor"),
        Diagnostic::error(codes::MISSED_INPUT, "a tensor changes from pass to pass").at(place(9)),
        Diagnostic::warning(codes::DELAY_VARIES, "one value is read on several passes"),
    ];
    found
}
