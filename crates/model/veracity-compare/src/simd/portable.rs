//! Eight lanes as an array: the definition that the other sets must meet.
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use std::array::from_fn;

use super::Simd;
use crate::plan::LANES;

/// What every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portable;

macro_rules! lane_by_lane {
    ($($name:ident = $operation:expr;)*) => {
        $(
            #[inline(always)]
            fn $name(self, left: Self::Lanes, right: Self::Lanes) -> Self::Lanes {
                let operation: fn(f64, f64) -> f64 = $operation;
                from_fn(|lane| operation(left[lane], right[lane]))
            }
        )*
    };
}

impl Simd for Portable {
    type Lanes = [f64; LANES];
    type Counts = [u64; LANES];

    #[inline(always)]
    fn splat(self, value: f64) -> Self::Lanes {
        [value; LANES]
    }

    #[inline(always)]
    fn load(self, values: &[f64; LANES]) -> Self::Lanes {
        *values
    }

    #[inline(always)]
    fn widen(self, values: &[f32; LANES]) -> Self::Lanes {
        values.map(f64::from)
    }

    #[inline(always)]
    fn store(self, lanes: Self::Lanes) -> [f64; LANES] {
        lanes
    }

    lane_by_lane! {
        add = |left, right| left + right;
        sub = |left, right| left - right;
        mul = |left, right| left * right;
        div = |left, right| left / right;
        min = |left, right| if left < right { left } else { right };
        max = |left, right| if left > right { left } else { right };
    }

    #[inline(always)]
    fn abs(self, lanes: Self::Lanes) -> Self::Lanes {
        lanes.map(f64::abs)
    }

    #[inline(always)]
    fn less(self, left: Self::Lanes, right: Self::Lanes) -> u8 {
        let bit = |lane: usize| u8::from(left[lane] < right[lane]) << lane;
        (0..LANES).fold(0, |mask, lane| mask | bit(lane))
    }

    #[inline(always)]
    fn above(self, values: &[u32; 2 * LANES], bound: u32) -> u16 {
        let bit = |index: usize| u16::from(values[index] > bound) << index;
        (0..2 * LANES).fold(0, |mask, index| mask | bit(index))
    }

    #[inline(always)]
    fn no_counts(self) -> Self::Counts {
        [0; LANES]
    }

    #[inline(always)]
    fn count_less(
        self,
        counts: Self::Counts,
        left: Self::Lanes,
        right: Self::Lanes,
    ) -> Self::Counts {
        from_fn(|lane| counts[lane] + u64::from(left[lane] < right[lane]))
    }

    #[inline(always)]
    fn total(self, counts: Self::Counts) -> u64 {
        counts.iter().sum()
    }
}
