//! Laws that hold for every pipeline.

use proptest::prelude::*;
use veracity_draw::{layout, svg};
use veracity_results::{Pipeline, PipelineEdge, PortName, Verdict};

use crate::geometry::faults;
use crate::pipelines::{node, pipeline};

/// What a node has: inputs, outputs, length of its name, verdict.
type Seed = (usize, usize, usize, Option<bool>);

fn any_pipeline() -> impl Strategy<Value = Pipeline> {
    let seed = (0_usize..5, 0_usize..5, 1_usize..60, any::<Option<bool>>());
    let nodes = prop::collection::vec(seed, 1..60);
    let edge = (any::<usize>(), any::<usize>(), any::<usize>(), any::<usize>(), 0_u32..4);
    (nodes, prop::collection::vec(edge, 0..90)).prop_map(|(seeds, edges)| made(&seeds, &edges))
}

fn made(seeds: &[Seed], edges: &[(usize, usize, usize, usize, u32)]) -> Pipeline {
    let names = |letter: char, count: usize| -> Vec<String> {
        (0..count).map(|row| format!("{letter}{}", "o".repeat(1 + 7 * row))).collect()
    };
    let mut nodes = Vec::new();
    for (index, (inputs, outputs, length, verdict)) in seeds.iter().enumerate() {
        let (inputs, outputs) = (names('i', *inputs), names('r', *outputs));
        let inputs: Vec<&str> = inputs.iter().map(String::as_str).collect();
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let mut one = node(&format!("{index}{}", "n".repeat(*length)), &inputs, &outputs);
        one.verdict = verdict.map(|yes| if yes { Verdict::Proved } else { Verdict::Disproved });
        nodes.push(one);
    }
    let mut pipeline = pipeline("any", nodes, &[]);
    let mut fed = std::collections::BTreeSet::new();
    for (a, b, output, input, delay) in edges {
        let (a, b) = (a % seeds.len(), b % seeds.len());
        // Within the tick values go forward only.
        let (from, to) = if *delay == 0 { (a.min(b), a.max(b)) } else { (a, b) };
        let (from, to) = (&pipeline.nodes[from], &pipeline.nodes[to]);
        if from.outputs.is_empty() || to.inputs.is_empty() || (*delay == 0 && a == b) {
            continue;
        }
        let source = PortName::new(&from.name, &from.outputs[output % from.outputs.len()].name);
        let target = PortName::new(&to.name, &to.inputs[input % to.inputs.len()].name);
        if fed.insert(target.clone()) {
            pipeline.edges.push(PipelineEdge { source, target, delay: *delay });
        }
    }
    pipeline.inputs.retain(|input| !fed.contains(input));
    pipeline
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_pipeline_has_a_sound_picture(pipeline in any_pipeline()) {
        let made = layout(&pipeline).unwrap();
        prop_assert_eq!(faults(&made), Vec::<String>::new());
        prop_assert_eq!(svg(&made), svg(&layout(&pipeline).unwrap()));
    }
}
