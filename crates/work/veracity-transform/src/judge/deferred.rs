//! Checks all rewrites at the end, when it is known which values they need.
//!
//! Going sweep by sweep takes a model for each side of each sweep, and all values of the original,
//! as nobody knows which will be asked for. Nearly always all rewrites are right: so they are made
//! first and checked together, those that read what others made after them. Where one is not found
//! right, nothing of this counts: all of it is done again, sweep by sweep.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use veracity_diag::Result;
use veracity_diag::progress::Stage;
use veracity_onnx::Graph;
use veracity_results::{RewriteCheck, Verdict};

use super::Checker;
use super::local::Local;
use super::window::Window;
use crate::{Judge, Opinion, Rewrite, Sweep};

/// A judge that keeps everything and cuts out what is to be checked.
pub(super) struct Deferred {
    waiting: Vec<Waiting>,
    /// The turn after which a value that a rewrite made is known.
    made: HashMap<String, usize>,
    /// Values that windows start from or give, constants aside.
    names: BTreeSet<String>,
}

struct Waiting {
    window: Window,
    rewrite: Rewrite,
    /// Windows of one turn need nothing of each other.
    turn: usize,
}

impl Deferred {
    pub(super) fn new() -> Self {
        Self { waiting: Vec::new(), made: HashMap::new(), names: BTreeSet::new() }
    }

    fn add(&mut self, graph: &Graph, window: Window, rewrite: &Rewrite) {
        let before = window.given.iter().filter_map(|name| self.made.get(name));
        let turn = before.max().map_or(0, |turn| turn + 1);
        for (_, now) in &window.fresh {
            self.made.insert(now.clone(), turn);
        }
        // What follows from constants alone is run as a window; the original is not asked for it.
        if !window.is_structural() && !window.given.is_empty() {
            let outputs = window.outputs.iter().map(|(old, _)| old);
            let names = window.given.iter().chain(outputs);
            self.names.extend(names.filter(|name| graph.weight(name).is_none()).cloned());
        }
        self.waiting.push(Waiting { window, rewrite: rewrite.clone(), turn });
    }

    /// What is found about each rewrite; `None` unless all are right.
    pub(super) fn settle(mut self, checker: &mut Checker<'_>) -> Option<Vec<RewriteCheck>> {
        let mut stage = Stage::new("checks of rewrites", self.waiting.len());
        stage.advance(0);
        let original = Arc::clone(&checker.original);
        self.names.retain(|name| original.has_value(name));
        checker.store.fill(&mut checker.bench, &original, Some(&self.names));
        let mut found: Vec<(usize, RewriteCheck)> = Vec::new();
        let last = self.waiting.iter().map(|one| one.turn).max().unwrap_or(0);
        let mut waiting: Vec<(usize, Waiting)> = self.waiting.into_iter().enumerate().collect();
        for turn in 0..=last {
            let (now, later): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|(_, one)| one.turn == turn);
            waiting = later;
            let (numbers, now): (Vec<usize>, Vec<Waiting>) = now.into_iter().unzip();
            let (windows, rewrites): (Vec<Window>, Vec<Rewrite>) =
                now.into_iter().map(|one| (one.window, one.rewrite)).unzip();
            let rewrites: Vec<&Rewrite> = rewrites.iter().collect();
            let checks = Local::new(checker, &original).check_windows(&windows, &rewrites);
            stage.advance(checks.len());
            if checks.iter().any(|check| check.verdict != Verdict::Proved) {
                return None;
            }
            found.extend(numbers.into_iter().zip(checks));
        }
        found.sort_by_key(|(number, _)| *number);
        Some(found.into_iter().map(|(_, check)| check).collect())
    }
}

impl Judge for Deferred {
    fn looks_at_passes(&self) -> bool {
        false
    }

    fn sweep(&mut self, sweep: &Sweep<'_>) -> Result<Vec<Opinion>> {
        let places = sweep.before.places();
        for rewrite in sweep.rewrites {
            let window = Window::of(sweep.before, &places, rewrite);
            self.add(sweep.before, window, rewrite);
        }
        Ok(vec![Opinion::Keep; sweep.rewrites.len()])
    }
}
