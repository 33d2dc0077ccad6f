//! Which memory a tensor shows.
//!
//! Storages are known by their address. A weak reference, held for every one of them, keeps the
//! address from being given to another storage, without keeping the data alive.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use veracity::trace::{Birth, Geometry, SiteId, StorageId, Tape, ViewId};

/// Below this many storages sweeping is not worth its time.
const SWEEP_FROM: usize = 4096;

struct Known {
    id: StorageId,
    /// Bytes between the start of the memory that `id` stands for and of this storage.
    shift_bytes: usize,
}

/// Memory that something outside of torch may alias.
struct SharedRange {
    start: usize,
    end: usize,
    storage: usize,
    id: StorageId,
}

/// Element types by number.
#[derive(Default)]
struct Elements {
    numbers: HashMap<usize, u16>,
    dtypes: Vec<Py<PyAny>>,
    complex: Vec<bool>,
    complex_seen: bool,
}

/// The storages seen so far.
pub(super) struct Storages {
    known: HashMap<usize, Known>,
    shared: Vec<SharedRange>,
    elements: Elements,
    sweep_at: usize,
    /// Where the storages that recorded calls made were made.
    made_at: HashMap<StorageId, SiteId>,
    /// Greater than every storage so far.
    next_id: StorageId,
    /// The storages that were not known before, since somebody asked.
    fresh: Vec<StorageId>,
    /// `torch.UntypedStorage`.
    class: Py<PyAny>,
}

impl Storages {
    pub(super) fn new(class: Py<PyAny>) -> Self {
        Self {
            known: HashMap::new(),
            shared: Vec::new(),
            elements: Elements::default(),
            sweep_at: SWEEP_FROM,
            made_at: HashMap::new(),
            next_id: StorageId(0),
            fresh: Vec::new(),
            class,
        }
    }

    /// The dtype of an element number.
    pub(super) fn dtype(&self, element: u16) -> &Py<PyAny> {
        &self.elements.dtypes[usize::from(element >> 2)]
    }

    /// The memory that a tensor shows. `birth` counts when its storage is new.
    pub(super) fn view(
        &mut self,
        tape: &mut Tape,
        tensor: &Bound<'_, PyAny>,
        birth: Birth,
    ) -> PyResult<ViewId> {
        let py = tensor.py();
        let storage = tensor.call_method0(pyo3::intern!(py, "untyped_storage"))?;
        let address: usize = storage.getattr(pyo3::intern!(py, "_cdata"))?.extract()?;
        let (id, shift_bytes) = match self.known.get(&address) {
            Some(known) => (known.id, known.shift_bytes),
            None => self.register(tape, &storage, address, birth)?,
        };
        let mut geometry = self.geometry(tensor)?;
        if shift_bytes > 0 {
            let width: usize = tensor.call_method0(pyo3::intern!(py, "element_size"))?.extract()?;
            geometry.offset += (shift_bytes / width.max(1)) as u64;
        }
        Ok(tape.view(id, &geometry))
    }

    /// Knows the storage of a tensor from now on, without asking where the tensor lies in it.
    pub(super) fn remember(
        &mut self,
        tape: &mut Tape,
        tensor: &Bound<'_, PyAny>,
        birth: Birth,
    ) -> PyResult<()> {
        let py = tensor.py();
        let storage = tensor.call_method0(pyo3::intern!(py, "untyped_storage"))?;
        let address: usize = storage.getattr(pyo3::intern!(py, "_cdata"))?.extract()?;
        match self.known.get(&address) {
            None => {
                self.register(tape, &storage, address, birth)?;
            }
            Some(known) if birth == Birth::Before => tape.was_there(known.id),
            Some(_) => {}
        }
        Ok(())
    }

    fn register(
        &mut self,
        tape: &mut Tape,
        storage: &Bound<'_, PyAny>,
        address: usize,
        birth: Birth,
    ) -> PyResult<(StorageId, usize)> {
        let py = storage.py();
        storage.call_method0(pyo3::intern!(py, "_weak_ref"))?;
        let (id, shift_bytes) = match self.alias_of(storage)? {
            Some(alias) => alias,
            None => (tape.storage(birth), 0),
        };
        self.next_id = self.next_id.max(StorageId(id.0 + 1));
        if birth == Birth::Seen {
            self.fresh.push(id);
        }
        self.known.insert(address, Known { id, shift_bytes });
        Ok((id, shift_bytes))
    }

    /// A storage on memory that was given away is another name for it.
    fn alias_of(&self, storage: &Bound<'_, PyAny>) -> PyResult<Option<(StorageId, usize)>> {
        if self.shared.is_empty() {
            return Ok(None);
        }
        let py = storage.py();
        let start: usize = storage.call_method0(pyo3::intern!(py, "data_ptr"))?.extract()?;
        for range in &self.shared {
            if start >= range.start && start < range.end && !self.expired(py, range.storage)? {
                return Ok(Some((range.id, start - range.start)));
            }
        }
        Ok(None)
    }

    /// Notes that something outside of torch may read and write this tensor's memory.
    pub(super) fn share(&mut self, tape: &mut Tape, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = tensor.py();
        self.remember(tape, tensor, Birth::Unseen)?;
        let storage = tensor.call_method0(pyo3::intern!(py, "untyped_storage"))?;
        let address: usize = storage.getattr(pyo3::intern!(py, "_cdata"))?.extract()?;
        let known = &self.known[&address];
        if known.shift_bytes > 0 || self.shared.iter().any(|range| range.storage == address) {
            return Ok(());
        }
        let start: usize = storage.call_method0(pyo3::intern!(py, "data_ptr"))?.extract()?;
        let length: usize = storage.call_method0(pyo3::intern!(py, "nbytes"))?.extract()?;
        let id = known.id;
        self.shared.push(SharedRange { start, end: start + length, storage: address, id });
        Ok(())
    }

    /// Greater than every storage so far.
    pub(super) fn next_id(&self) -> StorageId {
        self.next_id
    }

    /// Whether storages appeared that have no place yet.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Says where the storages were made that appeared since the last time.
    pub(super) fn place_fresh(&mut self, site: SiteId) {
        for id in self.fresh.drain(..) {
            self.made_at.insert(id, site);
        }
    }

    /// Where a storage was made, if a recorded call made it.
    pub(super) fn made_at(&self, id: StorageId) -> Option<SiteId> {
        self.made_at.get(&id).copied()
    }

    fn geometry(&mut self, tensor: &Bound<'_, PyAny>) -> PyResult<Geometry> {
        let py = tensor.py();
        let offset = tensor.call_method0(pyo3::intern!(py, "storage_offset"))?.extract()?;
        let sizes = tensor.call_method0(pyo3::intern!(py, "size"))?;
        let strides = tensor.call_method0(pyo3::intern!(py, "stride"))?;
        let element = self.element(tensor)?;
        let sizes = sizes.cast::<PyTuple>()?;
        let strides = strides.cast::<PyTuple>()?;
        Ok(Geometry {
            offset,
            sizes: sizes.iter().map(|size| size.extract()).collect::<PyResult<_>>()?,
            strides: strides.iter().map(|stride| stride.extract()).collect::<PyResult<_>>()?,
            element,
        })
    }

    /// dtype, and whether the values are shown conjugated or negated.
    fn element(&mut self, tensor: &Bound<'_, PyAny>) -> PyResult<u16> {
        let py = tensor.py();
        let dtype = tensor.getattr(pyo3::intern!(py, "dtype"))?;
        let key = dtype.as_ptr() as usize;
        let number = match self.elements.numbers.get(&key) {
            Some(number) => *number,
            None => self.elements.add(&dtype)?,
        };
        if !self.elements.complex_seen {
            return Ok(number << 2);
        }
        let asks = |name| tensor.call_method0(name)?.is_truthy();
        let conjugated = self.elements.complex[usize::from(number)] && asks("is_conj")?;
        let negated = asks("is_neg")?;
        Ok(number << 2 | u16::from(conjugated) << 1 | u16::from(negated))
    }

    fn expired(&self, py: Python<'_>, address: usize) -> PyResult<bool> {
        let class = self.class.bind(py);
        class.call_method1(pyo3::intern!(py, "_expired"), (address,))?.is_truthy()
    }

    /// Forgets storages whose memory is gone, when there are many.
    pub(super) fn sweep(&mut self, py: Python<'_>, tape: &mut Tape) -> PyResult<()> {
        if self.known.len() < self.sweep_at {
            return Ok(());
        }
        let mut addresses: Vec<usize> = self.known.keys().copied().collect();
        addresses.sort_unstable();
        let mut gone = Vec::new();
        for address in addresses {
            if self.expired(py, address)? {
                let known = &self.known[&address];
                gone.push((address, known.id, known.shift_bytes));
            }
        }
        for (address, id, shift_bytes) in gone {
            self.known.remove(&address);
            self.shared.retain(|range| range.storage != address);
            self.made_at.remove(&id);
            if shift_bytes == 0
                && !self.known.values().any(|known| known.shift_bytes > 0 && known.id == id)
            {
                tape.forget(id);
            }
            self.free(py, address)?;
        }
        self.sweep_at = SWEEP_FROM.max(self.known.len() * 2);
        Ok(())
    }

    fn free(&self, py: Python<'_>, address: usize) -> PyResult<()> {
        let class = self.class.bind(py);
        class.call_method1(pyo3::intern!(py, "_free_weak_ref"), (address,))?;
        Ok(())
    }
}

impl Elements {
    fn add(&mut self, dtype: &Bound<'_, PyAny>) -> PyResult<u16> {
        let number = u16::try_from(self.dtypes.len()).unwrap_or(u16::MAX);
        let complex = dtype.getattr("is_complex")?.is_truthy()?;
        self.complex_seen |= complex;
        self.complex.push(complex);
        self.numbers.insert(dtype.as_ptr() as usize, number);
        self.dtypes.push(dtype.clone().unbind());
        Ok(number)
    }
}

/// The counter of writes that torch keeps for a tensor; tensors of inference mode have none.
pub(super) fn version(tensor: &Bound<'_, PyAny>) -> Option<i64> {
    tensor.getattr(pyo3::intern!(tensor.py(), "_version")).ok()?.extract().ok()
}
