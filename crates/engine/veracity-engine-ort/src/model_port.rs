//! What a loaded model says about its inputs and outputs.
#![expect(unsafe_code, reason = "the model is asked through foreign functions")]

use std::ffi::{CString, c_char};
use std::fmt;

use ort_sys::{ONNXType, OrtAllocator, OrtSession, OrtStatusPtr, OrtTypeInfo};
use veracity_tensor::{DType, Shape};

use crate::api::{Api, Called, Owned, check, owned_text};
use crate::dtype::dtype_from_onnx;

/// One input or output of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelPort {
    /// As the library spells it, ready for calls.
    pub(crate) name: CString,
    /// What it carries.
    pub(crate) kind: Kind,
}

/// What a port carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A tensor.
    Tensor {
        /// Type of the elements; `None` when bundles do not have it.
        dtype: Option<DType>,
        /// Sizes of the axes, `None` where any size goes. Empty for a scalar, and also for a tensor
        /// of unknown rank: the library does not tell the two apart.
        dims: Vec<Option<usize>>,
    },
    /// A sequence, a map or anything else.
    Other,
}

/// Everything that a model takes and gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelPorts {
    /// Must be fed.
    pub(crate) inputs: Vec<ModelPort>,
    /// May be fed: weights that are also listed as inputs.
    pub(crate) optional_inputs: Vec<ModelPort>,
    /// Can be fetched.
    pub(crate) outputs: Vec<ModelPort>,
}

impl Kind {
    /// Whether memory of that dtype and shape fits. An empty `dims` fits any shape: the library
    /// itself takes a scalar for a tensor of unknown rank and runs it on any.
    pub(crate) fn fits(&self, dtype: DType, shape: &Shape) -> bool {
        match self {
            Self::Other => false,
            Self::Tensor { dtype: own, dims } => {
                let same_sizes = |dims: &[Option<usize>]| {
                    dims.len() == shape.rank()
                        && dims
                            .iter()
                            .zip(shape.dims())
                            .all(|(own, &size)| own.is_none_or(|own| own == size))
                };
                *own == Some(dtype) && (dims.is_empty() || same_sizes(dims))
            }
        }
    }
}

impl fmt::Display for Kind {
    /// `float32 [1, ?]`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Tensor { dtype, dims } = self else {
            return f.write_str("not a tensor");
        };
        f.write_str(dtype.map_or("of a dtype that bundles do not have", DType::name))?;
        let sizes: Vec<_> =
            dims.iter().map(|dim| dim.map_or("?".to_owned(), |dim| dim.to_string())).collect();
        write!(f, " [{}]", sizes.join(", "))
    }
}

type CountFn = unsafe extern "system" fn(*const OrtSession, *mut usize) -> OrtStatusPtr;
type NameFn = unsafe extern "system" fn(
    *const OrtSession,
    usize,
    *mut OrtAllocator,
    *mut *mut c_char,
) -> OrtStatusPtr;
type TypeFn =
    unsafe extern "system" fn(*const OrtSession, usize, *mut *mut OrtTypeInfo) -> OrtStatusPtr;

impl ModelPorts {
    /// Asks a loaded model.
    pub(crate) fn of(api: Api, session: &Owned<OrtSession>) -> Called<Self> {
        let read = |count, name, kind| read_ports(api, session, count, name, kind);
        Ok(Self {
            inputs: read(
                api.SessionGetInputCount,
                api.SessionGetInputName,
                api.SessionGetInputTypeInfo,
            )?,
            optional_inputs: read(
                api.SessionGetOverridableInitializerCount,
                api.SessionGetOverridableInitializerName,
                api.SessionGetOverridableInitializerTypeInfo,
            )?,
            outputs: read(
                api.SessionGetOutputCount,
                api.SessionGetOutputName,
                api.SessionGetOutputTypeInfo,
            )?,
        })
    }
}

fn read_ports(
    api: Api,
    session: &Owned<OrtSession>,
    count: CountFn,
    name: NameFn,
    kind: TypeFn,
) -> Called<Vec<ModelPort>> {
    let session = session.as_ptr();
    let mut ports = 0;
    // SAFETY: the session is live, indices are below the count, and what the functions make is
    // freed by its own release function.
    unsafe {
        check(api, count(session, &raw mut ports))?;
        (0..ports)
            .map(|index| {
                let info = Owned::new(api, api.ReleaseTypeInfo, |out| kind(session, index, out))?;
                Ok(ModelPort {
                    name: owned_text(api, |allocator, out| name(session, index, allocator, out))?,
                    kind: read_kind(api, &info)?,
                })
            })
            .collect()
    }
}

fn read_kind(api: Api, info: &Owned<OrtTypeInfo>) -> Called<Kind> {
    // The enums of C are read as numbers: a newer library may answer one that Rust's enum lacks.
    let mut kind = 0_i32;
    let mut element = 0_i32;
    let mut rank = 0;
    let mut tensor = std::ptr::null();
    // SAFETY: the info is live, and what it is cast to belongs to it; the out parameters are as
    // large as the C enums, and `sizes` has room for `rank` numbers.
    unsafe {
        check(api, (api.GetOnnxTypeFromTypeInfo)(info.as_ptr(), (&raw mut kind).cast()))?;
        if kind != ONNXType::ONNX_TYPE_TENSOR as i32 {
            return Ok(Kind::Other);
        }
        check(api, (api.CastTypeInfoToTensorInfo)(info.as_ptr(), &raw mut tensor))?;
        check(api, (api.GetTensorElementType)(tensor, (&raw mut element).cast()))?;
        check(api, (api.GetDimensionsCount)(tensor, &raw mut rank))?;
        let mut sizes = vec![0_i64; rank];
        check(api, (api.GetDimensions)(tensor, sizes.as_mut_ptr(), rank))?;
        // A negative size stands for one that is known only when the model runs.
        let dims = sizes.into_iter().map(|size| usize::try_from(size).ok()).collect();
        Ok(Kind::Tensor { dtype: dtype_from_onnx(element), dims })
    }
}
