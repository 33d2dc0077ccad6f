//! Copies elements from where strides say.

use veracity_onnx::Weight;
use veracity_tensor::AlignedBytes;

use super::operand::{Operand, shape};

/// Side of the squares that elements are copied in when rows become columns: a square of elements
/// of 4 bytes fits into the first cache.
const SQUARE: usize = 64;

/// One axis of the result: its size, how far its elements are apart in the source and in the result.
#[derive(Clone, Copy, Debug)]
struct Axis {
    size: usize,
    from: isize,
    to: usize,
}

/// Distances between neighbours of a row-major tensor.
pub(super) fn strides(dims: &[usize]) -> Vec<isize> {
    let mut strides = vec![1_isize; dims.len()];
    for axis in (1..dims.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(dims[axis].max(1).cast_signed());
    }
    strides
}

/// Distances for an operand that is stretched to a shape; `None` when it does not fit.
pub(super) fn stretched_strides(from: &[usize], to: &[usize]) -> Option<Vec<isize>> {
    let missing = to.len().checked_sub(from.len())?;
    let own = strides(from);
    let stride = |(axis, &size): (usize, &usize)| {
        let Some(inner) = axis.checked_sub(missing) else { return Some(0) };
        match from[inner] {
            same if same == size => Some(own[inner]),
            1 => Some(0),
            _ => None,
        }
    };
    to.iter().enumerate().map(stride).collect()
}

/// The elements of a tensor of this shape, which stand at these distances in the source, from an
/// offset on.
pub(super) fn copied(
    source: &Operand<'_>,
    dims: &[usize],
    strides: &[isize],
    offset: usize,
) -> Result<AlignedBytes, String> {
    let mut result = AlignedBytes::zeroed(shape(dims)?.elements() * source.dtype.size());
    let axes = merged(dims, strides);
    if !dims.contains(&0) {
        let (from, to) = (source.bytes(), &mut result[..]);
        let done = match source.dtype.size() {
            1 => copy::<1>(from, to, &axes, offset),
            2 => copy::<2>(from, to, &axes, offset),
            4 => copy::<4>(from, to, &axes, offset),
            _ => copy::<8>(from, to, &axes, offset),
        };
        done.ok_or_else(|| "an element outside of a constant is asked for".to_owned())?;
    }
    Ok(result)
}

/// The same, as a weight.
pub(super) fn copied_weight(
    source: &Operand<'_>,
    dims: &[usize],
    strides: &[isize],
    offset: usize,
) -> Result<Weight, String> {
    Weight::from_raw(source.dtype, dims, copied(source, dims, strides, offset)?)
        .ok_or_else(|| format!("the elements do not fill {dims:?}"))
}

/// The axes without those of size 1, and with neighbours that can be walked as one put together.
fn merged(dims: &[usize], strides: &[isize]) -> Vec<Axis> {
    let mut axes: Vec<Axis> = Vec::with_capacity(dims.len());
    let mut to = 1_usize;
    for (&size, &from) in dims.iter().zip(strides).rev() {
        match axes.last_mut() {
            _ if size == 1 => {}
            Some(inner) if inner.from.saturating_mul(inner.size.cast_signed()) == from => {
                inner.size *= size;
            }
            _ => axes.push(Axis { size, from, to }),
        }
        to *= size.max(1);
    }
    axes.reverse();
    axes
}

fn copy<const N: usize>(from: &[u8], to: &mut [u8], axes: &[Axis], offset: usize) -> Option<()> {
    let (from, _) = from.as_chunks::<N>();
    let (to, _) = to.as_chunks_mut::<N>();
    let Some((inner, outer)) = axes.split_last() else {
        to.first_mut()?.clone_from(from.get(offset)?);
        return Some(());
    };
    // Rows of the source that become columns are copied in squares, which stay in the cache.
    let column = outer.iter().position(|axis| axis.from == 1).filter(|_| inner.from > 1);
    let mut around: Vec<Axis> = outer.to_vec();
    let column = column.map(|index| around.remove(index));
    walk(&around, offset.cast_signed(), 0, &mut |start, at| match column {
        Some(column) => square(from, to, *inner, column, start, at),
        None => row(from, to, *inner, start, at),
    })
}

/// Calls with the place in the source and in the result, for every index along the axes.
fn walk(
    axes: &[Axis],
    from: isize,
    to: usize,
    each: &mut impl FnMut(isize, usize) -> Option<()>,
) -> Option<()> {
    let Some((outer, inner)) = axes.split_first() else { return each(from, to) };
    for index in 0..outer.size {
        walk(inner, from + index.cast_signed() * outer.from, to + index * outer.to, each)?;
    }
    Some(())
}

fn row<const N: usize>(
    from: &[[u8; N]],
    to: &mut [[u8; N]],
    axis: Axis,
    start: isize,
    at: usize,
) -> Option<()> {
    let to = to.get_mut(at..at.checked_add(axis.size)?)?;
    if axis.from == 1 {
        let start = usize::try_from(start).ok()?;
        to.copy_from_slice(from.get(start..start.checked_add(axis.size)?)?);
        return Some(());
    }
    for (index, slot) in to.iter_mut().enumerate() {
        let place = start + index.cast_signed() * axis.from;
        *slot = *from.get(usize::try_from(place).ok()?)?;
    }
    Some(())
}

fn square<const N: usize>(
    from: &[[u8; N]],
    to: &mut [[u8; N]],
    inner: Axis,
    column: Axis,
    start: isize,
    at: usize,
) -> Option<()> {
    let start = usize::try_from(start).ok()?;
    let apart = usize::try_from(inner.from).ok()?;
    for first in (0..column.size).step_by(SQUARE) {
        let rows = first..(first + SQUARE).min(column.size);
        for left in (0..inner.size).step_by(SQUARE) {
            let columns = left..(left + SQUARE).min(inner.size);
            for row in rows.clone() {
                let begin = at + row * column.to;
                let slots = to.get_mut(begin + columns.start..begin + columns.end)?;
                let mut place = start + row + columns.start * apart;
                for slot in slots {
                    *slot = *from.get(place)?;
                    place += apart;
                }
            }
        }
    }
    Some(())
}
