//! Bytes that start on a cache line.
#![expect(unsafe_code, reason = "aligned allocation needs the raw allocator")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Start address of every buffer is a multiple of this: a cache line, and the width of an AVX-512
/// register, so that no vector load is split.
const ALIGNMENT: usize = 64;

/// Heap memory that starts on a cache line.
///
/// Asking the allocator for aligned zeros makes it write them. Plain zeros it gets from the system,
/// which makes them when they are first touched: so a little more is asked for than is used.
pub struct AlignedBytes {
    start: NonNull<u8>,
    len: usize,
    /// Bytes of the allocation before the start.
    skipped: usize,
}

// SAFETY: the memory is owned, and only reached through `&self` and `&mut self`.
unsafe impl Send for AlignedBytes {}
// SAFETY: as above; shared access is read-only.
unsafe impl Sync for AlignedBytes {}

impl AlignedBytes {
    /// Memory of that many bytes, all zero.
    ///
    /// # Panics
    /// When `len` exceeds `isize::MAX`; [`crate::Shape`] rules that out.
    pub fn zeroed(len: usize) -> Self {
        // SAFETY: the layout has a size of at least 1.
        Self::allocated(len, |layout| unsafe { alloc_zeroed(layout) })
    }

    /// A copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        // SAFETY: the layout has a size of at least 1.
        let copy = Self::allocated(bytes.len(), |layout| unsafe { alloc(layout) });
        // SAFETY: the memory is new and as long as `bytes`; all of it is written before it is read.
        unsafe { copy.start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        copy
    }

    fn allocated(len: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> Self {
        if len == 0 {
            return Self { start: Self::dangling(), len, skipped: 0 };
        }
        let layout = Self::layout(len);
        let Some(first) = NonNull::new(allocate(layout)) else { handle_alloc_error(layout) };
        let skipped = first.align_offset(ALIGNMENT);
        // SAFETY: less than `ALIGNMENT` bytes are skipped, and as many more were asked for.
        let start = unsafe { first.add(skipped) };
        Self { start, len, skipped }
    }

    /// Address of the first byte, for engines that keep it. Valid until the value is dropped,
    /// even if the value itself moves.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn layout(len: usize) -> Layout {
        let room = len.checked_add(ALIGNMENT).and_then(|room| Layout::array::<u8>(room).ok());
        room.expect("a tensor is at most isize::MAX bytes")
    }

    fn dangling() -> NonNull<u8> {
        NonNull::<CacheLine>::dangling().cast()
    }
}

/// Only there to get a dangling pointer that is aligned like real memory.
#[repr(align(64))]
struct CacheLine;

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: allocated in `allocated` with this very layout, that many bytes before.
            unsafe { dealloc(self.start.sub(self.skipped).as_ptr(), Self::layout(self.len)) }
        }
    }
}

impl Deref for AlignedBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` initialised bytes belong to us; dangling but aligned when `len` is 0.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for AlignedBytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Clone for AlignedBytes {
    fn clone(&self) -> Self {
        Self::copy_of(self)
    }
}

impl PartialEq for AlignedBytes {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for AlignedBytes {}

impl std::fmt::Debug for AlignedBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "AlignedBytes({} bytes)", self.len)
    }
}
