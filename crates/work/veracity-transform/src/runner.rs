//! Runs passes over a graph: applies what they propose, records it, and asks whether it is right.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use veracity_diag::Result;
use veracity_diag::progress::{Part, Stage};
use veracity_onnx::{Applied, Graph, NodeId};

use crate::{Class, Declined, Facts, Found, Pass, Pipeline, Proposal, View};

/// How often passes are run at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Runs of the whole pipeline; it ends earlier when nothing is found any more.
    pub rounds: usize,
    /// Sweeps of one pass in a round.
    pub sweeps: usize,
    /// Rewrites in all: what comes after is left alone, which is how a search narrows down.
    pub rewrites: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rounds: 8, sweeps: 64, rewrites: usize::MAX }
    }
}

/// One change that was made.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// Its number, from 0, in the order in which changes were made.
    pub id: usize,
    /// The pass that proposed it.
    pub pass: &'static str,
    /// What the pass promises.
    pub class: Class,
    /// Which run of the pipeline, from 0.
    pub round: usize,
    /// Its number within its pass, over all rounds, from 0.
    pub index: usize,
    /// The node that the match is about.
    pub anchor: NodeId,
    /// The first value that the node gave.
    pub value: String,
    /// What was done.
    pub applied: Applied,
}

impl Rewrite {
    /// The name of the match, by which it is found again in another run.
    pub fn key(&self) -> Match {
        Match { pass: self.pass, value: self.value.clone() }
    }
}

/// What a judge thinks of a rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// It stays.
    Keep,
    /// It is wrong, for this reason, and goes.
    Reject(String),
}

/// The rewrites of one sweep, with the graph before and after them.
pub struct Sweep<'s> {
    /// Before all of them.
    pub before: &'s Graph,
    /// After all of them.
    pub after: &'s Graph,
    /// What was done, in this order.
    pub rewrites: &'s [Rewrite],
}

/// Says whether rewrites are right.
pub trait Judge {
    /// Whether it looks at rewrites at all; one that does not costs no copy of the graph.
    fn looks(&self) -> bool {
        true
    }

    /// Whether it may reject what a whole pass did; one that does not costs no further copy.
    fn looks_at_passes(&self) -> bool {
        self.looks()
    }

    /// An opinion about each rewrite of a sweep, in their order.
    fn sweep(&mut self, sweep: &Sweep<'_>) -> Result<Vec<Opinion>>;

    /// An opinion about all that a pass did in one round, when it did something. What is rejected
    /// is taken back as a whole, and the pass is not asked again.
    fn pass_done(&mut self, done: &PassDone<'_>) -> Result<Opinion> {
        let _ = done;
        Ok(Opinion::Keep)
    }
}

/// A pass that is done for this round.
pub struct PassDone<'s> {
    /// The pass.
    pub pass: &'s dyn Pass,
    /// The graph now.
    pub graph: &'s Graph,
    /// Every rewrite so far.
    pub rewrites: &'s [Rewrite],
}

/// A match, named so that it is found again in another run: by its pass, and by what the node gives
/// that it is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// The pass.
    pub pass: &'static str,
    /// The first value of the node.
    pub value: String,
}

/// A judge that keeps everything and looks at nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trusting;

impl Judge for Trusting {
    fn looks(&self) -> bool {
        false
    }

    fn sweep(&mut self, sweep: &Sweep<'_>) -> Result<Vec<Opinion>> {
        Ok(vec![Opinion::Keep; sweep.rewrites.len()])
    }
}

/// What became of a graph.
#[derive(Debug)]
pub struct Transformed {
    /// The graph now.
    pub graph: Graph,
    /// Every change, in order.
    pub rewrites: Vec<Rewrite>,
    /// Changes that were judged wrong and taken back, with the reason.
    pub rejected: Vec<(Rewrite, String)>,
    /// What each pass left alone in its last sweep, by the name of the pass.
    pub declined: BTreeMap<&'static str, Vec<Declined>>,
    /// Runs of the pipeline that found something.
    pub rounds: usize,
    /// Whether the last round found nothing more; otherwise a limit ended it.
    pub settled: bool,
}

impl Transformed {
    /// What is promised about the numbers by all rewrites together.
    pub fn class(&self) -> Class {
        self.rewrites.iter().map(|rewrite| rewrite.class).max().unwrap_or(Class::ExactBits)
    }
}

/// Runs the passes until none finds anything, or a limit is reached.
pub fn transform(
    graph: Graph,
    pipeline: &Pipeline,
    limits: Limits,
    judge: &mut dyn Judge,
) -> Result<Transformed> {
    transform_only(graph, pipeline, limits, judge, &|_| true)
}

/// Does the same, with only those matches that are `allowed`.
pub fn transform_only(
    graph: Graph,
    pipeline: &Pipeline,
    limits: Limits,
    judge: &mut dyn Judge,
    allowed: &dyn Fn(&Match) -> bool,
) -> Result<Transformed> {
    let facts = Facts::of(&graph);
    let mut run = Run {
        facts,
        limits,
        judge,
        allowed,
        barred: BTreeSet::new(),
        indices: BTreeMap::new(),
        banned: BTreeSet::new(),
        stage: Stage::endless("rewrites"),
        done: Transformed {
            graph,
            rewrites: Vec::new(),
            rejected: Vec::new(),
            declined: BTreeMap::new(),
            rounds: 0,
            settled: false,
        },
    };
    for round in 0..limits.rounds {
        let before = run.done.rewrites.len();
        for (at, pass) in pipeline.passes().iter().enumerate() {
            let (of, name) = (pipeline.passes().len(), pass.name());
            run.stage.enter(Part { what: turn(round), at: at + 1, of, name });
            run.pass(pass.as_ref(), round)?;
        }
        if run.done.rewrites.len() == before {
            run.done.settled = !run.is_full();
            break;
        }
        run.done.rounds = round + 1;
    }
    Ok(run.done)
}

/// What a pass is called to whoever waits: all of them run until none finds anything.
fn turn(round: usize) -> &'static str {
    match round {
        0 => "pass",
        1 => "round 2, pass",
        2 => "round 3, pass",
        _ => "later round, pass",
    }
}

/// A run that is under way.
struct Run<'j> {
    facts: Facts,
    limits: Limits,
    judge: &'j mut dyn Judge,
    allowed: &'j dyn Fn(&Match) -> bool,
    /// Passes whose work was taken back.
    barred: BTreeSet<&'static str>,
    /// Matches of each pass so far.
    indices: BTreeMap<&'static str, usize>,
    /// Matches that were judged wrong and are not tried again.
    banned: BTreeSet<(&'static str, NodeId)>,
    /// Tells whoever waits how many rewrites there are.
    stage: Stage,
    done: Transformed,
}

impl Run<'_> {
    fn pass(&mut self, pass: &dyn Pass, round: usize) -> Result<()> {
        if self.barred.contains(pass.name()) {
            return Ok(());
        }
        let before = self.judge.looks_at_passes().then(|| self.done.graph.clone());
        let (first, index) = (self.done.rewrites.len(), self.indices.get(pass.name()).copied());
        self.sweeps(pass, round)?;
        if self.done.rewrites.len() == first {
            return Ok(());
        }
        let (graph, rewrites) = (&self.done.graph, self.done.rewrites.as_slice());
        let opinion = self.judge.pass_done(&PassDone { pass, graph, rewrites })?;
        if let (Opinion::Reject(reason), Some(before)) = (opinion, before) {
            self.done.graph = before;
            self.facts = Facts::of(&self.done.graph);
            let gone = self.done.rewrites.drain(first..);
            self.done.rejected.extend(gone.map(|rewrite| (rewrite, reason.clone())));
            self.indices.insert(pass.name(), index.unwrap_or(0));
            self.barred.insert(pass.name());
        }
        Ok(())
    }

    fn sweeps(&mut self, pass: &dyn Pass, round: usize) -> Result<()> {
        for _ in 0..self.limits.sweeps {
            let mut found = Found::default();
            pass.find(&View::new(&self.done.graph, &self.facts), &mut found);
            found.declined.sort();
            found.declined.dedup();
            self.done.declined.insert(pass.name(), found.declined);
            found.proposals.retain(|one| !self.is_banned(pass, one));
            if found.proposals.is_empty()
                || self.is_full()
                || !self.sweep(pass, round, &found.proposals)?
            {
                break;
            }
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.done.rewrites.len() >= self.limits.rewrites
    }

    /// Applies proposals and keeps those that are judged right; whether any was.
    fn sweep(&mut self, pass: &dyn Pass, round: usize, proposals: &[Proposal]) -> Result<bool> {
        let before = self.judge.looks().then(|| self.done.graph.clone());
        let mut rewrites = self.apply(pass, round, proposals);
        self.done.graph.sort()?;
        let Some(before) = before else {
            return Ok(self.keep(rewrites));
        };
        loop {
            let sweep = Sweep { before: &before, after: &self.done.graph, rewrites: &rewrites };
            let opinions = self.judge.sweep(&sweep)?;
            let bad: HashSet<NodeId> = rewrites
                .iter()
                .zip(&opinions)
                .filter(|(_, opinion)| **opinion != Opinion::Keep)
                .map(|(rewrite, _)| rewrite.anchor)
                .collect();
            if bad.is_empty() {
                return Ok(self.keep(rewrites));
            }
            for (rewrite, opinion) in rewrites.into_iter().zip(opinions) {
                if let Opinion::Reject(reason) = opinion {
                    self.banned.insert((pass.name(), rewrite.anchor));
                    self.done.rejected.push((rewrite, reason));
                }
            }
            self.done.graph = before.clone();
            let left: Vec<Proposal> =
                proposals.iter().filter(|one| !self.is_banned(pass, one)).cloned().collect();
            rewrites = self.apply(pass, round, &left);
            self.done.graph.sort()?;
        }
    }

    fn is_banned(&self, pass: &dyn Pass, proposal: &Proposal) -> bool {
        if self.banned.contains(&(pass.name(), proposal.anchor)) {
            return true;
        }
        let value = self.value_of(proposal.anchor);
        !(self.allowed)(&Match { pass: pass.name(), value })
    }

    /// The first value that a node gives.
    fn value_of(&self, anchor: NodeId) -> String {
        let node = self.done.graph.node(anchor);
        let given = node.and_then(|node| node.outputs().iter().find(|name| !name.is_empty()));
        given.cloned().unwrap_or_default()
    }

    fn apply(&mut self, pass: &dyn Pass, round: usize, proposals: &[Proposal]) -> Vec<Rewrite> {
        let mut rewrites: Vec<Rewrite> = Vec::new();
        let mut touched: HashSet<NodeId> = HashSet::new();
        let first = self.indices.get(pass.name()).copied().unwrap_or(0);
        for Proposal { anchor, patch } in proposals {
            let id = self.done.rewrites.len() + rewrites.len();
            let nodes: Vec<NodeId> = patch.touched().chain(patch.context.iter().copied()).collect();
            if id >= self.limits.rewrites || nodes.iter().any(|node| touched.contains(node)) {
                continue;
            }
            let value = self.value_of(*anchor);
            // Another rewrite of this sweep may have taken away what this one needs. The pass is
            // asked again, and then sees the graph as it is.
            let Ok(applied) = self.done.graph.apply(patch) else { continue };
            touched.extend(nodes);
            let (class, index) = (pass.class(), first + rewrites.len());
            let (pass, anchor) = (pass.name(), *anchor);
            rewrites.push(Rewrite { id, pass, class, round, index, anchor, value, applied });
        }
        rewrites
    }

    fn keep(&mut self, rewrites: Vec<Rewrite>) -> bool {
        let Some(last) = rewrites.last() else { return false };
        self.indices.insert(last.pass, last.index + 1);
        self.facts.update(&self.done.graph);
        self.stage.advance(rewrites.len());
        self.done.rewrites.extend(rewrites);
        true
    }
}
