//! Narrow ranges of errors that most likely hold the wanted percentiles, guessed from a sample.
//!
//! The guess only decides how much work is left: the first pass counts exactly how many errors
//! lie below and in each range, and a rank that a range misses is searched for elsewhere. Ranges
//! are made of the upper 32 bits of a float64, which keep the order of errors; that is fine
//! enough, and sixteen of them are compared at once.
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use super::collect::{Collection, Collector, Entry};
use super::{Cell, FRACTIONS, Source, errors};
use crate::pairs::TileReader;
use crate::plan::{LANES, Plan};
use crate::simd::{Job, Simd};

/// Half the width of a range, in standard deviations of the rank of a sampled percentile: one
/// range in 400 misses, which costs less than ranges that miss more rarely and hold more.
const DEVIATIONS: f64 = 3.0;

/// Upper halves compared at a time.
const GROUP: usize = 2 * LANES;

/// The ranges, and the errors that were found in them.
pub(crate) struct Brackets {
    /// Disjoint and ascending: upper halves of the first and the last error. The first is never
    /// 0: errors that are 0 are counted already.
    ranges: Vec<[u32; 2]>,
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

    /// The ranges as cells, and the errors in them unless they were too many. All `elements` were
    /// tallied.
    pub(super) fn into_cells(
        self,
        elements: u64,
        tally: &BracketTally,
    ) -> (Vec<Cell>, Option<Vec<Entry>>) {
        let cell = |([low, high], counts): ([u32; 2], &Counts)| Cell {
            low: u64::from(low) << 32,
            high: u64::from(high) << 32 | u64::from(u32::MAX),
            below: elements - counts.reached,
            count: counts.reached - counts.beyond,
        };
        let cells = self.ranges.into_iter().zip(&tally.counts).map(cell).collect();
        (cells, self.collection.into_entries())
    }
}

/// The upper 32 bits of an error, below 2^31; of NaN above those of every error.
#[inline(always)]
fn upper_half(error: f64) -> u32 {
    (error.to_bits() >> 32) as u32
}

/// Upper halves of the errors of pairs spread evenly over the tensors.
fn sample(source: &Source<'_>) -> Vec<u32> {
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
        sample.extend(errors.iter().filter(|error| !error.is_nan()).copied().map(upper_half));
    }
    sample
}

/// A range around each percentile of the sample. Ranges with little between them are one: errors
/// that are collected in vain cost less than a range.
fn ranges(sample: &mut [u32]) -> Vec<[u32; 2]> {
    let mut spans: Vec<(Option<usize>, Option<usize>)> = Vec::new();
    for (first, last) in FRACTIONS.map(|fraction| positions(fraction, sample.len())) {
        let near = |end: usize| first.is_none_or(|first| first <= end + sample.len() / 100);
        match spans.last_mut() {
            Some(before) if before.1.is_none_or(near) => before.1 = last,
            _ => spans.push((first, last)),
        }
    }
    let mut ranges: Vec<[u32; 2]> = Vec::new();
    for (first, last) in spans {
        let mut at = |position: usize| *sample.select_nth_unstable(position).1;
        let low = first.map_or(1, &mut at).max(1);
        let high = last.map_or(upper_half(f64::INFINITY), &mut at);
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
    /// Room for the upper halves of a tile.
    upper: Vec<[u32; GROUP]>,
    /// Room for a bit per error of a tile: reached the start of a range.
    reached: Vec<Marks>,
    /// Likewise: is beyond the end of a range.
    beyond: Vec<Marks>,
    /// Likewise: lies in some range.
    inside: Vec<u64>,
    collector: Collector,
}

/// Bits of 64 errors: four groups of sixteen.
type Marks = [u16; 64 / GROUP];

/// Errors at or above the start of a range, and above its end. NaN is above.
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
        let words = plan.tile.div_ceil(64);
        Self {
            counts: vec![Counts::default(); ranges],
            upper: vec![[0; GROUP]; 64 / GROUP * words],
            reached: vec![[0; 64 / GROUP]; words],
            beyond: vec![[0; 64 / GROUP]; words],
            inside: vec![0; words],
            collector: Collector::new(),
        }
    }

    /// Counts the errors of a tile and collects those in a range.
    pub(crate) fn add(&mut self, plan: &Plan, errors: &[f64], brackets: &Brackets) {
        let words = errors.len().div_ceil(64);
        let upper = &mut self.upper[..64 / GROUP * words];
        let (filled, spare) = upper.as_flattened_mut().split_at_mut(errors.len());
        plan.set.run(FillUpper { errors, upper: filled });
        // 0 is below every range.
        spare.fill(0);
        let inside = &mut self.inside[..words];
        inside.fill(0);
        for (&[low, high], counts) in brackets.ranges.iter().zip(&mut self.counts) {
            let (reached, beyond) = (&mut self.reached[..words], &mut self.beyond[..words]);
            for (bound, marks) in [(low - 1, &mut *reached), (high, &mut *beyond)] {
                plan.set.run(MarkAbove { upper, bound, marks: marks.as_flattened_mut() });
            }
            counts.merge(plan.set.run(CountInside { reached, beyond, inside }));
        }
        for (errors, &inside) in errors.chunks(64).zip(inside.iter()) {
            let mut inside = inside;
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

struct FillUpper<'a> {
    errors: &'a [f64],
    upper: &'a mut [u32],
}

impl Job for FillUpper<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        for (upper, error) in self.upper.iter_mut().zip(self.errors) {
            *upper = upper_half(*error);
        }
    }
}

/// Marks the upper halves above a bound.
struct MarkAbove<'a> {
    upper: &'a [[u32; GROUP]],
    bound: u32,
    marks: &'a mut [u16],
}

impl Job for MarkAbove<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        for (group, mark) in self.upper.iter().zip(self.marks) {
            *mark = simd.above(group, self.bound);
        }
    }
}

/// Counts marks and notes what lies between.
struct CountInside<'a> {
    reached: &'a [Marks],
    beyond: &'a [Marks],
    inside: &'a mut [u64],
}

impl Job for CountInside<'_> {
    type Output = Counts;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Counts {
        let mut counts = Counts::default();
        let words = self.reached.iter().zip(self.beyond).zip(self.inside);
        for ((reached, beyond), inside) in words {
            let (reached, beyond) = (word(*reached), word(*beyond));
            counts.reached += u64::from(reached.count_ones());
            counts.beyond += u64::from(beyond.count_ones());
            *inside |= reached & !beyond;
        }
        counts
    }
}

/// The bits of 64 errors, the first in the lowest.
#[inline(always)]
fn word([first, second, third, fourth]: Marks) -> u64 {
    u64::from(first) | u64::from(second) << 16 | u64::from(third) << 32 | u64::from(fourth) << 48
}
