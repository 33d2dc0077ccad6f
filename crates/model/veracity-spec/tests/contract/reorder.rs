//! Maps: written as they are read, and refused where they do not fit.

use veracity_spec::{AxisNames, Description, ReorderMap, Value};

use crate::support::BUNDLE;

const MAP: &str = "\
reorder: 1
inputs:
- port: policy/joints
  axis: 1
  take: [1, 2, 0]
  robot: [ankle, hip, knee]
  bundle: [hip, knee, ankle]
outputs:
- port: policy/target
  axis: 1
  take: [2, 0, 1]
";

fn check(yaml: &str) -> Vec<String> {
    let spec = Description::from_yaml("policy.yaml", BUNDLE.into()).unwrap().spec;
    let checked = ReorderMap::from_yaml("map.yaml", yaml.into()).and_then(|map| map.check(&spec));
    let Err(refusal) = checked else { return Vec::new() };
    let line = |found: &veracity_diag::Diagnostic| {
        assert_eq!(found.place.file.as_deref(), Some("map.yaml"));
        format!("{} {}", found.code, found.message)
    };
    refusal.diagnostics().iter().map(line).collect()
}

#[test]
fn a_map_that_fits_is_taken_and_written_as_it_was_read() {
    assert_eq!(check(MAP), Vec::<String>::new());
    let map = ReorderMap::from_yaml("map.yaml", MAP.into()).unwrap();
    let again = ReorderMap::from_yaml("map.yaml", map.to_yaml().into()).unwrap();
    assert_eq!(again, map);
    assert_eq!(map.to_yaml(), again.to_yaml());
}

#[test]
fn a_map_that_does_not_fit_is_refused() {
    for (from, to, expected) in [
        ("reorder: 1", "reorder: 2", "VER1424 only maps of version 1 are known"),
        ("reorder: 1\n", "", "VER0106 a reordering map has no key `reorder`"),
        ("axis: 1", "axes: 1", "VER0109 an entry has no key \"axes\""),
        (
            "axis: 1",
            "axis: 2",
            "VER1424 the map does not fit input policy/joints: it has no axis 2, its shape is [1, 3]",
        ),
        ("axis: 1", "axis: -1", "VER1424 `axis` must be a whole number from 0 on"),
        ("policy/joints", "policy", "VER1424 \"policy\" is not written `node/port`"),
        (
            "policy/joints",
            "policy/joint",
            "VER1424 the map is for input policy/joint, which the bundle does not have",
        ),
        (
            "[1, 2, 0]",
            "[1, 2]",
            "VER1424 the map does not fit input policy/joints: 2 positions for 3 elements",
        ),
        (
            "[1, 2, 0]",
            "[1, 2, 3]",
            "VER1424 the map does not fit input policy/joints: a position is beyond the elements, or stands twice",
        ),
        (
            "[1, 2, 0]",
            "[1, 1, 0]",
            "VER1424 the map does not fit input policy/joints: a position is beyond the elements, or stands twice",
        ),
        (
            "[1, 2, 0]",
            "[0, 1, 2]",
            "VER1424 the map does not fit input policy/joints: its order is not that of its names",
        ),
        ("[1, 2, 0]", "[1, 2, x]", "VER1424 a position must be a whole number from 0 on"),
        (
            "outputs:\n",
            "- {port: policy/joints, take: [0, 1, 2]}\noutputs:\n",
            "VER1424 the map reorders input policy/joints twice",
        ),
    ] {
        assert_eq!(check(&MAP.replacen(from, to, 1)), [expected], "{from} -> {to}");
    }
    let many = format!("reorder: 1\ninputs: [{}]", "{port: a/b, take: []}, ".repeat(1025));
    assert_eq!(check(&many), ["VER1424 a map of more than 1024 entries"]);
    let stale = MAP.replace("knee", "elbow");
    assert_eq!(
        check(&stale),
        [
            "VER1424 the map does not fit input policy/joints: the bundle names its elements otherwise"
        ]
    );
}

#[test]
fn the_caller_sees_names_units_and_gains_in_its_own_order() {
    let spec = Description::from_yaml("policy.yaml", BUNDLE.into()).unwrap().spec;
    let map = ReorderMap::from_yaml("map.yaml", MAP.into()).unwrap();
    map.check(&spec).unwrap();
    let seen = map.seen_by_caller(&spec);
    let joints = &seen.nodes[0].inputs[0];
    let theirs = AxisNames::named(["ankle", "hip", "knee"]);
    assert_eq!(joints.element_names, Some(vec![AxisNames::Unnamed, theirs.clone()]));
    let target = &seen.nodes[0].outputs[0];
    assert_eq!(target.element_names, Some(vec![AxisNames::Temporal, theirs]));
    let numbers = [40, 20, 30].map(|number: i64| Value::from(number)).into();
    assert_eq!(target.extra.get("stiffness"), Some(&Value::List(numbers)));
    assert_eq!(target.extra.get("damping"), Some(&Value::Float(0.5)));
    assert_eq!(seen.nodes[0].inputs[1], spec.nodes[0].inputs[1], "what the map does not name");
}
