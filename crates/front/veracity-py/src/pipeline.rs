//! A loaded bundle, for Python.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyList, PyMapping, PyString};
use veracity::proof::{Demand, load_proved};
use veracity::results::Tolerance;
use veracity::spec::ReorderMap;
use veracity::tensor::{DType, Tensor};
use veracity::{
    Bundle, Diagnostic, EngineSearch, Fusion, OutputId, PlannedPort, RunOptions, Runner, Target,
    codes,
};

use crate::errors::{OrRaise, list_from_diagnostics};
use crate::input::{Input, Library};
use crate::options::{engine_choice, invalid, session_options};
use crate::output::{object_from_bytes, object_from_tensor};
use crate::python_engine::PythonEngines;

/// A loaded bundle. Python threads may share it: steps run one after the other.
#[pyclass(frozen, module = "veracity._native")]
pub(crate) struct Pipeline {
    runner: Mutex<Runner>,
    targets: HashMap<String, Target>,
    outputs: Vec<OutputPort>,
    #[pyo3(get)]
    input_keys: Vec<String>,
    #[pyo3(get)]
    output_keys: Vec<String>,
    #[pyo3(get)]
    feedback_keys: Vec<String>,
    #[pyo3(get)]
    spec_json: String,
    #[pyo3(get)]
    sessions_json: String,
    warnings: Vec<Diagnostic>,
}

/// What is asked of a proof, as Python gives it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    accept_conditional: bool,
    ceiling: Option<Tolerance>,
    prove: bool,
}

impl Wanted {
    fn demand(json: &str) -> veracity::Result<Demand> {
        let wanted: Self =
            serde_json::from_str(json).map_err(|error| invalid(error.to_string()))?;
        let Self { accept_conditional, ceiling, prove } = wanted;
        Ok(Demand { accept_conditional, ceiling, prove })
    }
}

struct OutputPort {
    key: Py<PyString>,
    dtype: DType,
    dims: Vec<usize>,
}

#[pymethods]
impl Pipeline {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "PyO3 hands arguments over by value")]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    #[pyo3(signature = (path, *, engine, device, threads, fuse, demand_json, reorder, site_packages))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        engine: &str,
        device: &str,
        threads: usize,
        fuse: bool,
        demand_json: Option<&str>,
        reorder: Option<PathBuf>,
        site_packages: Vec<PathBuf>,
    ) -> PyResult<Self> {
        let options = options_from_names(device, threads, fuse).or_raise(py)?;
        let map = reorder.map(|path| ReorderMap::open(&path)).transpose().or_raise(py)?;
        let options = options.with_reorder(map.unwrap_or_default());
        let demand = demand_json.map(Wanted::demand).transpose().or_raise(py)?;
        let choice = engine_choice(engine).or_raise(py)?;
        let search = EngineSearch { site_packages, ..EngineSearch::default() };
        let load = || -> veracity::Result<(Bundle, Runner)> {
            let bundle = Bundle::open(&path)?;
            let engines = PythonEngines::for_running(choice, search);
            let runner = match &demand {
                Some(demand) => load_proved(&bundle, &engines, &options, demand)?,
                None => Runner::load(&bundle, &engines, &options)?,
            };
            Ok((bundle, runner))
        };
        let (bundle, runner) = py.detach(load).or_raise(py)?;
        let spec_json = json_of(&options.reorder.seen_by_caller(bundle.spec()))?;
        let sessions_json = json_of(&runner.sessions().collect::<Vec<_>>())?;
        Ok(Self::from_runner(py, runner, spec_json, sessions_json))
    }

    /// One step.
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyDict>> {
        // Looking at the inputs may run any Python code, so it comes before the lock.
        let given = Given::from_mapping(inputs)?;
        let mut runner = self.lock(py);
        let is_state = |key: &str| matches!(self.targets.get(key), Some(Target::State(_)));
        let overrides = given.inputs.iter().any(|(key, _)| is_state(key));
        let saved = overrides.then(|| runner.save_states());
        let result = self.run_locked(py, &mut runner, &given);
        if result.is_err() {
            // A refused call must leave nothing behind that a later one could mistake for its own.
            runner.forget_inputs();
            if let Some(saved) = saved {
                runner.restore_states(&saved);
            }
        }
        result
    }

    /// Puts the state back to its initial values.
    fn reset(&self, py: Python<'_>) {
        self.lock(py).reset();
    }

    /// Gives one input in advance, or replaces a state.
    fn set_input(&self, py: Python<'_>, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let input = Input::from_object(key, value)?;
        self.write(&mut self.lock(py), key, &input).or_raise(py)
    }

    /// Made-up values for every input.
    fn mock_inputs<'py>(&self, py: Python<'py>, seed: u64) -> PyResult<Bound<'py, PyDict>> {
        let values = self.lock(py).mock_inputs(seed);
        let inputs = PyDict::new(py);
        for key in &self.input_keys {
            inputs.set_item(key, object_from_tensor(py, &values[key])?)?;
        }
        Ok(inputs)
    }

    /// Zeros for every input.
    fn zero_inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let inputs = PyDict::new(py);
        for (key, port) in self.input_keys.iter().zip(self.lock(py).inputs()) {
            let zeros = Tensor::zeros(port.dtype, port.shape.clone());
            inputs.set_item(key, object_from_tensor(py, &zeros)?)?;
        }
        Ok(inputs)
    }

    /// A copy of the value at an input of a node.
    fn input_value<'py>(
        &self,
        py: Python<'py>,
        node: &str,
        port: &str,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(tensor) = self.lock(py).input_value(node, port) else {
            let message = format!("there is no value at \"{node}/{port}\" to read");
            let refusal = Diagnostic::error(codes::VALUE_UNREADABLE, message)
                .hint("values of the last step need a step; merged nodes hide their inner values");
            return Err(refusal.into()).or_raise(py);
        };
        object_from_tensor(py, &tensor)
    }

    /// A copy of an output of the last step, by its position.
    fn output_value<'py>(&self, py: Python<'py>, index: usize) -> PyResult<Bound<'py, PyAny>> {
        let tensor = self.lock(py).output_tensor(OutputId(index)).or_raise(py)?;
        object_from_tensor(py, &tensor)
    }

    /// What was noticed while loading.
    #[getter]
    fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list_from_diagnostics(py, &self.warnings)
    }
}

impl Pipeline {
    fn from_runner(
        py: Python<'_>,
        runner: Runner,
        spec_json: String,
        sessions_json: String,
    ) -> Self {
        let key = |port: &PlannedPort| port.key.to_string();
        let input_keys: Vec<String> = runner.inputs().iter().map(key).collect();
        let feedback_keys: Vec<String> = runner.states().map(key).collect();
        let inputs = input_keys.iter().enumerate();
        let states = feedback_keys.iter().enumerate();
        let targets = inputs
            .map(|(index, key)| (key.clone(), Target::Input(veracity::InputId(index))))
            .chain(
                states.map(|(index, key)| (key.clone(), Target::State(veracity::StateId(index)))),
            )
            .collect();
        let output = |port: &PlannedPort| OutputPort {
            key: PyString::intern(py, &port.key.to_string()).unbind(),
            dtype: port.dtype,
            dims: port.shape.dims().to_vec(),
        };
        Self {
            targets,
            outputs: runner.outputs().map(output).collect(),
            output_keys: runner.outputs().map(key).collect(),
            input_keys,
            feedback_keys,
            spec_json,
            sessions_json,
            warnings: runner.warnings().to_vec(),
            runner: Mutex::new(runner),
        }
    }

    /// Waits for other threads without holding Python's lock, which they may need to finish.
    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Runner> {
        // A poisoned runner is still consistent: a step that did not end changed no state.
        self.runner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    fn run_locked<'py>(
        &self,
        py: Python<'py>,
        runner: &mut Runner,
        given: &Given<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        for (key, input) in &given.inputs {
            self.write(runner, key, input).or_raise(py)?;
        }
        py.detach(|| runner.step()).or_raise(py)?;
        self.read_outputs(py, runner, given)
    }

    fn write(&self, runner: &mut Runner, key: &str, input: &Input<'_>) -> veracity::Result<()> {
        let target = match self.targets.get(key) {
            Some(target) => *target,
            None => runner.find_target(key)?,
        };
        match (target, input.contiguous_bytes()) {
            (Target::Input(id), Some(bytes)) => {
                runner.write_input(id, input.dtype, &input.dims, bytes)
            }
            (Target::Input(id), None) => runner.write_input_view(id, &input.view()?),
            (Target::State(id), _) => runner.write_state(id, &input.view()?),
        }
    }

    fn read_outputs<'py>(
        &self,
        py: Python<'py>,
        runner: &Runner,
        given: &Given<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let outputs = PyDict::new(py);
        for (index, port) in self.outputs.iter().enumerate() {
            let bytes = runner.output_bytes(OutputId(index)).or_raise(py)?;
            let mut value = object_from_bytes(py, given.library, port.dtype, &port.dims, bytes)?;
            if let Some(device) = &given.device {
                value = value.call_method1("to", (device,))?;
            }
            outputs.set_item(&port.key, value)?;
        }
        Ok(outputs)
    }
}

/// What a caller gave for one step.
struct Given<'py> {
    inputs: Vec<(String, Input<'py>)>,
    /// The library that outputs go back to: torch as soon as one input is a tensor, and where there
    /// is none to go by.
    library: Library,
    /// The device that outputs go back to, when an input came from one.
    device: Option<Bound<'py, PyAny>>,
}

impl<'py> Given<'py> {
    fn from_mapping(mapping: &Bound<'py, PyAny>) -> PyResult<Self> {
        let mut given = Self { inputs: Vec::new(), library: Library::Numpy, device: None };
        if let Ok(dict) = mapping.cast::<PyDict>() {
            for (key, value) in dict {
                given.add(&key, &value)?;
            }
        } else {
            for item in mapping.cast::<PyMapping>()?.items()? {
                let (key, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item.extract()?;
                given.add(&key, &value)?;
            }
        }
        if given.inputs.is_empty() {
            given.library = Library::Torch;
        }
        Ok(given)
    }

    fn add(&mut self, key: &Bound<'py, PyAny>, value: &Bound<'py, PyAny>) -> PyResult<()> {
        let key: String = key.extract()?;
        let input = Input::from_object(&key, value)?;
        if input.library == Library::Torch {
            self.library = Library::Torch;
            self.device = self.device.take().or_else(|| input.device.clone());
        }
        self.inputs.push((key, input));
        Ok(())
    }
}

fn json_of(value: &impl serde::Serialize) -> PyResult<String> {
    serde_json::to_string(value)
        .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}

fn options_from_names(device: &str, threads: usize, fuse: bool) -> veracity::Result<RunOptions> {
    let session = session_options(device, threads)?;
    let fusion = if fuse { Fusion::within_single_precision() } else { Fusion::Off };
    Ok(RunOptions::new().with_session(session).with_fusion(fusion))
}
