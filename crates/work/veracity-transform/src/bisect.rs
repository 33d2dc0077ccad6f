//! Finds the rewrite that made a graph wrong, and the smallest part that shows it.
//!
//! Rewrites are made in a fixed order, so the first `n` of them can be made again: a search by
//! halves over passes, then over the rewrites of one pass, finds the first one after which the graph
//! is wrong. Where it is only wrong together with others, the smallest set of those is found. Other
//! optimisers are searched as black boxes, by the names of what they can leave out.

mod ddmin;
mod folder;
mod repro;
mod search;
mod tool;

pub use ddmin::ddmin;
pub use repro::{RewriteRepro, RewriteReproRun, rerun, write_repro};
pub use search::{Bisection, bisect, bisect_by};
pub use tool::{ToolBisection, bisect_tool};
