//! How much error an operator may bring in.

use veracity_tensor::DType;

/// What an operator may bring in: some units in the last place of each element and of what was added
/// up in it. The rule is in `elements.rs`.
///
/// On ResNet-50 with made-up weights the worst operator of ONNX Runtime brings in 10 units of its
/// largest value, so that 64 leave room for longer sums; a weight that is wrong by one part in a
/// thousand brings in hundreds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Units in the last place of the largest reference, for single and double precision.
    pub units: f64,
}

/// How many times fewer units half precision gets: sums are kept in single precision on both
/// sides and rounded once at the end, so that their length does not matter.
const HALF_PRECISION_SHARE: f64 = 8.0;

impl Default for Budget {
    fn default() -> Self {
        Self { units: 64.0 }
    }
}

impl Budget {
    /// The largest absolute error that passes, where values reach `scale`. Integers and bools must be
    /// equal.
    pub fn bound(self, dtype: DType, scale: f64) -> f64 {
        self.relative(dtype) * scale
    }

    /// The part of itself by which a number may be off.
    pub(crate) fn relative(self, dtype: DType) -> f64 {
        let units = match dtype {
            DType::F16 | DType::BF16 => self.units / HALF_PRECISION_SHARE,
            _ => self.units,
        };
        epsilon(dtype) * units
    }
}

/// Distance between 1 and the next number of a dtype; 0 for integers and bools.
pub(crate) fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F16 => f64::powi(2.0, -10),
        DType::BF16 => f64::powi(2.0, -7),
        _ => 0.0,
    }
}
