//! Whether what a proof says about the whole bundle over time can be what the recorded episode gave.

use std::ops::Range;

use veracity_diag::codes;
use veracity_results::{Proof, Role, RolloutPort, RolloutProof, TolerancePolicy};
use veracity_spec::{Bundle, Direction, PortRef, PortSpec, Spec};

use super::{Contradiction, require};
use crate::episode::Episode;
use crate::judged::{judge_pair, tolerance_of};
use crate::plausible::{Judged, check_measured, has, is_about};
use crate::rollout::{over_time, parts_over_time, role, runs};
use crate::samples::Samples;

pub(super) fn check(
    bundle: &Bundle,
    samples: &Samples,
    proof: &Proof,
) -> Result<(), Contradiction> {
    let (spec, rollout) = (bundle.spec(), &proof.rollout);
    let flows = !spec.data_flow.is_empty() || !spec.feedback_flow.is_empty();
    let Some(verdict) = rollout.verdict else {
        return require(!flows && rollout.ports.is_empty(), || "it has no roll-out".to_owned());
    };
    if !verdict.holds() {
        return Ok(());
    }
    require(flows, || "it has a roll-out of a bundle in which nothing flows".to_owned())?;
    let episode = Episode::new(bundle, samples)
        .map_err(|refused| format!("its roll-out holds, and there is none: {}", refused.message))?;
    check_length(spec, rollout, &episode)?;
    check_start(bundle, &proof.policy, rollout, &episode)?;
    let wanted = compared(spec, &episode);
    let same = wanted.len() == rollout.ports.len()
        && wanted.iter().zip(&rollout.ports).all(|(port, said)| port.is(said));
    require(same, || "its roll-out does not compare every recorded port".to_owned())?;
    for (port, said) in wanted.iter().zip(&rollout.ports) {
        port.check(said, &proof.policy, &episode, &runs(spec, episode.ticks()))
            .map_err(|what| format!("`{}` over time: {what}", said.port))?;
    }
    Ok(())
}

fn check_length(
    spec: &Spec,
    rollout: &RolloutProof,
    episode: &Episode<'_>,
) -> Result<(), Contradiction> {
    let runs = runs(spec, episode.ticks());
    let steps: usize = runs.iter().map(Range::len).sum();
    let counted = (rollout.ticks, rollout.steps) == (episode.ticks().len(), steps);
    require(counted, || "its roll-out is not as long as the recorded episode".to_owned())?;
    let set_back =
        runs.iter().cloned().flatten().filter(|tick| !episode.set_back(*tick).is_empty());
    let resets = runs.len() - 1 + set_back.count();
    require(rollout.resets == resets, || {
        format!("it counts {} resets, and the episode has {resets}", rollout.resets)
    })?;
    require(rollout.first_divergence.is_none(), || "it holds, and leaves the episode".to_owned())
}

/// States begin with what was recorded on the first tick, or the roll-out says that it begins later.
fn check_start(
    bundle: &Bundle,
    policy: &TolerancePolicy,
    rollout: &RolloutProof,
    episode: &Episode<'_>,
) -> Result<(), Contradiction> {
    let late = rollout.reasons.iter().any(|reason| reason.code == codes::START_UNCHECKED);
    require(episode.begins_at_the_start() || late, || {
        "its roll-out begins later than the bundle, and does not say so".to_owned()
    })?;
    let initial = bundle.initial_values().map_err(|refusal| refusal.to_string())?;
    for edge in bundle.spec().feedback_flow.iter().filter(|_| episode.begins_at_the_start()) {
        let recorded = episode.value(&edge.target, Direction::Input, 0);
        let (Some(recorded), Some(begun)) = (recorded, initial.values.get(&edge.target)) else {
            continue;
        };
        let source = edge.source.to_string();
        let ticks = episode.ticks().len();
        let tolerance = over_time(policy, tolerance_of(policy, &source, recorded.dtype()), ticks);
        let parts = parts_over_time(policy, &source, ticks);
        let judged = judge_pair(&recorded, &begun.view(), tolerance, &parts, policy.equal_nan);
        require(judged.verdict.holds(), || {
            format!("`{}` does not begin with what was recorded", edge.target)
        })?;
    }
    Ok(())
}

/// A port that a roll-out compares at every tick.
struct Compared<'s> {
    port: PortRef,
    spec: &'s PortSpec,
    direction: Direction,
    role: Role,
    source: String,
}

/// Every port that was recorded and that the caller does not write.
fn compared<'s>(spec: &'s Spec, episode: &Episode<'_>) -> Vec<Compared<'s>> {
    let mut all = Vec::new();
    for node in &spec.nodes {
        for direction in [Direction::Input, Direction::Output] {
            for port_spec in node.ports(direction) {
                let port = PortRef::new(&node.name, &port_spec.name);
                let recorded = episode.value(&port, direction, episode.ticks().start).is_some();
                if let (true, Some((role, source))) = (recorded, role(spec, &port, direction)) {
                    let source = source.to_string();
                    all.push(Compared { port, spec: port_spec, direction, role, source });
                }
            }
        }
    }
    all
}

impl Compared<'_> {
    fn is(&self, said: &RolloutPort) -> bool {
        said.port == self.port.to_string() && said.role == self.role && said.source == self.source
    }

    fn check(
        &self,
        said: &RolloutPort,
        policy: &TolerancePolicy,
        episode: &Episode<'_>,
        runs: &[Range<usize>],
    ) -> Result<(), Contradiction> {
        let (ticks, measured) = (episode.ticks(), &said.measurement);
        let one_step = tolerance_of(policy, &self.source, self.spec.dtype);
        let tolerance = over_time(policy, one_step, ticks.len());
        require(said.tolerance == tolerance, || "it was judged by another tolerance".to_owned())?;
        let drawn = &said.over_time;
        let covered = drawn.max_abs.len() * drawn.ticks_each >= ticks.len();
        let largest = drawn.max_abs.iter().copied().fold(0.0, f64::max);
        require(covered && largest.total_cmp(&measured.max_abs).is_eq(), || {
            "its errors over time are not those of its ticks".to_owned()
        })?;
        check_measured(&Judged {
            measured,
            dtype: self.spec.dtype,
            tolerance,
            parts: &parts_over_time(policy, &self.source, ticks.len()),
            equal_nan: policy.equal_nan,
            verdict: said.verdict,
        })?;
        let value = |tick: usize| episode.value(&self.port, self.direction, tick);
        let has_worst = measured.worst.as_ref().is_none_or(|worst| match &*worst.index {
            [tick, index @ ..] if ticks.contains(tick) => {
                value(*tick).is_some_and(|value| has(&value, index, worst.reference))
            }
            _ => false,
        });
        let references = runs.iter().cloned().flatten().filter_map(value);
        require(has_worst && is_about(measured, references), || {
            "it was measured on other values".to_owned()
        })
    }
}
