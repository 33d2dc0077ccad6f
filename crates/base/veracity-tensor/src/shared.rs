//! Memory that several engine sessions read and write in turn.
#![expect(unsafe_code, reason = "one producer and many consumers share the memory of a value")]

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::{AlignedBytes, DType, Shape, Tensor};

/// The memory of one value of a pipeline. The session that produces the value and those that
/// consume it all hold a clone; the memory lives as long as any of them.
///
/// Clones alias. Access is therefore `unsafe`, and whoever schedules the sessions (the runtime)
/// answers for reading and writing in turn.
#[derive(Clone)]
pub struct SharedTensor(Arc<Inner>);

struct Inner {
    dtype: DType,
    shape: Shape,
    len: usize,
    start: *mut u8,
    #[expect(dead_code, reason = "keeps the memory alive")]
    owner: Box<dyn Any + Send + Sync>,
    /// How many sessions read this memory right now, or [`WRITTEN`] while one writes it.
    users: AtomicI32,
}

/// The number of users while a session writes.
const WRITTEN: i32 = -1;

// SAFETY: `start` points into memory of the owner, which is `Send`; access through it is `unsafe`,
// and its contract asks for accesses in turn.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl SharedTensor {
    /// Zeroed memory for a value.
    pub fn zeros(dtype: DType, shape: Shape) -> Self {
        let len = shape.elements() * dtype.size();
        let mut bytes = AlignedBytes::zeroed(len);
        let start = bytes.as_mut_ptr();
        let (owner, users): (Box<dyn Any + Send + Sync>, _) = (Box::new(bytes), AtomicI32::new(0));
        Self(Arc::new(Inner { dtype, shape, len, start, owner, users }))
    }

    /// Memory of somebody else as a value that is only read: no session gets it for writing.
    ///
    /// # Safety
    /// Elements of that dtype and shape lie at `start`, row-major and aligned as elements are, for
    /// as long as the owner lives, and nobody writes them in that time.
    pub unsafe fn over(
        dtype: DType,
        shape: Shape,
        start: *const u8,
        owner: impl Any + Send + Sync,
    ) -> Self {
        let len = shape.elements() * dtype.size();
        // Read by the owner, for good.
        let (owner, users): (Box<dyn Any + Send + Sync>, _) = (Box::new(owner), AtomicI32::new(1));
        Self(Arc::new(Inner { dtype, shape, len, start: start.cast_mut(), owner, users }))
    }

    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Sizes of the axes.
    pub fn shape(&self) -> &Shape {
        &self.0.shape
    }

    /// Bytes the value takes.
    pub fn byte_len(&self) -> usize {
        self.0.len
    }

    /// Address of the first element, for engines that keep it while they hold a clone. Nobody writes
    /// there who has not claimed the memory for writing.
    pub fn as_mut_ptr(&self) -> *mut u8 {
        self.0.start
    }

    /// Claims the memory for reading; `false` while a session writes it. Each claim must be given
    /// back by [`SharedTensor::release`].
    pub fn claim_for_reading(&self) -> bool {
        let one_more = |users: i32| (users != WRITTEN).then(|| users.saturating_add(1));
        self.0.users.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).is_ok()
    }

    /// Claims the memory for writing; `false` while any session uses it.
    pub fn claim_for_writing(&self) -> bool {
        self.0.users.compare_exchange(0, WRITTEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives one claim back.
    pub fn release(&self) {
        let one_less = |users: i32| Some(if users == WRITTEN { 0 } else { (users - 1).max(0) });
        // The closure never declines.
        let _ = self.0.users.fetch_update(Ordering::Release, Ordering::Relaxed, one_less);
    }

    /// Reads the elements.
    ///
    /// # Safety
    /// Nothing writes this memory while the slice lives: no session bound to it runs, and no
    /// slice from [`SharedTensor::bytes_mut`] is alive.
    pub unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: the owner has that many bytes there; the caller promises that nothing writes
        // meanwhile.
        unsafe { std::slice::from_raw_parts(self.0.start, self.0.len) }
    }

    /// Writes the elements.
    ///
    /// # Safety
    /// Nothing else reads or writes this memory while the slice lives.
    #[expect(clippy::mut_from_ref, reason = "the contract of this function makes it exclusive")]
    pub unsafe fn bytes_mut(&self) -> &mut [u8] {
        // SAFETY: the owner has that many bytes there; the caller promises exclusive access.
        unsafe { std::slice::from_raw_parts_mut(self.0.start, self.0.len) }
    }

    /// A copy that is nobody else's.
    ///
    /// # Safety
    /// As for [`SharedTensor::bytes`].
    pub unsafe fn to_tensor(&self) -> Tensor {
        let mut tensor = Tensor::zeros(self.dtype(), self.shape().clone());
        // SAFETY: passed on to the caller.
        tensor.bytes_mut().copy_from_slice(unsafe { self.bytes() });
        tensor
    }
}

impl std::fmt::Debug for SharedTensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedTensor({} {})", self.dtype(), self.shape())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_may_read_and_one_may_write() {
        let tensor = SharedTensor::zeros(DType::F32, Shape::scalar());
        assert!(tensor.claim_for_reading() && tensor.claim_for_reading());
        assert!(!tensor.claim_for_writing(), "it is read");
        tensor.release();
        assert!(!tensor.claim_for_writing(), "it is still read");
        tensor.release();
        assert!(tensor.claim_for_writing());
        assert!(!tensor.claim_for_reading() && !tensor.claim_for_writing(), "it is written");
        tensor.release();
        assert!(tensor.claim_for_reading());
    }

    #[test]
    fn memory_of_somebody_else_is_kept_alive_and_never_written() {
        let owner = Arc::new([1.0_f32, 2.0]);
        let start = owner.as_ptr().cast();
        // SAFETY: the array has two elements and is never written.
        let tensor =
            unsafe { SharedTensor::over(DType::F32, [2].into(), start, Arc::clone(&owner)) };
        assert_eq!((tensor.byte_len(), Arc::strong_count(&owner)), (8, 2));
        // SAFETY: nothing writes it.
        let copy = unsafe { tensor.to_tensor() };
        assert_eq!(copy.as_slice::<f32>(), Some(&[1.0, 2.0][..]));
        assert!(tensor.claim_for_reading() && !tensor.claim_for_writing());
        tensor.release();
        assert!(!tensor.claim_for_writing(), "its owner may read it");
        drop(tensor);
        assert_eq!(Arc::strong_count(&owner), 1);
    }
}
