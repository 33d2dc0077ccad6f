//! Runs a bundle: plan, buffers, feedback, ticks, timing.
//!
//! A plan says which node reads and writes which value. A [`Runner`] gives every value one
//! piece of memory, binds each node's session to it once, and then [`Runner::step`] only runs
//! sessions: it allocates nothing, copies nothing between nodes, and looks nothing up. Feedback
//! lives in two banks used in turn, so a step that fails leaves the state as it was.
//!
//! A runner is used through `&mut`: two threads cannot step it at once, so no tick is ever lost.

mod contract;
mod fuse;
mod load;
mod memory;
mod mock;
mod node;
mod options;
mod plan;
mod provider;
mod reorder;
mod runner;
mod stage;
mod timing;
mod watch;

pub use contract::{check_models, side_files};
pub use mock::mock_tensor;
pub use node::NodeRunner;
pub use options::{Fusion, RunOptions};
pub use plan::{InputId, OutputId, PlannedPort, StateId};
pub use provider::EngineProvider;
pub use runner::{Runner, Target};
pub use stage::SessionFacts;
pub use timing::{Pacer, StepClock};
pub use watch::Watch;
