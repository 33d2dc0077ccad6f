//! Checks rewrites by running them.
//!
//! Each rewrite is cut out as a *window*: the nodes that went and changed, those that came, and
//! what lies between them. Both sides are run on the values that the model really has there and on
//! unpleasant ones, and compared as the class of the pass demands. At the end (or after each pass)
//! the outputs of the whole model are compared with those of the original. What could not be run
//! is reported as that, and never counted as proved.

mod adverse;
mod checker;
mod columns;
mod comparer;
mod constants;
mod crop;
mod deferred;
mod inputs;
mod local;
mod merged;
mod moving;
mod options;
mod random;
mod rules;
mod run;
mod second;
mod sets;
mod show;
mod store;
mod sums;
mod tally;
mod values;
mod whole;
mod window;

pub use checker::Checker;
pub use comparer::{Comparer, Difference};
pub use inputs::{InputSet, Inputs};
pub use options::{CheckOptions, OnFail, Unchecked, Validation};
pub(crate) use show::{Shown, show, show_again};
