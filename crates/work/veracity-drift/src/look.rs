//! A closer look at values whose elements are not all within their own magnitude.

use veracity_diag::Result;
use veracity_results::DriftRow;
use veracity_tensor::Tensor;

use crate::elements::{Allowed, Judged, judge};
use crate::noise::{MOVES, Moved};

/// A value, what it should be, and what its elements may be off.
#[derive(Debug)]
pub(crate) struct Suspect {
    /// Of itself.
    pub(crate) relative: f64,
    /// At most.
    pub(crate) limit: f64,
    pub(crate) reference: Tensor,
    pub(crate) found: Tensor,
}

impl Suspect {
    pub(crate) fn judged(&self, moved: Option<&Moved>) -> Judged {
        let allowed = Allowed { relative: self.relative, limit: self.limit, moved };
        judge(&self.reference.view(), &self.found.view(), &allowed)
    }
}

/// Gives what values are when everything that they are computed from is moved by a part of itself: by
/// how much, by which seed, and of which suspects. It may leave out what cannot be computed.
pub(crate) type Again<'a> = dyn FnMut(f64, u64, &[usize]) -> Result<Vec<Option<Tensor>>> + 'a;

/// Says of each value what its elements are. `again` is asked only for those that need it.
pub(crate) fn look(suspects: &[Suspect], again: &mut Again<'_>) -> Vec<Judged> {
    let mut found: Vec<Judged> = suspects.iter().map(|one| one.judged(None)).collect();
    let mut moved: Vec<Moved> =
        suspects.iter().map(|one| Moved::new(one.found.shape().elements())).collect();
    for moves in MOVES {
        let open: Vec<usize> = (0..suspects.len()).filter(|&one| !found[one].is_right()).collect();
        for group in alike(suspects, &open) {
            for seed in moves.clone() {
                // What cannot be run on moved inputs moves nothing.
                let values = again(suspects[group[0]].relative, seed, &group).unwrap_or_default();
                for (&one, value) in group.iter().zip(&values) {
                    if let Some(value) = value {
                        moved[one].add(&suspects[one].found.view(), &value.view());
                    }
                }
            }
            for &one in &group {
                found[one] = suspects[one].judged(Some(&moved[one]));
            }
        }
    }
    found
}

/// Suspects that may be off by the same part of themselves can be moved together.
fn alike(suspects: &[Suspect], open: &[usize]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &one in open {
        let same = |group: &&mut Vec<usize>| {
            suspects[group[0]].relative.to_bits() == suspects[one].relative.to_bits()
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    groups
}

/// Puts what was found into a row.
pub(crate) fn put(row: &mut DriftRow, judged: &Judged) {
    row.element.clone_from(&judged.element);
    row.bias = judged.bias;
}
