//! How a bundle is to be run.

use veracity_engine::SessionOptions;
use veracity_results::Tolerance;
use veracity_spec::ReorderMap;

/// How a bundle is to be run.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RunOptions {
    /// Threads, device and optimisation of every session.
    pub session: SessionOptions,
    /// Whether neighbouring ONNX nodes share one session.
    pub fusion: Fusion,
    /// How the values of inputs and outputs are reordered for the caller; empty for not at all.
    pub reorder: ReorderMap,
}

/// Whether neighbouring ONNX nodes are merged into one session.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fusion {
    /// Every node has its own session, and every value can be read.
    #[default]
    Off,
    /// Merge, run both forms on made-up inputs while loading, and keep the merged form only when
    /// their outputs agree within this tolerance. Values inside a merged group cannot be read.
    WhenEqual(Tolerance),
}

impl Fusion {
    /// Merge when outputs agree to what single precision gives when operations are ordered
    /// differently.
    #[expect(clippy::missing_panics_doc, reason = "the constants are valid")]
    pub fn within_single_precision() -> Self {
        Self::WhenEqual(Tolerance::new(1e-5, 1e-4).expect("the parts are finite and positive"))
    }
}

impl RunOptions {
    /// The defaults: one thread, no merging.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets threads, device and optimisation.
    #[must_use]
    pub fn with_session(mut self, session: SessionOptions) -> Self {
        self.session = session;
        self
    }

    /// Sets whether nodes are merged.
    #[must_use]
    pub fn with_fusion(mut self, fusion: Fusion) -> Self {
        self.fusion = fusion;
        self
    }

    /// Takes inputs in a robot's order and gives outputs in it.
    #[must_use]
    pub fn with_reorder(mut self, reorder: ReorderMap) -> Self {
        self.reorder = reorder;
        self
    }
}
