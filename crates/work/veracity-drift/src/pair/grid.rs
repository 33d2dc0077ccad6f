//! What a quantisation can make of a value at best: the reference's value, quantised anew.
//!
//! Where that is wrong as well, the range is too narrow. Where it is right and a stored weight is
//! not, the weight is another one.

use veracity_onnx::{Model, NodeFacts};
use veracity_results::{Cause, CauseKind};
use veracity_tensor::{DType, Tensor};

use crate::convert::{cast, floats};
use crate::quantised::Step;

/// The numbers that a `DequantizeLinear` can give.
pub(super) struct Grid<'s> {
    step: &'s Step,
    zeros: Vec<f64>,
    least: f64,
    most: f64,
}

impl<'s> Grid<'s> {
    /// `None` where the model does not say which integers there are.
    pub(super) fn of(model: &Model, node: &NodeFacts, step: &'s Step) -> Option<Self> {
        let constant =
            |position: usize| node.inputs.get(position).and_then(|name| model.constant(name));
        let zero = constant(2);
        let dtype = zero.as_ref().map(Tensor::dtype).or_else(|| Some(constant(0)?.dtype()))?;
        let (least, most) = match dtype {
            DType::I8 => (f64::from(i8::MIN), f64::from(i8::MAX)),
            DType::U8 => (f64::from(u8::MIN), f64::from(u8::MAX)),
            DType::I16 => (f64::from(i16::MIN), f64::from(i16::MAX)),
            DType::U16 => (f64::from(u16::MIN), f64::from(u16::MAX)),
            DType::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
            _ => return None,
        };
        let zeros = match zero {
            Some(zero) => whole_numbers(&zero)?,
            None => vec![0.0],
        };
        Some(Self { step, zeros, least, most })
    }

    /// What makes a dequantised value wrong, if the quantisation or a stored weight does. `weight` is
    /// the reference's weight that it stands for.
    pub(super) fn cause(
        &self,
        reference: &Tensor,
        found: &Tensor,
        slack: f64,
        weight: Option<&str>,
    ) -> Option<Cause> {
        let shape = found.shape();
        let (reference, found) = (floats(reference)?, floats(found)?);
        let (mut outside, mut beyond) = (0_usize, 0.0_f64);
        let (mut others, mut steps) = (0_usize, 0.0_f64);
        for (index, (&reference, &found)) in reference.iter().zip(&found).enumerate() {
            let (best, step) = self.best(reference, index, shape)?;
            let lost = (reference - best).abs();
            // NaN is no cause that can be told.
            if !(lost.is_finite() && found.is_finite()) {
                return None;
            }
            if lost > step / 2.0 + slack {
                (outside, beyond) = (outside + 1, beyond.max(lost));
            }
            // Halves may be rounded either way.
            let apart = (found - best).abs();
            if apart > step + slack {
                (others, steps) = (others + 1, steps.max(apart / step));
            }
        }
        let all = found.len();
        let (kind, detail) = match weight {
            _ if others == 0 && outside > 0 => (
                CauseKind::PrecisionLoss,
                format!(
                    "the range of the quantisation is too narrow: {outside} of {all} elements lie \
                     outside, by up to {beyond:.2e}"
                ),
            ),
            Some(weight) if others > 0 && outside == 0 => (
                CauseKind::WeightBitMismatch,
                format!(
                    "{others} of {all} elements are not those of `{weight}` in the original, \
                     quantised with the same scale: they are off by up to {steps:.1} steps"
                ),
            ),
            _ => return None,
        };
        Some(Cause { kind, detail, ruled_out: Vec::new() })
    }

    /// The number nearest to a value, and the step there.
    fn best(&self, value: f64, index: usize, shape: &veracity_tensor::Shape) -> Option<(f64, f64)> {
        let step = self.step.at(index, shape)?;
        let zero = self.step.place(&self.zeros, index, shape)?;
        let whole = ((value / step).round_ties_even() + zero).clamp(self.least, self.most);
        Some(((whole - zero) * step, step))
    }
}

fn whole_numbers(tensor: &Tensor) -> Option<Vec<f64>> {
    let wide = cast(tensor, DType::I32)?;
    Some(wide.as_slice::<i32>()?.iter().map(|&one| f64::from(one)).collect())
}

#[cfg(test)]
mod tests {
    use veracity_onnx::{GraphBuilder, Node};

    use super::*;

    /// What is found at four values of a grid of half steps from -64 to 63.5.
    fn cause(reference: [f32; 4], found: [f32; 4], weight: Option<&str>) -> Option<CauseKind> {
        let model = GraphBuilder::new("g", 20)
            .initializer("q", &Tensor::zeros(DType::I8, [4_usize].into()))
            .initializer("s", &Tensor::from_slice([1], &[0.5_f32]).unwrap())
            .initializer("z", &Tensor::from_slice([1], &[0_i8]).unwrap())
            .node(Node::new("DequantizeLinear", ["q", "s", "z"], ["d"]).int("axis", 0))
            .finish()
            .unwrap();
        let nodes = model.nodes();
        let step = Step::of(&model, &nodes[0], 1).unwrap();
        let [reference, found] =
            [reference, found].map(|values| Tensor::from_slice([4], &values).unwrap());
        let grid = Grid::of(&model, &nodes[0], &step).unwrap();
        grid.cause(&reference, &found, 1e-9, weight).map(|cause| cause.kind)
    }

    #[test]
    fn a_narrow_range_and_another_weight_are_told_apart() {
        let (range, weight) = (CauseKind::PrecisionLoss, CauseKind::WeightBitMismatch);
        let plain = [0.2, 1.0, -2.0, 3.0];
        for (reference, found, name, expected) in [
            ([0.2, 1.0, -2.0, 100.0], [0.0, 1.0, -2.0, 63.5], Some("w"), Some(range)),
            ([0.2, 1.0, -2.0, -90.0], [0.0, 1.0, -2.0, -64.0], None, Some(range)),
            (plain, [0.0, 1.0, -2.0, -3.0], Some("w"), Some(weight)),
            // Not a weight: operators before it may be wrong.
            (plain, [0.0, 1.0, -2.0, -3.0], None, None),
            // Both at once.
            ([0.2, 1.0, -2.0, 100.0], [0.0, 9.0, -2.0, 63.5], Some("w"), None),
            ([f32::NAN, 1.0, -2.0, 3.0], [0.0, 1.0, -2.0, 3.0], Some("w"), None),
            (plain, [0.0, 1.0, -2.0, 3.0], Some("w"), None),
        ] {
            assert_eq!(cause(reference, found, name), expected, "{reference:?} {found:?}");
        }
    }
}
