//! Proofs of bundles: making, repeating, judging anew, comparing, storing.
//!
//! [`check`] repeats the proof of a bundle where the bundle is; a [`Builder`] makes one from values
//! that somebody else computed, as the Python front does while it exports.

pub use veracity_prove::{
    Builder, CheckOptions, Conduct, Demand, Elsewhere, Fingerprint, Kind, Label, RecordOptions,
    SAMPLES_FORMAT, Samples, Sealed, Standing, ToleranceChoice, check, check_in_both, describe,
    difference, environment, fingerprint, is_pt2, load_proved, of_bundle, policy, prove_elsewhere,
    prove_nodes, read, record, rejudge, require, roll_out, save, seal, session_record, standing,
    subject, to_json, worse_than,
};
