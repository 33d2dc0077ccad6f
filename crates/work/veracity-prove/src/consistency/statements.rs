//! Whether a proof repeats what the bundle and its samples say.

use veracity_results::{InputCoverage, Pipeline, Proof};
use veracity_spec::Bundle;

use super::{Contradiction, require};
use crate::contract;
use crate::coverage::Inputs;
use crate::describe::describe;
use crate::samples::{Kind, Samples};

pub(super) fn check(
    bundle: &Bundle,
    samples: &Samples,
    proof: &Proof,
) -> Result<(), Contradiction> {
    check_contract(bundle, samples)?;
    check_noticed(samples, proof)?;
    check_pipeline(bundle, proof)?;
    check_inputs(bundle, samples, proof)?;
    check_sessions(bundle, proof)
}

/// What ports mean lies in the samples as well.
fn check_contract(bundle: &Bundle, samples: &Samples) -> Result<(), Contradiction> {
    match contract::changed(bundle, samples).first() {
        Some((_, found)) => Err(found.message.clone()),
        None => Ok(()),
    }
}

/// What was noticed while recording lies in the samples, which are not the proof's to change.
fn check_noticed(samples: &Samples, proof: &Proof) -> Result<(), Contradiction> {
    require(proof.reference == *samples.reference(), || {
        "it names another origin than the samples".to_owned()
    })?;
    if let Some(lost) = samples.findings().iter().find(|found| !proof.findings.contains(found)) {
        return Err(format!("it leaves out what tracing noticed: {}", lost.code));
    }
    for said in &proof.nodes {
        let name = &said.node;
        let same = said.passes == samples.passes(name)
            && said.adequacy.as_ref() == samples.adequacy(name)
            && said.fresh_note.as_deref() == samples.fresh_note(name);
        require(same, || {
            format!("passes, planted faults or notes of `{name}` are not those of the samples")
        })?;
    }
    Ok(())
}

/// What is shown of the bundle is what it is. Its name may have changed since.
fn check_pipeline(bundle: &Bundle, proof: &Proof) -> Result<(), Contradiction> {
    let Some(said) = &proof.pipeline else { return Ok(()) };
    require(said.name == proof.subject.bundle, || "it has two names".to_owned())?;
    let there = Pipeline { name: said.name.clone(), ..describe(bundle) };
    require(*said == there, || "it shows another pipeline than the bundle".to_owned())
}

/// The values that were tried lie in the samples.
fn check_inputs(bundle: &Bundle, samples: &Samples, proof: &Proof) -> Result<(), Contradiction> {
    let mut inputs = Inputs::default();
    for (node, said) in bundle.spec().nodes.iter().zip(&proof.nodes) {
        for kind in Kind::ALL.into_iter().filter(|_| said.verdict.holds()) {
            for sample in 0..samples.count(&node.name, kind) {
                for (index, port) in node.inputs.iter().enumerate() {
                    if let Some(value) = samples.input(node, kind, index, sample) {
                        inputs.add(&node.name, &port.name, &value);
                    }
                }
            }
        }
    }
    for made in inputs.finish() {
        let said = proof.inputs.iter().find(|input| input.port == made.port);
        require(said.is_some_and(|said| is_same(said, &made)), || {
            format!("the values of `{}` are not those of the samples", made.port)
        })?;
    }
    Ok(())
}

fn is_same(said: &InputCoverage, made: &InputCoverage) -> bool {
    let near = |left: f64, right: f64| (left - right).abs() <= 1e-9 * left.abs().max(right.abs());
    let range = match (said.range, made.range) {
        (Some(said), Some(made)) => near(said.0, made.0) && near(said.1, made.1),
        (said, made) => said == made,
    };
    range && (said.samples, said.constant) == (made.samples, made.constant)
}

fn check_sessions(bundle: &Bundle, proof: &Proof) -> Result<(), Contradiction> {
    for node in &bundle.spec().nodes {
        let proved = proof.nodes.iter().find(|one| one.node == node.name);
        let holds = proved.is_some_and(|one| one.verdict.holds());
        let ran = proof.environment.sessions.iter().any(|session| session.node == node.name);
        require(ran || !holds, || format!("it does not say what ran `{}`", node.name))?;
    }
    Ok(())
}
