//! Checks rewrites alone: windows of one sweep, many in one model.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use veracity_onnx::Graph;
use veracity_results::RewriteCheck;
use veracity_tensor::Tensor;

use super::Checker;
use super::rules::{Demand, Outcome, Row, compare};
use super::run::{Failure, Job};
use super::second::{Suspect, look};
use super::sets::{Case, Set};
use super::sums::roundings;
use super::tally::Tally;
use super::values::same_bits;
use super::window::{Side, Window};
use crate::{Class, Rewrite};

/// Windows that are run together where values take too much memory to be held.
const FEW: usize = 8;

/// What each side of a window is asked for.
struct Wanted<'w> {
    before: Vec<&'w str>,
    after: Vec<&'w str>,
    /// The same with all values that came, for later rewrites.
    after_real: Vec<&'w str>,
}

type Got = Result<Vec<Arc<Tensor>>, Failure>;

/// Checks the rewrites of one sweep.
pub(super) struct Local<'c, 'e> {
    pub(super) checker: &'c mut Checker<'e>,
    graph: &'c Graph,
}

impl<'c, 'e> Local<'c, 'e> {
    pub(super) fn new(checker: &'c mut Checker<'e>, graph: &'c Graph) -> Self {
        Self { checker, graph }
    }

    /// What is found about each rewrite, in their order.
    pub(super) fn check(self, rewrites: &[&Rewrite]) -> Vec<RewriteCheck> {
        let places = self.graph.places();
        let windows: Vec<Window> =
            rewrites.iter().map(|one| Window::of(self.graph, &places, one)).collect();
        self.check_windows(&windows, rewrites)
    }

    /// The same for rewrites that were cut out already.
    pub(super) fn check_windows(
        mut self,
        windows: &[Window],
        rewrites: &[&Rewrite],
    ) -> Vec<RewriteCheck> {
        let tight = self.checker.store.is_tight();
        if !tight {
            self.fetch(windows);
        }
        let mut found = Vec::new();
        for range in self.chunks(windows) {
            if tight {
                self.fetch(&windows[range.clone()]);
            }
            found.extend(self.chunk(&windows[range.clone()], &rewrites[range]));
        }
        found
    }

    fn fetch(&mut self, windows: &[Window]) {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for window in windows.iter().filter(|window| !window.is_structural()) {
            names.extend(window.given.iter().cloned());
            if self.is_untouched(window) {
                names.extend(window.outputs.iter().map(|(old, _)| old.clone()));
            }
        }
        names.retain(|name| self.graph.weight(name).is_none());
        let Checker { store, bench, original, .. } = &mut *self.checker;
        store.fetch(bench, original, self.graph, &names);
    }

    /// Windows that are run together, within the memory that is allowed.
    fn chunks(&self, windows: &[Window]) -> Vec<Range<usize>> {
        let size = |name: &str| {
            let sets = 0..self.checker.store.len();
            let values = sets.filter_map(|set| self.checker.store.values(set).get(name));
            values.map(|tensor| tensor.bytes().len()).max().unwrap_or(0)
        };
        let mut chunks: Vec<Range<usize>> = Vec::new();
        let mut bytes = 0;
        for (number, window) in windows.iter().enumerate() {
            let given: usize = window.given.iter().map(|name| size(name)).sum();
            let outputs: usize = window.outputs.iter().map(|(old, _)| size(old)).sum();
            let takes = (given + 2 * outputs) * 6;
            let few = self.checker.store.is_tight();
            match chunks.last_mut() {
                Some(last)
                    if bytes + takes <= self.checker.options.memory
                        && !(few && last.len() >= FEW) =>
                {
                    last.end = number + 1;
                    bytes += takes;
                }
                _ => {
                    chunks.push(number..number + 1);
                    bytes = takes;
                }
            }
        }
        chunks
    }

    fn chunk(&mut self, windows: &[Window], rewrites: &[&Rewrite]) -> Vec<RewriteCheck> {
        let mut tallies: Vec<Tally> = rewrites.iter().map(|_| Tally::default()).collect();
        let sets = self.sets(windows, rewrites);
        let cases = self.cases(windows, rewrites, &sets, &mut tallies);
        let wanted: Vec<Wanted<'_>> = windows.iter().map(Wanted::of).collect();
        let roundings: Vec<f64> = windows.iter().map(roundings).collect();
        let (before, after) = self.run(&cases, &sets, &wanted);
        let mut suspects: Vec<(usize, Suspect<'_>)> = Vec::new();
        let mut rows: Vec<(usize, &str, Row)> = Vec::new();
        for (at, case) in cases.iter().enumerate() {
            let set = &sets[case.set];
            let tally = &mut tallies[case.number];
            let (was, is) = match (&before[at], &after[at]) {
                (Ok(was), Ok(is)) => (was, is),
                (Err(failure), _) => {
                    tally.not_run(&set.name, "what was there", failure, set.real.is_some());
                    continue;
                }
                (Ok(_), Err(failure)) => {
                    tally.broken(&set.name, failure, set.real.is_some());
                    continue;
                }
            };
            tally.ran_on(&set.name);
            let wanted = &wanted[case.number];
            let class = rewrites[case.number].class;
            let demand = self.demand(class, roundings[case.number], set.real.is_some());
            for (old, new) in &case.window.outputs {
                let was = value(&case.window.before, old, &wanted.before, was, &set.values);
                let names = wanted.of_after(set.real.is_some());
                let is = value(&case.window.after, new, names, is, &set.values);
                let (Some(was), Some(is)) = (was, is) else {
                    tally.unreadable(&set.name, old);
                    continue;
                };
                let row = compare(&was, &is, demand);
                if let (Outcome::Suspect, Cow::Borrowed(was), Cow::Borrowed(is)) =
                    (&row.outcome, &was, &is)
                {
                    let side = &case.window.before;
                    let values = (case.set, &set.values);
                    let (before, after) = (*was, *is);
                    suspects.push((at, Suspect { side, output: old, values, before, after, row }));
                } else {
                    rows.push((at, old, row));
                }
            }
        }
        let (places, suspects): (Vec<usize>, Vec<Suspect<'_>>) = suspects.into_iter().unzip();
        let seed = self.checker.options.inputs.seed;
        let looked = look(&mut self.checker.bench, self.graph, &suspects, seed);
        let looked = places.into_iter().zip(&suspects).zip(looked);
        rows.extend(looked.map(|((at, suspect), row)| (at, suspect.output, row)));
        self.excuse_unstable(&mut rows, &cases, &sets, &mut tallies);
        for (at, output, row) in rows {
            tallies[cases[at].number].add(&sets[cases[at].set].name, output, row);
        }
        drop(suspects);
        self.remember(&cases, &sets, &wanted, after, &tallies);
        tallies.into_iter().zip(rewrites).map(|(tally, one)| tally.finish(one)).collect()
    }

    fn demand(&self, class: Class, roundings: f64, is_real: bool) -> Demand {
        let limit = self.checker.options.approximate_limit;
        Demand { class, roundings, limit, is_real }
    }

    fn run(
        &mut self,
        cases: &[Case<'_>],
        sets: &[Set],
        wanted: &[Wanted<'_>],
    ) -> (Vec<Got>, Vec<Got>) {
        let values = |case: &Case<'_>| (case.set, &sets[case.set].values);
        let open: Vec<Job<'_>> = cases
            .iter()
            .filter(|case| !case.is_known)
            .map(|case| Job {
                side: &case.window.before,
                wanted: &wanted[case.number].before,
                values: values(case),
            })
            .collect();
        let mut found = shared(self.checker.bench.run(self.graph, &open));
        let store = &self.checker.store;
        let before: Vec<Got> = cases
            .iter()
            .map(|case| match sets[case.set].real.filter(|_| case.is_known) {
                Some(real) => {
                    let known = |name: &&str| store.values(real).get(*name).cloned();
                    let found: Option<Vec<Arc<Tensor>>> =
                        wanted[case.number].before.iter().map(known).collect();
                    found.ok_or_else(Failure::lost)
                }
                None => found.next().unwrap_or_else(|| Err(Failure::lost())),
            })
            .collect();
        let jobs: Vec<Job<'_>> = cases
            .iter()
            .map(|case| Job {
                side: &case.window.after,
                wanted: wanted[case.number].of_after(sets[case.set].real.is_some()),
                values: values(case),
            })
            .collect();
        (before, shared(self.checker.bench.run(self.graph, &jobs)).collect())
    }

    /// Runs what was there again where what came seems wrong: what disagrees with itself cannot
    /// be blamed on a rewrite.
    fn excuse_unstable(
        &mut self,
        rows: &mut Vec<(usize, &str, Row)>,
        cases: &[Case<'_>],
        sets: &[Set],
        tallies: &mut [Tally],
    ) {
        let is_wrong = |row: &Row| matches!(row.outcome, Outcome::Wrong(_));
        let blamed: Vec<(usize, [&str; 1])> = rows
            .iter()
            .filter(|(_, _, row)| is_wrong(row))
            .map(|(at, name, _)| (*at, [*name]))
            .collect();
        let blamed: Vec<_> = blamed
            .into_iter()
            .filter(|(at, name)| cases[*at].window.before.makes(name[0]))
            .collect();
        let jobs: Vec<Job<'_>> = blamed
            .iter()
            .map(|(at, name)| {
                let case = &cases[*at];
                Job {
                    side: &case.window.before,
                    wanted: name,
                    values: (case.set, &sets[case.set].values),
                }
            })
            .collect();
        // In one model, twice: an engine may draw the same random numbers whenever it starts.
        let twice: Vec<Job<'_>> = jobs.iter().chain(&jobs).copied().collect();
        let mut once = self.checker.bench.run(self.graph, &twice);
        let again = once.split_off(jobs.len());
        for (((at, name), once), again) in blamed.iter().zip(once).zip(again) {
            let (Ok(once), Ok(again)) = (once, again) else { continue };
            let differs = |(one, two): (&Tensor, &Tensor)| !same_bits(one, two);
            // What the original gave stands for it, too.
            let case = &cases[*at];
            let real = sets[case.set].real.filter(|_| case.is_known);
            let known = real.and_then(|real| self.checker.store.values(real).get(name[0]));
            let from_known =
                known.is_some_and(|known| once.iter().any(|one| differs((one, known))));
            if from_known || once.iter().zip(&again).any(differs) {
                tallies[cases[*at].number].unstable(name[0]);
                rows.retain(|(other, output, _)| !(other == at && *output == name[0]));
            }
        }
    }

    /// Keeps values that came, for the rewrites that come after.
    fn remember(
        &mut self,
        cases: &[Case<'_>],
        sets: &[Set],
        wanted: &[Wanted<'_>],
        after: Vec<Got>,
        tallies: &[Tally],
    ) {
        for (case, found) in cases.iter().zip(after) {
            let (Some(real), Ok(found)) = (sets[case.set].real, found) else { continue };
            if tallies[case.number].is_wrong() {
                continue;
            }
            let names = &wanted[case.number].after_real;
            for (name, tensor) in names.iter().zip(found) {
                let now = case.window.fresh.iter().find(|(from, _)| from == name);
                if let Some((_, now)) = now {
                    self.checker.store.insert(real, now.clone(), tensor);
                }
            }
        }
    }
}

impl<'w> Wanted<'w> {
    fn of(window: &'w Window) -> Self {
        let made = |side: &Side, names: &mut dyn Iterator<Item = &'w String>| -> Vec<&'w str> {
            let made: BTreeSet<&str> = side.made().collect();
            let found: BTreeSet<&str> =
                names.map(String::as_str).filter(|name| made.contains(name)).collect();
            found.into_iter().collect()
        };
        let before = made(&window.before, &mut window.outputs.iter().map(|(old, _)| old));
        let after = made(&window.after, &mut window.outputs.iter().map(|(_, new)| new));
        let fresh = window.fresh.iter().map(|(name, _)| name.as_str());
        let all: BTreeSet<&str> = after.iter().copied().chain(fresh).collect();
        Self { before, after, after_real: all.into_iter().collect() }
    }

    fn of_after(&self, is_real: bool) -> &[&'w str] {
        if is_real { &self.after_real } else { &self.after }
    }
}

fn shared(found: Vec<Result<Vec<Tensor>, Failure>>) -> impl Iterator<Item = Got> {
    found.into_iter().map(|one| one.map(|values| values.into_iter().map(Arc::new).collect()))
}

/// A value of one side: computed, a constant, or handed in.
fn value<'v>(
    side: &Side,
    name: &str,
    wanted: &[&str],
    found: &'v [Arc<Tensor>],
    given: &'v HashMap<String, Arc<Tensor>>,
) -> Option<Cow<'v, Tensor>> {
    if let Some(at) = wanted.iter().position(|one| *one == name) {
        return found.get(at).map(|value| Cow::Borrowed(value.as_ref()));
    }
    match side.weights.get(name) {
        Some(weight) => weight.tensor().map(Cow::Owned),
        None => given.get(name).map(|value| Cow::Borrowed(value.as_ref())),
    }
}
