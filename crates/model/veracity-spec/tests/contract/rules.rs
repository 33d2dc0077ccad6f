//! Which differences are found, where they are, and what is said about them.

use veracity_diag::Severity;
use veracity_spec::contract::{Contract, Status, compare};

use crate::support::{BUNDLE, ROBOT, against, bundle, robot, rows, said};

#[test]
fn a_robot_that_says_the_same_agrees_in_every_point() {
    let findings = against("walker", "walker");
    assert_eq!(said(&findings), Vec::<String>::new());
    assert_eq!(
        rows(&findings, Status::Agrees),
        [
            "the pipeline rate",
            "policy/target stiffness",
            "policy/target damping",
            "the pipeline observations",
            "policy/joints shape",
            "policy/joints dtype",
            "policy/joints kind",
            "policy/joints order",
            "policy/joints units",
            "policy/command shape",
            "policy/target kind",
            "policy/target order",
            "policy/target units",
            "policy/target period",
        ]
    );
    assert_eq!(findings.rows.len(), 14, "nothing is left unchecked");
    assert!(findings.reorder.is_empty());
}

/// What is replaced in the robot's file, by what, and the first finding.
const DIFFERENCES: [(&str, &str, &str); 20] = [
    (
        "rate_hz: 50",
        "rate_hz: 200",
        "VER1418 robot.yaml:2:10 the bundle was made for 50 Hz, the robot runs at 200 Hz",
    ),
    (
        "[20, 30, 40]",
        "[20, 30, 45]",
        "VER1419 robot.yaml:5:14 stiffness of policy/target differs for 1 of 3 joints: \"ankle\" \
         (40 in the bundle, 45 on the robot) | if the difference is meant, allow it with \
         `--gain-rtol`",
    ),
    (
        "damping: 0.5",
        "damping: {hip: 0.5, knee: 0}",
        "VER1419 robot.yaml:6:12 damping of policy/target differs for 1 of 2 joints: \"knee\" \
         (0.5 in the bundle, 0 on the robot) | if the difference is meant, allow it with \
         `--gain-rtol`",
    ),
    (
        "[base_ang_vel, joint_pos]",
        "[joint_pos, base_ang_vel]",
        "VER1415 robot.yaml:7:20 the observations stand in another order: the bundle's 0 to 1 are \
         the robot's [1, 0] | terms have different sizes, so that no map is written for them",
    ),
    (
        "[base_ang_vel, joint_pos]",
        "[base_ang_vel]",
        "VER1413 robot.yaml:7:20 the observations: the robot lacks \"joint_pos\"",
    ),
    (
        "kind: state/joint/position",
        "kind: state/joint/velocity",
        "VER1417 robot.yaml:10:11 input \"policy/joints\" is a \"state/joint/position\" for the \
         bundle, a \"state/joint/velocity\" for the robot",
    ),
    (
        "units: rad\n    shape",
        "units: deg\n    shape",
        "VER1416 robot.yaml:12:12 input \"policy/joints\" is in \"rad\" for the bundle, in \"deg\" \
         for the robot | multiply the robot's values by 0.017453292519943295",
    ),
    (
        "units: rad\n    temporal",
        "units: [rad, deg, rad]\n    temporal",
        "VER1416 robot.yaml:20:12 output \"policy/target\" at \"knee\" is in \"rad\" for the \
         bundle, in \"deg\" for the robot | multiply the bundle's values by 57.29577951308232",
    ),
    (
        "units: rad\n    shape",
        "units: m\n    shape",
        "VER1416 robot.yaml:12:12 input \"policy/joints\" is in \"rad\" for the bundle, in \"m\" \
         for the robot",
    ),
    (
        "units: rad\n    shape",
        "units: ticks\n    shape",
        "VER1416 robot.yaml:12:12 input \"policy/joints\" is in \"rad\" for the bundle, in \
         \"ticks\" for the robot | at least one of them is not a unit known here",
    ),
    (
        "units: rad\n    shape",
        "units: [rad, rad]\n    shape",
        "VER1416 robot.yaml:12:12 2 units for 3 elements of \"policy/joints\"",
    ),
    (
        "shape: [1, 3]",
        "shape: [1, 4]",
        "VER1420 robot.yaml:13:12 input \"policy/joints\" is [1, 3] in the bundle, not [1, 4]",
    ),
    (
        "dtype: float32",
        "dtype: float64",
        "VER1420 robot.yaml:14:12 input \"policy/joints\" is float32 in the bundle, not float64 | \
         nothing is converted silently: convert it on the robot's side",
    ),
    (
        "temporal_period_ms: 20",
        "temporal_period_ms: 10",
        "VER1418 robot.yaml:21:25 output \"policy/target\" has an element every 20 ms in the \
         bundle, every 10 ms on the robot",
    ),
    (
        "element_names: [hip, knee, ankle]",
        "element_names: [hip, kne, ankle]",
        "VER1413 robot.yaml:19:20 output \"policy/target\": the robot lacks \"knee\" | \"knee\" \
         may be the other side's \"kne\"",
    ),
    (
        "element_names: [hip, knee, ankle]",
        "element_names: [hip, knee, ankle, toe]",
        "VER1414 robot.yaml:19:20 output \"policy/target\": the bundle does not have \"toe\"",
    ),
    (
        "element_names: [hip, knee, ankle]",
        "element_names: [ankle, hip, knee]",
        "VER1415 robot.yaml:19:20 output \"policy/target\" has the same elements in another order: \
         the bundle's 0 to 2 are the robot's [1, 2, 0] | write the map with `--write-map \
         map.yaml` and run the bundle with it",
    ),
    (
        "  command: {shape: [1, 2]}\n",
        "",
        "VER1411 robot.yaml:0:0 the robot does not declare input \"policy/command\"",
    ),
    (
        "  target:",
        "  tarket:",
        "VER1412 robot.yaml:17:3 the bundle has no output \"tarket\" | did you mean \"target\"?",
    ),
    (
        "  command: {shape: [1, 2]}\n",
        "  command: {shape: [1, 2]}\n  policy/command:\n",
        "VER1410 robot.yaml:16:3 input \"policy/command\" is declared twice",
    ),
];

#[test]
fn every_difference_is_told_at_its_line_with_what_helps() {
    for (from, to, expected) in DIFFERENCES {
        let findings = against(from, to);
        assert_eq!(said(&findings)[0], expected, "{from} -> {to}");
        assert_eq!(findings.diagnostics[0].severity, Severity::Error, "{to}");
    }
}

#[test]
fn what_a_robot_may_do_differently_is_a_warning_at_most() {
    for (from, to, expected) in [
        ("  command: {shape: [1, 2]}", "  command:\n  camera:", Some("VER1412")),
        ("    element_names: [hip, knee, ankle]\n", "", Some("VER1423")),
        ("units: rad\n    shape", "units: radians\n    shape", None),
        ("rate_hz: 50", "rate_hz: 50.001", None),
        ("rate_hz: 50\n", "", None),
        ("  damping: 0.5\n", "", None),
    ] {
        let findings = against(from, to);
        let codes: Vec<String> =
            findings.diagnostics.iter().map(|found| found.code.to_string()).collect();
        assert_eq!(codes, expected.iter().map(ToString::to_string).collect::<Vec<_>>(), "{to}");
        assert!(findings.diagnostics.iter().all(|found| found.severity == Severity::Warning));
    }
}

#[test]
fn what_only_one_side_says_is_unchecked_and_never_agrees() {
    let silent = compare(&bundle(BUNDLE, &[]).0, &robot("robot: walker"), 0.0);
    assert_eq!(said(&silent), Vec::<String>::new());
    assert_eq!(
        rows(&silent, Status::Unchecked),
        [
            "the pipeline rate",
            "policy/target stiffness",
            "policy/target damping",
            "the pipeline observations",
            "policy/joints port",
            "policy/command port",
            "policy/target port",
        ]
    );
    assert_eq!(silent.rows.len(), 7);
    let nothing = compare(&Contract::default(), &robot(ROBOT), 0.0);
    assert_eq!(rows(&nothing, Status::Agrees), Vec::<String>::new());
}

#[test]
fn gains_may_differ_by_what_is_allowed() {
    let robot = robot(&ROBOT.replace("[20, 30, 40]", "[20.1, 30, 40]"));
    let ours = bundle(BUNDLE, &[]).0;
    assert_eq!(compare(&ours, &robot, 0.004).diagnostics.len(), 1);
    assert_eq!(compare(&ours, &robot, 0.006).diagnostics.len(), 0);
}

#[test]
fn joints_of_which_nothing_is_said_are_unchecked() {
    let findings = against("damping: 0.5", "damping: {hip: 0.5}");
    assert_eq!(said(&findings), Vec::<String>::new());
    assert_eq!(rows(&findings, Status::Unchecked), ["policy/target damping, other joints"]);
}

#[test]
fn a_port_name_that_several_nodes_have_must_be_written_out() {
    let two = BUNDLE
        .replace("  policy:\n    inputs:\n    - name: joints", "  policy:\n    inputs:\n    - name: command")
        .replace("    - name: command\n      dtype: float32\n      shape: [1, 2]\n", "")
        .replace("policy: [joints, command]", "policy: [command]\n    other: [command]")
        .replace(
            "    parameters: {model_path: null, backend: null}\n",
            "    parameters: {model_path: null, backend: null}\n  other:\n    inputs:\n    - name: command\n      dtype: float32\n      \
             shape: [1, 2]\n    outputs: []\n    parameters: {model_path: null, backend: null}\n",
        );
    let robot = robot("inputs: {command: {}}");
    let findings = compare(&bundle(&two, &[]).0, &robot, 0.0);
    assert_eq!(
        said(&findings)[0],
        "VER1410 robot.yaml:1:10 \"command\" may be any of policy/command, other/command | write the \
         port as `node/port`"
    );
}

#[test]
fn names_that_stand_twice_in_the_bundle_have_no_order() {
    let twice = BUNDLE.replace("[null, [hip, knee, ankle]]", "[null, [hip, hip, ankle]]");
    let findings = compare(&bundle(&twice, &[]).0, &robot(ROBOT), 0.0);
    assert!(
        said(&findings)[0].starts_with("VER1410 robot.yaml:11:20 input \"policy/joints\": \"hip\"")
    );
    assert!(findings.reorder.is_empty());
}

#[test]
fn names_of_a_robot_are_counted_even_when_the_bundle_has_none() {
    let findings = against("command: {shape: [1, 2]}", "command: {element_names: [x, 'y', w]}");
    assert_eq!(
        said(&findings),
        [
            "VER1420 robot.yaml:15:28 the robot names 3 elements of input \"policy/command\", which is [1, 2]"
        ]
    );
}
