//! A Gaussian error unit that is written out becomes `Gelu`.
//!
//! Two forms are known, both in any order of their factors: with the error function,
//! `x / 2 * (1 + erf(x / sqrt 2))`, and with the hyperbolic tangent,
//! `x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))`. The constants must be the right ones up
//! to the rounding of their type.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use veracity_onnx::{Node, NodeId, Patch};
use veracity_tensor::DType;

use crate::pattern::{Formula, either, is_rounded, needs_opset};
use crate::{Class, Found, Pass, View};

/// Products and sums within each other that the argument of the tangent may have.
const DEPTH: usize = 8;

/// Makes `Gelu` of what computes the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct FuseGelu;

impl Pass for FuseGelu {
    fn name(&self) -> &'static str {
        "fuse-gelu"
    }

    fn class(&self) -> Class {
        Class::ExactReal
    }

    fn about(&self) -> &'static str {
        "makes Gelu of what computes the same"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for form in [Form::Erf, Form::Tanh] {
            for (id, node) in view.nodes_of(form.op_type()) {
                found.settle(id, unit(view, id, node, form));
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Form {
    Erf,
    Tanh,
}

impl Form {
    fn op_type(self) -> &'static str {
        match self {
            Self::Erf => "Erf",
            Self::Tanh => "Tanh",
        }
    }

    /// What the attribute `approximate` of `Gelu` says.
    fn approximate(self) -> &'static str {
        match self {
            Self::Erf => "none",
            Self::Tanh => "tanh",
        }
    }

    /// What the function is taken of, as a polynomial of `x`.
    fn argument(self) -> Polynomial {
        match self {
            Self::Erf => [0.0, FRAC_1_SQRT_2, 0.0, 0.0],
            Self::Tanh => {
                let slope = FRAC_2_PI.sqrt();
                [0.0, slope, 0.0, slope * 0.044_715]
            }
        }
    }

    /// Whether a polynomial has the terms that it must have, whatever their size.
    fn is_shaped(self, found: &Polynomial) -> bool {
        let terms = self.argument().map(|term| term.abs() > 0.0);
        found.map(|term| term.abs() > 0.0) == terms
    }
}

/// Coefficients of the powers of `x` from 0 to 3.
type Polynomial = [f64; 4];

fn unit<'g>(
    view: &View<'g>,
    id: NodeId,
    node: &'g Node,
    form: Form,
) -> Result<Option<Patch>, String> {
    let Some((function, argument)) = node.only_output().zip(node.input(0)) else { return Ok(None) };
    let mut formula = Formula::at(view, id);
    let Some((sum, dtype)) = plus_one(&mut formula, function) else { return Ok(None) };
    let mut wrong = None;
    for x in candidates(view, sum) {
        let found = formula.attempt(|formula| {
            let (half, value) = formula.times(sum, x, true)?;
            let polynomial = polynomial(formula, argument, x, DEPTH)?;
            if !form.is_shaped(&polynomial) {
                return None;
            }
            wrong = wrong_constant(form, half, &polynomial, dtype);
            wrong.is_none().then_some(value)
        });
        if let Some(value) = found {
            needs_opset(view, "Gelu", 20)?;
            let node = Node::new("Gelu", [x], [value]).string("approximate", form.approximate());
            return formula.fused(node, format!("{value:?} is a Gaussian error unit")).map(Some);
        }
    }
    wrong.map_or(Ok(None), Err)
}

/// The sum of a value and 1, with the type of the constant.
fn plus_one<'g>(formula: &mut Formula<'_, 'g>, value: &'g str) -> Option<(&'g str, DType)> {
    let sum = formula.on(value, "Add")?;
    let one = either(sum, |one, two| (one == value).then_some(two))?;
    let weight = formula.view().constant(one)?;
    let is_one = weight.number()?.total_cmp(&1.0).is_eq();
    // Shapes are those of `x`, or the constants are without axes.
    let plain = weight.dims().is_empty() || formula.number(one, value).is_some();
    Some((sum.only_output()?, weight.dtype()?)).filter(|_| is_one && plain)
}

/// What `x` may be: the value that the sum is multiplied by, or what that is a multiple of.
fn candidates<'g>(view: &View<'g>, sum: &'g str) -> Vec<&'g str> {
    let mut found = Vec::new();
    let mut value = sum;
    // The one constant factor may stand before the other.
    for _ in 0..2 {
        let Some((id, node)) = view.only_reader(value) else { break };
        if node.is("Mul") {
            let other = either(node, |one, two| (one == value).then_some(two));
            if let Some(other) = other.filter(|other| view.constant(other).is_none()) {
                found.push(other);
                found.extend(Formula::at(view, id).scaled(other).map(|(of, _)| of));
            }
        }
        let Some(next) = node.only_output() else { break };
        value = next;
    }
    found
}

/// A value as a polynomial of `x`.
fn polynomial<'g>(
    formula: &mut Formula<'_, 'g>,
    value: &'g str,
    x: &str,
    depth: usize,
) -> Option<Polynomial> {
    if value == x {
        return Some([0.0, 1.0, 0.0, 0.0]);
    }
    if let Some(number) = formula.number(value, x) {
        return Some([number, 0.0, 0.0, 0.0]);
    }
    let depth = depth.checked_sub(1)?;
    let (_, node) = formula.view().graph().producer(value)?;
    let node = formula.back(value, node.op_type())?;
    let one = polynomial(formula, node.input(0)?, x, depth)?;
    match node.op_type() {
        "Add" => {
            let two = polynomial(formula, node.input(1)?, x, depth)?;
            Some(std::array::from_fn(|power| one[power] + two[power]))
        }
        "Mul" => product(&one, &polynomial(formula, node.input(1)?, x, depth)?),
        "Div" => {
            let divisor = formula.number(node.input(1)?, x)?;
            Some(one.map(|term| term / divisor))
        }
        "Pow" if formula.power(value, 2.0).is_some() => product(&one, &one),
        "Pow" if formula.power(value, 3.0).is_some() => product(&one, &product(&one, &one)?),
        _ => None,
    }
}

/// The product of two polynomials; `None` when it has a power above the third.
fn product(one: &Polynomial, two: &Polynomial) -> Option<Polynomial> {
    let mut made = Polynomial::default();
    for (left, a) in one.iter().enumerate().filter(|(_, a)| a.abs() > 0.0) {
        for (right, b) in two.iter().enumerate().filter(|(_, b)| b.abs() > 0.0) {
            *made.get_mut(left + right)? += a * b;
        }
    }
    Some(made)
}

/// Which constant is not what it must be, if one is not.
fn wrong_constant(form: Form, half: f64, found: &Polynomial, dtype: DType) -> Option<String> {
    if !is_rounded(half, 0.5, dtype, 1.0) {
        return Some(format!("the factor {half} is not one half"));
    }
    // Each power is the product of one constant more: the slope, and what stands before the cube.
    let wanted = form.argument();
    let wrong = (0..4).find(|&power| {
        let roundings = if power == 3 { 2.0 } else { 1.0 };
        !is_rounded(found[power], wanted[power], dtype, roundings)
    })?;
    Some(format!(
        "the factor {} of x^{wrong} under {} is not {}",
        found[wrong],
        form.op_type(),
        wanted[wrong]
    ))
}
