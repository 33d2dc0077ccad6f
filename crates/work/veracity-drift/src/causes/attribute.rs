//! The original's attributes in the place of the export's, and constants that stand for attributes.

use veracity_onnx::{Attribute, tensor_text};
use veracity_results::CauseKind;
use veracity_tensor::Tensor;

use crate::causes::pairing::Pairs;
use crate::causes::slice::Slice;
use crate::causes::trial::{Outcome, Trial};

/// Inputs that say how to compute and not what with, by operator; everything from that position on.
const FROM_POSITION: [(&str, usize); 21] = [
    ("Clip", 1),
    ("CumSum", 1),
    ("DequantizeLinear", 1),
    ("Dropout", 1),
    ("Expand", 1),
    ("OneHot", 1),
    ("Pad", 1),
    ("Pow", 1),
    ("QuantizeLinear", 1),
    ("Range", 0),
    ("Reshape", 1),
    ("Resize", 1),
    ("Slice", 1),
    ("Split", 1),
    ("Squeeze", 1),
    ("Tile", 1),
    ("TopK", 1),
    ("Trilu", 1),
    ("Unsqueeze", 1),
    ("Upsample", 1),
    ("ConstantOfShape", 0),
];

/// Operators between a value and a number of the code, as in `x * 0.5`.
const ARITHMETIC: [&str; 7] = ["Add", "Sub", "Mul", "Div", "Max", "Min", "Where"];

/// Whether an input says how to compute and not what with.
pub(crate) fn says_how(op_type: &str, position: usize) -> bool {
    let listed = FROM_POSITION.iter().any(|(name, from)| *name == op_type && position >= *from);
    listed || (op_type.starts_with("Reduce") && position == 1)
}

/// Whether a constant is a parameter of an operator rather than a weight. `known` are constants
/// that have the name of a weight of the original.
pub(crate) fn stands_for_attribute(
    op_type: &str,
    position: usize,
    constant: &Tensor,
    known: bool,
) -> bool {
    let number = constant.shape().elements() == 1 && ARITHMETIC.contains(&op_type);
    !known && (says_how(op_type, position) || number || !constant.dtype().is_float())
}

/// One thing that the original has otherwise.
pub(crate) enum Change {
    /// An attribute of a node.
    Attribute { node: usize, name: String, value: Option<Attribute>, text: String },
    /// A constant.
    Constant { name: String, tensor: Tensor, text: String },
}

impl Change {
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Attribute { text, .. } | Self::Constant { text, .. } => text,
        }
    }

    pub(crate) fn apply(&self, slice: &Slice) -> Slice {
        match self {
            Self::Attribute { node, name, value, .. } => {
                slice.with_model(slice.model.with_attribute(*node, name, value.as_ref()))
            }
            Self::Constant { name, tensor, .. } => slice.with_constant(name, tensor),
        }
    }
}

pub(crate) fn experiment(trial: &Trial<'_>) -> Outcome {
    let Some((original, pairs)) = &trial.original else { return Outcome::NotApplicable };
    let changes = changes(trial, original, pairs);
    // Attributes first: with constants in their place nodes move.
    for change in &changes {
        if trial.right(&change.apply(&trial.slice)) {
            return explained(change.text().to_owned());
        }
    }
    if changes.len() > 1 && trial.right(&all(&changes, &trial.slice)) {
        let texts: Vec<&str> = changes.iter().map(Change::text).collect();
        return explained(texts.join("; "));
    }
    match changes.as_slice() {
        [] => Outcome::RuledOut("attributes: they are the original's".to_owned()),
        others => {
            let texts: Vec<&str> = others.iter().map(Change::text).collect();
            Outcome::RuledOut(format!("attributes: not by {}", texts.join("; ")))
        }
    }
}

fn explained(detail: String) -> Outcome {
    Outcome::Explained { kind: CauseKind::AttributeMismatch, detail }
}

/// A slice with everything as the original has it.
pub(crate) fn all(changes: &[Change], slice: &Slice) -> Slice {
    changes.iter().fold(slice.clone(), |slice, change| change.apply(&slice))
}

/// Everything that the original has otherwise at the same operators.
pub(crate) fn changes(trial: &Trial<'_>, original: &Slice, pairs: &Pairs) -> Vec<Change> {
    let mut changes = Vec::new();
    for &(ours, theirs) in &pairs.nodes {
        let (found, expected) =
            (trial.slice.model.attributes(ours), original.model.attributes(theirs));
        let mut names: Vec<&String> = found.keys().chain(expected.keys()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names.into_iter().filter(|name| found.get(*name) != expected.get(*name)) {
            let shown = |value: Option<&Attribute>| {
                value.map_or_else(|| "not set".to_owned(), Attribute::text)
            };
            let (is, was) = (shown(found.get(name)), shown(expected.get(name)));
            changes.push(Change::Attribute {
                node: ours,
                name: name.clone(),
                value: expected.get(name).cloned(),
                text: format!("{name}: {was} in the original, {is} in the export"),
            });
        }
    }
    changes.extend(constants(trial, original, pairs));
    changes
}

fn constants(trial: &Trial<'_>, original: &Slice, pairs: &Pairs) -> Vec<Change> {
    let mut changes = Vec::new();
    for held in &pairs.constants {
        let (Some(is), Some(was)) =
            (trial.slice.constant(&held.export), original.constant(&held.original))
        else {
            continue;
        };
        let known = trial.named.contains_key(&held.export);
        if is == was || !stands_for_attribute(&held.op_type, held.position, &is, known) {
            continue;
        }
        let place = format!("input {} of {}", held.position, held.op_type);
        let (is, tensor) = (tensor_text(&is), was);
        let text = format!("{place}: {} in the original, {is} in the export", tensor_text(&tensor));
        changes.push(Change::Constant { name: held.export.clone(), tensor, text });
    }
    changes
}
