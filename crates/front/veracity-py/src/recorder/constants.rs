//! The values that recorded calls read as constants, kept until nothing needs them.

use std::collections::{BTreeMap, BTreeSet};

use pyo3::prelude::*;
use veracity::trace::StorageId;

use super::slices::KeptSlice;

/// The value of a storage at one of its write counts.
pub(super) enum Held {
    /// A tensor on the storage itself: nobody wrote into it since.
    Live(Py<PyAny>),
    /// A flat copy of the whole storage.
    Snapshot(Py<PyAny>),
}

#[derive(Default)]
pub(super) struct Constants {
    held: BTreeMap<(StorageId, u32), Held>,
}

impl Constants {
    pub(super) fn hold_live(&mut self, storage: StorageId, count: u32, tensor: Py<PyAny>) {
        self.held.entry((storage, count)).or_insert(Held::Live(tensor));
    }

    /// A snapshot replaces a live tensor: the storage is about to be written.
    pub(super) fn hold_snapshot(&mut self, storage: StorageId, count: u32, flat: Py<PyAny>) {
        let key = (storage, count);
        if !matches!(self.held.get(&key), Some(Held::Snapshot(_))) {
            self.held.insert(key, Held::Snapshot(flat));
        }
    }

    pub(super) fn get(&self, storage: StorageId, count: u32) -> Option<&Held> {
        self.held.get(&(storage, count))
    }

    pub(super) fn keep_only(&mut self, slices: &[Option<KeptSlice>]) {
        let wanted: BTreeSet<(StorageId, u32)> = slices
            .iter()
            .flatten()
            .flat_map(|kept| kept.slice.constants.iter())
            .map(|constant| (constant.storage, constant.count))
            .collect();
        self.held.retain(|key, _| wanted.contains(key));
    }
}
