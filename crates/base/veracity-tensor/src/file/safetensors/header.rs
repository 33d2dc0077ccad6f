//! The JSON at the start of a safetensors file: dtype, shape and byte range of every tensor.

use std::fmt;

use ::safetensors::Dtype as FormatDtype;
use ::safetensors::tensor::TensorInfo;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use veracity_diag::{Diagnostic, Result, codes};

use super::{Metadata, malformed, member};
use crate::{DType, Shape};

/// The one key that is not a tensor.
pub(super) const METADATA_KEY: &str = "__metadata__";

/// What a header says, checked.
pub(super) struct Header {
    /// Tensors in the order in which their elements stand in the file, without gaps.
    pub(super) tensors: Vec<(String, DType, Shape)>,
    pub(super) metadata: Metadata,
}

/// Reads a header that is followed by `data_len` bytes of elements.
pub(super) fn parse(text: &[u8], data_len: u64) -> Result<Header> {
    let mut raw = RawHeader::default();
    let mut json = serde_json::Deserializer::from_slice(text);
    let parsed = raw.deserialize(&mut json).and_then(|()| json.end());
    if let Err(error) = parsed {
        let place = raw.current.as_deref().map(member).unwrap_or_default();
        return Err(malformed(format!("the header is wrong: {error}")).at(place).into());
    }
    raw.infos.sort_by(|(left_name, left), (right_name, right)| {
        (left.data_offsets, left_name).cmp(&(right.data_offsets, right_name))
    });
    let mut start = 0;
    let mut tensors = Vec::with_capacity(raw.infos.len());
    for (name, info) in raw.infos {
        let (dtype, shape) =
            check(&info, start).map_err(|refusal| refusal.within(&member(&name)))?;
        start = info.data_offsets.1;
        tensors.push((name, dtype, shape));
    }
    if start as u64 != data_len {
        let message = format!("the tensors take {start} bytes, but the file has {data_len}");
        return Err(malformed(message).into());
    }
    Ok(Header { tensors, metadata: raw.metadata })
}

/// Checks one tensor, whose elements must begin at `start`.
fn check(info: &TensorInfo, start: usize) -> Result<(DType, Shape)> {
    let dtype = DType::ALL
        .into_iter()
        .find(|&dtype| format_dtype(dtype) == info.dtype)
        .ok_or_else(|| {
            let message = format!("the dtype {} is not supported", info.dtype);
            Diagnostic::error(codes::DTYPE_UNSUPPORTED, message)
        })?;
    let shape = Shape::new(info.shape.clone()).ok_or_else(|| {
        let message = "the shape has too many axes or elements";
        Diagnostic::error(codes::TENSOR_TOO_LARGE, message)
    })?;
    let (found, end) = info.data_offsets;
    if found != start {
        let message = format!("the elements begin at {found} instead of {start}");
        return Err(malformed(message).into());
    }
    let len = shape.elements() * dtype.size();
    if end.checked_sub(start) != Some(len) {
        let message = format!(
            "the bytes from {start} to {end} do not fill {dtype} of shape {shape}, which takes {len}"
        );
        return Err(Diagnostic::error(codes::TENSOR_SIZE_MISMATCH, message).into());
    }
    Ok((dtype, shape))
}

/// The dtype as the format names it.
pub(super) fn format_dtype(dtype: DType) -> FormatDtype {
    match dtype {
        DType::F16 => FormatDtype::F16,
        DType::BF16 => FormatDtype::BF16,
        DType::F32 => FormatDtype::F32,
        DType::F64 => FormatDtype::F64,
        DType::I8 => FormatDtype::I8,
        DType::I16 => FormatDtype::I16,
        DType::I32 => FormatDtype::I32,
        DType::I64 => FormatDtype::I64,
        DType::U8 => FormatDtype::U8,
        DType::U16 => FormatDtype::U16,
        DType::U32 => FormatDtype::U32,
        DType::U64 => FormatDtype::U64,
        DType::Bool => FormatDtype::BOOL,
    }
}

/// The header as it stands in the file; only names are known to be unique.
#[derive(Default)]
struct RawHeader {
    infos: Vec<(String, TensorInfo)>,
    metadata: Metadata,
    /// The key that is being read, for when its value is wrong.
    current: Option<String>,
}

impl<'de> DeserializeSeed<'de> for &mut RawHeader {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> std::result::Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut RawHeader {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensors by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        let mut seen = std::collections::BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            self.current = Some(name.clone());
            if !seen.insert(name.clone()) {
                return Err(A::Error::custom("this name stands twice"));
            }
            if name == METADATA_KEY {
                self.metadata = map.next_value()?;
            } else {
                self.infos.push((name, map.next_value()?));
            }
            self.current = None;
        }
        Ok(())
    }
}
