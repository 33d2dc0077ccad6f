//! Float types as the bytes of a file, widened to float64 and rounded from it.

use half::{bf16, f16};

/// A float type as bytes. Magnitudes are bits without the sign, which order like the numbers.
pub(super) trait Real: Copy {
    type Bits: Copy + Ord + Default + Send;
    type Bytes: Copy + AsRef<[u8]>;
    const SIZE: usize;
    const SMALLEST_NORMAL: Self::Bits;
    const INFINITE: Self::Bits;

    /// Bytes as elements; what is left at the end is left out.
    fn elements(bytes: &[u8]) -> &[Self::Bytes];
    /// The same, to write to.
    fn elements_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];
    fn read(bytes: Self::Bytes) -> Self;
    fn write(self) -> Self::Bytes;
    fn widened(self) -> f64;
    fn rounded(value: f64) -> Self;
    fn magnitude(self) -> Self::Bits;
}

macro_rules! real {
    ($type:ty, $bits:ty, $size:literal, $rounded:expr) => {
        impl Real for $type {
            type Bits = $bits;
            type Bytes = [u8; $size];
            const SIZE: usize = $size;
            const SMALLEST_NORMAL: $bits = <$type>::MIN_POSITIVE.to_bits();
            const INFINITE: $bits = <$type>::INFINITY.to_bits();

            #[inline]
            fn elements(bytes: &[u8]) -> &[[u8; $size]] {
                bytes.as_chunks().0
            }

            #[inline]
            fn elements_mut(bytes: &mut [u8]) -> &mut [[u8; $size]] {
                bytes.as_chunks_mut().0
            }

            #[inline]
            fn read(bytes: [u8; $size]) -> Self {
                Self::from_le_bytes(bytes)
            }

            #[inline]
            fn write(self) -> [u8; $size] {
                self.to_le_bytes()
            }

            #[inline]
            fn widened(self) -> f64 {
                f64::from(self)
            }

            #[inline]
            fn rounded(value: f64) -> Self {
                $rounded(value)
            }

            #[inline]
            fn magnitude(self) -> $bits {
                self.to_bits() & (<$bits>::MAX >> 1)
            }
        }
    };
}

real!(f32, u32, 4, narrowed);
real!(f64, u64, 8, std::convert::identity);
real!(f16, u16, 2, |value| f16::from_f32(odd(value)));
real!(bf16, u16, 2, |value| bf16::from_f32(odd(value)));

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "rounding is the purpose")]
fn narrowed(value: f64) -> f32 {
    value as f32
}

/// The float32 that rounds to the same half as the float64: where it is not the same number, the
/// neighbour with an odd last bit, so that rounding again cannot meet a tie that was none.
fn odd(value: f64) -> f32 {
    let near = narrowed(value);
    let bits = near.to_bits();
    let same = f64::from(near).to_bits() == value.to_bits();
    if same || value.is_nan() || bits & 1 == 1 {
        near
    } else if f64::from(near).abs() > value.abs() {
        f32::from_bits(bits - 1)
    } else {
        f32::from_bits(bits + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_between_two_numbers_is_told_from_a_tie() {
        assert_eq!(odd(f64::MAX).to_bits(), f32::MAX.to_bits());
        assert_eq!(odd(-1.5).to_bits(), (-1.5_f32).to_bits());
        let above = 1.0 + 2.0_f64.powi(-40);
        assert!(odd(above) > 1.0 && odd(-above) < -1.0);
        assert!(odd(1.0 - 2.0_f64.powi(-40)) < 1.0);
        assert!(odd(f64::NAN).is_nan());
    }
}
