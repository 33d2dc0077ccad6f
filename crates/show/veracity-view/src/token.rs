//! Words that cannot be guessed.

use veracity_diag::{Diagnostic, Result, codes};

/// Bytes of a word; 128 bits are beyond guessing.
const BYTES: usize = 16;

/// A new word of hexadecimal digits, from the random numbers of the system.
pub(crate) fn token() -> Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| {
        let message = format!("the system gives no random numbers: {error}");
        Diagnostic::error(codes::VIEW_UNSERVED, message)
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

/// Whether two words are equal, in a time that does not tell where they differ.
pub(crate) fn equal(left: &str, right: &str) -> bool {
    let differing = left.bytes().zip(right.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    left.len() == right.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_long_and_never_the_same() {
        let (one, other) = (token().unwrap(), token().unwrap());
        assert_eq!(one.len(), 2 * BYTES);
        assert!(one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn only_the_whole_word_is_equal() {
        for (left, right, same) in
            [("ab", "ab", true), ("ab", "ac", false), ("ab", "a", false), ("", "a", false)]
        {
            assert_eq!(equal(left, right), same, "{left:?} {right:?}");
        }
    }
}
