//! The numbers of one block of pairs: eight lanes of running totals, and the pairs that are not
//! finite.
//!
//! Element `i` of a block belongs to lane `i % 8`. [`Accumulator::add_pair`] defines what a pair
//! does to its lane; the vector loop does the same to eight lanes at once and leaves vectors that
//! hold something not finite, and the last few elements, to it.
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use veracity_results::Tolerance;

use crate::pairs::Values;
use crate::plan::LANES;
use crate::simd::{InstructionSet, Job, Simd};
use crate::summary::{NonFiniteTally, Range};

mod kinds;
mod same;

use kinds::{Doubles, Integers, Pair, Pairs, Singles};
use same::FiniteEnds;

/// A little below 1: a quotient that is estimated to stay below `max_rel` by this factor is
/// below it for certain, whatever the two roundings of the estimate did.
const SURELY_BELOW: f64 = 1.0 - 4.0 * f64::EPSILON;

/// Running totals of one block.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    tolerance: Tolerance,
    /// Totals over compared pairs, lane by lane.
    pub(crate) lanes: LaneTotals,
    /// Compared pairs that are not equal.
    pub(crate) differing: u64,
    /// Compared pairs outside of the tolerance.
    pub(crate) outside: u64,
    /// Pairs that are not compared.
    pub(crate) non_finite: NonFiniteTally,
    /// Finite references beside a candidate that is not finite.
    pub(crate) lone_references: Range,
}

/// Totals over compared pairs, lane by lane.
#[derive(Clone, Debug)]
pub(crate) struct LaneTotals {
    pub(crate) sum: [f64; LANES],
    pub(crate) sum_of_squares: [f64; LANES],
    pub(crate) max_abs: [f64; LANES],
    /// Largest error relative to a reference that is not 0.
    pub(crate) max_rel: [f64; LANES],
    /// Largest `error - rtol * |reference|`, at least 0.
    pub(crate) excess: [f64; LANES],
    pub(crate) reference_low: [f64; LANES],
    pub(crate) reference_high: [f64; LANES],
    pub(crate) candidate_low: [f64; LANES],
    pub(crate) candidate_high: [f64; LANES],
}

impl Accumulator {
    /// Nothing seen yet.
    pub(crate) fn new(tolerance: Tolerance) -> Self {
        let (zero, low, high) = ([0.0; LANES], [f64::INFINITY; LANES], [f64::NEG_INFINITY; LANES]);
        Self {
            tolerance,
            lanes: LaneTotals {
                sum: zero,
                sum_of_squares: zero,
                max_abs: zero,
                max_rel: zero,
                excess: zero,
                reference_low: low,
                reference_high: high,
                candidate_low: low,
                candidate_high: high,
            },
            differing: 0,
            outside: 0,
            non_finite: NonFiniteTally::default(),
            lone_references: Range::EMPTY,
        }
    }

    /// Adds a tile whose first pair stands at row-major position `first`, and writes the absolute
    /// error of each pair to `errors`: NaN where it is not compared. All tiles of a block but the
    /// last have a multiple of eight pairs.
    pub(crate) fn add_tile(
        &mut self,
        set: InstructionSet,
        values: Values<'_>,
        first: usize,
        errors: &mut [f64],
    ) {
        let into = self;
        match values {
            Values::Single(reference, candidate) => {
                set.run(AddPairs { into, pairs: Singles(reference, candidate), first, errors });
            }
            Values::Double(reference, candidate) => {
                set.run(AddPairs { into, pairs: Doubles(reference, candidate), first, errors });
            }
            Values::Integer(reference, candidate, difference) => {
                let pairs = Integers(reference, candidate, difference);
                set.run(AddPairs { into, pairs, first, errors });
            }
        }
    }

    /// Adds a tile both sides of which are the same, bit for bit, if all of it is finite; else it
    /// adds nothing and says `false`. With no error, the ends of the ranges are all that such a
    /// tile can change.
    pub(crate) fn add_same(&mut self, set: InstructionSet, values: Values<'_>) -> bool {
        let found = match values {
            Values::Single(side, _) => set.run(FiniteEnds(side)),
            Values::Double(side, _) | Values::Integer(side, ..) => set.run(FiniteEnds(side)),
        };
        let Some((low, high)) = found else {
            return false;
        };
        let lanes = &mut self.lanes;
        for lowest in [&mut lanes.reference_low[0], &mut lanes.candidate_low[0]] {
            *lowest = lowest.min(low);
        }
        for highest in [&mut lanes.reference_high[0], &mut lanes.candidate_high[0]] {
            *highest = highest.max(high);
        }
        true
    }

    /// Adds one pair to its lane and says whether it was compared.
    fn add_pair(
        &mut self,
        lane: usize,
        (reference, candidate, error): Pair,
        position: usize,
    ) -> bool {
        let lanes = &mut self.lanes;
        if candidate.is_finite() {
            lanes.candidate_low[lane] = lanes.candidate_low[lane].min(candidate);
            lanes.candidate_high[lane] = lanes.candidate_high[lane].max(candidate);
        }
        if !(reference.is_finite() && candidate.is_finite()) {
            if reference.is_finite() {
                self.lone_references.include(reference);
            }
            self.non_finite.add(reference, candidate, position);
            return false;
        }
        lanes.reference_low[lane] = lanes.reference_low[lane].min(reference);
        lanes.reference_high[lane] = lanes.reference_high[lane].max(reference);
        lanes.sum[lane] += error;
        lanes.sum_of_squares[lane] += error * error;
        lanes.max_abs[lane] = lanes.max_abs[lane].max(error);
        let allowed = self.tolerance.rtol() * reference.abs();
        lanes.excess[lane] = lanes.excess[lane].max(error - allowed);
        self.differing += u64::from(error > 0.0);
        self.outside += u64::from(error > self.tolerance.bound(reference));
        if error > 0.0 && reference != 0.0 {
            lanes.max_rel[lane] = lanes.max_rel[lane].max(error / reference.abs());
        }
        true
    }
}

struct AddPairs<'a, P> {
    into: &'a mut Accumulator,
    pairs: P,
    first: usize,
    errors: &'a mut [f64],
}

impl<P: Pairs> Job for AddPairs<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { into, pairs, first, errors } = self;
        let infinity = simd.splat(f64::INFINITY);
        let mut registers = Registers::load(simd, into);
        let (chunks, rest) = errors[..pairs.len()].as_chunks_mut::<LANES>();
        for (number, chunk) in chunks.iter_mut().enumerate() {
            let [reference, candidate, error] = pairs.chunk(simd, number);
            *chunk = simd.store(error);
            // An error that is not finite may come from a pair that is not, or from an overflow.
            if simd.less(error, infinity) == u8::MAX {
                registers.add(simd, reference, candidate, error);
            } else {
                registers.store(simd, into);
                add_one_by_one(into, pairs, number * LANES, first, chunk);
                registers = Registers::load(simd, into);
            }
        }
        registers.store(simd, into);
        add_one_by_one(into, pairs, pairs.len() - rest.len(), first, rest);
    }
}

/// Adds the pairs from `start` on, as many as there is room for errors.
#[cold]
#[inline(never)]
fn add_one_by_one<P: Pairs>(
    into: &mut Accumulator,
    pairs: P,
    start: usize,
    first: usize,
    errors: &mut [f64],
) {
    for (index, error) in (start..).zip(errors) {
        let pair = pairs.pair(index);
        let compared = into.add_pair(index % LANES, pair, first + index);
        *error = if compared { pair.2 } else { f64::NAN };
    }
}

/// The lane totals while they are in registers.
struct Registers<S: Simd> {
    sum: S::Lanes,
    sum_of_squares: S::Lanes,
    max_abs: S::Lanes,
    max_rel: S::Lanes,
    excess: S::Lanes,
    reference_low: S::Lanes,
    reference_high: S::Lanes,
    candidate_low: S::Lanes,
    candidate_high: S::Lanes,
    differing: S::Counts,
    outside: S::Counts,
    /// A relative error below this is surely not the largest.
    rel_filter: S::Lanes,
    zero: S::Lanes,
    atol: S::Lanes,
    rtol: S::Lanes,
}

impl<S: Simd> Registers<S> {
    #[inline(always)]
    fn load(simd: S, from: &Accumulator) -> Self {
        let lanes = &from.lanes;
        Self {
            sum: simd.load(&lanes.sum),
            sum_of_squares: simd.load(&lanes.sum_of_squares),
            max_abs: simd.load(&lanes.max_abs),
            max_rel: simd.load(&lanes.max_rel),
            excess: simd.load(&lanes.excess),
            reference_low: simd.load(&lanes.reference_low),
            reference_high: simd.load(&lanes.reference_high),
            candidate_low: simd.load(&lanes.candidate_low),
            candidate_high: simd.load(&lanes.candidate_high),
            differing: simd.no_counts(),
            outside: simd.no_counts(),
            rel_filter: simd.mul(simd.load(&lanes.max_rel), simd.splat(SURELY_BELOW)),
            zero: simd.splat(0.0),
            atol: simd.splat(from.tolerance.atol()),
            rtol: simd.splat(from.tolerance.rtol()),
        }
    }

    #[inline(always)]
    fn store(&self, simd: S, into: &mut Accumulator) {
        into.lanes = LaneTotals {
            sum: simd.store(self.sum),
            sum_of_squares: simd.store(self.sum_of_squares),
            max_abs: simd.store(self.max_abs),
            max_rel: simd.store(self.max_rel),
            excess: simd.store(self.excess),
            reference_low: simd.store(self.reference_low),
            reference_high: simd.store(self.reference_high),
            candidate_low: simd.store(self.candidate_low),
            candidate_high: simd.store(self.candidate_high),
        };
        into.differing += simd.total(self.differing);
        into.outside += simd.total(self.outside);
    }

    /// Adds eight pairs whose errors are finite.
    #[inline(always)]
    fn add(&mut self, simd: S, reference: S::Lanes, candidate: S::Lanes, error: S::Lanes) {
        self.reference_low = simd.min(self.reference_low, reference);
        self.reference_high = simd.max(self.reference_high, reference);
        self.candidate_low = simd.min(self.candidate_low, candidate);
        self.candidate_high = simd.max(self.candidate_high, candidate);
        self.sum = simd.add(self.sum, error);
        self.sum_of_squares = simd.add(self.sum_of_squares, simd.mul(error, error));
        self.max_abs = simd.max(self.max_abs, error);

        let magnitude = simd.abs(reference);
        let allowed = simd.mul(self.rtol, magnitude);
        self.excess = simd.max(self.excess, simd.sub(error, allowed));
        self.outside = simd.count_less(self.outside, simd.add(self.atol, allowed), error);
        self.differing = simd.count_less(self.differing, self.zero, error);

        // A division costs as much as all of the above; the largest quotient changes rarely.
        let surely_below = simd.less(error, simd.mul(self.rel_filter, magnitude));
        if simd.less(self.zero, error) & !surely_below != 0 {
            self.raise_max_rel(simd, error, magnitude);
        }
    }

    #[inline(always)]
    fn raise_max_rel(&mut self, simd: S, error: S::Lanes, magnitude: S::Lanes) {
        let mut quotients = simd.div(error, magnitude);
        let divisible = simd.less(self.zero, magnitude);
        if divisible != u8::MAX {
            let mut values = simd.store(quotients);
            for (lane, value) in values.iter_mut().enumerate() {
                *value = if divisible >> lane & 1 == 1 { *value } else { 0.0 };
            }
            quotients = simd.load(&values);
        }
        self.max_rel = simd.max(self.max_rel, quotients);
        self.rel_filter = simd.mul(self.max_rel, simd.splat(SURELY_BELOW));
    }
}
