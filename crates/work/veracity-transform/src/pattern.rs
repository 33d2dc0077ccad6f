//! Finds the nodes of a formula, in whatever order its terms and factors stand.
//!
//! A [`Formula`] is followed node by node, back from a value to what it is computed from or on to
//! the one node that reads it, and remembers the nodes on the way. [`Formula::fused`] takes them all
//! out, unless something else reads what one of them gives.

use veracity_onnx::{Node, NodeId, Patch};
use veracity_tensor::DType;

use crate::View;

/// Nodes that compute one formula.
pub(crate) struct Formula<'v, 'g> {
    view: &'v View<'g>,
    nodes: Vec<NodeId>,
}

impl<'v, 'g> Formula<'v, 'g> {
    /// A formula that one node belongs to so far.
    pub(crate) fn at(view: &'v View<'g>, id: NodeId) -> Self {
        Self { view, nodes: vec![id] }
    }

    /// The graph around the formula.
    pub(crate) fn view(&self) -> &'v View<'g> {
        self.view
    }

    /// The node that gives a value, when it is this operator.
    pub(crate) fn back(&mut self, value: &str, op_type: &str) -> Option<&'g Node> {
        let (id, node) = self.view.producer_of(value, op_type)?;
        Some(self.take(id, node))
    }

    /// The one node that reads a value, when it is this operator.
    pub(crate) fn on(&mut self, value: &str, op_type: &str) -> Option<&'g Node> {
        let (id, node) = self.view.only_reader(value).filter(|(_, node)| node.is(op_type))?;
        Some(self.take(id, node))
    }

    fn take(&mut self, id: NodeId, node: &'g Node) -> &'g Node {
        if !self.nodes.contains(&id) {
            self.nodes.push(id);
        }
        node
    }

    /// Tries one of several ways; nodes of a way that leads nowhere are forgotten.
    pub(crate) fn attempt<T>(&mut self, way: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let before = self.nodes.len();
        let found = way(self);
        if found.is_none() {
            self.nodes.truncate(before);
        }
        found
    }

    /// A constant with one element that does not change the shape of the value beside it.
    pub(crate) fn number(&self, constant: &str, beside: &str) -> Option<f64> {
        let weight = self.view.constant(constant)?;
        let axes = weight.dims().len();
        let fits = axes == 0 || self.view.rank(beside).is_some_and(|rank| axes <= rank);
        weight.number().filter(|_| fits)
    }

    /// `(other, factor)` of a value that is `other * factor` or `other / (1 / factor)`.
    pub(crate) fn scaled(&mut self, value: &str) -> Option<(&'g str, f64)> {
        self.attempt(|formula| {
            let node = formula.back(value, "Mul")?;
            either(node, |one, two| Some((one, formula.number(two, one)?)))
        })
        .or_else(|| {
            self.attempt(|formula| {
                let node = formula.back(value, "Div")?;
                let (one, two) = (node.input(0)?, node.input(1)?);
                Some((one, 1.0 / formula.number(two, one)?))
            })
        })
    }

    /// Follows a value on through multiplications, until it has been multiplied by `x` and, when
    /// `factor` is set, by a number, in whatever order. Gives the number and the last value.
    pub(crate) fn times(
        &mut self,
        value: &'g str,
        x: &str,
        factor: bool,
    ) -> Option<(f64, &'g str)> {
        let (mut value, mut seen, mut number) = (value, false, (!factor).then_some(1.0));
        while !seen || number.is_none() {
            let step = self.attempt(|formula| formula.factor_on(value, x));
            let (next, by_x, by_number) = step?;
            if (by_x && seen) || (by_number.is_some() && number.is_some()) {
                return None;
            }
            (value, seen, number) = (next, seen || by_x, number.or(by_number));
        }
        Some((number?, value))
    }

    /// One multiplication of [`Formula::times`]: what it gives, whether by `x`, and by which number.
    fn factor_on(&mut self, value: &str, x: &str) -> Option<(&'g str, bool, Option<f64>)> {
        if let Some(node) = self.attempt(|formula| formula.on(value, "Div")) {
            let divisor = node.input(1).filter(|_| node.input(0) == Some(value))?;
            return Some((node.only_output()?, false, Some(1.0 / self.number(divisor, x)?)));
        }
        let node = self.on(value, "Mul")?;
        let other = either(node, |one, two| (one == value).then_some(two))?;
        let next = node.only_output()?;
        if other == x {
            return Some((next, true, None));
        }
        if let Some(number) = self.number(other, x) {
            return Some((next, false, Some(number)));
        }
        let (of, number) = self.scaled(other)?;
        (of == x).then_some((next, true, Some(number)))
    }

    /// The value whose square this is: `Mul(v, v)` or `Pow(v, 2)`.
    pub(crate) fn square(&mut self, value: &str) -> Option<&'g str> {
        self.attempt(|formula| {
            let node = formula.back(value, "Mul")?;
            node.input(0).filter(|_| node.input(0) == node.input(1))
        })
        .or_else(|| self.attempt(|formula| formula.power(value, 2.0)))
    }

    /// The value that this is a power of.
    pub(crate) fn power(&mut self, value: &str, exponent: f64) -> Option<&'g str> {
        let node = self.back(value, "Pow")?;
        let base = node.input(0)?;
        let found = self.whole_or_real(node.input(1)?, base)?;
        (found.total_cmp(&exponent).is_eq()).then_some(base)
    }

    /// Exponents may be integers beside real bases.
    fn whole_or_real(&self, constant: &str, beside: &str) -> Option<f64> {
        self.number(constant, beside).or_else(|| {
            let weight = self.view.constant(constant).filter(|weight| weight.dims().is_empty())?;
            match weight.ints()?.as_slice() {
                [one] => i32::try_from(*one).ok().map(f64::from),
                _ => None,
            }
        })
    }

    /// Puts a node in place of the formula; refused when something else reads what a node of the
    /// formula gives, except for what the new node gives as well.
    pub(crate) fn fused(&self, node: Node, reason: impl Into<String>) -> Result<Patch, String> {
        let graph = self.view.graph();
        let mut patch = Patch::because(reason);
        let mut name = "";
        for &id in &self.nodes {
            let Some(old) = graph.node(id) else { continue };
            for value in old.outputs().iter().filter(|value| !node.outputs().contains(value)) {
                if graph.is_output(value) {
                    return Err(format!("{value:?} is an output of the model"));
                }
                if graph.readers(value).any(|reader| !self.nodes.contains(&reader)) {
                    return Err(format!("{value:?} is read by others as well"));
                }
            }
            if old.outputs().iter().any(|value| node.outputs().contains(value)) {
                name = old.name();
            }
            patch = patch.remove(id);
        }
        Ok(patch.insert(if name.is_empty() { node } else { node.named(name) }))
    }
}

/// Tries both orders of the two inputs of a node.
pub(crate) fn either<'g, T>(
    node: &'g Node,
    mut way: impl FnMut(&'g str, &'g str) -> Option<T>,
) -> Option<T> {
    let (one, two) = (node.input(0)?, node.input(1)?);
    way(one, two).or_else(|| way(two, one))
}

/// Whether a constant of this type is the number, up to the roundings that storing it takes: one,
/// or one for each constant that it is the product of.
pub(crate) fn is_rounded(found: f64, wanted: f64, dtype: DType, roundings: f64) -> bool {
    let bits = match dtype {
        DType::F64 => 53,
        DType::F16 => 11,
        DType::BF16 => 8,
        _ => 24,
    };
    // A little more than half a unit: the reciprocal of a rounded number is off by that little.
    (found - wanted).abs() <= wanted.abs() * 1.01 * roundings * 0.5_f64.powi(bits)
}

/// Why an operator cannot be used at this version of the default operators, if it cannot.
pub(crate) fn needs_opset(view: &View<'_>, op_type: &str, since: i64) -> Result<(), String> {
    let opset = view.opset();
    if opset < since {
        return Err(format!("{op_type} needs opset {since}; the model has {opset}"));
    }
    Ok(())
}
