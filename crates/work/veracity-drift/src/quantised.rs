//! What rounding to the steps of a quantisation may do to a value.
//!
//! A value that goes through `QuantizeLinear` and `DequantizeLinear` comes back on a grid of steps
//! of one scale: inside of its range it is off by at most half a step, outside of it by any amount.
//! So a dequantised value is compared with the value before, element by element, against half a
//! step of its own scale. An operator behind it is given the value before, so that it is judged like
//! any other: what quantising does is charged to the quantisation.

use std::collections::{BTreeMap, BTreeSet};

use veracity_onnx::{Model, NodeFacts};
use veracity_tensor::{Shape, Tensor};

use crate::convert::floats;

/// The step of each element of a dequantised value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// One scale, or one for each place of the axis.
    scales: Vec<f64>,
    axis: usize,
}

impl Step {
    /// The step of what a `DequantizeLinear` gives. `None` for other nodes, for scales that are
    /// computed, and for blocks, which have a scale for each part of an axis.
    pub(crate) fn of(model: &Model, node: &NodeFacts, rank: usize) -> Option<Self> {
        let (output, scale) = (node.outputs.first()?, node.inputs.get(1)?);
        let blocks = model.int_attribute(output, "block_size").unwrap_or(0) != 0;
        if !is_dequantize(node) || blocks {
            return None;
        }
        let scales = floats(&model.constant(scale)?)?;
        let axis = model.int_attribute(output, "axis").unwrap_or(1);
        let rank = i64::try_from(rank).unwrap_or(i64::MAX);
        let axis = if axis < 0 { axis + rank } else { axis };
        let axis = usize::try_from(axis).ok()?;
        let usable = !scales.is_empty() && scales.iter().all(|scale| scale.is_finite());
        usable.then_some(Self { scales, axis })
    }

    /// The largest half step.
    pub(crate) fn largest_half(&self) -> f64 {
        self.scales.iter().fold(0.0_f64, |largest, scale| largest.max(scale.abs())) / 2.0
    }

    /// What is wrong with a dequantised value, if an element is off by more than half of its own
    /// step and some `slack` for the arithmetic of floats.
    pub(crate) fn problem(&self, reference: &Tensor, found: &Tensor, slack: f64) -> Option<String> {
        let (reference, values, shape) = (floats(reference)?, floats(found)?, found.shape());
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (mut beyond, mut clipped) = (0_usize, 0_usize);
        let mut worst = (0.0_f64, 0.0_f64);
        for (index, (&reference, &found)) in reference.iter().zip(&values).enumerate() {
            let half = self.at(index, shape)? / 2.0;
            let error = (reference - found).abs();
            if error > half + slack {
                beyond += 1;
                let is_end =
                    (found >= most && reference > most) || (found <= least && reference < least);
                clipped += usize::from(is_end);
                if error - half > worst.0 - worst.1 {
                    worst = (error, half);
                }
            }
        }
        (beyond > 0).then(|| {
            format!(
                "{beyond} of {} elements are off by more than half a step of the quantisation, the \
                 worst by {:.3e} where half a step is {:.3e}; {clipped} of them lie outside of the \
                 range of what came out",
                values.len(),
                worst.0,
                worst.1
            )
        })
    }

    /// The scale of an element. `None` where there are more or fewer scales than places.
    pub(crate) fn at(&self, index: usize, shape: &Shape) -> Option<f64> {
        self.place(&self.scales, index, shape).map(f64::abs)
    }

    /// What a list with one number, or one for each place of the axis, has for an element.
    pub(crate) fn place(&self, list: &[f64], index: usize, shape: &Shape) -> Option<f64> {
        if let [only] = *list {
            return Some(only);
        }
        let dims = shape.dims();
        let inner: usize = dims.get(self.axis + 1..)?.iter().product();
        let places = *dims.get(self.axis)?;
        (places == list.len()).then(|| list[index / inner % places])
    }
}

/// Whether a node turns integers back to floats.
pub(crate) fn is_dequantize(node: &NodeFacts) -> bool {
    operator(node) == "DequantizeLinear"
}

/// Whether a node rounds floats to integers.
pub(crate) fn is_quantize(node: &NodeFacts) -> bool {
    operator(node) == "QuantizeLinear"
}

/// Whether a node computes with quantised values.
pub(crate) fn is_quantised(node: &NodeFacts) -> bool {
    let operator = operator(node);
    ["Quantize", "Dequantize", "QLinear", "Integer", "QGemm", "QAttention"]
        .iter()
        .any(|part| operator.contains(part))
}

/// ONNX Runtime has the two operators in its own domain as well, for types that came early.
fn operator(node: &NodeFacts) -> &str {
    node.op_type.strip_prefix("com.microsoft::").unwrap_or(&node.op_type)
}

/// Values that only quantisers read, and those only to be dequantised: nobody sees the value itself.
/// Quantisers rely on that, and leave out a `Relu` whose work the range does.
pub(crate) fn hidden(model: &Model, nodes: &[NodeFacts]) -> BTreeSet<String> {
    let outputs: BTreeSet<String> = model.outputs().into_iter().map(|output| output.name).collect();
    let mut readers: BTreeMap<&str, Vec<(&NodeFacts, usize)>> = BTreeMap::new();
    for node in nodes {
        for (position, input) in node.inputs.iter().enumerate() {
            readers.entry(input).or_default().push((node, position));
        }
    }
    let only_read_by = |name: &str, is_reader: &dyn Fn(&NodeFacts) -> bool| {
        let readers = readers.get(name).map_or(&[][..], Vec::as_slice);
        let fits = |(node, position): &(&NodeFacts, usize)| *position == 0 && is_reader(node);
        !readers.is_empty() && readers.iter().all(fits) && !outputs.contains(name)
    };
    let goes_through = |node: &NodeFacts| {
        is_quantize(node) && node.outputs.iter().all(|name| only_read_by(name, &is_dequantize))
    };
    let names = readers.keys().filter(|name| only_read_by(name, &goes_through));
    names.map(|name| (*name).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use veracity_onnx::{GraphBuilder, Node};
    use veracity_tensor::DType;

    use super::*;

    fn tensor(dims: [usize; 2], values: &[f32]) -> Tensor {
        Tensor::from_slice(dims, values).unwrap()
    }

    fn step(scales: &[f32], axis: i64) -> Option<Step> {
        let model = GraphBuilder::new("g", 20)
            .initializer("q", &Tensor::zeros(DType::I8, [2_usize, 2].into()))
            .initializer("s", &Tensor::from_slice([scales.len()], scales).unwrap())
            .node(Node::new("DequantizeLinear", ["q", "s"], ["d"]).int("axis", axis))
            .finish()
            .unwrap();
        Step::of(&model, &model.nodes()[0], 2)
    }

    #[test]
    fn half_a_step_passes_and_more_does_not() {
        let step = step(&[0.5], 0).unwrap();
        assert!((step.largest_half() - 0.25).abs() < 1e-12);
        let reference = tensor([2, 2], &[0.0, 0.25, 1.0, 10.0]);
        let near = tensor([2, 2], &[0.0, 0.5, 1.0, 10.0]);
        assert_eq!(step.problem(&reference, &near, 1e-9), None);
        let clipped = tensor([2, 2], &[0.0, 0.5, 1.0, 5.0]);
        let problem = step.problem(&reference, &clipped, 1e-9).unwrap();
        assert!(problem.starts_with("1 of 4 elements"), "{problem}");
    }

    #[test]
    fn each_place_of_an_axis_has_its_own_step() {
        let reference = tensor([2, 2], &[0.0; 4]);
        // 0.4 is within half a step of the first row and first column alone.
        for (axis, found, fits) in [
            (0, [0.4, 0.4, 0.0, 0.0], true),
            (0, [0.4, 0.0, 0.4, 0.0], false),
            (1, [0.4, 0.0, 0.4, 0.0], true),
            (-2, [0.4, 0.4, 0.0, 0.0], true),
            (-1, [0.4, 0.4, 0.0, 0.0], false),
        ] {
            let step = step(&[1.0, 0.1], axis).unwrap();
            let problem = step.problem(&reference, &tensor([2, 2], &found), 1e-9);
            assert_eq!(problem.is_none(), fits, "axis {axis}, {found:?}");
        }
    }

    #[test]
    fn values_that_only_a_quantiser_reads_are_hidden() {
        let model = GraphBuilder::new("g", 20)
            .node(Node::new("Relu", ["x"], ["a"]))
            .node(Node::new("QuantizeLinear", ["a", "s"], ["a_q"]))
            .node(Node::new("DequantizeLinear", ["a_q", "s"], ["a_d"]))
            .node(Node::new("Relu", ["x"], ["b"]))
            .node(Node::new("QuantizeLinear", ["b", "s"], ["b_q"]))
            .node(Node::new("DequantizeLinear", ["b_q", "s"], ["b_d"]))
            .node(Node::new("Relu", ["x"], ["c"]))
            .node(Node::new("QuantizeLinear", ["c", "s"], ["c_q"]))
            .node(Node::new("QLinearMatMul", ["c_q", "a_d"], ["d"]))
            .output("b", DType::F32, [1_usize])
            .finish()
            .unwrap();
        // `b` is an output, and what becomes of `c` is never a float again.
        assert_eq!(hidden(&model, &model.nodes()), BTreeSet::from(["a".to_owned()]));
    }
}
