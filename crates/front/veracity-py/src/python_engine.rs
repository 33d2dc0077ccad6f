//! Runs TorchScript and pt2 models with the torch of this Python.
//!
//! It needs no compiler and runs what only Python can load, at the price of Python's lock and of a
//! copy of every input and output. Each run allocates.
#![expect(unsafe_code, reason = "the trait promises exclusive memory to its caller")]

use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};
use veracity::engine::{
    Engine, Model, ModelBytes, ModelFormat, ModelSource, Port, Ports, Session, SessionOptions,
};
use veracity::tensor::SharedTensor;
use veracity::{
    Code, Diagnostic, EngineChoice, EngineProvider, EngineSearch, Engines, Place, Refusal, codes,
};

use crate::input::{Input, Library};
use crate::output::object_from_bytes;

/// Engines of which some formats are run by the torch of this Python.
pub(crate) struct PythonEngines {
    others: Engines,
    formats: &'static [ModelFormat],
    torch: OnceLock<veracity::Result<Arc<dyn Engine>>>,
}

impl PythonEngines {
    /// What only Python can load is run by Python.
    pub(crate) fn for_running(choice: EngineChoice, search: EngineSearch) -> Self {
        Self::new(choice, search, &[ModelFormat::Pt2])
    }

    /// Whatever torch can run is run by Python: where models are made, torch is there, and a
    /// compiler may not be.
    pub(crate) fn for_proving(search: EngineSearch) -> Self {
        let formats = &[ModelFormat::Pt2, ModelFormat::TorchScript];
        Self::new(EngineChoice::Auto, search, formats)
    }

    fn new(choice: EngineChoice, search: EngineSearch, formats: &'static [ModelFormat]) -> Self {
        Self { others: Engines::new(choice, search), formats, torch: OnceLock::new() }
    }
}

impl EngineProvider for PythonEngines {
    fn engine_for(&self, format: ModelFormat) -> veracity::Result<Arc<dyn Engine>> {
        if !self.formats.contains(&format) {
            return self.others.engine_for(format);
        }
        let find = || PythonTorch::find().map(|engine| Arc::new(engine) as Arc<dyn Engine>);
        self.torch.get_or_init(find).clone()
    }
}

/// The torch of this Python.
struct PythonTorch {
    /// `veracity.export.loading.load_for_engine`.
    load: Py<PyAny>,
    version: String,
}

impl PythonTorch {
    fn find() -> veracity::Result<Self> {
        Python::attach(|py| {
            let find = || -> PyResult<Self> {
                let version = py.import("torch")?.getattr("__version__")?.str()?.to_string();
                let load = py.import("veracity.export.loading")?.getattr("load_for_engine")?;
                Ok(Self { load: load.unbind(), version })
            };
            find().map_err(|error| {
                let refusal = raised(py, codes::ENGINE_NOT_FOUND, "torch is needed", &error);
                refusal.hint("pip install torch").into()
            })
        })
    }
}

impl Engine for PythonTorch {
    fn name(&self) -> &'static str {
        "torch (python)"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn supports(&self, format: ModelFormat) -> bool {
        format != ModelFormat::Onnx
    }

    fn load(
        &self,
        source: &ModelSource,
        ports: &Ports,
        options: &SessionOptions,
    ) -> veracity::Result<Session> {
        options.check()?;
        let backend = match source.format {
            ModelFormat::TorchScript => "jit",
            ModelFormat::Pt2 => "pt2",
            ModelFormat::Onnx => return Err(unsupported(source.format)),
        };
        Python::attach(|py| {
            let load = || -> PyResult<(Py<PyAny>, String)> {
                let file = match &source.bytes {
                    ModelBytes::File(path) => path.into_pyobject(py)?.into_any(),
                    ModelBytes::Memory(bytes) => PyBytes::new(py, bytes).into_any(),
                };
                let device = options.device.to_string();
                let arguments = (backend, file, device, options.threads.get());
                self.load.bind(py).call1(arguments)?.extract()
            };
            let (call, device) = load().map_err(|error| {
                raised(py, codes::ENGINE_LOAD_FAILED, "torch refused the model", &error)
                    .at(source.bytes.place())
            })?;
            let model = PythonModel { call, ports: ports.clone(), bindings: Vec::new(), device };
            Ok(Session::new(ports.clone(), model))
        })
    }
}

fn unsupported(format: ModelFormat) -> Refusal {
    let message = format!("torch runs TorchScript and pt2, the model is {format}");
    Diagnostic::error(codes::ENGINE_UNSUPPORTED_FORMAT, message).into()
}

/// One loaded model.
struct PythonModel {
    /// From a list of tensors to a list of tensors on the CPU.
    call: Py<PyAny>,
    ports: Ports,
    bindings: Vec<(Vec<SharedTensor>, Vec<SharedTensor>)>,
    device: String,
}

impl Model for PythonModel {
    fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> veracity::Result<()> {
        self.bindings.push((inputs.to_vec(), outputs.to_vec()));
        Ok(())
    }

    unsafe fn run(&mut self, binding: usize) -> veracity::Result<()> {
        let (inputs, outputs) = &self.bindings[binding];
        Python::attach(|py| {
            let run = || -> PyResult<Vec<Bound<'_, PyAny>>> {
                let given = PyList::empty(py);
                for input in inputs {
                    // SAFETY: the caller keeps everybody else from writing the inputs.
                    let bytes = unsafe { input.bytes() };
                    let (dtype, dims) = (input.dtype(), input.shape().dims());
                    given.append(object_from_bytes(py, Library::Torch, dtype, dims, bytes)?)?;
                }
                self.call.bind(py).call1((given,))?.extract()
            };
            let results = run().map_err(|error| {
                raised(py, codes::ENGINE_RUN_FAILED, "the model raised an error", &error)
            })?;
            if results.len() != outputs.len() {
                let message = format!("{} outputs, not {}", results.len(), outputs.len());
                return Err(Diagnostic::error(codes::ENGINE_OUTPUT_MISMATCH, message).into());
            }
            for ((port, result), output) in self.ports.outputs.iter().zip(&results).zip(outputs) {
                copy_output(port, result, output)?;
            }
            Ok(())
        })
    }

    fn device(&self) -> String {
        self.device.clone()
    }
}

fn copy_output(
    port: &Port,
    result: &Bound<'_, PyAny>,
    output: &SharedTensor,
) -> veracity::Result<()> {
    let place = Place { port: Some(port.name.clone()), ..Place::default() };
    let mismatch =
        |message| Diagnostic::error(codes::ENGINE_OUTPUT_MISMATCH, message).at(place.clone());
    let value = Input::from_object(&port.name, result)
        .map_err(|error| mismatch(format!("no tensor: {}", brief(result.py(), &error))))?;
    if value.dtype != port.dtype || value.dims != port.shape.dims() {
        let found = format!("{} {:?}, not {} {}", value.dtype, value.dims, port.dtype, port.shape);
        return Err(mismatch(found).into());
    }
    // SAFETY: the caller of `run` keeps everybody else away from the outputs.
    let bytes = unsafe { output.bytes_mut() };
    value.view()?.copy_elements(0, bytes);
    Ok(())
}

fn raised(py: Python<'_>, code: Code, what: &str, error: &PyErr) -> Diagnostic {
    Diagnostic::error(code, format!("{what}: {}", brief(py, error)))
}

/// The kind and the first line of what was raised.
fn brief(py: Python<'_>, error: &PyErr) -> String {
    let kind = error.get_type(py).name().map_or_else(|_| "Error".into(), |name| name.to_string());
    let text = error.value(py).to_string();
    format!("{kind}: {}", text.lines().next().unwrap_or_default())
}
