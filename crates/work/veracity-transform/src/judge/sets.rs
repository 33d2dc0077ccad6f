//! Which window is run on which values.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use veracity_onnx::Node;

use super::adverse::Adverse;
use super::crop::{corner, size_of_corner};
use super::local::Local;
use super::moving::{kinds, looks_at};
use super::run::Values;
use super::tally::Tally;
use super::window::Window;
use crate::Rewrite;

/// Values that windows are run on.
pub(super) struct Set {
    pub(super) name: String,
    /// The set of inputs that leads to them, when they are real.
    pub(super) real: Option<usize>,
    /// What they are when they are made up, and the size of corners if they are those of pictures.
    pub(super) made: Option<(Adverse, Option<usize>)>,
    pub(super) values: Values,
}

/// One window on one set of values.
pub(super) struct Case<'w> {
    pub(super) number: usize,
    pub(super) set: usize,
    pub(super) window: &'w Window,
    /// Whether what was there before is known from running the original.
    pub(super) is_known: bool,
}

impl Local<'_, '_> {
    /// The values of each set of inputs, and unpleasant ones in their place.
    pub(super) fn sets(&self, windows: &[Window], rewrites: &[&Rewrite]) -> Vec<Set> {
        let store = &self.checker.store;
        let mut sets: Vec<Set> = (0..store.len())
            .map(|set| {
                let given = windows.iter().flat_map(|window| &window.given);
                let found = given
                    .filter_map(|name| Some((name.clone(), store.values(set).get(name)?.clone())));
                Set {
                    name: store.name(set).to_owned(),
                    real: Some(set),
                    made: None,
                    values: found.collect(),
                }
            })
            .collect();
        let Some(real) = sets.first().map(|set| set.values.clone()) else { return sets };
        let held = windows.iter().zip(rewrites);
        let held: Vec<&[Adverse]> =
            held.map(|(window, rewrite)| kinds(window, rewrite.class)).collect();
        let all: BTreeSet<Adverse> = held.iter().copied().flatten().copied().collect();
        let crops: Vec<Option<usize>> =
            windows.iter().map(|window| size_of_corner(window, &real)).collect();
        let sizes: BTreeSet<Option<usize>> = crops.iter().copied().collect();
        let made = all.into_iter().flat_map(|kind| sizes.iter().map(move |left| (kind, *left)));
        for (kind, left) in made {
            let applies = |((window, kinds), crop): &((&Window, &&[Adverse]), &Option<usize>)| {
                window.is_closed && kinds.contains(&kind) && **crop == left
            };
            // Names of values, each with whether its elements matter to anybody.
            let mut names: BTreeMap<&String, bool> = BTreeMap::new();
            for ((window, _), _) in windows.iter().zip(&held).zip(&crops).filter(applies) {
                let seen: Vec<bool> =
                    window.given.iter().map(|name| looks_at(window, name)).collect();
                if seen.contains(&true) {
                    for (name, seen) in window.given.iter().zip(seen) {
                        *names.entry(name).or_default() |= seen;
                    }
                }
            }
            if names.is_empty() {
                continue;
            }
            let seed = self.checker.options.inputs.seed;
            let values = names.into_iter().filter_map(|(name, is_looked_at)| {
                let value = real.get(name)?;
                if !is_looked_at && left.is_none() {
                    return Some((name.clone(), value.clone()));
                }
                let like = match left.and_then(|left| corner(value, left)) {
                    Some(corner) => kind.like(&corner, name, seed),
                    None => kind.like(value, name, seed),
                };
                Some((name.clone(), Arc::new(like)))
            });
            let part = if left.is_some() { " (corner)" } else { "" };
            let name = format!("{}{part}", kind.name());
            let made = Some((kind, left));
            sets.push(Set { name, real: None, made, values: values.collect() });
        }
        sets
    }

    /// Which window is run on which values.
    pub(super) fn cases<'w>(
        &self,
        windows: &'w [Window],
        rewrites: &[&Rewrite],
        sets: &[Set],
        tallies: &mut [Tally],
    ) -> Vec<Case<'w>> {
        let mut cases = Vec::new();
        for (number, window) in windows.iter().enumerate() {
            if window.is_structural() {
                tallies[number].structural();
                continue;
            }
            let is_known = self.is_untouched(window);
            let class = rewrites[number].class;
            let crop = sets.first().and_then(|real| size_of_corner(window, &real.values));
            // Where no number matters, made-up ones say nothing.
            let has_floats = |set: &Set| {
                window.given.iter().any(|name| {
                    let value = set.values.get(name);
                    value.is_some_and(|value| value.dtype().is_float()) && looks_at(window, name)
                })
            };
            if sets.is_empty() && !window.given.is_empty() {
                tallies[number].unreachable("the model could not be given inputs");
            }
            for (set, held) in sets.iter().enumerate() {
                let there = window.given.iter().all(|name| held.values.contains_key(name));
                let applies = match held.real {
                    Some(0) => true,
                    Some(_) => !window.given.is_empty(),
                    None => {
                        let kinds = kinds(window, class);
                        let meant = held
                            .made
                            .is_some_and(|(kind, left)| kinds.contains(&kind) && left == crop);
                        window.is_closed && meant && there && has_floats(held)
                    }
                };
                if applies && there {
                    let is_known = is_known && self.knows(held, window);
                    cases.push(Case { number, set, window, is_known });
                } else if let Some(real) = held.real.filter(|_| applies) {
                    tallies[number].unreachable(self.checker.store.problem(real));
                }
            }
        }
        cases
    }

    fn knows(&self, set: &Set, window: &Window) -> bool {
        let values = set.real.map(|real| self.checker.store.values(real));
        values.is_some_and(|values| {
            window
                .outputs
                .iter()
                .all(|(old, _)| values.contains_key(old) || window.before.weights.contains_key(old))
        })
    }

    /// Whether what was there is what the original has: its values are known then.
    pub(super) fn is_untouched(&self, window: &Window) -> bool {
        let same = |node: &Node| {
            let name = node.outputs().iter().find(|name| !name.is_empty());
            let there = name.and_then(|name| self.checker.original.producer(name));
            there.is_some_and(|(_, original)| original.bare() == *node)
        };
        !window.given.is_empty() && window.before.nodes.iter().all(same)
    }
}
