//! `fuse-gelu`

use std::f32::consts::{FRAC_1_SQRT_2, SQRT_2};

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::FuseGelu;

use crate::support::{holds, left_alone, lines};

fn number(value: f32) -> Tensor {
    Tensor::from_slice([], &[value]).unwrap()
}

/// A graph of `x` with constants by name and nodes as `["Mul", "a", "b", "c"]`: c = Mul(a, b).
fn model(opset: i64, constants: &[(&str, f32)], nodes: &[&[&str]]) -> Model {
    let mut graph = GraphBuilder::new("graph", opset).input("x", DType::F32, [2_usize, 8]);
    for (name, value) in constants {
        graph = graph.initializer(*name, &number(*value));
    }
    for node in nodes {
        let (last, first) = node.split_last().unwrap();
        graph = graph.node(Node::new(first[0], first[1..].to_vec(), [*last]));
    }
    graph.output("y", DType::F32, [2_usize, 8]).finish().unwrap()
}

const ERF: &[(&str, f32)] =
    &[("root", SQRT_2), ("one", 1.0), ("half", 0.5), ("two", 2.0), ("inverse", FRAC_1_SQRT_2)];

const DIVIDED: &[&[&str]] = &[&["Div", "x", "root", "t"], &["Erf", "t", "e"]];

fn erf(rest: &[&'static [&'static str]]) -> Vec<&'static [&'static str]> {
    [DIVIDED, &[&["Add", "e", "one", "g"]], rest].concat()
}

#[test]
fn the_error_function_in_every_order_of_its_factors() {
    let orders: [&[&[&str]]; 8] = [
        &[&["Mul", "x", "g", "p"], &["Mul", "p", "half", "y"]],
        &[&["Mul", "g", "x", "p"], &["Div", "p", "two", "y"]],
        &[&["Mul", "x", "half", "h"], &["Mul", "h", "g", "y"]],
        &[&["Mul", "half", "x", "h"], &["Mul", "g", "h", "y"]],
        &[&["Div", "x", "two", "h"], &["Mul", "g", "h", "y"]],
        &[&["Mul", "half", "g", "p"], &["Mul", "p", "x", "y"]],
        &[&["Mul", "g", "half", "p"], &["Mul", "x", "p", "y"]],
        &[&["Div", "g", "two", "p"], &["Mul", "x", "p", "y"]],
    ];
    for order in orders {
        let graph = holds(&FuseGelu, &model(20, ERF, &erf(order)));
        assert_eq!(lines(&graph), ["y = Gelu(x)"], "{order:?}");
        assert_eq!(graph.producer("y").unwrap().1.string_of("approximate"), Some("none"));
    }
    let multiplied: &[&[&str]] = &[
        &["Mul", "inverse", "x", "t"],
        &["Erf", "t", "e"],
        &["Add", "one", "e", "g"],
        &["Mul", "x", "g", "p"],
        &["Mul", "p", "half", "y"],
    ];
    assert_eq!(lines(&holds(&FuseGelu, &model(20, ERF, multiplied))), ["y = Gelu(x)"]);
}

#[test]
fn what_is_half_of_something_may_be_the_argument_itself() {
    let nodes: &[&[&str]] = &[
        &["Mul", "x", "half", "h"],
        &["Div", "h", "root", "t"],
        &["Erf", "t", "e"],
        &["Add", "e", "one", "g"],
        &["Mul", "h", "g", "p"],
        &["Mul", "p", "half", "y"],
    ];
    assert_eq!(
        lines(&holds(&FuseGelu, &model(20, ERF, nodes))),
        ["h = Mul(x, half)", "y = Gelu(h)"]
    );
}

const TANH: &[(&str, f32)] =
    &[("slope", 0.797_884_6), ("cube", 0.044_715), ("one", 1.0), ("half", 0.5), ("three", 3.0)];

#[test]
fn the_hyperbolic_tangent_in_the_ways_that_it_is_written() {
    let ways: [&[&[&str]]; 3] = [
        &[
            &["Pow", "x", "three", "x3"],
            &["Mul", "cube", "x3", "c"],
            &["Add", "x", "c", "s"],
            &["Mul", "slope", "s", "t"],
        ],
        &[
            &["Mul", "x", "x", "x2"],
            &["Mul", "x2", "x", "x3"],
            &["Mul", "x3", "cube", "c"],
            &["Add", "c", "x", "s"],
            &["Mul", "s", "slope", "t"],
        ],
        &[
            &["Mul", "x", "cube", "c"],
            &["Mul", "c", "x", "c2"],
            &["Add", "c2", "one", "s"],
            &["Mul", "x", "slope", "p"],
            &["Mul", "p", "s", "t"],
        ],
    ];
    for way in ways {
        let rest: &[&[&str]] = &[
            &["Tanh", "t", "e"],
            &["Add", "one", "e", "g"],
            &["Mul", "x", "half", "h"],
            &["Mul", "h", "g", "y"],
        ];
        let graph = holds(&FuseGelu, &model(20, TANH, &[way, rest].concat()));
        assert_eq!(lines(&graph), ["y = Gelu(x)"], "{way:?}");
        assert_eq!(graph.producer("y").unwrap().1.string_of("approximate"), Some("tanh"));
    }
}

#[test]
fn constants_must_be_right_to_the_last_bit_but_one() {
    let nodes = erf(&[&["Mul", "x", "g", "p"], &["Mul", "p", "half", "y"]]);
    for (name, value, reason) in [
        ("root", 1.414, "of x^1 under Erf is not"),
        ("half", 0.499_999, "is not one half"),
        ("root", f32::from_bits(SQRT_2.to_bits() + 1), "of x^1 under Erf is not"),
    ] {
        let constants: Vec<(&str, f32)> =
            ERF.iter().map(|(one, old)| (*one, if *one == name { value } else { *old })).collect();
        left_alone(FuseGelu, &model(20, &constants, &nodes), reason);
    }
    let off: Vec<(&str, f32)> =
        ERF.iter().map(|(one, old)| (*one, if *one == "one" { 1.5 } else { *old })).collect();
    left_alone(FuseGelu, &model(20, &off, &nodes), "");
}

#[test]
fn below_opset_20_there_is_no_such_operator() {
    let nodes = erf(&[&["Mul", "x", "g", "p"], &["Mul", "p", "half", "y"]]);
    left_alone(FuseGelu, &model(18, ERF, &nodes), "Gelu needs opset 20; the model has 18");
}

#[test]
fn what_others_read_stays() {
    let nodes =
        erf(&[&["Mul", "x", "g", "p"], &["Mul", "p", "half", "q"], &["Add", "q", "t", "y"]]);
    left_alone(FuseGelu, &model(20, ERF, &nodes), "\"t\" is read by others as well");
}

#[test]
fn a_gate_that_is_no_half_is_no_unit() {
    let gated = erf(&[&["Mul", "x", "g", "y"]]);
    left_alone(FuseGelu, &model(20, ERF, &gated), "");
}

#[test]
fn a_constant_that_adds_an_axis_is_left_alone() {
    let half = Tensor::from_slice([1, 1, 1], &[0.5_f32]).unwrap();
    let mut graph = GraphBuilder::new("graph", 20).input("x", DType::F32, [2_usize, 8]);
    for (name, value) in ERF.iter().filter(|(name, _)| *name != "half") {
        graph = graph.initializer(*name, &number(*value));
    }
    graph = graph.initializer("half", &half);
    for node in erf(&[&["Mul", "x", "g", "p"], &["Mul", "p", "half", "y"]]) {
        let (last, first) = node.split_last().unwrap();
        graph = graph.node(Node::new(first[0], first[1..].to_vec(), [*last]));
    }
    let model = graph.output("y", DType::F32, [1_usize, 2, 8]).finish().unwrap();
    left_alone(FuseGelu, &model, "");
}
