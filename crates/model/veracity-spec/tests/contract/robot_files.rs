//! Robot files that are refused, with the place and what helps.

use veracity_diag::Severity;
use veracity_spec::contract::Contract;

/// Every problem, as `code line:column message | hint`.
fn problems(yaml: &str) -> Vec<String> {
    let refusal = Contract::from_robot_yaml("robot.yaml", yaml.into()).unwrap_err();
    let line = |found: &veracity_diag::Diagnostic| {
        assert_eq!(found.severity, Severity::Error);
        let (line, column) = (found.place.line.unwrap_or(0), found.place.column.unwrap_or(0));
        let hints: Vec<String> = found.hints.iter().map(|hint| format!(" | {hint}")).collect();
        format!("{} {line}:{column} {}{}", found.code, found.message, hints.concat())
    };
    refusal.diagnostics().iter().map(line).collect()
}

#[test]
fn what_is_wrong_with_a_robot_file_is_told_where_it_is() {
    for (yaml, expected) in [
        ("rat_hz: 50", "VER0109 1:1 a robot file has no key \"rat_hz\" | did you mean `rate_hz`?"),
        (
            "gain: 50",
            "VER0109 1:1 a robot file has no key \"gain\" | the keys are robot, rate_hz, joints, \
             observation_names, command_names, inputs, outputs",
        ),
        ("rate_hz: fast", "VER0105 1:10 `rate_hz` must be a number, not text"),
        ("rate_hz: 0", "VER0324 1:10 `rate_hz` must be more than 0, not 0"),
        ("rate_hz: .nan", "VER0324 1:10 `rate_hz` must be more than 0, not NaN"),
        ("- a", "VER0105 1:1 a robot file must be a mapping, not a list"),
        ("", "VER0108 0:0 the file is empty"),
        (
            "robot: 5",
            "VER0105 1:8 `robot` must be text, not a whole number | put it in quotes: '5'",
        ),
        ("joints: {stiffness: 1}", "VER0106 1:9 `joints` has no key `names`"),
        ("joints: {names: [a, a]}", "VER1410 1:21 `names` of `joints`: \"a\" stands twice"),
        (
            "joints: {names: [a, on]}",
            "VER0105 1:21 a name must be text, not true or false | put it in quotes: 'on'",
        ),
        (
            "joints: {names: [a], stiffnes: 1}",
            "VER0109 1:22 `joints` has no key \"stiffnes\" | did you mean `stiffness`?",
        ),
        (
            "joints: {names: [a, b], damping: [1]}",
            "VER1410 1:34 `damping` has 1 numbers for 2 joints",
        ),
        (
            "joints: {names: [a], damping: {b: 1}}",
            "VER0109 1:32 `damping` has no key \"b\" | did you mean `a`?",
        ),
        ("joints: {names: [a], damping: .inf}", "VER1410 1:31 `damping` must be finite, not inf"),
        (
            "inputs: {obs: {unit: rad}}",
            "VER0109 1:16 input \"obs\" has no key \"unit\" | did you mean `units`?",
        ),
        ("inputs: [obs]", "VER0105 1:9 `inputs` must be a mapping, not a list"),
        ("inputs: {obs: rad}", "VER0105 1:15 input \"obs\" must be a mapping, not text"),
        (
            "inputs: {obs: {dtype: flaot32}}",
            "VER0305 1:23 dtype \"flaot32\" is not known | did you mean `float32`?",
        ),
        (
            "inputs: {obs: {element_names: joints}}",
            "VER1410 1:31 `joints` is not declared in this file",
        ),
        ("inputs: {obs: {element_names: [[a, a], [b]]}}", "VER1410 1:31 \"a\" stands twice"),
        (
            "inputs: {obs: {element_names: [[a], b]}}",
            "VER1410 1:31 give a list of names, or one for each axis",
        ),
        (
            "inputs: {obs: {units: [rad, 1]}}",
            "VER0105 1:29 a unit must be text, not a whole number | put it in quotes: '1'",
        ),
        ("inputs: {obs: {}, obs: {}}", "VER0103 1:19 key \"obs\" stands twice (first in line 1)"),
    ] {
        assert_eq!(problems(yaml), [expected], "{yaml}");
    }
}

#[test]
fn every_problem_is_told_at_once() {
    assert_eq!(problems("rat_hz: 1\nrate_hz: -1\ninputs: {x: {kind: 1}}\n").len(), 3);
}

#[test]
fn hostile_files_are_refused_within_the_budget() {
    let joints = (0..1025).map(|index| format!("j{index}")).collect::<Vec<_>>().join(", ");
    assert_eq!(
        problems(&format!("joints: {{names: [{joints}]}}")),
        ["VER1410 1:17 a robot of more than 1024 joints"]
    );
    let deep = format!("inputs: {}{}", "[".repeat(80), "]".repeat(80));
    assert!(problems(&deep)[0].starts_with("VER0104"));
    let large = Contract::from_robot_yaml("robot.yaml", vec![b' '; (16 << 20) + 1]).unwrap_err();
    assert_eq!(large.first_error().code.to_string(), "VER0004");
    let text = Contract::from_robot_yaml("robot.yaml", vec![0xff]).unwrap_err();
    assert_eq!(text.first_error().code.to_string(), "VER0102");
}
