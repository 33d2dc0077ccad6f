//! Measures how far a candidate tensor is from its reference, then judges the measurement.
//!
//! [`measure`] reads both tensors and has no opinion; [`judge`] has an opinion and never sees a
//! tensor. What was measured can therefore be judged again later, from a file, by another
//! tolerance. [`compare_named`] does both for many tensors, [`find_permutation`] asks whether two
//! tensors differ by the order of their axes only.
//!
//! # The rule for NaN and infinities
//!
//! A pair of elements is compared by its numbers when both are finite. Of the other pairs:
//!
//! - a NaN or infinity that the other side does not match always fails: NaN beside a number, an
//!   infinity beside a number, infinities of opposite sign, NaN beside an infinity;
//! - two NaN pass only with `equal_nan`;
//! - two infinities of equal sign pass: they are equal numbers, and a mask of `-inf` is a value
//!   like any other. They are counted, so that a saturated output can be seen.
//!
//! This is the rule of `numpy.allclose` and `torch.allclose`.
//!
//! # Integers and bools
//!
//! Integers and bools are measured with the tolerance that was given; give
//! [`Tolerance::EXACT`](veracity_results::Tolerance::EXACT) to demand equality. [`compare_named`],
//! where one tolerance meets many dtypes, holds them to equality unless
//! [`CompareOptions::with_integer_tolerance`] says otherwise. The bytes of a bool are compared as
//! they are: 2 is not 1. Differences of 64-bit integers are exact before they become float64.
//!
//! # Empty tensors
//!
//! A tensor without elements is measured and counts 0 elements. Judging it gives
//! [`Judgement::Proved`], because its shape and dtype were found equal and nothing is left that
//! could differ.
//!
//! # Same input, same bits
//!
//! A measurement does not depend on the number of threads nor on the instruction set: sums run
//! over a fixed partition in a fixed order, and no step is fused or reassociated. Differences of
//! float64 beyond its range, and squares of such, are infinite rather than capped.

mod accumulate;
mod columns;
mod judge;
mod layout;
mod measure;
mod merge;
mod named;
mod options;
mod pairs;
mod parallel;
mod percentiles;
mod plan;
mod simd;
mod summary;
mod ulp;

pub use columns::{Columns, match_columns};
pub use judge::{Judgement, judge, reasons};
pub use layout::find_permutation;
pub use measure::measure;
pub use merge::merge;
pub use named::{CompareOptions, compare_named};
pub use options::MeasureOptions;
