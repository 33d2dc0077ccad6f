//! The JSON Schema of robot files says what the reader takes.

use veracity_spec::contract::Contract;

const SCHEMA: &str = include_str!("../../../../../docs/schema/robot-1.json");

/// Names of the properties of an object of the schema, in order.
fn properties(path: &[&str]) -> Vec<String> {
    let mut node: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    for key in path {
        node = node[*key].take();
    }
    assert_eq!(node["additionalProperties"], false, "{path:?}");
    node["properties"].as_object().unwrap().keys().cloned().collect()
}

/// The keys that the reader names when it is given one that it does not know.
fn known(yaml: &str) -> Vec<String> {
    let refusal = Contract::from_robot_yaml("robot.yaml", yaml.into()).unwrap_err();
    let hint = &refusal.first_error().hints[0];
    let list = hint.strip_prefix("the keys are ").unwrap();
    let mut keys: Vec<String> = list.split(", ").map(str::to_owned).collect();
    keys.sort();
    keys
}

#[test]
fn the_schema_and_the_reader_know_the_same_keys() {
    let sorted = |path: &[&str]| {
        let mut keys = properties(path);
        keys.sort();
        keys
    };
    assert_eq!(sorted(&[]), known("qqqqqqqq: 1"));
    assert_eq!(sorted(&["properties", "joints"]), known("joints: {names: [a], qqqqqqqq: 1}"));
    assert_eq!(sorted(&["$defs", "port"]), known("inputs: {x: {qqqqqqqq: 1}}"));
}
