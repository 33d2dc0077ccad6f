//! Dtypes by the numbers that ONNX gives them.

use ort_sys::ONNXTensorElementDataType as Onnx;
use veracity_tensor::DType;

/// The number of a dtype.
pub(crate) fn onnx_from_dtype(dtype: DType) -> Onnx {
    match dtype {
        DType::F16 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
        DType::BF16 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
        DType::F32 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
        DType::F64 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
        DType::I8 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8,
        DType::I16 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16,
        DType::I32 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
        DType::I64 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
        DType::U8 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
        DType::U16 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16,
        DType::U32 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32,
        DType::U64 => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64,
        DType::Bool => Onnx::ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
    }
}

/// The dtype of a number, which may be any: models use types that bundles do not have.
pub(crate) fn dtype_from_onnx(number: i32) -> Option<DType> {
    DType::ALL.into_iter().find(|&dtype| onnx_from_dtype(dtype) as i32 == number)
}
