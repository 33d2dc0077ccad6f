//! `veracity diff`.

use crate::assert_said;
use crate::bundle::write_recorded_policy;
use crate::support::Desk;

/// Proofs of a bundle: as it should be, and with a wrong action.
fn desk() -> Desk {
    let desk = Desk::new();
    for (name, wrong) in [("good", 0.0), ("off", 0.25), ("far", 0.75)] {
        write_recorded_policy(&desk, wrong);
        let check = format!("check policy --engine embedded --save --output {name}.json");
        assert!([0, 1].contains(&desk.run(&check).code));
        std::fs::rename(desk.path("policy"), desk.path(name)).unwrap();
        std::fs::rename(
            desk.path(&format!("{name}/policy.yaml")),
            desk.path(&format!("{name}/{name}.yaml")),
        )
        .unwrap();
    }
    desk
}

#[test]
fn proofs_that_say_the_same_are_no_difference() {
    let desk = desk();
    assert_said!(desk.run("diff good.json good"), @"
    exit code 0
    ----- stdout -----
    0 worse, 0 gone, 0 better, 0 new, 8 same
    ");
}

#[test]
fn what_got_worse_comes_first_with_what_changed_around_it() {
    assert_said!(desk().run("diff good.json off.json"), @"
    exit code 1
    ----- stdout -----
    subject                          before        after
    file policy_samples.safetensors  [hash start]  [hash start]

    port           where      judged  verdict              max abs
    memory/action  alone      worse   proved -> disproved  0 -> 0.25
    memory/action  over time  worse   proved -> disproved  0 -> 0.25

    2 worse, 0 gone, 0 better, 0 new, 6 same
    ");
}

#[test]
fn what_was_wrong_before_is_judged_by_what_would_pass() {
    let said = desk().run("diff off.json far.json");
    assert!(said.stdout.contains("  passes with atol 0.748, before with atol 0.2475"), "{said}");
}

#[test]
fn the_exit_code_says_whether_something_is_worse() {
    let desk = desk();
    for (before, after, code) in [
        ("good", "off", 1),
        ("off", "good", 0),
        ("off", "off", 0),
        ("off", "far", 1),
        ("far", "off", 0),
    ] {
        let said = desk.run(&format!("diff {before}.json {after}.json"));
        assert_eq!(said.code, code, "{before} {after}: {said}");
        assert_eq!(desk.run(&format!("diff {before} {after}")).code, code, "{before} {after}");
    }
}

#[test]
fn programs_get_every_port() {
    let said = desk().run("diff good.json off.json --format json");
    let found = said.json();
    assert_eq!((said.code, &found["schema_version"]), (1, &"1.0".into()));
    let worse = found["ports"].as_array().unwrap().iter().find(|port| port["judged"] == "worse");
    let worse = worse.unwrap();
    assert_eq!(worse["port"], "memory/action");
    assert_eq!(worse["before"]["verdict"], "proved");
    assert_eq!(worse["after"]["errors"]["max_abs"], 0.25);
}

#[test]
fn what_is_no_proof_is_refused() {
    let desk = desk();
    std::fs::write(desk.path("broken.json"), "{").unwrap();
    for (name, version) in [("newer.json", "\"7.3\""), ("minor.json", "\"1.9\"")] {
        std::fs::copy(desk.path("good.json"), desk.path(name)).unwrap();
        desk.edit(name, "\"1.1\"", version);
    }
    for (other, code, finding) in [
        ("broken.json", 2, "error[VER1104]"),
        ("newer.json", 2, "error[VER1104]"),
        ("gone.json", 2, "error[VER0002]"),
        ("nowhere", 2, "error[VER0209]"),
        ("minor.json", 0, ""),
    ] {
        for arguments in [format!("good.json {other}"), format!("{other} good.json")] {
            let said = desk.run(&format!("diff {arguments}"));
            assert_eq!(said.code, code, "{arguments}: {said}");
            assert!(said.stderr.starts_with(finding), "{arguments}: {said}");
        }
    }
}
