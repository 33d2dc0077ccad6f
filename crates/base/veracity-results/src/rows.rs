//! A proof as rows: everything that has a verdict of its own, whatever part of the proof it is in.

use veracity_diag::Diagnostic;

use crate::{NodeProof, PortProof, Proof, RolloutPort, RolloutProof, Tolerance, Verdict};

/// Name of the row of a roll-out that has no ports.
const ROLLOUT: &str = "roll-out";

/// One verdict of a proof.
#[derive(Clone, Copy, Debug)]
pub struct ProofRow<'p> {
    /// `node/port`, or the name of the whole where it has no ports.
    pub name: &'p str,
    /// The answer. An output that was not reached is as good as what is known of its node.
    pub verdict: Verdict,
    /// What the answer is about.
    pub part: Part<'p>,
}

/// What a verdict is about.
#[derive(Clone, Copy, Debug)]
pub enum Part<'p> {
    /// An output of a node alone.
    Port(&'p NodeProof, &'p PortProof),
    /// A node of which more is said than of its outputs.
    Node(&'p NodeProof),
    /// A port over time.
    RolloutPort(&'p RolloutProof, &'p RolloutPort),
    /// A roll-out of which more is said than of its ports.
    Rollout(&'p RolloutProof),
}

impl Proof {
    /// Every verdict: outputs of nodes in the order in which they run, then the roll-out, if it was
    /// run.
    pub fn rows(&self) -> Vec<ProofRow<'_>> {
        self.nodes.iter().flat_map(NodeProof::rows).chain(self.rollout.rows()).collect()
    }
}

impl NodeProof {
    /// The verdict of every output, and that of the node when it is worse than all of them.
    pub fn rows(&self) -> Vec<ProofRow<'_>> {
        let unreached = self.ports.iter().all(|port| port.samples.is_empty());
        let rows = self.ports.iter().map(|port| self.row(port, unreached)).collect();
        let whole = ProofRow { name: &self.node, verdict: self.verdict, part: Part::Node(self) };
        with_whole(rows, whole)
    }

    fn row<'p>(&'p self, port: &'p PortProof, unreached: bool) -> ProofRow<'p> {
        let verdict = if unreached { self.verdict } else { port.verdict };
        ProofRow { name: &port.port, verdict, part: Part::Port(self, port) }
    }

    /// Findings about the node that concern one of its outputs: those about the whole, and those
    /// that name the output.
    fn reasons_of<'p>(&'p self, port: &PortProof) -> impl Iterator<Item = &'p Diagnostic> {
        let name = port.port.strip_prefix(&self.node).and_then(|name| name.strip_prefix('/'));
        let name = name.map(str::to_owned);
        self.reasons
            .iter()
            .filter(move |reason| reason.place.port.is_none() || reason.place.port == name)
    }
}

impl RolloutProof {
    /// The verdict of every port, and that of the whole when it is worse than all of them; nothing
    /// when it was not run.
    pub fn rows(&self) -> Vec<ProofRow<'_>> {
        let row = |port| Self::row(self, port);
        let rows = self.ports.iter().map(row).collect();
        match self.verdict {
            None => rows,
            // Assumptions of the nodes are told with the nodes.
            Some(Verdict::Conditional) if self.assumptions().next().is_none() => rows,
            Some(verdict) => {
                with_whole(rows, ProofRow { name: ROLLOUT, verdict, part: Part::Rollout(self) })
            }
        }
    }

    /// What the roll-out itself leaves open.
    pub fn assumptions(&self) -> impl Iterator<Item = &Diagnostic> {
        self.reasons.iter().filter(|reason| reason.is_assumption())
    }

    fn row<'p>(&'p self, port: &'p RolloutPort) -> ProofRow<'p> {
        let RolloutPort { port: name, verdict, .. } = port;
        ProofRow { name, verdict: *verdict, part: Part::RolloutPort(self, port) }
    }
}

/// Adds what is said of the whole, unless a part already says it.
fn with_whole<'p>(mut rows: Vec<ProofRow<'p>>, whole: ProofRow<'p>) -> Vec<ProofRow<'p>> {
    if rows.iter().map(|row| row.verdict).max().is_none_or(|worst| worst < whole.verdict) {
        rows.push(whole);
    }
    rows
}

impl<'p> ProofRow<'p> {
    /// Whether this is about a run over time.
    pub fn is_rollout(&self) -> bool {
        matches!(self.part, Part::RolloutPort(..) | Part::Rollout(_))
    }

    /// Whether the same inputs gave different values.
    pub fn is_unstable(&self) -> bool {
        matches!(self.part, Part::Port(_, port) if port.unstable)
    }

    /// The tolerance that it was judged by, if there is one.
    pub fn tolerance(&self) -> Option<Tolerance> {
        match self.part {
            Part::Port(_, port) => Some(port.tolerance),
            Part::RolloutPort(_, port) => Some(port.tolerance),
            Part::Node(_) | Part::Rollout(_) => None,
        }
    }

    /// What its verdict rests on.
    pub fn assumptions(&self) -> Vec<&'p Diagnostic> {
        match self.part {
            Part::Port(node, _) | Part::Node(node) => node.assumptions.iter().collect(),
            Part::Rollout(rollout) | Part::RolloutPort(rollout, _) => {
                rollout.assumptions().collect()
            }
        }
    }

    /// Why it is not proved, in the order in which it was found; empty when it is.
    pub fn reasons(&self) -> Vec<&'p Diagnostic> {
        match self.verdict {
            Verdict::Proved => return Vec::new(),
            Verdict::Conditional => return self.assumptions(),
            Verdict::NotComparable | Verdict::Disproved => {}
        }
        match self.part {
            Part::Port(node, port) => {
                let samples = port.samples.iter().flat_map(|sample| &sample.reasons);
                if port.unstable {
                    // What its samples say is a consequence.
                    return node.reasons_of(port).chain(samples).collect();
                }
                samples.chain(node.reasons_of(port)).collect()
            }
            Part::Node(node) => node.reasons.iter().collect(),
            Part::RolloutPort(rollout, port) => {
                let names_port = |reason: &&Diagnostic| {
                    let (node, name) = (&reason.place.node, &reason.place.port);
                    let parts = node.as_deref().zip(name.as_deref());
                    parts == port.port.split_once('/')
                };
                rollout.reasons.iter().filter(names_port).collect()
            }
            Part::Rollout(rollout) => rollout.reasons.iter().collect(),
        }
    }
}
