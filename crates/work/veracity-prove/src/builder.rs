//! Collects what comparisons say and sums it up as a proof.

use std::fmt;

use veracity_compare::merge;
use veracity_diag::{Diagnostic, Place, codes};
use veracity_results::{
    Adequacy, Coverage, Environment, NodeProof, PROOF_SCHEMA_VERSION, PortProof, Proof, Reference,
    RolloutProof, SampleProof, Subject, TolerancePolicy, Verdict,
};
use veracity_tensor::TensorView;

use crate::advice::advice;
use crate::coverage::Inputs;
use crate::judged::{Judged, judge_pair, tolerance_of};

/// Samples of each kind that get an entry of their own; later ones are counted together.
const LISTED: usize = 32;

/// Which sample a comparison is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// A pass that was recorded.
    Recorded(usize),
    /// Inputs that were drawn afterwards.
    Fresh(usize),
}

impl Label {
    fn number(self) -> usize {
        match self {
            Self::Recorded(number) | Self::Fresh(number) => number,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Recorded(_) => "sample",
            Self::Fresh(_) => "fresh",
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.word(), self.number())
    }
}

/// Collects what comparisons say. Nodes and ports come in the order in which they are declared.
#[derive(Debug)]
pub struct Builder {
    policy: TolerancePolicy,
    nodes: Vec<NodeProof>,
    inputs: Inputs,
    rollout: RolloutProof,
    findings: Vec<Diagnostic>,
}

impl Builder {
    /// Judges by this policy.
    pub fn new(policy: TolerancePolicy) -> Self {
        Self {
            policy,
            nodes: Vec::new(),
            inputs: Inputs::default(),
            rollout: not_rolled_out(),
            findings: Vec::new(),
        }
    }

    /// What counts as equal.
    pub fn policy(&self) -> &TolerancePolicy {
        &self.policy
    }

    /// Adds a node that is to be proved. Until something is compared nothing is known about it.
    pub fn declare<'p>(&mut self, node: &str, outputs: impl IntoIterator<Item = &'p str>) {
        let port = |port: &str| {
            let port = format!("{node}/{port}");
            let tolerance = self.policy.of(&port);
            let samples = Vec::new();
            PortProof { port, verdict: Verdict::NotComparable, tolerance, unstable: false, samples }
        };
        self.nodes.push(NodeProof {
            node: node.to_owned(),
            verdict: Verdict::NotComparable,
            samples: 0,
            passes: None,
            fresh: 0,
            tried: 0,
            adequacy: None,
            ports: outputs.into_iter().map(port).collect(),
            reasons: Vec::new(),
            assumptions: Vec::new(),
            fresh_note: None,
        });
    }

    /// Compares one output on one sample and remembers what it says. Nothing is kept of the
    /// tensors.
    ///
    /// # Panics
    /// When the node or the port was not declared.
    pub fn compare(
        &mut self,
        node: &str,
        port: &str,
        label: Label,
        reference: &TensorView<'_>,
        candidate: &TensorView<'_>,
    ) -> Verdict {
        let equal_nan = self.policy.equal_nan;
        let key = format!("{node}/{port}");
        let tolerance = tolerance_of(&self.policy, &key, reference.dtype());
        let parts = self.policy.parts_of(&key);
        let judged = judge_pair(reference, candidate, tolerance, parts, equal_nan);
        let verdict = judged.verdict;
        let node_proof = self.node_mut(node);
        match label {
            Label::Recorded(number) => node_proof.samples = node_proof.samples.max(number + 1),
            Label::Fresh(number) => node_proof.fresh = node_proof.fresh.max(number + 1),
        }
        let found = node_proof.ports.iter_mut().find(|proof| proof.port == key);
        let proof = found.expect("the port was declared");
        proof.tolerance = tolerance;
        let entry = entry(&Place::port(node, port), label, reference, candidate, judged);
        add_entry(&mut proof.samples, label, entry);
        verdict
    }

    /// Says something about a node as a whole: that it was not run, that it has another number of
    /// outputs. A node that could not be looked at is not comparable; one that was seen to be
    /// wrong is disproved.
    ///
    /// # Panics
    /// When the node was not declared.
    pub fn refuse_node(&mut self, node: &str, verdict: Verdict, reason: Diagnostic) {
        let reason = reason.within(&Place::node(node));
        let proof = self.node_mut(node);
        proof.reasons.push(reason);
        proof.verdict = proof.verdict.max(verdict);
    }

    /// Whether everything that was compared of a node is right, and something was.
    pub(crate) fn stands(&self, node: &str) -> bool {
        let found = self.nodes.iter().find(|proof| proof.node == node);
        found.is_some_and(|proof| {
            let is_right = |port: &PortProof| {
                !port.samples.is_empty()
                    && port.samples.iter().all(|sample| sample.verdict == Verdict::Proved)
            };
            proof.reasons.is_empty() && proof.ports.iter().all(is_right)
        })
    }

    /// Says that the same inputs gave different values at an output. Beyond the tolerance nothing
    /// can be said about it.
    ///
    /// # Panics
    /// When the node or the port was not declared.
    pub fn unstable(&mut self, node: &str, port: &str, difference: f64, beyond_tolerance: bool) {
        let key = format!("{node}/{port}");
        let proof = self.node_mut(node);
        let found = proof.ports.iter_mut().find(|proof| proof.port == key);
        found.expect("the port was declared").unstable = true;
        if beyond_tolerance {
            let message =
                format!("the same inputs gave values that differ by up to {difference:e}");
            let reason = Diagnostic::warning(codes::UNSTABLE, message)
                .at(Place::port(node, port))
                .hint("random numbers or state inside of the model: make them inputs");
            proof.reasons.push(reason);
        }
    }

    /// Says that the code of a node disagrees with itself, so that nothing can be said about any of
    /// its outputs.
    ///
    /// # Panics
    /// When the node was not declared.
    pub fn unrepeatable(&mut self, node: &str, why: &str) {
        let proof = self.node_mut(node);
        for port in &mut proof.ports {
            port.unstable = true;
            let name = port.port.strip_prefix(node).unwrap_or(&port.port).trim_start_matches('/');
            let reason = Diagnostic::warning(codes::UNSTABLE, why)
                .at(Place::port(node, name))
                .hint("make what changes from run to run an input of the node");
            proof.reasons.push(reason);
        }
    }

    /// Remembers what an input of a node was.
    pub fn input(&mut self, node: &str, port: &str, value: &TensorView<'_>) {
        self.inputs.add(node, port, value);
    }

    /// Says why there are no fresh inputs of a node, or fewer than were wanted.
    ///
    /// # Panics
    /// When the node was not declared.
    pub fn fresh_note(&mut self, node: &str, reason: impl Into<String>) {
        self.node_mut(node).fresh_note = Some(reason.into());
    }

    /// Says how many passes of a node were seen while recording, kept or not.
    ///
    /// # Panics
    /// When the node was not declared.
    pub fn passes(&mut self, node: &str, seen: usize) {
        self.node_mut(node).passes = Some(seen);
    }

    /// Says how many further fresh inputs agreed, of which nothing is kept.
    ///
    /// # Panics
    /// When the node was not declared.
    pub fn tried(&mut self, node: &str, count: usize) {
        self.node_mut(node).tried = count;
    }

    /// Says how many planted faults the samples of a node find.
    ///
    /// # Panics
    /// When the node was not declared.
    pub fn adequacy(&mut self, node: &str, adequacy: Adequacy) {
        self.node_mut(node).adequacy = Some(adequacy);
    }

    /// Adds what tracing noticed.
    pub fn noticed(&mut self, findings: impl IntoIterator<Item = Diagnostic>) {
        self.findings.extend(findings);
    }

    /// Adds what running the whole bundle said.
    pub fn rollout(&mut self, rollout: RolloutProof) {
        self.rollout = rollout;
    }

    /// Sums up.
    pub fn finish(
        mut self,
        subject: Subject,
        reference: Reference,
        environment: Environment,
    ) -> Proof {
        assume(&mut self.nodes, &self.findings);
        self.nodes.iter_mut().for_each(sum_up_node);
        let mut proof = Proof {
            schema_version: PROOF_SCHEMA_VERSION.to_owned(),
            veracity_version: env!("CARGO_PKG_VERSION").to_owned(),
            subject,
            reference,
            environment,
            policy: self.policy,
            verdict: Verdict::NotComparable,
            coverage: Coverage::default(),
            nodes: self.nodes,
            rollout: self.rollout,
            inputs: self.inputs.finish(),
            pipeline: None,
            assumptions: Vec::new(),
            findings: self.findings,
            advice: Vec::new(),
        };
        sum_up(&mut proof);
        proof
    }

    fn node_mut(&mut self, node: &str) -> &mut NodeProof {
        let found = self.nodes.iter_mut().find(|proof| proof.node == node);
        found.expect("the node was declared")
    }
}

fn not_rolled_out() -> RolloutProof {
    let reason = Diagnostic::warning(codes::ROLLOUT_NOT_RUN, "the bundle was not run over time");
    let verdict = Some(Verdict::NotComparable);
    RolloutProof { verdict, reasons: vec![reason], ..RolloutProof::default() }
}

fn entry(
    place: &Place,
    label: Label,
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    judged: Judged,
) -> SampleProof {
    let kind = |view: &TensorView<'_>| format!("{}{}", view.dtype(), view.shape());
    SampleProof {
        label: label.to_string(),
        verdict: judged.verdict,
        reference: kind(reference),
        candidate: kind(candidate),
        measurement: judged.measurement,
        reasons: judged.reasons.into_iter().map(|reason| reason.within(place)).collect(),
    }
}

/// Lists a sample, or counts it together with others. One that fails is listed as long as there is
/// room, so that the first failures can be looked at.
fn add_entry(samples: &mut Vec<SampleProof>, label: Label, entry: SampleProof) {
    let failing = samples.iter().filter(|sample| sample.verdict != Verdict::Proved).count();
    let listed = label.number() < LISTED || (entry.verdict != Verdict::Proved && failing < LISTED);
    let start = format!("{}s ", label.word());
    let together = samples.iter_mut().find(|sample| sample.label.starts_with(&start));
    match together {
        Some(total) if !listed && can_merge(total, &entry) => {
            let from = total.label[start.len()..].split(' ').next().unwrap_or_default().to_owned();
            total.label = format!("{start}{from} to {}", label.number());
            total.verdict = total.verdict.max(entry.verdict);
            if let (Some(sum), Some(one)) = (&mut total.measurement, &entry.measurement) {
                merge(sum, one);
            }
        }
        Some(_) | None => {
            let label =
                if listed { entry.label.clone() } else { format!("{start}{}", label.number()) };
            samples.push(SampleProof { label, ..entry });
        }
    }
}

fn can_merge(total: &SampleProof, entry: &SampleProof) -> bool {
    match (&total.measurement, &entry.measurement) {
        (Some(sum), Some(one)) => sum.tolerance == one.tolerance,
        _ => false,
    }
}

/// The verdict of a node and its ports. A node is as good as its worst port; one without any is
/// what was said about it.
pub(crate) fn sum_up_node(node: &mut NodeProof) {
    // What the samples show is then not all that the code did.
    let recorded_wrong = node.reasons.iter().any(|reason| reason.code == codes::RECORDED_WRONG);
    let assumed = if node.assumptions.is_empty() { Verdict::Proved } else { Verdict::Conditional };
    for port in &mut node.ports {
        let beyond = |reason: &Diagnostic| {
            reason.code == codes::UNSTABLE && format_port(&reason.place) == port.port
        };
        let worst = port.samples.iter().map(|sample| sample.verdict).max();
        let measured = match worst {
            _ if recorded_wrong => Verdict::Disproved,
            Some(_) if node.reasons.iter().any(beyond) => Verdict::NotComparable,
            Some(worst) => worst,
            None => Verdict::NotComparable,
        };
        port.verdict = measured.max(assumed);
    }
    let refused = node.reasons.iter().any(|reason| reason.code != codes::UNSTABLE);
    let worst = node.ports.iter().map(|port| port.verdict).max();
    node.verdict = match worst {
        Some(worst) if refused => worst.max(node.verdict),
        Some(worst) => worst,
        None => node.verdict,
    };
}

fn format_port(place: &Place) -> String {
    match (&place.node, &place.port) {
        (Some(node), Some(port)) => format!("{node}/{port}"),
        _ => String::new(),
    }
}

/// The verdict over everything, how much was covered, and what to look at next.
pub(crate) fn sum_up(proof: &mut Proof) {
    proof.assumptions = every_assumption(proof);
    if !proof.assumptions.is_empty() {
        // It went through every node, and so rests on what they rest on.
        proof.rollout.verdict = proof.rollout.verdict.map(|own| own.max(Verdict::Conditional));
    }
    let nodes = proof.nodes.iter().map(|node| node.verdict);
    let verdict = nodes.chain(proof.rollout.verdict).max();
    proof.verdict = verdict.unwrap_or(Verdict::NotComparable);
    // Whatever made the verdict has a row, so that the counts never say better than the verdict.
    proof.coverage = Coverage::of(proof.rows().iter().map(|row| row.verdict));
    proof.advice = advice(proof);
}

/// Gives each node the assumptions that findings make about it: those that name it, and those that
/// name no node of the bundle, which may be about any.
pub(crate) fn assume(nodes: &mut [NodeProof], findings: &[Diagnostic]) {
    let names: Vec<String> = nodes.iter().map(|node| node.node.clone()).collect();
    for found in findings.iter().filter(|found| found.is_assumption()) {
        let about = found.place.node.as_ref().filter(|name| names.contains(name));
        let concerned = |node: &&mut NodeProof| about.is_none_or(|name| node.node == *name);
        for node in nodes.iter_mut().filter(concerned) {
            if !node.assumptions.contains(found) {
                node.assumptions.push(found.clone());
            }
        }
    }
}

fn every_assumption(proof: &Proof) -> Vec<Diagnostic> {
    let of_nodes = proof.nodes.iter().flat_map(|node| &node.assumptions);
    let mut every: Vec<Diagnostic> = Vec::new();
    for one in of_nodes.chain(proof.rollout.assumptions()) {
        if !every.contains(one) {
            every.push(one.clone());
        }
    }
    every
}
