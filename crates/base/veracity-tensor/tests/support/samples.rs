//! Tensors to write and read.

use half::{bf16, f16};
use veracity_tensor::file::TensorMap;
use veracity_tensor::{DType, Shape, Tensor};

/// 0, 1, 2, … as elements of `dtype`; 0, 1, 0, … for bool.
pub(crate) fn iota(dtype: DType, shape: impl Into<Shape>) -> Tensor {
    let shape = shape.into();
    let count = u8::try_from(shape.elements()).expect("a small sample");
    let bytes: Vec<u8> = (0..count)
        .flat_map(|i| match dtype {
            DType::F16 => f16::from(i).to_le_bytes().to_vec(),
            DType::BF16 => bf16::from(i).to_le_bytes().to_vec(),
            DType::F32 => f32::from(i).to_le_bytes().to_vec(),
            DType::F64 => f64::from(i).to_le_bytes().to_vec(),
            DType::Bool => vec![i % 2],
            _ => u64::from(i).to_le_bytes()[..dtype.size()].to_vec(),
        })
        .collect();
    Tensor::from_bytes(dtype, shape, &bytes).expect("the bytes fill the shape")
}

/// A matrix, a vector, a scalar and an empty tensor of every dtype.
pub(crate) fn every_kind() -> TensorMap {
    let mut tensors = TensorMap::new();
    for dtype in DType::ALL {
        tensors.insert(format!("{dtype}/matrix"), iota(dtype, [2, 3]));
        tensors.insert(format!("{dtype}/vector"), iota(dtype, [5]));
        tensors.insert(format!("{dtype}/scalar"), iota(dtype, []));
        tensors.insert(format!("{dtype}/empty"), iota(dtype, [2, 0, 3]));
    }
    tensors
}
