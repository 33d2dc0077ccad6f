//! A step allocates no Rust memory.
#![expect(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::common::{accumulator, chain, key, pair};
use veracity_runtime::{Fusion, InputId, OutputId, RunOptions, Runner};
use veracity_spec::{Direction, Reorder, ReorderMap};
use veracity_tensor::DType;

thread_local! {
    /// Allocations made by this thread: other tests and the engine's own threads do not count.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: hands everything on to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: passed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_per_step(runner: &mut Runner) -> usize {
    let x = pair(1.0, 2.0);
    let mut read = 0;
    let mut step = || {
        runner.write_input(InputId(0), DType::F32, &[1, 2], x.bytes()).expect("the input fits");
        runner.step().expect("the step runs");
        read += runner.output_bytes(OutputId(0)).expect("a step has finished").len();
    };
    (0..10).for_each(|_| step());
    let before = ALLOCATIONS.get();
    (0..100).for_each(|_| step());
    ALLOCATIONS.get() - before
}

#[test]
fn a_step_allocates_nothing() {
    let fused = RunOptions::new().with_fusion(Fusion::within_single_precision());
    let swap = |port: &str, direction| Reorder {
        port: key(port),
        direction,
        axis: Some(1),
        take: vec![1, 0],
        bundle: None,
        robot: None,
    };
    let entries = vec![swap("sum/x", Direction::Input), swap("sum/shown", Direction::Output)];
    let reordered = RunOptions::new().with_reorder(ReorderMap { entries, ..ReorderMap::default() });
    for (what, draft, options) in [
        ("chain", chain(), RunOptions::new()),
        ("merged chain", chain(), fused.clone()),
        ("feedback", accumulator(), RunOptions::new()),
        ("feedback in another order", accumulator(), reordered),
    ] {
        assert_eq!(allocations_per_step(&mut draft.load(&options)), 0, "{what}");
    }
}

#[test]
fn the_counter_counts() {
    let before = ALLOCATIONS.get();
    std::hint::black_box(Box::new(1));
    assert_eq!(ALLOCATIONS.get() - before, 1);
}
