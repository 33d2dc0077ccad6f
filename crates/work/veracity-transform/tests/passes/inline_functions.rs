//! `inline-functions`

use veracity_onnx::{Function, GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::InlineFunctions;

use crate::support::{holds, left_alone, lines, run};

const DOMAIN: &str = "own";

fn call(function: &str, inputs: &[&str], outputs: &[&str]) -> Node {
    Node::new(function, inputs.to_vec(), outputs.to_vec()).domain(DOMAIN)
}

/// A model of `x` with these functions and nodes; `y` is its output.
fn model(functions: impl IntoIterator<Item = Function>, nodes: &[Node]) -> Model {
    let mut graph = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize, 4])
        .initializer("low", &Tensor::from_slice([], &[-0.5_f32]).unwrap());
    for function in functions {
        graph = graph.function(function);
    }
    let graph = nodes.iter().cloned().fold(graph, GraphBuilder::node);
    graph.output("y", DType::F32, [2_usize, 4]).finish().unwrap()
}

/// `b = LeakyRelu(a, alpha = slope)`, where slope is 0.25 unless the call says otherwise.
fn leaky() -> Function {
    let node = Node::new("LeakyRelu", ["a"], ["tmp"]).float("alpha", 0.0).refer("alpha", "slope");
    Function::new((DOMAIN, "Leaky"), 18, ["a"], ["b"])
        .defaults(Node::new("", [""; 0], [""; 0]).float("slope", 0.25))
        .node(node)
        .node(Node::new("Neg", ["tmp"], ["b"]))
}

#[test]
fn each_call_gets_names_and_attributes_of_its_own() {
    let nodes =
        [call("Leaky", &["x"], &["tmp"]), call("Leaky", &["tmp"], &["y"]).float("slope", 3.0)];
    let graph = holds(&InlineFunctions, &model([leaky()], &nodes));
    assert_eq!(
        lines(&graph),
        [
            "tmp/tmp = LeakyRelu(x)",
            "tmp = Neg(tmp/tmp)",
            "y/tmp = LeakyRelu(tmp)",
            "y = Neg(y/tmp)"
        ]
    );
    let slope = |value: &str| graph.producer(value).unwrap().1.float_of("alpha");
    assert_eq!((slope("tmp/tmp"), slope("y/tmp")), (Some(0.25), Some(3.0)));
}

#[test]
fn an_attribute_without_default_that_a_call_leaves_out_stays_left_out() {
    let node = Node::new("LeakyRelu", ["a"], ["b"]).float("alpha", 0.0).refer("alpha", "slope");
    let function = Function::new((DOMAIN, "Plain"), 18, ["a"], ["b"]).attribute("slope").node(node);
    let graph = holds(&InlineFunctions, &model([function], &[call("Plain", &["x"], &["y"])]));
    assert_eq!(graph.producer("y").unwrap().1.attribute_names().count(), 0);
}

#[test]
fn functions_that_call_functions_with_attributes_handed_on() {
    let inner = call("Leaky", &["v"], &["w"]).float("slope", 0.0).refer("slope", "steep");
    let outer = Function::new((DOMAIN, "Outer"), 18, ["v"], ["w"])
        .import(DOMAIN, 1)
        .attribute("steep")
        .node(inner);
    let nodes = [call("Outer", &["x"], &["y"]).float("steep", -2.0)];
    let graph = holds(&InlineFunctions, &model([outer, leaky()], &nodes));
    assert_eq!(lines(&graph), ["y/tmp = LeakyRelu(x)", "y = Neg(y/tmp)"]);
    assert_eq!(graph.producer("y/tmp").unwrap().1.float_of("alpha"), Some(-2.0));
}

#[test]
fn inputs_and_outputs_that_are_left_out() {
    let function = Function::new((DOMAIN, "Both"), 18, ["a", "low", "high"], ["b", "c"])
        .node(Node::new("Clip", ["a", "low", "high"], ["b"]))
        .node(Node::new("Neg", ["a"], ["c"]));
    let clipped = call("Both", &["x", "low"], &["y", "unread"]);
    let graph = holds(&InlineFunctions, &model([function.clone()], &[clipped]));
    assert_eq!(lines(&graph), ["y = Clip(x, low, )", "unread = Neg(x)"]);
    // ONNX Runtime takes no call that leaves an output out.
    let one = model([function.clone()], &[call("Both", &["x", "low"], &["y"])]);
    let done = run(vec![Box::new(InlineFunctions)], &one);
    assert_eq!(lines(&done.graph), ["y = Clip(x, low, )", "y/c = Neg(x)"]);
    let negated = model([function], &[call("Both", &["x", "", "low"], &["", "y"])]);
    let done = run(vec![Box::new(InlineFunctions)], &negated);
    assert_eq!(lines(&done.graph), ["y/b = Clip(x, , low)", "y = Neg(x)"]);
}

#[test]
fn an_output_that_is_an_input_gets_a_node() {
    let function = Function::new((DOMAIN, "Same"), 18, ["a"], ["a", "b", "b"]).node(Node::new(
        "Neg",
        ["a"],
        ["b"],
    ));
    let nodes = [call("Same", &["x"], &["p", "q", "r"]), Node::new("Sum", ["p", "q", "r"], ["y"])];
    // ONNX Runtime takes no such function.
    let done = run(vec![Box::new(InlineFunctions)], &model([function], &nodes));
    assert_eq!(
        lines(&done.graph),
        ["q = Neg(x)", "p = Identity(x)", "r = Identity(q)", "y = Sum(p, q, r)"]
    );
}

/// A body within the function names a value as the model names what the function is given.
#[test]
fn names_in_bodies_hide_nothing() {
    let branch = |operator: &str| {
        GraphBuilder::new("branch", 18)
            .node(Node::new("Neg", ["a"], ["x"]))
            .node(Node::new(operator, ["x", "a"], ["out"]))
            .output("out", DType::F32, [2_usize, 4])
    };
    let choice = Node::new("If", ["flag"], ["b"])
        .graph("then_branch", branch("Add"))
        .graph("else_branch", branch("Mul"));
    let function = Function::new((DOMAIN, "Choose"), 18, ["a", "flag"], ["b"]).node(choice);
    let mut graph = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize, 4])
        .input("flag", DType::Bool, [0_usize; 0])
        .function(function);
    graph = graph.node(call("Choose", &["x", "flag"], &["y"]));
    let model = graph.output("y", DType::F32, [2_usize, 4]).finish().unwrap();
    let graph = holds(&InlineFunctions, &model);
    assert_eq!(lines(&graph), ["y = If(flag)"]);
    assert!(graph.is_taken("y/x"), "the value in the body has a name of its own");
}

#[test]
fn calls_in_bodies_are_replaced_as_well() {
    let branch = |slope: f32| {
        GraphBuilder::new("branch", 18)
            .node(call("Leaky", &["x"], &["out"]).float("slope", slope))
            .output("out", DType::F32, [2_usize, 4])
    };
    let choice = Node::new("If", ["flag"], ["y"])
        .graph("then_branch", branch(2.0))
        .graph("else_branch", branch(5.0));
    let graph = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize, 4])
        .input("flag", DType::Bool, [0_usize; 0])
        .function(leaky())
        .node(choice)
        .output("y", DType::F32, [2_usize, 4]);
    let graph = holds(&InlineFunctions, &graph.finish().unwrap());
    let node = graph.producer("y").unwrap().1;
    assert!(!graph.functions().are_called_by(node));
}

#[test]
fn what_does_not_fit_is_left_alone_with_the_reason() {
    let one = || Function::new((DOMAIN, "One"), 18, ["a"], ["b"]);
    let neg = |from: &str, to: &str| Node::new("Neg", [from], [to]);
    let cases = [
        (one().node(call("One", &["a"], &["b"])), "ends up in itself"),
        (
            Function::new((DOMAIN, "One"), 17, ["a"], ["b"]).node(neg("a", "b")),
            "uses version 17 of the operators \"\", the model 18",
        ),
        (
            Function::new((DOMAIN, "One"), 18, [""; 0], ["b"]).node(neg("a", "b")),
            "more inputs or outputs than the function",
        ),
        (one().node(neg("c", "b")), "reads \"c\", which it does not define"),
        (
            one()
                .node(Node::new("LeakyRelu", ["a"], ["b"]).float("alpha", 1.0).refer("alpha", "z")),
            "refers to \"z\", no attribute of its own",
        ),
    ];
    for (function, reason) in cases {
        left_alone(InlineFunctions, &model([function], &[call("One", &["x"], &["y"])]), reason);
    }
    let unknown = call("One", &["x"], &["y"]).int("depth", 3);
    let function = one().node(neg("a", "b"));
    left_alone(InlineFunctions, &model([function], &[unknown]), "has no attribute \"depth\"");
}

#[test]
fn a_circle_of_two_functions_is_seen() {
    let name = |name: &str, other: &str| {
        Function::new((DOMAIN, name), 18, ["a"], ["b"]).import(DOMAIN, 1).node(call(
            other,
            &["a"],
            &["b"],
        ))
    };
    let functions = [name("One", "Two"), name("Two", "One")];
    let model = model(functions, &[call("One", &["x"], &["y"])]);
    left_alone(InlineFunctions, &model, "ends up in itself");
}

/// Each function calls the next one ten times: more than ten million nodes in the end.
#[test]
fn functions_that_would_fill_the_memory_are_left_alone() {
    let level = |depth: usize| {
        let name = format!("F{depth}");
        let mut function = Function::new((DOMAIN, &name), 18, ["v0"], ["v10"]).import(DOMAIN, 1);
        for index in 0..10 {
            let (from, to) = (format!("v{index}"), format!("v{}", index + 1));
            function = function.node(match depth {
                6 => Node::new("Neg", [from], [to]),
                _ => call(&format!("F{}", depth + 1), &[&from], &[&to]),
            });
        }
        function
    };
    let model = model((0..7).map(level), &[call("F0", &["x"], &["y"])]);
    left_alone(InlineFunctions, &model, "would become 1111110 nodes");
}
