//! The Python module `veracity._native`: converts, calls the facade, converts back.

mod bundle;
mod compare;
mod drift;
mod drift_report;
mod errors;
mod input;
mod ledger;
mod options;
mod output;
mod pipeline;
mod progress;
mod proof;
mod python_engine;
mod recorder;
mod torch;
mod transform;

use pyo3::prelude::*;

/// The native part of the package; `veracity` re-exports what people use.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<drift::Parity>()?;
    module.add_class::<drift::References>()?;
    module.add_class::<ledger::Ledger>()?;
    drift_report::add_to(module)?;
    transform::add_to(module)?;
    module.add_class::<pipeline::Pipeline>()?;
    module.add_class::<proof::Proof>()?;
    module.add_class::<proof::ProofBuilder>()?;
    module.add_class::<recorder::CarriedState>()?;
    module.add_class::<recorder::FunctionMode>()?;
    module.add_class::<recorder::Operation>()?;
    module.add_class::<recorder::Recorder>()?;
    module.add_function(wrap_pyfunction!(bundle::inspect, module)?)?;
    module.add_function(wrap_pyfunction!(bundle::draw, module)?)?;
    module.add_function(wrap_pyfunction!(drift::rerun, module)?)?;
    module.add_function(wrap_pyfunction!(bundle::write_samples, module)?)?;
    module.add_function(wrap_pyfunction!(proof::check, module)?)?;
    module.add_function(wrap_pyfunction!(proof::fingerprint, module)?)?;
    module.add_function(wrap_pyfunction!(proof::seal, module)?)?;
    module.add_function(wrap_pyfunction!(bundle::strangers, module)?)?;
    module.add_function(wrap_pyfunction!(bundle::element_names_problem, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(bundle::write_bundle, module)?)
}
