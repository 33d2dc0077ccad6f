//! The judge that runs what it judges.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::Engine;
use veracity_onnx::{Graph, NodeId};
use veracity_results::{
    Coverage, CumulativeCheck, REWRITE_CHECKS_SCHEMA_VERSION, RewriteCheck, RewriteChecks, Verdict,
};

use super::deferred::Deferred;
use super::local::Local;
use super::run::Bench;
use super::store::Store;
use super::whole::{Whole, differs};
use super::{CheckOptions, OnFail, Unchecked, Validation};
use crate::{Class, Judge, Limits, Opinion, PassDone, Pipeline, Rewrite, Sweep, Transformed};

/// A judge that runs what it judges, and remembers what it saw.
pub struct Checker<'e> {
    pub(super) options: CheckOptions,
    pub(super) bench: Bench<'e>,
    pub(super) original: Arc<Graph>,
    pub(super) store: Store,
    whole: Whole,
    checks: Vec<RewriteCheck>,
    cumulative: Vec<CumulativeCheck>,
    notes: Vec<String>,
    /// What was found about a sweep of which something was taken back: the rest is not run again.
    again: HashMap<(NodeId, String), RewriteCheck>,
}

impl<'e> Checker<'e> {
    /// A judge of what becomes of a graph.
    pub fn new(original: &Graph, engine: &'e dyn Engine, options: CheckOptions) -> Self {
        let (sets, problem) = match options.inputs.of(original) {
            Ok(sets) => (sets, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        let original = Arc::new(original.clone());
        Self {
            bench: Bench::new(engine, &options),
            store: Store::new(&original, &sets, options.memory),
            whole: Whole::new(Arc::clone(&original), &sets),
            original,
            checks: Vec::new(),
            cumulative: Vec::new(),
            notes: problem.into_iter().collect(),
            again: HashMap::new(),
            options,
        }
    }

    /// Models that were run so far, windows included.
    pub fn runs(&self) -> usize {
        self.bench.runs
    }

    /// Compares the whole with the original and sums up. A graph that is wrong is taken back as a
    /// whole, or refused, as the options say.
    pub fn finish(&mut self, done: &mut Transformed) -> Result<RewriteChecks> {
        if self.options.validation != Validation::Off && !done.rewrites.is_empty() {
            let last = self.cumulative.last().map(|check| check.rewrites);
            let known =
                self.options.validation == Validation::Pass && last == Some(done.rewrites.len());
            if !known {
                let found = self.compare("", &done.graph, &done.rewrites);
                if let Some(reason) = differs(&found) {
                    self.on_whole(done, &reason)?;
                }
                self.cumulative.extend(found);
            }
        }
        Ok(self.report(done))
    }

    fn on_whole(&mut self, done: &mut Transformed, reason: &str) -> Result<()> {
        match self.options.on_fail {
            OnFail::Keep => {}
            OnFail::Raise => return Err(wrong("the whole model", reason)),
            OnFail::Rollback => {
                self.notes.push(format!("all rewrites were taken back: {reason}"));
                self.checks.iter_mut().for_each(|check| check.kept = false);
                let all = done.rewrites.drain(..);
                done.rejected.extend(all.map(|rewrite| (rewrite, reason.to_owned())));
                done.graph = Graph::clone(&self.original);
            }
        }
        Ok(())
    }

    fn compare(&mut self, pass: &str, graph: &Graph, rewrites: &[Rewrite]) -> Vec<CumulativeCheck> {
        let class = rewrites.iter().map(|rewrite| rewrite.class).max().unwrap_or(Class::ExactBits);
        self.whole.learn(&self.store);
        self.whole.compare(&mut self.bench, graph, class, &self.options, |check| {
            check.rewrites = rewrites.len();
            pass.clone_into(&mut check.pass);
        })
    }

    fn report(&mut self, done: &Transformed) -> RewriteChecks {
        let checks = std::mem::take(&mut self.checks);
        let cumulative = std::mem::take(&mut self.cumulative);
        let kept = || checks.iter().filter(|check| check.kept);
        let count = |verdict| kept().filter(|check| check.verdict == verdict).count();
        let coverage = Coverage {
            proved: count(Verdict::Proved),
            conditional: count(Verdict::Conditional),
            disproved: count(Verdict::Disproved),
            not_comparable: count(Verdict::NotComparable),
        };
        let unchanged = done.rewrites.is_empty();
        let end = cumulative.iter().filter(|check| check.rewrites == done.rewrites.len());
        let whole = end.map(|check| check.verdict).max().unwrap_or(Verdict::NotComparable);
        let alone = kept().map(|check| check.verdict).max().unwrap_or(Verdict::Proved);
        // A graph that is the original needs no proof.
        let verdict = if unchanged { Verdict::Proved } else { whole.max(alone) };
        RewriteChecks {
            schema_version: REWRITE_CHECKS_SCHEMA_VERSION.to_owned(),
            engine: self.bench.engine.name().to_owned(),
            engine_version: self.bench.engine.version(),
            validation: self.options.validation.name().to_owned(),
            seed: self.options.inputs.seed,
            inputs: self.whole.names(),
            verdict,
            coverage,
            rewrites: checks,
            cumulative,
            notes: std::mem::take(&mut self.notes),
        }
    }

    /// What becomes of a rewrite, by what was found about it.
    fn opinion(&self, check: &RewriteCheck) -> Result<Opinion> {
        let reason = check.reason.clone().unwrap_or_default();
        let reject = match check.verdict {
            Verdict::Proved | Verdict::Conditional => false,
            Verdict::NotComparable => self.options.unchecked == Unchecked::Reject,
            Verdict::Disproved => match self.options.on_fail {
                OnFail::Rollback => true,
                OnFail::Keep => false,
                OnFail::Raise => {
                    let what = format!("rewrite {} of {}", check.index, check.pass);
                    return Err(wrong(&what, &reason));
                }
            },
        };
        Ok(if reject { Opinion::Reject(reason) } else { Opinion::Keep })
    }
}

impl Judge for Checker<'_> {
    fn looks(&self) -> bool {
        self.options.validation == Validation::Local
    }

    fn looks_at_passes(&self) -> bool {
        self.options.validation == Validation::Pass
    }

    fn sweep(&mut self, sweep: &Sweep<'_>) -> Result<Vec<Opinion>> {
        if self.options.validation != Validation::Local {
            return Ok(vec![Opinion::Keep; sweep.rewrites.len()]);
        }
        let mut known = std::mem::take(&mut self.again);
        let key = |rewrite: &Rewrite| (rewrite.anchor, rewrite.applied.reason.clone());
        let open: Vec<&Rewrite> =
            sweep.rewrites.iter().filter(|one| !known.contains_key(&key(one))).collect();
        let found = Local::new(self, sweep.before).check(&open);
        known.extend(open.iter().zip(found).map(|(rewrite, check)| (key(rewrite), check)));
        let mut opinions = Vec::new();
        let mut checks: BTreeMap<usize, RewriteCheck> = BTreeMap::new();
        for (number, rewrite) in sweep.rewrites.iter().enumerate() {
            let check = known.get(&key(rewrite)).cloned();
            let mut check = check.expect("what was not known was checked");
            (check.id, check.index) = (rewrite.id, rewrite.index);
            let opinion = self.opinion(&check)?;
            check.kept = opinion == Opinion::Keep;
            checks.insert(number, check);
            opinions.push(opinion);
        }
        // The runner asks again about those that stay.
        let all_stay = opinions.iter().all(|opinion| *opinion == Opinion::Keep);
        if !all_stay {
            self.again = known;
        }
        self.checks.extend(checks.into_values().filter(|check| all_stay || !check.kept));
        Ok(opinions)
    }

    fn pass_done(&mut self, done: &PassDone<'_>) -> Result<Opinion> {
        if self.options.validation != Validation::Pass {
            return Ok(Opinion::Keep);
        }
        let name = done.pass.name();
        let found = self.compare(name, done.graph, done.rewrites);
        let reason = differs(&found);
        self.cumulative.extend(found);
        match (reason, self.options.on_fail) {
            (None, _) | (Some(_), OnFail::Keep) => Ok(Opinion::Keep),
            (Some(reason), OnFail::Raise) => Err(wrong(&format!("the pass {name}"), &reason)),
            (Some(reason), OnFail::Rollback) => Ok(Opinion::Reject(reason)),
        }
    }
}

impl Pipeline {
    /// Runs the passes and checks what they do: the graph, and what is known about it.
    pub fn run_checked(
        &self,
        graph: Graph,
        limits: Limits,
        engine: &dyn Engine,
        options: CheckOptions,
    ) -> Result<(Transformed, RewriteChecks)> {
        if let Some(found) = self.run_deferred(&graph, limits, engine, &options)? {
            return Ok(found);
        }
        let mut checker = Checker::new(&graph, engine, options);
        let mut done = crate::transform(graph, self, limits, &mut checker)?;
        let checks = checker.finish(&mut done)?;
        Ok((done, checks))
    }

    /// The same in one go, when each rewrite alone is to be checked and values fit into memory;
    /// `None` when something is not right.
    fn run_deferred(
        &self,
        graph: &Graph,
        limits: Limits,
        engine: &dyn Engine,
        options: &CheckOptions,
    ) -> Result<Option<(Transformed, RewriteChecks)>> {
        if options.validation != Validation::Local {
            return Ok(None);
        }
        let mut checker = Checker::new(graph, engine, options.clone());
        if checker.store.is_tight() {
            return Ok(None);
        }
        let mut deferred = Deferred::new();
        let mut done = crate::transform(graph.clone(), self, limits, &mut deferred)?;
        let Some(checks) = deferred.settle(&mut checker) else { return Ok(None) };
        checker.checks = checks;
        let checks = checker.finish(&mut done)?;
        // What is wrong only as a whole is found alone, if it can be.
        let is_proved = checks.verdict == Verdict::Proved;
        Ok(is_proved.then_some((done, checks)))
    }
}

fn wrong(what: &str, reason: &str) -> veracity_diag::Refusal {
    Diagnostic::error(codes::REWRITE_WRONG, format!("{what} is wrong: {reason}"))
        .hint("`veracity bisect` finds what made it so; `--on-fail rollback` leaves it out")
        .into()
}
