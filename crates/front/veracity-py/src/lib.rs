//! The Python module `veracity._native`: converts, calls the facade, converts back.

mod bundle;
mod errors;
mod input;
mod output;
mod pipeline;
mod torch;

use pyo3::prelude::*;

/// The native part of the package; `veracity` re-exports what people use.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<pipeline::Pipeline>()?;
    module.add_function(wrap_pyfunction!(bundle::write_bundle, module)?)
}
