//! A tensor that owns its bytes.
#![expect(unsafe_code, reason = "bytes are read as elements of the declared dtype")]

use half::{bf16, f16};
use veracity_diag::{Diagnostic, Result, codes};

use crate::{AlignedBytes, DType, Shape, TensorView};

/// A row-major tensor that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    bytes: AlignedBytes,
}

impl Tensor {
    /// All zero (`false` for bool).
    pub fn zeros(dtype: DType, shape: Shape) -> Self {
        let bytes = AlignedBytes::zeroed(shape.elements() * dtype.size());
        Self { dtype, shape, bytes }
    }

    /// A copy of row-major `bytes`. Refused when they do not fill the shape exactly, or when a
    /// bool is neither 0 nor 1.
    pub fn from_bytes(dtype: DType, shape: Shape, bytes: &[u8]) -> Result<Self> {
        TensorView::new(dtype, &shape, bytes)?;
        if dtype == DType::Bool && bytes.iter().any(|&byte| byte > 1) {
            return Err(Diagnostic::error(
                codes::BOOL_INVALID,
                "a bool element is neither 0 nor 1",
            )
            .into());
        }
        let bytes = AlignedBytes::copy_of(bytes);
        Ok(Self { dtype, shape, bytes })
    }

    /// A tensor of these elements, for values written in code.
    pub fn from_slice<E: Element>(shape: impl Into<Shape>, elements: &[E]) -> Result<Self> {
        let shape = shape.into();
        if shape.elements() != elements.len() {
            return Err(Diagnostic::error(
                codes::TENSOR_SIZE_MISMATCH,
                format!("{} elements do not fill shape {shape}", elements.len()),
            )
            .into());
        }
        Ok(Self { dtype: E::DTYPE, bytes: AlignedBytes::copy_of(E::bytes_of(elements)), shape })
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Sizes of the axes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The elements, row-major, in the byte order of this machine.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The elements, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Borrows the whole tensor.
    pub fn view(&self) -> TensorView<'_> {
        TensorView::of_tensor(self)
    }

    /// The elements as values, when `E` is their dtype.
    pub fn as_slice<E: Element>(&self) -> Option<&[E]> {
        (E::DTYPE == self.dtype).then(|| {
            // SAFETY: the bytes are 64-byte aligned, hold `elements` values, and every bit
            // pattern is valid for the `Element` types (bool is read as `u8`).
            unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.shape.elements()) }
        })
    }

    /// The elements as values, for writing.
    pub fn as_mut_slice<E: Element>(&mut self) -> Option<&mut [E]> {
        (E::DTYPE == self.dtype).then(|| {
            // SAFETY: as in `as_slice`, and the borrow is exclusive.
            unsafe {
                std::slice::from_raw_parts_mut(
                    self.bytes.as_mut_ptr().cast(),
                    self.shape.elements(),
                )
            }
        })
    }
}

/// A Rust type that is the element of one dtype. `bool` tensors are bytes and have none.
pub trait Element: Copy + sealed::Sealed {
    /// The dtype of such elements.
    const DTYPE: DType;

    /// The memory of a slice of elements.
    fn bytes_of(elements: &[Self]) -> &[u8] {
        // SAFETY: implementors are plain numbers without padding.
        unsafe {
            std::slice::from_raw_parts(elements.as_ptr().cast(), std::mem::size_of_val(elements))
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),* $(,)?) => {
        $(
            impl sealed::Sealed for $type {}
            impl Element for $type {
                const DTYPE: DType = DType::$dtype;
            }
        )*
    };
}

elements! {
    f16 => F16, bf16 => BF16, f32 => F32, f64 => F64,
    i8 => I8, i16 => I16, i32 => I32, i64 => I64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
}
