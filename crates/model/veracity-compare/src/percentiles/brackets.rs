//! Narrow ranges of errors that most likely hold the wanted percentiles, guessed from a sample.
//!
//! The guess only decides how much work is left: the first pass counts exactly how many errors
//! lie below and in each range, and a rank that a range misses is searched for elsewhere.

use super::collect::{Collection, Collector, Entry};
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
    collection: Collection,
}

impl Brackets {
    /// Guesses from a sample.
    pub(crate) fn from_sample(source: &Source<'_>) -> Self {
        let ranges = ranges(&mut sample(source));
        Self { ranges, collection: Collection::new(source.plan.collect_limit) }
    }

    /// A tally for one thread.
    pub(crate) fn tally(&self, plan: &Plan) -> BracketTally {
        BracketTally::new(self.ranges.len(), plan)
    }

    /// The ranges as cells, and the errors in them unless they were too many.
    pub(super) fn into_cells(
        self,
        compared: u64,
        tally: &BracketTally,
    ) -> (Vec<Cell>, Option<Vec<Entry>>) {
        let cell = |([low, high], counts): ([u64; 2], &Counts)| Cell {
            low,
            high,
            below: compared - counts.reached,
            count: counts.reached - counts.beyond,
        };
        let cells = self.ranges.into_iter().zip(&tally.counts).map(cell).collect();
        (cells, self.collection.into_entries())
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

/// A range around each percentile of the sample. Ranges with little between them are one: errors
/// that are collected in vain cost less than a range.
fn ranges(sample: &mut [u64]) -> Vec<[u64; 2]> {
    let mut spans: Vec<(Option<usize>, Option<usize>)> = Vec::new();
    for (first, last) in FRACTIONS.map(|fraction| positions(fraction, sample.len())) {
        let near = |end: usize| first.is_none_or(|first| first <= end + sample.len() / 100);
        match spans.last_mut() {
            Some(before) if before.1.is_none_or(near) => before.1 = last,
            _ => spans.push((first, last)),
        }
    }
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for (first, last) in spans {
        let mut at = |position: usize| *sample.select_nth_unstable(position).1;
        let low = first.map_or(1, &mut at).max(1);
        let high = last.map_or(f64::INFINITY.to_bits(), &mut at);
        match ranges.last_mut() {
            Some(before) if low <= before[1] => before[1] = before[1].max(high),
            _ if low <= high => ranges.push([low, high]),
            // All 0.
            _ => {}
        }
    }
    ranges
}

/// Where the range around a percentile starts and ends in the sorted sample; `None` where it
/// reaches beyond.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positions in a small sample, and a guess"
)]
fn positions(fraction: f64, count: usize) -> (Option<usize>, Option<usize>) {
    let centre = fraction * count as f64;
    let reach = DEVIATIONS * (centre * (1.0 - fraction)).sqrt() + 2.0;
    let (first, last) = ((centre - reach).floor(), (centre + reach).ceil() as usize);
    ((first >= 0.0).then_some(first as usize), (last < count).then_some(last))
}

/// How many errors one thread saw, range by range.
pub(crate) struct BracketTally {
    counts: Vec<Counts>,
    /// Room for a bit per error of a tile: reached the start of a range.
    reached: Words,
    /// Likewise: is beyond the end of a range.
    beyond: Words,
    /// Likewise: lies in some range.
    inside: Words,
    collector: Collector,
}

/// Bits of 64 errors at a time, a byte for each chunk.
type Words = Vec<[u8; 8]>;

/// Errors at or above the start of a range, and above its end.
#[derive(Clone, Copy, Default)]
struct Counts {
    reached: u64,
    beyond: u64,
}

impl Counts {
    fn merge(&mut self, other: Self) {
        self.reached += other.reached;
        self.beyond += other.beyond;
    }
}

impl BracketTally {
    fn new(ranges: usize, plan: &Plan) -> Self {
        let words = || vec![[0; 8]; plan.tile.div_ceil(64)];
        Self {
            counts: vec![Counts::default(); ranges],
            reached: words(),
            beyond: words(),
            inside: words(),
            collector: Collector::new(),
        }
    }

    /// Counts the errors of a tile and collects those in a range.
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
        let words = chunks.len().div_ceil(8);
        let inside = &mut self.inside[..words];
        inside.fill([0; 8]);
        for (&[low, high], counts) in brackets.ranges.iter().zip(&mut self.counts) {
            for (bound, masks) in [(low - 1, &mut self.reached), (high, &mut self.beyond)] {
                let masks = &mut masks[..words];
                masks.iter_mut().rev().take(1).for_each(|last| *last = [0; 8]);
                let masks = masks.as_flattened_mut();
                plan.set.run(MarkAbove { chunks, bound: f64::from_bits(bound), masks });
            }
            let (reached, beyond) = (&self.reached[..words], &self.beyond[..words]);
            counts.merge(plan.set.run(CountInside { reached, beyond, inside }));
        }
        for (errors, inside) in chunks.as_flattened().chunks(64).zip(inside) {
            let mut inside = u64::from_le_bytes(*inside);
            while inside != 0 {
                let bits = errors[inside.trailing_zeros() as usize].to_bits();
                self.collector.add(bits, &brackets.collection);
                inside &= inside - 1;
            }
        }
    }

    /// Hands over the errors that are not handed over yet.
    pub(crate) fn finish(&mut self, brackets: &Brackets) {
        self.collector.finish(&brackets.collection);
    }

    /// Adds the counts of another thread.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (into, from) in self.counts.iter_mut().zip(&other.counts) {
            into.merge(*from);
        }
    }
}

/// Marks the errors above a bound, a byte for each chunk.
struct MarkAbove<'a> {
    chunks: &'a [[f64; LANES]],
    bound: f64,
    masks: &'a mut [u8],
}

impl Job for MarkAbove<'_> {
    type Output = ();

    #[expect(clippy::inline_always, reason = "see `Job`")]
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let bound = simd.splat(self.bound);
        for (chunk, mask) in self.chunks.iter().zip(self.masks) {
            *mask = simd.less(bound, simd.load(chunk));
        }
    }
}

/// Counts marks and notes what lies between.
struct CountInside<'a> {
    reached: &'a [[u8; 8]],
    beyond: &'a [[u8; 8]],
    inside: &'a mut [[u8; 8]],
}

impl Job for CountInside<'_> {
    type Output = Counts;

    #[expect(clippy::inline_always, reason = "see `Job`")]
    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Counts {
        let mut counts = Counts::default();
        let words = self.reached.iter().zip(self.beyond).zip(self.inside);
        for ((reached, beyond), inside) in words {
            let (reached, beyond) = (u64::from_le_bytes(*reached), u64::from_le_bytes(*beyond));
            counts.reached += u64::from(reached.count_ones());
            counts.beyond += u64::from(beyond.count_ones());
            *inside = (u64::from_le_bytes(*inside) | (reached & !beyond)).to_le_bytes();
        }
        counts
    }
}
