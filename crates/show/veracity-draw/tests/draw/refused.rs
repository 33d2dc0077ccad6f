//! Descriptions that contradict themselves.

use veracity_draw::layout;
use veracity_results::{Pipeline, PortName};

use crate::pipelines::{chain, edge, node, one, pipeline};

fn said(pipeline: &Pipeline) -> String {
    let refusal = layout(pipeline).unwrap_err();
    let found = &refusal.diagnostics()[0];
    let place = [&found.place.node, &found.place.port].map(|part| part.clone().unwrap_or_default());
    format!("{} {}: {}", found.code, place.join("/"), found.message)
}

#[test]
fn what_contradicts_itself_is_refused() {
    let change = |change: &dyn Fn(&mut Pipeline)| {
        let mut pipeline = one();
        change(&mut pipeline);
        said(&pipeline)
    };
    for (found, expected) in [
        (
            change(&|p| p.edges.push(edge("policy/nothing>policy/hidden@1"))),
            "VER1401 policy/nothing: there is no such output",
        ),
        (
            change(&|p| p.edges.push(edge("policy/action>policy/action@1"))),
            "VER1401 policy/action: there is no such input",
        ),
        (
            change(&|p| p.inputs.push(PortName::new("nobody", "x"))),
            "VER1401 nobody/x: there is no such input",
        ),
        (
            change(&|p| p.nodes.push(node("policy", &[], &[]))),
            "VER1401 policy/: two nodes have this name",
        ),
        (
            change(&|p| p.nodes.push(node("b", &["x", "x"], &[]))),
            "VER1401 b/x: two ports on one side of the node have this name",
        ),
        (
            change(&|p| p.edges.push(edge("policy/action>policy/observation"))),
            "VER1401 policy/: nodes read from each other within one tick",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn circles_within_a_tick_are_refused() {
    let nodes = vec![node("a", &["x"], &["y"]), node("b", &["x"], &["y"])];
    let made = pipeline("circle", nodes, &["a/y>b/x", "b/y>a/x"]);
    assert_eq!(said(&made), "VER1401 a/: nodes read from each other within one tick");
}

#[test]
fn what_is_too_large_is_refused() {
    assert_eq!(
        said(&chain(1001)),
        "VER1402 /: 1001 nodes and 2001 edges; at most 1000 and 10000 are drawn"
    );
}
