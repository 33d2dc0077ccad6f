//! Robots that declare themselves in a `deploy.yaml`, as Unitree's training writes it.

use veracity_spec::contract::{Contract, Status, compare};

use crate::support::{BUNDLE, bundle, robot, rows, said};

/// A robot of three joints. Its motors are ankle, hip, knee; its policy has hip, knee, ankle.
const DEPLOY: &str = "\
joint_ids_map: [1, 2, 0]
step_dt: 0.02
stiffness: [40.0, 20.0, 30.0]
damping: [0.5, 0.5, 0.5]
default_joint_pos: [0.1, 0.2, -0.3]
commands:
  base_velocity:
    ranges: {lin_vel_x: [-0.5, 1.0], heading: null}
actions:
  JointPositionAction:
    clip: null
    joint_names: [.*]
    scale: [0.25, 0.25, 0.25]
    offset: [0.1, 0.2, -0.3]
    joint_ids: null
observations:
  base_ang_vel: {params: {}, clip: null, scale: [0.2, 0.2, 0.2], history_length: 5}
  joint_pos: {params: {}, clip: null, scale: [1.0, 1.0, 1.0], history_length: 5}
";

fn deploy(from: &str, to: &str) -> Contract {
    assert!(DEPLOY.contains(from), "{from:?}");
    robot(&DEPLOY.replacen(from, to, 1))
}

fn found(from: &str, to: &str) -> Vec<String> {
    let findings = compare(&bundle(BUNDLE, &[]).0, &deploy(from, to), 1e-6);
    said(&findings)
}

#[test]
fn gains_are_brought_from_the_order_of_the_motors_into_that_of_the_policy() {
    let findings = compare(&bundle(BUNDLE, &[]).0, &deploy("step_dt", "step_dt"), 1e-6);
    assert_eq!(said(&findings), Vec::<String>::new());
    let agreeing = rows(&findings, Status::Agrees);
    for row in [
        "the pipeline rate",
        "policy/target stiffness",
        "policy/target damping",
        "the pipeline observations",
    ] {
        assert!(agreeing.iter().any(|one| one == row), "{row}: {agreeing:?}");
    }
    assert!(!agreeing.iter().any(|row| row.ends_with("order")), "names were not compared");
    let unchecked = rows(&findings, Status::Unchecked);
    for row in ["policy/target order", "policy/target default_position", "the pipeline commands"] {
        assert!(unchecked.iter().any(|one| one == row), "{row}: {unchecked:?}");
    }
}

#[test]
fn what_differs_is_told_by_the_names_of_the_bundle() {
    for (from, to, expected) in [
        (
            "[40.0, 20.0, 30.0]",
            "[20.0, 30.0, 40.0]",
            "VER1419 robot.yaml:3:12 stiffness of policy/target differs for 3 of 3 joints: \"hip\" \
             (20 in the bundle, 30 on the robot), \"knee\" (30 in the bundle, 40 on the robot), \
             \"ankle\" (40 in the bundle, 20 on the robot) | if the difference is meant, allow it \
             with `--gain-rtol`",
        ),
        (
            "step_dt: 0.02",
            "step_dt: 0.005",
            "VER1418 robot.yaml:2:10 the bundle was made for 50 Hz, the robot runs at 200 Hz",
        ),
    ] {
        assert_eq!(found(from, to), [expected]);
    }
}

#[test]
fn joints_of_another_number_are_told() {
    let two = "joint_ids_map: [1, 0]\nstiffness: [20.0, 30.0]\n";
    let findings = compare(&bundle(BUNDLE, &[]).0, &robot(two), 1e-6);
    assert_eq!(
        said(&findings),
        ["VER1420 robot.yaml:1:16 policy/target are 3 in the bundle, 2 on the robot"]
    );
}

#[test]
fn numbers_are_known_to_three_digits() {
    // 1/30 s was written as 0.0333, and 19.98 N m/rad as 20.0.
    assert_eq!(deploy("0.02", "0.0333").rate_hz.unwrap().value.to_bits(), 30.0_f64.to_bits());
    let bundle = bundle(&BUNDLE.replace("[20, 30, 40]", "[19.98, 30, 40]"), &[]).0;
    assert_eq!(said(&compare(&bundle, &deploy("0.02", "0.02"), 1e-6)), Vec::<String>::new());
}

#[test]
fn gains_whose_joints_are_not_known_are_not_compared() {
    let robot = deploy("joint_ids_map: [1, 2, 0]", "joint_ids_map: [1, 2, 6]");
    let told: Vec<String> = robot.remarks.iter().map(|one| one.message.clone()).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("`stiffness` has 3 numbers, and `joint_ids_map` does not say"));
    let findings = compare(&bundle(BUNDLE, &[]).0, &robot, 1e-6);
    assert!(rows(&findings, Status::Unchecked).contains(&"policy/target stiffness".to_owned()));
}

#[test]
fn a_map_that_is_none_is_refused_where_it_stands() {
    for (yaml, expected) in [
        ("joint_ids_map: [0, 0]", "motor 0 stands twice"),
        ("joint_ids_map: [0, -1]", "a motor must be its number, not a whole number"),
        ("joint_ids_map: [hip]", "a motor must be its number, not text"),
        ("joint_ids_map: 3", "`joint_ids_map` must be a list, not a whole number"),
        ("joint_ids_map: [0]\ndamping: [.inf]", "`damping` must be finite, not inf"),
        (
            "joint_ids_map: [1, 0]\ndefault_joint_pos: [1, 2, 3]",
            "`default_joint_pos` has 3 numbers for 2 joints",
        ),
        ("joint_ids_map: [0]\nstep_dt: 0", "`step_dt` must be more than 0, not 0"),
    ] {
        let refusal = Contract::from_robot_yaml("robot.yaml", yaml.into()).unwrap_err();
        assert_eq!(refusal.first_error().message, expected, "{yaml}");
    }
}
