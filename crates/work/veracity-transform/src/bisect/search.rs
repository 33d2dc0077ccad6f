//! The search by halves.

use std::cell::RefCell;
use std::collections::BTreeSet;

use veracity_diag::progress::{Part, Stage};
use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::Engine;
use veracity_onnx::Graph;
use veracity_results::Verdict;

use super::ddmin;
use crate::judge::{CheckOptions, Comparer};
use crate::{Limits, Match, Pipeline, Rewrite, Transformed, Trusting, transform, transform_only};

/// What a search asks, one after the other.
const STEPS: [&str; 4] = ["everything", "which pass", "which rewrite", "what it needs"];

/// What a search found.
#[derive(Debug)]
pub struct Bisection {
    /// The rewrite after which the graph is wrong.
    pub culprit: Rewrite,
    /// Rewrites before it, without which it would not be wrong. Empty when it is wrong alone.
    pub others: Vec<Match>,
    /// The graph just before it.
    pub before: Graph,
    /// All rewrites that the pipeline makes.
    pub rewrites: usize,
    /// Models that were compared to find it, the original included.
    pub models: usize,
    /// Models that were compared to find out what it needs to be wrong.
    pub further: usize,
    /// What is wrong.
    pub reason: String,
}

/// Finds the rewrite that makes the outputs of a model wrong, by running it. The inputs that show
/// it on the whole result are used throughout. Refused when nothing differs.
pub fn bisect(
    graph: &Graph,
    pipeline: &Pipeline,
    limits: Limits,
    engine: &dyn Engine,
    options: &CheckOptions,
) -> Result<Bisection> {
    let mut comparer = Comparer::new(graph, engine, options);
    let mut is_wrong = |candidate: &Transformed| {
        let found = comparer.first_difference(&candidate.graph, candidate.class());
        if found.verdict == Verdict::NotComparable {
            let reason = found.reason.unwrap_or_default();
            return Err(Diagnostic::error(codes::BISECT_UNDECIDED, reason)
                .hint("give inputs that the model can be run on")
                .into());
        }
        Ok(found.reason)
    };
    let mut found = bisect_by(graph, pipeline, limits, &mut is_wrong)?;
    // The original was run for all comparisons together.
    found.models += 1;
    Ok(found)
}

/// Finds the first rewrite after which `is_wrong` gives a reason, and the rewrites before it that it
/// needs for that. Refused when it gives none for the whole result.
pub fn bisect_by(
    graph: &Graph,
    pipeline: &Pipeline,
    limits: Limits,
    is_wrong: &mut dyn FnMut(&Transformed) -> Result<Option<String>>,
) -> Result<Bisection> {
    let stage = RefCell::new(Stage::endless("models"));
    let step = |at: usize| {
        let name = STEPS[at - 1];
        stage.borrow_mut().enter(Part { what: "step", at, of: STEPS.len(), name });
    };
    let mut is_wrong = |candidate: &Transformed| {
        stage.borrow_mut().advance(1);
        is_wrong(candidate)
    };
    step(1);
    let is_wrong: &mut dyn FnMut(&Transformed) -> Result<Option<String>> = &mut is_wrong;
    let whole = transform(graph.clone(), pipeline, limits, &mut Trusting)?;
    let Some(mut reason) = is_wrong(&whole)? else { return Err(nothing(&whole)) };
    let mut models = 1;
    let prefix = |rewrites: usize| {
        transform(graph.clone(), pipeline, Limits { rewrites, ..limits }, &mut Trusting)
    };
    // What each pass did in a round ends here.
    let total = whole.rewrites.len();
    let mut ends: Vec<usize> = vec![0];
    for pair in whole.rewrites.windows(2) {
        if (pair[0].pass, pair[0].round) != (pair[1].pass, pair[1].round) {
            ends.push(pair[1].id);
        }
    }
    ends.push(total);
    let mut narrow = |steps: &[usize]| -> Result<(usize, usize)> {
        let (mut right, mut wrong) = (0, steps.len() - 1);
        while wrong - right > 1 {
            let middle = usize::midpoint(right, wrong);
            models += 1;
            match is_wrong(&prefix(steps[middle])?)? {
                Some(found) => (wrong, reason) = (middle, found),
                None => right = middle,
            }
        }
        Ok((steps[right], steps[wrong]))
    };
    step(2);
    let (right, wrong) = narrow(&ends)?;
    step(3);
    let (right, _) = narrow(&(right..=wrong).collect::<Vec<usize>>())?;
    let culprit = whole.rewrites[right].clone();
    step(4);
    let earlier: Vec<Match> = whole.rewrites[..right].iter().map(Rewrite::key).collect();
    let (others, further) = needed(graph, pipeline, limits, &culprit.key(), earlier, is_wrong)?;
    let before = prefix(right)?.graph;
    Ok(Bisection { culprit, others, before, rewrites: total, models, further, reason })
}

/// The rewrites that a culprit needs to be wrong.
fn needed(
    graph: &Graph,
    pipeline: &Pipeline,
    limits: Limits,
    culprit: &Match,
    earlier: Vec<Match>,
    is_wrong: &mut dyn FnMut(&Transformed) -> Result<Option<String>>,
) -> Result<(Vec<Match>, usize)> {
    let mut further = 0;
    let mut shows = |part: &[Match]| -> Result<bool> {
        further += 1;
        let part: BTreeSet<&Match> = part.iter().collect();
        let allowed = |one: &Match| one == culprit || part.contains(one);
        let done = transform_only(graph.clone(), pipeline, limits, &mut Trusting, &allowed)?;
        Ok(is_wrong(&done)?.is_some())
    };
    if shows(&[])? {
        return Ok((Vec::new(), further));
    }
    let others = ddmin(earlier, &mut shows)?;
    Ok((others, further))
}

fn nothing(whole: &Transformed) -> veracity_diag::Refusal {
    let message = format!(
        "the outputs agree with the original's after all {} rewrites",
        whole.rewrites.len()
    );
    Diagnostic::error(codes::BISECT_NOTHING, message)
        .hint("a fault inside may be hidden by the rest: check rewrites alone with `--validate local`")
        .into()
}
