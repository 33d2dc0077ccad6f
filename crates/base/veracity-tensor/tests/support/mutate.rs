//! Turns valid files into almost valid ones, for tests of readers.
//!
//! A test takes a few valid seeds, draws [`mutations`], and feeds [`mutate`]d bytes to its reader.
//! The mutations know what breaks readers: lengths in binary and in text, cuts, repeats, parts of
//! another file. This file needs only `proptest`; a test of another crate includes it by path.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::Config;

/// Numbers at which length arithmetic goes wrong.
const LENGTHS: [u64; 14] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x00ff_ffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 40,
    0x1fff_ffff_ffff_ffff,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// One way to damage a file. Positions scale with the file.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    /// Flips one bit.
    FlipBit(Index, u8),
    /// Overwrites bytes by a little-endian or big-endian number.
    Number { at: Index, value: u64, width: usize, big_endian: bool },
    /// Replaces the next decimal number of a text.
    Decimal(Index, u64),
    /// Ends the file early.
    Truncate(Index),
    /// Takes out some bytes.
    Remove(Index, usize),
    /// Puts in some bytes.
    Insert(Index, Vec<u8>),
    /// Copies a part of the file to another place in it.
    Repeat { from: Index, to: Index, len: usize },
    /// Copies a part of another seed over this one.
    Splice { from: Index, to: Index, len: usize },
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<Index>;
    let number = || prop_oneof![prop::sample::select(LENGTHS.to_vec()), 0..300_u64];
    prop_oneof![
        3 => (index(), 0..8_u8).prop_map(|(at, bit)| Mutation::FlipBit(at, bit)),
        3 => (index(), number(), prop::sample::select(vec![1, 2, 4, 8]), any::<bool>()).prop_map(
            |(at, value, width, big_endian)| Mutation::Number { at, value, width, big_endian }
        ),
        2 => (index(), number()).prop_map(|(at, value)| Mutation::Decimal(at, value)),
        1 => index().prop_map(Mutation::Truncate),
        1 => (index(), 1..64_usize).prop_map(|(at, len)| Mutation::Remove(at, len)),
        1 => (index(), prop::collection::vec(any::<u8>(), 1..64))
            .prop_map(|(at, bytes)| Mutation::Insert(at, bytes)),
        1 => (index(), index(), 1..256_usize)
            .prop_map(|(from, to, len)| Mutation::Repeat { from, to, len }),
        1 => (index(), index(), 1..256_usize)
            .prop_map(|(from, to, len)| Mutation::Splice { from, to, len }),
    ]
}

/// A few mutations; most bugs need only one.
pub(crate) fn mutations() -> impl Strategy<Value = Vec<Mutation>> {
    prop::collection::vec(mutation(), 1..5)
}

/// The seed after all mutations; `other` is where splices come from.
pub(crate) fn mutate(seed: &[u8], other: &[u8], mutations: &[Mutation]) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for mutation in mutations {
        apply(&mut bytes, other, mutation);
    }
    bytes
}

fn apply(bytes: &mut Vec<u8>, other: &[u8], mutation: &Mutation) {
    if bytes.is_empty() {
        return;
    }
    let position = |index: &Index| index.index(bytes.len());
    match mutation {
        Mutation::FlipBit(at, bit) => {
            let at = position(at);
            bytes[at] ^= 1 << bit;
        }
        Mutation::Number { at, value, width, big_endian } => {
            let mut number = value.to_le_bytes()[..*width].to_vec();
            if *big_endian {
                number.reverse();
            }
            let at = position(at);
            overwrite(bytes, at, &number);
        }
        Mutation::Decimal(at, value) => {
            let at = position(at);
            replace_decimal(bytes, at, *value);
        }
        Mutation::Truncate(at) => {
            let at = position(at);
            bytes.truncate(at);
        }
        Mutation::Remove(at, len) => {
            let at = position(at);
            bytes.drain(at..(at + len).min(bytes.len()));
        }
        Mutation::Insert(at, new) => {
            let at = position(at);
            bytes.splice(at..at, new.iter().copied());
        }
        Mutation::Repeat { from, to, len } => {
            let part = part(bytes, *from, *len);
            let to = position(to);
            bytes.splice(to..to, part);
        }
        Mutation::Splice { from, to, len } => {
            let part = part(other, *from, *len);
            let to = position(to);
            overwrite(bytes, to, &part);
        }
    }
}

fn overwrite(bytes: &mut [u8], at: usize, new: &[u8]) {
    let len = new.len().min(bytes.len() - at);
    bytes[at..at + len].copy_from_slice(&new[..len]);
}

fn part(bytes: &[u8], from: Index, len: usize) -> Vec<u8> {
    if bytes.is_empty() {
        return Vec::new();
    }
    let from = from.index(bytes.len());
    bytes[from..(from + len).min(bytes.len())].to_vec()
}

/// Replaces the first run of digits after `at`.
fn replace_decimal(bytes: &mut Vec<u8>, at: usize, value: u64) {
    let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|skip| at + skip) else {
        return;
    };
    let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + digits, value.to_string().into_bytes());
}

/// How long to fuzz: `VERACITY_FUZZ_CASES` cases a test, few when it is not set.
pub(crate) fn config() -> Config {
    let cases = match std::env::var("VERACITY_FUZZ_CASES") {
        Ok(count) => count.parse().expect("VERACITY_FUZZ_CASES is a number"),
        Err(_) => 200,
    };
    // The failing case is printed in full; a file of seeds would only litter the sources.
    Config { cases, failure_persistence: None, ..Config::default() }
}

/// Runs a reader and fails when it takes longer than any file of a few kilobytes may.
pub(crate) fn in_time<T>(read: impl FnOnce() -> T) -> T {
    const LIMIT: Duration = Duration::from_secs(2);
    let start = Instant::now();
    let result = read();
    let taken = start.elapsed();
    assert!(taken < LIMIT, "the reader took {taken:?} for one small file");
    result
}
