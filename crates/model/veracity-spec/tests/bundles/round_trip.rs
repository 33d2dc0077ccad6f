//! What is written is read back as the same, and random damage is never a panic.

use proptest::prelude::*;
use veracity_spec::{
    AxisNames, Backend, Description, Edge, Map, Node, PortRef, PortSpec, Spec, Value, VeracityBlock,
};
use veracity_tensor::{DType, Shape};

/// Names that YAML readers like to misunderstand, and any others that a node may have.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "on",
            "no",
            "y",
            "null",
            "~",
            "1",
            "1.5",
            "1e5",
            "0x1f",
            "- a",
            "-",
            "a: b",
            "a #b",
            "[x]",
            "{",
            "'",
            "\"",
            "\\",
            "größe",
            "𝄞",
            " x ",
            "?",
            ":",
            "!t",
            "&a",
            "*a",
            "%",
            "@",
            "`",
            "2024-01-31",
            "1:30",
            "=",
            "<<",
            "---",
            "...",
            ",",
            "a,b",
            "class",
            "x y",
            "\u{a0}",
            "\u{feff}",
            "\u{2028}",
            "|",
            ">",
        ])
        .prop_map(str::to_owned),
        "[^/\\p{Cc}]{1,12}",
    ]
    .prop_filter("usable", |name| name != "==out==")
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("NaN is not equal to itself", |v| !v.is_nan())
            .prop_map(Value::Float),
        any::<String>().prop_map(Value::Text),
        name().prop_map(Value::Text),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|pairs| Value::Map(pairs.into_iter().collect())),
        ]
    })
}

fn extra() -> impl Strategy<Value = Map> {
    prop::collection::vec((name(), value()), 0..3).prop_map(|pairs| pairs.into_iter().collect())
}

prop_compose! {
    fn port()(
        name in name(),
        dtype in prop::sample::select(DType::ALL.to_vec()),
        dims in prop::collection::vec(0_usize..5, 0..4),
        kind in prop::option::of(name()),
        temporal_period_ms in prop::option::of(0.001_f64..1e6),
        names in any::<bool>(),
        label in name(),
        extra in extra(),
    ) -> PortSpec {
        let axis = |(index, &size): (usize, &usize)| match index {
            0 => AxisNames::Temporal,
            1 => AxisNames::Unnamed,
            _ => AxisNames::Named((0..size).map(|n| format!("{label}{n}")).collect()),
        };
        let element_names = names.then(|| dims.iter().enumerate().map(axis).collect());
        PortSpec { name, dtype, shape: Shape::new(dims).unwrap(), kind, element_names, temporal_period_ms, extra }
    }
}

fn unique(ports: Vec<PortSpec>) -> Vec<PortSpec> {
    let mut seen = std::collections::HashSet::new();
    ports.into_iter().filter(|port| seen.insert(port.name.clone())).collect()
}

prop_compose! {
    fn node()(
        name in name(),
        inputs in prop::collection::vec(port(), 0..4),
        outputs in prop::collection::vec(port(), 0..4),
        backend in prop::option::of(prop::sample::select(Backend::ALL.to_vec())),
        parameters in extra(),
        extra in extra(),
    ) -> Node {
        let model = backend.map(|backend| veracity_spec::Model {
            backend,
            path: format!("models/{}.bin", backend.name()).parse().unwrap(),
            sha256: "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff".parse().unwrap(),
            md5: "01234567890123456789012345678901".parse().unwrap(),
        });
        Node { name, inputs: unique(inputs), outputs: unique(outputs), model, parameters, extra }
    }
}

prop_compose! {
    /// A spec in which each node also hands a value to the next, and the last to the first.
    fn spec()(
        nodes in prop::collection::vec(node(), 1..4),
        frequency in prop::option::of(0.1_f64..1e6),
        configs in extra(),
        system in extra(),
        pipeline_extra in extra(),
        extra in extra(),
        block in any::<bool>(),
    ) -> Spec {
        let mut spec = Spec { pipeline_extra, extra, system, ..Spec::default() };
        spec.configs.frequency = frequency;
        spec.configs.extra = configs;
        spec.veracity = block.then(VeracityBlock::default);
        let mut seen = std::collections::HashSet::new();
        spec.nodes = nodes.into_iter().filter(|node| seen.insert(node.name.clone())).collect();
        let link = PortSpec::new("<link>", DType::I32, [3]);
        for node in &mut spec.nodes {
            node.inputs.push(link.clone());
            node.outputs.push(link.clone());
        }
        let names: Vec<String> = spec.nodes.iter().map(|node| node.name.clone()).collect();
        let edge = |from: &String, to: &String| Edge {
            source: PortRef::new(from, "<link>"),
            target: PortRef::new(to, "<link>"),
        };
        spec.data_flow = names.windows(2).map(|pair| edge(&pair[0], &pair[1])).collect();
        spec.feedback_flow = vec![edge(&names[names.len() - 1], &names[0])];
        for node in &spec.nodes {
            let open = |port: &&PortSpec| port.name != "<link>";
            let named = |port: &PortSpec| PortRef::new(&node.name, &port.name);
            spec.pipeline_inputs.extend(node.inputs.iter().filter(open).map(named));
            spec.pipeline_outputs.extend(node.outputs.iter().filter(open).map(named));
        }
        // What is fed back is given as well, so that there is always an output.
        spec.pipeline_outputs.push(PortRef::new(&names[names.len() - 1], "<link>"));
        spec
    }
}

/// The characters that mean something to YAML do the most harm.
const HARMFUL: &[u8] = b"\n\t :-[]{}&*!|>'\"%@#,?0";

proptest! {
    #[test]
    fn a_spec_survives_writing_and_reading(spec in spec()) {
        let yaml = spec.to_yaml();
        prop_assert!(yaml.is_ascii());
        let read = Description::from_yaml("f.yaml", yaml.clone().into_bytes());
        let read = read.map_err(|refusal| TestCaseError::fail(format!("{}\n{yaml}", crate::common::rendered(refusal.diagnostics()))))?;
        prop_assert_eq!(read.spec, spec, "{}", yaml);
    }

    #[test]
    fn random_damage_is_refused_or_read_but_never_a_panic(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..4), 1..8),
    ) {
        let mut yaml = crate::common::YAML.as_bytes().to_vec();
        for (index, byte, kind) in damage {
            let at = index.index(yaml.len());
            match kind {
                0 => yaml[at] = byte,
                1 => yaml.insert(at, byte),
                2 => drop(yaml.remove(at)),
                _ => yaml[at] = HARMFUL[usize::from(byte) % HARMFUL.len()],
            }
        }
        let _ = Description::from_yaml("f.yaml", yaml);
    }

    #[test]
    fn random_text_is_never_a_panic(text in "[\\PC\n\t\r:\\[\\]{}&*!|>'\"%@#,? -]{0,200}") {
        let _ = Description::from_yaml("f.yaml", text.into_bytes());
    }
}
