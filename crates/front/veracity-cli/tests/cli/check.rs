//! `veracity check`: what it says about bundles.

use serde_json::json;

use crate::assert_said;
use crate::bundle::{floats, write_episode, write_policy, write_recorded_policy};
use crate::support::{Desk, Said, python_environment};

/// A bundle of which one recorded action is wrong by so much.
fn desk(wrong: f32) -> Desk {
    let desk = Desk::new();
    write_recorded_policy(&desk, wrong);
    desk
}

#[test]
fn a_bundle_that_holds_is_proved_in_a_few_lines() {
    assert_said!(desk(0.0).run("check policy --engine embedded"), @"
    exit code 0
    ----- stdout -----
    scale: 4 samples, largest error 0
    memory: 4 samples, largest error 0
    roll-out: 4 ticks, 9 steps, 2 resets, 5 ports, largest error 0
    ran on: embedded tract [version] (cpu); 1 thread; [system]
    judged by: rtol 0.001, atol 1e-5
    8 proved, 0 disproved, 0 not comparable
    ");
}

#[test]
fn a_bundle_that_does_not_is_shown_with_the_numbers() {
    assert_said!(desk(0.25).run("check policy --engine embedded"), @"
    exit code 1
    ----- stdout -----
    memory/action sample 3: disproved (rtol 0.001, atol 1e-5)
      source    float32[1, 3], from -5 to -2.5
      exported  float32[1, 3], from -5 to -2.75
      error     max 0.25, mean 0.08333, rms 0.1443
                p50 0, p75 0.125, p90 0.2, p99 0.245, p99.5 0.2475
                max relative 0.1, max ULP 1048576
      outside   1 of 3
      worst     at [0, 2]: source -2.5, exported -2.75
      passes    with atol 0.248 at rtol 0.001
    roll-out: disproved, 4 ticks, 9 steps, 2 resets
      first leaves the recorded episode at tick 3, in memory/action (output)
      memory/action (output) from tick 3: 2 of 27 outside, largest error 0.25,
        passes with atol 0.248
    error over time: ▁ is 0.25, █ is 0.25, · is none
      memory/action  ···█
    scale: 4 samples, largest error 0
    advice: memory/action: the first sample passes and a later one fails: a value
        that changes may have been recorded as a constant; make it an input of the
        node
    ran on: embedded tract [version] (cpu); 1 thread; [system]
    judged by: rtol 0.001, atol 1e-5
    6 proved, 2 disproved, 0 not comparable
    ");
}

#[test]
fn a_bundle_without_samples_is_not_called_proved() {
    let desk = Desk::new();
    write_policy(&desk);
    assert_said!(desk.run("check policy --engine embedded"), @r#"
    exit code 3
    ----- stdout -----
    roll-out: not comparable, 0 ticks, 0 steps, 0 resets: `scale/obs` was not
        recorded
    scale: not comparable: node "scale" has no samples
    memory: not comparable: node "memory" has no samples
    judged by: rtol 0.001, atol 1e-5
    0 proved, 0 disproved, 4 not comparable (node "scale" has no samples; node "memory" has no samples; `scale/obs` was not recorded)
    "#);
}

#[test]
fn every_engine_comes_to_the_same_verdicts() {
    for (wrong, code) in [(0.0, 0), (0.25, 1)] {
        let desk = desk(wrong);
        for engine in ["embedded", "ort"] {
            let mut command = desk.command(&format!("check policy --engine {engine}"));
            command.env("VIRTUAL_ENV", python_environment());
            let said = Said::from(command);
            assert_eq!(said.code, code, "{engine}: {said}");
            assert!(said.stdout.contains(&format!("ran on: {engine} ")), "{said}");
        }
    }
}

#[test]
fn an_engine_that_cannot_run_the_models_proves_nothing() {
    let desk = desk(0.0);
    let mut command = desk.command("check policy --engine torch");
    command.env("VIRTUAL_ENV", python_environment());
    let said = Said::from(command);
    assert_eq!(said.code, 3, "{said}");
    assert!(said.stdout.lines().last().unwrap().starts_with("0 proved, 0 disproved, "), "{said}");
}

#[test]
fn tolerances_are_for_everything_or_for_single_ports() {
    let desk = desk(0.25);
    for (options, code) in [
        ("", 1),
        ("--tolerance atol=0.3,rtol=0", 0),
        ("--tolerance atol=0.2,rtol=0", 1),
        ("--tolerance memory/action:atol=0.3,rtol=0", 0),
        ("--tolerance scale/scaled:atol=0.3,rtol=0", 1),
        ("--tolerance atol=0,rtol=0 --tolerance memory/action:atol=0.3,rtol=0", 0),
        ("--tolerance atol=0.3,rtol=0 --tolerance memory/action:atol=0,rtol=0", 1),
    ] {
        let said = desk.run(&format!("check policy --engine embedded {options}"));
        assert_eq!(said.code, code, "{options}: {said}");
    }
}

#[test]
fn nan_of_one_side_is_never_accepted() {
    let said = desk(f32::NAN).run("check policy --engine embedded --equal-nan");
    assert_eq!(said.code, 1, "{said}");
    assert!(said.stdout.contains("NaN/Inf   in source only, of 3 elements"), "{said}");
    assert!(said.stdout.contains("judged by: rtol 0.001, atol 1e-5; NaN equals NaN"), "{said}");
}

#[test]
fn nan_of_both_sides_is_accepted_only_when_asked_for() {
    let desk = Desk::new();
    write_policy(&desk);
    desk.tensors("inputs.npz", [("scale/obs", floats([1, 3], &[f32::NAN, 1.0, 2.0]))]);
    // The embedded engine refuses NaN.
    let check = |options: &str| {
        let mut command = desk.command(&format!("check policy {options}"));
        command.env("VIRTUAL_ENV", python_environment());
        Said::from(command)
    };
    assert_eq!(check("--engine ort --record --inputs inputs.npz --save").code, 1);
    assert_eq!(check("--engine ort").code, 1);
    check("--engine ort --equal-nan").done();
    check("--rejudge --equal-nan").done();
}

#[test]
fn what_was_measured_can_be_judged_again_without_running() {
    let desk = desk(0.25);
    assert_eq!(desk.run("check policy --engine embedded --save").code, 1);
    for (options, code) in [
        ("--tolerance atol=0.3,rtol=0.001", 0),
        ("--tolerance memory/action:atol=0.3,rtol=0.001", 0),
        ("--tolerance atol=0.2,rtol=0.001", 1),
        // Whether the worst pair is the one to ask is not known for another `rtol`.
        ("--tolerance atol=0.2,rtol=0.1", 3),
        ("--equal-nan", 1),
    ] {
        let said = desk.run(&format!("check policy --rejudge {options}"));
        assert_eq!(said.code, code, "{options}: {said}");
    }
    let before = desk.read("policy/proof.json");
    desk.run("check policy --rejudge --tolerance atol=0.3,rtol=0.001 --save").done();
    assert_ne!(desk.read("policy/proof.json"), before);
    let run = "run policy --engine embedded --mock 0 --steps 1 --require-proof";
    let refused = desk.run(run);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.starts_with("error[VER1121]"), "{refused}");
    desk.run(&format!("{run} --ceiling atol=0.3,rtol=0.001")).done();
}

#[test]
fn a_wider_verdict_that_was_saved_widens_no_later_one() {
    let desk = desk(0.25);
    desk.run("check policy --engine embedded --tolerance atol=0.3,rtol=0 --save").done();
    let said = desk.run("check policy --engine embedded");
    assert_eq!(said.code, 1, "{said}");
    assert!(said.stdout.contains("judged by: rtol 0.001, atol 1e-5"), "{said}");
    // Whoever proves on the spot does not believe the proof that lies there, nor its tolerance.
    let prove = "run policy --engine embedded --mock 0 --steps 1 --prove";
    let refused = desk.run(prove);
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.starts_with("error[VER1103]"), "{refused}");
    desk.run(&format!("{prove} --ceiling atol=0.3,rtol=0")).done();
}

#[test]
fn programs_get_the_whole_proof() {
    let desk = desk(0.25);
    let said = desk.run("check policy --engine embedded --format json");
    let found = said.json();
    for (pointer, value) in [
        ("/schema_version", json!("1.1")),
        ("/verdict", json!("disproved")),
        ("/reference/origin", json!("python")),
        ("/policy/default/atol", json!(1e-5)),
        ("/nodes/0/verdict", json!("proved")),
        ("/nodes/1/ports/0/samples/3/measurement/max_abs", json!(0.25)),
        ("/rollout/first_divergence/tick", json!(3)),
    ] {
        assert_eq!(found.pointer(pointer), Some(&value), "{pointer}");
    }
    assert!(found.get("worse").is_none(), "there was no baseline");
    let again = desk.run("check policy --engine embedded --format json");
    assert_eq!(again.stdout, said.stdout, "the same bundle gives the same bytes");
}

#[test]
fn a_bundle_without_samples_can_record_its_own() {
    let desk = Desk::new();
    write_policy(&desk);
    let said = desk.run("check policy --engine embedded --record --steps 3 --save").done();
    assert!(said.stdout.contains("nothing about the Python code"), "{said}");
    assert!(said.stdout.contains("memory: 3 samples, largest error 0"), "{said}");
    let samples = std::fs::read(desk.path("policy/policy_samples.safetensors")).unwrap();
    desk.run("verify policy").done();
    desk.run("check policy --engine embedded").done();
    desk.run("check policy --engine embedded --record --steps 3").done();
    let again = std::fs::read(desk.path("policy/policy_samples.safetensors")).unwrap();
    assert_eq!(again, samples, "made-up inputs depend on the seed alone");
    desk.run("check policy --engine embedded --record --steps 3 --mock 8").done();
    let other = std::fs::read(desk.path("policy/policy_samples.safetensors")).unwrap();
    assert_ne!(other, samples);
}

#[test]
fn an_episode_can_be_recorded() {
    let desk = Desk::new();
    write_policy(&desk);
    write_episode(&desk, 6);
    let record = "check policy --engine embedded --record --inputs episode.npz";
    let said = desk.run(record).done();
    assert!(said.stdout.contains("memory: 6 samples"), "{said}");
    let said = desk.run(&format!("{record} --steps 2")).done();
    assert!(said.stdout.contains("memory: 2 samples"), "{said}");
}

#[test]
fn samples_of_the_code_are_given_up_only_on_demand() {
    let desk = desk(0.25);
    let refused = desk.run("check policy --engine embedded --record");
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("samples from the Python code"), "{refused}");
    assert_eq!(desk.run("check policy --engine embedded").code, 1);
    desk.run("check policy --engine embedded --record --replace").done();
}

#[test]
fn a_baseline_fails_only_what_got_worse() {
    let (before, after) = (desk(0.25), desk(0.25));
    before.run("check policy --engine embedded --output ok.json --tolerance atol=1,rtol=1").done();
    assert_eq!(before.run("check policy --engine embedded --output bad.json").code, 1);
    for name in ["ok.json", "bad.json"] {
        std::fs::copy(before.path(name), after.path(name)).unwrap();
    }
    let said = after.run("check policy --engine embedded --baseline bad.json --quiet").done();
    assert!(said.stdout.ends_with("\nnothing is worse than in the baseline\n"), "{said}");
    let said = after.run("check policy --engine embedded --baseline ok.json");
    assert_said!(said, @r#"
    exit code 1
    ----- stdout -----
    memory/action sample 3: disproved (rtol 0.001, atol 1e-5)
      source    float32[1, 3], from -5 to -2.5
      exported  float32[1, 3], from -5 to -2.75
      error     max 0.25, mean 0.08333, rms 0.1443
                p50 0, p75 0.125, p90 0.2, p99 0.245, p99.5 0.2475
                max relative 0.1, max ULP 1048576
      outside   1 of 3
      worst     at [0, 2]: source -2.5, exported -2.75
      passes    with atol 0.248 at rtol 0.001
    roll-out: disproved, 4 ticks, 9 steps, 2 resets
      first leaves the recorded episode at tick 3, in memory/action (output)
      memory/action (output) from tick 3: 2 of 27 outside, largest error 0.25,
        passes with atol 0.248
    error over time: ▁ is 0.25, █ is 0.25, · is none
      memory/action  ···█
    scale: 4 samples, largest error 0
    advice: memory/action: the first sample passes and a later one fails: a value
        that changes may have been recorded as a constant; make it an input of the
        node
    ran on: embedded tract [version] (cpu); 1 thread; [system]
    judged by: rtol 0.001, atol 1e-5
    6 proved, 2 disproved, 0 not comparable

    error[VER1114]: "memory/action" was proved and is disproved
      = port: memory/action
      = hint: the tolerance is not that of the baseline: atol 1e-5, rtol 1e-3, not atol 1e0, rtol 1e0
    error[VER1114]: "memory/action" over time was proved and is disproved
      = port: memory/action
      = hint: the tolerance is not that of the baseline: atol 1e-5, rtol 1e-3, not atol 1e0, rtol 1e0
    2 worse than in the baseline
    "#);
    let json = after.run("check policy --engine embedded --baseline ok.json --format json").json();
    assert_eq!(json["worse"][0]["code"], "VER1114");
}
