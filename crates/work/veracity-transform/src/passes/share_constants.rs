//! Weights that are the same are held once.
//!
//! The same means type, shape and bytes: 0.0 and -0.0 differ, and so do a list and a column.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};

use veracity_onnx::{Patch, Weight};

use crate::{Class, Found, Pass, View};

/// Bytes at both ends of a weight that tell most weights apart.
const SAMPLE_BYTES: usize = 256;

/// Holds weights that are the same once.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShareConstants;

impl Pass for ShareConstants {
    fn name(&self) -> &'static str {
        "share-constants"
    }

    fn class(&self) -> Class {
        Class::ExactBits
    }

    fn about(&self) -> &'static str {
        "holds weights that are the same once"
    }

    fn find(&self, view: &View<'_>, found: &mut Found) {
        let graph = view.graph();
        let free = |name: &str| {
            graph.weight(name).is_some()
                && !graph.is_output(name)
                && graph.readers(name).next().is_some()
        };
        // Ends tell most apart, so that most weights are never read in full.
        let candidates = graph.weights().filter(|(name, _)| free(name));
        for alike in grouped(candidates, |weight| digest(weight, true)) {
            for same in grouped(alike.into_iter(), |weight| digest(weight, false)) {
                share(view, found, &same);
            }
        }
    }
}

/// Groups of two and more with the same key, each in the order of the file.
fn grouped<'w>(
    weights: impl Iterator<Item = (&'w str, &'w Weight)>,
    key: impl Fn(&Weight) -> Option<u64>,
) -> Vec<Vec<(&'w str, &'w Weight)>> {
    let mut groups: BTreeMap<u64, Vec<(&str, &Weight)>> = BTreeMap::new();
    for (name, weight) in weights {
        if let Some(key) = key(weight) {
            groups.entry(key).or_default().push((name, weight));
        }
    }
    groups.into_values().filter(|group| group.len() > 1).collect()
}

/// A number that is the same for weights that are; `None` when the elements are not at hand.
fn digest(weight: &Weight, ends_only: bool) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    weight.dtype()?.hash(&mut hasher);
    weight.dims().hash(&mut hasher);
    with_bytes(weight, |bytes| {
        if ends_only && bytes.len() > 2 * SAMPLE_BYTES {
            bytes[..SAMPLE_BYTES].hash(&mut hasher);
            bytes[bytes.len() - SAMPLE_BYTES..].hash(&mut hasher);
        } else {
            bytes.hash(&mut hasher);
        }
    })?;
    Some(hasher.finish())
}

fn with_bytes<R>(weight: &Weight, then: impl FnOnce(&[u8]) -> R) -> Option<R> {
    match weight.raw() {
        Some(raw) => Some(then(raw)),
        None => Some(then(weight.tensor()?.bytes())),
    }
}

fn is_same(one: &Weight, two: &Weight) -> bool {
    let bytes = |one: &[u8]| with_bytes(two, |two| one == two).unwrap_or(false);
    one.dtype() == two.dtype()
        && one.dims() == two.dims()
        && with_bytes(one, bytes).unwrap_or(false)
}

/// Proposes to read the first of weights that are the same instead of the others.
fn share(view: &View<'_>, found: &mut Found, alike: &[(&str, &Weight)]) {
    let Some(((kept, weight), others)) = alike.split_first() else { return };
    for (name, other) in others {
        // Two that only share a hash are different.
        let Some(anchor) = view.graph().readers(name).next().filter(|_| is_same(weight, other))
        else {
            continue;
        };
        let patch = Patch::because(format!("{name:?} is the same as {kept:?}"));
        found.propose(anchor, patch.replace(*name, *kept).drop_weight(*name));
    }
}
