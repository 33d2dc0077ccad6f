//! What the lint knows about a value of the graph.

use std::sync::Arc;

use tract_onnx::pb::TensorProto;
use tract_onnx::pb::tensor_proto::DataLocation;
use veracity_tensor::DType;

use crate::dtype::{dtype_from_onnx, tract_from_dtype};

/// Longest constant whose elements are looked at. Shapes, axes and paddings are far shorter.
const MAX_CONSTANT: usize = 1024;

/// What is known about a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    /// A refused node gives it; nothing is held against its readers.
    Unknown,
    /// A tensor that tract holds as it is.
    Plain(DType),
    /// 64-bit integers that stand in the file and fit into 32 bits: elements, in any order.
    Constant(Arc<[i64]>),
    /// 64-bit integers that tract holds as expressions over sizes: what `Shape`, `Size` and `Cast`
    /// give, and what is computed from that. Other 64-bit integers that meet them are **cut to 32
    /// bits without a word**, so they may only meet each other and [`Value::Constant`].
    Sizes,
}

impl Value {
    /// The dtype in the model.
    pub(crate) fn dtype(&self) -> Option<DType> {
        match self {
            Self::Unknown => None,
            Self::Plain(dtype) => Some(*dtype),
            Self::Constant(_) | Self::Sizes => Some(DType::I64),
        }
    }

    /// A constant of these integers.
    pub(crate) fn of_integers(elements: &[i64]) -> Self {
        let small = |&element: &i64| i32::try_from(element).is_ok();
        if elements.len() <= MAX_CONSTANT && elements.iter().all(small) {
            return Self::Constant(elements.into());
        }
        Self::Plain(DType::I64)
    }
}

/// The dtype, if tract has it.
pub(crate) fn supported(dtype: DType) -> Result<DType, String> {
    tract_from_dtype(dtype).map(|_| dtype).ok_or_else(|| format!("{dtype} is not supported"))
}

/// What is known about a tensor in the file.
pub(crate) fn of_tensor(tensor: &TensorProto) -> Result<Value, String> {
    let dtype = dtype_from_onnx(tensor.data_type)
        .ok_or_else(|| format!("its dtype number {} is not supported", tensor.data_type))?;
    let external = tensor.data_location == Some(DataLocation::External as i32);
    // tract looks for these two in another field than the one where the format has them.
    if matches!(dtype, DType::U32 | DType::U64) && tensor.raw_data.is_empty() && !external {
        return Err(format!("{dtype} is only read from raw data"));
    }
    if dtype != DType::I64 || external {
        return supported(dtype).map(Value::Plain);
    }
    if tensor.raw_data.is_empty() {
        return Ok(Value::of_integers(&tensor.int64_data));
    }
    let elements = tensor.raw_data.as_chunks().0.iter().take(MAX_CONSTANT + 1);
    let elements: Vec<i64> = elements.map(|&bytes| i64::from_le_bytes(bytes)).collect();
    Ok(Value::of_integers(&elements))
}
