//! Reads and writes the memory that sessions are bound to.
//!
//! Cases run one session at a time and touch memory only between runs, so access is in turn.
#![expect(unsafe_code, reason = "shared memory is reached through raw access")]

use veracity_tensor::{SharedTensor, Tensor};

/// New memory that holds `tensor`.
pub(crate) fn shared(tensor: &Tensor) -> SharedTensor {
    let memory = blank(tensor);
    write(&memory, tensor);
    memory
}

/// New memory for a tensor of this dtype and shape. Its bytes are not zero, so that an output that
/// was never written does not pass for one of zeros.
pub(crate) fn blank(like: &Tensor) -> SharedTensor {
    let memory = SharedTensor::zeros(like.dtype(), like.shape().clone());
    // SAFETY: nobody else has this memory yet.
    unsafe { memory.bytes_mut() }.fill(1);
    memory
}

/// Overwrites memory. `tensor` has its dtype and shape.
pub(crate) fn write(memory: &SharedTensor, tensor: &Tensor) {
    // SAFETY: no session runs while a case writes, and the slice ends here.
    unsafe { memory.bytes_mut() }.copy_from_slice(tensor.bytes());
}

/// A copy of what memory holds.
pub(crate) fn read(memory: &SharedTensor) -> Tensor {
    // SAFETY: no session runs while a case reads.
    unsafe { memory.to_tensor() }
}
