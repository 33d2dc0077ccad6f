//! A run allocates no Rust memory.

#[path = "support/lib.rs"]
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use support::{buffers, calls_of, load, ports_of};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

#[expect(unsafe_code, reason = "counts what the system allocator is asked for")]
// SAFETY: everything is passed on to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// One test in this file: tests run in threads, and the counter is for all of them.
#[test]
fn a_run_allocates_nothing_in_rust() {
    for name in ["mlp", "gru", "nested_output", "remembers"] {
        let ports = ports_of(&calls_of(name)[0]);
        let mut session = load(name, &ports);
        let binding = session.bind(&buffers(&ports.inputs), &buffers(&ports.outputs)).unwrap();
        session.run(binding).unwrap();
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        for _ in 0..1000 {
            session.run(binding).unwrap();
        }
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "{name}");
    }
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > 0, "the counter does not count");
}
