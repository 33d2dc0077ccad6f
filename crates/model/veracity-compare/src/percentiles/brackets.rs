//! Narrow ranges of errors that most likely hold the wanted percentiles, guessed from a sample.
//!
//! The guess only decides how much work is left: the first pass counts exactly how many errors
//! lie below and in each range, and a rank that a range misses is searched for elsewhere.

use std::sync::{Mutex, PoisonError};

use super::{Cell, FRACTIONS, Source, errors};
use crate::pairs::TileReader;
use crate::plan::{LANES, Plan};
use crate::simd::{Job, Simd};

/// Half the width of a range, in standard deviations of the rank of a sampled percentile: one
/// range in 400 misses, which costs less than ranges that miss more rarely and hold more.
const DEVIATIONS: f64 = 3.0;

/// The ranges, and the errors that were found in them.
pub(crate) struct Brackets {
    /// Disjoint and ascending: bits of the first and the last error. Never 0, which is counted
    /// already.
    ranges: Vec<[u64; 2]>,
    /// Bits of the errors in each range, while there is room for them.
    collected: Mutex<Vec<Option<Vec<u64>>>>,
}

impl Brackets {
    /// Guesses from a sample. Where the errors of all ranges would take too much memory, they are
    /// counted but not collected.
    pub(crate) fn from_sample(source: &Source<'_>) -> Self {
        let mut sample = sample(source);
        sample.sort_unstable();
        let ranges = ranges(&sample);
        let elements = source.reference.shape().elements();
        let room = |&[low, high]: &[u64; 2]| {
            let inside = sample.partition_point(|&bits| bits <= high)
                - sample.partition_point(|&bits| bits < low);
            // Half as much again as expected, for the sample may be wrong.
            let expected = inside.saturating_mul(elements / sample.len().max(1));
            if low == high { None } else { Some(expected + expected / 2 + LANES * LANES) }
        };
        let rooms: Vec<Option<usize>> = ranges.iter().map(room).collect();
        let fits = rooms.iter().flatten().sum::<usize>() as u64 <= source.plan.collect_limit;
        let collected =
            rooms.into_iter().map(|room| room.filter(|_| fits).map(Vec::with_capacity)).collect();
        Self { ranges, collected: Mutex::new(collected) }
    }

    /// A tally for one thread.
    pub(crate) fn tally(&self, plan: &Plan) -> BracketTally {
        let collecting = self.lock().iter().map(Option::is_some).collect();
        BracketTally {
            counts: vec![Counts::default(); self.ranges.len()],
            collecting,
            masks: vec![0; plan.tile / LANES],
            hits: Vec::new(),
        }
    }

    /// The ranges as cells, with the errors that were collected in them.
    pub(super) fn into_cells(
        self,
        compared: u64,
        tally: &BracketTally,
    ) -> Vec<(Cell, Option<Vec<u64>>)> {
        let collected = self.collected.into_inner().unwrap_or_else(PoisonError::into_inner);
        let cell = |([low, high], counts): ([u64; 2], &Counts)| Cell {
            low,
            high,
            below: compared - counts.reached,
            count: counts.reached - counts.beyond,
        };
        self.ranges.into_iter().zip(&tally.counts).map(cell).zip(collected).collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Option<Vec<u64>>>> {
        self.collected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the errors of a tile, or gives up on a range whose room is used up.
    fn keep(&self, hits: &[u64]) {
        let mut collected = self.lock();
        for &bits in hits {
            let number = self.ranges.partition_point(|&[_, high]| high < bits);
            let slot = &mut collected[number];
            if slot.as_ref().is_some_and(|errors| errors.len() == errors.capacity()) {
                *slot = None;
            }
            if let Some(errors) = slot {
                errors.push(bits);
            }
        }
    }
}

/// The errors of pairs spread evenly over the tensors, as bits.
fn sample(source: &Source<'_>) -> Vec<u64> {
    let plan = source.plan;
    let elements = source.reference.shape().elements();
    let wanted = plan.sample.min(elements / 16).max(LANES);
    let step = (elements / (wanted / LANES)).next_multiple_of(LANES);
    let mut reader = TileReader::new(source.reference, source.candidate, plan.tile);
    let mut room = [0.0; LANES];
    let mut sample = Vec::with_capacity(wanted + LANES);
    for first in (0..elements).step_by(step) {
        let values = reader.tile(first, LANES.min(elements - first)).values;
        let errors = errors::fill(plan.set, values, &mut room);
        sample.extend(errors.iter().filter(|error| !error.is_nan()).map(|error| error.to_bits()));
    }
    sample
}

/// A range around each percentile of the sorted sample; ranges that meet are one.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions in a small sample, and a guess"
)]
fn ranges(sample: &[u64]) -> Vec<[u64; 2]> {
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for fraction in FRACTIONS {
        let count = sample.len() as f64;
        let reach = DEVIATIONS * (count * fraction * (1.0 - fraction)).sqrt() + 2.0;
        let low = (count * fraction - reach).floor();
        let low = if low < 0.0 { 1 } else { sample[low as usize].max(1) };
        let high = (count * fraction + reach).ceil() as usize;
        let high = sample.get(high).copied().unwrap_or(f64::INFINITY.to_bits());
        match ranges.last_mut() {
            Some(last) if low <= last[1] => last[1] = last[1].max(high),
            _ if high > 0 => ranges.push([low, high]),
            _ => {}
        }
    }
    ranges
}

/// How many errors one thread saw, range by range.
pub(crate) struct BracketTally {
    counts: Vec<Counts>,
    collecting: Vec<bool>,
    /// A bit for each error of a tile that is to be kept.
    masks: Vec<u8>,
    hits: Vec<u64>,
}

/// Errors at or above the start of a range, and above its end.
#[derive(Clone, Copy, Default)]
struct Counts {
    reached: u64,
    beyond: u64,
}

impl BracketTally {
    /// Counts the errors of a tile and keeps those in a range.
    pub(crate) fn add(&mut self, plan: &Plan, errors: &[f64], brackets: &Brackets) {
        let (chunks, rest) = errors.as_chunks::<LANES>();
        self.add_chunks(plan, chunks, brackets);
        if !rest.is_empty() {
            // NaN is in no range.
            let mut chunk = [f64::NAN; LANES];
            chunk[..rest.len()].copy_from_slice(rest);
            self.add_chunks(plan, &[chunk], brackets);
        }
    }

    fn add_chunks(&mut self, plan: &Plan, chunks: &[[f64; LANES]], brackets: &Brackets) {
        let masks = &mut self.masks[..chunks.len()];
        masks.fill(0);
        let ranges = brackets.ranges.iter().zip(&self.collecting);
        for ((&[low, high], &collect), counts) in ranges.zip(&mut self.counts) {
            let job = CountRange {
                chunks,
                below: f64::from_bits(low - 1),
                last: f64::from_bits(high),
                keep: if collect { u8::MAX } else { 0 },
                masks,
            };
            let found = plan.set.run(job);
            counts.reached += found.reached;
            counts.beyond += found.beyond;
        }
        self.hits.clear();
        for (chunk, &mask) in chunks.iter().zip(masks.iter()) {
            let mut mask = mask;
            while mask != 0 {
                self.hits.push(chunk[mask.trailing_zeros() as usize].to_bits());
                mask &= mask - 1;
            }
        }
        if !self.hits.is_empty() {
            brackets.keep(&self.hits);
        }
    }

    /// Adds the counts of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (into, from) in self.counts.iter_mut().zip(&other.counts) {
            into.reached += from.reached;
            into.beyond += from.beyond;
        }
    }
}

/// Counts the errors above two bounds and marks those between.
struct CountRange<'a> {
    chunks: &'a [[f64; LANES]],
    /// The number just below the first error of the range.
    below: f64,
    /// The last error of the range.
    last: f64,
    keep: u8,
    masks: &'a mut [u8],
}

impl Job for CountRange<'_> {
    type Output = Counts;

    #[expect(clippy::inline_always, reason = "see `Job`")]
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Counts {
        let (below, last) = (simd.splat(self.below), simd.splat(self.last));
        let (mut reached, mut beyond) = (simd.no_counts(), simd.no_counts());
        for (chunk, mask) in self.chunks.iter().zip(self.masks) {
            let lanes = simd.load(chunk);
            reached = simd.count_less(reached, below, lanes);
            beyond = simd.count_less(beyond, last, lanes);
            *mask |= simd.less(below, lanes) & !simd.less(last, lanes) & self.keep;
        }
        Counts { reached: simd.total(reached), beyond: simd.total(beyond) }
    }
}
