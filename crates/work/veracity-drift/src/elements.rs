//! The rule: how far an element may be off, and which one is farthest beyond that.
//!
//! An operator that computes what it should is off by roundings, and roundings are as large as what
//! was added up *in that element*. The largest value of the tensor says nothing about it: beside a
//! mask of -1e9, 64 units in its last place are 7,630. So each element has a budget of its own:
//!
//! ```text
//! budget = units * eps * |reference|  +  4 times how far it moves when everything it is
//!                                        computed from is moved by units * eps
//! ```
//!
//! and never more than `units * eps` of the largest value. The second part is what a sum of large
//! terms that cancel is entitled to, a normalisation of nearly equal numbers, an exponential of
//! a large one. It is found by running the operator again on moved inputs and constants
//! ([`crate::noise`]), which needs no knowledge of operators, and only where the first part is not
//! enough: most operators are right to a few units of each element.
//!
//! Roundings go both ways. An error that is small in every element and points the same way in most
//! of them (another epsilon in a normalisation) is none: its median is held to an eighth of the
//! budget.

use veracity_results::DriftElement;
use veracity_tensor::{DType, TensorView};

use crate::noise::Moved;
use crate::tiles::tiles;

/// Elements from which on a median says something about all of them.
const MANY: usize = 32;
/// How many times farther roundings may bring an element than moving its terms does: each partial sum
/// is rounded as well, not only each term.
const SLACK: f64 = 4.0;
/// Most elements that a median is taken of.
const MOST: usize = 1 << 14;

/// What elements may be off.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowed<'m> {
    /// Of its own magnitude: units in the last place times epsilon.
    pub(crate) relative: f64,
    /// At most, whatever the element is.
    pub(crate) limit: f64,
    /// How far elements move, where that was looked at.
    pub(crate) moved: Option<&'m Moved>,
}

/// What was found about the elements of one value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Judged {
    /// The element that takes the most of its budget; `None` if none differs.
    pub(crate) element: Option<DriftElement>,
    /// The median of the errors, each as a part of its budget, in one direction.
    pub(crate) bias: f64,
    /// Whether a NaN or an infinity has no match, and nothing that was moved explains it.
    pub(crate) is_mismatched: bool,
}

impl Allowed<'_> {
    /// The budget of an element.
    pub(crate) fn of(&self, dtype: DType, position: usize, reference: f64) -> f64 {
        self.with_slack(dtype, position, reference, SLACK)
    }

    fn with_slack(&self, dtype: DType, position: usize, reference: f64, slack: f64) -> f64 {
        let moved = self.moved.map_or(0.0, |moved| moved.at(position));
        if !dtype.is_float() {
            // What a tiny change of the inputs flips may be anything.
            return if moved > 0.0 { f64::INFINITY } else { self.limit.min(0.0) };
        }
        (self.relative * reference.abs() + slack * moved).min(self.limit).max(least(dtype))
    }
}

/// Numbers below this are flushed to zero by some and not by others, or have too few digits left.
fn least(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::MIN_POSITIVE,
        DType::F16 => 8.0 * f64::powi(2.0, -24),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

/// Holds each element to its budget. Both have the same type and shape.
pub(crate) fn judge(
    reference: &TensorView<'_>,
    found: &TensorView<'_>,
    allowed: &Allowed<'_>,
) -> Judged {
    let (dtype, shape) = (reference.dtype(), reference.shape());
    let mut worst: Option<(f64, usize, [f64; 3])> = None;
    let (mut bias, mut is_mismatched) = (Bias::new(shape.elements()), false);
    for (first, ours, theirs) in tiles(reference, found) {
        for (offset, (&ours, &theirs)) in ours.iter().zip(&theirs).enumerate() {
            let position = first + offset;
            if !(ours.is_finite() && theirs.is_finite()) {
                let same = ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
                let jumps = allowed.moved.is_some_and(|moved| moved.at(position).is_infinite());
                is_mismatched |= !same && !jumps;
                continue;
            }
            let error = (theirs - ours).abs();
            let budget = allowed.of(dtype, position, ours);
            let typical = allowed.with_slack(dtype, position, ours, 1.0);
            bias.add(position, (theirs - ours) / typical, ours);
            let strain = if error > 0.0 { error / budget } else { 0.0 };
            if strain > worst.map_or(0.0, |(most, ..)| most) {
                worst = Some((strain, position, [ours, theirs, budget]));
            }
        }
    }
    let element = worst.map(|(_, position, [reference, candidate, budget])| DriftElement {
        index: shape.index_from_flat(position),
        reference,
        candidate,
        budget,
    });
    let bias = if dtype.is_float() { bias.most() } else { 0.0 };
    Judged { element, bias, is_mismatched }
}

impl Judged {
    /// Whether every element is within its budget, and errors go both ways.
    pub(crate) fn is_right(&self) -> bool {
        self.is_within() && self.bias.abs() <= 0.125
    }

    /// Whether every element is within its budget.
    pub(crate) fn is_within(&self) -> bool {
        !self.is_mismatched && self.element.as_ref().is_none_or(|one| one.strain() <= 1.0)
    }
}

/// Medians of errors: as they are (an offset), and away from zero (a factor).
struct Bias {
    step: usize,
    offset: Vec<f64>,
    factor: Vec<f64>,
}

impl Bias {
    fn new(elements: usize) -> Self {
        let step = if elements < MANY { usize::MAX } else { elements.div_ceil(MOST) };
        Self { step, offset: Vec::new(), factor: Vec::new() }
    }

    fn add(&mut self, position: usize, strain: f64, reference: f64) {
        if self.step != usize::MAX && position.is_multiple_of(self.step) && strain.is_finite() {
            self.offset.push(strain);
            self.factor.push(strain * reference.signum());
        }
    }

    /// The larger of the two.
    fn most(&mut self) -> f64 {
        let [offset, factor] = [&mut self.offset, &mut self.factor].map(|all| median(all));
        if offset.abs() > factor.abs() { offset } else { factor }
    }
}

fn median(numbers: &mut [f64]) -> f64 {
    let middle = numbers.len() / 2;
    if numbers.len() < MANY {
        return 0.0;
    }
    let (below, &mut above, _) = numbers.select_nth_unstable_by(middle, f64::total_cmp);
    // Between the two in the middle, so that as many errors up as down are none.
    let below = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    f64::midpoint(below, above)
}

#[cfg(test)]
mod tests {
    use veracity_tensor::Tensor;

    use super::*;

    const RELATIVE: f64 = 64.0 * 1.192_092_9e-7;

    fn judged(reference: &[f32], found: &[f32], moved: Option<&Moved>) -> Judged {
        let [reference, found] =
            [reference, found].map(|all| Tensor::from_slice([all.len()], all).unwrap());
        let largest =
            reference.as_slice::<f32>().unwrap().iter().fold(0.0_f32, |m, v| m.max(v.abs()));
        let limit = RELATIVE * f64::from(largest);
        judge(&reference.view(), &found.view(), &Allowed { relative: RELATIVE, limit, moved })
    }

    #[test]
    fn a_large_neighbour_gives_an_element_nothing() {
        for (reference, found, is_right) in [
            ([1.0, -1e9], [1.0, -1e9], true),
            ([1.0, -1e9], [1.000_001, -1e9], true),
            ([1.0, -1e9], [1.001, -1e9], false),
            ([1.0, -1e9], [-1.0, -1e9], false),
            ([1.0, -1e9], [1.0, -1.000_000_1e9], true),
            ([1e-7, 1.0], [-1e-7, 1.0], false),
            ([1.0, f32::INFINITY], [1.0, f32::INFINITY], true),
            ([1.0, 2.0], [1.0, f32::NAN], false),
        ] {
            let found_about = judged(&reference, &found, None);
            assert_eq!(found_about.is_right(), is_right, "{reference:?} {found:?}");
        }
    }

    #[test]
    fn what_moves_with_its_inputs_has_room_and_never_more_than_the_largest_value_gives() {
        let mut moved = Moved::new(2);
        moved.raise(0, 1e-3);
        assert!(judged(&[1e-6, 1000.0], &[5e-4, 1000.0], Some(&moved)).is_right());
        assert!(!judged(&[1e-6, 1.0], &[5e-4, 1.0], Some(&moved)).is_right());
    }

    #[test]
    fn errors_that_all_point_one_way_are_no_roundings() {
        let reference: Vec<f32> = (0_u8..64).map(|n| (f32::from(n) - 31.5) / 8.0).collect();
        let scaled: Vec<f32> = reference.iter().map(|v| v * (1.0 - 3e-6)).collect();
        let rounded: Vec<f32> = reference
            .iter()
            .enumerate()
            .map(|(n, v)| v * (1.0 + if n % 2 == 0 { 3e-6 } else { -3e-6 }))
            .collect();
        let (one_way, both_ways) =
            (judged(&reference, &scaled, None), judged(&reference, &rounded, None));
        assert!(one_way.is_within() && !one_way.is_right(), "{one_way:?}");
        assert!(both_ways.is_right(), "{both_ways:?}");
    }

    #[test]
    fn the_element_is_the_one_that_takes_the_most_of_its_own_budget() {
        let found = judged(&[1.0, 100.0], &[1.001, 100.01], None);
        assert_eq!(found.element.unwrap().index, [0]);
    }
}
