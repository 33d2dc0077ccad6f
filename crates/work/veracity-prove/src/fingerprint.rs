//! Whether two runs gave the same bytes, without keeping both.

/// Tells different bytes apart by chance only; nobody is kept from forging it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u64; LANES]);

/// Independent sums, so that the processor can work on several at once.
const LANES: usize = 4;
const WORD: usize = size_of::<u64>();
/// An odd number with its bits well mixed: 2^64 divided by the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// A fingerprint of bytes, at about memory speed.
pub fn fingerprint(bytes: &[u8]) -> Fingerprint {
    let mut lanes = [bytes.len() as u64; LANES];
    let mut blocks = bytes.chunks_exact(LANES * WORD);
    for block in &mut blocks {
        absorb(&mut lanes, block);
    }
    let mut rest = [0; LANES * WORD];
    rest[..blocks.remainder().len()].copy_from_slice(blocks.remainder());
    absorb(&mut lanes, &rest);
    Fingerprint(lanes)
}

fn absorb(lanes: &mut [u64; LANES], block: &[u8]) {
    for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(WORD)) {
        let word = u64::from_le_bytes(word.try_into().expect("a word has eight bytes"));
        *lane = (*lane ^ word).wrapping_mul(MIX).rotate_left(29);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_and_any_change_of_length_shows() {
        let bytes: Vec<u8> = (0..200_u8).collect();
        let original = fingerprint(&bytes);
        for position in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[position] ^= 1;
            assert_ne!(fingerprint(&changed), original, "{position}");
            assert_ne!(fingerprint(&bytes[..position]), original, "{position}");
        }
        assert_ne!(fingerprint(&[0; 32]), fingerprint(&[0; 64]));
    }
}
