//! What several passes ask of a graph: parameters that are attributes in one version of an operator
//! and inputs in another, axes that count from the end, and values that are read by nobody else.

use veracity_onnx::{Dim, Node, NodeId, Patch, Weight};
use veracity_tensor::{DType, Tensor};

use crate::View;

/// A change, no match at all, or the precondition that does not hold.
pub(super) type Match = Result<Option<Patch>, String>;

/// Integers that a node is given as an attribute or, in later versions of its operator, as an
/// input; `None` when they are left out.
pub(super) fn integers(
    view: &View<'_>,
    node: &Node,
    attribute: &str,
    input: usize,
) -> Result<Option<Vec<i64>>, String> {
    if let Some(listed) = node.ints_of(attribute) {
        return Ok(Some(listed.to_vec()));
    }
    let Some(name) = node.input(input) else { return Ok(None) };
    match view.constant(name).and_then(Weight::ints) {
        Some(listed) => Ok(Some(listed)),
        None => Err(format!("its {attribute} {name:?} are not constant")),
    }
}

/// A constant of integers, as operators take axes and shapes.
pub(super) fn integer_weight(listed: &[i64]) -> Result<Weight, String> {
    let tensor = Tensor::from_slice([listed.len()], listed).map_err(|refused| refused.to_string());
    tensor.map(Weight::new)
}

/// An axis counted from the front. Without the number of axes only those that are counted from the
/// front already are known.
pub(super) fn axis(given: i64, rank: Option<usize>) -> Result<usize, String> {
    let counted = match (given < 0, rank) {
        (false, _) => given,
        (true, Some(rank)) => given.saturating_add_unsigned(rank as u64),
        (true, None) => {
            return Err(format!("axis {given} counts from the end of an unknown number of axes"));
        }
    };
    let found = usize::try_from(counted).ok().filter(|found| rank.is_none_or(|rank| *found < rank));
    found.ok_or_else(|| format!("axis {given} is none of its axes"))
}

/// Several axes, sorted, each once.
pub(super) fn axes(given: &[i64], rank: Option<usize>) -> Result<Vec<usize>, String> {
    let mut found: Vec<usize> =
        given.iter().map(|&one| axis(one, rank)).collect::<Result<_, _>>()?;
    found.sort_unstable();
    let count = found.len();
    found.dedup();
    if found.len() == count { Ok(found) } else { Err("an axis is named twice".to_owned()) }
}

/// Refuses a value that somebody else needs as well.
pub(super) fn read_once(view: &View<'_>, value: &str) -> Result<(), String> {
    if view.graph().is_output(value) {
        return Err(format!("{value:?} is an output of the model"));
    }
    match view.graph().readers(value).count() {
        1 => Ok(()),
        count => Err(format!("{value:?} has {count} readers")),
    }
}

/// Leaves out a node whose result the changed node no longer reads: it goes when nobody else needs
/// it, and shows why the change is right otherwise.
pub(super) fn passed_over(view: &View<'_>, patch: Patch, id: NodeId, value: &str) -> Patch {
    if view.graph().has_one_reader(value) { patch.remove(id) } else { patch.context(id) }
}

/// Lets `new` be read instead of `old`, unless an output of the model would lose its node.
pub(super) fn instead(view: &View<'_>, patch: Patch, old: &str, new: &str) -> Match {
    let graph = view.graph();
    if graph.is_output(old) && (graph.producer(new).is_none() || graph.is_output(new)) {
        return Err(format!("the output {old:?} of the model needs a node of its own"));
    }
    Ok(Some(patch.replace(old, new)))
}

/// A constant of a float type, which nobody can replace from outside.
pub(super) fn float_constant<'g>(view: &View<'g>, value: &str) -> Option<(&'g Weight, DType)> {
    let weight = view.constant(value)?;
    let dtype = weight.dtype().filter(|dtype| is_float(*dtype))?;
    Some((weight, dtype))
}

/// Whether elements of this type are rounded.
pub(super) fn is_float(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
}

/// The size of an axis, when it is known.
pub(super) fn size(dim: &Dim) -> Option<usize> {
    match dim {
        Dim::Fixed(size) => Some(*size),
        Dim::Named(_) | Dim::Unknown => None,
    }
}
