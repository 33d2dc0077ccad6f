//! A graph that can be changed, one patch at a time.
//!
//! A [`Graph`] holds the nodes and weights of a model's main graph under ids and names that stay the
//! same while it changes. The one way to change it is a [`Patch`], which is applied as a whole or
//! refused as a whole: whatever it leaves behind, every value that is read is defined once, and the
//! inputs and outputs of the model are what they were. Bodies of branches and loops count as
//! readers of what they capture, and follow when a value is replaced.

mod apply;
mod branch;
mod functions;
mod graph;
mod patch;
mod splice;
#[cfg(test)]
mod tests;
mod weight;
mod window;

pub use apply::Applied;
pub use branch::Branch;
pub use functions::Functions;
pub use graph::{Graph, NodeId};
pub use patch::Patch;
pub use weight::Weight;
pub use window::Window;
