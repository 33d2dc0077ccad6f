//! Metadata of ONNX models as what a bundle, or a robot, declares.

use veracity_diag::Place;
use veracity_spec::contract::{Contract, Port, Stated, Status, compare};
use veracity_spec::{AxisNames, Direction};

use crate::support::{bundle, pairs, robot, rows, said};

/// A bundle whose YAML says nothing about its values.
const SILENT: &str = "\
models:
  policy:
    inputs:
    - {name: obs, dtype: float32, shape: [1, 9]}
    outputs:
    - {name: actions, dtype: float32, shape: [1, 3]}
    parameters: {model_path: null, backend: null}
pipeline:
  inputs: {policy: [obs]}
  outputs: {policy: [actions]}
system information:
  leapp config version: '1.3'
";

/// In the form that mjlab writes: commas, three digits after the point.
const METADATA: [(&str, &str); 7] = [
    ("joint_names", "hip,knee,ankle"),
    ("joint_stiffness", "20.000,30.000,40.124"),
    ("joint_damping", "0.500,0.500,0.500"),
    ("default_joint_pos", "0.100,-0.200,0.000"),
    ("action_scale", "0.250"),
    ("observation_names", "base_ang_vel,joint_pos,joint_vel"),
    ("command_names", "twist"),
];

const ROBOT: &str = "\
joints:
  names: [hip, knee, ankle]
  stiffness: [20, 30, 40.1236]
  damping: 0.5
  default_position: {hip: 0.1, knee: -0.2, ankle: 0}
  action_scale: 0.25
observation_names: [base_ang_vel, joint_pos, joint_vel]
command_names: [twist]
outputs:
  actions: {element_names: joints}
";

#[test]
fn metadata_counts_where_the_yaml_says_nothing() {
    let (ours, problems) = bundle(SILENT, &METADATA);
    assert_eq!(problems, []);
    let findings = compare(&ours, &robot(ROBOT), 0.0);
    assert_eq!(said(&findings), Vec::<String>::new());
    assert_eq!(
        rows(&findings, Status::Agrees),
        [
            "the joints order",
            "the joints stiffness",
            "the joints damping",
            "the joints default_position",
            "the joints action_scale",
            "the pipeline observations",
            "the pipeline commands",
            "policy/actions order",
        ]
    );
}

#[test]
fn numbers_of_metadata_are_known_to_their_last_digit_and_no_further() {
    let (ours, _) = bundle(SILENT, &METADATA);
    for (number, agrees) in [("40.1236", true), ("40.1244", true), ("40.1255", false)] {
        let robot = robot(&ROBOT.replace("40.1236", number));
        assert_eq!(compare(&ours, &robot, 0.0).diagnostics.is_empty(), agrees, "{number}");
    }
}

#[test]
fn joints_in_another_order_reorder_the_actions() {
    let (ours, _) = bundle(SILENT, &METADATA);
    let swapped = ROBOT
        .replace("names: [hip, knee, ankle]", "names: [ankle, hip, knee]")
        .replace("stiffness: [20, 30, 40.1236]", "stiffness: [40.1236, 20, 30]");
    let findings = compare(&ours, &robot(&swapped), 0.0);
    let codes: Vec<String> =
        findings.diagnostics.iter().map(|found| found.code.to_string()).collect();
    assert_eq!(codes, ["VER1415", "VER1415"], "the joints, and the port: {findings:?}");
    assert_eq!(findings.reorder.entries.len(), 1);
    assert_eq!(findings.reorder.entries[0].take, [2, 0, 1]);
}

#[test]
fn the_yaml_overrules_the_metadata() {
    let told = SILENT.replace(
        "pipeline:\n",
        "pipeline:\n  configs: {joint_names: [hip, knee, ankle], joint_stiffness: [1, 2, 3], \
         observation_names: 'a,b'}\n",
    );
    let (ours, _) = bundle(&told, &METADATA);
    assert_eq!(ours.joints.len(), 1);
    assert_eq!(ours.joints[0].quantities.len(), 1, "the metadata's joints are not mixed in");
    assert_eq!(ours.observation_names.unwrap().value, ["a", "b"]);
    assert_eq!(ours.command_names.unwrap().value, ["twist"]);
}

#[test]
fn metadata_that_contradicts_itself_is_told_and_not_compared() {
    for (key, value, expected) in [
        (
            "joint_stiffness",
            "1.0,2.0",
            "`joint_stiffness` of the joints has 2 numbers for 3 joints",
        ),
        (
            "joint_damping",
            "a,b,c",
            "`joint_damping` of the joints holds something that is not a number",
        ),
        ("joint_names", "a,b,a", "`joint_names` of the joints names \"a\" twice"),
        ("command_names", "x,x", "`command_names` of the joints names \"x\" twice"),
    ] {
        let mut metadata = METADATA.to_vec();
        metadata.retain(|(name, _)| *name != key);
        metadata.push((key, value));
        let (_, problems) = bundle(SILENT, &metadata);
        let [problem] = problems.as_slice() else { panic!("{key}: {problems:?}") };
        assert_eq!(problem.code.to_string(), "VER1410");
        assert_eq!(problem.message, format!("{expected}; it is not compared"));
        assert_eq!(problem.place.file.as_deref(), Some("policy.onnx"));
    }
}

#[test]
fn a_model_may_stand_for_the_robot() {
    let mut actions = Port::new("actions", Direction::Output, Place::default());
    actions.shape = Some(Stated { value: vec![1, 3], place: Place::default() });
    // Another observation, as another policy on the same robot has.
    let obs = Port::new("height_scan", Direction::Input, Place::default());
    let entries = pairs(&METADATA);
    let (theirs, problems) = Contract::from_metadata("robot.onnx", &entries, vec![obs, actions]);
    assert_eq!(problems, []);
    let named = theirs.ports[1].element_names.as_ref().unwrap();
    assert_eq!(named.value, [AxisNames::named(["hip", "knee", "ankle"])]);
    let (ours, _) = bundle(SILENT, &METADATA);
    let findings = compare(&ours, &theirs, 0.0);
    assert_eq!(said(&findings), Vec::<String>::new());
    assert!(rows(&findings, Status::Agrees).contains(&"policy/actions order".to_owned()));
    assert_eq!(rows(&findings, Status::Unchecked), ["policy/obs port"]);
}

#[test]
fn outputs_that_are_not_the_actions_get_no_names() {
    for yaml in [
        SILENT.replace("actions", "value"),
        SILENT.replace("[1, 3]", "[1, 4]"),
        SILENT.replace("name: actions,", "name: actions, element_names: [[a, b, c]],"),
    ] {
        let (ours, _) = bundle(&yaml, &METADATA);
        let names = ours.ports[1].element_names.as_ref().map(|names| &names.value);
        assert_ne!(names, Some(&vec![AxisNames::named(["hip", "knee", "ankle"])]), "{yaml}");
    }
}
