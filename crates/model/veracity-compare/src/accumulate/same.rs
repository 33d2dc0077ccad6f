//! The smallest and the largest of some floats, at the speed of memory.
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use crate::simd::{Job, Simd};

/// Independent minima and maxima, so that none waits for the one before.
const STRANDS: usize = 32;

/// Finds both ends of floats that are all finite; `None` if one is not, or there is none.
pub(super) struct FiniteEnds<'a, F>(pub(super) &'a [F]);

/// A float of either width.
pub(super) trait Float: Copy + PartialOrd + Into<f64> {
    const INFINITY: Self;
    const NEG_INFINITY: Self;
}

impl Float for f32 {
    const INFINITY: Self = Self::INFINITY;
    const NEG_INFINITY: Self = Self::NEG_INFINITY;
}

impl Float for f64 {
    const INFINITY: Self = Self::INFINITY;
    const NEG_INFINITY: Self = Self::NEG_INFINITY;
}

impl<F: Float> Job for FiniteEnds<'_, F> {
    type Output = Option<(f64, f64)>;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> Self::Output {
        let (mut low, mut high) = ([F::INFINITY; STRANDS], [F::NEG_INFINITY; STRANDS]);
        let (chunks, rest) = self.0.as_chunks::<STRANDS>();
        let mut ordered = true;
        for chunk in chunks {
            ordered &= include(&mut low, &mut high, chunk);
        }
        ordered &= include(&mut low, &mut high, rest);
        let mut ends = (f64::INFINITY, f64::NEG_INFINITY);
        for (low, high) in low.into_iter().zip(high) {
            ends = (ends.0.min(low.into()), ends.1.max(high.into()));
        }
        // Infinities are an end; a NaN is none.
        (ordered && ends.0.is_finite() && ends.1.is_finite()).then_some(ends)
    }
}

/// Widens each strand by its value, and says whether none of the values is NaN.
#[inline(always)]
#[expect(clippy::eq_op, reason = "NaN is what does not equal itself")]
fn include<F: Float>(low: &mut [F; STRANDS], high: &mut [F; STRANDS], values: &[F]) -> bool {
    let mut ordered = true;
    for ((low, high), &value) in low.iter_mut().zip(high).zip(values) {
        *low = if value < *low { value } else { *low };
        *high = if value > *high { value } else { *high };
        ordered &= value == value;
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::InstructionSet;

    #[test]
    fn both_ends_are_found_wherever_they_stand() {
        for set in InstructionSet::available() {
            for len in [1, 2, STRANDS, STRANDS + 1, 3 * STRANDS + 5] {
                for place in 0..len {
                    let mut values = vec![1.0_f32; len];
                    values[place] = -7.0;
                    values[(place + 1) % len] += 2.0;
                    let largest = if len == 1 { -5.0 } else { 3.0 };
                    let smallest = if len == 1 { -5.0 } else { -7.0 };
                    assert_eq!(set.run(FiniteEnds(&values)), Some((smallest, largest)), "{place}");
                    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                        values[place] = odd;
                        assert_eq!(set.run(FiniteEnds(&values)), None, "{odd} at {place}");
                    }
                }
            }
            assert_eq!(set.run(FiniteEnds::<f64>(&[])), None);
        }
    }
}
