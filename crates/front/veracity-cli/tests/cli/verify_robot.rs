//! `veracity verify --robot`, and `veracity run --map`.

use veracity::tensor::file;
use veracity_onnx::{GraphBuilder, Node};

use crate::assert_said;
use crate::bundle::floats;
use crate::support::{Desk, Said};
use crate::walker::{OBSERVED, action, of_robot, write_values, write_walker};

fn desk() -> Desk {
    let desk = Desk::new();
    write_walker(&desk, true);
    desk
}

fn codes(said: &Said) -> Vec<String> {
    let json = said.json();
    let found = json["robot"]["diagnostics"].as_array().unwrap();
    found.iter().map(|found| found["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn another_order_is_told_with_its_permutation_and_the_map_is_written() {
    let desk = desk();
    assert_said!(desk.run("verify walker --robot robot.yaml --write-map map.yaml"), @r#"
    exit code 1
    ----- stdout -----
    sound: 2 files hashed, 1 model compared with their ports

    error[VER1415]: the joints stand in another order: the bundle's 0 to 2 are the robot's [1, 2, 0]
     --> robot.yaml:3:10
      |
    3 |   names: [ankle, hip, knee]
      |          ^
      = hint: a map brings those ports in order whose elements are named on both sides

    error[VER1415]: input "policy/obs" has the same elements in another order: the bundle's 0 to 2 are the robot's [1, 2, 0]
     --> robot.yaml:6:59
      |
    6 | …position, element_names: joints, units: rad}
      |                           ^^^^^^
      = hint: write the map with `--write-map map.yaml` and run the bundle with it

    error[VER1415]: output "policy/action" has the same elements in another order: the bundle's 0 to 2 are the robot's [1, 2, 0]
     --> robot.yaml:8:63
      |
    8 | …position, element_names: joints, units: rad}
      |                           ^^^^^^
      = hint: write the map with `--write-map map.yaml` and run the bundle with it

    subject        what       verdict  bundle                 robot
    the joints     order      differs  hip, knee, ankle       ankle, hip, knee
    policy/obs     order      differs  hip, knee, ankle       ankle, hip, knee
    policy/action  order      differs  hip, knee, ankle       ankle, hip, knee
    the pipeline   rate       agrees   50 Hz                  50 Hz
    the joints     stiffness  agrees   20, 30, 40             40, 20, 30
    policy/obs     kind       agrees   state/joint/position   state/joint/position
    policy/obs     units      agrees   rad                    rad
    policy/action  kind       agrees   target/joint/position  target/joint/position
    policy/action  units      agrees   rad                    rad

    the robot differs: 9 compared, 3 differ
    2 orders written to map.yaml
    "#);
    assert_said!(desk.read("map.yaml"), @"
    # Position i gets element take[i] of what comes: of the robot's values for inputs,
    # of the bundle's values for outputs.
    reorder: 1
    inputs:
    - port: policy/obs
      axis: 1
      take: [1, 2, 0]
      robot: [ankle, hip, knee]
      bundle: [hip, knee, ankle]
    outputs:
    - port: policy/action
      axis: 1
      take: [2, 0, 1]
      robot: [ankle, hip, knee]
      bundle: [hip, knee, ankle]
    ");
}

#[test]
fn the_map_brings_the_robots_episode_through_the_bundle_and_back() {
    let desk = desk();
    desk.run("verify walker --robot robot.yaml --write-map map.yaml");
    let observed = OBSERVED.map(of_robot).concat();
    desk.tensors("robot.npz", [("policy/obs", floats([3, 1, 3], &observed))]);
    desk.run("run walker --engine embedded --inputs robot.npz --map map.yaml --outputs out.npz")
        .done();
    let expected = OBSERVED.map(action).map(of_robot).concat();
    let outputs = file::read(desk.path("out.npz")).unwrap();
    assert_eq!(outputs["policy/action"], floats([3, 1, 3], &expected));
    desk.run("run walker --engine embedded --inputs robot.npz --outputs out.npz").done();
    let outputs = file::read(desk.path("out.npz")).unwrap();
    assert_ne!(outputs["policy/action"], floats([3, 1, 3], &expected), "it takes the map");
}

#[test]
fn a_map_for_other_names_is_refused() {
    let desk = desk();
    desk.run("verify walker --robot robot.yaml --write-map map.yaml");
    desk.edit("map.yaml", "[hip, knee, ankle]", "[hip, elbow, ankle]");
    desk.edit("map.yaml", "[ankle, hip, knee]", "[ankle, hip, elbow]");
    assert_said!(desk.run("run walker --engine embedded --mock 0 --map map.yaml"), @"
    exit code 2
    ----- stderr -----
    error[VER1424]: the map does not fit input policy/obs: the bundle names its elements otherwise
     --> map.yaml
      = hint: make it anew with `veracity verify BUNDLE --robot ROBOT --write-map MAP`
    ");
}

#[test]
fn a_robot_that_agrees_is_said_to_with_what_was_not_compared() {
    let desk = desk();
    desk.edit("robot.yaml", "[ankle, hip, knee]", "[hip, knee, ankle]");
    desk.edit("robot.yaml", ", units: rad}\noutputs", "}\noutputs");
    assert_said!(desk.run("verify walker --robot robot.yaml"), @"
    exit code 0
    ----- stdout -----
    sound: 2 files hashed, 1 model compared with their ports

    subject        what       verdict    bundle                 robot
    policy/obs     units      unchecked  rad
    the pipeline   rate       agrees     50 Hz                  50 Hz
    the joints     order      agrees     hip, knee, ankle       hip, knee, ankle
    the joints     stiffness  agrees     20, 30, 40             20, 30, 40
    policy/obs     kind       agrees     state/joint/position   state/joint/position
    policy/obs     order      agrees     hip, knee, ankle       hip, knee, ankle
    policy/action  kind       agrees     target/joint/position  target/joint/positi…
    policy/action  order      agrees     hip, knee, ankle       hip, knee, ankle
    policy/action  units      agrees     rad                    rad

    the robot agrees: 8 compared, 1 unchecked (one side is silent)
    ");
    let json = desk.run("verify walker --robot robot.yaml --format json").done().json();
    assert_eq!(json["robot"]["agrees"], true);
    assert_eq!(json["robot"]["rows"][0]["status"], "unchecked");
    assert_eq!(json["sound"], true);
}

#[test]
fn differences_refuse_and_warnings_only_when_asked_to() {
    for (from, to, code, expected) in [
        ("rate_hz: 50", "rate_hz: 100", 1, "VER1418"),
        ("hip: 20", "hip: 25", 1, "VER1419"),
        ("units: rad}\noutputs", "units: deg}\noutputs", 1, "VER1416"),
        ("state/joint/position", "state/joint/velocity", 1, "VER1417"),
        ("policy/action:", "policy/actions:", 1, "VER1412"),
        ("inputs:\n", "inputs:\n  camera:\n", 0, "VER1412"),
    ] {
        let desk = desk();
        desk.edit("robot.yaml", "[ankle, hip, knee]", "[hip, knee, ankle]");
        desk.edit("robot.yaml", from, to);
        let said = desk.run("verify walker --robot robot.yaml --format json");
        assert_eq!((said.code, codes(&said)[0].as_str()), (code, expected), "{to}: {said}");
        assert_eq!(desk.run("verify walker --robot robot.yaml --strict").code, 1, "{to}");
    }
    let desk = desk();
    desk.edit("robot.yaml", "[ankle, hip, knee]", "[hip, knee, ankle]");
    desk.edit("robot.yaml", "hip: 20", "hip: 20.1");
    assert_eq!(desk.run("verify walker --robot robot.yaml").code, 1);
    desk.run("verify walker --robot robot.yaml --gain-rtol 0.01").done();
}

#[test]
fn a_robot_that_says_nothing_is_inconclusive_and_one_that_cannot_be_read_is_no_answer() {
    let desk = desk();
    std::fs::write(desk.path("robot.yaml"), "robot: silent\n").unwrap();
    let said = desk.run("verify walker --robot robot.yaml");
    assert_eq!(said.code, 3, "{said}");
    std::fs::write(desk.path("robot.yaml"), "rat_hz: 50\n").unwrap();
    assert_said!(desk.run("verify walker --robot robot.yaml"), @r#"
    exit code 2
    ----- stderr -----
    error[VER0109]: a robot file has no key "rat_hz"
     --> robot.yaml:1:1
      |
    1 | rat_hz: 50
      | ^^^^^^
      = hint: did you mean `rate_hz`?
    "#);
    assert_eq!(desk.run("verify walker --robot nowhere.yaml").code, 2);
    assert_eq!(desk.run("verify walker --robot robot.yaml --write-map walker/map.yaml").code, 2);
    assert_eq!(desk.run("verify walker --robot robot.yaml --write-map robot.yaml").code, 2);
}

#[test]
fn recorded_values_confirm_the_order_of_the_names() {
    let desk = desk();
    write_values(&desk, OBSERVED, of_robot);
    let said = desk.run("verify walker --robot robot.yaml --values values.npz --format json");
    assert_eq!(codes(&said), ["VER1415"; 3], "the joints and two ports: {said}");
    let values: Vec<_> = said.json()["robot"]["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|row| row["aspect"] == "values")
        .map(|row| row["status"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(values, ["agrees", "agrees"]);
}

#[test]
fn values_that_agree_only_in_another_order_give_a_map_where_there_are_no_names() {
    let desk = Desk::new();
    write_walker(&desk, false);
    std::fs::write(desk.path("robot.yaml"), "rate_hz: 50\n").unwrap();
    write_values(&desk, OBSERVED, of_robot);
    let said =
        desk.run("verify walker --robot robot.yaml --values values.npz --write-map map.yaml");
    assert_said!(said, @r#"
    exit code 1
    ----- stdout -----
    sound: 2 files hashed, 1 model compared with their ports

    error[VER1421]: the values of output "policy/action" agree only in another order: the bundle's 0 to 2 are the robot's [1, 2, 0]
     --> values.npz
      = hint: write the map with `--write-map map.yaml`

    error[VER1421]: the values of input "policy/obs" agree only in another order: the bundle's 0 to 2 are the robot's [1, 2, 0]
     --> values.npz
      = hint: write the map with `--write-map map.yaml`

    subject        what       verdict    bundle            robot
    policy/action  values     differs    3 passes          in another order
    policy/obs     values     differs    3 passes          in another order
    the joints     order      unchecked  hip, knee, ankle
    the joints     stiffness  unchecked  20, 30, 40
    policy/obs     port       unchecked  input
    policy/action  port       unchecked  output
    the pipeline   rate       agrees     50 Hz             50 Hz

    the robot differs: 3 compared, 2 differ, 4 unchecked (one side is silent)
    2 orders written to map.yaml
    "#);
    let observed = OBSERVED.map(of_robot).concat();
    desk.tensors("robot.npz", [("policy/obs", floats([3, 1, 3], &observed))]);
    desk.run("run walker --engine embedded --inputs robot.npz --map map.yaml --outputs out.npz")
        .done();
    let outputs = file::read(desk.path("out.npz")).unwrap();
    let expected = OBSERVED.map(action).map(of_robot).concat();
    assert_eq!(outputs["policy/action"], floats([3, 1, 3], &expected));
}

#[test]
fn names_and_values_that_contradict_each_other_give_no_map() {
    let desk = desk();
    desk.edit("robot.yaml", "[ankle, hip, knee]", "[hip, knee, ankle]");
    write_values(&desk, OBSERVED, of_robot);
    let command = "verify walker --robot robot.yaml --values values.npz --write-map map.yaml";
    let said = desk.run(command);
    assert_eq!(said.code, 1);
    assert!(said.stdout.contains("say another order: one of them is wrong"), "{said}");
    assert!(said.stdout.contains("no map was written"), "{said}");
    assert!(!desk.path("map.yaml").exists());
    // The names say that the order differs; the values come as the bundle has them.
    let desk = self::desk();
    write_values(&desk, OBSERVED, |values| values);
    let said = desk.run(&format!("{command} --format json"));
    let order = ["VER1415", "VER1415", "VER1415", "VER1421", "VER1421"];
    assert_eq!(codes(&said), order, "{said}");
    assert!(!desk.path("map.yaml").exists());
}

#[test]
fn values_that_do_not_decide_or_do_not_fit_are_told() {
    let desk = Desk::new();
    write_walker(&desk, false);
    std::fs::write(desk.path("robot.yaml"), "rate_hz: 50\n").unwrap();
    let command = "verify walker --robot robot.yaml --values values.npz --format json";
    let mut other = OBSERVED;
    other[1][2] += 0.5;
    write_values(&desk, other, of_robot);
    assert_eq!(codes(&desk.run(command)), ["VER1422", "VER1422"]);
    let near = desk.run(&format!("{command} --atol 60"));
    assert_ne!(codes(&near)[0], "VER1422", "a tolerance that covers the difference");
    desk.tensors("values.npz", [("policy/obs", floats([3], &[0.0; 3]))]);
    assert_eq!(codes(&desk.run(command)), ["VER1420"]);
    desk.tensors("values.npz", [("policy/observed", floats([1, 3], &[0.0; 3]))]);
    assert_eq!(codes(&desk.run(command)), ["VER1412"]);
    // Of the first pass alone, in which hip and ankle are alike.
    desk.tensors("values.npz", [("obs", floats([1, 3], &of_robot(OBSERVED[0])))]);
    let said = desk.run(command);
    assert_eq!((said.code, codes(&said)), (1, vec!["VER1421".to_owned()]), "{said}");
}

#[test]
fn metadata_speaks_for_a_bundle_that_says_nothing_and_for_a_robot() {
    let desk = Desk::new();
    write_walker(&desk, false);
    let said = desk.run("verify walker --robot robot.yaml --format json");
    let all = codes(&said);
    assert_eq!(all.iter().filter(|code| *code == "VER1415").count(), 2, "{said}");
    let robot = GraphBuilder::new("policy", 17)
        .input("obs", veracity::tensor::DType::F32, [1, 3])
        .node(Node::new("Identity", ["obs"], ["action"]))
        .output("action", veracity::tensor::DType::F32, [1, 3])
        .metadata("joint_names", "hip,knee,ankle")
        .metadata("joint_stiffness", "20.000,30.000,41.000")
        .finish()
        .unwrap();
    robot.write(desk.path("robot.onnx")).unwrap();
    assert_said!(desk.run("verify walker --robot robot.onnx"), @r#"
    exit code 1
    ----- stdout -----
    sound: 2 files hashed, 1 model compared with their ports

    error[VER1419]: stiffness of the joints differs for 1 of 3 joints: "ankle" (40 in the bundle, 41 on the robot)
     --> robot.onnx
      = hint: if the difference is meant, allow it with `--gain-rtol`

    subject        what       verdict    bundle            robot
    the joints     stiffness  differs    20, 30, 40        20, 30, 41
    the pipeline   rate       unchecked  50 Hz
    the joints     order      agrees     hip, knee, ankle  hip, knee, ankle
    policy/obs     shape      agrees     [1, 3]            [1, 3]
    policy/obs     dtype      agrees     float32           float32
    policy/action  shape      agrees     [1, 3]            [1, 3]
    policy/action  dtype      agrees     float32           float32
    policy/action  order      agrees     hip, knee, ankle  hip, knee, ankle

    the robot differs: 7 compared, 1 differs, 1 unchecked (one side is silent)
    "#);
}
