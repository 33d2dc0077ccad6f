//! Proofs of bundles: making, repeating, judging anew, comparing, storing.
//!
//! [`check`] repeats the proof of a bundle where the bundle is; a [`Builder`] makes one from values
//! that somebody else computed, as the Python front does while it exports.

pub use veracity_prove::{
    Builder, CheckOptions, Conduct, Demand, Fingerprint, Kind, Label, RecordOptions,
    SAMPLES_FORMAT, Samples, Sealed, Standing, ToleranceChoice, check, describe, difference,
    environment, fingerprint, load_proved, of_bundle, policy, prove_nodes, read, record, rejudge,
    require, roll_out, save, seal, session_record, standing, subject, to_json, worse_than,
};
