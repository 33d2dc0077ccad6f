//! Eight float64 lanes on every instruction set, with the same bits on all of them.
//!
//! A [`Job`] is written once against [`Simd`] and compiled for each set; [`InstructionSet::run`]
//! picks one at run time. The operations are those of IEEE 754 without fusing, so the set never
//! shows in a result. A `Simd` value is the proof that its instructions exist here.

use crate::plan::LANES;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

/// Instructions that a job can be compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstructionSet {
    /// What every machine has.
    Portable(portable::Portable),
    /// x86-64 with AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2(avx2::Avx2),
    /// x86-64 with AVX-512 as servers and recent desktops have it.
    #[cfg(target_arch = "x86_64")]
    Avx512(avx512::Avx512),
}

impl InstructionSet {
    /// Every set that this machine has, best first.
    pub(crate) fn available() -> impl Iterator<Item = Self> {
        #[cfg(target_arch = "x86_64")]
        let special =
            [avx512::Avx512::detect().map(Self::Avx512), avx2::Avx2::detect().map(Self::Avx2)];
        #[cfg(not(target_arch = "x86_64"))]
        let special: [Option<Self>; 0] = [];
        special.into_iter().flatten().chain([Self::Portable(portable::Portable)])
    }

    /// The best set that this machine has.
    pub(crate) fn best() -> Self {
        Self::available().next().unwrap_or(Self::Portable(portable::Portable))
    }

    /// Runs a job with these instructions.
    pub(crate) fn run<J: Job>(self, job: J) -> J::Output {
        match self {
            Self::Portable(simd) => job.run(simd),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(simd) => simd.run(job),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512(simd) => simd.run(job),
        }
    }
}

/// Work that is compiled once per instruction set. `run` must be `#[inline(always)]`, or it is
/// compiled without the instructions.
pub(crate) trait Job {
    /// What the work gives.
    type Output;

    /// Does the work.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Eight float64 lanes.
pub(crate) trait Simd: Copy {
    /// The registers that hold eight float64.
    type Lanes: Copy;
    /// The registers that hold a count for each lane.
    type Counts: Copy;

    /// The same value in every lane.
    fn splat(self, value: f64) -> Self::Lanes;
    /// Reads eight float64.
    fn load(self, values: &[f64; LANES]) -> Self::Lanes;
    /// Reads eight float32 as float64.
    fn widen(self, values: &[f32; LANES]) -> Self::Lanes;
    /// The lanes as memory.
    fn store(self, lanes: Self::Lanes) -> [f64; LANES];
    /// `left + right`
    fn add(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes;
    /// `left - right`
    fn sub(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes;
    /// `left * right`
    fn mul(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes;
    /// `left / right`
    fn div(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes;
    /// `if left < right { left } else { right }`
    fn min(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes;
    /// `if left > right { left } else { right }`
    fn max(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes;
    /// Clears the sign.
    fn abs(self, lanes: Self::Lanes) -> Self::Lanes;
    /// A bit per lane: `left < right`, false for NaN.
    fn less(self, left: Self::Lanes, right: Self::Lanes) -> u8;
    /// A bit per value: `value > bound`. Values and bound are below 2^31.
    fn above(self, values: &[u32; 2 * LANES], bound: u32) -> u16;
    /// A count of 0 for each lane.
    fn no_counts(self) -> Self::Counts;
    /// Counts the lanes in which `left < right`.
    fn count_less(
        self,
        counts: Self::Counts,
        left: Self::Lanes,
        right: Self::Lanes,
    ) -> Self::Counts;
    /// The sum over the lanes.
    fn total(self, counts: Self::Counts) -> u64;
}

#[cfg(test)]
mod tests {
    use super::*;

    struct EveryOperation([f64; LANES], [f64; LANES]);

    impl Job for EveryOperation {
        type Output = (Vec<[u64; LANES]>, u8, u64, u16);

        #[expect(clippy::inline_always, reason = "see `Job`")]
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) -> Self::Output {
            let (left, right) = (simd.load(&self.0), simd.load(&self.1));
            #[expect(clippy::cast_possible_truncation, reason = "the rounding is not the point")]
            let single = self.0.map(|value| value as f32);
            let lanes = [
                simd.splat(self.0[3]),
                simd.widen(&single),
                simd.add(left, right),
                simd.sub(left, right),
                simd.mul(left, right),
                simd.div(left, right),
                simd.min(left, right),
                simd.max(left, right),
                simd.abs(left),
            ];
            let bits = |lanes| simd.store(lanes).map(f64::to_bits);
            let counts = simd.count_less(simd.no_counts(), left, right);
            let counts = simd.count_less(counts, right, left);
            let values = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 4, 9, 0x7fff_ffff, 4, 0, 5];
            (
                lanes.into_iter().map(bits).collect(),
                simd.less(left, right),
                simd.total(counts),
                simd.above(&values, 4),
            )
        }
    }

    #[test]
    fn every_instruction_set_gives_the_same_bits() {
        let left = [1.5, -0.0, f64::INFINITY, -2.25, 5e-324, f64::MAX, 0.1, -7.0];
        let right = [0.3, 0.0, 1.0, f64::NEG_INFINITY, 5e-324, f64::MAX, 0.2, 3.0];
        let expected =
            InstructionSet::Portable(portable::Portable).run(EveryOperation(left, right));
        assert_eq!((expected.1, expected.2), (0b1100_0000, 5));
        assert_eq!(expected.3, 0b1001_1001_1110_0000);
        for set in InstructionSet::available() {
            assert_eq!(set.run(EveryOperation(left, right)), expected, "{set:?}");
        }
    }
}
