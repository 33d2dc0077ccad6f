//! Unpleasant values for the border of a window, in the shapes that are really there.

use veracity_tensor::{DType, Tensor};

use super::random::Random;
use super::values::drawn;
use crate::Class;

/// A kind of values that is put on the border of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Adverse {
    /// Around 0, of both signs.
    Normal,
    /// Of both signs and very different sizes.
    Wide,
    /// All the same.
    Equal,
    /// Zeros of both signs and numbers near the smallest.
    Tiny,
    /// NaN, infinities and the largest numbers.
    Special,
}

impl Adverse {
    /// The kinds that a class is held to. Passes that only promise to be right in real numbers may
    /// round, overflow and treat NaN in another way.
    pub(super) fn for_class(class: Class) -> &'static [Self] {
        match class {
            Class::ExactBits => &[Self::Normal, Self::Wide, Self::Equal, Self::Tiny, Self::Special],
            Class::ExactReal => &[Self::Normal, Self::Wide, Self::Equal],
            Class::Approximate => &[Self::Normal, Self::Wide],
            Class::ChangesComputation => &[],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Normal => "border normal",
            Self::Wide => "border wide",
            Self::Equal => "border all equal",
            Self::Tiny => "border tiny",
            Self::Special => "border special",
        }
    }

    /// A value like the real one. Integers and bools are indices, sizes and masks: they stay.
    pub(super) fn like(self, real: &Tensor, name: &str, seed: u64) -> Tensor {
        let dtype = real.dtype();
        if !dtype.is_float() {
            return real.clone();
        }
        let mut random = Random::new(seed, &format!("{}/{name}", self.name()));
        let level = random.normal();
        let (least, most) = range(dtype);
        // Whether half precision overflows depends on where the engine rounds.
        let most = if matches!(dtype, DType::F16 | DType::BF16) { 1.0 } else { most };
        let tiny = [0.0, -0.0, least, -least, least * 64.0, 1e-3, -1e-3, 1.0];
        let special =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, most, -most, 0.0, -0.0, 1.0, -1.0, least];
        let high = if dtype == DType::F16 { 3 } else { 10 };
        let made = drawn(dtype, real.shape(), |at| match self {
            Self::Normal => random.normal(),
            Self::Wide => random.wide(-10, high),
            Self::Equal => level,
            Self::Tiny => tiny[at % tiny.len()],
            Self::Special => special[at % special.len()],
        });
        made.unwrap_or_else(|| real.clone())
    }
}

/// The smallest number above 0 and the largest one.
fn range(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F16 => (2_f64.powi(-24), 65504.0),
        DType::BF16 => (2_f64.powi(-133), 3.389_531_389_251_535_5e38),
        DType::F32 => (f64::from(f32::from_bits(1)), f64::from(f32::MAX)),
        _ => (f64::from_bits(1), f64::MAX),
    }
}
