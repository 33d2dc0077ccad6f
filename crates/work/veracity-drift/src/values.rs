//! Values by name, in memory that engines read where it is.
#![expect(unsafe_code, reason = "reads and fills memory that sessions share, between runs")]

use std::collections::BTreeMap;

use veracity_diag::Result;
use veracity_tensor::{SharedTensor, Tensor, TensorView};

/// Values by name. Nothing writes them after they were made, other than the session whose outputs
/// they are.
pub type Values = BTreeMap<String, SharedTensor>;

/// A row-major copy of a value, ready to be bound.
pub fn held(value: &TensorView<'_>) -> SharedTensor {
    let memory = SharedTensor::zeros(value.dtype(), value.shape().clone());
    // SAFETY: nobody else has this memory yet.
    value.copy_elements(0, unsafe { memory.bytes_mut() });
    memory
}

/// A copy of a value that no session writes any more.
pub fn copied(value: &SharedTensor) -> Result<Tensor> {
    Ok(view(value)?.to_tensor())
}

/// The elements of a value that no session writes any more.
pub(crate) fn view(value: &SharedTensor) -> Result<TensorView<'_>> {
    // SAFETY: sessions of this crate live within one call of `run_once` and write only its outputs,
    // which are looked at after they ran.
    let bytes = unsafe { value.bytes() };
    TensorView::new(value.dtype(), value.shape(), bytes)
}
