//! Pipelines of several sizes and shapes.

use veracity_results::{Pipeline, PipelineEdge, PipelineNode, PipelinePort, PortName, Verdict};

pub(crate) fn port(name: &str, shape: &[u64]) -> PipelinePort {
    let shape = shape.to_vec();
    PipelinePort { name: name.into(), dtype: "float32".into(), shape, kind: None, unit: None }
}

pub(crate) fn node(name: &str, inputs: &[&str], outputs: &[&str]) -> PipelineNode {
    let ports = |names: &[&str]| names.iter().map(|name| port(name, &[1, 12])).collect();
    PipelineNode {
        name: name.into(),
        format: Some("onnx".into()),
        inputs: ports(inputs),
        outputs: ports(outputs),
        verdict: None,
    }
}

fn end(text: &str) -> PortName {
    let (node, port) = text.split_once('/').unwrap();
    PortName::new(node, port)
}

/// `a/x>b/y` within the tick, `a/x>b/y@2` two ticks later.
pub(crate) fn edge(text: &str) -> PipelineEdge {
    let (source, rest) = text.split_once('>').unwrap();
    let (target, delay) = rest.split_once('@').unwrap_or((rest, "0"));
    PipelineEdge { source: end(source), target: end(target), delay: delay.parse().unwrap() }
}

/// A pipeline whose free ports are those of the caller.
pub(crate) fn pipeline(name: &str, nodes: Vec<PipelineNode>, edges: &[&str]) -> Pipeline {
    let edges: Vec<PipelineEdge> = edges.iter().map(|text| edge(text)).collect();
    let name_of = |node: &PipelineNode, port: &PipelinePort| PortName::new(&node.name, &port.name);
    let inputs = nodes.iter().flat_map(|n| n.inputs.iter().map(move |p| name_of(n, p)));
    let outputs = nodes.iter().flat_map(|n| n.outputs.iter().map(move |p| name_of(n, p)));
    Pipeline {
        name: name.into(),
        rate_hz: Some(50.0),
        inputs: inputs.filter(|one| edges.iter().all(|edge| edge.target != *one)).collect(),
        outputs: outputs.filter(|one| edges.iter().all(|edge| edge.source != *one)).collect(),
        nodes,
        edges,
    }
}

/// A policy with memory.
pub(crate) fn one() -> Pipeline {
    let mut policy = node("policy", &["observation", "hidden"], &["action", "hidden_next"]);
    policy.inputs[0].kind = Some("state/joint/position".into());
    policy.inputs[0].unit = Some("rad".into());
    pipeline("gru_policy", vec![policy], &["policy/hidden_next>policy/hidden@1"])
}

/// Vision, proprioception and a policy with memory, with verdicts.
pub(crate) fn three() -> Pipeline {
    let mut nodes = vec![
        node("image_encoder", &["camera"], &["features"]),
        node("proprioception", &["joint_position", "joint_velocity", "last_action"], &["state"]),
        node("policy", &["features", "state", "hidden"], &["action", "hidden_next"]),
    ];
    nodes[0].inputs[0].shape = vec![1, 3, 224, 224];
    nodes[0].format = Some("pt2".into());
    nodes[1].inputs[0].kind = Some("state/joint/position".into());
    nodes[1].inputs[1].kind = Some("state/joint/velocity".into());
    let verdicts = [Verdict::Proved, Verdict::NotComparable, Verdict::Disproved];
    for (node, verdict) in nodes.iter_mut().zip(verdicts) {
        node.verdict = Some(verdict);
    }
    let mut made = pipeline(
        "vision_walk",
        nodes,
        &[
            "image_encoder/features>policy/features",
            "proprioception/state>policy/state",
            "policy/hidden_next>policy/hidden@1",
            "policy/action>proprioception/last_action@2",
        ],
    );
    made.outputs.push(PortName::new("policy", "action"));
    made
}

/// A perception and control stack.
pub(crate) fn twelve() -> Pipeline {
    let nodes = vec![
        node("camera_left", &["image"], &["features"]),
        node("camera_right", &["image"], &["features"]),
        node("stereo", &["left", "right"], &["depth", "confidence"]),
        node("proprioception", &["joints", "imu", "last_action"], &["state"]),
        node("height_map", &["depth", "confidence", "map"], &["map_next", "patch"]),
        node("localisation", &["state", "patch", "pose"], &["pose_next"]),
        node("planner", &["goal", "pose", "patch"], &["path"]),
        node(
            "gait_network_with_a_name_that_is_far_too_long_for_any_box",
            &["state", "phase"],
            &["gait", "phase_next"],
        ),
        node("policy", &["state", "path", "gait", "hidden"], &["action", "hidden_next"]),
        node("safety", &["action", "state"], &["safe_action", "intervened"]),
        node("filter", &["raw", "memory"], &["smooth", "memory_next"]),
        node("monitor", &["intervened", "confidence"], &["alarm"]),
    ];
    pipeline(
        "stack",
        nodes,
        &[
            "camera_left/features>stereo/left",
            "camera_right/features>stereo/right",
            "stereo/depth>height_map/depth",
            "stereo/confidence>height_map/confidence",
            "stereo/confidence>monitor/confidence",
            "height_map/map_next>height_map/map@1",
            "height_map/patch>localisation/patch",
            "height_map/patch>planner/patch",
            "proprioception/state>localisation/state",
            "proprioception/state>gait_network_with_a_name_that_is_far_too_long_for_any_box/state",
            "proprioception/state>policy/state",
            "proprioception/state>safety/state",
            "localisation/pose_next>localisation/pose@1",
            "localisation/pose_next>planner/pose",
            "planner/path>policy/path",
            "gait_network_with_a_name_that_is_far_too_long_for_any_box/gait>policy/gait",
            "gait_network_with_a_name_that_is_far_too_long_for_any_box/phase_next>gait_network_with_a_name_that_is_far_too_long_for_any_box/phase@1",
            "policy/action>safety/action",
            "policy/hidden_next>policy/hidden@1",
            "safety/safe_action>filter/raw",
            "safety/intervened>monitor/intervened",
            "filter/memory_next>filter/memory@1",
            "filter/smooth>proprioception/last_action@1",
        ],
    )
}

/// One after the other, each with a memory.
pub(crate) fn chain(length: usize) -> Pipeline {
    let name = |index: usize| format!("stage_{index:03}");
    let nodes = (0..length).map(|i| node(&name(i), &["x", "h"], &["y", "h_next"])).collect();
    let mut edges = Vec::new();
    for index in 0..length {
        edges.push(format!("{0}/h_next>{0}/h@1", name(index)));
        if index > 0 {
            edges.push(format!("{}/y>{}/x", name(index - 1), name(index)));
        }
    }
    pipeline("chain", nodes, &edges.iter().map(String::as_str).collect::<Vec<_>>())
}

/// One node feeds all others, and the last reads most of them.
pub(crate) fn fan(width: usize) -> Pipeline {
    let name = |index: usize| format!("head_{index:03}");
    let mut nodes = vec![node("backbone", &["image"], &["features"])];
    nodes.extend((0..width).map(|index| node(&name(index), &["features"], &["score"])));
    let inputs: Vec<String> = (0..width / 4).map(|index| format!("score_{index:03}")).collect();
    nodes.push(node("vote", &inputs.iter().map(String::as_str).collect::<Vec<_>>(), &["winner"]));
    let mut edges: Vec<String> =
        (0..width).map(|index| format!("backbone/features>{}/features", name(index))).collect();
    edges.extend((0..width / 4).map(|i| format!("{}/score>vote/score_{i:03}", name(4 * i))));
    pipeline("fan", nodes, &edges.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Rows of nodes that feed the next row and, ticks later, earlier ones.
pub(crate) fn mesh(rows: usize, columns: usize) -> Pipeline {
    let name = |row: usize, column: usize| format!("cell_{row}_{column:02}");
    let mut nodes = Vec::new();
    let mut edges = Vec::new();
    for column in 0..columns {
        for row in 0..rows {
            let this = name(row, column);
            nodes.push(node(&this, &["above", "before", "later"], &["out", "state"]));
            if column > 0 {
                edges.push(format!("{}/out>{this}/before", name(row, column - 1)));
                edges.push(format!("{}/out>{this}/above", name((row + 1) % rows, column - 1)));
            }
            if column >= 2 && (row + column) % 2 == 0 {
                edges.push(format!("{this}/state>{}/later@{}", name(row, column - 2), row + 1));
            }
        }
    }
    pipeline("mesh", nodes, &edges.iter().map(String::as_str).collect::<Vec<_>>())
}
