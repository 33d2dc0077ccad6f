//! `veracity run` when it runs.

use veracity::tensor::file;

use crate::assert_said;
use crate::bundle::{floats, write_episode, write_policy, write_sum};
use crate::support::{Desk, Said, python_environment};

fn desk() -> Desk {
    let desk = Desk::new();
    write_policy(&desk);
    write_episode(&desk, 6);
    desk
}

/// Times, and the columns that depend on how long they are.
fn timeless(said: &Said) -> String {
    let text = said.to_string();
    let word = |word: &str| match word.parse::<f64>() {
        Ok(_) if word.contains('.') => "[us]".to_owned(),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_episode_gives_the_outputs_of_every_step() {
    let desk = desk();
    let said = desk.run("run policy --engine embedded --inputs episode.npz --outputs out.npz");
    assert_said!(timeless(&said), @"
    exit code 0
    ----- stdout -----
    session engine device
    scale embedded tract [version] cpu
    memory embedded tract [version] cpu

    steps p50 us p99 us p99.9 us max us mean us
    6 [us] - - [us] [us]
    ");
    assert_eq!(
        file::read(desk.path("out.npz")).unwrap(),
        file::read(desk.path("expected.npz")).unwrap(),
    );
    let compared = desk.run("compare expected.npz out.npz --atol 0 --rtol 0");
    assert_said!(compared, @"
    exit code 0
    ----- stdout -----
    name           verdict  max abs  max rel  rms  outside
    memory/action  proved         0        0    0     0/18

    1 proved, 0 disproved, 0 not comparable
    ");
}

#[test]
fn every_engine_and_form_gives_the_same_episode() {
    let desk = desk();
    for (options, outputs) in [
        ("--engine embedded --fuse", "fused.npz"),
        ("--engine ort", "ort.safetensors"),
        ("--engine ort --fuse --device cpu --threads 2", "ort_fused.npz"),
        ("", "auto.npz"),
    ] {
        let arguments = format!("run policy --inputs episode.npz --outputs {outputs} {options}");
        let mut command = desk.command(&arguments);
        command.env("VIRTUAL_ENV", python_environment());
        Said::from(command).done();
        desk.run(&format!("compare expected.npz {outputs} --atol 0 --rtol 0")).done();
    }
}

#[test]
fn a_constant_is_fed_on_every_step_and_a_state_once() {
    let desk = desk();
    let inputs =
        [("scale/obs", floats([1, 3], &[1.0; 3])), ("memory/h", floats([1, 3], &[10.0; 3]))];
    desk.tensors("constant.npz", inputs);
    desk.run("run policy --engine embedded --inputs constant.npz --steps 2 --outputs o.npz").done();
    let outputs = file::read(desk.path("o.npz")).unwrap();
    let expected = floats([2, 1, 3], &[-12.0, -12.0, -12.0, -14.0, -14.0, -14.0]);
    assert_eq!(outputs["memory/action"], expected);
}

#[test]
fn a_constant_may_stand_beside_an_episode() {
    let desk = Desk::new();
    write_sum(&desk);
    let episode = floats([2, 1, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    desk.tensors("i.safetensors", [("sum/x", episode), ("sum/h", floats([1, 3], &[1.0; 3]))]);
    desk.run("run sum --engine embedded --inputs i.safetensors --outputs o.safetensors").done();
    let outputs = file::read(desk.path("o.safetensors")).unwrap();
    let expected = floats([2, 1, 3], &[-2.0, -3.0, -4.0, -5.0, -6.0, -7.0]);
    assert_eq!(outputs["sum/action"], expected);
    assert!(outputs.contains_key("sum/h_next"));
}

#[test]
fn fewer_steps_than_the_episode_has_may_be_run() {
    let desk = desk();
    desk.run("run policy --engine embedded --inputs episode.npz --steps 2 --outputs o.npz").done();
    assert_eq!(file::read(desk.path("o.npz")).unwrap()["memory/action"].shape().dims(), [2, 1, 3]);
}

#[test]
fn made_up_inputs_depend_on_the_seed_alone() {
    let desk = desk();
    let outputs = |seed: u32, name: &str| {
        let mock =
            format!("run policy --engine embedded --mock {seed} --steps 70 --outputs {name}");
        desk.run(&mock).done();
        file::read(desk.path(name)).unwrap()
    };
    assert_eq!(outputs(7, "a.npz"), outputs(7, "b.npz"));
    assert_ne!(outputs(7, "a.npz"), outputs(8, "b.npz"));
}

#[test]
fn a_rate_brings_deadlines() {
    let desk = desk();
    let said = desk.run("run policy --engine embedded --mock 0 --steps 5 --rate 1000000").done();
    assert!(said.stdout.contains("of 5 deadlines, one every 1.0 us"), "{said}");
    let said =
        desk.run("run policy --engine embedded --mock 0 --steps 2 --rate bundle --format json");
    assert_eq!(said.done().json()["timing"]["period_secs"], 0.02);
}

#[test]
fn programs_get_times_sessions_and_warnings() {
    let desk = desk();
    let mut command =
        desk.command("run policy --engine ort --mock 0 --steps 5 --fuse --format json");
    command.env("VIRTUAL_ENV", python_environment());
    let found = Said::from(command).done().json();
    for (pointer, value) in [
        ("/schema_version", serde_json::json!("1.0")),
        ("/timing/latency/steps", 5.into()),
        ("/sessions/0/nodes", "scale+memory".into()),
        ("/sessions/0/device", "cpu".into()),
        ("/warnings", serde_json::json!([])),
        ("/outputs", serde_json::Value::Null),
    ] {
        assert_eq!(found.pointer(pointer), Some(&value), "{pointer}");
    }
}
