//! Tensors as bytes with a dtype and a shape, and the files they live in.
//!
//! Nothing here computes. A [`Tensor`] owns its bytes, a [`TensorView`] borrows them (with strides,
//! if need be), a [`SharedTensor`] is one piece of memory that several engine sessions read and
//! write in turn. [`mod@file`] reads and writes `.npy`, `.npz` and `.safetensors`.

mod aligned;
mod dtype;
pub mod file;
mod shape;
mod shared;
mod tensor;
mod view;

pub use aligned::AlignedBytes;
pub use dtype::DType;
pub use shape::{MAX_RANK, Shape};
pub use shared::SharedTensor;
pub use tensor::{Element, Tensor};
pub use view::TensorView;
