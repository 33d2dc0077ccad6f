//! The absolute errors of a tile.
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use crate::pairs::Values;
use crate::simd::{InstructionSet, Job, Simd};

/// Writes the absolute error of every pair into `room` and returns what was written: NaN where a
/// pair is not compared.
pub(crate) fn fill<'a>(set: InstructionSet, values: Values<'a>, room: &'a mut [f64]) -> &'a [f64] {
    match values {
        Values::Single(reference, candidate) => {
            let errors = &mut room[..reference.len()];
            set.run(SingleErrors { reference, candidate, errors });
            errors
        }
        Values::Double(reference, candidate) => {
            let errors = &mut room[..reference.len()];
            set.run(DoubleErrors { reference, candidate, errors });
            errors
        }
        Values::Integer(_, _, errors) => errors,
    }
}

struct SingleErrors<'a> {
    reference: &'a [f32],
    candidate: &'a [f32],
    errors: &'a mut [f64],
}

impl Job for SingleErrors<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let pairs = self.reference.iter().zip(self.candidate);
        for (error, (&reference, &candidate)) in self.errors.iter_mut().zip(pairs) {
            let difference = (f64::from(candidate) - f64::from(reference)).abs();
            // Two finite float32 are never infinitely far apart in float64.
            *error = if difference < f64::INFINITY { difference } else { f64::NAN };
        }
    }
}

struct DoubleErrors<'a> {
    reference: &'a [f64],
    candidate: &'a [f64],
    errors: &'a mut [f64],
}

impl Job for DoubleErrors<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _simd: S) {
        let pairs = self.reference.iter().zip(self.candidate);
        for (error, (&reference, &candidate)) in self.errors.iter_mut().zip(pairs) {
            let compared = reference.is_finite() & candidate.is_finite();
            let difference = (candidate - reference).abs();
            *error = if compared { difference } else { f64::NAN };
        }
    }
}
