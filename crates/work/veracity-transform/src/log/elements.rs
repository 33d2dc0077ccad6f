//! The elements that neither the original nor the result has where they are needed.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use veracity_diag::Result;
use veracity_onnx::{Model, Weight};

use crate::Rewrite;
use crate::digest::{Hashes, Place, place};

/// Elements of fewer bytes stand in the log itself.
pub(crate) const LARGE_BYTES: usize = 256;

/// Prefix of the address of elements that are in the original, by their number.
pub(crate) const ORIGINAL: &str = "original:";
/// Prefix of the address of elements that are in the result, by their number.
pub(crate) const RESULT: &str = "result:";
/// Address of elements that the result has no use for.
pub(crate) const GONE: &str = "gone";

/// What is needed beside a log to do its rewrites again and to undo them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Elements {
    /// The original without the elements of large tensors.
    pub(crate) skeleton: Bytes,
    /// Elements by their hash.
    pub(crate) blobs: BTreeMap<String, Bytes>,
}

impl Elements {
    /// Bytes that they take.
    pub fn size(&self) -> usize {
        self.blobs.values().map(Bytes::len).sum::<usize>() + self.skeleton.len()
    }

    /// Elements by their hash.
    pub(crate) fn get(&self, hash: &str) -> Option<Bytes> {
        self.blobs.get(hash).cloned()
    }
}

/// Which large elements original and result share.
pub(crate) struct Sharing {
    stored: Vec<Bytes>,
    original: HashMap<Place, usize>,
    result: HashMap<Place, usize>,
}

impl Sharing {
    pub(crate) fn of(original: &Model, result: &Model) -> Self {
        let at = |stored: &[Bytes]| {
            let large = stored.iter().enumerate().filter(|(_, bytes)| is_large(bytes));
            // Of two tensors that share their elements, the first is as good as the second.
            large.rev().map(|(index, bytes)| (place(bytes), index)).collect()
        };
        let stored = original.stored();
        Self { original: at(&stored), result: at(&result.stored()), stored }
    }

    /// Everything that will be named by its hash.
    pub(crate) fn to_hash<'s>(
        &'s self,
        rewrites: &'s [Rewrite],
    ) -> impl Iterator<Item = &'s Bytes> {
        let touched = rewrites.iter().flat_map(|rewrite| {
            rewrite.applied.weights.iter().chain(&rewrite.applied.dropped).map(|(_, weight)| weight)
        });
        self.lost().chain(touched.filter_map(Weight::stored))
    }

    /// Large elements of the original that the result does not have.
    fn lost(&self) -> impl Iterator<Item = &Bytes> {
        let large = self.stored.iter().filter(|bytes| is_large(bytes));
        large.filter(|bytes| !self.result.contains_key(&place(bytes)))
    }

    /// A new weight as bytes, its elements by address where they are large.
    pub(crate) fn outline(&self, weight: &Weight, hashes: &Hashes) -> Vec<u8> {
        let Some(bytes) = weight.stored().filter(|bytes| is_large(bytes)) else {
            return weight.to_bytes();
        };
        let at = place(bytes);
        let address = match self.original.get(&at) {
            Some(index) => format!("{ORIGINAL}{index}"),
            None if self.result.contains_key(&at) => hashes.bytes(bytes),
            None => GONE.to_owned(),
        };
        weight.to_bytes_without(&address)
    }

    /// The side file: the original without elements that the result has, what it does not have, and
    /// what only the result has.
    pub(crate) fn elements(
        &self,
        original: &Model,
        rewrites: &[Rewrite],
        hashes: &Hashes,
    ) -> Result<Elements> {
        let mut blobs: BTreeMap<String, Bytes> =
            self.lost().map(|bytes| (hashes.bytes(bytes), bytes.clone())).collect();
        let weights = rewrites.iter().flat_map(|rewrite| &rewrite.applied.weights);
        for bytes in weights.filter_map(|(_, weight)| weight.stored()) {
            let at = place(bytes);
            if self.result.contains_key(&at) && !self.original.contains_key(&at) {
                blobs.insert(hashes.bytes(bytes), bytes.clone());
            }
        }
        let skeleton = original.emptied(|bytes| {
            is_large(bytes).then(|| match self.result.get(&place(bytes)) {
                Some(index) => format!("{RESULT}{index}"),
                None => hashes.bytes(bytes),
            })
        });
        Ok(Elements { skeleton: skeleton.to_bytes()?.into(), blobs })
    }
}

fn is_large(bytes: &Bytes) -> bool {
    bytes.len() >= LARGE_BYTES
}
