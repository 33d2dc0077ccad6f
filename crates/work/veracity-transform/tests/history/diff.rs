//! How two models differ.

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_results::ModelDiff;
use veracity_tensor::{DType, Tensor};
use veracity_transform::diff;

fn weight(first: f32) -> Tensor {
    Tensor::from_slice([2], &[first, 2.0_f32]).unwrap()
}

/// `a = Softmax(x)`, `b = Add(a, w)`, `y = Relu(b)`
fn builder() -> GraphBuilder {
    GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .initializer("w", &weight(1.0))
        .node(Node::new("Softmax", ["x"], ["a"]).int("axis", 0).named("first"))
        .node(Node::new("Add", ["a", "w"], ["b"]))
        .node(Node::new("Relu", ["b"], ["y"]))
        .output("y", DType::F32, [2_usize])
}

fn model() -> Model {
    builder().finish().unwrap()
}

fn fields(diff: &ModelDiff) -> Vec<(String, Option<String>, Option<String>)> {
    let node = diff.changed.iter().flat_map(|node| &node.fields);
    node.chain(&diff.model)
        .map(|one| (one.field.clone(), one.before.clone(), one.after.clone()))
        .collect()
}

fn field(name: &str, before: &str, after: &str) -> (String, Option<String>, Option<String>) {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    (name.to_owned(), some(before), some(after))
}

#[test]
fn a_model_does_not_differ_from_itself() {
    let found = diff(&model(), &model());
    assert!(found.is_empty(), "{found:?}");
    assert_eq!((found.nodes_same, found.nodes_before, found.nodes_after), (3, 3, 3));
}

#[test]
fn a_graph_with_other_names_is_the_same() {
    let other = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .initializer("weight", &weight(1.0))
        .node(Node::new("Softmax", ["x"], ["1"]).int("axis", 0).named("first"))
        .node(Node::new("Add", ["1", "weight"], ["2"]))
        .node(Node::new("Relu", ["2"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    let found = diff(&model(), &other);
    assert_eq!(found.nodes_same, 3, "{found:?}");
    assert_eq!(found.weights_renamed, [("w".to_owned(), "weight".to_owned())]);
    assert!(found.removed.is_empty() && found.added.is_empty() && found.changed.is_empty());
}

#[test]
fn nodes_that_differ_say_where() {
    let changed = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .initializer("w", &weight(1.0))
        .node(Node::new("Softmax", ["x"], ["a"]).int("axis", -1).named("other"))
        .node(Node::new("Sub", ["w", "a"], ["b"]))
        .node(Node::new("Relu", ["b"], ["y"]).with_metadata("key", "new"))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    let expected = [
        field("name", "first", "other"),
        field("attribute axis", "0", "-1"),
        field("operator", "Add", "Sub"),
        field("inputs", "a, w", "w, a"),
        field("metadata key", "", "new"),
    ];
    assert_eq!(fields(&diff(&model(), &changed)), expected);
    let back = diff(&changed, &model());
    assert_eq!(back.changed.len(), 3);
}

#[test]
fn nodes_that_went_and_came_are_listed() {
    let shorter = GraphBuilder::new("graph", 20)
        .input("x", DType::F32, [2_usize])
        .node(Node::new("Softmax", ["x"], ["a"]).int("axis", 0).named("first"))
        .node(Node::new("Relu", ["a"], ["y"]))
        .output("y", DType::F32, [2_usize])
        .finish()
        .unwrap();
    let found = diff(&model(), &shorter);
    assert_eq!((found.removed.len(), found.added.len(), found.nodes_same), (1, 0, 1));
    assert_eq!((found.removed[0].op_type.as_str(), found.removed[0].id), ("Add", 1));
    assert_eq!(fields(&found), [field("inputs", "b", "a")]);
    assert_eq!(found.weights_removed[0].name, "w");
    let back = diff(&shorter, &model());
    assert_eq!((back.removed.len(), back.added.len()), (0, 1));
    assert_eq!(
        (back.weights_added[0].dtype.as_str(), back.weights_added[0].dims.as_slice()),
        ("float32", &[2][..])
    );
}

#[test]
fn two_nodes_that_compute_the_same_are_matched_one_by_one() {
    let twice = |names: [&str; 2]| {
        GraphBuilder::new("graph", 20)
            .input("x", DType::F32, [2_usize])
            .node(Node::new("Relu", ["x"], [names[0]]))
            .node(Node::new("Relu", ["x"], [names[1]]))
            .node(Node::new("Add", names, ["y"]))
            .output("y", DType::F32, [2_usize])
            .finish()
            .unwrap()
    };
    assert!(diff(&twice(["a", "b"]), &twice(["c", "d"])).is_empty());
}

#[test]
fn weights_differ_by_type_shape_or_elements() {
    let with =
        |tensor: &Tensor| GraphBuilder::new("graph", 20).initializer("w", tensor).finish().unwrap();
    let one = with(&weight(1.0));
    let far = Tensor::from_slice([2], &[1.0_f64, 2.5]).unwrap();
    let long = Tensor::from_slice([3], &[1.0_f32, 2.0, 3.0]).unwrap();
    for (other, expected) in [
        (weight(1.25), Some(0.25)),
        (weight(f32::NAN), Some(f64::INFINITY)),
        (weight(f32::INFINITY), Some(f64::INFINITY)),
        (far, Some(0.5)),
        (long, None),
    ] {
        let found = diff(&one, &with(&other));
        assert_eq!(found.weights_changed.len(), 1);
        assert_eq!(found.weights_changed[0].max_abs, expected, "{other:?}");
    }
    let sign = diff(&with(&weight(0.0)), &with(&weight(-0.0)));
    assert_eq!(sign.weights_changed[0].max_abs, Some(0.0), "the bits differ");
}

#[test]
fn what_the_model_says_about_itself_is_compared() {
    let other = GraphBuilder::new("graph", 21)
        .input("x", DType::F32, [3_usize])
        .input("z", DType::F32, ["n"])
        .output("y", DType::F32, [2_usize])
        .metadata("key", "value")
        .finish()
        .unwrap();
    let expected = [
        field("opset ai.onnx", "20", "21"),
        field("input x", "float32 [2]", "float32 [3]"),
        field("input z", "", "float32 [n]"),
        field("metadata key", "", "value"),
    ];
    assert_eq!(fields(&diff(&model(), &other)), expected);
    let pair = |names: [&str; 2]| {
        let [first, second] = names;
        let builder = GraphBuilder::new("graph", 20).input(first, DType::F32, [2_usize]);
        builder.input(second, DType::F32, [2_usize]).finish().unwrap()
    };
    let moved = diff(&pair(["a", "b"]), &pair(["b", "a"]));
    assert_eq!(fields(&moved), [field("order of inputs", "a, b", "b, a")]);
}
