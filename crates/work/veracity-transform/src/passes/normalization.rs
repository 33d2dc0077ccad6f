//! What the normalizations share: a value over its root mean square, the axes that the mean is
//! over, and the scale and bias that follow.

use veracity_onnx::{Dim, Node, Patch, Weight};
use veracity_tensor::{DType, Tensor};

use crate::View;
use crate::pattern::{Formula, either};

/// `1 / sqrt(mean + epsilon)`, or the root itself.
pub(super) struct Root<'g> {
    /// The node that takes the mean.
    pub(super) mean: &'g Node,
    /// The value whose square the mean is taken of.
    pub(super) squared: &'g str,
    pub(super) epsilon: f64,
    pub(super) dtype: DType,
}

/// `base / sqrt(mean(base * base) + epsilon)`, as an exporter writes it, at its last node.
pub(super) fn over_root<'g>(
    formula: &mut Formula<'_, 'g>,
    node: &'g Node,
) -> Option<(&'g str, Root<'g>)> {
    let (base, root) = match node.op_type() {
        "Div" => (node.input(0)?, root(formula, node.input(1)?)?),
        "Mul" => either(node, |one, two| Some((one, inverse_root(formula, two)?)))?,
        _ => return None,
    };
    (root.squared == base).then_some((base, root))
}

/// `sqrt(mean + epsilon)`
fn root<'g>(formula: &mut Formula<'_, 'g>, value: &str) -> Option<Root<'g>> {
    let under = |formula: &mut Formula<'_, 'g>| formula.back(value, "Sqrt")?.input(0);
    let under = formula.attempt(under).or_else(|| formula.attempt(|one| one.power(value, 0.5)))?;
    mean_square(formula, under)
}

/// `1 / sqrt(mean + epsilon)`
pub(super) fn inverse_root<'g>(formula: &mut Formula<'_, 'g>, value: &str) -> Option<Root<'g>> {
    let reciprocal = |formula: &mut Formula<'_, 'g>| {
        let of = formula.back(value, "Reciprocal")?.input(0)?;
        root(formula, of)
    };
    let divided = |formula: &mut Formula<'_, 'g>| {
        let node = formula.back(value, "Div")?;
        let (one, of) = (node.input(0)?, node.input(1)?);
        let number = formula.number(one, of).filter(|number| number.total_cmp(&1.0).is_eq());
        number.and_then(|_| root(formula, of))
    };
    let power = |formula: &mut Formula<'_, 'g>| {
        let under = formula.power(value, -0.5)?;
        mean_square(formula, under)
    };
    formula
        .attempt(reciprocal)
        .or_else(|| formula.attempt(divided))
        .or_else(|| formula.attempt(power))
}

/// `mean(squared * squared) + epsilon`
fn mean_square<'g>(formula: &mut Formula<'_, 'g>, value: &str) -> Option<Root<'g>> {
    formula.attempt(|formula| {
        let sum = formula.back(value, "Add")?;
        let (mean, constant) = either(sum, |mean, constant| {
            formula.view().constant(constant)?;
            Some((formula.back(mean, "ReduceMean")?, constant))
        })?;
        let squared = formula.square(mean.input(0)?)?;
        let dtype = formula.view().constant(constant)?.dtype()?;
        let epsilon = formula.number(constant, squared)?;
        Some(Root { mean, squared, epsilon, dtype })
    })
}

/// What a normalization is over: the axes behind all others, with their sizes.
pub(super) struct Block {
    /// The first of the axes, counted from the end: -1 for the last axis alone.
    pub(super) axis: i64,
    sizes: Vec<usize>,
    /// Number of axes of the whole value.
    rank: usize,
}

impl Block {
    /// What means over these nodes are over; refused when it is not the last axes of `value`, all
    /// of known size, kept with size 1.
    pub(super) fn of(view: &View<'_>, value: &str, means: &[&Node]) -> Result<Self, String> {
        let dims = view.dims(value).ok_or_else(|| format!("the axes of {value:?} are unknown"))?;
        let mut counts = means.iter().map(|mean| trailing(view, mean, dims.len()));
        let first = counts.next().unwrap_or_else(|| Err("there is no mean".to_owned()))?;
        for count in counts {
            if count? != first {
                return Err("the two means are over different axes".to_owned());
            }
        }
        let sizes = dims[dims.len() - first..].iter().map(|dim| match dim {
            Dim::Fixed(size) if *size > 0 => Ok(*size),
            other => Err(format!("an axis that is normalized over has the size {other}")),
        });
        let axis = -(first.cast_signed() as i64);
        Ok(Self { axis, sizes: sizes.collect::<Result<_, _>>()?, rank: dims.len() })
    }

    /// A value as scale or bias of the block: itself, or a new weight that repeats a constant.
    /// `None` when it is something else, as one that changes from row to row.
    pub(super) fn operand(&self, view: &View<'_>, value: &str) -> Option<Operand> {
        if view.shape(value).is_some_and(|shape| shape == self.sizes) {
            return Some(Operand::Value(value.to_owned()));
        }
        let weight = view.constant(value)?;
        if weight.dims().len() > self.rank {
            return None;
        }
        let tensor = repeated(&weight.tensor()?, &self.sizes)?;
        Some(Operand::Weight(value.to_owned(), Box::new(Weight::new(tensor))))
    }

    /// A scale that changes nothing.
    pub(super) fn ones(&self, base: &str, dtype: DType) -> Option<Operand> {
        let ones = vec![1.0; self.sizes.iter().product()];
        let weight = Weight::from_floats(dtype, &self.sizes, &ones)?;
        Some(Operand::Weight(base.to_owned(), Box::new(weight)))
    }
}

/// What scales a block, or is added to it.
pub(super) enum Operand {
    /// A value that is there.
    Value(String),
    /// A new weight, and the name that it is like.
    Weight(String, Box<Weight>),
}

impl Operand {
    /// Adds the operand to a node and what it needs to a list of weights.
    pub(super) fn attach(
        self,
        view: &View<'_>,
        node: Node,
        weights: &mut Vec<(String, Weight)>,
    ) -> Node {
        let index = node.inputs().len();
        match self {
            Self::Value(name) => node.with_input(index, name),
            Self::Weight(base, weight) => {
                let name = view.fresh(&base);
                weights.push((name.clone(), *weight));
                node.with_input(index, name)
            }
        }
    }
}

/// Puts new weights into a patch.
pub(super) fn with_weights(patch: Patch, weights: Vec<(String, Weight)>) -> Patch {
    weights.into_iter().fold(patch, |patch, (name, weight)| patch.weight(name, weight))
}

/// Over how many of the last axes a node takes the mean; refused when it is over others.
fn trailing(view: &View<'_>, mean: &Node, rank: usize) -> Result<usize, String> {
    if mean.int_of("keepdims").unwrap_or(1) != 1 {
        return Err("a mean does not keep its axes".to_owned());
    }
    let axes = match (view.opset() >= 18, mean.input(1)) {
        (false, _) => mean.ints_of("axes").map(<[i64]>::to_vec),
        (true, None) if mean.int_of("noop_with_empty_axes") == Some(1) => {
            return Err("a mean is over no axis".to_owned());
        }
        (true, None) => None,
        (true, Some(name)) => {
            let constant = view.constant(name).and_then(Weight::ints);
            Some(constant.ok_or_else(|| format!("the axes {name:?} of a mean are not constant"))?)
        }
    };
    let all = || (0..rank).map(|axis| axis.cast_signed() as i64).collect();
    let rank = rank.cast_signed() as i64;
    let mut axes: Vec<i64> = axes.unwrap_or_else(all);
    for axis in &mut axes {
        *axis += if *axis < 0 { rank } else { 0 };
    }
    axes.sort_unstable();
    let last = rank - axes.len().cast_signed() as i64;
    if axes.is_empty() || axes.iter().zip(last..).any(|(axis, wanted)| *axis != wanted) {
        return Err("a mean is not over the last axes".to_owned());
    }
    Ok(axes.len())
}

/// The tensor repeated to these sizes, after axes of size 1 in front are left out; `None` when it
/// does not fit.
fn repeated(tensor: &Tensor, sizes: &[usize]) -> Option<Tensor> {
    let dims = tensor.shape().dims();
    let (front, back) = dims.split_at(dims.len().saturating_sub(sizes.len()));
    let aligned = [vec![1; sizes.len() - back.len()], back.to_vec()].concat();
    let fits = aligned.iter().zip(sizes).all(|(dim, size)| *dim == 1 || dim == size);
    if !fits || front.iter().any(|dim| *dim != 1) {
        return None;
    }
    let (bytes, width) = (tensor.bytes(), tensor.dtype().size());
    let total: usize = sizes.iter().product();
    let mut made = Vec::with_capacity(total * width);
    for element in 0..total {
        let (mut rest, mut at, mut stride) = (element, 0, 1);
        for (dim, size) in aligned.iter().zip(sizes).rev() {
            at += if *dim == 1 { 0 } else { rest % size * stride };
            rest /= size;
            stride *= dim;
        }
        made.extend_from_slice(bytes.get(at * width..(at + 1) * width)?);
    }
    Tensor::from_bytes(tensor.dtype(), veracity_tensor::Shape::new(sizes)?, &made).ok()
}
