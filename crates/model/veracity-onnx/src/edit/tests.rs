//! What a patch may do, and what it may not.

use veracity_diag::codes;
use veracity_tensor::{DType, Tensor};

use super::*;
use crate::text::text;
use crate::{GraphBuilder, Node};

/// `a = Relu(x)`, `b = Identity(a)`, `c = If(flag) { b + b } else { b }`, `y = Mul(b, w)`
fn graph() -> Graph {
    let branch = |node: Node| {
        GraphBuilder::new("branch", 20).node(node).output("out", DType::F32, [2_usize])
    };
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .input("flag", DType::Bool, [0_usize; 0])
        .initializer("w", &Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap())
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Identity", ["a"], ["b"]))
        .node(
            Node::new("If", ["flag"], ["c"])
                .graph("then_branch", branch(Node::new("Add", ["b", "b"], ["out"])))
                .graph("else_branch", branch(Node::new("Neg", ["b"], ["out"]))),
        )
        .node(Node::new("Mul", ["b", "w"], ["y"]))
        .output("c", DType::F32, [2_usize])
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    Graph::new(model).unwrap()
}

fn id(graph: &Graph, value: &str) -> NodeId {
    graph.producer(value).unwrap().0
}

#[test]
fn a_graph_that_nobody_changed_is_the_model() {
    let model = graph().to_model().unwrap();
    let again = Graph::new(model.clone()).unwrap().to_model().unwrap();
    assert_eq!(again.to_bytes().unwrap(), model.to_bytes().unwrap());
}

#[test]
fn a_replaced_value_is_read_elsewhere_in_bodies_as_well() {
    let mut graph = graph();
    let patch = Patch::because("identity").remove(id(&graph, "b")).replace("b", "a");
    let applied = graph.apply(&patch).unwrap();
    let text = text(&graph.to_model().unwrap());
    for line in ["out = Add(a, a)", "out = Neg(a)", "y = Mul(a, w)"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("Identity"));
    assert_eq!(applied.value_map(), [("b".to_owned(), Some("a".to_owned()))].into());
    assert_eq!(graph.readers("a").count(), 2);
    assert_eq!(graph.readers("b").count(), 0);
}

#[test]
fn a_new_node_may_take_over_the_name_of_what_goes() {
    let mut graph = graph();
    let fused = Node::new("Abs", ["x"], ["b"]);
    let patch =
        Patch::because("fused").remove(id(&graph, "a")).remove(id(&graph, "b")).insert(fused);
    let applied = graph.apply(&patch).unwrap();
    assert_eq!(applied.value_map(), [("a".to_owned(), None)].into());
    let ops: Vec<&str> = graph.nodes().map(|(_, node)| node.op_type()).collect();
    assert_eq!(ops, ["Abs", "If", "Mul"], "it stands where the others stood");
}

#[test]
fn an_output_of_the_model_keeps_its_name() {
    let mut graph = graph();
    let patch = Patch::because("times one").remove(id(&graph, "y")).replace("y", "b");
    graph.apply(&patch).unwrap();
    let text = text(&graph.to_model().unwrap());
    assert!(text.contains("node y = Identity(a)"), "{text}");
    assert!(text.contains("out = Neg(y)"), "{text}");
}

#[test]
fn weights_come_and_go() {
    let mut graph = graph();
    let weight = Weight::from_floats(DType::F32, &[2], &[0.1, 2.0]).unwrap();
    let multiply = Node::new("Mul", ["b", "w2"], ["y"]);
    let patch = Patch::because("other weight")
        .change(id(&graph, "y"), multiply)
        .weight("w2", weight)
        .drop_weight("w");
    graph.apply(&patch).unwrap();
    let names: Vec<&str> = graph.weights().map(|(name, _)| name).collect();
    assert_eq!(names, ["w2"]);
    let rounded = [f64::from(0.1_f32), 2.0];
    assert_eq!(graph.weight("w2").unwrap().floats().unwrap(), rounded);
}

#[test]
fn what_would_break_the_graph_is_refused_and_changes_nothing() {
    let before = graph();
    let node = |name: &str| id(&before, name);
    let relu = |output: &str| Node::new("Relu", ["x"], [output]);
    for (why, patch) in [
        ("still read", Patch::default().remove(node("b"))),
        ("read in a body", Patch::default().remove(node("b")).remove(node("y")).insert(relu("y"))),
        ("an output", Patch::default().remove(node("c"))),
        ("given twice", Patch::default().insert(relu("a"))),
        ("given twice", Patch::default().insert(relu("w"))),
        ("unknown input", Patch::default().insert(Node::new("Relu", ["gone"], ["z"]))),
        ("unknown node", Patch::default().remove(NodeId(99))),
        ("twice", Patch::default().remove(node("a")).remove(node("a"))),
        ("unknown value", Patch::default().remove(node("b")).replace("b", "gone")),
        ("an output that a weight gives", Patch::default().remove(node("y")).replace("y", "w")),
        ("an output for another", Patch::default().remove(node("y")).replace("y", "c")),
        ("a weight that is read", Patch::default().drop_weight("w")),
    ] {
        let mut graph = before.clone();
        let found = graph.apply(&patch).unwrap_err();
        assert_eq!(found.first_error().code, codes::PATCH_BREAKS_GRAPH, "{why}");
        let same = graph.to_model().unwrap().to_bytes().unwrap();
        assert_eq!(same, before.to_model().unwrap().to_bytes().unwrap(), "{why}");
    }
}

#[test]
fn nodes_that_wait_for_each_other_are_refused() {
    let model = GraphBuilder::new("graph", 20)
        .node(Node::new("Relu", ["b"], ["a"]))
        .node(Node::new("Relu", ["a"], ["b"]))
        .finish()
        .unwrap();
    assert_eq!(Graph::new(model).unwrap_err().first_error().code, codes::ONNX_MALFORMED);
}

/// A model that calls `own::One`, whose only node is this one.
fn caller(node: Node) -> Graph {
    let function =
        crate::Function::new(("own", "One"), 20, ["a"], ["b"]).import("foreign", 3).node(node);
    let model = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .function(function)
        .node(Node::new("One", ["x"], ["y"]).domain("own"))
        .output("y", DType::F32, [2_usize]);
    Graph::new(model.finish().unwrap()).unwrap()
}

fn inlined(graph: &Graph) -> veracity_diag::Result<Option<Vec<Node>>> {
    let node = graph.producer("y").unwrap().1;
    graph.functions().inlined(node, &mut str::to_owned)
}

#[test]
fn a_function_brings_the_operator_sets_that_it_needs() {
    let mut graph = caller(Node::new("Odd", ["a"], ["b"]).domain("foreign"));
    let before = graph.to_model().unwrap();
    assert!(!before.proto().opset_import.iter().any(|one| one.domain() == "foreign"));
    let nodes = inlined(&graph).unwrap().unwrap();
    let patch = Patch::because("call").remove(id(&graph, "y"));
    graph.apply(&nodes.into_iter().fold(patch, Patch::insert)).unwrap();
    let after = graph.to_model().unwrap();
    let imported = after.proto().opset_import.iter().find(|one| one.domain() == "foreign");
    assert!(imported.is_some_and(|one| one.version() == 3));
}

#[test]
fn a_call_that_cannot_be_replaced_is_refused_by_code() {
    let calls_itself = caller(Node::new("One", ["a"], ["b"]).domain("own"));
    let reads_nothing = caller(Node::new("Neg", ["c"], ["b"]));
    for (graph, code) in
        [(calls_itself, codes::FUNCTION_RECURSIVE), (reads_nothing, codes::FUNCTION_MISFIT)]
    {
        assert_eq!(inlined(&graph).unwrap_err().first_error().code, code);
    }
    assert!(inlined(&graph()).unwrap().is_none());
}
