//! `merge-clips`

use veracity_onnx::{Graph, GraphBuilder, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::MergeClips;

use super::made::{Made, floats, scalar};
use crate::support::{holds, left_alone, lines};

/// Numbers that bounds are made of.
fn clips(nodes: Vec<Node>) -> Made {
    let made = Made::new(&[43], nodes, 1);
    let numbers: [(&'static str, f32); 7] = [
        ("zero", 0.0),
        ("minus_zero", -0.0),
        ("minus_one", -1.0),
        ("half", 0.5),
        ("one", 1.0),
        ("six", 6.0),
        ("nan", f32::NAN),
    ];
    numbers.into_iter().fold(made, |made, (name, number)| made.with(name, scalar(number)))
}

fn first(op: &str, inputs: &[&str]) -> Node {
    Node::new(op, [&["x"], inputs].concat(), ["a"])
}

fn second(op: &str, inputs: &[&str]) -> Node {
    Node::new(op, [&["a"], inputs].concat(), ["y"])
}

/// The bounds of the one `Clip` that is left.
fn bounds(graph: &Graph) -> (f64, f64) {
    assert_eq!(graph.len(), 1, "{:?}", lines(graph));
    let (_, node) = graph.producer("y").unwrap();
    assert_eq!((node.op_type(), node.input(0)), ("Clip", Some("x")));
    let number = |index: usize| graph.weight(node.input(index).unwrap()).unwrap().number().unwrap();
    (number(1), number(2))
}

#[test]
fn bounds_one_after_the_other_are_bounds_at_once() {
    let largest = f64::from(f32::MAX);
    for (nodes, low, high) in [
        ([first("Relu", &[]), second("Clip", &["zero", "six"])], 0.0, 6.0),
        ([first("Relu", &[]), second("Clip", &["", "six"])], 0.0, 6.0),
        ([first("Relu", &[]), second("Clip", &["zero"])], 0.0, largest),
        ([first("Clip", &["minus_one", "six"]), second("Relu", &[])], 0.0, 6.0),
        ([first("Clip", &["minus_one", "one"]), second("Clip", &["half", "six"])], 0.5, 1.0),
        ([first("Clip", &["minus_one", "half"]), second("Clip", &["one", "six"])], 1.0, 1.0),
        ([first("Clip", &["one", "six"]), second("Clip", &["minus_one", "half"])], 0.5, 0.5),
        ([first("Max", &["minus_one"]), second("Min", &["six"])], -1.0, 6.0),
        ([first("Min", &["six"]), Node::new("Max", ["half", "a"], ["y"])], 0.5, 6.0),
        ([first("Max", &["minus_one"]), second("Max", &["half"])], 0.5, f64::INFINITY),
        ([first("Relu", &[]), second("Min", &["six"])], 0.0, 6.0),
        ([first("Clip", &["minus_zero", "six"]), second("Clip", &["zero", "one"])], -0.0, 1.0),
    ] {
        let found = bounds(&holds(&MergeClips, &clips(nodes.to_vec()).model()));
        assert_eq!(found, (low, high), "{nodes:?}");
        assert_eq!(found.0.is_sign_negative(), low.is_sign_negative(), "{nodes:?}");
    }
}

#[test]
fn bounds_that_hold_already_go() {
    for nodes in [
        [first("Clip", &["half", "one"]), second("Clip", &["minus_one", "six"])],
        [first("Clip", &["zero", "one"]), second("Relu", &[])],
        [first("Clip", &["half", "one"]), second("Min", &["six"])],
        [first("Clip", &["half", "one"]), second("Clip", &[])],
    ] {
        let graph = holds(&MergeClips, &clips(nodes.to_vec()).model());
        assert_eq!(lines(&graph).len(), 1);
        assert!(lines(&graph)[0].starts_with("y = Clip(x, "), "{:?}", lines(&graph));
    }
    let graph =
        holds(&MergeClips, &clips(vec![first("Max", &["minus_one"]), second("Relu", &[])]).model());
    assert_eq!(lines(&graph), ["y = Relu(x)"]);
}

#[test]
fn halves_and_doubles_have_bounds_of_their_own() {
    for (dtype, largest) in [(DType::F16, 65504.0), (DType::F64, f64::MAX)] {
        let mut made = Made::new(&[43], vec![first("Relu", &[]), second("Clip", &["half"])], 1);
        made.dtype = dtype;
        let model = made.with("half", floats(dtype, &[], &[0.5])).model();
        assert_eq!(bounds(&holds(&MergeClips, &model)), (0.5, largest));
    }
}

#[test]
fn a_type_that_is_not_clipped_yet_needs_a_version_that_has_it() {
    let mut made = Made::new(&[43], vec![first("Relu", &[]), second("Min", &["half"])], 1);
    made.dtype = DType::F64;
    let made = made.with("half", floats(DType::F64, &[], &[0.5]));
    holds(&MergeClips, &made.model());
    left_alone(MergeClips, &made.opset(11).model(), "before opset 12");
}

#[test]
fn old_versions_have_attributes() {
    let clip = |node: Node| node.float("min", -1.0).float("max", 6.0);
    let nodes = vec![first("Relu", &[]), clip(second("Clip", &[]))];
    let graph = holds(&MergeClips, &Made::new(&[43], nodes, 1).opset(10).model());
    let (_, node) = graph.producer("y").unwrap();
    assert_eq!(
        (graph.len(), node.float_of("min"), node.float_of("max")),
        (1, Some(0.0), Some(6.0))
    );
    let low = vec![first("Clip", &[]).float("min", 0.5), second("Relu", &[])];
    let graph = holds(&MergeClips, &Made::new(&[43], low, 1).opset(10).model());
    assert_eq!(lines(&graph), ["y = Clip(x)"]);
    let mut doubles =
        Made::new(&[43], vec![first("Relu", &[]), clip(second("Clip", &[]))], 1).opset(10);
    doubles.dtype = DType::F64;
    left_alone(MergeClips, &doubles.model(), "before opset 11");
}

#[test]
fn what_would_change_bits_is_left_alone() {
    for (nodes, reason) in [
        // `Max(-0.0, 0.0)` is 0.0 where `Relu(-0.0)` is -0.0.
        ([first("Max", &["zero"]), second("Min", &["six"])], "sign of zero"),
        ([first("Relu", &[]), second("Max", &["minus_zero"])], "sign of zero"),
        ([first("Max", &["half"]), second("Clip", &["minus_one", "minus_zero"])], "sign of zero"),
        ([first("Min", &["minus_one"]), second("Relu", &[])], "sign of zero"),
        ([first("Relu", &[]), second("Clip", &["nan", "six"])], "not two bounds"),
        ([first("Relu", &[]), second("Clip", &["six", "one"])], "not two bounds"),
    ] {
        left_alone(MergeClips, &clips(nodes.to_vec()).model(), reason);
    }
}

#[test]
fn bounds_that_are_not_one_constant_number_are_left_alone() {
    let many = clips(vec![first("Relu", &[]), second("Min", &["many"])]);
    let many = many.with("many", floats(DType::F32, &[43], &[2.0; 43]));
    left_alone(MergeClips, &many.model(), "not one constant number");
    // A scalar would get an axis.
    let axis = clips(vec![
        Node::new("ReduceMax", ["x"], ["r"]).int("keepdims", 0),
        Node::new("Relu", ["r"], ["a"]),
        second("Min", &["listed"]),
    ]);
    let axis = axis.with("listed", floats(DType::F32, &[1], &[2.0]));
    left_alone(MergeClips, &axis.model(), "may add axes");
    let mut computed = clips(vec![
        Node::new("Abs", ["one"], ["bound"]),
        first("Relu", &[]),
        second("Clip", &["zero", "bound"]),
    ]);
    left_alone(MergeClips, &computed.model(), "not one constant number");
    computed.nodes =
        vec![Node::new("Abs", ["one"], ["bound"]), first("Relu", &[]), second("Min", &["bound"])];
    left_alone(MergeClips, &computed.model(), "");
}

#[test]
fn what_others_need_is_left_alone() {
    let nodes = vec![first("Relu", &[]), second("Clip", &["zero", "six"])];
    left_alone(MergeClips, &clips(nodes).gives("a", 1).model(), "an output");
    let kept =
        vec![first("Clip", &["half", "one"]), second("Relu", &[]), Node::new("Neg", ["y"], ["z"])];
    let mut made = clips(kept).gives("z", 1).gives("a", 1);
    made.outputs.remove(0);
    assert_eq!(lines(&holds(&MergeClips, &made.model())), ["a = Clip(x, half, one)", "z = Neg(a)"]);
}

#[test]
fn integers_are_left_alone() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::I32, [3_usize])
        .initializer("low", &Tensor::from_slice([], &[-1_i32]).unwrap())
        .initializer("high", &Tensor::from_slice([], &[5_i32]).unwrap())
        .node(Node::new("Max", ["x", "low"], ["a"]))
        .node(Node::new("Min", ["a", "high"], ["y"]))
        .output("y", DType::I32, [3_usize])
        .finish()
        .unwrap();
    left_alone(MergeClips, &model, "float type");
}

#[test]
fn what_keeps_a_number_as_it_is_is_no_match() {
    left_alone(MergeClips, &clips(vec![first("Relu", &[]), second("Relu", &[])]).model(), "");
    left_alone(
        MergeClips,
        &clips(vec![first("Abs", &[]), second("Clip", &["zero", "six"])]).model(),
        "",
    );
}

/// Every pair of bounds that are made of these numbers, in one model.
#[test]
fn whatever_is_merged_keeps_every_bit() {
    let numbers = [("", 0.0), ("low", -1.0), ("minus", -0.0), ("plus", 0.0), ("high", 2.0)];
    let mut kinds: Vec<(&str, Vec<&str>)> = vec![("Relu", vec![])];
    for (one, _) in numbers {
        for (two, _) in numbers {
            kinds.push(("Clip", vec![one, two]));
        }
        if !one.is_empty() {
            kinds.extend([("Min", vec![one]), ("Max", vec![one])]);
        }
    }
    let mut graph = GraphBuilder::new("graph", 18).input("x", DType::F32, [43_usize]);
    for (name, number) in &numbers[1..] {
        graph = graph.initializer(*name, &scalar(*number));
    }
    for (one, (first, inner)) in kinds.iter().enumerate() {
        for (two, (second, outer)) in kinds.iter().enumerate() {
            let (a, y) = (format!("a_{one}_{two}"), format!("y_{one}_{two}"));
            let inner: Vec<&str> = ["x"].iter().chain(inner).copied().collect();
            let outer: Vec<&str> = [a.as_str()].iter().chain(outer).copied().collect();
            graph = graph
                .node(Node::new(*first, inner, [a.as_str()]))
                .node(Node::new(*second, outer, [y.as_str()]))
                .output(y, DType::F32, [43_usize]);
        }
    }
    let merged = holds(&MergeClips, &graph.finish().unwrap());
    assert!(merged.len() < 2 * kinds.len() * kinds.len());
}
