//! Where a runner gets its engines from.

use std::sync::Arc;

use veracity_diag::Result;
use veracity_engine::{Engine, ModelFormat};

/// Finds the engine for a kind of model. Asked once per node while a bundle is loaded, so an
/// engine that no node needs is never looked for.
pub trait EngineProvider {
    /// The engine that is to run models of this format.
    fn engine_for(&self, format: ModelFormat) -> Result<Arc<dyn Engine>>;
}
