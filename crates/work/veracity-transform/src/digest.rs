//! Hashes as text.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// `sha256:` and the hash of the bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
