//! Proves a bundle: each node alone, the whole over time.
//!
//! A [`Builder`] judges pairs of tensors and sums up what they say; it does not care who computed
//! them. [`prove_nodes`] runs every recorded sample through every model, [`roll_out`] runs the
//! recorded passes as an episode through the whole bundle, [`check`] does both. What was not run is
//! in the [`Proof`](veracity_results::Proof) with its reason, and never counts as proved.
//!
//! The recorded values are [`Samples`]; what a proof is about is its subject, and [`standing`] says
//! whether a bundle still is what its proof is about.

mod advice;
mod builder;
mod check;
mod conduct;
mod consistency;
mod contract;
mod coverage;
mod demand;
mod describe;
mod difference;
mod elsewhere;
mod episode;
mod fingerprint;
mod judged;
mod nodes;
mod parts;
mod plausible;
mod record;
mod rejudge;
mod rollout;
mod samples;
mod standing;
mod store;
mod subject;

pub use builder::{Builder, Label};
pub use check::{CheckOptions, ToleranceChoice, check, check_in_both, policy};
pub use conduct::Conduct;
pub use demand::{Demand, load_proved, require};
pub use describe::describe;
pub use difference::{difference, worse_than};
pub use elsewhere::{Elsewhere, is_pt2, prove_elsewhere};
pub use fingerprint::{Fingerprint, fingerprint};
pub use nodes::prove_nodes;
pub use record::{RecordOptions, record};
pub use rejudge::rejudge;
pub use rollout::roll_out;
pub use samples::{Kind, SAMPLES_FORMAT, Samples};
pub use standing::{Standing, standing};
pub use store::{Sealed, of_bundle, read, save, seal, to_json};
pub use subject::{environment, session_record, subject};
