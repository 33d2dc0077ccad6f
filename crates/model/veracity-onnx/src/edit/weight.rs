//! A constant of a graph, without a copy of its elements as long as possible.

use bytes::Bytes;
use half::{bf16, f16};
use veracity_tensor::{DType, Tensor};

use crate::generated::onnx::TensorProto;
use crate::generated::onnx::tensor_proto::DataLocation;
use crate::substitute::decoded;
use crate::value::{from_onnx, to_onnx};

/// A constant. Its bytes are those of the file's mapping, so that a clone is cheap.
#[derive(Clone, PartialEq)]
pub struct Weight(pub(crate) TensorProto);

/// A tensor as the owner of bytes that a message refers to.
struct Owned(Tensor);

impl AsRef<[u8]> for Owned {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Weight {
    /// A constant that takes over the elements of a tensor.
    pub fn new(tensor: Tensor) -> Self {
        let dims = tensor.shape().dims().iter().map(|dim| dim.cast_signed() as i64).collect();
        let data_type = Some(to_onnx(tensor.dtype()));
        let raw_data = Some(Bytes::from_owner(Owned(tensor)));
        Self(TensorProto { dims, data_type, raw_data, ..TensorProto::default() })
    }

    /// A constant that takes over row-major, little-endian bytes. `None` when they do not fill the
    /// shape.
    pub fn from_raw(
        dtype: DType,
        dims: &[usize],
        bytes: impl AsRef<[u8]> + Send + 'static,
    ) -> Option<Self> {
        let bytes = Bytes::from_owner(bytes);
        let shape = veracity_tensor::Shape::new(dims)?;
        if shape.elements().checked_mul(dtype.size()) != Some(bytes.len()) {
            return None;
        }
        let dims = dims.iter().map(|dim| dim.cast_signed() as i64).collect();
        let (data_type, raw_data) = (Some(to_onnx(dtype)), Some(bytes));
        Some(Self(TensorProto { dims, data_type, raw_data, ..TensorProto::default() }))
    }

    /// Type of the elements, when it is one of ours.
    pub fn dtype(&self) -> Option<DType> {
        from_onnx(self.0.data_type())
    }

    /// Sizes of the axes; a size that is impossible counts as 0.
    pub fn dims(&self) -> Vec<usize> {
        self.0.dims.iter().map(|&dim| usize::try_from(dim).unwrap_or(0)).collect()
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.dims().iter().fold(1, |product: usize, &dim| product.saturating_mul(dim))
    }

    /// Bytes that the elements take; 0 for types that are not ours.
    pub fn size(&self) -> usize {
        self.dtype().map_or(0, |dtype| dtype.size().saturating_mul(self.elements()))
    }

    /// The same elements in another shape, without a copy. `None` when they do not fill it.
    pub fn reshaped(&self, dims: &[usize]) -> Option<Self> {
        let shape = veracity_tensor::Shape::new(dims)?;
        if shape.elements() != self.elements() {
            return None;
        }
        let dims = dims.iter().map(|dim| dim.cast_signed() as i64).collect();
        Some(Self(TensorProto { dims, ..self.0.clone() }))
    }

    /// A copy as a tensor. `None` when the elements lie in another file, are of a type that
    /// tensors here do not have, or do not fill the shape.
    pub fn tensor(&self) -> Option<Tensor> {
        decoded(&self.0)
    }

    /// The elements as they stand in the file, row-major and little-endian, not aligned; `None`
    /// when they stand in a list of numbers or in another file.
    pub fn raw(&self) -> Option<&Bytes> {
        let external = self.0.data_location == Some(DataLocation::External.into());
        let fits = |raw: &&Bytes| self.dtype().is_some() && raw.len() == self.size();
        self.0.raw_data.as_ref().filter(|_| !external).filter(fits)
    }

    /// The elements as integers, for shapes, axes and indices. `None` for numbers that are not
    /// integers.
    pub fn ints(&self) -> Option<Vec<i64>> {
        let tensor = self.tensor()?;
        match tensor.dtype() {
            DType::I64 => Some(tensor.as_slice::<i64>()?.to_vec()),
            DType::I32 => Some(tensor.as_slice::<i32>()?.iter().map(|&one| one.into()).collect()),
            _ => None,
        }
    }

    /// The elements as float64, which holds every element of the float types. `None` for other types.
    pub fn floats(&self) -> Option<Vec<f64>> {
        let tensor = self.tensor()?;
        Some(match tensor.dtype() {
            DType::F32 => tensor.as_slice::<f32>()?.iter().map(|&one| one.into()).collect(),
            DType::F64 => tensor.as_slice::<f64>()?.to_vec(),
            DType::F16 => tensor.as_slice::<f16>()?.iter().map(|one| one.to_f64()).collect(),
            DType::BF16 => tensor.as_slice::<bf16>()?.iter().map(|one| one.to_f64()).collect(),
            _ => return None,
        })
    }

    /// The one element, as float64, of a float constant that has one.
    pub fn number(&self) -> Option<f64> {
        if self.elements() == 1 { self.floats()?.first().copied() } else { None }
    }

    /// A constant of a float type, each element rounded once. `None` for other types and when the
    /// elements do not fill the shape.
    pub fn from_floats(dtype: DType, dims: &[usize], elements: &[f64]) -> Option<Self> {
        let shape = veracity_tensor::Shape::new(dims)?;
        #[expect(clippy::cast_possible_truncation, reason = "rounding is the purpose")]
        let tensor = match dtype {
            DType::F32 => {
                let all: Vec<f32> = elements.iter().map(|&one| one as f32).collect();
                Tensor::from_slice(shape, &all)
            }
            DType::F64 => Tensor::from_slice(shape, elements),
            DType::F16 => {
                let all: Vec<f16> = elements.iter().map(|&one| f16::from_f64(one)).collect();
                Tensor::from_slice(shape, &all)
            }
            DType::BF16 => {
                let all: Vec<bf16> = elements.iter().map(|&one| bf16::from_f64(one)).collect();
                Tensor::from_slice(shape, &all)
            }
            _ => return None,
        };
        tensor.ok().map(Self::new)
    }
}

impl std::fmt::Debug for Weight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dtype = self.dtype().map_or_else(|| "?".to_owned(), |dtype| dtype.to_string());
        write!(f, "Weight({dtype} {:?})", self.dims())
    }
}
