//! Dividing by a power of two is multiplying by its reciprocal.
//!
//! Exact for every bit: the reciprocal of a power of two is one as well, so that both results are the
//! number nearest to the same real number, subnormal and overflowing ones included. Needs: all
//! divisors are constant powers of two, and they and their reciprocals are normal numbers.

use super::reciprocal::multiplied;
use crate::{Class, Found, Pass, View};

/// Turns divisions by powers of two into multiplications.
#[derive(Clone, Copy, Debug, Default)]
pub struct DivideByPowerOfTwo;

impl Pass for DivideByPowerOfTwo {
    fn name(&self) -> &'static str {
        "divide-by-power-of-two"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "turns Div by a constant power of two into Mul"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.nodes_of("Div") {
            found.settle(id, multiplied(view, id, node, true));
        }
    }
}
