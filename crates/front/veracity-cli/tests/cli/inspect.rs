//! `veracity inspect`.

use crate::assert_said;
use crate::bundle::write_policy;
use crate::support::Desk;

#[test]
fn a_bundle_is_shown_with_ports_wiring_and_hashes() {
    let desk = Desk::new();
    write_policy(&desk);
    assert_said!(desk.run("inspect policy"), @"");
}

#[test]
fn programs_get_all_that_the_bundle_says() {
    let desk = Desk::new();
    write_policy(&desk);
    let found = desk.run("inspect policy/policy.yaml --format json").done().json();
    for (pointer, value) in [
        ("/schema_version", serde_json::json!("1.0")),
        ("/bundle", "policy/policy.yaml".into()),
        ("/nodes/0/inputs/0/kind", "state/joint/position".into()),
        ("/feedback_flow/0/target", "memory/h".into()),
        ("/configs/frequency", 50.0.into()),
        ("/models/1/operators", 2.into()),
    ] {
        assert_eq!(found.pointer(pointer), Some(&value), "{pointer}");
    }
}

#[test]
fn what_is_no_bundle_is_refused() {
    assert_said!(Desk::new().run("inspect nowhere"), @"");
}
