//! What each side declares, read from its files.

use std::path::Path;

use veracity_diag::{Diagnostic, Place, Result};
use veracity_onnx::{Dim, Model, ValueInfo};
use veracity_spec::contract::{Contract, Port, Stated};
use veracity_spec::{Backend, Bundle, Direction};

/// What a robot declares: a robot file, or the metadata of an ONNX model.
pub(super) fn robot(path: &Path) -> Result<(Contract, Vec<Diagnostic>)> {
    let is_onnx = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("onnx"));
    if !is_onnx {
        let mut contract = Contract::open_robot_yaml(path)?;
        let remarks = std::mem::take(&mut contract.remarks);
        return Ok((contract, remarks));
    }
    let model = Model::read(path)?;
    let file = path.display().to_string();
    let inputs = model.inputs().into_iter().map(|value| (value, Direction::Input));
    let outputs = model.outputs().into_iter().map(|value| (value, Direction::Output));
    let ports = inputs.chain(outputs).map(|(value, direction)| port(&value, direction, &file));
    Ok(Contract::from_metadata(&file, &model.metadata(), ports.collect()))
}

fn port(value: &ValueInfo, direction: Direction, file: &str) -> Port {
    let place = Place::file(file);
    let fixed = |dim: &Dim| match dim {
        Dim::Fixed(size) => Some(*size),
        Dim::Named(_) | Dim::Unknown => None,
    };
    let dims: Option<Vec<usize>> =
        value.dims.as_ref().and_then(|dims| dims.iter().map(fixed).collect());
    Port {
        shape: dims.map(|dims| Stated { value: dims, place: place.clone() }),
        dtype: value.dtype.map(|dtype| Stated { value: dtype, place: place.clone() }),
        ..Port::new(&value.name, direction, place)
    }
}

/// What a bundle declares, in its YAML and in the metadata of its ONNX models. A model that cannot
/// be read says nothing here; verifying the bundle tells about it.
pub(super) fn bundle(bundle: &Bundle) -> (Contract, Vec<Diagnostic>) {
    let metadata = bundle.spec().nodes.iter().filter_map(|node| {
        let model = node.model.as_ref().filter(|model| model.backend == Backend::Onnx)?;
        let path = model.path.resolve(bundle.root()).ok()?;
        let entries = Model::read(&path).ok()?.metadata();
        Some((path.display().to_string(), entries))
    });
    let metadata: Vec<_> = metadata.collect();
    Contract::of_bundle(bundle.spec(), bundle.places(), &metadata)
}
