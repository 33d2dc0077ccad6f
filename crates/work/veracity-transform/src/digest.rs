//! Hashes as text.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use veracity_onnx::{Model, Weight};

/// `sha256:` and the hash of the bytes.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    text(&Sha256::digest(bytes))
}

/// The hash of a model: of the bytes of its file with all weights inside, whatever its size.
pub fn model_sha256(model: &Model) -> String {
    ModelHash::body(model).finish(model)
}

/// The hash of a model whose keys are not known yet.
pub(crate) struct ModelHash(Sink);

impl ModelHash {
    /// Hashes everything up to the end of the main graph.
    pub(crate) fn body(model: &Model) -> Self {
        let mut sink = Sink(Sha256::new());
        // A hash takes everything.
        let _ = model.encode_body(&mut sink);
        Self(sink)
    }

    /// Hashes the rest of a model with the same body.
    pub(crate) fn finish(mut self, model: &Model) -> String {
        let _ = model.encode_rest(&mut self.0);
        text(&self.0.0.finalize())
    }
}

fn text(hash: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in hash {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

struct Sink(Sha256);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Bytes by where they lie: the same place is the same content as long as it is held.
pub(crate) type Place = (usize, usize);

pub(crate) fn place(bytes: &Bytes) -> Place {
    (bytes.as_ptr() as usize, bytes.len())
}

/// Hashes of elements, each computed once.
#[derive(Debug, Default)]
pub(crate) struct Hashes {
    known: HashMap<Place, String>,
}

impl Hashes {
    /// Hashes elements ahead, on all cores: they must be held as long as this is used.
    pub(crate) fn of<'b>(all: impl IntoIterator<Item = &'b Bytes>) -> Self {
        let mut wanted: Vec<&Bytes> = all.into_iter().collect();
        wanted.sort_by_key(|bytes| std::cmp::Reverse(place(bytes)));
        wanted.dedup_by_key(|bytes| place(bytes));
        wanted.sort_by_key(|bytes| std::cmp::Reverse(bytes.len()));
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let known = std::thread::scope(|scope| {
            let hash = |first: usize| {
                let share = wanted.iter().skip(first).step_by(threads);
                share.map(|bytes| (place(bytes), sha256(bytes))).collect::<Vec<_>>()
            };
            let workers: Vec<_> =
                (1..threads).map(|first| scope.spawn(move || hash(first))).collect();
            let mut known: HashMap<Place, String> = hash(0).into_iter().collect();
            for worker in workers {
                // A worker that is gone leaves its share to `weight`.
                known.extend(worker.join().unwrap_or_default());
            }
            known
        });
        Self { known }
    }

    /// The hash of the elements of a weight: of its bytes, or of its whole message where they are
    /// a list of numbers.
    pub(crate) fn weight(&self, weight: &Weight) -> String {
        match weight.stored() {
            Some(bytes) => self.bytes(bytes),
            None => sha256(&weight.to_bytes()),
        }
    }

    /// The hash of elements.
    pub(crate) fn bytes(&self, bytes: &Bytes) -> String {
        self.known.get(&place(bytes)).cloned().unwrap_or_else(|| sha256(bytes))
    }
}

#[cfg(test)]
mod tests {
    use veracity_onnx::GraphBuilder;

    use super::*;

    #[test]
    fn a_model_has_the_hash_of_its_file() {
        let model = GraphBuilder::new("graph", 20).finish().unwrap();
        assert_eq!(model_sha256(&model), sha256(&model.to_bytes().unwrap()));
    }

    #[test]
    fn hashes_made_ahead_are_those_made_on_the_spot() {
        let all: Vec<Bytes> = (0..9_u8).map(|one| Bytes::from(vec![one; 100])).collect();
        let ahead = Hashes::of(&all);
        assert_eq!(ahead.known.len(), all.len());
        for bytes in &all {
            assert_eq!(ahead.bytes(bytes), sha256(bytes));
        }
    }
}
