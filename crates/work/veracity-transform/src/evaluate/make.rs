//! Operators that make tensors.

use veracity_onnx::Weight;
use veracity_tensor::{DType, Tensor};

use super::operand::{Operand, held, shape};
use super::{Call, Computed};

pub(super) fn constant_of_shape(call: &Call<'_>, dims: &[usize]) -> Computed {
    let Some(value) = call.node.tensor_of("value") else {
        return Ok(vec![Weight::new(Tensor::zeros(DType::F32, shape(dims)?))]);
    };
    let operand = Operand::new(&value).filter(|operand| operand.elements() == 1);
    let operand = operand.ok_or_else(|| "the value is not one element".to_owned())?;
    let mut result = Tensor::zeros(operand.dtype, shape(dims)?);
    for slot in result.bytes_mut().chunks_exact_mut(operand.dtype.size()) {
        slot.copy_from_slice(operand.bytes());
    }
    Ok(vec![Weight::new(result)])
}

/// `Range` of integers; of other numbers engines add up or multiply, with different bits.
pub(super) fn range(call: &Call<'_>, dims: &[usize]) -> Computed {
    let one = |index: usize| -> Result<i64, String> {
        call.ints(index)?.first().copied().ok_or_else(|| "a limit is left out".to_owned())
    };
    let (start, step) = (one(0)?, one(2)?);
    let [count] = dims else { return Err("a range has one axis".to_owned()) };
    let at = |index: usize| start.wrapping_add(step.wrapping_mul(index.cast_signed() as i64));
    let numbers: Vec<i64> = (0..*count).map(at).collect();
    let tensor = match call.weight(0)?.dtype() {
        Some(DType::I64) => Tensor::from_slice([*count], &numbers),
        Some(DType::I32) => {
            let narrow: Result<Vec<i32>, _> = numbers.into_iter().map(i32::try_from).collect();
            Tensor::from_slice([*count], &narrow.map_err(|error| error.to_string())?)
        }
        _ => return Err("only ranges of integers are computed here".to_owned()),
    };
    held(tensor)
}

/// `Trilu`: one half of each matrix, and zeros.
pub(super) fn triangle(call: &Call<'_>) -> Computed {
    let operand = call.operand(0)?;
    let upper = call.node.int_of("upper").unwrap_or(1) != 0;
    let shift = if call.has(1) { call.ints(1)?.first().copied().unwrap_or(0) } else { 0 };
    let [.., rows, columns] = operand.dims[..] else {
        return Err("a matrix is needed".to_owned());
    };
    let mut result = operand.stretched(&operand.dims)?;
    let width = operand.dtype.size();
    for (number, slot) in result.bytes_mut().chunks_exact_mut(width).enumerate() {
        let (row, column) = (number / columns.max(1) % rows.max(1), number % columns.max(1));
        let diagonal = i128::from(row as u64) + i128::from(shift);
        let column = i128::from(column as u64);
        if if upper { column < diagonal } else { column > diagonal } {
            slot.fill(0);
        }
    }
    Ok(vec![Weight::new(result)])
}
