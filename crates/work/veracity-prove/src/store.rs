//! Proofs as files: reading them, putting them into a bundle, and what becomes of them when a
//! bundle is changed on purpose.

use std::path::Path;

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_results::{PROOF_SCHEMA_VERSION, Proof};
use veracity_runtime::side_files;
use veracity_spec::Bundle;

use crate::standing::{Standing, standing};

/// Most bytes that a proof may have. A proof takes about 2 kB for each port and sample.
const MAX_PROOF_BYTES: u64 = 256 << 20;

/// Reads a proof: a file, or that of a bundle.
pub fn read(path: &Path) -> Result<Proof> {
    let is_file = path.extension().is_some_and(|extension| extension == "json");
    if is_file { read_file(path) } else { of_bundle(&Bundle::open(path)?) }
}

/// The proof of a bundle.
pub fn of_bundle(bundle: &Bundle) -> Result<Proof> {
    let block = bundle.spec().veracity.as_ref();
    let Some(path) = block.and_then(|block| block.proof.as_ref()) else {
        let place = Place::file(bundle.yaml_path().display().to_string());
        return Err(Diagnostic::error(codes::PROOF_MISSING, "the bundle has no proof")
            .at(place)
            .hint("`veracity check --save` makes one")
            .into());
    };
    read_file(&path.resolve(bundle.root())?)
}

fn read_file(path: &Path) -> Result<Proof> {
    let place = Place::file(path.display().to_string());
    let problem = |code, message: String| Diagnostic::error(code, message).at(place.clone());
    let unreadable = |error: std::io::Error| {
        problem(codes::FILE_UNREADABLE, format!("the proof cannot be read: {error}"))
    };
    let size = std::fs::metadata(path).map_err(unreadable)?.len();
    if size > MAX_PROOF_BYTES {
        return Err(problem(codes::FILE_TOO_LARGE, format!("a proof of {size} bytes")).into());
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    refuse_newer(&text, &place)?;
    serde_json::from_str(&text).map_err(|error| {
        let place = place.clone().with_position(position(error.line()), position(error.column()));
        Diagnostic::error(codes::PROOF_UNREADABLE, format!("not a proof: {error}")).at(place).into()
    })
}

fn position(number: usize) -> u32 {
    u32::try_from(number.max(1)).unwrap_or(u32::MAX)
}

/// A proof of another major version may mean something else by the same words.
fn refuse_newer(text: &str, place: &Place) -> Result<()> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema_version: String,
    }
    let Ok(head) = serde_json::from_str::<Head>(text) else { return Ok(()) };
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(&head.schema_version) == major(PROOF_SCHEMA_VERSION) {
        return Ok(());
    }
    let found = head.schema_version;
    let message = format!("a proof of version {found:?}; this reads {PROOF_SCHEMA_VERSION}");
    Err(Diagnostic::error(codes::PROOF_UNREADABLE, message).at(place.clone()).into())
}

/// Puts a proof into its bundle. A crash leaves the bundle without proof rather than with half of
/// one.
pub fn save(bundle: &Bundle, proof: &Proof) -> Result<()> {
    bundle.attach_proof(&to_json(proof)?, &side_files(bundle)?)
}

/// A proof as it stands in its file.
pub fn to_json(proof: &Proof) -> Result<Vec<u8>> {
    serde_json::to_vec_pretty(proof).map_err(|error| {
        let message = format!("the proof cannot be written: {error}");
        Diagnostic::error(codes::FILE_UNWRITABLE, message).into()
    })
}

/// What sealing a bundle found.
#[derive(Clone, Debug)]
pub struct Sealed {
    /// Files whose hash was recorded anew.
    pub changed: Vec<String>,
    /// What the proof is worth now.
    pub proof: Standing,
}

/// Records the hashes of a bundle's files as they are now, after a deliberate change. The proof
/// stays what it was, so that it is stale when anything changed.
pub fn seal(bundle: &Bundle) -> Result<Sealed> {
    let changed = bundle.seal(&side_files(bundle)?)?;
    let proof = standing(&Bundle::open(bundle.yaml_path())?)?;
    Ok(Sealed { changed: changed.iter().map(ToString::to_string).collect(), proof })
}
