//! The numbers of many blocks. Every field but the sums can be merged in any order.

use veracity_results::{NonFinite, Tolerance};
use veracity_tensor::Shape;

use crate::accumulate::Accumulator;
use crate::plan::LANES;

/// Smallest and largest of some numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    low: f64,
    high: f64,
}

impl Range {
    /// Of no numbers.
    pub(crate) const EMPTY: Self = Self { low: f64::INFINITY, high: f64::NEG_INFINITY };

    /// Adds a finite number.
    pub(crate) fn include(&mut self, value: f64) {
        self.merge(Self { low: value, high: value });
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }

    /// Both ends, if there is a number. `-0` reads `0`: which of the two came first must not show.
    pub(crate) fn ends(self) -> Option<(f64, f64)> {
        (self.low <= self.high).then_some((self.low + 0.0, self.high + 0.0))
    }

    fn largest_magnitude(self) -> f64 {
        self.ends().map_or(0.0, |(low, high)| low.abs().max(high.abs()))
    }
}

/// Pairs that are not compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct NonFiniteTally {
    counts: NonFinite,
    first_mismatch: Option<usize>,
}

impl NonFiniteTally {
    /// Adds a pair of which a side is not finite.
    pub(crate) fn add(&mut self, reference: f64, candidate: f64, position: usize) {
        let counts = &mut self.counts;
        counts.reference_nan += u64::from(reference.is_nan());
        counts.reference_inf += u64::from(reference.is_infinite());
        counts.candidate_nan += u64::from(candidate.is_nan());
        counts.candidate_inf += u64::from(candidate.is_infinite());
        if reference.is_nan() && candidate.is_nan() {
            counts.matching_nan += 1;
        } else if reference.to_bits() == candidate.to_bits() {
            counts.matching_inf += 1;
        } else {
            counts.mismatching += 1;
            self.note_mismatch(position);
        }
    }

    fn note_mismatch(&mut self, position: usize) {
        self.first_mismatch =
            Some(self.first_mismatch.map_or(position, |earlier| earlier.min(position)));
    }

    fn merge(&mut self, other: &Self) {
        self.counts.add_counts(&other.counts);
        if let Some(position) = other.first_mismatch {
            self.note_mismatch(position);
        }
    }

    /// Pairs that one side does not match.
    pub(crate) fn mismatching(&self) -> u64 {
        self.counts.mismatching
    }

    /// Pairs that are not compared.
    pub(crate) fn total(&self) -> u64 {
        self.counts.matching_nan + self.counts.matching_inf + self.counts.mismatching
    }

    /// The counts as results have them.
    pub(crate) fn into_results(self, shape: &Shape) -> NonFinite {
        let first_mismatch = self.first_mismatch.map(|flat| shape.index_from_flat(flat));
        NonFinite { first_mismatch, ..self.counts }
    }
}

/// The sums of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockSums {
    block: usize,
    sum: f64,
    sum_of_squares: f64,
}

/// The numbers of many blocks.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    pub(crate) differing: u64,
    pub(crate) outside: u64,
    pub(crate) max_abs: f64,
    /// The first block that holds `max_abs`.
    pub(crate) worst_block: usize,
    pub(crate) max_rel: f64,
    excess: f64,
    compared_references: Range,
    lone_references: Range,
    pub(crate) candidates: Range,
    pub(crate) non_finite: NonFiniteTally,
    sums: Vec<BlockSums>,
}

impl Summary {
    /// Of no blocks.
    pub(crate) fn new() -> Self {
        Self {
            differing: 0,
            outside: 0,
            max_abs: 0.0,
            worst_block: usize::MAX,
            max_rel: 0.0,
            excess: 0.0,
            compared_references: Range::EMPTY,
            lone_references: Range::EMPTY,
            candidates: Range::EMPTY,
            non_finite: NonFiniteTally::default(),
            sums: Vec::new(),
        }
    }

    /// Adds a finished block.
    pub(crate) fn add_block(&mut self, block: usize, totals: &Accumulator) {
        let lanes = &totals.lanes;
        let sums = BlockSums {
            block,
            sum: tree_sum(lanes.sum),
            sum_of_squares: tree_sum(lanes.sum_of_squares),
        };
        let range = |low: &[f64], high: &[f64]| Range { low: smallest(low), high: largest(high) };
        self.merge(Self {
            differing: totals.differing,
            outside: totals.outside,
            max_abs: largest(&lanes.max_abs),
            worst_block: block,
            max_rel: largest(&lanes.max_rel),
            excess: largest(&lanes.excess),
            compared_references: range(&lanes.reference_low, &lanes.reference_high),
            lone_references: totals.lone_references,
            candidates: range(&lanes.candidate_low, &lanes.candidate_high),
            non_finite: totals.non_finite.clone(),
            sums: vec![sums],
        });
    }

    /// Adds the blocks of another summary.
    pub(crate) fn merge(&mut self, other: Self) {
        self.differing += other.differing;
        self.outside += other.outside;
        let earlier = other.max_abs >= self.max_abs && other.worst_block < self.worst_block;
        if other.max_abs > self.max_abs || earlier {
            (self.max_abs, self.worst_block) = (other.max_abs, other.worst_block);
        }
        self.max_rel = self.max_rel.max(other.max_rel);
        self.excess = self.excess.max(other.excess);
        self.compared_references.merge(other.compared_references);
        self.lone_references.merge(other.lone_references);
        self.candidates.merge(other.candidates);
        self.non_finite.merge(&other.non_finite);
        self.sums.extend(other.sums);
    }

    /// Sum and sum of squares of the errors, added in block order.
    pub(crate) fn sums(&mut self) -> (f64, f64) {
        self.sums.sort_unstable_by_key(|sums| sums.block);
        self.sums.iter().fold((0.0, 0.0), |(sum, squares), block| {
            (sum + block.sum, squares + block.sum_of_squares)
        })
    }

    /// Smallest `atol` that passes every pair at the `rtol` of `tolerance`. With an `rtol` the
    /// excess is a rounded difference: one step up makes up for the rounding, so that the bound
    /// computed from it is never too small.
    pub(crate) fn min_atol(&self, tolerance: Tolerance) -> f64 {
        let rounded = tolerance.rtol() > 0.0 && self.excess > 0.0;
        if rounded { self.excess.next_up() } else { self.excess }
    }

    /// Largest magnitude of a compared reference.
    pub(crate) fn max_abs_reference(&self) -> f64 {
        self.compared_references.largest_magnitude()
    }

    /// Ends of all finite references.
    pub(crate) fn references(&self) -> Range {
        let mut all = self.compared_references;
        all.merge(self.lone_references);
        all
    }
}

/// Adds the lanes pairwise, in an order that never changes.
fn tree_sum(lanes: [f64; LANES]) -> f64 {
    let pairs: [f64; 4] = std::array::from_fn(|pair| lanes[2 * pair] + lanes[2 * pair + 1]);
    (pairs[0] + pairs[1]) + (pairs[2] + pairs[3])
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn smallest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block whose errors sum up to `sum`, the largest of them `max_abs`.
    fn block(number: usize, sum: f64, max_abs: f64) -> Summary {
        let mut totals = Accumulator::new(Tolerance::EXACT);
        (totals.lanes.sum[3], totals.lanes.max_abs[5]) = (sum, max_abs);
        let mut summary = Summary::new();
        summary.add_block(number, &totals);
        summary
    }

    #[test]
    fn the_order_in_which_blocks_finish_does_not_show() {
        // 1e16 swallows a 1 that is added to it, but not the sum of two.
        let blocks = [block(0, 1e16, 1.0), block(1, 1.0, 2.0), block(2, 1.0, 2.0)];
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut all = Summary::new();
            for index in order {
                all.merge(blocks[index].clone());
            }
            assert_eq!(all.sums().0.to_bits(), 1e16_f64.to_bits(), "{order:?}");
            assert_eq!(all.worst_block, 1, "{order:?}");
        }
    }
}
