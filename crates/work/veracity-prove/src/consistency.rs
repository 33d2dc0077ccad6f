//! Whether a proof follows from its own numbers, and fits the bundle that it lies in.
//!
//! Nothing is run. Verdicts are made again from the measurements, assumptions from what the samples
//! say, and counts from the description and the samples. What was measured is believed: that the
//! numbers are those of a run can only be told by running it again, or by who signed it.

use std::fmt;

use veracity_compare::{Judgement, judge};
use veracity_diag::{Code, Diagnostic, codes};
use veracity_results::{
    Measurement, NodeProof, PortProof, Proof, RolloutPort, RolloutProof, SampleProof, Tolerance,
    TolerancePart, TolerancePolicy, Verdict,
};
use veracity_spec::{Bundle, Direction, Node, PortRef, PortSpec};

use crate::builder::{assume, sum_up, sum_up_node};
use crate::contract;
use crate::coverage::Inputs;
use crate::episode::Episode;
use crate::judged::tolerance_of;
use crate::plausible::{implausible, is_about};
use crate::rejudge::within_parts;
use crate::rollout::{over_time, parts_over_time, role, steps_of};
use crate::samples::{Kind, Samples};

/// What a proof says and its bundle or its own numbers do not.
pub(crate) type Contradiction = String;

/// The first contradiction, if there is one.
pub(crate) fn contradiction(bundle: &Bundle, samples: &Samples, proof: &Proof) -> Option<String> {
    let found = check_nodes(bundle, samples, proof)
        .and_then(|()| check_rollout(bundle, samples, proof))
        .and_then(|()| check_contract(bundle, samples))
        .and_then(|()| check_findings(samples, proof))
        .and_then(|()| check_sums(proof))
        .and_then(|()| check_inputs(bundle, samples, proof))
        .and_then(|()| check_environment(bundle, samples, proof));
    found.err()
}

fn refuse<T>(what: impl fmt::Display) -> Result<T, Contradiction> {
    Err(what.to_string())
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), Contradiction> {
    if holds { Ok(()) } else { Err(what()) }
}

fn check_nodes(bundle: &Bundle, samples: &Samples, proof: &Proof) -> Result<(), Contradiction> {
    let nodes = &bundle.spec().nodes;
    let same = nodes.iter().map(|node| &node.name).eq(proof.nodes.iter().map(|node| &node.node));
    require(same, || "its nodes are not those of the bundle".to_owned())?;
    for (node, said) in nodes.iter().zip(&proof.nodes) {
        check_node(node, said, samples, &proof.policy)?;
    }
    Ok(())
}

fn check_node(
    node: &Node,
    said: &NodeProof,
    samples: &Samples,
    policy: &TolerancePolicy,
) -> Result<(), Contradiction> {
    let name = &node.name;
    let key = |port: &PortSpec| format!("{name}/{}", port.name);
    let same = node.outputs.iter().map(key).eq(said.ports.iter().map(|port| port.port.clone()));
    require(same, || format!("the outputs of `{name}` are not those of the bundle"))?;
    let told = |code: Code| said.reasons.iter().any(|reason| reason.code == code);
    require(samples.wrong(name).is_none() || told(codes::RECORDED_WRONG), || {
        format!("`{name}` did while recording what its export cannot do, and the proof is silent")
    })?;
    require(samples.unstable(name).is_none() || told(codes::UNSTABLE), || {
        format!("the code of `{name}` disagrees with itself, and the proof is silent")
    })?;
    if !said.verdict.holds() {
        return Ok(()); // It may have been stopped anywhere.
    }
    for kind in Kind::ALL {
        let (counted, there) = match kind {
            Kind::Recorded => (said.samples, samples.count(name, kind)),
            Kind::Fresh => (said.fresh, samples.count(name, kind)),
        };
        require(counted == there, || {
            format!(
                "it counts {counted} {} samples of `{name}`, and there are {there}",
                kind.word()
            )
        })?;
        for port in &said.ports {
            let listed = listed(port, kind);
            require(listed == Some(there), || {
                format!("it does not list every {} sample of `{}`", kind.word(), port.port)
            })?;
        }
    }
    for (place, (spec, port)) in node.outputs.iter().zip(&said.ports).enumerate() {
        check_port(spec, port, policy)?;
        for sample in &port.samples {
            let Some(measured) = &sample.measurement else { continue };
            let recorded = [("sample ", Kind::Recorded), ("fresh ", Kind::Fresh)];
            let recorded = recorded.into_iter().find_map(|(prefix, kind)| {
                let number = sample.label.strip_prefix(prefix)?.parse().ok()?;
                samples.output(node, kind, place, number)
            });
            require(recorded.is_none_or(|value| is_about(measured, &value)), || {
                format!("`{}` {} was measured on other values", port.port, sample.label)
            })?;
        }
    }
    Ok(())
}

/// How many samples of a kind are listed, those that are counted together included; `None` when a
/// label cannot be understood or one is missing.
fn listed(port: &PortProof, kind: Kind) -> Option<usize> {
    let (one, many) = match kind {
        Kind::Recorded => ("sample ", "samples "),
        Kind::Fresh => ("fresh ", "freshs "),
    };
    let mut seen = std::collections::BTreeSet::new();
    for label in port.samples.iter().map(|sample| sample.label.as_str()) {
        if let Some(number) = label.strip_prefix(one) {
            seen.insert(number.parse::<usize>().ok()?);
        } else if let Some(range) = label.strip_prefix(many) {
            let (first, last) = range.split_once(" to ").unwrap_or((range, range));
            seen.extend(first.parse::<usize>().ok()?..=last.parse::<usize>().ok()?);
        }
    }
    seen.iter().copied().eq(0..seen.len()).then_some(seen.len())
}

fn check_port(
    spec: &PortSpec,
    port: &PortProof,
    policy: &TolerancePolicy,
) -> Result<(), Contradiction> {
    let name = &port.port;
    let wanted = tolerance_of(policy, name, spec.dtype);
    require(port.tolerance == wanted, || {
        format!("`{name}` was judged by another tolerance than the proof's policy")
    })?;
    // Judging again keeps what was measured by another tolerance, and does so for all samples.
    let measured = || port.samples.iter().filter_map(|sample| sample.measurement.as_ref());
    let first = measured().next().map(|first| first.tolerance);
    let alike = measured().all(|one| Some(one.tolerance) == first);
    require(alike, || format!("samples of `{name}` were measured by different tolerances"))?;
    let kind = format!("{}{}", spec.dtype, spec.shape);
    for sample in &port.samples {
        let label = &sample.label;
        require(sample.reference == kind, || format!("`{name}` {label} is no {kind}"))?;
        let one = spec.shape.elements() as u64;
        check_sample(sample, wanted, policy.parts_of(name), policy.equal_nan, one)
            .map_err(|what| format!("`{name}` {label}: {what}"))?;
    }
    Ok(())
}

fn check_sample(
    sample: &SampleProof,
    tolerance: Tolerance,
    parts: &[TolerancePart],
    equal_nan: bool,
    elements: u64,
) -> Result<(), Contradiction> {
    let Some(measured) = &sample.measurement else {
        return require(!sample.verdict.holds(), || {
            "it holds, and nothing was measured".to_owned()
        });
    };
    require(sample.candidate == sample.reference, || "the model gave something else".to_owned())?;
    let whole = elements > 0 && measured.elements % elements == 0 && measured.elements > 0;
    require(whole || elements == 0, || "not every element was measured".to_owned())?;
    check_measured(measured, tolerance, parts, equal_nan, sample.verdict)
}

/// Whether a measurement can be what it says, and gives the verdict that is told.
fn check_measured(
    measured: &Measurement,
    tolerance: Tolerance,
    parts: &[TolerancePart],
    equal_nan: bool,
    verdict: Verdict,
) -> Result<(), Contradiction> {
    // What was measured by another tolerance and judged again says nothing about single elements.
    let is_measured = measured.tolerance == tolerance || within_parts(measured, parts, equal_nan);
    require(is_measured, || "it was measured by another tolerance".to_owned())?;
    let made = match judge(measured, tolerance, equal_nan) {
        Judgement::Proved => Verdict::Proved,
        Judgement::Disproved => Verdict::Disproved,
        Judgement::Undecided => Verdict::NotComparable,
    };
    require(made == verdict, || {
        format!("it is told to be {}, and its numbers say {}", verdict.word(), made.word())
    })?;
    let sane = measured.outside <= measured.differing
        && measured.differing <= measured.elements
        && measured.compared <= measured.elements
        && measured.max_abs >= 0.0
        && measured.mean_abs <= measured.max_abs * (1.0 + 1e-9)
        && measured.rms <= measured.max_abs * (1.0 + 1e-9)
        && (measured.differing == 0) == (measured.max_abs == 0.0 && largest_ulp(measured) == 0);
    require(sane || !verdict.holds(), || "its numbers contradict each other".to_owned())?;
    if let (Some(what), true) = (implausible(measured), verdict.holds()) {
        return refuse(format!("its numbers contradict each other: {what} cannot be"));
    }
    // The worst element may lie anywhere within the tolerance of the largest value, and no further.
    let bound = tolerance.bound(measured.max_abs_reference);
    let within = measured.max_abs <= bound * (1.0 + 1e-6) + f64::MIN_POSITIVE;
    let worst = measured.worst.as_ref().is_none_or(|worst| {
        let error = (worst.candidate - worst.reference).abs();
        !error.is_finite() || (error - measured.max_abs).abs() <= 1e-6 * measured.max_abs
    });
    require((within && worst) || !verdict.holds(), || {
        "its largest error does not fit its worst element or its tolerance".to_owned()
    })
}

fn largest_ulp(measured: &Measurement) -> u64 {
    measured.max_ulp
}

fn check_rollout(bundle: &Bundle, samples: &Samples, proof: &Proof) -> Result<(), Contradiction> {
    let (spec, rollout) = (bundle.spec(), &proof.rollout);
    let flows = !spec.data_flow.is_empty() || !spec.feedback_flow.is_empty();
    let Some(verdict) = rollout.verdict else {
        return require(!flows && rollout.ports.is_empty(), || "it has no roll-out".to_owned());
    };
    if !verdict.holds() {
        return Ok(());
    }
    require(flows, || "it has a roll-out of a bundle in which nothing flows".to_owned())?;
    let Ok(episode) = Episode::new(bundle, samples) else {
        return refuse("its roll-out holds, and the samples are no episode");
    };
    let ticks = episode.ticks();
    let has_state = !spec.feedback_flow.is_empty();
    let counted = (rollout.ticks, rollout.steps) == (ticks.len(), steps_of(ticks.len(), has_state));
    require(counted, || "its roll-out is not as long as the recorded episode".to_owned())?;
    let late = rollout.reasons.iter().any(|reason| reason.code == codes::START_UNCHECKED);
    require(episode.begins_at_the_start() || late, || {
        "its roll-out begins later than the bundle, and does not say so".to_owned()
    })?;
    let mut wanted = Vec::new();
    for node in &spec.nodes {
        for direction in [Direction::Input, Direction::Output] {
            for port in node.ports(direction) {
                let key = PortRef::new(&node.name, &port.name);
                let recorded = episode.value(&key, direction, ticks.start).is_some();
                if let (true, Some((role, source))) = (recorded, role(spec, &key, direction)) {
                    wanted.push((key, role, source, port));
                }
            }
        }
    }
    let same = wanted.len() == rollout.ports.len()
        && wanted.iter().zip(&rollout.ports).all(|((key, role, source, _), said)| {
            said.port == key.to_string() && said.role == *role && said.source == source.to_string()
        });
    require(same, || "its roll-out does not compare every recorded port".to_owned())?;
    for ((.., source, spec), said) in wanted.iter().zip(&rollout.ports) {
        let one = tolerance_of(&proof.policy, &source.to_string(), spec.dtype);
        let tolerance = over_time(&proof.policy, one, ticks.len());
        let parts = parts_over_time(&proof.policy, &said.source, ticks.len());
        check_rollout_port(said, rollout, spec, (tolerance, &parts), proof.policy.equal_nan)
            .map_err(|what| format!("`{}` over time: {what}", said.port))?;
    }
    Ok(())
}

fn check_rollout_port(
    said: &RolloutPort,
    rollout: &RolloutProof,
    spec: &PortSpec,
    (tolerance, parts): (Tolerance, &[TolerancePart]),
    equal_nan: bool,
) -> Result<(), Contradiction> {
    require(said.tolerance == tolerance, || "it was judged by another tolerance".to_owned())?;
    let elements = (spec.shape.elements() * rollout.steps) as u64;
    require(said.measurement.elements == elements, || "ticks are missing".to_owned())?;
    let most = said.measurement.max_abs * (1.0 + 1e-6) + f64::MIN_POSITIVE;
    let drawn = &said.over_time;
    let covered = drawn.max_abs.len() * drawn.ticks_each >= rollout.ticks;
    require(covered && drawn.max_abs.iter().all(|error| *error <= most), || {
        "its errors over time are not those of its ticks".to_owned()
    })?;
    check_measured(&said.measurement, tolerance, parts, equal_nan, said.verdict)
}

/// What ports mean lies in the samples as well.
fn check_contract(bundle: &Bundle, samples: &Samples) -> Result<(), Contradiction> {
    match contract::changed(bundle, samples).first() {
        Some((_, found)) => refuse(&found.message),
        None => Ok(()),
    }
}

/// What tracing noticed lies in the samples, which are not the proof's to change.
fn check_findings(samples: &Samples, proof: &Proof) -> Result<(), Contradiction> {
    let lost = samples.findings().iter().find(|found| !proof.findings.contains(found));
    match lost {
        Some(found) => refuse(format!("it leaves out what tracing noticed: {}", found.code)),
        None => Ok(()),
    }
}

/// Makes assumptions, verdicts and counts again.
fn check_sums(proof: &Proof) -> Result<(), Contradiction> {
    let mut made = proof.clone();
    for node in &mut made.nodes {
        node.assumptions.clear();
        // What a node was refused for stays; what follows from its ports is made again.
        let refused = node.reasons.iter().any(|reason| reason.code != codes::UNSTABLE);
        node.verdict = if refused { node.verdict } else { Verdict::Proved };
    }
    assume(&mut made.nodes, &proof.findings);
    made.nodes.iter_mut().for_each(sum_up_node);
    let failed = proof.rollout.reasons.iter().any(is_error);
    let worst = proof.rollout.ports.iter().map(|port| port.verdict).max();
    made.rollout.verdict = match (proof.rollout.verdict, worst) {
        (Some(said), Some(worst)) => Some(if failed { said } else { worst }),
        (said, _) => said,
    };
    sum_up(&mut made);
    for (said, made) in proof.nodes.iter().zip(&made.nodes) {
        let name = &said.node;
        require(said.assumptions == made.assumptions, || {
            format!("the assumptions of `{name}` are not those that tracing noticed")
        })?;
        require(said.verdict == made.verdict, || {
            let (said, made) = (said.verdict.word(), made.verdict.word());
            format!("`{name}` is told to be {said}, and its outputs say {made}")
        })?;
        for (said, made) in said.ports.iter().zip(&made.ports) {
            require(said.verdict == made.verdict, || {
                let (word, follows) = (said.verdict.word(), made.verdict.word());
                format!("`{}` is told to be {word}, and its samples say {follows}", said.port)
            })?;
        }
    }
    require(proof.rollout.verdict == made.rollout.verdict, || {
        "the verdict of its roll-out is not that of its ports".to_owned()
    })?;
    require(proof.verdict == made.verdict, || {
        let (said, made) = (proof.verdict.word(), made.verdict.word());
        format!("it says {said}, and its nodes and roll-out say {made}")
    })?;
    require(proof.coverage == made.coverage, || {
        "its counts are not those of its ports".to_owned()
    })?;
    require(proof.assumptions == made.assumptions, || {
        "its assumptions are not those of its nodes".to_owned()
    })
}

fn is_error(found: &Diagnostic) -> bool {
    found.severity == veracity_diag::Severity::Error
}

/// The values that were tried lie in the samples.
fn check_inputs(bundle: &Bundle, samples: &Samples, proof: &Proof) -> Result<(), Contradiction> {
    let mut inputs = Inputs::default();
    for (node, said) in bundle.spec().nodes.iter().zip(&proof.nodes) {
        for kind in Kind::ALL {
            for sample in 0..samples.count(&node.name, kind) {
                for (index, port) in node.inputs.iter().enumerate() {
                    let value = samples.input(node, kind, index, sample);
                    let value = value.filter(|_| said.verdict.holds());
                    if let Some(value) = value {
                        inputs.add(&node.name, &port.name, &value);
                    }
                }
            }
        }
    }
    for made in inputs.finish() {
        let said = proof.inputs.iter().find(|input| input.port == made.port);
        let near =
            |left: f64, right: f64| (left - right).abs() <= 1e-9 * left.abs().max(right.abs());
        let same = said.is_some_and(|said| {
            let range = match (said.range, made.range) {
                (Some(said), Some(made)) => near(said.0, made.0) && near(said.1, made.1),
                (said, made) => said == made,
            };
            range && (said.samples, said.constant) == (made.samples, made.constant)
        });
        require(same, || format!("the values of `{}` are not those of the samples", made.port))?;
    }
    Ok(())
}

fn check_environment(
    bundle: &Bundle,
    samples: &Samples,
    proof: &Proof,
) -> Result<(), Contradiction> {
    let said = &proof.reference;
    let there = samples.reference();
    require(said.origin == there.origin && said.made_with == there.made_with, || {
        "it names another origin than the samples".to_owned()
    })?;
    for node in &bundle.spec().nodes {
        let proved = proof.nodes.iter().find(|one| one.node == node.name);
        let holds = proved.is_some_and(|one| one.verdict.holds());
        let ran = proof.environment.sessions.iter().any(|session| session.node == node.name);
        require(ran || !holds, || format!("it does not say what ran `{}`", node.name))?;
    }
    Ok(())
}
