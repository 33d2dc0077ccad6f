//! The dtypes of bundles, of ONNX files and of tract.

use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::prelude::DatumType;
use veracity_tensor::DType;

/// What tract calls a dtype; `None` for the one that it does not have.
pub(crate) fn tract_from_dtype(dtype: DType) -> Option<DatumType> {
    Some(match dtype {
        DType::BF16 => return None,
        DType::F16 => DatumType::F16,
        DType::F32 => DatumType::F32,
        DType::F64 => DatumType::F64,
        DType::I8 => DatumType::I8,
        DType::I16 => DatumType::I16,
        DType::I32 => DatumType::I32,
        DType::I64 => DatumType::I64,
        DType::U8 => DatumType::U8,
        DType::U16 => DatumType::U16,
        DType::U32 => DatumType::U32,
        DType::U64 => DatumType::U64,
        DType::Bool => DatumType::Bool,
    })
}

/// The dtype of an output of tract. It keeps integers that may be sizes as expressions (`TDim`);
/// in the model they are 64-bit integers.
pub(crate) fn dtype_from_tract(datum: DatumType) -> Option<DType> {
    if datum == DatumType::TDim {
        return Some(DType::I64);
    }
    DType::ALL.into_iter().find(|dtype| tract_from_dtype(*dtype) == Some(datum))
}

/// The dtype that a number of the ONNX format stands for.
pub(crate) fn dtype_from_onnx(number: i32) -> Option<DType> {
    Some(match DataType::try_from(number).ok()? {
        DataType::Float16 => DType::F16,
        DataType::Bfloat16 => DType::BF16,
        DataType::Float => DType::F32,
        DataType::Double => DType::F64,
        DataType::Int8 => DType::I8,
        DataType::Int16 => DType::I16,
        DataType::Int32 => DType::I32,
        DataType::Int64 => DType::I64,
        DataType::Uint8 => DType::U8,
        DataType::Uint16 => DType::U16,
        DataType::Uint32 => DType::U32,
        DataType::Uint64 => DType::U64,
        DataType::Bool => DType::Bool,
        _ => return None,
    })
}
