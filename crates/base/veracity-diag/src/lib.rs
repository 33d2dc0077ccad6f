//! Findings as data.
//!
//! Everything Veracity has to say about a user's files, models or inputs is a [`Diagnostic`]: a
//! stable [`Code`], a severity, a short message, a [`Place`], and hints. A function that cannot go
//! on returns a [`Refusal`], which holds one or more of them. Showing a diagnostic is the business
//! of the fronts; this crate never prints.

mod assumptions;
pub mod codes;
mod diagnostic;
mod nearest;
mod place;
pub mod progress;
mod refusal;
mod remedies;
mod reporter;

pub use codes::Code;
pub use diagnostic::{Diagnostic, Severity};
pub use nearest::nearest;
pub use place::{Place, Snippet};
pub use refusal::{Refusal, Result};
pub use remedies::Remedy;
pub use reporter::Reporter;
