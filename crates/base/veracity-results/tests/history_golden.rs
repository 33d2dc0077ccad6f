//! Logs of rewrites and differences of models that were written once must be readable for good, as
//! a proof must.
//!
//! The files under `golden` are never changed: a new version of the format gets a new file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kept;
mod schema;

use kept::Format;
use serde_json::json;
use veracity_results::{MODEL_DIFF_SCHEMA_VERSION, ModelDiff, REWRITES_SCHEMA_VERSION, RewriteLog};

const LOGS: Format = Format {
    golden: &[("1.0", include_str!("golden/rewrites-1.0.json"))],
    schema: include_str!("../../../../docs/schema/rewrites-1.json"),
};

const DIFFERENCES: Format = Format {
    golden: &[("1.0", include_str!("golden/model-diff-1.0.json"))],
    schema: include_str!("../../../../docs/schema/model-diff-1.json"),
};

#[test]
fn files_of_every_version_are_read_without_a_loss() {
    LOGS.is_read::<RewriteLog>();
    DIFFERENCES.is_read::<ModelDiff>();
}

#[test]
fn files_of_every_version_fit_their_schema() {
    LOGS.fits_its_schema(REWRITES_SCHEMA_VERSION);
    DIFFERENCES.fits_its_schema(MODEL_DIFF_SCHEMA_VERSION);
}

#[test]
fn what_the_schema_refuses_is_refused_by_the_reader_too() {
    LOGS.refuses::<RewriteLog>(&[
        ("", "original_sha256", None),
        ("", "records", None),
        ("", "order", Some(json!([-1]))),
        ("/passes/0", "version", Some(json!("two"))),
        ("/passes/0/parameters/floats", "value", Some(json!("yes"))),
        ("/records/0", "reason", None),
        ("/records/0/removed/0", "id", None),
        ("/records/0/changed/0", "proto", None),
        ("/records/0/values", "w", Some(json!(1))),
        ("/records/0/weights/0", "sha256", None),
        ("/records/0/weights/0", "dims", Some(json!("2"))),
        ("/declined/0", "reason", None),
    ]);
    DIFFERENCES.refuses::<ModelDiff>(&[
        ("", "nodes_same", Some(json!(0.5))),
        ("/removed/0", "op_type", None),
        ("/changed/0", "fields", None),
        ("/weights_changed/0", "after", None),
        ("/weights_added/0", "dims", Some(json!([-1]))),
        ("/model/0", "field", None),
    ]);
}

#[test]
fn fields_that_a_later_version_adds_do_not_disturb() {
    let mut value = LOGS.first();
    value["colour"] = json!("green");
    value["records"][0]["seconds"] = json!(1.5);
    assert!(serde_json::from_value::<RewriteLog>(value).is_ok());
}

#[test]
fn a_difference_is_empty_when_nothing_differs() {
    let mut value = DIFFERENCES.first();
    let full: ModelDiff = serde_json::from_value(value.clone()).unwrap();
    assert!(!full.is_empty());
    for (_, part) in value.as_object_mut().unwrap() {
        if part.is_array() {
            *part = json!([]);
        }
    }
    assert!(serde_json::from_value::<ModelDiff>(value).unwrap().is_empty());
}
