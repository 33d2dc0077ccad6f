//! Whether a proof follows from its own numbers, and fits the bundle that it lies in.
//!
//! Nothing is run. Verdicts are made again from the measurements, assumptions from what the samples
//! say, and counts from the description and the samples. What was measured is believed: that the
//! numbers are those of a run can only be told by running it again, or by who signed it.

mod nodes;
mod over_time;
mod statements;
mod sums;

use veracity_results::Proof;
use veracity_spec::Bundle;

use crate::samples::Samples;

/// What a proof says and its bundle or its own numbers do not.
type Contradiction = String;

/// The first contradiction, if there is one.
pub(crate) fn contradiction(bundle: &Bundle, samples: &Samples, proof: &Proof) -> Option<String> {
    let found = nodes::check(bundle, samples, proof)
        .and_then(|()| over_time::check(bundle, samples, proof))
        .and_then(|()| statements::check(bundle, samples, proof))
        .and_then(|()| sums::check(proof));
    found.err()
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Result<(), Contradiction> {
    if holds { Ok(()) } else { Err(what()) }
}
