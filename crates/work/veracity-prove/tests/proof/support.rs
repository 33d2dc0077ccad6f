//! Bundles with samples.

use std::collections::BTreeMap;

use tempfile::TempDir;
use veracity_prove::{CheckOptions, RecordOptions, ToleranceChoice, check, record};
use veracity_results::{Proof, Tolerance, TolerancePolicy};
use veracity_spec::{Bundle, BundleWriter, FileContent, Spec};
use veracity_tensor::{Tensor, file};

use crate::common::{Draft, Ort};

/// A bundle that is checked against what it does itself, over this many ticks.
pub(crate) fn recorded(draft: Draft, steps: usize) -> (TempDir, Bundle) {
    let (folder, bundle) = draft.write();
    let options = RecordOptions { steps, seed: 7, ..RecordOptions::default() };
    let bundle = record(&bundle, &Ort, &options).unwrap();
    (folder, bundle)
}

/// Checks a bundle with a tolerance of 1e-6.
pub(crate) fn checked(bundle: &Bundle) -> Proof {
    check(bundle, &Ort, &options(1e-6)).unwrap()
}

pub(crate) fn options(atol: f64) -> CheckOptions {
    CheckOptions { tolerance: ToleranceChoice::Given(policy(atol)), ..CheckOptions::default() }
}

pub(crate) fn policy(atol: f64) -> TolerancePolicy {
    TolerancePolicy::new(Tolerance::new(atol, 0.0).unwrap())
}

/// The same bundle with another description and other first values.
pub(crate) fn changed(
    bundle: &Bundle,
    change: impl FnOnce(&mut Spec, &mut BTreeMap<String, Tensor>),
) -> (TempDir, Bundle) {
    let mut spec = bundle.spec().clone();
    let values = bundle.initial_values().unwrap().values;
    let mut initial = values.into_iter().map(|(port, value)| (port.to_string(), value)).collect();
    change(&mut spec, &mut initial);
    let mut writer = BundleWriter::new(spec);
    for path in bundle.named_files() {
        let file = path.resolve(bundle.root()).unwrap();
        writer = writer.file(path, FileContent::File(file));
    }
    let initial = initial.into_iter().map(|(port, value)| (port.parse().unwrap(), value));
    let folder = TempDir::new().unwrap();
    let bundle = writer.initial_values(initial.collect()).write(folder.path().join("bundle"));
    (folder, bundle.unwrap())
}

/// Changes the samples of a bundle in place.
pub(crate) fn with_samples(
    bundle: &Bundle,
    change: impl FnOnce(&mut BTreeMap<String, Tensor>, &mut BTreeMap<String, String>),
) -> Bundle {
    let path = bundle.spec().veracity.as_ref().unwrap().samples.clone().unwrap();
    let (mut tensors, mut metadata) =
        file::safetensors::read_with_metadata(path.resolve(bundle.root()).unwrap()).unwrap();
    change(&mut tensors, &mut metadata);
    let mut bytes = Vec::new();
    file::safetensors::write_to(&mut bytes, &tensors, &metadata).unwrap();
    bundle.attach_samples(&bytes, &[]).unwrap();
    Bundle::open(bundle.yaml_path()).unwrap()
}
