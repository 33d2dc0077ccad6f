//! The elements of a constant, read where they stand.

use veracity_onnx::Weight;
use veracity_tensor::{DType, Shape, Tensor};

/// The elements of a constant, read where they stand.
pub(super) struct Operand<'w> {
    pub(super) dtype: DType,
    pub(super) dims: Vec<usize>,
    bytes: Held<'w>,
}

enum Held<'w> {
    File(&'w [u8]),
    Copy(Tensor),
}

impl<'w> Operand<'w> {
    pub(super) fn new(weight: &'w Weight) -> Option<Self> {
        let dtype = weight.dtype()?;
        let bytes = match weight.raw() {
            Some(raw) => Held::File(raw),
            None => Held::Copy(weight.tensor()?),
        };
        Some(Self { dtype, dims: weight.dims(), bytes })
    }

    /// The elements, row-major, not aligned.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.bytes {
            Held::File(bytes) => bytes,
            Held::Copy(tensor) => tensor.bytes(),
        }
    }

    pub(super) fn elements(&self) -> usize {
        self.dims.iter().product()
    }

    /// The elements as a tensor, stretched to a shape.
    pub(super) fn stretched(&self, dims: &[usize]) -> Result<Tensor, String> {
        if self.dims == dims {
            return Tensor::from_bytes(self.dtype, shape(dims)?, self.bytes())
                .map_err(|refusal| refusal.to_string());
        }
        let strides = super::strided::stretched_strides(&self.dims, dims)
            .ok_or_else(|| format!("{:?} cannot be stretched to {dims:?}", self.dims))?;
        let bytes = super::strided::copied(self, dims, &strides, 0)?;
        Tensor::from_bytes(self.dtype, shape(dims)?, &bytes).map_err(|refusal| refusal.to_string())
    }
}

/// A tensor that was made here, as what a node with one output gives.
pub(super) fn held(tensor: veracity_diag::Result<Tensor>) -> super::Computed {
    tensor.map(|tensor| vec![Weight::new(tensor)]).map_err(|refusal| refusal.to_string())
}

/// A shape whose size is known to be sane.
pub(super) fn shape(dims: &[usize]) -> Result<Shape, String> {
    Shape::new(dims).ok_or_else(|| format!("{dims:?} is too large"))
}
