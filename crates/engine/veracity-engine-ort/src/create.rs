//! Makes a session of the library from a model, on the device that was asked for.
#![expect(unsafe_code, reason = "sessions are made by foreign functions")]

use std::path::Path;

use ort_sys::{OrtSession, OrtSessionOptions, os_char};
use veracity_diag::{Diagnostic, Refusal, Result, codes};
use veracity_engine::{Device, ModelBytes, SessionOptions};

use crate::api::{Called, Failure, FailureKind, Owned};
use crate::library::Library;
use crate::options::{add_cuda, cpu_options, forbid_files, leave_out, write_optimized};

/// Name of the provider that runs models on NVIDIA GPUs.
const CUDA: &str = "CUDAExecutionProvider";

/// A session and the device it runs on.
pub(crate) type Made = (Owned<OrtSession>, Device);

/// Makes a session.
pub(crate) fn create(
    library: &Library,
    model: &ModelBytes,
    options: &SessionOptions,
) -> Result<Made> {
    match options.device {
        Device::Cpu => on_cpu(library, model, options),
        Device::Cuda(device) => on_cuda(library, model, options, device)
            .map_err(|failure| forced_refusal(library, model, options, device, &failure)),
        // Whatever keeps the GPU from being used (no driver, no memory, no cuDNN), the CPU runs the
        // model too. If the model is at fault, the CPU says so.
        Device::Auto => {
            on_cuda(library, model, options, 0).or_else(|_failure| on_cpu(library, model, options))
        }
    }
}

fn on_cpu(library: &Library, model: &ModelBytes, options: &SessionOptions) -> Result<Made> {
    let made = cpu_options(library.api, options)
        .and_then(|options| open(library, model, &options))
        .map_err(|failure| load_refusal(model, &failure))?;
    Ok((made, Device::Cpu))
}

/// The graph that the library makes of a model on the CPU. It only hands it out as a file.
pub(crate) fn optimize(
    library: &Library,
    model: &ModelBytes,
    options: &SessionOptions,
    left_out: &[&str],
) -> Result<Vec<u8>> {
    let unwritable = |error: std::io::Error| {
        let message = format!("the optimised graph cannot be kept: {error}");
        Diagnostic::error(codes::FILE_UNWRITABLE, message)
    };
    let folder = tempfile::tempdir().map_err(unwritable)?;
    let path = folder.path().join("optimized.onnx");
    cpu_options(library.api, options)
        .and_then(|options| {
            write_optimized(library.api, &options, &os_path(&path)?)?;
            leave_out(library.api, &options, left_out)?;
            open(library, model, &options)
        })
        .map_err(|failure| load_refusal(model, &failure))?;
    Ok(std::fs::read(&path).map_err(unwritable)?)
}

fn on_cuda(
    library: &Library,
    model: &ModelBytes,
    options: &SessionOptions,
    device: u32,
) -> Called<Made> {
    if !library.providers.iter().any(|provider| provider == CUDA) {
        let offered = library.providers.join(", ");
        return Err(Failure::other(format!("this ONNX Runtime offers only {offered}")));
    }
    let options = cpu_options(library.api, options)?;
    add_cuda(library.api, &options, device)?;
    Ok((open(library, model, &options)?, Device::Cuda(device)))
}

/// Says who is at fault when a model could not be loaded onto a GPU: the model, if the CPU cannot
/// load it either, else the GPU.
fn forced_refusal(
    library: &Library,
    model: &ModelBytes,
    options: &SessionOptions,
    device: u32,
    failure: &Failure,
) -> Refusal {
    if let Err(refusal) = on_cpu(library, model, options) {
        return refusal;
    }
    let device = Device::Cuda(device);
    let message = format!("{device} cannot be used: {}", failure.message);
    let mut refusal = Diagnostic::error(codes::DEVICE_UNAVAILABLE, message);
    if !library.providers.iter().any(|provider| provider == CUDA) {
        refusal = refusal.hint(
            "the Python package `onnxruntime-gpu` brings an ONNX Runtime that can use NVIDIA GPUs",
        );
    }
    refusal.hint("device `cpu` runs the model without a GPU").into()
}

fn load_refusal(model: &ModelBytes, failure: &Failure) -> Refusal {
    let code = match failure.kind {
        FailureKind::Unsupported => codes::ENGINE_UNSUPPORTED,
        FailureKind::OtherShape | FailureKind::Other => codes::ENGINE_LOAD_FAILED,
    };
    Diagnostic::error(code, format!("ONNX Runtime refused the model: {}", failure.message))
        .at(model.place())
        .into()
}

fn open(
    library: &Library,
    model: &ModelBytes,
    options: &Owned<OrtSessionOptions>,
) -> Called<Owned<OrtSession>> {
    let api = library.api;
    if let ModelBytes::Memory(_) = model {
        forbid_files(api, options)?;
    }
    let (environment, options) = (library.environment(), options.as_ptr());
    // SAFETY: environment and options are live, the path is NUL-terminated, and the bytes are
    // copied before the call returns.
    unsafe {
        match model {
            ModelBytes::File(path) => {
                let path = os_path(path)?;
                Owned::new(api, api.ReleaseSession, |out| {
                    (api.CreateSession)(environment, path.as_ptr(), options, out)
                })
            }
            ModelBytes::Memory(bytes) => Owned::new(api, api.ReleaseSession, |out| {
                let (start, length) = (bytes.as_ptr().cast(), bytes.len());
                (api.CreateSessionFromArray)(environment, start, length, options, out)
            }),
        }
    }
}

/// A path as the library wants it: NUL-terminated, in the characters of the system.
fn os_path(path: &Path) -> Called<Vec<os_char>> {
    #[cfg(windows)]
    let characters = std::os::windows::ffi::OsStrExt::encode_wide(path.as_os_str());
    #[cfg(not(windows))]
    let characters =
        path.as_os_str().as_encoded_bytes().iter().map(|&byte| byte.cast_signed() as os_char);
    let mut characters: Vec<os_char> = characters.collect();
    if characters.contains(&0) {
        return Err(Failure::other("the path contains a NUL"));
    }
    characters.push(0);
    Ok(characters)
}
