//! How far values move when what they are computed from is moved a little.
//!
//! Inputs and constants are moved by as many units in the last place as an operator may introduce,
//! each up or down. What that does to an element is what roundings of this size can do to it:
//! sums of large terms that cancel move, what is only copied does not.

use std::borrow::Cow;
use std::collections::BTreeMap;

use veracity_onnx::Model;
use veracity_tensor::{Tensor, TensorView};

use crate::causes::says_how;
use crate::convert::{cast, floats};
use crate::random::Random;
use crate::tiles::tiles;

/// Moves that are tried first, and those behind when an element is still beyond its budget: a sum
/// may by chance not move although its terms do.
pub(crate) const MOVES: [std::ops::Range<u64>; 2] = [0..2, 2..12];

/// How far the elements of one value move at most.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Moved(Vec<f32>);

impl Moved {
    /// Nothing moves yet.
    pub(crate) fn new(elements: usize) -> Self {
        Self(vec![0.0; elements])
    }

    pub(crate) fn at(&self, position: usize) -> f64 {
        self.0.get(position).copied().map_or(0.0, f64::from)
    }

    pub(crate) fn raise(&mut self, position: usize, distance: f64) {
        #[expect(clippy::cast_possible_truncation, reason = "a distance needs few digits")]
        let distance = if distance.is_nan() { f32::INFINITY } else { distance as f32 };
        if let Some(held) = self.0.get_mut(position) {
            *held = held.max(distance);
        }
    }

    /// Adds how far a value is from what it was. Another shape means that everything moved.
    pub(crate) fn add(&mut self, was: &TensorView<'_>, is: &TensorView<'_>) {
        if was.shape() != is.shape() || was.dtype() != is.dtype() {
            self.0.fill(f32::INFINITY);
            return;
        }
        for (first, was, is) in tiles(was, is) {
            for (offset, (was, is)) in was.iter().zip(&is).enumerate() {
                let same = was.to_bits() == is.to_bits() || (was.is_nan() && is.is_nan());
                if !same {
                    self.raise(first + offset, (is - was).abs());
                }
            }
        }
    }
}

/// A tensor whose elements are moved by a part of themselves, up or down. Zeros, NaN, infinities and
/// integers stay; nothing becomes infinite.
pub(crate) fn nudged(tensor: &Tensor, relative: f64, seed: u64, name: &str) -> Tensor {
    let Some(mut values) = floats(tensor) else { return tensor.clone() };
    let mut random = Random::new(seed, name);
    for value in &mut values {
        let up = random.bits() & 1 == 0;
        // What rounds to the same number in its own type does no harm.
        *value *= 1.0 + if up { relative } else { -relative };
    }
    let wide = Tensor::from_slice(tensor.shape().clone(), &values);
    let moved = wide.ok().and_then(|wide| cast(&wide, tensor.dtype()).map(Cow::into_owned));
    moved.filter(|moved| is_finite_like(tensor, moved)).unwrap_or_else(|| tensor.clone())
}

fn is_finite_like(was: &Tensor, is: &Tensor) -> bool {
    let finite = |tensor: &Tensor| {
        floats(tensor).map_or(0, |all| all.iter().filter(|value| value.is_finite()).count())
    };
    finite(was) == finite(is)
}

/// A model whose constants are moved; those that say how to compute stay.
pub(crate) fn with_moved_constants(model: &Model, relative: f64, seed: u64) -> Model {
    let mut changed: BTreeMap<String, Tensor> = BTreeMap::new();
    for node in model.nodes() {
        for (position, name) in node.inputs.iter().enumerate() {
            if says_how(&node.op_type, position) || changed.contains_key(name) {
                continue;
            }
            let Some(constant) = model.constant(name) else { continue };
            if constant.dtype().is_float() {
                changed.insert(name.clone(), nudged(&constant, relative, seed, name));
            }
        }
    }
    let moved = model.with_constants(&changed);
    let inside = inside(model);
    if inside.is_empty() || model.opset().is_none_or(|opset| opset < CAST_LIKE) {
        return moved;
    }
    #[expect(clippy::cast_possible_truncation, reason = "few digits are enough")]
    let size = (relative * INSIDE) as f32;
    moved.with_added(&inside, if seed.is_multiple_of(2) { size } else { -size })
}

/// The first version of operators that has `CastLike`.
const CAST_LIKE: i64 = 15;
/// The part of the move that is added to what comes of sums inside of an operator.
const INSIDE: f64 = 1.0 / 16.0;

/// Operators that add something of order one inside, so that small results are as uncertain as that:
/// ONNX Runtime's sigmoid of -30 is 1e-8, and torch's error function is right to 1e-7.
const AROUND_ONE: [&str; 9] =
    ["Sigmoid", "Erf", "Softplus", "Elu", "Celu", "Selu", "LSTM", "GRU", "RNN"];
/// Operators that multiply their input with such a sum.
const TIMES_INPUT: [&str; 5] = ["Gelu", "FastGelu", "QuickGelu", "Mish", "Swish"];

/// Values to which something is added, with what it is multiplied by.
fn inside(model: &Model) -> BTreeMap<String, Option<String>> {
    let mut found = BTreeMap::new();
    for node in model.nodes() {
        let operator = node.op_type.rsplit("::").next().unwrap_or_default();
        let factor = match operator {
            _ if AROUND_ONE.contains(&operator) => None,
            _ if TIMES_INPUT.contains(&operator) => node.inputs.first().cloned(),
            _ => continue,
        };
        let outputs = node.outputs.into_iter().filter(|name| !name.is_empty());
        found.extend(outputs.map(|output| (output, factor.clone())));
    }
    found
}

#[cfg(test)]
mod tests {
    use veracity_onnx::{GraphBuilder, Node};
    use veracity_tensor::DType;

    use super::*;

    #[test]
    fn numbers_move_by_their_own_size_and_zeros_stay() {
        let tensor = Tensor::from_slice([4], &[1.0_f32, -1000.0, 0.0, f32::INFINITY]).unwrap();
        let moved = nudged(&tensor, 1e-5, 3, "x");
        let (was, is) = (floats(&tensor).unwrap(), floats(&moved).unwrap());
        for (was, is) in was.iter().zip(&is).take(3) {
            assert!(((was - is).abs() - 1e-5 * was.abs()).abs() <= 1e-7 * was.abs(), "{was} {is}");
        }
        assert!(is[3].is_infinite());
        let counts = Tensor::from_slice([2], &[1_i64, 2]).unwrap();
        assert_eq!(nudged(&counts, 1e-5, 3, "x"), counts);
    }

    #[test]
    fn constants_that_say_how_to_compute_stay() {
        let number = |value: f32| Tensor::from_slice([1], &[value]).unwrap();
        let model = GraphBuilder::new("g", 20)
            .input("x", DType::F32, [1_usize])
            .initializer("w", &number(3.0))
            .initializer("power", &number(2.0))
            .node(Node::new("Mul", ["x", "w"], ["a"]))
            .node(Node::new("Pow", ["a", "power"], ["y"]))
            .output("y", DType::F32, [1_usize])
            .finish()
            .unwrap();
        let moved = with_moved_constants(&model, 1e-5, 0);
        assert_eq!(moved.constant("power"), model.constant("power"));
        assert_ne!(moved.constant("w"), model.constant("w"));
    }
}
