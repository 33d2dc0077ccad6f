//! Whether what a proof says about each node alone can be what its samples gave.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use veracity_diag::{Code, codes};
use veracity_results::{NodeProof, PortProof, Proof, SampleProof, TolerancePolicy, Verdict};
use veracity_spec::{Bundle, Node, PortSpec};
use veracity_tensor::TensorView;

use super::{Contradiction, require};
use crate::judged::tolerance_of;
use crate::plausible::{Judged, check_measured, has, is_about};
use crate::samples::{Kind, Samples};

pub(super) fn check(
    bundle: &Bundle,
    samples: &Samples,
    proof: &Proof,
) -> Result<(), Contradiction> {
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
    check_reasons(said, samples)?;
    if !said.verdict.holds() {
        return Ok(()); // It may have been stopped anywhere.
    }
    for kind in Kind::ALL {
        check_counts(said, kind, samples.count(name, kind))?;
    }
    for (place, (spec, port)) in node.outputs.iter().zip(&said.ports).enumerate() {
        check_tolerances(spec, port, policy)?;
        for sample in &port.samples {
            let recorded = |kind, number| samples.output(node, kind, place, number);
            check_sample(spec, port, sample, policy, recorded)
                .map_err(|what| format!("`{}` {}: {what}", port.port, sample.label))?;
        }
    }
    Ok(())
}

/// What samples say about the code of a node is repeated by its proof.
fn check_reasons(said: &NodeProof, samples: &Samples) -> Result<(), Contradiction> {
    let name = &said.node;
    let told = |code: Code| said.reasons.iter().any(|reason| reason.code == code);
    require(samples.wrong(name).is_none() || told(codes::RECORDED_WRONG), || {
        format!("`{name}` did while recording what its export cannot do, and the proof is silent")
    })?;
    require(samples.unstable(name).is_none() || told(codes::UNSTABLE), || {
        format!("the code of `{name}` disagrees with itself, and the proof is silent")
    })
}

fn check_counts(said: &NodeProof, kind: Kind, there: usize) -> Result<(), Contradiction> {
    let counted = match kind {
        Kind::Recorded => said.samples,
        Kind::Fresh => said.fresh,
    };
    let (name, word) = (&said.node, kind.word());
    require(counted == there, || {
        format!("it counts {counted} {word} samples of `{name}`, and there are {there}")
    })?;
    for port in &said.ports {
        require(listed(port, kind) == Some(there), || {
            format!("it does not list every {word} sample of `{}`", port.port)
        })?;
    }
    Ok(())
}

/// How many samples of a kind are listed, those that are counted together included; `None` when a
/// label cannot be understood or one is missing.
fn listed(port: &PortProof, kind: Kind) -> Option<usize> {
    let mut seen = BTreeSet::new();
    for sample in &port.samples {
        let (found, numbers) = numbers(&sample.label)?;
        if found == kind {
            seen.extend(numbers);
        }
    }
    seen.iter().copied().eq(0..seen.len()).then_some(seen.len())
}

/// The samples that a label is about: `sample 3`, or `freshs 32 to 204`.
fn numbers(label: &str) -> Option<(Kind, RangeInclusive<usize>)> {
    let (word, rest) = label.split_once(' ')?;
    let kind = match word {
        "sample" | "samples" => Kind::Recorded,
        "fresh" | "freshs" => Kind::Fresh,
        _ => return None,
    };
    let (first, last) = rest.split_once(" to ").unwrap_or((rest, rest));
    Some((kind, first.parse().ok()?..=last.parse().ok()?))
}

fn check_tolerances(
    spec: &PortSpec,
    port: &PortProof,
    policy: &TolerancePolicy,
) -> Result<(), Contradiction> {
    let name = &port.port;
    require(port.tolerance == tolerance_of(policy, name, spec.dtype), || {
        format!("`{name}` was judged by another tolerance than the proof's policy")
    })?;
    // Judging again keeps what was measured by another tolerance, and does so for all samples.
    let measured = || port.samples.iter().filter_map(|sample| sample.measurement.as_ref());
    let first = measured().next().map(|first| first.tolerance);
    let alike = measured().all(|one| Some(one.tolerance) == first);
    require(alike, || format!("samples of `{name}` were measured by different tolerances"))
}

fn check_sample<'s>(
    spec: &PortSpec,
    port: &PortProof,
    sample: &SampleProof,
    policy: &TolerancePolicy,
    recorded: impl Fn(Kind, usize) -> Option<TensorView<'s>>,
) -> Result<(), Contradiction> {
    let kind = format!("{}{}", spec.dtype, spec.shape);
    require(sample.reference == kind, || format!("is no {kind}"))?;
    let Some(measured) = &sample.measurement else {
        return require(!sample.verdict.holds(), || {
            "it holds, and nothing was measured".to_owned()
        });
    };
    require(sample.candidate == sample.reference, || "the model gave something else".to_owned())?;
    let judged = Judged {
        measured,
        dtype: spec.dtype,
        tolerance: port.tolerance,
        parts: policy.parts_of(&port.port),
        equal_nan: policy.equal_nan,
        verdict: sample.verdict,
    };
    check_measured(&judged)?;
    if sample.verdict != Verdict::Proved {
        return Ok(());
    }
    let (kind, numbers) = numbers(&sample.label).ok_or("its label says nothing")?;
    let references = || numbers.clone().filter_map(|number| recorded(kind, number));
    let has_worst = measured
        .worst
        .as_ref()
        .is_none_or(|worst| references().any(|value| has(&value, &worst.index, worst.reference)));
    require(has_worst && is_about(measured, references()), || {
        "it was measured on other values".to_owned()
    })
}
