//! How a measurement is cut into pieces. Tests use small pieces; nobody else has a choice.

use std::thread::available_parallelism;

use crate::simd::InstructionSet;

/// Lanes of the canonical accumulator; blocks and tiles are multiples of it, so that an element
/// meets the same lane however the work is cut.
pub(crate) const LANES: usize = 8;

/// Elements a thread takes at a time. Sums are kept per block and added in block order, which
/// makes them independent of the threads.
const BLOCK: usize = 64 * 1024;

/// Elements worked on at a time: the tiles of both sides and the errors between them (8 bytes
/// each) stay in a 32 KiB first-level cache.
const TILE: usize = 1024;

/// Blocks that make it worth waking another thread.
const BLOCKS_PER_THREAD: usize = 4;

/// Most threads used: each needs up to 1 MiB for percentiles, and all must stay below 64 MB.
/// Memory bandwidth ends earlier.
const MAX_THREADS: usize = 16;

/// How a measurement is cut into pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Instructions to use.
    pub(crate) set: InstructionSet,
    /// Threads to use.
    pub(crate) threads: usize,
    /// Elements a block has; a multiple of the tile.
    pub(crate) block: usize,
    /// Elements a tile has; a multiple of [`LANES`].
    pub(crate) tile: usize,
    /// Tensors with at most this many elements get percentiles without a sample.
    pub(crate) direct_limit: usize,
    /// Most errors sampled.
    pub(crate) sample: usize,
    /// Most errors that may be held in memory at once, 16 bytes each.
    pub(crate) collect_limit: usize,
}

impl Plan {
    /// The plan for a tensor of that many elements.
    pub(crate) fn new(elements: usize, threads: usize) -> Self {
        let useful = (elements / (BLOCK * BLOCKS_PER_THREAD)).clamp(1, MAX_THREADS);
        let offered = match threads {
            // Asking the system takes longer than measuring a small tensor.
            0 if useful == 1 => 1,
            0 => available_parallelism().map_or(1, usize::from),
            wanted => wanted,
        };
        Self {
            set: InstructionSet::best(),
            threads: offered.min(useful),
            block: BLOCK,
            tile: TILE,
            direct_limit: 128 * 1024,
            sample: 128 * 1024,
            // 32 MiB.
            collect_limit: 2 * 1024 * 1024,
        }
    }

    /// Blocks that this many elements make.
    pub(crate) fn blocks(&self, elements: usize) -> usize {
        elements.div_ceil(self.block)
    }

    /// Start and length of every tile of a block.
    pub(crate) fn tiles(
        &self,
        block: usize,
        elements: usize,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let start = block * self.block;
        let end = elements.min(start + self.block);
        let tile = self.tile;
        (start..end).step_by(tile).map(move |first| (first, tile.min(end - first)))
    }
}
