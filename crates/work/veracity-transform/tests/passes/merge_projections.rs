//! `merge-projections`

use veracity_onnx::{GraphBuilder, Model, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::MergeProjections;

use crate::support::{holds, left_alone, lines, run};

/// A tensor with elements that all differ.
fn tensor(dims: &[usize], seed: f32) -> Tensor {
    let count: usize = dims.iter().product();
    #[expect(clippy::cast_precision_loss, reason = "small numbers")]
    let elements: Vec<f32> = (0..count).map(|index| (index as f32 * 0.37 + seed).sin()).collect();
    Tensor::from_slice(veracity_tensor::Shape::new(dims).unwrap(), &elements).unwrap()
}

/// `x` of 3 numbers in each row, projected to these widths, with or without a bias each.
fn products(opset: i64, widths: &[usize], bias: bool) -> Model {
    let mut graph = GraphBuilder::new("graph", opset).input("x", DType::F32, [2_usize, 2, 3]);
    for (index, &width) in widths.iter().enumerate() {
        let [w, b, p, y] = ["w", "b", "p", "y"].map(|name| format!("{name}{index}"));
        graph = graph.initializer(&w, &tensor(&[3, width], 1.0));
        let product = if bias { &p } else { &y };
        graph = graph.node(Node::new("MatMul", ["x", w.as_str()], [product]));
        if bias {
            graph = graph.initializer(&b, &tensor(&[width], 2.0)).node(Node::new(
                "Add",
                [b, p],
                [y.clone()],
            ));
        }
        graph = graph.output(y, DType::F32, [2, 2, width]);
    }
    graph.finish().unwrap()
}

#[test]
fn products_with_one_value_become_one_that_is_split() {
    for opset in [11, 13, 20] {
        let graph = holds(&MergeProjections, &products(opset, &[2, 5, 1], false));
        let split = if opset < 13 { "" } else { ", x.projected.widths" };
        assert_eq!(
            lines(&graph),
            [
                "x.projected = MatMul(x, x.projected.weight)".to_owned(),
                format!("y0, y1, y2 = Split(x.projected{split})")
            ]
        );
        assert_eq!(graph.weight("x.projected.weight").unwrap().dims(), [3, 8]);
    }
}

#[test]
fn biases_are_put_together_as_well() {
    let model = products(18, &[2, 4], true);
    let done = run(vec![Box::new(MergeProjections)], &model);
    let map = done.rewrites[0].applied.value_map();
    assert_eq!(map.keys().collect::<Vec<_>>(), ["p0", "p1"], "products without bias are gone");
    let graph = holds(&MergeProjections, &model);
    assert_eq!(
        lines(&graph),
        [
            "x.projected.plain = MatMul(x, x.projected.weight)",
            "x.projected = Add(x.projected.plain, x.projected.bias)",
            "y0, y1 = Split(x.projected, x.projected.widths)"
        ]
    );
}

/// Three `Gemm` nodes; the last with attributes of its own.
fn gemms(transposed: [i64; 3], alpha: [f32; 3]) -> Model {
    let mut graph = GraphBuilder::new("graph", 13).input("x", DType::F32, [2_usize, 3]);
    for index in 0..3_usize {
        let dims = if transposed[index] == 1 { [4, 3] } else { [3, 4] };
        let [w, b, y] = ["w", "b", "y"].map(|name| format!("{name}{index}"));
        let node = Node::new("Gemm", ["x", w.as_str(), b.as_str()], [y.as_str()])
            .int("transB", transposed[index])
            .float("alpha", alpha[index]);
        graph = graph
            .initializer(&w, &tensor(&dims, 1.0))
            .initializer(&b, &tensor(&[4], 3.0))
            .node(node)
            .output(y, DType::F32, [2_usize, 4]);
    }
    graph.finish().unwrap()
}

#[test]
fn gemm_nodes_that_compute_in_the_same_way_become_one() {
    for transposed in [0, 1] {
        let graph = holds(&MergeProjections, &gemms([transposed; 3], [0.5; 3]));
        assert_eq!(graph.len(), 2, "{:?}", lines(&graph));
    }
}

#[test]
fn what_would_not_be_fewer_nodes_is_left_alone() {
    left_alone(MergeProjections, &products(13, &[2, 5], false), "would not be fewer nodes");
    left_alone(MergeProjections, &gemms([0, 0, 1], [1.0; 3]), "would not be fewer nodes");
    left_alone(MergeProjections, &gemms([0; 3], [1.0, 1.0, 2.0]), "would not be fewer nodes");
}

#[test]
fn matrices_that_come_from_outside_are_left_alone() {
    let mut graph = GraphBuilder::new("graph", 13).input("x", DType::F32, [2_usize, 3]);
    for index in 0..3 {
        let (w, y) = (format!("w{index}"), format!("y{index}"));
        graph = graph
            .input(&w, DType::F32, [3_usize, 2])
            .initializer(&w, &tensor(&[3, 2], 1.0))
            .node(Node::new("MatMul", ["x", w.as_str()], [y.as_str()]))
            .output(y, DType::F32, [2_usize, 2]);
    }
    left_alone(MergeProjections, &graph.finish().unwrap(), "the matrix is not constant");
}

#[test]
fn a_matrix_that_others_read_is_copied_and_stays() {
    let model = {
        let mut graph = GraphBuilder::new("graph", 13).input("x", DType::F32, [2_usize, 3]);
        graph = graph.initializer("w", &tensor(&[3, 2], 1.0));
        for index in 0..3 {
            let y = format!("y{index}");
            graph = graph.node(Node::new("MatMul", ["x", "w"], [y.as_str()])).output(
                y,
                DType::F32,
                [2_usize, 2],
            );
        }
        graph.node(Node::new("Neg", ["w"], ["z"])).output("z", DType::F32, [3_usize, 2])
    };
    let graph = holds(&MergeProjections, &model.finish().unwrap());
    assert_eq!(graph.len(), 3);
    assert_eq!(graph.weight("w").unwrap().dims(), [3, 2]);
}
