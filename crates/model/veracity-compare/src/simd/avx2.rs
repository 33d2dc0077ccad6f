//! Eight lanes in two registers.
#![expect(unsafe_code, reason = "vector instructions")]
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use std::arch::x86_64::{
    __m256d, __m256i, _CMP_LT_OQ, _mm_loadu_ps, _mm256_add_pd, _mm256_andnot_pd,
    _mm256_castpd_si256, _mm256_castsi256_ps, _mm256_cmp_pd, _mm256_cmpgt_epi32, _mm256_cvtps_pd,
    _mm256_div_pd, _mm256_loadu_pd, _mm256_loadu_si256, _mm256_max_pd, _mm256_min_pd,
    _mm256_movemask_pd, _mm256_movemask_ps, _mm256_mul_pd, _mm256_set1_epi32, _mm256_set1_pd,
    _mm256_setzero_si256, _mm256_storeu_pd, _mm256_storeu_si256, _mm256_sub_epi64, _mm256_sub_pd,
};

use super::{Job, Simd};
use crate::plan::LANES;

/// Proof that AVX2, `lzcnt` and `popcnt` can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    /// The proof, if the machine has it.
    pub(super) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        found.then_some(Self(()))
    }

    /// Runs a job compiled for AVX2.
    pub(super) fn run<J: Job>(self, job: J) -> J::Output {
        // SAFETY: `self` exists, so `detect` found every feature that `enabled` enables.
        unsafe { enabled(self, job) }
    }
}

#[target_feature(enable = "avx2,lzcnt,popcnt")]
fn enabled<J: Job>(simd: Avx2, job: J) -> J::Output {
    job.run(simd)
}

macro_rules! instructions {
    ($($name:ident = $instruction:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes {
                // SAFETY: `self` is the proof that AVX2 exists.
                unsafe { [$instruction(left[0], right[0]), $instruction(left[1], right[1])] }
            }
        )*
    };
}

impl Simd for Avx2 {
    type Lanes = [__m256d; 2];
    type Counts = [__m256i; 2];

    #[inline(always)]
    fn splat(self, value: f64) -> Self::Lanes {
        // SAFETY: `self` is the proof that AVX2 exists.
        unsafe { [_mm256_set1_pd(value); 2] }
    }

    #[inline(always)]
    fn load(self, values: &[f64; LANES]) -> Self::Lanes {
        // SAFETY: as above, and the array holds the twice four values that are read.
        unsafe { [_mm256_loadu_pd(values.as_ptr()), _mm256_loadu_pd(values.as_ptr().add(4))] }
    }

    #[inline(always)]
    fn widen(self, values: &[f32; LANES]) -> Self::Lanes {
        let start = values.as_ptr();
        // SAFETY: as above, and the array holds the twice four values that are read.
        unsafe {
            [_mm256_cvtps_pd(_mm_loadu_ps(start)), _mm256_cvtps_pd(_mm_loadu_ps(start.add(4)))]
        }
    }

    #[inline(always)]
    fn store(self, lanes: Self::Lanes) -> [f64; LANES] {
        let mut values = [0.0; LANES];
        // SAFETY: as above, and the array has room for the twice four values that are written.
        unsafe {
            _mm256_storeu_pd(values.as_mut_ptr(), lanes[0]);
            _mm256_storeu_pd(values.as_mut_ptr().add(4), lanes[1]);
        }
        values
    }

    instructions! {
        add = _mm256_add_pd;
        sub = _mm256_sub_pd;
        mul = _mm256_mul_pd;
        div = _mm256_div_pd;
        min = _mm256_min_pd;
        max = _mm256_max_pd;
    }

    #[inline(always)]
    fn abs(self, lanes: Self::Lanes) -> Self::Lanes {
        // SAFETY: `self` is the proof that AVX2 exists.
        unsafe {
            let sign = _mm256_set1_pd(-0.0);
            [_mm256_andnot_pd(sign, lanes[0]), _mm256_andnot_pd(sign, lanes[1])]
        }
    }

    #[inline(always)]
    fn less(self, left: Self::Lanes, right: Self::Lanes) -> u8 {
        // SAFETY: `self` is the proof that AVX2 exists.
        let [low, high] = unsafe {
            [
                _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(left[0], right[0])),
                _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_LT_OQ>(left[1], right[1])),
            ]
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "each half is a mask of four bits"
        )]
        {
            (low | high << 4) as u8
        }
    }

    #[inline(always)]
    fn above(self, values: &[u32; 2 * LANES], bound: u32) -> u16 {
        let start = values.as_ptr();
        // SAFETY: as above, and the array holds the twice eight values that are read.
        let [low, high] = unsafe {
            let bound = _mm256_set1_epi32(bound.cast_signed());
            let low = _mm256_cmpgt_epi32(_mm256_loadu_si256(start.cast()), bound);
            let high = _mm256_cmpgt_epi32(_mm256_loadu_si256(start.add(8).cast()), bound);
            [
                _mm256_movemask_ps(_mm256_castsi256_ps(low)),
                _mm256_movemask_ps(_mm256_castsi256_ps(high)),
            ]
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "each half is a mask of eight bits"
        )]
        {
            (low | high << 8) as u16
        }
    }

    #[inline(always)]
    fn no_counts(self) -> Self::Counts {
        // SAFETY: `self` is the proof that AVX2 exists.
        unsafe { [_mm256_setzero_si256(); 2] }
    }

    #[inline(always)]
    fn count_less(
        self,
        counts: Self::Counts,
        left: Self::Lanes,
        right: Self::Lanes,
    ) -> Self::Counts {
        // SAFETY: `self` is the proof that AVX2 exists. A lane that is true is -1.
        unsafe {
            let low = _mm256_cmp_pd::<_CMP_LT_OQ>(left[0], right[0]);
            let high = _mm256_cmp_pd::<_CMP_LT_OQ>(left[1], right[1]);
            [
                _mm256_sub_epi64(counts[0], _mm256_castpd_si256(low)),
                _mm256_sub_epi64(counts[1], _mm256_castpd_si256(high)),
            ]
        }
    }

    #[inline(always)]
    fn total(self, counts: Self::Counts) -> u64 {
        let mut lanes = [0_u64; LANES];
        // SAFETY: as above, and the array has room for the twice four counts that are written.
        unsafe {
            _mm256_storeu_si256(lanes.as_mut_ptr().cast(), counts[0]);
            _mm256_storeu_si256(lanes.as_mut_ptr().add(4).cast(), counts[1]);
        }
        lanes.iter().sum()
    }
}
