//! Bounds that are set one after the other are set at once.
//!
//! `Relu`, `Clip`, and `Min` and `Max` with a constant keep a number between two bounds. Two in a row
//! are one `Clip`, whose bounds are those of the first, bounded by the second; when that changes
//! nothing, the second goes. Exact for every bit: NaN stays NaN, and a number that equals a bound is
//! kept, so that `Relu(-0.0)` is -0.0 before and after. `Min` and `Max` with a zero choose the sign of
//! zero in other ways and are left alone. A bound that `Clip` is not given is the largest finite
//! number and not infinity, which is why the merged node always has both.

use veracity_onnx::{Node, NodeId, Patch, Weight};
use veracity_tensor::DType;

use super::support::{Match, float_constant, instead, is_float, read_once};
use crate::{Class, Found, Pass, View};

/// Merges `Relu`, `Clip`, and `Min` and `Max` with constants.
#[derive(Clone, Copy, Debug, Default)]
pub struct MergeClips;

impl Pass for MergeClips {
    fn name(&self) -> &'static str {
        "merge-clips"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "merges Relu, Clip, and Min and Max with constants, into one Clip"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            found.settle(id, with_the_one_before(view, id, node));
        }
    }
}

/// What keeps a number between two bounds.
#[derive(Clone, Copy)]
struct Bounded<'g> {
    source: &'g str,
    low: f64,
    high: f64,
}

fn with_the_one_before(view: &View<'_>, id: NodeId, node: &Node) -> Match {
    let Some((middle, value)) = bounded_value(view, node).zip(node.output(0)) else {
        return Ok(None);
    };
    let Some((inner_id, inner)) = view.graph().producer(middle) else { return Ok(None) };
    let Some(source) = bounded_value(view, inner) else { return Ok(None) };
    if node.is("Relu") && inner.is("Relu") {
        return Ok(None);
    }
    let known = [node, inner].iter().find_map(|node| bound_type(view, node));
    let dtype = known.or_else(|| view.dtype(source)).or_else(|| view.dtype(value));
    let Some(dtype) = dtype.filter(|dtype| is_float(*dtype)) else {
        return Err("the type of the elements is not known to be a float type".to_owned());
    };
    let (first, second) = (bounds(view, inner, dtype)?, bounds(view, node, dtype)?);
    let (low, high) = (second.keep(first.low), second.keep(first.high));
    let same = |one: f64, two: f64| one.to_bits() == two.to_bits();
    if same(low, first.low) && same(high, first.high) {
        let patch = Patch::because(format!("{middle:?} is within the bounds of {value:?}"));
        return instead(view, patch.remove(id).context(inner_id), value, middle);
    }
    // Bounds without a number in common turn everything into one of them. That may be a zero, and a
    // zero of the other sign equals it and would be kept.
    if low == 0.0 && high == 0.0 {
        return Err("the sign of zero would be kept".to_owned());
    }
    read_once(view, middle)?;
    let patch = Patch::because(format!("{value:?} is {source:?} between {low} and {high}"));
    let patch = patch.remove(inner_id);
    let is_new = !node.is("Clip") && !inner.is("Clip");
    if is_new && dtype != DType::F32 && view.opset() < 12 {
        return Err(format!("engines have no Clip of {dtype} before opset 12"));
    }
    if (node.is("Relu") || inner.is("Relu")) && low.to_bits() == 0 && high == f64::INFINITY {
        let relu = Node::new("Relu", [source], [value]).named(node.name());
        return Ok(Some(patch.change(id, relu)));
    }
    clip(view, patch, (id, node), Bounded { source, low, high }, dtype)
}

/// The value that a node keeps between bounds: its input that is no constant.
fn bounded_value<'g>(view: &View<'g>, node: &'g Node) -> Option<&'g str> {
    if node.is("Relu") || node.is("Clip") {
        return node.input(0);
    }
    if !node.is("Min") && !node.is("Max") {
        return None;
    }
    let [one, two] = node.inputs() else { return None };
    match (view.constant(one).is_some(), view.constant(two).is_some()) {
        (false, true) => Some(one),
        (true, false) => Some(two),
        _ => None,
    }
}

/// The type of a bound that a node is given.
fn bound_type(view: &View<'_>, node: &Node) -> Option<DType> {
    node.inputs().iter().find_map(|name| view.constant(name)?.dtype())
}

impl Bounded<'_> {
    /// What engines do: a number that equals a bound is kept.
    fn keep(&self, number: f64) -> f64 {
        if number < self.low {
            self.low
        } else if number > self.high {
            self.high
        } else {
            number
        }
    }
}

fn bounds<'g>(view: &View<'g>, node: &'g Node, dtype: DType) -> Result<Bounded<'g>, String> {
    let Some(source) = bounded_value(view, node) else { return Err("it has no bounds".to_owned()) };
    let (low, high) = match node.op_type() {
        "Relu" => (0.0, f64::INFINITY),
        "Clip" => clip_bounds(view, node, dtype)?,
        operator => {
            let bound = other_operand(view, node, source)?;
            if operator == "Max" { (bound, f64::INFINITY) } else { (f64::NEG_INFINITY, bound) }
        }
    };
    if low <= high {
        Ok(Bounded { source, low, high })
    } else {
        Err(format!("{low} and {high} are not two bounds"))
    }
}

fn clip_bounds(view: &View<'_>, node: &Node, dtype: DType) -> Result<(f64, f64), String> {
    if view.opset() < 11 {
        if dtype != DType::F32 || view.opset() < 6 {
            return Err("the bounds of a Clip before opset 11 are float32".to_owned());
        }
        let bound =
            |name: &str, otherwise: f32| f64::from(node.float_of(name).unwrap_or(otherwise));
        return Ok((bound("min", f32::MIN), bound("max", f32::MAX)));
    }
    let largest = match dtype {
        DType::F16 => half::f16::MAX.to_f64(),
        DType::BF16 => half::bf16::MAX.to_f64(),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    let bound = |index: usize, otherwise: f64| match node.input(index) {
        None => Ok(otherwise),
        Some(name) => number(view, name),
    };
    Ok((bound(1, -largest)?, bound(2, largest)?))
}

/// The constant of a `Min` or `Max`, which may not add axes and may not be zero.
fn other_operand(view: &View<'_>, node: &Node, source: &str) -> Result<f64, String> {
    let other = node.inputs().iter().find(|name| name.as_str() != source);
    let name = other.ok_or("it has no bound")?;
    let bound = number(view, name)?;
    let rank = view.constant(name).map_or(0, |weight| weight.dims().len());
    if rank > 0 && view.rank(source).is_none_or(|own| own < rank) {
        return Err(format!("{name:?} may add axes"));
    }
    if bound == 0.0 { Err("the sign of zero depends on the engine".to_owned()) } else { Ok(bound) }
}

fn number(view: &View<'_>, name: &str) -> Result<f64, String> {
    let constant = float_constant(view, name).and_then(|(weight, _)| weight.number());
    constant.ok_or_else(|| format!("the bound {name:?} is not one constant number"))
}

/// One `Clip` with both bounds.
fn clip(
    view: &View<'_>,
    patch: Patch,
    (id, node): (NodeId, &Node),
    bounded: Bounded<'_>,
    dtype: DType,
) -> Match {
    let Bounded { source, low, high } = bounded;
    let value = node.output(0).unwrap_or_default();
    if view.opset() < 11 {
        if low.is_infinite() || high.is_infinite() || view.opset() < 6 {
            return Err("a Clip before opset 11 has finite bounds".to_owned());
        }
        #[expect(clippy::cast_possible_truncation, reason = "the bounds are those of a float32")]
        let clip = Node::new("Clip", [source], [value])
            .named(node.name())
            .float("min", low as f32)
            .float("max", high as f32);
        return Ok(Some(patch.change(id, clip)));
    }
    let names = ["min", "max"].map(|bound| view.fresh(&format!("{value}_{bound}")));
    let scalar = |number: f64| {
        let weight = Weight::from_floats(dtype, &[], &[number]);
        weight.ok_or_else(|| "a bound is not of a float type".to_owned())
    };
    let patch = patch.weight(&names[0], scalar(low)?).weight(&names[1], scalar(high)?);
    let clip = Node::new("Clip", [source, &names[0], &names[1]], [value]).named(node.name());
    Ok(Some(patch.change(id, clip)))
}
