//! `fuse-layer-norm`

use veracity_onnx::{Dim, GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::FuseLayerNorm;

use crate::support::{holds, left_alone, lines};

fn floats<const N: usize>(dims: [usize; N], elements: &[f32]) -> Tensor {
    Tensor::from_slice(dims, elements).unwrap()
}

/// What a layer normalization is written with, and what may be different about one.
struct Written {
    opset: i64,
    axes: Vec<i64>,
    keepdims: i64,
    dims: Vec<usize>,
    scale: Option<Tensor>,
    bias: Option<Tensor>,
    square: &'static str,
    divide: &'static str,
    /// A value in between that is an output as well.
    shown: Option<&'static str>,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            opset: 17,
            axes: vec![-1],
            keepdims: 1,
            dims: vec![2, 3, 4],
            scale: Some(floats([4], &[1.0, -2.0, 0.5, 3.0])),
            bias: Some(floats([4], &[0.1, 0.0, -0.3, 7.0])),
            square: "pow",
            divide: "div",
            shown: None,
        }
    }
}

impl Written {
    fn mean(&self, graph: GraphBuilder, of: &str, value: &str) -> GraphBuilder {
        let inputs = if self.opset >= 18 { vec![of, "axes"] } else { vec![of] };
        let node = Node::new("ReduceMean", inputs, [value]).int("keepdims", self.keepdims);
        graph.node(if self.opset >= 18 { node } else { node.ints("axes", self.axes.clone()) })
    }

    fn model(&self) -> Model {
        let mut graph = GraphBuilder::new("graph", self.opset)
            .input("x", DType::F32, self.dims.clone())
            .initializer("epsilon", &floats([], &[1e-5]))
            .initializer("one", &floats([], &[1.0]))
            .initializer("two", &floats([], &[2.0]));
        if self.opset >= 18 {
            let axes = Tensor::from_slice([self.axes.len()], &self.axes).unwrap();
            graph = graph.initializer("axes", &axes);
        }
        graph = self.mean(graph, "x", "mean").node(Node::new("Sub", ["x", "mean"], ["d"]));
        graph = graph.node(match self.square {
            "pow" => Node::new("Pow", ["d", "two"], ["squares"]),
            _ => Node::new("Mul", ["d", "d"], ["squares"]),
        });
        graph = self
            .mean(graph, "squares", "variance")
            .node(Node::new("Add", ["epsilon", "variance"], ["above"]))
            .node(Node::new("Sqrt", ["above"], ["root"]));
        graph = match self.divide {
            "div" => graph.node(Node::new("Div", ["d", "root"], ["n"])),
            "one over" => graph.node(Node::new("Div", ["one", "root"], ["r"])).node(Node::new(
                "Mul",
                ["r", "d"],
                ["n"],
            )),
            _ => graph.node(Node::new("Reciprocal", ["root"], ["r"])).node(Node::new(
                "Mul",
                ["d", "r"],
                ["n"],
            )),
        };
        let mut last = "n";
        if let Some(scale) = &self.scale {
            graph =
                graph.initializer("scale", scale).node(Node::new("Mul", [last, "scale"], ["s"]));
            last = "s";
        }
        if let Some(bias) = &self.bias {
            graph = graph.initializer("bias", bias).node(Node::new("Add", ["bias", last], ["b"]));
            last = "b";
        }
        graph =
            graph.node(Node::new("Neg", [last], ["y"])).output("y", DType::F32, self.dims.clone());
        if let Some(shown) = self.shown {
            graph = graph.output(shown, DType::F32, self.dims.clone());
        }
        graph.finish().unwrap()
    }
}

#[test]
fn a_written_out_layer_normalization_becomes_one_node() {
    for opset in [17, 18, 23] {
        for square in ["pow", "mul"] {
            for divide in ["div", "one over", "reciprocal"] {
                let model = Written { opset, square, divide, ..Written::default() }.model();
                let graph = holds(&FuseLayerNorm, &model);
                let wanted = ["b = LayerNormalization(x, scale, bias)", "y = Neg(b)"];
                assert_eq!(lines(&graph), wanted, "{opset} {square} {divide}");
                let node = graph.producer("b").unwrap().1;
                assert_eq!(node.int_of("axis"), Some(-1));
                assert_eq!(node.float_of("epsilon"), Some(1e-5));
            }
        }
    }
}

#[test]
fn several_axes_and_operands_that_are_repeated() {
    let model = Written {
        axes: vec![2, 1],
        scale: Some(floats([1, 4], &[1.0, -2.0, 0.5, 3.0])),
        bias: Some(floats([1, 3, 1], &[1.0, 2.0, 3.0])),
        ..Written::default()
    };
    let graph = holds(&FuseLayerNorm, &model.model());
    assert_eq!(lines(&graph)[0], "b = LayerNormalization(x, scale_1, bias_1)");
    assert_eq!(graph.producer("b").unwrap().1.int_of("axis"), Some(-2));
    let weight = graph.weight("bias_1").unwrap();
    assert_eq!(weight.dims(), [3, 4]);
    assert_eq!(weight.floats().unwrap()[3..6], [1.0, 2.0, 2.0]);
}

#[test]
fn without_scale_or_bias_it_is_a_normalization_all_the_same() {
    let neither = Written { scale: None, bias: None, ..Written::default() }.model();
    assert_eq!(lines(&holds(&FuseLayerNorm, &neither))[0], "n = LayerNormalization(x, n.scale)");
    let scale_alone = Written { bias: None, ..Written::default() }.model();
    assert_eq!(lines(&holds(&FuseLayerNorm, &scale_alone))[0], "s = LayerNormalization(x, scale)");
    let bias_alone = Written { scale: None, ..Written::default() }.model();
    let graph = holds(&FuseLayerNorm, &bias_alone);
    assert_eq!(lines(&graph)[0], "b = LayerNormalization(x, b.scale, bias)");
}

#[test]
fn a_scale_that_changes_from_row_to_row_stays_a_node() {
    let rows = floats([3, 1], &[1.0, 2.0, 3.0]);
    let model = Written { scale: Some(rows), bias: None, ..Written::default() }.model();
    let graph = holds(&FuseLayerNorm, &model);
    assert_eq!(lines(&graph)[..2], ["n = LayerNormalization(x, n.scale)", "s = Mul(n, scale)"]);
}

#[test]
fn a_scale_that_adds_an_axis_stays_a_node() {
    let wide = floats([1, 1, 1, 4], &[1.0, 2.0, 3.0, 4.0]);
    let model = Written { dims: vec![2, 4], scale: Some(wide), bias: None, ..Written::default() };
    // The model declares too few axes for its output here, so that no engine is asked.
    let done = crate::support::run(vec![Box::new(FuseLayerNorm)], &model.model());
    let found = lines(&done.graph);
    assert_eq!(found[..2], ["n = LayerNormalization(x, n.scale)", "s = Mul(n, scale)"]);
}

/// `x * g + (beta - mean * g)` with `g = gamma / root`
#[test]
fn the_form_of_tensorflow() {
    let model = GraphBuilder::new("graph", 17)
        .input("x", DType::F32, [2_usize, 4])
        .initializer("epsilon", &floats([], &[1e-3]))
        .initializer("gamma", &floats([4], &[1.0, -2.0, 0.5, 3.0]))
        .initializer("beta", &floats([4], &[0.1, 0.0, -0.3, 7.0]))
        .node(Node::new("ReduceMean", ["x"], ["mean"]).ints("axes", [1]))
        .node(Node::new("Sub", ["x", "mean"], ["d"]))
        .node(Node::new("Mul", ["d", "d"], ["squares"]))
        .node(Node::new("ReduceMean", ["squares"], ["variance"]).ints("axes", [1]))
        .node(Node::new("Add", ["variance", "epsilon"], ["above"]))
        .node(Node::new("Sqrt", ["above"], ["root"]))
        .node(Node::new("Reciprocal", ["root"], ["r"]))
        .node(Node::new("Mul", ["r", "gamma"], ["g"]))
        .node(Node::new("Mul", ["x", "g"], ["xg"]))
        .node(Node::new("Mul", ["mean", "g"], ["mg"]))
        .node(Node::new("Sub", ["beta", "mg"], ["rest"]))
        .node(Node::new("Add", ["xg", "rest"], ["y"]))
        .output("y", DType::F32, [2_usize, 4])
        .finish()
        .unwrap();
    assert_eq!(lines(&holds(&FuseLayerNorm, &model)), ["y = LayerNormalization(x, gamma, beta)"]);
}

#[test]
fn each_precondition_has_its_reason() {
    let cases = [
        (Written { opset: 13, ..Written::default() }, "needs opset 17; the model has 13"),
        (Written { axes: vec![1], ..Written::default() }, "not over the last axes"),
        (Written { axes: vec![0, 2], ..Written::default() }, "not over the last axes"),
        (Written { shown: Some("d"), ..Written::default() }, "\"d\" is an output of the model"),
        (Written { dims: vec![2, 3, 0], ..Written::default() }, "has the size 0"),
    ];
    for (written, reason) in cases {
        left_alone(FuseLayerNorm, &written.model(), reason);
    }
}

#[test]
fn means_without_their_axes_are_something_else() {
    let square = Written { dims: vec![4, 4], keepdims: 0, ..Written::default() };
    left_alone(FuseLayerNorm, &square.model(), "does not keep its axes");
}

/// `d / sqrt(mean(squares) + epsilon)` of this type, with means over these axes.
fn plain(dtype: DType, epsilon: &Tensor, dims: &[Dim], axes: [i64; 2], middle: &str) -> Model {
    GraphBuilder::new("graph", 17)
        .input("x", dtype, dims.to_vec())
        .input("z", dtype, dims.to_vec())
        .initializer("epsilon", epsilon)
        .node(Node::new("ReduceMean", ["x"], ["mean"]).ints("axes", [axes[0]]))
        .node(Node::new("Sub", [middle, "mean"], ["d"]))
        .node(Node::new("Mul", ["d", "d"], ["squares"]))
        .node(Node::new("ReduceMean", ["squares"], ["variance"]).ints("axes", [axes[1]]))
        .node(Node::new("Add", ["variance", "epsilon"], ["above"]))
        .node(Node::new("Sqrt", ["above"], ["root"]))
        .node(Node::new("Div", ["d", "root"], ["y"]))
        .output("y", dtype, dims.to_vec())
        .finish()
        .unwrap()
}

#[test]
fn what_only_looks_like_a_layer_normalization() {
    let single = floats([], &[1e-5]);
    let double = Tensor::from_slice([], &[1e-5_f64]).unwrap();
    let fixed = [Dim::Fixed(4), Dim::Fixed(4)];
    let open = [Dim::Fixed(4), Dim::from("n")];
    let vector = floats([4], &[1e-5; 4]);
    left_alone(
        FuseLayerNorm,
        &plain(DType::F64, &double, &fixed, [-1, -1], "x"),
        "computes float64 in float32",
    );
    left_alone(FuseLayerNorm, &plain(DType::F32, &single, &fixed, [-1, 0], "x"), "not over the");
    left_alone(FuseLayerNorm, &plain(DType::F32, &single, &open, [-1, -1], "x"), "has the size n");
    left_alone(FuseLayerNorm, &plain(DType::F32, &single, &fixed, [-1, -1], "z"), "");
    left_alone(FuseLayerNorm, &plain(DType::F32, &vector, &fixed, [-1, -1], "x"), "");
}

#[test]
fn half_precision_that_is_widened_keeps_its_casts() {
    let cast = |from: &str, to: &str, kind: i64| Node::new("Cast", [from], [to]).int("to", kind);
    let model = GraphBuilder::new("graph", 17)
        .input("h", DType::F16, [2_usize, 4])
        .initializer("epsilon", &floats([], &[1e-5]))
        .node(cast("h", "x", 1))
        .node(Node::new("ReduceMean", ["x"], ["mean"]).ints("axes", [-1]))
        .node(Node::new("Sub", ["x", "mean"], ["d"]))
        .node(Node::new("Mul", ["d", "d"], ["squares"]))
        .node(Node::new("ReduceMean", ["squares"], ["variance"]).ints("axes", [-1]))
        .node(Node::new("Add", ["variance", "epsilon"], ["above"]))
        .node(Node::new("Sqrt", ["above"], ["root"]))
        .node(Node::new("Div", ["d", "root"], ["n"]))
        .node(cast("n", "y", 10))
        .output("y", DType::F16, [2_usize, 4])
        .output("x", DType::F32, [2_usize, 4])
        .finish()
        .unwrap();
    let done = crate::support::run(vec![Box::new(FuseLayerNorm)], &model);
    assert_eq!(
        lines(&done.graph),
        ["x = Cast(h)", "n = LayerNormalization(x, n.scale)", "y = Cast(n)"]
    );
}
