//! The shim's C interface, and safe calls of it. The types mirror `shim/shim.cpp`.
#![expect(unsafe_code, reason = "the shim is C++ behind a C interface")]

use std::ffi::{CStr, CString, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::{self, NonNull};

use libloading::os::unix::Library;
use veracity_engine::{ModelBytes, Ports};
use veracity_tensor::{DType, SharedTensor};

/// What the shim must answer when asked for its version.
pub(crate) const API_VERSION: u32 = 3;

/// Why a call of the shim did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// What torch or the shim said.
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// Torch or the model raised an error.
    Raised,
    /// The result is not what was declared; the number of the output, when it is about one.
    OutputMismatch(Option<usize>),
    /// The arguments or results of `forward` are not what was declared.
    SignatureMismatch,
    /// This torch cannot run models of that format, whatever they are.
    Unavailable,
}

/// How to load a model.
pub(crate) struct Loading<'a> {
    /// Whether it is an exported program (pt2), else TorchScript.
    pub(crate) is_program: bool,
    pub(crate) bytes: &'a ModelBytes,
    pub(crate) ports: &'a Ports,
    /// Number of the GPU; `None` for the CPU.
    pub(crate) cuda_index: Option<u8>,
    pub(crate) threads: u16,
    pub(crate) optimize: bool,
}

#[repr(C)]
struct Buffer {
    data: *mut c_void,
    bytes: usize,
    dims: *const i64,
    rank: usize,
    dtype: i32,
}

#[repr(C)]
struct LoadRequest {
    path: *const c_char,
    bytes: *const u8,
    len: usize,
    cuda_index: i32,
    threads: i32,
    optimize: i32,
    inputs: usize,
    outputs: usize,
    format: i32,
}

/// A loaded model; only the shim knows what is inside.
#[repr(C)]
struct RawModel {
    _private: [u8; 0],
}

/// Functions of a loaded shim.
#[derive(Clone, Copy)]
pub(crate) struct Shim {
    last_error: unsafe extern "C" fn() -> *const c_char,
    cuda_devices: unsafe extern "C" fn(*mut i32) -> i32,
    threads: unsafe extern "C" fn() -> i32,
    load: unsafe extern "C" fn(*const LoadRequest, *mut *mut RawModel) -> i32,
    bind: unsafe extern "C" fn(
        *mut RawModel,
        *const Buffer,
        usize,
        *const Buffer,
        usize,
        *mut usize,
    ) -> i32,
    run: unsafe extern "C" fn(*mut RawModel, usize, *mut i64) -> i32,
    free: unsafe extern "C" fn(*mut RawModel),
}

impl Shim {
    /// Looks up the functions of a shim of version [`API_VERSION`], which must never be closed.
    pub(crate) fn from_library(library: &Library) -> Result<Self, libloading::Error> {
        // SAFETY: the names and types are those of `shim.cpp` in the version that the caller has
        // made sure of; nothing is called here.
        unsafe {
            Ok(Self {
                last_error: *library.get("veracity_torch_last_error")?,
                cuda_devices: *library.get("veracity_torch_cuda_devices")?,
                threads: *library.get("veracity_torch_threads")?,
                load: *library.get("veracity_torch_load")?,
                bind: *library.get("veracity_torch_bind")?,
                run: *library.get("veracity_torch_run")?,
                free: *library.get("veracity_torch_free")?,
            })
        }
    }

    /// Version of the interface that a shim has.
    pub(crate) fn api_version(library: &Library) -> Result<u32, libloading::Error> {
        // SAFETY: every version of the shim has this function with this type.
        unsafe {
            let version =
                library.get::<unsafe extern "C" fn() -> u32>("veracity_torch_api_version")?;
            Ok(version())
        }
    }

    /// How many GPUs torch can use; 0 before its CUDA library is loaded.
    pub(crate) fn cuda_devices(&self) -> Result<u32, Failure> {
        let mut count = 0;
        // SAFETY: `count` is valid for one write.
        let status = unsafe { (self.cuda_devices)(&raw mut count) };
        self.check(status, None)?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    /// Threads that torch uses inside one operator when this thread calls it outside of a run.
    pub(crate) fn threads(&self) -> i32 {
        // SAFETY: takes nothing.
        unsafe { (self.threads)() }
    }

    pub(crate) fn load(&self, loading: &Loading<'_>) -> Result<Model, Failure> {
        let (path, memory): (Option<CString>, &[u8]) = match loading.bytes {
            ModelBytes::File(path) => {
                let path = CString::new(path.as_os_str().as_bytes()).map_err(|_nul| Failure {
                    kind: FailureKind::Raised,
                    message: "the path holds a NUL character".to_owned(),
                })?;
                (Some(path), &[])
            }
            ModelBytes::Memory(bytes) => (None, bytes),
        };
        let request = LoadRequest {
            path: path.as_ref().map_or(ptr::null(), |path| path.as_ptr()),
            bytes: memory.as_ptr(),
            len: memory.len(),
            cuda_index: loading.cuda_index.map_or(-1, i32::from),
            threads: i32::from(loading.threads),
            optimize: i32::from(loading.optimize),
            inputs: loading.ports.inputs.len(),
            outputs: loading.ports.outputs.len(),
            format: i32::from(loading.is_program),
        };
        let mut model = ptr::null_mut();
        // SAFETY: the request points to memory that lives through the call.
        let status = unsafe { (self.load)(&raw const request, &raw mut model) };
        self.check(status, None)?;
        let raw = NonNull::new(model).expect("the shim sets the model when it answers 0");
        Ok(Model { shim: *self, raw, bound: Vec::new() })
    }

    /// Turns a status into a result; the message is copied only on failure.
    fn check(&self, status: i32, output: Option<usize>) -> Result<(), Failure> {
        let kind = match status {
            0 => return Ok(()),
            2 => FailureKind::OutputMismatch(output),
            3 => FailureKind::SignatureMismatch,
            4 => FailureKind::Unavailable,
            _ => FailureKind::Raised,
        };
        // SAFETY: the shim returns a NUL-terminated text that lives until its next call in this
        // thread; it is copied here.
        let text = unsafe { CStr::from_ptr((self.last_error)()) };
        Err(Failure { kind, message: text.to_string_lossy().into_owned() })
    }
}

/// A loaded module with the memory that it is bound to.
pub(crate) struct Model {
    shim: Shim,
    raw: NonNull<RawModel>,
    /// Keeps the memory of each binding alive: `raw` holds its addresses.
    bound: Vec<Box<[SharedTensor]>>,
}

// SAFETY: the shim keeps no per-thread state for a model, and `&mut self` makes calls exclusive.
unsafe impl Send for Model {}

impl Model {
    /// Binds memory; the shim numbers bindings from 0. The caller has checked it against the ports.
    pub(crate) fn bind(
        &mut self,
        inputs: &[SharedTensor],
        outputs: &[SharedTensor],
    ) -> Result<(), Failure> {
        let tensors: Box<[SharedTensor]> = inputs.iter().chain(outputs).cloned().collect();
        let dims: Vec<Vec<i64>> = tensors.iter().map(dims_of).collect();
        let buffers: Vec<Buffer> =
            tensors.iter().zip(&dims).map(|(tensor, dims)| buffer_of(tensor, dims)).collect();
        let (first, second) = buffers.split_at(inputs.len());
        let mut binding = 0;
        // SAFETY: the buffers live through the call, and what they point to as long as the model.
        let status = unsafe {
            (self.shim.bind)(
                self.raw.as_ptr(),
                first.as_ptr(),
                first.len(),
                second.as_ptr(),
                second.len(),
                &raw mut binding,
            )
        };
        self.shim.check(status, None)?;
        self.bound.push(tensors);
        Ok(())
    }

    /// Runs on a binding, reading and writing its memory.
    pub(crate) fn run(&mut self, binding: usize) -> Result<(), Failure> {
        let mut port = -1;
        // SAFETY: `raw` is a loaded model; the shim checks the number of the binding.
        let status = unsafe { (self.shim.run)(self.raw.as_ptr(), binding, &raw mut port) };
        self.shim.check(status, usize::try_from(port).ok())
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: made by `load`, freed once; the bound memory is still alive.
        unsafe { (self.shim.free)(self.raw.as_ptr()) }
    }
}

fn dims_of(tensor: &SharedTensor) -> Vec<i64> {
    let signed = |&dim: &usize| i64::try_from(dim).expect("a shape is known to be addressable");
    tensor.shape().dims().iter().map(signed).collect()
}

fn buffer_of(tensor: &SharedTensor, dims: &[i64]) -> Buffer {
    Buffer {
        data: tensor.as_mut_ptr().cast(),
        bytes: tensor.byte_len(),
        dims: dims.as_ptr(),
        rank: dims.len(),
        dtype: dtype_number(tensor.dtype()),
    }
}

/// Position in `kDtypes` of the shim.
fn dtype_number(dtype: DType) -> i32 {
    match dtype {
        DType::F16 => 0,
        DType::BF16 => 1,
        DType::F32 => 2,
        DType::F64 => 3,
        DType::I8 => 4,
        DType::I16 => 5,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::U8 => 8,
        DType::U16 => 9,
        DType::U32 => 10,
        DType::U64 => 11,
        DType::Bool => 12,
    }
}
