//! Made-up input values.

use std::collections::BTreeMap;

use half::{bf16, f16};
use veracity_tensor::{DType, Element, Shape, Tensor};

use crate::runner::Runner;

/// A tensor of made-up values that depends on `seed` alone.
///
/// Floats are normally distributed with mean 0 and deviation 1, as observations usually are.
/// Integers and bools are 0 or 1: integer inputs are often indices, and a larger one could lie
/// outside of the table it selects from.
pub fn mock_tensor(dtype: DType, shape: &Shape, seed: u64) -> Tensor {
    let mut random = SplitMix(seed);
    let mut tensor = Tensor::zeros(dtype, shape.clone());
    match dtype {
        DType::F16 => fill(&mut tensor, || f16::from_f64(random.normal())),
        DType::BF16 => fill(&mut tensor, || bf16::from_f64(random.normal())),
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float32 of a random value is wanted"
        )]
        DType::F32 => fill(&mut tensor, || random.normal() as f32),
        DType::F64 => fill(&mut tensor, || random.normal()),
        // Little and big endian machines differ in which byte is the lowest.
        _ => {
            let lowest = if cfg!(target_endian = "little") { 0 } else { dtype.size() - 1 };
            for element in tensor.bytes_mut().chunks_exact_mut(dtype.size()) {
                element[lowest] = u8::from(random.next() & 1 == 1);
            }
        }
    }
    tensor
}

impl Runner {
    /// Made-up values for every pipeline input, by `node/port`.
    pub fn mock_inputs(&self, seed: u64) -> BTreeMap<String, Tensor> {
        let inputs = self.inputs().iter().enumerate();
        inputs
            .map(|(index, port)| {
                // Inputs of one step must differ from each other, and steps from each other.
                let seed = seed.wrapping_mul(0x1_0000).wrapping_add(index as u64);
                (port.key.to_string(), mock_tensor(port.dtype, &port.shape, seed))
            })
            .collect()
    }
}

fn fill<E: Element>(tensor: &mut Tensor, mut next: impl FnMut() -> E) {
    let elements = tensor.as_mut_slice::<E>().expect("the caller matched the dtype");
    for element in elements {
        *element = next();
    }
}

/// A small generator whose sequence is the same on every machine and in every release.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// In `(0, 1]`, so that its logarithm is finite.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a float64 exactly")]
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Normally distributed, by the method of Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_usable_values_that_depend_on_the_seed_alone() {
        for dtype in DType::ALL {
            let shape = Shape::from([4, 32]);
            let tensor = mock_tensor(dtype, &shape, 7);
            assert_eq!(tensor, mock_tensor(dtype, &shape, 7), "{dtype}");
            assert_ne!(tensor, mock_tensor(dtype, &shape, 8), "{dtype}");
        }
    }

    #[test]
    fn floats_are_spread_like_observations() {
        let tensor = mock_tensor(DType::F64, &Shape::from([10_000]), 1);
        let values = tensor.as_slice::<f64>().unwrap();
        let mean = values.iter().sum::<f64>() / 10_000.0;
        let variance = values.iter().map(|value| value * value).sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
