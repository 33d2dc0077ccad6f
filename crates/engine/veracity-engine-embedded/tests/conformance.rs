//! The cases that every engine must pass, and what this one does not.

use veracity_engine_embedded::EmbeddedEngine;
use veracity_engine_suite::{cases, surprises};

/// What the embedded engine does not do, each with the reason.
const KNOWN_GAPS: &[(&str, &str)] = &[
    ("identity_bfloat16", "tract has no bfloat16"),
    (
        "nan_and_infinity_pass_through_arithmetic",
        "inputs that are not finite are refused, because several operators would lose them",
    ),
    (
        "merged_with_branches_that_see_the_connected_input",
        "control flow (`If`) is not on the list of what was compared",
    ),
];

#[test]
fn the_engine_does_what_every_engine_does_but_for_its_known_gaps() {
    let found = surprises(&EmbeddedEngine, &cases(), KNOWN_GAPS);
    assert!(found.is_empty(), "{}", found.join("\n"));
}
