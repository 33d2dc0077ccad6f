//! ONNX Runtime is held to the suite that every engine is held to.

use veracity_engine_ort::{OrtEngine, Search};
use veracity_engine_suite::{cases, surprises};

#[path = "support/library.rs"]
mod library;

/// Cases that ONNX Runtime does not pass, each with its reason.
const KNOWN_GAPS: &[(&str, &str)] = &[];

#[test]
fn the_engine_does_what_every_engine_must() {
    let surprises = surprises(&library::engine(), &cases(), KNOWN_GAPS);
    assert!(surprises.is_empty(), "{}", surprises.join("\n"));
}
