//! How a session is told to run a model.
#![expect(unsafe_code, reason = "options are set through foreign functions")]

use std::ffi::{CStr, CString, c_int};

use ort_sys::{ExecutionMode, GraphOptimizationLevel, OrtSessionOptions, os_char};
use veracity_engine::{OptimizationLevel, SessionOptions};

use crate::api::{Api, Called, Failure, Owned, check};

/// The options of the library for a session on the CPU.
///
/// Nodes run one after the other (there is no second thread pool), and only the threads inside an
/// operator are the caller's choice. Memory patterns and the arena stay on, as the library has
/// them: shapes are fixed here, so a run takes one block of memory that is planned beforehand.
pub(crate) fn cpu_options(api: Api, options: &SessionOptions) -> Called<Owned<OrtSessionOptions>> {
    let threads = c_int::try_from(options.threads.get()).unwrap_or(c_int::MAX);
    // SAFETY: the options are live during the calls.
    unsafe {
        let made =
            Owned::new(api, api.ReleaseSessionOptions, |out| (api.CreateSessionOptions)(out))?;
        let pointer = made.as_ptr();
        check(api, (api.SetIntraOpNumThreads)(pointer, threads))?;
        check(api, (api.SetInterOpNumThreads)(pointer, 1))?;
        let sequential = ExecutionMode::ORT_SEQUENTIAL;
        check(api, (api.SetSessionExecutionMode)(pointer, sequential))?;
        let level = level_from(options.optimization);
        check(api, (api.SetSessionGraphOptimizationLevel)(pointer, level))?;
        // The library knows a second format, and takes a file for it by its looks.
        set(api, &made, c"session.load_model_format", c"ONNX")?;
        if threads == 1 {
            // The calling thread does all the work. Nothing waits for it, so nothing should be set
            // up to burn a core while waiting.
            set(api, &made, c"session.intra_op.allow_spinning", c"0")?;
        }
        Ok(made)
    }
}

/// Keeps a model in memory from reading files. The library would look for its external data in the
/// working directory; this sends it to a folder that cannot be one.
pub(crate) fn forbid_files(api: Api, options: &Owned<OrtSessionOptions>) -> Called<()> {
    let nowhere = if cfg!(windows) { c"NUL" } else { c"/dev/null" };
    set(api, options, c"session.model_external_initializers_file_folder_path", nowhere)
}

/// Adds a GPU to the options: what it can run is run there, the rest on the CPU.
///
/// TF32 is off: the library would round the factors of float32 products to 10 bits by default.
pub(crate) fn add_cuda(api: Api, options: &Owned<OrtSessionOptions>, device: u32) -> Called<()> {
    let device = CString::new(device.to_string()).expect("digits contain no NUL");
    let keys = [c"device_id".as_ptr(), c"use_tf32".as_ptr()];
    let values = [device.as_ptr(), c"0".as_ptr()];
    // SAFETY: the arrays hold as many live texts each, and the provider's options are copied.
    unsafe {
        let cuda = Owned::new(api, api.ReleaseCUDAProviderOptions, |out| {
            (api.CreateCUDAProviderOptions)(out)
        })?;
        let update = api.UpdateCUDAProviderOptions;
        check(api, update(cuda.as_ptr(), keys.as_ptr(), values.as_ptr(), keys.len()))?;
        let append = api.SessionOptionsAppendExecutionProvider_CUDA_V2;
        check(api, append(options.as_ptr(), cuda.as_ptr()))
    }
}

/// Lets the library write the graph that it made of a model to a file.
pub(crate) fn write_optimized(
    api: Api,
    options: &Owned<OrtSessionOptions>,
    path: &[os_char],
) -> Called<()> {
    // SAFETY: the options are live, and the path is NUL-terminated and copied.
    check(api, unsafe { (api.SetOptimizedModelFilePath)(options.as_ptr(), path.as_ptr()) })
}

/// Switches optimisers off by name. The library takes names that it does not have without a word.
pub(crate) fn leave_out(
    api: Api,
    options: &Owned<OrtSessionOptions>,
    names: &[&str],
) -> Called<()> {
    if names.is_empty() {
        return Ok(());
    }
    let names = CString::new(names.join(";"))
        .map_err(|error| Failure::other(format!("the name of an optimiser: {error}")))?;
    set(api, options, c"optimization.disable_specified_optimizers", &names)
}

fn set(api: Api, options: &Owned<OrtSessionOptions>, key: &CStr, value: &CStr) -> Called<()> {
    // SAFETY: the options are live and the texts NUL-terminated.
    check(api, unsafe {
        (api.AddSessionConfigEntry)(options.as_ptr(), key.as_ptr(), value.as_ptr())
    })
}

fn level_from(level: OptimizationLevel) -> GraphOptimizationLevel {
    match level {
        OptimizationLevel::None => GraphOptimizationLevel::ORT_DISABLE_ALL,
        OptimizationLevel::Basic => GraphOptimizationLevel::ORT_ENABLE_BASIC,
        OptimizationLevel::Extended => GraphOptimizationLevel::ORT_ENABLE_EXTENDED,
        OptimizationLevel::All => GraphOptimizationLevel::ORT_ENABLE_ALL,
    }
}
