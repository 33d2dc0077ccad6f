//! A small bundle, and robots to hold it against.

use veracity_diag::Diagnostic;
use veracity_spec::Description;
use veracity_spec::contract::{Contract, Findings, Row, Status, compare};

/// One node with a port of everything that a contract is about.
pub(crate) const BUNDLE: &str = "\
models:
  policy:
    inputs:
    - name: joints
      dtype: float32
      shape: [1, 3]
      kind: state/joint/position
      element_names: [null, [hip, knee, ankle]]
      units: rad
    - name: command
      dtype: float32
      shape: [1, 2]
    outputs:
    - name: target
      dtype: float32
      shape: [4, 3]
      kind: target/joint/position
      element_names: [__temporal_axis__, [hip, knee, ankle]]
      temporal_period_ms: 20
      units: [rad, rad, rad]
      stiffness: [20, 30, 40]
      damping: 0.5
    parameters: {model_path: null, backend: null}

pipeline:
  configs:
    frequency: 50
    observation_names: [base_ang_vel, joint_pos]
  data_flow: {}
  feedback_flow: {}
  inputs:
    policy: [joints, command]
  outputs:
    policy: [target]

system information:
  leapp config version: '1.3'
";

/// A robot that says the same in every point.
pub(crate) const ROBOT: &str = "\
robot: walker
rate_hz: 50
joints:
  names: [hip, knee, ankle]
  stiffness: [20, 30, 40]
  damping: 0.5
observation_names: [base_ang_vel, joint_pos]
inputs:
  policy/joints:
    kind: state/joint/position
    element_names: joints
    units: rad
    shape: [1, 3]
    dtype: float32
  command: {shape: [1, 2]}
outputs:
  target:
    kind: target/joint/position
    element_names: [hip, knee, ankle]
    units: rad
    temporal_period_ms: 20
";

pub(crate) fn bundle(yaml: &str, metadata: &[(&str, &str)]) -> (Contract, Vec<Diagnostic>) {
    let described = Description::from_yaml("policy.yaml", yaml.into()).unwrap();
    let entries = pairs(metadata);
    let files = if entries.is_empty() { vec![] } else { vec![("policy.onnx".to_owned(), entries)] };
    Contract::of_bundle(&described.spec, &described.places, &files)
}

pub(crate) fn pairs(metadata: &[(&str, &str)]) -> Vec<(String, String)> {
    metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn robot(yaml: &str) -> Contract {
    Contract::from_robot_yaml("robot.yaml", yaml.into()).unwrap()
}

/// Holds the bundle against the robot after a piece of the robot's file was replaced.
pub(crate) fn against(from: &str, to: &str) -> Findings {
    assert!(ROBOT.contains(from), "{from:?}");
    compare(&bundle(BUNDLE, &[]).0, &robot(&ROBOT.replacen(from, to, 1)), 1e-6)
}

/// Code, line, column and message of each finding.
pub(crate) fn said(findings: &Findings) -> Vec<String> {
    let line = |found: &Diagnostic| {
        let place = &found.place;
        let position = (place.line.unwrap_or(0), place.column.unwrap_or(0));
        let hints: Vec<String> = found.hints.iter().map(|hint| format!(" | {hint}")).collect();
        let (line, column) = position;
        format!(
            "{} {}:{line}:{column} {}{}",
            found.code,
            place.file.clone().unwrap_or_default(),
            found.message,
            hints.concat()
        )
    };
    findings.diagnostics.iter().map(line).collect()
}

/// The rows of one outcome, `subject aspect`.
pub(crate) fn rows(findings: &Findings, status: Status) -> Vec<String> {
    let text = |row: &Row| format!("{} {}", row.subject, row.aspect);
    findings.rows.iter().filter(|row| row.status == status).map(text).collect()
}
