//! Op-by-op parity: what each operator of an export brings in, and what adds up.
//!
//! The reference is every value that the original computed, by the name it has in the export.
//! *Accumulated* error is that of the export run from its inputs: it shows what arrives at the end
//! and says little about who is guilty. *Introduced* error is that of each operator run on reference
//! inputs: the graph is cut at every mapped value and fed with the reference, all operators in one
//! run. The verdict is about introduced error.
//!
//! Values that have no reference are not silently left out: they are in the coverage, with the
//! mapped value that they feed. An output that was not compared keeps an export from being proved.

mod baseline;
mod budget;
mod careful;
pub mod causes;
mod convert;
pub mod domain;
mod elements;
mod end;
mod file;
mod ledger;
mod look;
mod noise;
mod origin;
mod pair;
mod pairing;
mod program;
mod provenance;
mod quantised;
mod random;
pub mod repro;
mod rows;
mod rules;
mod run;
mod scales;
mod screen;
mod stream;
mod stretch;
mod tables;
mod tiles;
mod values;
mod wide;

pub use baseline::{read_report, worse_than};
pub use budget::Budget;
pub use ledger::{Ledger, Place};
pub use pair::{Inputs, Pursuit, Side, pair};
pub use provenance::{Provenance, provenance, source_line};
pub use rows::DriftOptions;
pub use rules::{Allowance, Rule, Rules};
pub use screen::{Outputs, Screening, Suspicion, screen, screen_original};
pub use stream::{Against, Stream, drift};
pub use values::{Values, copied, held};
pub use wide::against_float64;
