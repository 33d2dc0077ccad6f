//! Operators that give elements another shape or order.

use veracity_onnx::Weight;

use super::{Call, Computed, strided};
use crate::facts::{even_parts, normal_axis, ranges};

/// Since when `Slice` takes its ranges as inputs.
const SLICE_INPUT_SINCE: i64 = 10;
/// Since when `Split` takes its sizes as an input.
const SPLIT_INPUT_SINCE: i64 = 13;
/// Since when the last part of a `Split` may be smaller.
const SPLIT_UNEVEN_SINCE: i64 = 18;

/// The same elements in a shape that is known.
pub(super) fn reshape(call: &Call<'_>, shape: &[usize]) -> Computed {
    let weight = call.weight(0)?.reshaped(shape);
    Ok(vec![weight.ok_or_else(|| format!("the elements do not fill {shape:?}"))?])
}

pub(super) fn transpose(call: &Call<'_>) -> Computed {
    let operand = call.operand(0)?;
    let rank = operand.dims.len();
    let order: Vec<usize> = match call.node.ints_of("perm") {
        None => (0..rank).rev().collect(),
        Some(order) => order
            .iter()
            .map(|&axis| normal_axis(axis, rank))
            .collect::<Option<_>>()
            .ok_or_else(|| format!("the order {order:?} does not fit {rank} axes"))?,
    };
    if order.len() != rank {
        return Err(format!("the order {order:?} does not fit {rank} axes"));
    }
    let own = strided::strides(&operand.dims);
    let dims: Vec<usize> = order.iter().map(|&axis| operand.dims[axis]).collect();
    let strides: Vec<isize> = order.iter().map(|&axis| own[axis]).collect();
    Ok(vec![strided::copied_weight(&operand, &dims, &strides, 0)?])
}

pub(super) fn expand(call: &Call<'_>, shape: &[usize]) -> Computed {
    if call.weight(0)?.dims() == shape {
        return Ok(vec![call.weight(0)?.clone()]);
    }
    Ok(vec![Weight::new(call.operand(0)?.stretched(shape)?)])
}

pub(super) fn slice(call: &Call<'_>) -> Computed {
    let operand = call.operand(0)?;
    let needed = |list: Option<Vec<i64>>| list.ok_or_else(|| "the range is left out".to_owned());
    let starts = needed(call.list("starts", 1, SLICE_INPUT_SINCE)?)?;
    let ends = needed(call.list("ends", 2, SLICE_INPUT_SINCE)?)?;
    let axes = call.list("axes", 3, SLICE_INPUT_SINCE)?;
    let steps = call.list("steps", 4, SLICE_INPUT_SINCE)?;
    let impossible = || "the range is impossible".to_owned();
    let asked = ranges(operand.dims.len(), &starts, &ends, axes, steps).ok_or_else(impossible)?;
    let mut dims = operand.dims.clone();
    let mut strides = strided::strides(&dims);
    let mut offset = 0_usize;
    for (axis, range) in asked {
        let (start, count) = range.within(operand.dims[axis]).ok_or_else(impossible)?;
        offset += start * strides[axis].unsigned_abs();
        strides[axis] =
            strides[axis].saturating_mul(isize::try_from(range.step).unwrap_or(isize::MAX));
        dims[axis] = count;
    }
    Ok(vec![strided::copied_weight(&operand, &dims, &strides, offset)?])
}

pub(super) fn split(call: &Call<'_>) -> Computed {
    let operand = call.operand(0)?;
    let parts = call.node.outputs().len();
    let axis = normal_axis(call.node.int_of("axis").unwrap_or(0), operand.dims.len())
        .ok_or_else(|| "there is no such axis".to_owned())?;
    let sizes = match call.list("split", 1, SPLIT_INPUT_SINCE)? {
        Some(sizes) => sizes.iter().map(|&size| usize::try_from(size).ok()).collect(),
        None => even_parts(operand.dims[axis], parts, call.opset >= SPLIT_UNEVEN_SINCE),
    };
    let fits = |sizes: &Vec<usize>| {
        sizes.len() == parts && sizes.iter().sum::<usize>() == operand.dims[axis]
    };
    let sizes = sizes.filter(fits).ok_or_else(|| "the sizes of the parts do not fit".to_owned())?;
    let strides = strided::strides(&operand.dims);
    let mut begin = 0;
    let mut given = Vec::with_capacity(parts);
    for size in sizes {
        let mut dims = operand.dims.clone();
        dims[axis] = size;
        let offset = begin * strides[axis].unsigned_abs();
        given.push(strided::copied_weight(&operand, &dims, &strides, offset)?);
        begin += size;
    }
    Ok(given)
}
