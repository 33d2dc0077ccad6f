//! Multiplies the channels of a weight, each by a factor of its own, in float64 and rounded once.
//!
//! Works on the bytes of the file as they lie there, aligned or not, and writes each element once:
//! this is where fusing costs time in a model of a hundred megabytes. What would overflow, or
//! shrink a channel so far that its elements lose digits, is refused.

use half::{bf16, f16};
use veracity_onnx::Weight;
use veracity_tensor::DType;

/// Where the channels of a weight lie, row-major: `blocks` times `channels` times `inner` elements.
/// Blocks belong to `groups` of equal size, each with channels of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) blocks: usize,
    pub(super) channels: usize,
    pub(super) inner: usize,
    pub(super) groups: usize,
}

/// A float type as bytes. Magnitudes are bits without the sign, which order like the numbers.
trait Real: Copy {
    type Bits: Copy + Ord + Default;
    type Bytes: for<'b> TryFrom<&'b [u8]> + AsRef<[u8]>;
    const SIZE: usize;
    const SMALLEST_NORMAL: Self::Bits;
    const INFINITE: Self::Bits;

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

/// The weight with each channel multiplied by its factor.
pub(super) fn scaled(weight: &Weight, layout: Layout, factors: &[f64]) -> Result<Weight, String> {
    let held;
    let bytes = if let Some(raw) = weight.raw() {
        &raw[..]
    } else {
        held = weight.tensor().ok_or("the elements of a weight cannot be read")?;
        held.bytes()
    };
    let Layout { blocks, channels, inner, groups } = layout;
    let count = blocks.checked_mul(channels).and_then(|count| count.checked_mul(inner));
    if count != Some(weight.elements()) || groups == 0 || blocks % groups != 0 {
        return Err("the shape of a weight does not fit its channels".to_owned());
    }
    if factors.len() != channels * groups {
        return Err(format!("{} factors for {} channels", factors.len(), channels * groups));
    }
    let dtype = weight.dtype().ok_or("the elements of a weight are not of a float type")?;
    let scaled = match dtype {
        DType::F32 => every_block::<f32>(bytes, layout, factors),
        DType::F64 => every_block::<f64>(bytes, layout, factors),
        DType::F16 => every_block::<f16>(bytes, layout, factors),
        DType::BF16 => every_block::<bf16>(bytes, layout, factors),
        _ => Err("the elements of a weight are not of a float type".to_owned()),
    }?;
    Weight::from_raw(dtype, &weight.dims(), scaled)
        .ok_or_else(|| "the shape of a weight is too large".to_owned())
}

/// A vector, each element rounded once.
pub(super) fn rounded(dtype: DType, elements: &[f64]) -> Result<Weight, String> {
    let bytes = match dtype {
        DType::F32 => vector::<f32>(elements),
        DType::F64 => vector::<f64>(elements),
        DType::F16 => vector::<f16>(elements),
        DType::BF16 => vector::<bf16>(elements),
        _ => Err("a bias is not of a float type".to_owned()),
    }?;
    Weight::from_raw(dtype, &[elements.len()], bytes)
        .ok_or_else(|| "the shape of a bias is too large".to_owned())
}

fn vector<R: Real>(elements: &[f64]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(elements.len() * R::SIZE);
    for &element in elements {
        let one = R::rounded(element);
        if one.magnitude() >= R::INFINITE {
            return Err("the folded bias would not be finite".to_owned());
        }
        bytes.extend_from_slice(one.write().as_ref());
    }
    Ok(bytes)
}

fn every_block<R: Real>(bytes: &[u8], layout: Layout, factors: &[f64]) -> Result<Vec<u8>, String> {
    let Layout { blocks, channels, inner, groups } = layout;
    let mut scaled = vec![0_u8; bytes.len()];
    let mut ranges = vec![Range::<R>::default(); factors.len()];
    let row = channels * inner * R::SIZE;
    if row == 0 {
        return Ok(scaled);
    }
    for (block, (into, from)) in
        scaled.chunks_exact_mut(row).zip(bytes.chunks_exact(row)).enumerate()
    {
        let first = block / (blocks / groups) * channels;
        let (factors, ranges) =
            (&factors[first..first + channels], &mut ranges[first..first + channels]);
        if inner == 1 {
            columns(into, from, factors, ranges);
        } else {
            let rows = into.chunks_exact_mut(inner * R::SIZE);
            let rows = rows.zip(from.chunks_exact(inner * R::SIZE));
            for (((into, from), factor), range) in rows.zip(factors).zip(ranges) {
                range.take_in(row_of(into, from, *factor));
            }
        }
    }
    ranges.iter().zip(factors).try_for_each(|(range, factor)| range.check(*factor))?;
    Ok(scaled)
}

/// The largest magnitudes of a channel before and after.
#[derive(Clone, Copy)]
struct Range<R: Real> {
    before: R::Bits,
    after: R::Bits,
}

impl<R: Real> Default for Range<R> {
    fn default() -> Self {
        Self { before: R::Bits::default(), after: R::Bits::default() }
    }
}

impl<R: Real> Range<R> {
    fn take_in(&mut self, other: Self) {
        self.before = self.before.max(other.before);
        self.after = self.after.max(other.after);
    }

    fn check(&self, factor: f64) -> Result<(), String> {
        if self.after >= R::INFINITE {
            return Err("the folded weight would not be finite".to_owned());
        }
        // Below the smallest normal number digits are lost, relative to the whole channel.
        let exact = factor == 0.0 || self.before == R::Bits::default();
        if !exact && self.after < R::SMALLEST_NORMAL {
            return Err("the folded weight would be too small for its type".to_owned());
        }
        Ok(())
    }
}

/// Elements of one channel that lie side by side.
fn row_of<R: Real>(into: &mut [u8], from: &[u8], factor: f64) -> Range<R> {
    let mut range = Range::<R>::default();
    for (into, from) in into.chunks_exact_mut(R::SIZE).zip(from.chunks_exact(R::SIZE)) {
        range.take_in(element::<R>(into, from, factor));
    }
    range
}

/// One element of each channel.
fn columns<R: Real>(into: &mut [u8], from: &[u8], factors: &[f64], ranges: &mut [Range<R>]) {
    let pairs = into.chunks_exact_mut(R::SIZE).zip(from.chunks_exact(R::SIZE));
    for (((into, from), factor), range) in pairs.zip(factors).zip(ranges) {
        range.take_in(element::<R>(into, from, *factor));
    }
}

#[inline]
fn element<R: Real>(into: &mut [u8], from: &[u8], factor: f64) -> Range<R> {
    let Ok(bytes) = R::Bytes::try_from(from) else { return Range::default() };
    let before = R::read(bytes);
    let after = R::rounded(before.widened() * factor);
    into.copy_from_slice(after.write().as_ref());
    Range { before: before.magnitude(), after: after.magnitude() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Layout = Layout { blocks: 1, channels: 2, inner: 3, groups: 1 };

    fn weight(dtype: DType, dims: &[usize], elements: &[f64]) -> Weight {
        Weight::from_floats(dtype, dims, elements).unwrap()
    }

    #[test]
    fn each_channel_gets_its_factor_wherever_it_lies() {
        let elements = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
            for (layout, factors, expected) in [
                (PLAIN, vec![2.0, -1.0], [2.0, 4.0, 6.0, -4.0, -5.0, -6.0]),
                (
                    Layout { blocks: 3, inner: 1, ..PLAIN },
                    vec![2.0, -1.0],
                    [2.0, -2.0, 6.0, -4.0, 10.0, -6.0],
                ),
                (
                    Layout { blocks: 2, channels: 1, groups: 2, ..PLAIN },
                    vec![2.0, -1.0],
                    [2.0, 4.0, 6.0, -4.0, -5.0, -6.0],
                ),
            ] {
                let found = scaled(&weight(dtype, &[2, 3], &elements), layout, &factors).unwrap();
                assert_eq!(found.floats().unwrap(), expected, "{dtype} {layout:?}");
                assert_eq!((found.dtype(), found.dims()), (Some(dtype), vec![2, 3]));
            }
        }
    }

    #[test]
    fn what_does_not_fit_the_type_is_refused() {
        let ones = [1.0, 1.0, 1.0, 1e-3, 1e-3, 0.0];
        for (dtype, factor, reason) in [
            (DType::F16, 1e6, "not be finite"),
            (DType::F16, 1e-5, "too small"),
            (DType::F32, 1e39, "not be finite"),
            (DType::F32, 1e-40, "too small"),
            (DType::F32, 1e-60, "too small"),
            (DType::F64, f64::NAN, "not be finite"),
        ] {
            let found = scaled(&weight(dtype, &[2, 3], &ones), PLAIN, &[factor, factor]);
            assert!(found.as_ref().is_err_and(|why| why.contains(reason)), "{dtype} {found:?}");
        }
        let off = scaled(&weight(DType::F32, &[2, 3], &ones), PLAIN, &[0.0, 1.0]).unwrap();
        assert_eq!(off.floats().unwrap()[..3], [0.0; 3], "a factor of 0 turns a channel off");
        let other = Layout { channels: 3, ..PLAIN };
        assert!(scaled(&weight(DType::F32, &[2, 3], &ones), other, &[1.0; 3]).is_err());
        assert!(scaled(&weight(DType::F32, &[2, 3], &ones), PLAIN, &[1.0; 3]).is_err());
        assert!(rounded(DType::F16, &[1.0, 1e5]).is_err());
    }

    #[test]
    fn halves_are_rounded_once() {
        // Just above the middle between 1 and the next half: float32 alone would make it a tie.
        let value = 1.0 + 2.0_f64.powi(-11) + 2.0_f64.powi(-40);
        assert_eq!(
            rounded(DType::F16, &[value]).unwrap().floats().unwrap(),
            [1.0 + 2.0_f64.powi(-10)]
        );
        let value = 1.0 + 2.0_f64.powi(-8) + 2.0_f64.powi(-40);
        assert_eq!(
            rounded(DType::BF16, &[value]).unwrap().floats().unwrap(),
            [1.0 + 2.0_f64.powi(-7)]
        );
        assert_eq!(odd(f64::MAX).to_bits(), f32::MAX.to_bits());
    }
}
