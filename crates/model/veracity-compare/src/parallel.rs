//! Shares blocks among threads. Which thread took which block must not matter to the caller.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `work` once for every block, from up to `threads` threads, each with a state of its own,
/// and returns the states. When the system refuses a thread, the others do its part.
pub(crate) fn over_blocks<S: Send>(
    blocks: usize,
    threads: usize,
    make: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) + Sync,
) -> Vec<S> {
    let next = AtomicUsize::new(0);
    let labour = || {
        let mut state = make();
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= blocks {
                return state;
            }
            work(&mut state, block);
        }
    };
    thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads)
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, labour).ok())
            .collect();
        let mut states = vec![labour()];
        states.extend(
            helpers
                .into_iter()
                .map(|helper| helper.join().unwrap_or_else(|why| resume_unwind(why))),
        );
        states
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_is_taken_once() {
        for (blocks, threads) in [(0, 1), (1, 4), (7, 2), (100, 3)] {
            let states = over_blocks(blocks, threads, Vec::new, Vec::push);
            let mut taken = states.concat();
            taken.sort_unstable();
            assert_eq!(taken, (0..blocks).collect::<Vec<_>>(), "{blocks} by {threads}");
        }
    }
}
