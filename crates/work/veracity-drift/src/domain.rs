//! What a graph says about the inputs that are worth giving it.
//!
//! An integer that is an index has a range: as many rows as the table has that it is read from. What
//! clips, rounds or chooses behaves otherwise beyond its corners, which inputs of one size may
//! never reach.

use std::borrow::Cow;
use std::collections::BTreeMap;

use veracity_onnx::{Dim, Model, NodeFacts};
use veracity_tensor::{DType, Shape, Tensor};

use crate::causes::says_how;
use crate::convert::{floats, integers};
use crate::random::Random;

/// Operators that hand indices on as they are, perhaps in another shape or type.
const PASSING: [&str; 10] = [
    "Identity",
    "Cast",
    "Reshape",
    "Unsqueeze",
    "Squeeze",
    "Flatten",
    "Transpose",
    "Slice",
    "Expand",
    "Concat",
];

/// Operators that behave otherwise beyond a corner.
const CORNERS: [&str; 28] = [
    "Clip",
    "HardSigmoid",
    "HardSwish",
    "ThresholdedRelu",
    "Shrink",
    "LeakyRelu",
    "PRelu",
    "Round",
    "Floor",
    "Ceil",
    "Sign",
    "Mod",
    "Abs",
    "Max",
    "Min",
    "Where",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Not",
    "ArgMax",
    "ArgMin",
    "TopK",
    "NonZero",
    "IsInf",
    "QuantizeLinear",
];

/// Corners beyond this are masks or ends of a type.
pub(crate) const FARTHEST: f64 = 1e6;
/// The largest integer of an input that nothing is known about.
const SMALL: i64 = 15;

/// The smallest and largest value of each integer input: what the graph shows, else small numbers.
pub fn ranges(model: &Model) -> BTreeMap<String, (i64, i64)> {
    let shown = shown_ranges(model);
    shown.into_iter().map(|(name, range)| (name, range.unwrap_or((0, SMALL)))).collect()
}

/// The smallest and largest value of each integer input as far as the graph shows it: rows of the
/// table that it is an index of, depth of a one-hot code. Sizes are 0 or 1.
pub(crate) fn shown_ranges(model: &Model) -> BTreeMap<String, Option<(i64, i64)>> {
    let inputs = model.inputs().into_iter();
    let whole =
        inputs.filter(|info| info.dtype.is_some_and(|it| !it.is_float() && it != DType::Bool));
    let mut ranges: BTreeMap<String, Option<(i64, i64)>> =
        whole.map(|info| (info.name, None)).collect();
    // Where a value comes from, and what was added to it on the way.
    let mut ways: BTreeMap<String, (String, i64)> =
        ranges.keys().map(|name| (name.clone(), (name.clone(), 0))).collect();
    for node in model.nodes() {
        for (position, name) in node.inputs.iter().enumerate() {
            let Some((input, added)) = ways.get(name).cloned() else { continue };
            let found = match index_count(model, &node, position) {
                Some(count) => Some((-added, count - 1 - added)),
                None if says_how(&node.op_type, position) => Some((0, 1)),
                None => None,
            };
            if let (Some((low, high)), Some(held)) = (found, ranges.get_mut(&input)) {
                let (least, most) = held.unwrap_or((low, high));
                *held = Some((least.max(low), most.min(high)));
            }
            let further = added_by(model, &node, position).map(|more| (input, added + more));
            if let (Some(way), Some(output)) = (further, node.outputs.first()) {
                ways.entry(output.clone()).or_insert(way);
            }
        }
    }
    let usable = |range: Option<(i64, i64)>| range.filter(|(low, high)| low <= high);
    ranges.into_iter().map(|(name, range)| (name, usable(range))).collect()
}

/// Whether something clips, rounds or chooses.
pub fn has_corners(model: &Model) -> bool {
    model.nodes().iter().any(|node| {
        let to_integers = || {
            let to = node.outputs.first().and_then(|name| model.cast_type(name));
            node.op_type == "Cast" && to.is_some_and(|to| !to.is_float())
        };
        CORNERS.contains(&node.op_type.as_str()) || to_integers()
    })
}

/// Whether an operator clips, rounds or chooses by numbers that it is given.
pub(crate) fn chooses(op_type: &str) -> bool {
    CORNERS.contains(&op_type) && op_type != "Where"
}

/// The largest number that something is clipped at or compared with; 0 where there is none. Masks and
/// the ends of a type are no corners that an input should reach.
pub fn reach(model: &Model) -> f64 {
    let numbers = model
        .nodes()
        .into_iter()
        .filter(|node| chooses(&node.op_type))
        .flat_map(|node| node.inputs)
        .filter_map(|name| model.constant(&name).filter(|held| held.shape().elements() == 1))
        .filter_map(|held| floats(&held));
    numbers.flatten().map(f64::abs).filter(|&number| number < FARTHEST).fold(0.0, f64::max)
}

/// Whether values are held in half precision or as quantised integers, whose range is small.
pub fn is_narrow(model: &Model) -> bool {
    let half = |name: &String| {
        model.constant(name).is_some_and(|it| matches!(it.dtype(), DType::F16 | DType::BF16))
    };
    model.nodes().iter().any(|node| {
        crate::quantised::is_quantised(node)
            || node.inputs.iter().any(half)
            || node
                .outputs
                .iter()
                .any(|name| matches!(model.cast_type(name), Some(DType::F16 | DType::BF16)))
    }) || model.inputs().iter().any(|it| matches!(it.dtype, Some(DType::F16 | DType::BF16)))
}

/// How many values an index at an input of an operator may have.
fn index_count(model: &Model, node: &NodeFacts, position: usize) -> Option<i64> {
    match (node.op_type.as_str(), position) {
        ("Gather" | "GatherElements", 1) => {
            let dims = dims_of(model, node.inputs.first()?)?;
            let axis = model.int_attribute(node.outputs.first()?, "axis").unwrap_or(0);
            let rank = i64::try_from(dims.len()).ok()?;
            let axis = usize::try_from(if axis < 0 { axis + rank } else { axis }).ok()?;
            dims.get(axis).and_then(|&dim| i64::try_from(dim).ok())
        }
        ("OneHot", 0) => integers(&model.constant(node.inputs.get(1)?)?)?.first().copied(),
        _ => None,
    }
}

fn dims_of(model: &Model, name: &str) -> Option<Vec<usize>> {
    if let Some(constant) = model.constant(name) {
        return Some(constant.shape().dims().to_vec());
    }
    let described = model.inputs().into_iter().chain(model.described_values());
    let info = described.into_iter().find(|info| info.name == name)?;
    let fixed = |dim: Dim| match dim {
        Dim::Fixed(size) => Some(size),
        _ => None,
    };
    info.dims?.into_iter().map(fixed).collect()
}

/// What an operator adds to an index that it hands on.
fn added_by(model: &Model, node: &NodeFacts, position: usize) -> Option<i64> {
    let constant = |place: usize| {
        let held = integers(&model.constant(node.inputs.get(place)?)?)?;
        (held.len() == 1).then(|| held[0])
    };
    match (node.op_type.as_str(), position) {
        ("Concat", _) => Some(0),
        ("Add", _) => constant(1 - position.min(1)),
        ("Sub", 0) => constant(1).map(|value| -value),
        (op_type, 0) if PASSING.contains(&op_type) => Some(0),
        _ => None,
    }
}

/// Made-up values: floats from a normal distribution of this width, integers over their range with
/// both ends among them, bools of either kind.
pub fn draw(
    dtype: DType,
    shape: &Shape,
    range: Option<(i64, i64)>,
    width: f64,
    seed: u64,
) -> Tensor {
    let mut random = Random::new(seed, "made up");
    let count = shape.elements();
    if dtype.is_float() {
        let values: Vec<f64> = (0..count).map(|_| random.normal() * width).collect();
        return in_type(shape, &values, dtype);
    }
    let (low, high) = if dtype == DType::Bool { (0, 1) } else { range.unwrap_or((0, 1)) };
    let size = u64::try_from(high.saturating_sub(low)).unwrap_or(0).saturating_add(1);
    let mut values: Vec<i64> =
        (0..count).map(|_| low.saturating_add(random.below(size).cast_signed())).collect();
    if count >= 2 {
        let first = usize::try_from(random.below(count as u64)).unwrap_or(0);
        (values[first], values[(first + 1) % count]) = (low, high);
    }
    whole_in_type(shape, &values, dtype)
}

pub(crate) fn in_type(shape: &Shape, values: &[f64], dtype: DType) -> Tensor {
    let wide = Tensor::from_slice(shape.clone(), values).ok();
    let made = wide.and_then(|wide| crate::convert::cast(&wide, dtype).map(Cow::into_owned));
    made.unwrap_or_else(|| Tensor::zeros(dtype, shape.clone()))
}

pub(crate) fn whole_in_type(shape: &Shape, values: &[i64], dtype: DType) -> Tensor {
    if dtype == DType::Bool {
        let bytes: Vec<u8> = values.iter().map(|&value| u8::from(value != 0)).collect();
        let made = Tensor::from_bytes(dtype, shape.clone(), &bytes);
        return made.unwrap_or_else(|_| Tensor::zeros(dtype, shape.clone()));
    }
    let wide = Tensor::from_slice(shape.clone(), values).ok();
    let made = wide.and_then(|wide| crate::convert::cast(&wide, dtype).map(Cow::into_owned));
    made.unwrap_or_else(|| Tensor::zeros(dtype, shape.clone()))
}

#[cfg(test)]
mod tests {
    use veracity_onnx::{GraphBuilder, Node};

    use super::*;

    #[test]
    fn an_index_goes_over_all_rows_of_its_table() {
        let table = |rows: usize| Tensor::zeros(DType::F32, [rows, 2].into());
        let number = |value: i64| Tensor::from_slice([1], &[value]).unwrap();
        let model = GraphBuilder::new("g", 20)
            .input("ids", DType::I64, [4_usize])
            .input("late", DType::I64, [4_usize])
            .input("code", DType::I64, [4_usize])
            .input("plain", DType::I64, [4_usize])
            .initializer("table", &table(1000))
            .initializer("places", &table(12))
            .initializer("two", &number(2))
            .initializer("depth", &number(7))
            .initializer("values", &Tensor::from_slice([2], &[0.0_f32, 1.0]).unwrap())
            .node(Node::new("Gather", ["table", "ids"], ["a"]))
            .node(Node::new("Add", ["late", "two"], ["shifted"]))
            .node(Node::new("Gather", ["places", "shifted"], ["b"]))
            .node(Node::new("OneHot", ["code", "depth", "values"], ["c"]))
            .node(Node::new("Abs", ["plain"], ["d"]))
            .output("a", DType::F32, [4_usize, 2])
            .finish()
            .unwrap();
        let found = ranges(&model);
        for (name, expected) in
            [("ids", (0, 999)), ("late", (-2, 9)), ("code", (0, 6)), ("plain", (0, SMALL))]
        {
            assert_eq!(found[name], expected, "{name}");
        }
        assert!(has_corners(&model));
    }

    #[test]
    fn both_ends_are_drawn() {
        let drawn = draw(DType::I64, &[8].into(), Some((-2, 900)), 1.0, 3);
        let drawn = drawn.as_slice::<i64>().unwrap();
        assert!(drawn.contains(&-2) && drawn.contains(&900));
        let masks = draw(DType::Bool, &[8].into(), None, 1.0, 3);
        assert!(masks.bytes().contains(&0) && masks.bytes().contains(&1));
    }
}
