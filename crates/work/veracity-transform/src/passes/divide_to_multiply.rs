//! Dividing by a constant is nearly multiplying by its reciprocal, which is quicker.
//!
//! Not the same numbers: the reciprocal is rounded, and then the product. A third of all results
//! change their last bit when the divisor is 3, so that this must be asked for by name. Needs: all
//! divisors are constants other than 0, and they and their reciprocals are normal numbers.

use super::reciprocal::multiplied;
use crate::{Class, Found, Pass, View};

/// Turns divisions by constants into multiplications that are a rounding apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct DivideToMultiply;

impl Pass for DivideToMultiply {
    fn name(&self) -> &'static str {
        "divide-to-multiply"
    }

    fn class(&self) -> Class {
        Class::Approximate
    }

    fn about(&self) -> &'static str {
        "turns Div by a constant into Mul by its rounded reciprocal"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Div") {
            found.settle(id, multiplied(view, id, node, false));
        }
    }
}
