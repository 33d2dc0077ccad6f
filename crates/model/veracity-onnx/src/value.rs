//! Inputs and outputs of a graph as the model itself declares them.

use std::fmt;

use veracity_tensor::DType;

use crate::generated::onnx::tensor_proto::DataType;
use crate::generated::onnx::tensor_shape_proto::{Dimension, dimension};
use crate::generated::onnx::{TensorShapeProto, TypeProto, ValueInfoProto, type_proto};

/// One input or output of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueInfo {
    /// Name of the value.
    pub name: String,
    /// Type of the elements; `None` when the model does not say or when it is not one of ours.
    pub dtype: Option<DType>,
    /// What the model says about the type, for people: `float32`, `STRING`, `sequence`, or
    /// [`ValueInfo::UNTYPED`].
    pub type_name: &'static str,
    /// Sizes of the axes; `None` when not even their number is known.
    pub dims: Option<Vec<Dim>>,
}

/// Size of one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dim {
    /// Always this size.
    Fixed(usize),
    /// Any size, the same wherever the name stands.
    Named(String),
    /// Any size.
    Unknown,
}

impl ValueInfo {
    /// The [`ValueInfo::type_name`] of a value that the model says nothing about.
    pub const UNTYPED: &'static str = "untyped";

    pub(crate) fn from_proto(proto: &ValueInfoProto) -> Self {
        let (type_name, dtype, shape) = describe(proto.r#type.as_ref());
        Self {
            name: proto.name().to_owned(),
            dtype,
            type_name,
            dims: shape.map(|shape| shape.dim.iter().map(Dim::from_proto).collect()),
        }
    }

    /// A tensor value, as the builder writes it.
    pub(crate) fn tensor_proto(name: String, dtype: DType, dims: Vec<Dim>) -> ValueInfoProto {
        let tensor = type_proto::Tensor {
            elem_type: Some(to_onnx(dtype)),
            shape: Some(TensorShapeProto { dim: dims.into_iter().map(Dim::into_proto).collect() }),
        };
        let value = Some(type_proto::Value::TensorType(tensor));
        let r#type = Some(TypeProto { value, ..TypeProto::default() });
        ValueInfoProto { name: Some(name), r#type, ..ValueInfoProto::default() }
    }
}

impl fmt::Display for ValueInfo {
    /// `float32 [batch, 48]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.type_name)?;
        let Some(dims) = &self.dims else {
            return Ok(());
        };
        let dims: Vec<String> = dims.iter().map(Dim::to_string).collect();
        write!(f, " [{}]", dims.join(", "))
    }
}

impl Dim {
    /// Whether an axis of this size is allowed.
    pub fn admits(&self, size: usize) -> bool {
        match self {
            Self::Fixed(fixed) => *fixed == size,
            Self::Named(_) | Self::Unknown => true,
        }
    }

    fn from_proto(proto: &Dimension) -> Self {
        match &proto.value {
            // Some exporters write -1 for an axis of any size.
            Some(dimension::Value::DimValue(size)) => {
                usize::try_from(*size).map_or(Self::Unknown, Self::Fixed)
            }
            Some(dimension::Value::DimParam(name)) if !name.is_empty() => Self::Named(name.clone()),
            Some(dimension::Value::DimParam(_)) | None => Self::Unknown,
        }
    }

    fn into_proto(self) -> Dimension {
        let value = match self {
            // Sizes above i64::MAX exist on no machine; -1 keeps them from turning into others.
            Self::Fixed(size) => Some(dimension::Value::DimValue(size.try_into().unwrap_or(-1))),
            Self::Named(name) => Some(dimension::Value::DimParam(name)),
            Self::Unknown => None,
        };
        Dimension { value, ..Dimension::default() }
    }
}

impl From<usize> for Dim {
    fn from(size: usize) -> Self {
        Self::Fixed(size)
    }
}

impl From<&str> for Dim {
    fn from(name: &str) -> Self {
        Self::Named(name.to_owned())
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(f),
            Self::Named(name) => f.write_str(name),
            Self::Unknown => f.write_str("?"),
        }
    }
}

fn describe(
    declared: Option<&TypeProto>,
) -> (&'static str, Option<DType>, Option<&TensorShapeProto>) {
    use type_proto::Value;
    match declared.and_then(|declared| declared.value.as_ref()) {
        Some(Value::TensorType(tensor)) => {
            let dtype = from_onnx(tensor.elem_type());
            let name = dtype.map_or_else(|| onnx_name(tensor.elem_type()), DType::name);
            (name, dtype, tensor.shape.as_ref())
        }
        Some(Value::SequenceType(_)) => ("sequence", None, None),
        Some(Value::MapType(_)) => ("map", None, None),
        Some(Value::OptionalType(_)) => ("optional", None, None),
        Some(Value::SparseTensorType(_)) => ("sparse tensor", None, None),
        Some(Value::OpaqueType(_)) => ("opaque", None, None),
        None => (ValueInfo::UNTYPED, None, None),
    }
}

/// What ONNX calls an element type that has no [`DType`].
fn onnx_name(elem_type: i32) -> &'static str {
    match DataType::try_from(elem_type) {
        Ok(DataType::Undefined) => ValueInfo::UNTYPED,
        Ok(known) => known.as_str_name(),
        Err(_) => "an unknown type",
    }
}

/// The dtype of an ONNX element type.
pub(crate) fn from_onnx(elem_type: i32) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| to_onnx(*dtype) == elem_type)
}

/// The ONNX element type of a dtype.
pub(crate) fn to_onnx(dtype: DType) -> i32 {
    let elem_type = match dtype {
        DType::F16 => DataType::Float16,
        DType::BF16 => DataType::Bfloat16,
        DType::F32 => DataType::Float,
        DType::F64 => DataType::Double,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::U8 => DataType::Uint8,
        DType::U16 => DataType::Uint16,
        DType::U32 => DataType::Uint32,
        DType::U64 => DataType::Uint64,
        DType::Bool => DataType::Bool,
    };
    elem_type.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dtype_has_its_own_onnx_type() {
        for dtype in DType::ALL {
            assert_eq!(from_onnx(to_onnx(dtype)), Some(dtype));
        }
        assert_eq!(from_onnx(DataType::String.into()), None);
        assert_eq!(from_onnx(i32::MIN), None);
    }

    #[test]
    fn values_read_as_people_write_them() {
        let dims = vec![Dim::from("batch"), Dim::from(48), Dim::Unknown];
        let proto = ValueInfo::tensor_proto("x".into(), DType::F32, dims);
        assert_eq!(ValueInfo::from_proto(&proto).to_string(), "float32 [batch, 48, ?]");
        let untyped = ValueInfo::from_proto(&ValueInfoProto::default());
        assert_eq!(untyped.to_string(), "untyped");
    }

    #[test]
    fn a_negative_size_is_an_unknown_size() {
        let value = Some(dimension::Value::DimValue(-1));
        let proto = Dimension { value, ..Dimension::default() };
        assert_eq!(Dim::from_proto(&proto), Dim::Unknown);
    }
}
