//! Weights that lie in files of their own.

#[cfg(test)]
mod tests;

use veracity_diag::{Diagnostic, Place, Refusal, Reporter, Result, codes};

use crate::Model;
use crate::generated::onnx::tensor_proto::{DataLocation, DataType};
use crate::generated::onnx::{StringStringEntryProto, TensorProto};
use crate::walk::Parts;

/// A piece of a file that holds the elements of one tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalFile {
    /// Relative path, seen from the folder of the model; it does not lead out of that folder by
    /// its text. Symbolic links are for the caller to check.
    pub location: String,
    /// First byte.
    pub offset: u64,
    /// Bytes; `None` when the model gives none and the dtype does not tell. `offset + length` is
    /// known not to overflow.
    pub length: Option<u64>,
    /// Name of the tensor; empty for one in an attribute.
    pub tensor: String,
}

impl Model {
    /// Every tensor whose elements lie in another file, wherever in the model it is. Refused, with
    /// all reasons, when a location leads out of the model's folder or a size cannot be right.
    pub fn external_data(&self) -> Result<Vec<ExternalFile>> {
        let mut reporter = Reporter::new();
        let files = external_tensors(self)
            .filter_map(|tensor| {
                let place = Place { node: tensor.name.clone(), ..self.place() };
                reporter.absorb(read_entry(tensor).map_err(|problem| problem.within(&place)))
            })
            .collect();
        reporter.finish()?;
        Ok(files)
    }

    /// Whether weights lie in other files.
    pub(crate) fn has_external_data(&self) -> bool {
        external_tensors(self).next().is_some()
    }
}

fn external_tensors(model: &Model) -> impl Iterator<Item = &TensorProto> {
    let external = i32::from(DataLocation::External);
    let tensors = Parts::of(model.proto()).tensors.into_iter();
    tensors.filter(move |tensor| tensor.data_location == Some(external))
}

fn read_entry(tensor: &TensorProto) -> Result<ExternalFile> {
    let value = |key| {
        tensor
            .external_data
            .iter()
            .find(|entry| entry.key() == key)
            .map(StringStringEntryProto::value)
    };
    let number = |key| match value(key).map(str::parse::<u64>) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(problem(format!("its {key} {:?} is not a size", value(key)))),
    };
    let location = value("location").ok_or_else(|| problem("it does not say in which file"))?;
    check_location(location)?;
    let offset = number("offset")?.unwrap_or(0);
    let length = check_length(tensor, number("length")?)?;
    if offset.checked_add(length.unwrap_or(0)).is_none() {
        return Err(problem(format!("its end is beyond any file: offset {offset}")));
    }
    Ok(ExternalFile {
        location: location.to_owned(),
        offset,
        length,
        tensor: tensor.name().to_owned(),
    })
}

fn problem(what: impl AsRef<str>) -> Refusal {
    let message = format!("a tensor lies in another file, but {}", what.as_ref());
    Diagnostic::error(codes::ONNX_EXTERNAL_DATA, message).into()
}

/// Refuses a path that is not plainly below the folder it starts in. Judged by its text alone and
/// the same on every system, so that a bundle checked here is safe elsewhere.
pub(crate) fn check_location(location: &str) -> Result<()> {
    let refuse = |code, what| {
        let message = format!("the external data file {location:?} {what}");
        Err(Diagnostic::error(code, message).into())
    };
    if location.is_empty() || location.contains('\0') {
        return refuse(codes::ONNX_EXTERNAL_DATA, "has no usable name");
    }
    let drive = location.as_bytes().get(1) == Some(&b':');
    if location.starts_with(['/', '\\']) || drive {
        return refuse(codes::PATH_ABSOLUTE, "is an absolute path");
    }
    if location.split(['/', '\\']).any(|part| part == "..") {
        return refuse(codes::PATH_LEAVES_BUNDLE, "leads out of the folder of the model");
    }
    if location.contains('\\') || location.ends_with('/') {
        return refuse(codes::ONNX_EXTERNAL_DATA, "is not a plain path with forward slashes");
    }
    Ok(())
}

/// The length that dtype and dims ask for, which must be the one that is written, if one is.
fn check_length(tensor: &TensorProto, written: Option<u64>) -> Result<Option<u64>> {
    let Some(bits) = element_bits(tensor.data_type()) else {
        return match DataType::try_from(tensor.data_type()) {
            Ok(DataType::String | DataType::Undefined) => {
                Err(problem("its elements have no fixed size"))
            }
            _ => Ok(written),
        };
    };
    let needed = tensor
        .dims
        .iter()
        .try_fold(1_u64, |product, &dim| product.checked_mul(u64::try_from(dim).ok()?))
        .and_then(|elements| elements.checked_mul(bits))
        .map(|bits| bits.div_ceil(8))
        .ok_or_else(|| problem(format!("its shape {:?} is impossible", tensor.dims)))?;
    match written {
        Some(written) if written != needed => {
            Err(problem(format!("its length is {written} where its shape takes {needed} bytes")))
        }
        _ => Ok(Some(needed)),
    }
}

/// Bits of an element; `None` when it has no fixed size or when the type is newer than this code.
fn element_bits(elem_type: i32) -> Option<u64> {
    Some(match DataType::try_from(elem_type).ok()? {
        DataType::Int2 | DataType::Uint2 => 2,
        DataType::Int4 | DataType::Uint4 | DataType::Float4e2m1 => 4,
        DataType::Uint8
        | DataType::Int8
        | DataType::Bool
        | DataType::Float8e4m3fn
        | DataType::Float8e4m3fnuz
        | DataType::Float8e5m2
        | DataType::Float8e5m2fnuz
        | DataType::Float8e8m0 => 8,
        DataType::Uint16 | DataType::Int16 | DataType::Float16 | DataType::Bfloat16 => 16,
        DataType::Float | DataType::Int32 | DataType::Uint32 => 32,
        DataType::Double | DataType::Int64 | DataType::Uint64 | DataType::Complex64 => 64,
        DataType::Complex128 => 128,
        // Text has no size; how six bits are packed is not this crate's to say.
        DataType::Undefined | DataType::String | DataType::Float6e2m3 | DataType::Float6e3m2 => {
            return None;
        }
    })
}
