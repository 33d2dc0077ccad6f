//! Damaged descriptions never make the reader panic, hang or take much memory; whatever is still
//! accepted is a description like any other.
//!
//! `VERACITY_FUZZ_CASES=1000000 cargo test --release -p veracity-spec --test fuzz_yaml` fuzzes for
//! long.

use proptest::prelude::*;
use veracity_spec::contract::{Contract, compare};
use veracity_spec::{
    Backend, Description, Edge, Md5Sum, Model, Node, PortRef, PortSpec, ReorderMap, Sha256Sum, Spec,
};
use veracity_tensor::DType;

#[path = "../../../base/veracity-tensor/tests/support/memory.rs"]
mod memory;
#[path = "../../../base/veracity-tensor/tests/support/mutate.rs"]
mod mutate;

use memory::within_memory;
use mutate::{config, in_time, mutate, mutations};

/// Every seed is a few kilobytes; aliases may repeat a part up to the limit of nodes.
const MEMORY_LIMIT: usize = 128 << 20;

/// A description with an edge, feedback, names and numbers to damage.
fn description() -> String {
    let node = |name: &str| Node {
        name: name.to_owned(),
        inputs: vec![PortSpec::new("in", DType::F32, [1, 2])],
        outputs: vec![PortSpec::new("out", DType::F32, [1, 2])],
        model: Some(Model {
            backend: Backend::Onnx,
            path: format!("{name}.onnx").parse().expect("a plain name is a path"),
            sha256: Sha256Sum::ZERO,
            md5: Md5Sum::ZERO,
        }),
        ..Node::default()
    };
    let edge = |source: (&str, &str), target: (&str, &str)| Edge {
        source: PortRef::new(source.0, source.1),
        target: PortRef::new(target.0, target.1),
    };
    let spec = Spec {
        nodes: vec![node("first"), node("second")],
        data_flow: vec![edge(("first", "out"), ("second", "in"))],
        feedback_flow: vec![edge(("second", "out"), ("first", "in"))],
        pipeline_outputs: vec![PortRef::new("second", "out")],
        ..Spec::default()
    };
    spec.to_yaml()
}

const ALIASES: &str = "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nmodels: {n: *b, m: [*b, *a]}\n";

proptest! {
    #![proptest_config(config())]

    #[test]
    fn damage_is_refused_or_read_within_limits(
        damage in mutations(),
        aliases in any::<bool>(),
    ) {
        let (whole, other) = (description(), ALIASES.to_owned());
        let (seed, other) = if aliases { (other, whole) } else { (whole, other) };
        let bytes = mutate(seed.as_bytes(), other.as_bytes(), &damage);
        let read = in_time(|| within_memory(MEMORY_LIMIT, || Description::from_yaml("f.yaml", bytes)));
        if let Ok(read) = read {
            let again = Description::from_yaml("f.yaml", read.spec.to_yaml().into_bytes());
            prop_assert_eq!(again.map(|again| again.spec), Ok(read.spec));
        }
    }
}

const ROBOT: &str = "\
rate_hz: 50
joints: {names: [a, b, c], stiffness: [1, 2.5, 3], damping: {a: 1, b: 2}, friction: 0}
observation_names: [x, z]
inputs: {n/p: {kind: k, element_names: joints, units: [rad, deg, m], shape: [1, 3], dtype: float32}}
outputs: {q: {element_names: [null, [a, b]], temporal_period_ms: 20}, r: }
";

const MAP: &str = "\
reorder: 1
inputs: [{port: n/p, axis: 1, take: [2, 0, 1], robot: [c, a, b], bundle: [a, b, c]}]
outputs: [{port: n/q, take: [1, 0]}]
";

proptest! {
    #![proptest_config(config())]

    #[test]
    fn damaged_robots_and_maps_are_refused_or_read_within_limits(damage in mutations()) {
        let robot = mutate(ROBOT.as_bytes(), MAP.as_bytes(), &damage);
        let map = mutate(MAP.as_bytes(), ROBOT.as_bytes(), &damage);
        let read = || (Contract::from_robot_yaml("r", robot), ReorderMap::from_yaml("m", map));
        let (robot, map) = in_time(|| within_memory(MEMORY_LIMIT, read));
        if let Ok(robot) = robot {
            // Whatever was accepted can be compared, with itself without a difference.
            let findings = compare(&robot, &robot, 0.0);
            prop_assert!(findings.reorder.is_empty());
        }
        if let Ok(map) = map {
            let again = ReorderMap::from_yaml("m", map.to_yaml().into_bytes());
            prop_assert_eq!(again.map(|again| again.entries), Ok(map.entries.clone()));
            prop_assert!(map.is_empty() || map.check(&Spec::default()).is_err());
        }
    }
}

#[test]
fn the_seeds_of_robots_and_maps_are_accepted() {
    let robot = Contract::from_robot_yaml("r", ROBOT.into());
    assert!(robot.is_ok(), "{robot:?}");
    let map = ReorderMap::from_yaml("m", MAP.into());
    assert!(map.is_ok(), "{map:?}");
}

#[test]
fn the_seed_itself_is_accepted() {
    let read = Description::from_yaml("f.yaml", description().into_bytes());
    assert!(read.is_ok(), "{read:?}");
}
