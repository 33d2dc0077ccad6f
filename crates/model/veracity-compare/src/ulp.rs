//! Distances in units in the last place: how many numbers of the dtype lie between two.
//!
//! The bits of a float, read as sign and magnitude, count the numbers of its type in order; the
//! distance is the difference of two such counts. `-0` and `0` are the same number. Pairs that
//! are not finite have no distance.
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use veracity_results::ULP_BIN_COUNT;
use veracity_tensor::DType;

use crate::pairs::{Plain, Tile, elements};
use crate::simd::{InstructionSet, Job, Simd};

/// Stands for a pair that has no distance; above every bin.
const NO_BIN: u8 = u8::MAX;

/// Neighbours go to different tables: a bin that is hit by most pairs would otherwise make each
/// count wait for the one before.
const TABLES: usize = 8;

/// A count for every value that a bin can have, so that no index needs a check.
type Table = [u64; 256];

/// The largest distance seen and, if asked for, how often each power of two occurred.
pub(crate) struct UlpTally {
    max: u64,
    /// Room for the bins of a tile; empty when nobody asked for the histogram.
    tile_bins: Vec<u8>,
    counts: [Table; TABLES],
}

impl UlpTally {
    /// Nothing seen yet; `tile` is the largest tile that will come.
    pub(crate) fn new(tile: usize, histogram: bool) -> Self {
        let tile_bins = vec![0; if histogram { tile } else { 0 }];
        Self { max: 0, tile_bins, counts: [[0; 256]; TABLES] }
    }

    /// Adds the pairs of a tile.
    pub(crate) fn add_tile(&mut self, set: InstructionSet, tile: &Tile<'_>) {
        match tile.dtype {
            DType::F16 => self.add::<u16>(set, tile, 0x7c00),
            DType::BF16 => self.add::<u16>(set, tile, 0x7f80),
            DType::F32 => self.add::<u32>(set, tile, 0x7f80_0000),
            DType::F64 => self.add::<u64>(set, tile, 0x7ff0_0000_0000_0000),
            _ => {}
        }
    }

    /// Adds a tile of `len` finite pairs both sides of which are the same.
    pub(crate) fn add_same(&mut self, tile: &Tile<'_>, len: usize) {
        if !self.tile_bins.is_empty() && tile.dtype.is_float() {
            self.counts[0][0] += len as u64;
        }
    }

    fn add<B: FloatBits>(&mut self, set: InstructionSet, tile: &Tile<'_>, infinity: B) {
        let (reference, candidate) = (elements::<B>(tile.reference), elements(tile.candidate));
        let max = if self.tile_bins.is_empty() {
            set.run(LargestDistance { reference, candidate, infinity })
        } else {
            let bins = &mut self.tile_bins[..reference.len()];
            let max = set.run(FillBins { reference, candidate, infinity, bins });
            count(&self.tile_bins[..reference.len()], &mut self.counts);
            max
        };
        self.max = self.max.max(max);
    }

    /// Adds what another tally saw.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.max = self.max.max(other.max);
        for (into, from) in self.counts.iter_mut().flatten().zip(other.counts.iter().flatten()) {
            *into += from;
        }
    }

    /// The largest distance.
    pub(crate) fn max(&self) -> u64 {
        self.max
    }

    /// Counts by power of two, without empty bins at the end.
    pub(crate) fn histogram(&self) -> Vec<u64> {
        let total = |bin: usize| self.counts.iter().map(|table| table[bin]).sum();
        let mut bins: Vec<u64> = (0..ULP_BIN_COUNT).map(total).collect();
        let used = bins.iter().rposition(|&count| count > 0).map_or(0, |last| last + 1);
        bins.truncate(used);
        bins
    }
}

fn count(bins: &[u8], counts: &mut [Table; TABLES]) {
    let (chunks, rest) = bins.as_chunks::<TABLES>();
    for chunk in chunks {
        for (table, &bin) in counts.iter_mut().zip(chunk) {
            table[usize::from(bin)] += 1;
        }
    }
    for &bin in rest {
        counts[0][usize::from(bin)] += 1;
    }
}

/// The bits of a float.
trait FloatBits: Plain + Ord + Default + Into<u64> {
    /// Without the sign.
    fn magnitude(self) -> Self;
    /// Numbers between two finite floats.
    fn distance(self, other: Self) -> Self;
    /// Bin of a distance: 0 for 0, else one more than its exponent.
    fn bin(self) -> u8;
}

macro_rules! float_bits {
    ($($bits:ident $signed:ident),*) => {
        $(
            impl FloatBits for $bits {
                #[inline(always)]
                fn magnitude(self) -> Self {
                    self & (Self::MAX >> 1)
                }

                #[inline(always)]
                fn distance(self, other: Self) -> Self {
                    let rank = |bits: Self| {
                        let magnitude = bits.magnitude().cast_signed();
                        if bits.cast_signed() < 0 { -magnitude } else { magnitude }
                    };
                    rank(self).abs_diff(rank(other))
                }

                #[inline(always)]
                #[expect(clippy::cast_possible_truncation, reason = "at most 64")]
                fn bin(self) -> u8 {
                    (Self::BITS - self.leading_zeros()) as u8
                }
            }
        )*
    };
}
float_bits!(u16 i16, u32 i32, u64 i64);

/// The distance of a pair, 0 if it has none, and whether it has one.
#[inline(always)]
fn distance<B: FloatBits>(reference: B, candidate: B, infinity: B) -> (B, bool) {
    let finite = (reference.magnitude() < infinity) & (candidate.magnitude() < infinity);
    let distance = reference.distance(candidate);
    (if finite { distance } else { B::default() }, finite)
}

struct LargestDistance<'a, B> {
    reference: &'a [B],
    candidate: &'a [B],
    infinity: B,
}

impl<B: FloatBits> Job for LargestDistance<'_, B> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> u64 {
        let mut max = B::default();
        for (&reference, &candidate) in self.reference.iter().zip(self.candidate) {
            max = max.max(distance(reference, candidate, self.infinity).0);
        }
        max.into()
    }
}

/// Fills in the bin of every pair and finds the largest distance.
struct FillBins<'a, B> {
    reference: &'a [B],
    candidate: &'a [B],
    infinity: B,
    bins: &'a mut [u8],
}

impl<B: FloatBits> Job for FillBins<'_, B> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) -> u64 {
        let mut max = B::default();
        let pairs = self.reference.iter().zip(self.candidate);
        for (bin, (&reference, &candidate)) in self.bins.iter_mut().zip(pairs) {
            let (distance, finite) = distance(reference, candidate, self.infinity);
            max = max.max(distance);
            *bin = if finite { distance.bin() } else { NO_BIN };
        }
        max.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_counts_the_numbers_between() {
        let bits = f32::to_bits;
        for (left, right, expected) in [
            (1.0, 1.0, 0),
            (0.0, -0.0, 0),
            (1.0, f32::from_bits(bits(1.0) + 3), 3),
            (f32::from_bits(1), -f32::from_bits(1), 2),
            (1.0, 2.0, 1 << 23),
            (f32::MIN, f32::MAX, 2 * bits(f32::MAX)),
        ] {
            assert_eq!(bits(left).distance(bits(right)), expected, "{left} {right}");
        }
        assert_eq!(f64::MIN.to_bits().distance(f64::MAX.to_bits()), 2 * f64::MAX.to_bits());
    }

    #[test]
    fn a_bin_holds_one_power_of_two() {
        for (distance, bin) in [(0_u32, 0), (1, 1), (2, 2), (3, 2), (4, 3), (u32::MAX, 32)] {
            assert_eq!(distance.bin(), bin, "{distance}");
        }
        assert_eq!(u64::MAX.bin(), 64);
    }
}
