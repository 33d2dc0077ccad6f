//! Exact percentiles of the absolute error in bounded memory.
//!
//! A sample tells roughly where the percentiles lie ([`brackets`]). The first pass over the
//! tensors then counts the errors below and in a narrow range around each, and collects those
//! inside: in most cases the wanted ranks are among them, and no further pass is needed. Where a
//! range missed or held too much, later passes count more finely and collect again ([`refine`]).
//! The order of float64 that are not negative is the order of their bits, so everything here is
//! integer work and exact.

use std::collections::BTreeMap;

use veracity_results::Percentiles;

mod brackets;
mod collect;
pub(crate) mod errors;
mod refine;

pub(crate) use brackets::{BracketTally, Brackets};
pub(crate) use refine::Source;

/// The percentiles that are reported, as fractions.
const FRACTIONS: [f64; 5] = [0.50, 0.75, 0.90, 0.99, 0.995];

/// A range of errors, by their bits, that holds a wanted rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    /// Bits of the smallest error in the range.
    low: u64,
    /// Bits of the largest error in the range.
    high: u64,
    /// Errors below the range.
    below: u64,
    /// Errors in the range.
    count: u64,
}

impl Cell {
    fn holds(&self, rank: u64) -> bool {
        rank >= self.below && rank - self.below < self.count
    }
}

/// What the first pass found out about the errors.
pub(crate) struct Known {
    /// Errors that there are.
    pub(crate) compared: u64,
    /// Errors that are 0.
    pub(crate) zeros: u64,
    /// The largest error.
    pub(crate) max_abs: f64,
    /// What was counted and collected near the percentiles, if it was.
    pub(crate) brackets: Option<(Brackets, BracketTally)>,
}

/// The percentiles of the errors of `source`; `None` when there are none.
pub(crate) fn percentiles(source: &Source<'_>, known: Known) -> Option<Percentiles> {
    let last = known.compared.checked_sub(1)?;
    let points = FRACTIONS.map(|fraction| Point::new(fraction, last));
    let mut ranks: Vec<u64> = points.iter().flat_map(|point| [point.rank, point.next]).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let values = order_statistics(source, known, &ranks);
    let [p50, p75, p90, p99, p995] =
        points.map(|point| point.interpolate(values[&point.rank], values[&point.next]));
    Some(Percentiles { p50, p75, p90, p99, p995 })
}

/// Where a percentile lies between two ranks, as NumPy's `linear` method has it.
#[derive(Clone, Copy)]
struct Point {
    rank: u64,
    next: u64,
    /// How far from `rank` to `next`.
    part: f64,
}

impl Point {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "ranks are below 2^53, and not negative"
    )]
    fn new(fraction: f64, last: u64) -> Self {
        let position = fraction * last as f64;
        let rank = (position.floor() as u64).min(last);
        Self { rank, next: (rank + 1).min(last), part: position - position.floor() }
    }

    /// Both forms of the line are used, each on the side where it meets its end exactly.
    fn interpolate(self, value: f64, next: f64) -> f64 {
        if self.part == 0.0 || value.to_bits() == next.to_bits() {
            return value;
        }
        if next.is_infinite() {
            return next;
        }
        let step = next - value;
        if self.part < 0.5 { value + step * self.part } else { next - step * (1.0 - self.part) }
    }
}

/// The errors of these ranks, which are sorted.
fn order_statistics(source: &Source<'_>, known: Known, ranks: &[u64]) -> BTreeMap<u64, f64> {
    let Known { compared, zeros, max_abs, brackets } = known;
    let elements = source.reference.shape().elements() as u64;
    let at_zero = ranks.partition_point(|&rank| rank < zeros);
    let mut found: BTreeMap<u64, f64> = ranks[..at_zero].iter().map(|&rank| (rank, 0.0)).collect();
    let mut wanted = ranks[at_zero..].to_vec();
    let (mut cells, collected) = match brackets {
        Some((brackets, tally)) => brackets.into_cells(elements, &tally),
        None => (Vec::new(), None),
    };
    if let Some(entries) = collected {
        found.extend(refine::pick_from(entries, &cells, &wanted));
        wanted.retain(|rank| !found.contains_key(rank));
    }
    if wanted.iter().any(|&rank| !cells.iter().any(|cell| cell.holds(rank))) {
        let high = max_abs.to_bits();
        cells = vec![Cell { low: 1, high, below: zeros, count: compared - zeros }];
    }
    search(source, cells, wanted, &mut found);
    found
}

/// Passes over the errors until every wanted rank is found. Each is in one of the cells.
fn search(
    source: &Source<'_>,
    mut cells: Vec<Cell>,
    mut wanted: Vec<u64>,
    found: &mut BTreeMap<u64, f64>,
) {
    loop {
        settle(&cells, &mut wanted, found);
        cells.retain(|cell| wanted.iter().any(|&rank| cell.holds(rank)));
        if cells.is_empty() {
            return;
        }
        if cells.iter().map(|cell| cell.count).sum::<u64>() <= source.plan.collect_limit as u64 {
            found.extend(refine::select(source, &cells, &wanted));
            return;
        }
        cells = refine::split(source, &cells, &wanted);
    }
}

/// Moves ranks whose cell holds one value only from `wanted` to `found`.
fn settle(cells: &[Cell], wanted: &mut Vec<u64>, found: &mut BTreeMap<u64, f64>) {
    wanted.retain(|&rank| {
        let Some(cell) = cells.iter().find(|cell| cell.holds(rank) && cell.low == cell.high) else {
            return true;
        };
        found.insert(rank, f64::from_bits(cell.low));
        false
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_lies_where_numpy_puts_it() {
        for (fraction, last, rank, next, part) in [
            (0.5, 0, 0, 0, 0.0),
            (0.5, 1, 0, 1, 0.5),
            (0.75, 4, 3, 4, 0.0),
            (0.9, 4, 3, 4, 0.600_000_000_000_000_1),
        ] {
            let point = Point::new(fraction, last);
            assert_eq!((point.rank, point.next), (rank, next), "{fraction} of {last}");
            assert_eq!(point.part.to_bits(), f64::to_bits(part), "{fraction} of {last}");
        }
    }

    #[test]
    fn interpolation_never_makes_a_nan() {
        let point = Point { rank: 0, next: 1, part: 0.25 };
        for (value, next, expected) in [
            (1.0, 2.0, 1.25),
            (1.0, f64::INFINITY, f64::INFINITY),
            (f64::INFINITY, f64::INFINITY, f64::INFINITY),
        ] {
            assert_eq!(point.interpolate(value, next).to_bits(), f64::to_bits(expected));
        }
    }
}
