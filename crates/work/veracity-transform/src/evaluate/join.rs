//! Operators that put elements together from several places.

use veracity_onnx::Weight;
use veracity_tensor::Tensor;

use super::operand::{Operand, held, shape};
use super::{Call, Computed};
use crate::facts::normal_axis;

/// Since when `Pad` takes its sizes as an input.
const PAD_INPUT_SINCE: i64 = 11;

fn axis(call: &Call<'_>, default: i64, rank: usize) -> Result<usize, String> {
    normal_axis(call.node.int_of("axis").unwrap_or(default), rank)
        .ok_or_else(|| "there is no such axis".to_owned())
}

/// Bytes of everything behind an axis, once.
fn inner_bytes(operand: &Operand<'_>, axis: usize) -> usize {
    operand.dims[axis + 1..].iter().product::<usize>() * operand.dtype.size()
}

pub(super) fn concat(call: &Call<'_>) -> Computed {
    let operands: Vec<Operand<'_>> =
        (0..call.weights.len()).map(|index| call.operand(index)).collect::<Result<_, _>>()?;
    let first = operands.first().ok_or_else(|| "there is nothing to put together".to_owned())?;
    let axis = axis(call, 1, first.dims.len())?;
    let mut dims = first.dims.clone();
    dims[axis] = 0;
    for operand in &operands {
        let mut other = operand.dims.clone();
        if other.len() != dims.len() || operand.dtype != first.dtype {
            return Err("the parts do not fit together".to_owned());
        }
        dims[axis] += other[axis];
        other[axis] = dims[axis];
        if other != dims {
            return Err("the parts do not fit together".to_owned());
        }
    }
    let mut result = Tensor::zeros(first.dtype, shape(&dims)?);
    let row = inner_bytes(first, axis) * dims[axis];
    let mut begin = 0;
    for operand in &operands {
        let part = inner_bytes(operand, axis) * operand.dims[axis];
        if part > 0 {
            let rows = result.bytes_mut().chunks_exact_mut(row);
            for (to, from) in rows.zip(operand.bytes().chunks_exact(part)) {
                to[begin..begin + part].copy_from_slice(from);
            }
        }
        begin += part;
    }
    Ok(vec![Weight::new(result)])
}

pub(super) fn gather(call: &Call<'_>) -> Computed {
    let operand = call.operand(0)?;
    let axis = axis(call, 0, operand.dims.len())?;
    let size = operand.dims[axis];
    let indices: Vec<usize> = call
        .ints(1)?
        .into_iter()
        .map(|index| normal_axis(index, size))
        .collect::<Option<_>>()
        .ok_or_else(|| "an index is outside of the constant".to_owned())?;
    let dims = [&operand.dims[..axis], &call.weight(1)?.dims(), &operand.dims[axis + 1..]].concat();
    let mut result = Tensor::zeros(operand.dtype, shape(&dims)?);
    let (piece, row) = (inner_bytes(&operand, axis), inner_bytes(&operand, axis) * size);
    if !dims.contains(&0) {
        let mut slots = result.bytes_mut().chunks_exact_mut(piece);
        for from in operand.bytes().chunks_exact(row) {
            for &index in &indices {
                let slot = slots.next().ok_or_else(|| "the indices do not fit".to_owned())?;
                slot.copy_from_slice(&from[index * piece..][..piece]);
            }
        }
    }
    Ok(vec![Weight::new(result)])
}

pub(super) fn tile(call: &Call<'_>) -> Computed {
    let operand = call.operand(0)?;
    let repeats: Vec<usize> = call
        .ints(1)?
        .into_iter()
        .map(|repeat| usize::try_from(repeat).ok())
        .collect::<Option<_>>()
        .ok_or_else(|| "a number of repeats is impossible".to_owned())?;
    if repeats.len() != operand.dims.len() || call.opset < 6 {
        return Err("there must be a number of repeats for each axis".to_owned());
    }
    let dims: Vec<usize> = operand
        .dims
        .iter()
        .zip(&repeats)
        .map(|(&size, &repeat)| size.saturating_mul(repeat))
        .collect();
    let checked = shape(&dims)?;
    let mut bytes = operand.bytes().to_vec();
    let mut inner = operand.dtype.size();
    for axis in (0..dims.len()).rev() {
        inner *= operand.dims[axis];
        if inner > 0 {
            bytes =
                bytes.chunks_exact(inner).flat_map(|piece| piece.repeat(repeats[axis])).collect();
        }
        inner *= repeats[axis];
    }
    held(Tensor::from_bytes(operand.dtype, checked, &bytes))
}

/// `Pad` with a constant, that grows or keeps every axis.
pub(super) fn pad(call: &Call<'_>, dims: &[usize]) -> Computed {
    let operand = call.operand(0)?;
    let plain = matches!(call.node.string_of("mode"), None | Some("constant"));
    if !plain || call.opset < PAD_INPUT_SINCE || operand.dims.contains(&0) {
        return Err("only a constant around elements is computed here".to_owned());
    }
    let rank = operand.dims.len();
    let pads = call.ints(1)?;
    let axes = if call.has(3) { call.ints(3)? } else { (0..).take(rank).collect() };
    let axes: Option<Vec<usize>> = axes.into_iter().map(|axis| normal_axis(axis, rank)).collect();
    let axes = axes.ok_or_else(|| "there is no such axis".to_owned())?;
    let mut begins = vec![0_usize; rank];
    for (index, &axis) in axes.iter().enumerate() {
        let (begin, end) = (pads.get(index), pads.get(index + axes.len()));
        match (begin.map(|&pad| usize::try_from(pad)), end.map(|&pad| usize::try_from(pad))) {
            (Some(Ok(begin)), Some(Ok(_))) => begins[axis] = begin,
            _ => return Err("cutting elements off is not computed here".to_owned()),
        }
    }
    let filling =
        if call.has(2) { call.operand(2)?.bytes().to_vec() } else { vec![0; operand.dtype.size()] };
    let mut result = Tensor::zeros(operand.dtype, shape(dims)?);
    for slot in result.bytes_mut().chunks_exact_mut(filling.len()) {
        slot.copy_from_slice(&filling);
    }
    paste(&operand, result.bytes_mut(), dims, &begins);
    Ok(vec![Weight::new(result)])
}

/// Puts rows of a smaller tensor into a larger one.
fn paste(operand: &Operand<'_>, to: &mut [u8], dims: &[usize], begins: &[usize]) {
    let width = operand.dtype.size();
    let row = operand.dims.last().copied().unwrap_or(1) * width;
    for (number, from) in operand.bytes().chunks_exact(row).enumerate() {
        let (mut left, mut place, mut apart) = (number, 0, 1);
        for axis in (0..dims.len()).rev() {
            let index = if axis + 1 == dims.len() { 0 } else { left % operand.dims[axis] };
            if axis + 1 != dims.len() {
                left /= operand.dims[axis];
            }
            place += (index + begins[axis]) * apart;
            apart *= dims[axis];
        }
        to[place * width..][..row].copy_from_slice(from);
    }
}
