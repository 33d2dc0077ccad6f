//! What is known about values of whole graphs, and what is not.

use veracity_onnx::{Dim, Graph, GraphBuilder, Node, Patch};
use veracity_tensor::{DType, Tensor};
use veracity_transform::{Element, Fact, Facts};

fn named(names: &[&str]) -> Vec<Dim> {
    names.iter().map(|name| name.parse().map_or_else(|_| Dim::from(*name), Dim::Fixed)).collect()
}

fn ints(all: &[i64]) -> Tensor {
    Tensor::from_slice([all.len()], all).unwrap()
}

#[test]
fn sizes_go_through_chains_by_number_and_by_name() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, named(&["N", "3", "8", "W"]))
        .initializer("first", &ints(&[0]))
        .initializer("second", &ints(&[1]))
        .initializer("two", &ints(&[2]))
        .initializer("end", &ints(&[i64::MAX]))
        .initializer("rest", &ints(&[-1]))
        .node(Node::new("Shape", ["x"], ["shape"]))
        .node(Node::new("Gather", ["shape", "first"], ["batch"]))
        .node(Node::new("Gather", ["shape", "second"], ["channels"]))
        .node(Node::new("Mul", ["channels", "two"], ["six"]))
        .node(Node::new("Concat", ["batch", "six", "rest"], ["asked"]).int("axis", 0))
        .node(Node::new("Slice", ["shape", "two", "end"], ["inner"]))
        .node(Node::new("Reshape", ["x", "asked"], ["y"]))
        .node(Node::new("Expand", ["y", "inner"], ["z"]))
        .finish()
        .unwrap();
    let facts = Facts::of(&Graph::new(model).unwrap());
    let elements = |name: &str| facts.get(name).unwrap().elements.clone().unwrap();
    let known = |number| Element::Known(number);
    let name = |name: &str| Element::Named(name.to_owned());
    assert_eq!(elements("shape"), [name("N"), known(3), known(8), name("W")]);
    assert_eq!(elements("asked"), [name("N"), known(6), known(-1)]);
    assert_eq!(elements("inner"), [known(8), name("W")]);
    let dims = |name: &str| facts.get(name).unwrap().dims.clone().unwrap();
    assert_eq!(dims("y"), [Dim::from("N"), Dim::Fixed(6), Dim::Unknown]);
}

#[test]
fn a_size_that_may_be_zero_is_not_taken_for_the_size_of_another_axis() {
    // With N = 0, the shape [N, 3] asks for the first size of the input, which is M.
    let model = |allow: i64| {
        let model = GraphBuilder::new("graph", 18)
            .input("x", DType::F32, named(&["M", "N"]))
            .initializer("one", &ints(&[1]))
            .initializer("rest", &ints(&[-1]))
            .node(Node::new("Shape", ["x"], ["shape"]))
            .node(Node::new("Gather", ["shape", "one"], ["n"]))
            .node(Node::new("Concat", ["n", "rest"], ["asked"]).int("axis", 0))
            .node(Node::new("Reshape", ["x", "asked"], ["y"]).int("allowzero", allow));
        Facts::of(&Graph::new(model.finish().unwrap()).unwrap()).get("y").unwrap().dims.clone()
    };
    assert_eq!(model(0), Some(vec![Dim::Unknown, Dim::Unknown]));
    assert_eq!(model(1), Some(named(&["N", "M"])));
}

fn declared_about(declared: &[Dim], dtype: DType) -> Fact {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize, 3])
        .node(Node::new("Relu", ["x"], ["y"]))
        .node(Node::new("Odd", ["x"], ["z"]).domain("other"))
        .output("y", dtype, declared.to_vec())
        .output("z", dtype, declared.to_vec());
    let facts = Facts::of(&Graph::new(model.finish().unwrap()).unwrap());
    assert_eq!(facts.get("y").unwrap().shape(), Some(vec![2, 3]), "inference is believed");
    assert_eq!(facts.get("y").unwrap().dtype, Some(DType::F32), "inference is believed");
    facts.get("z").unwrap().clone()
}

#[test]
fn what_a_file_declares_counts_only_where_inference_says_nothing() {
    for dims in [named(&["2", "3"]), named(&["7", "3"]), named(&["1"]), named(&["N", "3"])] {
        let fact = declared_about(&dims, DType::F64);
        assert_eq!((fact.dtype, fact.dims), (Some(DType::F64), Some(dims)));
    }
}

#[test]
fn an_operator_that_is_not_known_gives_values_that_nothing_is_known_about() {
    let body = || {
        let node = Node::new("Relu", ["x"], ["inner"]);
        GraphBuilder::new("body", 18).node(node).output("inner", DType::F32, [2_usize])
    };
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize])
        .input("flag", DType::Bool, [0_usize; 0])
        .node(Node::new("Relu", ["x"], ["a"]).domain("com.example"))
        .node(
            Node::new("If", ["flag"], ["b"])
                .graph("then_branch", body())
                .graph("else_branch", body()),
        )
        .node(Node::new("Add", ["a", "b"], ["c"]));
    let facts = Facts::of(&Graph::new(model.finish().unwrap()).unwrap());
    for name in ["a", "b", "c"] {
        assert_eq!(facts.get(name), Some(&Fact::default()), "{name}");
    }
}

#[test]
fn a_constant_that_callers_may_replace_is_not_known() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize, 3])
        .input("asked", DType::I64, [1_usize])
        .initializer("asked", &ints(&[6]))
        .node(Node::new("Reshape", ["x", "asked"], ["y"]));
    let facts = Facts::of(&Graph::new(model.finish().unwrap()).unwrap());
    assert_eq!(facts.get("asked").unwrap().elements, None);
    assert_eq!(facts.get("y").unwrap().dims, Some(vec![Dim::Unknown]));
}

#[test]
fn a_name_that_another_value_gets_later_is_looked_at_anew() {
    let model = GraphBuilder::new("graph", 18)
        .input("x", DType::F32, [2_usize, 3])
        .node(Node::new("Relu", ["x"], ["a"]))
        .node(Node::new("Identity", ["x"], ["y"]))
        .output("y", DType::F32, [2_usize, 3]);
    let mut graph = Graph::new(model.finish().unwrap()).unwrap();
    let mut facts = Facts::of(&graph);
    let unread = graph.producer("a").unwrap().0;
    graph.apply(&Patch::because("unread").remove(unread)).unwrap();
    facts.update(&graph);
    assert_eq!(facts.get("a"), None);
    let other = Node::new("Shape", ["x"], ["a"]);
    graph.apply(&Patch::because("another value").insert(other)).unwrap();
    facts.update(&graph);
    assert_eq!(facts.get("a").unwrap().ints(), Some(vec![2, 3]));
}
