//! Bytes that start on a cache line.
#![expect(unsafe_code, reason = "aligned allocation needs the raw allocator")]

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use memmap2::MmapMut;

/// Start address of every buffer is a multiple of this: a cache line, and the width of an AVX-512
/// register, so that no vector load is split.
const ALIGNMENT: usize = 64;

/// From this size on memory comes from the system in pieces of this size, where it has them. It
/// hands out 100 MB in a third of the time that it takes for small pages.
const HUGE_PAGE: usize = 2 << 20;

/// Memory that starts on a cache line.
pub struct AlignedBytes {
    start: NonNull<u8>,
    len: usize,
    _memory: Memory,
}

/// What holds the bytes, and gives them back.
enum Memory {
    None,
    /// Only held.
    Mapped {
        _pages: MmapMut,
    },
    /// Only held.
    Heap {
        _block: Block,
    },
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
            return Self { start: Self::dangling(), len, _memory: Memory::None };
        }
        if let Some(mapped) = Some(len).filter(|len| *len >= HUGE_PAGE).and_then(Self::mapped) {
            return mapped;
        }
        let block = Block::new(len, allocate);
        let skipped = block.first.align_offset(ALIGNMENT);
        // SAFETY: less than `ALIGNMENT` bytes are skipped, and as many more were asked for.
        let start = unsafe { block.first.add(skipped) };
        Self { start, len, _memory: Memory::Heap { _block: block } }
    }

    /// Memory straight from the system, all zero; `None` when it has none.
    fn mapped(len: usize) -> Option<Self> {
        let mut pages = MmapMut::map_anon(len.checked_add(HUGE_PAGE)?).ok()?;
        let first = NonNull::new(pages.as_mut_ptr())?;
        let skipped = first.align_offset(HUGE_PAGE);
        // A system without huge pages gives small ones. The rest gets small ones, too: a huge page
        // takes memory to its end.
        #[cfg(target_os = "linux")]
        let _ = pages.advise_range(memmap2::Advice::HugePage, skipped, len - len % HUGE_PAGE);
        // SAFETY: less than `HUGE_PAGE` bytes are skipped, and as many more were asked for.
        let start = unsafe { first.add(skipped) };
        Some(Self { start, len, _memory: Memory::Mapped { _pages: pages } })
    }

    /// Address of the first byte, for engines that keep it. Valid until the value is dropped,
    /// even if the value itself moves.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn dangling() -> NonNull<u8> {
        NonNull::<CacheLine>::dangling().cast()
    }
}

/// Only there to get a dangling pointer that is aligned like real memory.
#[repr(align(64))]
struct CacheLine;

/// Heap memory with room for an aligned start.
///
/// Asking the allocator for aligned zeros makes it write them. Plain zeros it gets from the system,
/// which makes them when they are first touched: so a little more is asked for than is used.
struct Block {
    first: NonNull<u8>,
    layout: Layout,
}

impl Block {
    fn new(len: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> Self {
        let room = len.checked_add(ALIGNMENT).and_then(|room| Layout::array::<u8>(room).ok());
        let layout = room.expect("a tensor is at most isize::MAX bytes");
        let Some(first) = NonNull::new(allocate(layout)) else { handle_alloc_error(layout) };
        Self { first, layout }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this very layout.
        unsafe { dealloc(self.first.as_ptr(), self.layout) }
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

impl AsRef<[u8]> for AlignedBytes {
    fn as_ref(&self) -> &[u8] {
        self
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_of_every_size_is_zero_aligned_and_writable_to_its_end() {
        for len in [0, 1, 63, 4096, HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 1, 3 * HUGE_PAGE - 1] {
            let mut bytes = AlignedBytes::zeroed(len);
            assert_eq!(bytes.len(), len);
            assert_eq!(bytes.as_ptr().align_offset(ALIGNMENT), 0, "{len}");
            assert!(bytes.iter().all(|byte| *byte == 0), "{len}");
            bytes.fill(7);
            let copy = bytes.clone();
            drop(bytes);
            assert!(copy.len() == len && copy.iter().all(|byte| *byte == 7), "{len}");
        }
    }
}
