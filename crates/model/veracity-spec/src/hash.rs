//! Hashes of files, by streaming: a file of any size takes one fixed buffer.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::str::FromStr;

use md5::Md5;
use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use veracity_diag::{Diagnostic, Place, Result, codes};

/// A hash of `N` bytes, shown as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sum<const N: usize>([u8; N]);

/// A SHA-256 hash.
pub type Sha256Sum = Sum<32>;

/// An MD5 hash. LEAPP demands one beside each model; it protects nothing.
pub type Md5Sum = Sum<16>;

impl<const N: usize> Sum<N> {
    /// All zero: a hash that is still to be computed.
    pub const ZERO: Self = Self([0; N]);

    pub(crate) fn from_bytes(bytes: [u8; N]) -> Self {
        Self(bytes)
    }
}

impl<const N: usize> fmt::Display for Sum<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const N: usize> fmt::Debug for Sum<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> Serialize for Sum<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The text is not a hash of the right length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotASum;

impl<const N: usize> FromStr for Sum<N> {
    type Err = NotASum;

    fn from_str(text: &str) -> std::result::Result<Self, NotASum> {
        if text.len() != 2 * N {
            return Err(NotASum);
        }
        let mut sum = [0; N];
        for (byte, pair) in sum.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digit = |byte: u8| char::from(byte).to_digit(16).ok_or(NotASum);
            *byte = u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).or(Err(NotASum))?;
        }
        Ok(Self(sum))
    }
}

/// What a file holds, as far as hashes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSums {
    /// Length in bytes.
    pub size: u64,
    /// SHA-256 of the content.
    pub sha256: Sha256Sum,
    /// MD5 of the content.
    pub md5: Md5Sum,
}

/// Bytes read at a time: large enough that system calls do not matter, small enough for any stack
/// of threads.
const BUFFER_BYTES: usize = 256 << 10;

/// Hashes a file in one read. `progress` hears how many bytes were read, piece by piece.
pub fn hash_file(path: &Path, progress: &mut dyn FnMut(u64)) -> Result<FileSums> {
    let unreadable = |error: io::Error| {
        Diagnostic::error(codes::FILE_UNREADABLE, format!("the file cannot be read: {error}"))
            .at(Place::file(path.display().to_string()))
    };
    let file = File::open(path).map_err(unreadable)?;
    Ok(copy_hashing(file, &mut io::sink(), progress).map_err(unreadable)?)
}

/// Hashes bytes that are already in memory.
pub fn hash_bytes(bytes: &[u8]) -> FileSums {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    hasher.finish()
}

/// Copies everything and hashes it on the way.
pub(crate) fn copy_hashing(
    mut from: impl Read,
    to: &mut dyn Write,
    progress: &mut dyn FnMut(u64),
) -> io::Result<FileSums> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = match from.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        hasher.update(&buffer[..count]);
        to.write_all(&buffer[..count])?;
        progress(count as u64);
    }
}

#[derive(Default)]
struct Hasher {
    size: u64,
    sha256: Sha256,
    md5: Md5,
}

impl Hasher {
    fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.sha256.update(bytes);
        self.md5.update(bytes);
    }

    fn finish(self) -> FileSums {
        FileSums {
            size: self.size,
            sha256: Sum(self.sha256.finalize().into()),
            md5: Sum(self.md5.finalize().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_standards() {
        let content = b"abc".repeat(BUFFER_BYTES);
        for (content, sha256, md5) in [
            (
                &b"abc"[..],
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                "900150983cd24fb0d6963f7d28e17f72",
            ),
            (
                &b""[..],
                "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
                "d41d8cd98f00b204e9800998ecf8427e",
            ),
        ] {
            let sums = copy_hashing(content, &mut io::sink(), &mut |_| {}).unwrap();
            assert_eq!(
                (sums.sha256.to_string(), sums.md5.to_string()),
                (sha256.into(), md5.into())
            );
        }
        let mut copied = Vec::new();
        let mut heard = 0;
        let sums = copy_hashing(&content[..], &mut copied, &mut |count| heard += count).unwrap();
        assert_eq!((sums.size, heard), (content.len() as u64, content.len() as u64));
        assert_eq!(copied, content);
    }

    #[test]
    fn only_hexadecimal_of_the_right_length_is_a_sum() {
        assert_eq!(
            "D41D8CD98F00B204E9800998ECF8427E".parse::<Md5Sum>().unwrap().to_string(),
            "d41d8cd98f00b204e9800998ecf8427e"
        );
        for text in
            ["", "d4", "zz1d8cd98f00b204e9800998ecf8427e", "d41d8cd98f00b204e9800998ecf8427é"]
        {
            assert_eq!(text.parse::<Md5Sum>(), Err(NotASum), "{text:?}");
        }
    }
}
