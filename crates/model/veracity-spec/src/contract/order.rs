//! The order that leads from one list of names to another.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

/// Positions to take from: element `i` of the result is element `take[i]` of what is given.
pub type Take = Vec<usize>;

/// What two lists of names have in common.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The same names in the same order.
    Same,
    /// The same names in another order: element `i` of `left` is element `take[i]` of `right`.
    Permuted(Take),
    /// Names that only one side has.
    Different { only_left: Vec<String>, only_right: Vec<String> },
    /// A name stands twice on one side, so that there is no order to speak of.
    Repeated(String),
}

/// Compares two lists.
pub(super) fn relation(left: &[String], right: &[String]) -> Relation {
    if left == right {
        return Relation::Same;
    }
    if let Some(name) = repeated(left).or_else(|| repeated(right)) {
        return Relation::Repeated(name.clone());
    }
    let positions: HashMap<&String, usize> = right.iter().zip(0..).collect();
    let take: Option<Take> = left.iter().map(|name| positions.get(name).copied()).collect();
    match take {
        Some(take) if left.len() == right.len() => Relation::Permuted(take),
        _ => {
            let known: HashSet<&String> = left.iter().collect();
            let only = |names: &[String], is_known: &dyn Fn(&String) -> bool| {
                names.iter().filter(|name| !is_known(name)).cloned().collect()
            };
            Relation::Different {
                only_left: only(left, &|name| positions.contains_key(name)),
                only_right: only(right, &|name| known.contains(name)),
            }
        }
    }
}

/// The order that undoes another.
pub(crate) fn inverse(take: &[usize]) -> Take {
    let mut inverse = vec![0; take.len()];
    for (position, &from) in take.iter().enumerate() {
        inverse[from] = position;
    }
    inverse
}

/// Whether every position stands once.
pub(crate) fn is_permutation(take: &[usize]) -> bool {
    let mut seen = vec![false; take.len()];
    take.iter().all(|&from| from < seen.len() && !std::mem::replace(&mut seen[from], true))
}

/// The first name that stands twice.
pub(super) fn repeated(names: &[String]) -> Option<&String> {
    let mut seen = HashSet::new();
    names.iter().find(|name| !seen.insert(*name))
}

/// An order for people, every position of it.
pub fn readable(take: &[usize]) -> String {
    let mut text = String::from("[");
    for (index, from) in take.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{from}");
    }
    text + "]"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn lists_are_the_same_permuted_or_different() {
        let different = |left: &str, right: &str| Relation::Different {
            only_left: names(left),
            only_right: names(right),
        };
        for (left, right, expected) in [
            ("a b c", "a b c", Relation::Same),
            ("", "", Relation::Same),
            ("a b c", "c a b", Relation::Permuted(vec![1, 2, 0])),
            ("a b c", "a b d", different("c", "d")),
            ("a b", "b a c", different("", "c")),
            ("a b c", "c a", different("b", "")),
            ("a a", "a b", Relation::Repeated("a".to_owned())),
            ("a b", "b b", Relation::Repeated("b".to_owned())),
        ] {
            assert_eq!(relation(&names(left), &names(right)), expected, "{left} | {right}");
        }
    }

    #[test]
    fn an_order_and_its_inverse_cancel() {
        let take = vec![2, 0, 3, 1];
        let back = inverse(&take);
        assert!((0..4).all(|index| take[back[index]] == index));
        assert!(is_permutation(&take) && is_permutation(&[]));
        assert!(!is_permutation(&[0, 0]) && !is_permutation(&[1, 2]));
    }
}
