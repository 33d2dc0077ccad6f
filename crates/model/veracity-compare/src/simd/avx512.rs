//! Eight lanes in one register.
#![expect(unsafe_code, reason = "vector instructions")]
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use std::arch::x86_64::{
    __m512d, __m512i, _CMP_LT_OQ, _mm256_loadu_ps, _mm512_abs_pd, _mm512_add_pd,
    _mm512_cmp_pd_mask, _mm512_cmpgt_epu32_mask, _mm512_cvtps_pd, _mm512_div_pd, _mm512_loadu_pd,
    _mm512_loadu_si512, _mm512_mask_add_epi64, _mm512_max_pd, _mm512_min_pd, _mm512_mul_pd,
    _mm512_reduce_add_epi64, _mm512_set1_epi32, _mm512_set1_epi64, _mm512_set1_pd,
    _mm512_setzero_si512, _mm512_storeu_pd, _mm512_sub_pd,
};

use super::{Job, Simd};
use crate::plan::LANES;

/// Proof that AVX-512 (F, BW, CD, DQ, VL) and `popcnt` can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx512(());

impl Avx512 {
    /// The proof, if the machine has it.
    pub(super) fn detect() -> Option<Self> {
        let found = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("popcnt");
        found.then_some(Self(()))
    }

    /// Runs a job compiled for AVX-512.
    pub(super) fn run<J: Job>(self, job: J) -> J::Output {
        // SAFETY: `self` exists, so `detect` found every feature that `enabled` enables.
        unsafe { enabled(self, job) }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,popcnt")]
fn enabled<J: Job>(simd: Avx512, job: J) -> J::Output {
    job.run(simd)
}

macro_rules! instructions {
    ($($name:ident = $instruction:ident;)*) => {
        $(
            #[inline(always)]
            fn $name(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes {
                // SAFETY: `self` is the proof that AVX-512 exists.
                unsafe { $instruction(left, right) }
            }
        )*
    };
}

impl Simd for Avx512 {
    type Lanes = __m512d;
    type Counts = __m512i;

    #[inline(always)]
    fn splat(self, value: f64) -> Self::Lanes {
        // SAFETY: `self` is the proof that AVX-512 exists.
        unsafe { _mm512_set1_pd(value) }
    }

    #[inline(always)]
    fn load(self, values: &[f64; LANES]) -> Self::Lanes {
        // SAFETY: as above, and the array holds the eight values that are read.
        unsafe { _mm512_loadu_pd(values.as_ptr()) }
    }

    #[inline(always)]
    fn widen(self, values: &[f32; LANES]) -> Self::Lanes {
        // SAFETY: as above, and the array holds the eight values that are read.
        unsafe { _mm512_cvtps_pd(_mm256_loadu_ps(values.as_ptr())) }
    }

    #[inline(always)]
    fn store(self, lanes: Self::Lanes) -> [f64; LANES] {
        let mut values = [0.0; LANES];
        // SAFETY: as above, and the array has room for the eight values that are written.
        unsafe { _mm512_storeu_pd(values.as_mut_ptr(), lanes) };
        values
    }

    instructions! {
        add = _mm512_add_pd;
        sub = _mm512_sub_pd;
        mul = _mm512_mul_pd;
        div = _mm512_div_pd;
        min = _mm512_min_pd;
        max = _mm512_max_pd;
    }

    #[inline(always)]
    fn abs(self, lanes: Self::Lanes) -> Self::Lanes {
        // SAFETY: `self` is the proof that AVX-512 exists.
        unsafe { _mm512_abs_pd(lanes) }
    }

    #[inline(always)]
    fn less(self, left: Self::Lanes, right: Self::Lanes) -> u8 {
        // SAFETY: `self` is the proof that AVX-512 exists.
        unsafe { _mm512_cmp_pd_mask::<_CMP_LT_OQ>(left, right) }
    }

    #[inline(always)]
    fn above(self, values: &[u32; 2 * LANES], bound: u32) -> u16 {
        // SAFETY: as above, and the array holds the sixteen values that are read.
        unsafe {
            let values = _mm512_loadu_si512(values.as_ptr().cast());
            _mm512_cmpgt_epu32_mask(values, _mm512_set1_epi32(bound.cast_signed()))
        }
    }

    #[inline(always)]
    fn no_counts(self) -> Self::Counts {
        // SAFETY: `self` is the proof that AVX-512 exists.
        unsafe { _mm512_setzero_si512() }
    }

    #[inline(always)]
    fn count_less(
        self,
        counts: Self::Counts,
        left: Self::Lanes,
        right: Self::Lanes,
    ) -> Self::Counts {
        // SAFETY: `self` is the proof that AVX-512 exists.
        unsafe {
            let mask = _mm512_cmp_pd_mask::<_CMP_LT_OQ>(left, right);
            _mm512_mask_add_epi64(counts, mask, counts, _mm512_set1_epi64(1))
        }
    }

    #[inline(always)]
    fn total(self, counts: Self::Counts) -> u64 {
        // SAFETY: `self` is the proof that AVX-512 exists.
        unsafe { _mm512_reduce_add_epi64(counts) }.cast_unsigned()
    }
}
