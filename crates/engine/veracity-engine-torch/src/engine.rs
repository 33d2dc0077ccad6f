//! Loads TorchScript models and exported programs.

use std::path::{Path, PathBuf};

use veracity_diag::{Diagnostic, Refusal, Result, codes};
use veracity_engine::{
    Device, Engine, ModelFormat, ModelSource, OptimizationLevel, Ports, Session, SessionOptions,
};

use crate::cache::Cache;
use crate::compile::Toolchain;
use crate::library::{TORCH_CUDA, TorchLibrary};
use crate::open::{load_cuda, shim_for};
use crate::search::Search;
use crate::session::{TorchSession, raised};
use crate::shim::{Failure, FailureKind, Loading, Shim};

/// Runs TorchScript and exported programs (pt2) with an installed torch.
///
/// Making one is cheap. The first model that is loaded brings torch into the process, and compiles
/// the shim when the cache does not hold it.
#[derive(Clone, Debug)]
pub struct TorchEngine {
    library: TorchLibrary,
    cache: Option<PathBuf>,
}

impl TorchEngine {
    /// An engine on this torch, with the user's cache: `VERACITY_CACHE`, else `veracity` in
    /// `XDG_CACHE_HOME`, else in `~/.cache`.
    pub fn new(library: TorchLibrary) -> Self {
        Self { library, cache: None }
    }

    /// An engine on the torch that `search` finds.
    pub fn find(search: &Search) -> Result<Self> {
        TorchLibrary::find(search).map(Self::new)
    }

    /// Keeps the compiled shim in this folder instead.
    #[must_use]
    pub fn with_cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// Brings torch and the shim into the process now rather than with the first model. May take
    /// as long as a compiler needs for the shim.
    pub fn prepare(&self) -> Result<()> {
        self.shim().map(drop)
    }

    /// Threads that torch would use in this thread for work that is not a session's run.
    pub fn ambient_threads(&self) -> Result<usize> {
        Ok(usize::try_from(self.shim()?.threads()).unwrap_or(1))
    }

    fn shim(&self) -> Result<Shim> {
        let cache = match &self.cache {
            Some(folder) => Cache::new(folder.clone()),
            None => Cache::from_environment()?,
        };
        shim_for(&self.library, &cache, &Toolchain::from_environment())
    }

    /// The GPU to use, `None` for the CPU.
    fn cuda_index(&self, shim: &Shim, device: Device) -> Result<Option<u8>> {
        match device {
            Device::Cpu => Ok(None),
            Device::Auto => Ok((has_driver()
                && self.usable_gpus(shim).is_ok_and(|count| count > 0))
            .then_some(0)),
            Device::Cuda(wanted) => {
                let count = self.usable_gpus(shim).map_err(|why| unavailable(wanted, &why))?;
                let index = u8::try_from(wanted).ok().filter(|_| wanted < count);
                let few = || unavailable(wanted, &format!("torch sees {count} GPUs"));
                Ok(Some(index.ok_or_else(few)?))
            }
        }
    }

    fn usable_gpus(&self, shim: &Shim) -> std::result::Result<u32, String> {
        // Zero when the library is not there yet; in a Python process it usually is.
        let count = shim.cuda_devices().map_err(|failure| failure.message)?;
        if count > 0 {
            return Ok(count);
        }
        if !self.library.file(TORCH_CUDA).is_file() {
            return Err("this torch was built without CUDA".to_owned());
        }
        load_cuda(&self.library)?;
        shim.cuda_devices().map_err(|failure| failure.message)
    }
}

impl Engine for TorchEngine {
    fn name(&self) -> &'static str {
        "torch"
    }

    fn version(&self) -> String {
        self.library.version().to_owned()
    }

    fn supports(&self, format: ModelFormat) -> bool {
        matches!(format, ModelFormat::TorchScript | ModelFormat::Pt2)
    }

    fn load(
        &self,
        source: &ModelSource,
        ports: &Ports,
        options: &SessionOptions,
    ) -> Result<Session> {
        if !self.supports(source.format) {
            return Err(Diagnostic::error(
                codes::ENGINE_UNSUPPORTED_FORMAT,
                format!("torch runs TorchScript and pt2, the model is {}", source.format),
            )
            .into());
        }
        let threads = threads_from(options)?;
        let shim = self.shim()?;
        let is_program = source.format == ModelFormat::Pt2;
        let device = if is_program { device_of_program(options.device)? } else { options.device };
        let cuda_index = self.cuda_index(&shim, device)?;
        let optimize = options.optimization != OptimizationLevel::None;
        let bytes = &source.bytes;
        let loading = Loading { is_program, bytes, ports, cuda_index, threads, optimize };
        let model = shim
            .load(&loading)
            .map_err(|failure| not_loaded(failure, is_program).within(&source.bytes.place()))?;
        Ok(Session::new(ports.clone(), TorchSession::new(model, ports.clone(), cuda_index)))
    }
}

fn threads_from(options: &SessionOptions) -> Result<u16> {
    options.check()?;
    Ok(u16::try_from(options.threads.get()).expect("the check allows far fewer"))
}

/// An exported program holds the devices that it was exported on; torch moves none of it.
fn device_of_program(wanted: Device) -> Result<Device> {
    match wanted {
        Device::Cpu | Device::Auto => Ok(Device::Cpu),
        Device::Cuda(_) => Err(Diagnostic::error(
            codes::DEVICE_UNAVAILABLE,
            "a pt2 model runs on the CPU here, without Python",
        )
        .hint("use the device `cpu`, or Python's `InferenceManager`")
        .into()),
    }
}

/// Whether the machine has an NVIDIA driver. Without this look every start on a machine without a
/// GPU would load torch's CUDA library, only to learn that it is of no use.
fn has_driver() -> bool {
    ["/dev/nvidiactl", "/proc/driver/nvidia/version"].iter().any(|path| Path::new(path).exists())
}

fn unavailable(wanted: u32, why: &str) -> Refusal {
    Diagnostic::error(
        codes::DEVICE_UNAVAILABLE,
        format!("{} cannot be used: {why}", Device::Cuda(wanted)),
    )
    .hint("use the device `cpu`, or `auto` to take the CPU when there is no GPU")
    .into()
}

fn not_loaded(failure: Failure, is_program: bool) -> Refusal {
    match failure.kind {
        FailureKind::SignatureMismatch => {
            return Diagnostic::error(codes::ENGINE_LOAD_FAILED, failure.message).into();
        }
        FailureKind::Unavailable => {
            return Diagnostic::error(codes::ENGINE_UNUSABLE, failure.message)
                .hint("torch 2.9 or newer runs pt2 without Python")
                .into();
        }
        FailureKind::Raised | FailureKind::OutputMismatch(_) => {}
    }
    let refused = raised(codes::ENGINE_LOAD_FAILED, "torch refused the model", &failure.message);
    if is_program && failure.message.contains("'CUDA' backend") {
        let hint = "the pt2 model was exported on a GPU and holds that: export it from tensors on \
                    the CPU, or as `jit` or `onnx`, which run on either";
        return refused.hint(hint).into();
    }
    refused.into()
}
