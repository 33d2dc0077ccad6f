//! Multiplies the channels of a weight, each by a factor of its own, in float64 and rounded once.
//!
//! Works on the bytes of the file as they lie there, aligned or not, and writes each element once:
//! this is where fusing costs time in a model of a hundred megabytes. What would overflow, or
//! shrink a channel so far that its elements lose digits, is refused.

use half::{bf16, f16};
use veracity_onnx::Weight;
use veracity_tensor::{AlignedBytes, DType};

use super::real::Real;

/// Where the channels of a weight lie, row-major: `blocks` times `channels` times `inner` elements.
/// Blocks belong to `groups` of equal size, each with channels of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) blocks: usize,
    pub(super) channels: usize,
    pub(super) inner: usize,
    pub(super) groups: usize,
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

/// Weights from this size on are worth a thread: most of their time goes into asking for memory.
const LARGE_BYTES: usize = 1 << 20;
const MOST_THREADS: usize = 4;

fn every_block<R: Real>(
    bytes: &[u8],
    layout: Layout,
    factors: &[f64],
) -> Result<AlignedBytes, String> {
    let mut scaled = AlignedBytes::zeroed(bytes.len());
    if bytes.is_empty() {
        return Ok(scaled);
    }
    let threads = if bytes.len() < LARGE_BYTES {
        1
    } else {
        std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS)
    };
    let units = bytes.len() / layout.unit::<R>();
    let share = units.div_ceil(threads);
    let size = share * layout.unit::<R>();
    let mut parts = scaled.chunks_mut(size).zip(bytes.chunks(size)).enumerate();
    let own = parts.next();
    let work = |(part, (into, from)): (usize, (&mut [u8], &[u8]))| {
        some_units::<R>(into, from, part * share, layout, factors)
    };
    let found =
        std::thread::scope(|scope| {
            let others: Vec<_> = parts.map(|part| scope.spawn(|| work(part))).collect();
            let mut found: Vec<Vec<Range<R>>> = own.into_iter().map(work).collect();
            // A thread that panicked takes this one along.
            found.extend(others.into_iter().map(|other| {
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }));
            found
        });
    for (channel, factor) in factors.iter().enumerate() {
        let mut range = Range::<R>::default();
        for part in &found {
            range.take_in(part[channel]);
        }
        range.check(*factor)?;
    }
    Ok(scaled)
}

impl Layout {
    /// Bytes of the smallest piece that is worked on at once: a channel of a block, or a block of
    /// channels with one element each.
    fn unit<R: Real>(&self) -> usize {
        R::SIZE * if self.inner == 1 { self.channels } else { self.inner }
    }

    /// The first channel of a block.
    fn first_channel(&self, block: usize) -> usize {
        block / (self.blocks / self.groups) * self.channels
    }
}

/// Works on consecutive units. Gives the range of each channel, as far as it was seen.
fn some_units<R: Real>(
    into: &mut [u8],
    from: &[u8],
    first_unit: usize,
    layout: Layout,
    factors: &[f64],
) -> Vec<Range<R>> {
    let mut ranges = vec![Range::<R>::default(); factors.len()];
    let unit = layout.unit::<R>();
    let pairs = into.chunks_exact_mut(unit).zip(from.chunks_exact(unit));
    for (unit, (into, from)) in (first_unit..).zip(pairs) {
        if layout.inner == 1 {
            let channels = layout.first_channel(unit)..layout.first_channel(unit) + layout.channels;
            columns(into, from, &factors[channels.clone()], &mut ranges[channels]);
        } else {
            let (block, within) = (unit / layout.channels, unit % layout.channels);
            let channel = layout.first_channel(block) + within;
            ranges[channel].take_in(row_of(into, from, factors[channel]));
        }
    }
    ranges
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
    for (into, from) in R::elements_mut(into).iter_mut().zip(R::elements(from)) {
        range.take_in(element::<R>(into, *from, factor));
    }
    range
}

/// One element of each channel.
fn columns<R: Real>(into: &mut [u8], from: &[u8], factors: &[f64], ranges: &mut [Range<R>]) {
    let pairs = R::elements_mut(into).iter_mut().zip(R::elements(from));
    for (((into, from), factor), range) in pairs.zip(factors).zip(ranges) {
        range.take_in(element::<R>(into, *from, *factor));
    }
}

#[inline]
fn element<R: Real>(into: &mut R::Bytes, from: R::Bytes, factor: f64) -> Range<R> {
    let before = R::read(from);
    let after = R::rounded(before.widened() * factor);
    *into = after.write();
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
    fn large_weights_are_shared_between_threads() {
        let (groups, channels, inner) = (2, 3, 7);
        for (blocks, inner) in [(40_000, inner), (400_000, 1), (2, 200_000)] {
            let layout = Layout { blocks, channels, inner, groups };
            let factors: Vec<f64> = (1..=6).map(f64::from).collect();
            let count = blocks * channels * inner;
            let found = scaled(&weight(DType::F64, &[count], &vec![1.0; count]), layout, &factors);
            let found = found.unwrap().floats().unwrap();
            for (index, found) in found.into_iter().enumerate() {
                let (block, within) = (index / inner / channels, index / inner % channels);
                let channel = block / (blocks / groups) * channels + within;
                assert_eq!(found.to_bits(), factors[channel].to_bits(), "{index} of {layout:?}");
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
    }
}
