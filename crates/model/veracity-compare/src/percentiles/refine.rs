//! Later passes: collect the errors of a few ranges, or count them more finely.
#![expect(
    clippy::inline_always,
    reason = "code must be inlined into the function that enables the instructions"
)]

use veracity_tensor::TensorView;

use super::collect::{Collection, Collector, Entry, pick};
use super::{Cell, errors};
use crate::pairs::TileReader;
use crate::parallel::over_blocks;
use crate::plan::{LANES, Plan};
use crate::simd::{Job, Simd};

/// Bits by which a range is divided when it holds too many errors to collect: 4096 parts of 24
/// bytes each for at most 10 ranges make 1 MiB a thread.
const SPLIT_BITS: u32 = 12;

/// Two tensors whose errors can be read again.
pub(crate) struct Source<'a> {
    pub(crate) reference: &'a TensorView<'a>,
    pub(crate) candidate: &'a TensorView<'a>,
    pub(crate) plan: Plan,
}

impl Source<'_> {
    /// Passes over all errors. `work` gets a thread's state and the hits of a tile: which cell,
    /// and the bits of the error.
    fn scan<S: Send>(
        &self,
        cells: &[Cell],
        make: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, &[(u8, u64)]) + Sync,
    ) -> Vec<S> {
        let elements = self.reference.shape().elements();
        let plan = self.plan;
        let bounds: Vec<_> =
            cells.iter().map(|cell| [cell.low - 1, cell.high].map(f64::from_bits)).collect();
        let start = || {
            let reader = TileReader::new(self.reference, self.candidate, plan.tile);
            (make(), reader, vec![0.0; plan.tile], Vec::new())
        };
        let states = over_blocks(plan.blocks(elements), plan.threads, start, |state, block| {
            let (state, reader, room, hits) = state;
            for (first, len) in plan.tiles(block, elements) {
                let tile = reader.tile(first, len);
                let errors = errors::fill(plan.set, tile.values, room);
                plan.set.run(FindHits { errors, cells, bounds: &bounds, hits });
                if !hits.is_empty() {
                    work(state, hits);
                    hits.clear();
                }
            }
        });
        states.into_iter().map(|(state, ..)| state).collect()
    }
}

/// Finds the errors that lie in a cell.
struct FindHits<'a> {
    errors: &'a [f64],
    cells: &'a [Cell],
    /// For each cell the number below its first error, and its last error. Cells start above 0;
    /// NaN is never reached.
    bounds: &'a [[f64; 2]],
    hits: &'a mut Vec<(u8, u64)>,
}

impl Job for FindHits<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { errors, cells, bounds, hits } = self;
        let (chunks, rest) = errors.as_chunks::<LANES>();
        for chunk in chunks {
            let lanes = simd.load(chunk);
            let mut mask = 0;
            for &[below, last] in bounds {
                let reached = simd.less(simd.splat(below), lanes);
                let beyond = simd.less(simd.splat(last), lanes);
                mask |= reached & !beyond;
            }
            while mask != 0 {
                note(chunk[mask.trailing_zeros() as usize], cells, hits);
                mask &= mask - 1;
            }
        }
        for &error in rest {
            note(error, cells, hits);
        }
    }
}

/// Notes an error if it lies in a cell.
#[inline(never)]
fn note(error: f64, cells: &[Cell], hits: &mut Vec<(u8, u64)>) {
    let bits = error.to_bits();
    let cell = (0_u8..).zip(cells).find(|(_, cell)| cell.low <= bits && bits <= cell.high);
    hits.extend(cell.map(|(number, _)| (number, bits)));
}

/// Collects the errors of the cells, which fit in memory, and picks the wanted ranks.
pub(super) fn select(source: &Source<'_>, cells: &[Cell], wanted: &[u64]) -> Vec<(u64, f64)> {
    let collection = Collection::new(source.plan.collect_limit);
    let collectors = source.scan(cells, Collector::new, |collector, hits| {
        for &(_, bits) in hits {
            collector.add(bits, &collection);
        }
    });
    for mut collector in collectors {
        collector.finish(&collection);
    }
    let entries = collection.into_entries().expect("cells with few errors have few entries");
    pick_from(entries, cells, wanted)
}

/// Picks the wanted ranks from the errors of ascending cells.
pub(super) fn pick_from(
    mut entries: Vec<Entry>,
    cells: &[Cell],
    wanted: &[u64],
) -> Vec<(u64, f64)> {
    let mut found = Vec::new();
    let mut rest = entries.as_mut_slice();
    for cell in cells {
        let inside = partition(rest, |entry| entry.0 <= cell.high);
        let (entries, above) = std::mem::take(&mut rest).split_at_mut(inside);
        let ranks: Vec<u64> = wanted.iter().copied().filter(|&rank| cell.holds(rank)).collect();
        pick(entries, cell.below, &ranks, &mut found);
        rest = above;
    }
    found
}

/// Moves the entries that meet the condition to the front and returns their number.
fn partition(entries: &mut [Entry], condition: impl Fn(&Entry) -> bool) -> usize {
    let mut front = 0;
    for index in 0..entries.len() {
        if condition(&entries[index]) {
            entries.swap(front, index);
            front += 1;
        }
    }
    front
}

/// Counts the errors of the cells more finely and returns the parts that hold the wanted ranks.
pub(super) fn split(source: &Source<'_>, cells: &[Cell], wanted: &[u64]) -> Vec<Cell> {
    let fresh = || cells.iter().map(Parts::new).collect::<Vec<_>>();
    let states = source.scan(cells, fresh, |parts, hits| {
        for &(cell, bits) in hits {
            parts[usize::from(cell)].add(bits);
        }
    });
    let mut states = states.into_iter();
    let mut total = states.next().unwrap_or_default();
    for state in states {
        for (into, from) in total.iter_mut().zip(state) {
            into.merge(&from);
        }
    }
    cells.iter().zip(total).flat_map(|(cell, parts)| parts.cells(cell, wanted)).collect()
}

/// The errors of a cell, counted by the next bits.
struct Parts {
    low: u64,
    shift: u32,
    counted: Vec<Part>,
}

/// Count, smallest and largest error of a part.
#[derive(Clone, Copy)]
struct Part {
    count: u64,
    low: u64,
    high: u64,
}

impl Parts {
    fn new(cell: &Cell) -> Self {
        let width_bits = u64::BITS - (cell.high - cell.low).leading_zeros();
        let empty = Part { count: 0, low: u64::MAX, high: 0 };
        Self {
            low: cell.low,
            shift: width_bits.saturating_sub(SPLIT_BITS),
            counted: vec![empty; 1 << SPLIT_BITS],
        }
    }

    fn add(&mut self, bits: u64) {
        let index = usize::try_from((bits - self.low) >> self.shift);
        let part = &mut self.counted[index.expect("a hit lies in its cell")];
        part.count += 1;
        part.low = part.low.min(bits);
        part.high = part.high.max(bits);
    }

    fn merge(&mut self, other: &Self) {
        for (into, from) in self.counted.iter_mut().zip(&other.counted) {
            into.count += from.count;
            into.low = into.low.min(from.low);
            into.high = into.high.max(from.high);
        }
    }

    fn cells(self, cell: &Cell, wanted: &[u64]) -> Vec<Cell> {
        let mut below = cell.below;
        let mut cells = Vec::new();
        for part in self.counted {
            let Part { count, low, high } = part;
            let cell = Cell { low, high, below, count };
            if wanted.iter().any(|&rank| cell.holds(rank)) {
                cells.push(cell);
            }
            below += count;
        }
        cells
    }
}
