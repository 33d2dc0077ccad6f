//! The element types that bundles may use.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DType {
    /// IEEE 754 half precision.
    #[serde(rename = "float16")]
    F16,
    /// The upper half of a float32.
    #[serde(rename = "bfloat16")]
    BF16,
    /// IEEE 754 single precision.
    #[serde(rename = "float32")]
    F32,
    /// IEEE 754 double precision.
    #[serde(rename = "float64")]
    F64,
    /// Signed, 8 bits.
    #[serde(rename = "int8")]
    I8,
    /// Signed, 16 bits.
    #[serde(rename = "int16")]
    I16,
    /// Signed, 32 bits.
    #[serde(rename = "int32")]
    I32,
    /// Signed, 64 bits.
    #[serde(rename = "int64")]
    I64,
    /// Unsigned, 8 bits.
    #[serde(rename = "uint8")]
    U8,
    /// Unsigned, 16 bits.
    #[serde(rename = "uint16")]
    U16,
    /// Unsigned, 32 bits.
    #[serde(rename = "uint32")]
    U32,
    /// Unsigned, 64 bits.
    #[serde(rename = "uint64")]
    U64,
    /// One byte, 0 or 1.
    Bool,
}

impl DType {
    /// Every dtype.
    pub const ALL: [Self; 13] = [
        Self::F16,
        Self::BF16,
        Self::F32,
        Self::F64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U8,
        Self::U16,
        Self::U32,
        Self::U64,
        Self::Bool,
    ];

    /// Bytes an element takes.
    pub const fn size(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::Bool => 1,
            Self::F16 | Self::BF16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// The name that bundles, torch and NumPy use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F16 => "float16",
            Self::BF16 => "bfloat16",
            Self::F32 => "float32",
            Self::F64 => "float64",
            Self::I8 => "int8",
            Self::I16 => "int16",
            Self::I32 => "int32",
            Self::I64 => "int64",
            Self::U8 => "uint8",
            Self::U16 => "uint16",
            Self::U32 => "uint32",
            Self::U64 => "uint64",
            Self::Bool => "bool",
        }
    }

    /// The dtype of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Whether elements are floating-point numbers.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::BF16 | Self::F32 | Self::F64)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_dtype() {
        for dtype in DType::ALL {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
        }
        assert_eq!(DType::from_name("complex64"), None);
    }
}
