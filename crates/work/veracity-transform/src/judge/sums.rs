//! How far roundings alone can bring a window apart.

use veracity_onnx::{Node, Weight};
use veracity_tensor::DType;

use super::rules::ROUNDINGS;
use super::window::{Side, Window};

/// Roundings of the largest value that the two sides of a window may lie apart: a few, and those of
/// their longest sum. They are of either sign, so that they grow with the root of its length.
pub(super) fn roundings(window: &Window) -> f64 {
    let terms = longest(&window.before).max(longest(&window.after));
    #[expect(clippy::cast_precision_loss, reason = "lengths of sums are small")]
    let grown = (terms as f64).sqrt();
    ROUNDINGS + grown
}

/// Terms of the longest sum over constants; sums over values that are only known when they are run
/// are left to the second look. Half precision is summed in float32 and rounded once: its roundings
/// do not grow.
fn longest(side: &Side) -> usize {
    side.nodes.iter().filter_map(|node| terms(node, side)).max().unwrap_or(0)
}

fn terms(node: &Node, side: &Side) -> Option<usize> {
    if !node.op_domain().is_empty() {
        return None;
    }
    let grows = |weight: &&Weight| matches!(weight.dtype(), Some(DType::F32 | DType::F64));
    let dims_of =
        |place: usize| side.weights.get(node.input(place)?).filter(grows).map(Weight::dims);
    let product = |dims: &[usize]| dims.iter().fold(1_usize, |all, dim| all.saturating_mul(*dim));
    match node.op_type() {
        "Conv" => dims_of(1)?.get(1..).map(product),
        "ConvTranspose" => {
            let dims = dims_of(1)?;
            Some(dims.first()?.saturating_mul(product(dims.get(2..)?)))
        }
        "Gemm" => {
            let is_turned = node.int_of("transB").unwrap_or(0) != 0;
            dims_of(1)?.get(usize::from(is_turned)).copied()
        }
        "MatMul" => match (dims_of(0), dims_of(1)) {
            (_, Some(right)) => right.get(right.len().checked_sub(2)?).copied(),
            (Some(left), None) => left.last().copied(),
            (None, None) => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use veracity_onnx::{Graph, GraphBuilder};
    use veracity_tensor::Tensor;

    use super::*;

    #[test]
    fn sums_are_as_long_as_what_they_run_over() {
        let gemm = || Node::new("Gemm", ["x", "w"], ["y"]);
        for (node, dims, expected) in [
            (Node::new("Conv", ["x", "w"], ["y"]), vec![8, 4, 3, 3], 36),
            (Node::new("ConvTranspose", ["x", "w"], ["y"]), vec![4, 8, 3, 3], 36),
            (gemm(), vec![5, 7], 5),
            (gemm().int("transB", 1), vec![5, 7], 7),
            (Node::new("MatMul", ["x", "w"], ["y"]), vec![2, 5, 7], 5),
            (Node::new("MatMul", ["w", "x"], ["y"]), vec![5, 7], 7),
            (Node::new("Add", ["x", "w"], ["y"]), vec![5, 7], 0),
        ] {
            let name = node.op_type().to_owned();
            let weight = Tensor::zeros(DType::F32, dims.clone().try_into().unwrap());
            let model = GraphBuilder::new("g", 20)
                .input("x", DType::F32, [1_usize])
                .initializer("w", &weight)
                .node(node)
                .output("y", DType::F32, [1_usize])
                .finish()
                .unwrap();
            let side = Side::whole(&Graph::new(model).unwrap());
            assert_eq!(longest(&side), expected, "{name} {dims:?}");
        }
    }

    #[test]
    fn half_precision_is_rounded_once() {
        for (dtype, expected) in [(DType::F16, 0), (DType::F64, 36)] {
            let model = GraphBuilder::new("g", 20)
                .input("x", dtype, [1_usize])
                .initializer("w", &Tensor::zeros(dtype, [8, 4, 3, 3].into()))
                .node(Node::new("Conv", ["x", "w"], ["y"]))
                .output("y", dtype, [1_usize])
                .finish()
                .unwrap();
            assert_eq!(longest(&Side::whole(&Graph::new(model).unwrap())), expected, "{dtype}");
        }
    }
}
