//! Whether assumptions, verdicts and counts follow from what they are made of.

use veracity_diag::{Diagnostic, Severity, codes};
use veracity_results::{Proof, Verdict};

use super::{Contradiction, require};
use crate::builder::{assume, sum_up, sum_up_node};

/// Makes assumptions, verdicts and counts again.
pub(super) fn check(proof: &Proof) -> Result<(), Contradiction> {
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
    found.severity == Severity::Error
}
