//! TorchScript modules made by Python torch, with the bytes that Python got from them.
//!
//! The modules are kept between test runs, under a name that says which script and which Python
//! made them. Without a Python that has torch the tests fail: there would be nothing to check.
#![allow(dead_code, clippy::allow_attributes, reason = "each test crate uses a part of this")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use sha2::{Digest, Sha256};
use veracity_engine::{
    Device, Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, Session, SessionOptions,
};
use veracity_engine_torch::{Search, TorchEngine};
use veracity_tensor::{DType, Shape, SharedTensor, Tensor};

const SCRIPT: &str = include_str!("make_models.py");

/// One call of a module as Python saw it.
pub(crate) struct Call {
    pub(crate) inputs: Vec<Tensor>,
    pub(crate) outputs: Vec<Tensor>,
}

/// The environment whose Python has torch.
fn environment() -> PathBuf {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let folder = std::env::var_os("VIRTUAL_ENV").map_or(workspace.join(".venv"), PathBuf::from);
    assert!(
        folder.join("bin/python").exists(),
        "{} has no Python with torch: run `make setup`",
        folder.display()
    );
    folder
}

/// An engine on the torch of that environment. The shim is kept between test runs.
pub(crate) fn engine() -> TorchEngine {
    let versions = fs::read_dir(environment().join("lib")).unwrap();
    let packages = versions.map(|entry| entry.unwrap().path().join("site-packages"));
    let search = Search { folder: None, site_packages: packages.collect() };
    TorchEngine::find(&search)
        .unwrap_or_else(|refusal| panic!("{refusal}: run `make setup` to install torch"))
        .with_cache(Path::new(env!("CARGO_TARGET_TMPDIR")).join("shims"))
}

/// The folder of modules; made on first use.
pub(crate) fn models() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let version = engine().version();
        let hash = Sha256::digest(format!("{version}\n{SCRIPT}"));
        let name = u64::from_be_bytes(*hash.first_chunk().unwrap());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("models-{name:016x}"));
        if !folder.join("cases.json").exists() {
            make_models(&folder);
        }
        folder
    })
}

/// Test crates run one after the other or at once: the folder appears whole or not at all.
fn make_models(folder: &Path) {
    let parent = folder.parent().unwrap();
    fs::create_dir_all(parent).unwrap();
    let scratch = tempfile::tempdir_in(parent).unwrap();
    let script = scratch.path().join("make_models.py");
    fs::write(&script, SCRIPT).unwrap();
    let output = Command::new(environment().join("bin/python"))
        .arg(script)
        .arg(scratch.path())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "run `make setup` if torch is missing:\n{stderr}");
    if fs::rename(scratch.path(), folder).is_err() {
        assert!(folder.join("cases.json").exists(), "the modules could not be kept");
    }
}

/// Names of all modules that Python called, and the calls.
pub(crate) fn cases() -> Vec<(String, Vec<Call>)> {
    let json: Value =
        serde_json::from_slice(&fs::read(models().join("cases.json")).unwrap()).unwrap();
    json.as_object()
        .unwrap()
        .iter()
        .map(|(name, calls)| {
            (name.clone(), calls.as_array().unwrap().iter().map(call_from).collect::<Vec<_>>())
        })
        .filter(|(_, calls)| !calls.is_empty())
        .collect()
}

/// The calls of one module.
pub(crate) fn calls_of(name: &str) -> Vec<Call> {
    cases().into_iter().find(|(case, _)| case == name).unwrap().1
}

fn call_from(value: &Value) -> Call {
    let side = |name: &str| value[name].as_array().unwrap().iter().map(tensor_from).collect();
    Call { inputs: side("inputs"), outputs: side("outputs") }
}

fn tensor_from(value: &Value) -> Tensor {
    let dtype = DType::from_name(value["dtype"].as_str().unwrap()).unwrap();
    let dims = value["shape"].as_array().unwrap().iter();
    let shape =
        Shape::new(dims.map(|d| usize::try_from(d.as_u64().unwrap()).unwrap()).collect::<Vec<_>>());
    let hex = value["hex"].as_str().unwrap();
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
    Tensor::from_bytes(dtype, shape.unwrap(), &bytes).unwrap()
}

/// A module's file.
pub(crate) fn file_of(name: &str) -> ModelSource {
    let path = models().join(format!("{name}.pt"));
    ModelSource { format: ModelFormat::TorchScript, bytes: ModelBytes::File(path) }
}

/// A module as an exported program; not every module is one.
pub(crate) fn program_of(name: &str) -> Option<ModelSource> {
    let path = models().join(format!("{name}.pt2"));
    let found = path.is_file();
    found.then_some(ModelSource { format: ModelFormat::Pt2, bytes: ModelBytes::File(path) })
}

/// A module's bytes.
pub(crate) fn memory_of(name: &str) -> ModelSource {
    from_memory(&fs::read(models().join(format!("{name}.pt"))).unwrap())
}

pub(crate) fn from_memory(bytes: &[u8]) -> ModelSource {
    ModelSource { format: ModelFormat::TorchScript, bytes: ModelBytes::Memory(bytes.into()) }
}

/// Options for results that are equal to Python's bit by bit.
pub(crate) fn on_cpu() -> SessionOptions {
    SessionOptions { device: Device::Cpu, ..SessionOptions::default() }
}

/// What a bundle would declare for a call.
pub(crate) fn ports_of(call: &Call) -> Ports {
    let side = |prefix: &str, tensors: &[Tensor]| {
        let port = |(index, tensor): (usize, &Tensor)| {
            Port::new(format!("{prefix}{index}"), tensor.dtype(), tensor.shape().clone())
        };
        tensors.iter().enumerate().map(port).collect()
    };
    Ports { inputs: side("in", &call.inputs), outputs: side("out", &call.outputs) }
}

/// Ports written in code: dtype and shape of each.
pub(crate) fn ports(inputs: &[(DType, &[usize])], outputs: &[(DType, &[usize])]) -> Ports {
    let side = |prefix: &str, side: &[(DType, &[usize])]| {
        let port = |(index, (dtype, dims)): (usize, &(DType, &[usize]))| {
            Port::new(format!("{prefix}{index}"), *dtype, Shape::new(*dims).unwrap())
        };
        side.iter().enumerate().map(port).collect()
    };
    Ports { inputs: side("in", inputs), outputs: side("out", outputs) }
}

/// Zeroed memory for each port.
pub(crate) fn buffers(ports: &[Port]) -> Vec<SharedTensor> {
    ports.iter().map(|port| SharedTensor::zeros(port.dtype, port.shape.clone())).collect()
}

/// Loads a module for CPU; panics with the refusal.
pub(crate) fn load(name: &str, ports: &Ports) -> Session {
    engine().load(&file_of(name), ports, &on_cpu()).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// Copies values into bound memory while no session runs.
#[expect(unsafe_code, reason = "tests schedule the sessions themselves")]
pub(crate) fn fill(buffer: &SharedTensor, bytes: &[u8]) {
    // SAFETY: no session runs and no other slice of this memory is alive.
    unsafe { buffer.bytes_mut() }.copy_from_slice(bytes);
}

/// Copies values out of bound memory while no session runs.
#[expect(unsafe_code, reason = "tests schedule the sessions themselves")]
pub(crate) fn read(buffer: &SharedTensor) -> Tensor {
    // SAFETY: as in `fill`.
    unsafe { buffer.to_tensor() }
}
