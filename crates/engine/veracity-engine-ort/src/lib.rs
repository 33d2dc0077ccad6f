//! ONNX Runtime as an engine.
//!
//! The library is found and opened at run time ([`OrtEngine::find`]): nothing here is linked to it,
//! and a program that never looks for it starts without it. Any ONNX Runtime from 1.20 on will do,
//! such as the one in the Python package `onnxruntime`. The library is called through its C
//! interface alone; its log goes nowhere and its telemetry is off.

mod api;
mod bound;
mod check;
mod create;
mod dtype;
mod file_name;
mod library;
mod model_port;
mod options;
mod search;
mod session;
#[cfg(test)]
#[path = "../tests/support/library.rs"]
mod test_library;

use std::path::Path;
use std::sync::Arc;

use ort_sys::OrtSession;
pub use search::Search;
use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{
    Device, Engine, Evaluation, ModelBytes, ModelFormat, ModelSource, Ports, Session,
    SessionOptions,
};
use veracity_tensor::Tensor;

use crate::api::{Failure, Owned};
use crate::bound::{Passing, Runner};
use crate::check::PortNames;
use crate::library::Library;
use crate::model_port::ModelPorts;
use crate::session::OrtModel;

/// ONNX Runtime, found and loaded. A clone is the same library.
#[derive(Clone)]
pub struct OrtEngine {
    library: Arc<Library>,
}

impl OrtEngine {
    /// Finds and loads the library: where the option says, where `VERACITY_ORT_LIBRARY` or
    /// `ORT_DYLIB_PATH` says, in the `onnxruntime` package of the active Python environment, or
    /// where the dynamic loader finds it, in that order.
    ///
    /// A process has one ONNX Runtime: looking again finds the same one or is refused.
    pub fn find(search: &Search) -> Result<Self> {
        let location = search.locate(&|variable| std::env::var_os(variable))?;
        Ok(Self { library: Library::load(location)? })
    }

    /// The file that was loaded; a plain name when the dynamic loader found it.
    pub fn library(&self) -> &Path {
        &self.library.path
    }

    /// What the library can run models on, by its own names, best first.
    pub fn providers(&self) -> &[String] {
        &self.library.providers
    }

    /// Holds a session against the declared ports.
    fn examine(&self, session: Owned<OrtSession>, ports: &Ports) -> Result<(PortNames, Runner)> {
        let unreadable = |failure: Failure| {
            let message = format!("ONNX Runtime does not describe the model: {}", failure.message);
            Diagnostic::error(codes::ENGINE_LOAD_FAILED, message)
        };
        let model = ModelPorts::of(self.library.api, &session).map_err(unreadable)?;
        let names = check::names_for_calls(ports, &model)?;
        let runner = Runner::new(self.library.api, session).map_err(unreadable)?;
        Ok((names, runner))
    }
}

impl Engine for OrtEngine {
    fn name(&self) -> &'static str {
        "ort"
    }

    fn version(&self) -> String {
        self.library.version.clone()
    }

    fn supports(&self, format: ModelFormat) -> bool {
        format == ModelFormat::Onnx
    }

    fn load(
        &self,
        source: &ModelSource,
        ports: &Ports,
        options: &SessionOptions,
    ) -> Result<Session> {
        check_request(source, options)?;
        let place = source.bytes.place();
        let (session, device) = create::create(&self.library, &source.bytes, options)?;
        let on_cpu = device == Device::Cpu;
        let passing = if on_cpu { Passing::Once } else { Passing::EveryRun };
        let (names, runner) = self.examine(session, ports).map_err(|r| r.within(&place))?;
        let model = OrtModel::new(runner, names, passing, device.to_string(), place);
        Ok(Session::new(ports.clone(), model))
    }

    fn evaluate(
        &self,
        source: &ModelSource,
        inputs: &[(&str, &Tensor)],
        outputs: &[&str],
        options: &SessionOptions,
    ) -> Result<Vec<Option<Tensor>>> {
        let found = self.evaluate_each(source, &[Evaluation { inputs, outputs }], options)?;
        Ok(found.into_iter().flatten().collect())
    }

    fn evaluate_each(
        &self,
        source: &ModelSource,
        runs: &[Evaluation<'_>],
        options: &SessionOptions,
    ) -> Result<Vec<Vec<Option<Tensor>>>> {
        check_request(source, options)?;
        let (session, _) = create::create(&self.library, &source.bytes, options)?;
        let failed = |failure: Failure| {
            let message = format!("ONNX Runtime could not run the model: {}", failure.message);
            Diagnostic::error(codes::ENGINE_RUN_FAILED, message).at(source.bytes.place())
        };
        let runner = Runner::new(self.library.api, session).map_err(failed)?;
        let fetch =
            |run: &Evaluation<'_>| Ok(runner.fetch(run.inputs, run.outputs).map_err(failed)?);
        runs.iter().map(fetch).collect()
    }

    fn optimized(
        &self,
        source: &ModelSource,
        options: &SessionOptions,
        left_out: &[&str],
    ) -> Result<Vec<u8>> {
        check_request(source, options)?;
        create::optimize(&self.library, &source.bytes, options, left_out)
    }
}

impl std::fmt::Debug for OrtEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OrtEngine({} from {})", self.library.version, self.library.path.display())
    }
}

/// Refuses what no library needs to be asked about.
fn check_request(source: &ModelSource, options: &SessionOptions) -> Result<()> {
    if source.format != ModelFormat::Onnx {
        let message = format!("ONNX Runtime does not run {} models", source.format);
        return Err(Diagnostic::error(codes::ENGINE_UNSUPPORTED_FORMAT, message)
            .at(source.bytes.place())
            .into());
    }
    options.check()?;
    match &source.bytes {
        ModelBytes::File(path) if !path.is_file() => {
            Err(Diagnostic::error(codes::FILE_NOT_FOUND, "the model file does not exist")
                .at(source.bytes.place())
                .into())
        }
        _ => Ok(()),
    }
}
