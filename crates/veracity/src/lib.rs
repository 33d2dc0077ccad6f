//! Proves that an exported pipeline computes what the Python code computed, and runs it.
//!
//! This is the one public crate; the others are its rooms and promise nothing. [`Bundle::open`]
//! reads and checks a bundle, [`verify`] refuses everything that can be refused without running a
//! model, [`Runner::load`] with [`Engines`] makes a bundle ready to be stepped, [`compare`] measures
//! how far two sets of tensors are apart, [`picture`] draws a bundle, and
//! [`proof`] says what is known about it.

pub mod compare;
mod draft;
pub mod drift;
mod engines;
mod inspect;
mod picture;
pub mod progress;
pub mod proof;
pub mod reports;
mod robot;
pub mod transform;
pub mod two;
mod verify;
pub mod view;

pub use draft::{BundleDraft, Extra, NodeDraft, PortDraft, strangers};
pub use engines::{EngineChoice, EngineSearch, Engines};
pub use inspect::{Inspection, ModelFacts, ProofFacts, inspect};
pub use picture::{Picture, draw_beside, picture};
pub use robot::{RobotCheck, RobotOptions, check_robot};
pub use veracity_diag::{
    Code, Diagnostic, Place, Refusal, Reporter, Result, Severity, Snippet, codes,
};
pub use veracity_engine as engine;
pub use veracity_engine::{Device, ModelFormat, OptimizationLevel, SessionOptions};
pub use veracity_report as report;
pub use veracity_results as results;
pub use veracity_runtime::{
    EngineProvider, Fusion, InputId, NodeRunner, OutputId, Pacer, PlannedPort, RunOptions, Runner,
    SessionFacts, StateId, StepClock, Target, Watch,
};
pub use veracity_spec as spec;
pub use veracity_spec::Bundle;
pub use veracity_tensor as tensor;
pub use veracity_trace as trace;
pub use verify::{UnreadModel, Verification, verify};

/// Version of Veracity.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
