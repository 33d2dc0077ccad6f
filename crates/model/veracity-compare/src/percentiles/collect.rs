//! Collects errors as values with counts.
//!
//! Errors of rounded numbers repeat: a narrow range holds millions of a few values. Each thread
//! therefore counts repetitions in a small table, and only values that fall out of it take
//! memory.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Values a thread counts at a time.
const TABLE: usize = 256;

/// Entries a thread gathers before it takes the lock.
const BATCH: usize = 4096;

/// Below this many entries sorting is faster than dividing.
const SMALL: usize = 64;

/// The bits of an error, and how often it was seen. The same error may have several entries.
pub(super) type Entry = (u64, u64);

/// What all threads collected; nothing once it became too much.
pub(super) struct Collection {
    entries: Mutex<Option<Vec<Entry>>>,
    limit: usize,
}

impl Collection {
    /// Room for that many entries of 16 bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { entries: Mutex::new(Some(Vec::new())), limit }
    }

    /// The entries, unless they were too many.
    pub(super) fn into_entries(self) -> Option<Vec<Entry>> {
        self.entries.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<Entry>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_in(&self, batch: &mut Vec<Entry>) {
        let mut entries = self.lock();
        match &mut *entries {
            Some(kept) if kept.len() + batch.len() <= self.limit => kept.append(batch),
            _ => *entries = None,
        }
        batch.clear();
    }
}

/// The part of one thread.
pub(super) struct Collector {
    table: Box<[Entry; TABLE]>,
    batch: Vec<Entry>,
}

impl Collector {
    /// Nothing collected yet.
    pub(super) fn new() -> Self {
        Self { table: Box::new([(0, 0); TABLE]), batch: Vec::new() }
    }

    /// Adds an error.
    pub(super) fn add(&mut self, bits: u64, collection: &Collection) {
        // Fibonacci hashing: neighbouring values differ in few bits, wherever those are.
        let slot = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - TABLE.ilog2());
        let entry = &mut self.table[usize::try_from(slot).unwrap_or(0) % TABLE];
        if entry.0 == bits {
            entry.1 += 1;
            return;
        }
        let evicted = std::mem::replace(entry, (bits, 1));
        if evicted.1 > 0 {
            self.batch.push(evicted);
            if self.batch.len() == BATCH {
                collection.take_in(&mut self.batch);
            }
        }
    }

    /// Hands over what is left.
    pub(super) fn finish(&mut self, collection: &Collection) {
        self.batch.extend(self.table.iter().filter(|entry| entry.1 > 0));
        *self.table = [(0, 0); TABLE];
        collection.take_in(&mut self.batch);
    }
}

/// Finds the errors of some ranks among entries of which `below` smaller errors are left out.
/// Ranks are sorted; those that the entries do not hold are passed over.
pub(super) fn pick(entries: &mut [Entry], below: u64, ranks: &[u64], found: &mut Vec<(u64, f64)>) {
    if ranks.is_empty() {
        return;
    }
    if entries.len() <= SMALL {
        entries.sort_unstable();
        walk(entries, below, ranks, found);
        return;
    }
    // Halving keeps the depth at the logarithm of the number of entries.
    let (left, middle, right) = entries.select_nth_unstable(entries.len() / 2);
    let start = below + left.iter().map(|entry| entry.1).sum::<u64>();
    let (lower, rest) = ranks.split_at(ranks.partition_point(|&rank| rank < start));
    let end = start + middle.1;
    let (here, upper) = rest.split_at(rest.partition_point(|&rank| rank < end));
    pick(left, below, lower, found);
    walk(std::slice::from_ref(middle), start, here, found);
    pick(right, end, upper, found);
}

fn walk(sorted: &[Entry], below: u64, ranks: &[u64], found: &mut Vec<(u64, f64)>) {
    let mut start = below;
    for &(bits, count) in sorted {
        let held = ranks.iter().filter(|&&rank| rank >= start && rank - start < count);
        found.extend(held.map(|&rank| (rank, f64::from_bits(bits))));
        start += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_found_among_repeated_errors() {
        // 1000 errors of 300 values, more than the table and a small slice hold.
        let errors: Vec<u64> = (0..1000_u64).map(|index| index * index % 300 + 1).collect();
        let collection = Collection::new(1000);
        let mut collector = Collector::new();
        for &bits in &errors {
            collector.add(bits, &collection);
        }
        collector.finish(&collection);
        let mut entries = collection.into_entries().unwrap();
        assert_eq!(entries.iter().map(|entry| entry.1).sum::<u64>(), 1000);

        let mut sorted = errors;
        sorted.sort_unstable();
        let ranks: Vec<u64> = (100..1100).collect();
        let mut found = Vec::new();
        pick(&mut entries, 100, &ranks, &mut found);
        let expected = (100..).zip(sorted).map(|(rank, bits)| (rank, f64::from_bits(bits)));
        assert_eq!(found, expected.collect::<Vec<_>>());
    }

    #[test]
    fn too_many_entries_are_given_up_and_repetitions_are_not_entries() {
        for (values, fits) in [(10, true), (1000, false)] {
            let collection = Collection::new(500);
            let mut collector = Collector::new();
            for index in 0..100_000_u64 {
                collector.add(index % values + 1, &collection);
            }
            collector.finish(&collection);
            assert_eq!(collection.into_entries().is_some(), fits, "{values}");
        }
    }
}
