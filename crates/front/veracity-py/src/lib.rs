//! The Python module `veracity._native`: converts, calls the facade, converts back.

mod bundle;
mod compare;
mod errors;
mod input;
mod output;
mod pipeline;
mod recorder;
mod torch;

use pyo3::prelude::*;

/// The native part of the package; `veracity` re-exports what people use.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<pipeline::Pipeline>()?;
    module.add_class::<recorder::Operation>()?;
    module.add_class::<recorder::Recorder>()?;
    module.add_function(wrap_pyfunction!(bundle::write_tensors, module)?)?;
    module.add_function(wrap_pyfunction!(bundle::strangers, module)?)?;
    module.add_function(wrap_pyfunction!(bundle::element_names_problem, module)?)?;
    module.add_function(wrap_pyfunction!(compare::compare, module)?)?;
    module.add_function(wrap_pyfunction!(bundle::write_bundle, module)?)
}
