//! Nodes that read constants only become constants.
//!
//! What they give is computed here, to the very bits that an engine would give; an operator for
//! which that cannot be said is left alone with this reason. A model must not grow by it: a result
//! is held when it is small, or when what it replaces goes and was not smaller.

use std::collections::BTreeMap;

use veracity_onnx::{Node, NodeId, Patch, Weight};

use crate::evaluate::evaluate;
use crate::{Class, Found, Parameter, Pass, View};

/// Results of up to a mebibyte are held however small the constants behind them are.
const SMALL_BYTES: usize = 1 << 20;

/// Holds what nodes compute from constants as weights.
#[derive(Clone, Copy, Debug)]
pub struct FoldConstants {
    /// Results of up to so many bytes are held in any case.
    pub limit_bytes: usize,
}

impl Default for FoldConstants {
    fn default() -> Self {
        Self { limit_bytes: SMALL_BYTES }
    }
}

impl Pass for FoldConstants {
    fn name(&self) -> &'static str {
        "fold-constants"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "holds what nodes compute from constants as weights"
    }

    fn parameters(&self) -> BTreeMap<&'static str, Parameter> {
        let limit = i64::try_from(self.limit_bytes).unwrap_or(i64::MAX);
        BTreeMap::from([("limit_bytes", Parameter::Integer(limit))])
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        for (id, node) in view.graph().nodes() {
            found.settle(id, self.folded(view, id, node));
        }
    }
}

impl FoldConstants {
    fn folded(self, view: &View<'_>, id: NodeId, node: &Node) -> Result<Option<Patch>, String> {
        // Taking an `Identity` out needs no copy of what it hands on.
        let Some(weights) = constants(view, node).filter(|_| !node.is("Identity")) else {
            return Ok(None);
        };
        if !node.op_domain().is_empty() {
            return Err("it is no standard operator".to_owned());
        }
        if node.has_bodies() {
            return Err("it has bodies".to_owned());
        }
        let given = || node.outputs().iter().filter(|name| !name.is_empty());
        if given().any(|name| view.graph().is_output(name)) {
            return Err("it is an output of the model".to_owned());
        }
        let freed = freed(view, node);
        self.check_size(view, given(), freed.iter().map(|(_, weight)| weight.size()).sum())?;
        let shape = node.output(0).and_then(|name| view.shape(name)).unwrap_or_default();
        let computed = evaluate(node, view.opset(), &weights, &shape)?;
        let mut patch = Patch::because("it reads constants only").remove(id);
        for (name, weight) in node.outputs().iter().zip(computed) {
            if !name.is_empty() {
                expect_inferred(view, name, &weight)?;
                patch = patch.weight(name, weight);
            }
        }
        for (name, _) in freed {
            patch = patch.drop_weight(name);
        }
        Ok(Some(patch))
    }

    fn check_size<'n>(
        self,
        view: &View<'_>,
        names: impl Iterator<Item = &'n String>,
        freed: usize,
    ) -> Result<(), String> {
        let mut bytes = 0_usize;
        for name in names {
            let (shape, dtype) = (view.shape(name), view.dtype(name));
            let (Some(shape), Some(dtype)) = (shape, dtype) else {
                return Err(format!("type and sizes of {name:?} are not known"));
            };
            let elements =
                shape.iter().fold(1_usize, |product, &size| product.saturating_mul(size));
            bytes = bytes.saturating_add(elements.saturating_mul(dtype.size()));
        }
        if bytes > self.limit_bytes && bytes > freed {
            return Err(format!("{bytes} bytes would come for {freed} that go"));
        }
        Ok(())
    }
}

/// The inputs of a node, when all are constants and there is one; `None` for one that is left out.
fn constants<'v>(view: &View<'v>, node: &Node) -> Option<Vec<Option<&'v Weight>>> {
    node.reads_itself().next()?;
    let held = node
        .inputs()
        .iter()
        .map(|name| if name.is_empty() { Some(None) } else { view.constant(name).map(Some) });
    held.collect()
}

/// The constants that nothing else reads, and that go with the node.
fn freed<'v>(view: &View<'v>, node: &Node) -> Vec<(String, &'v Weight)> {
    let mut names: Vec<&str> = node.reads_itself().collect();
    names.sort_unstable();
    names.dedup();
    let lonely = names.into_iter().filter(|name| view.graph().has_one_reader(name));
    lonely.filter_map(|name| Some((name.to_owned(), view.constant(name)?))).collect()
}

/// What is computed must be what was inferred: if not, one of the two is wrong.
fn expect_inferred(view: &View<'_>, name: &str, weight: &Weight) -> Result<(), String> {
    let (shape, dtype) = (view.shape(name), view.dtype(name));
    if shape.as_ref() == Some(&weight.dims()) && dtype == weight.dtype() {
        return Ok(());
    }
    Err(format!("{name:?} was expected to be {dtype:?} {shape:?} and came out as {weight:?}"))
}
