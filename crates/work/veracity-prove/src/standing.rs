//! Whether a bundle still is what its proof is about.

use veracity_diag::Result;
use veracity_results::{Origin, Proof, Subject, Verdict};
use veracity_spec::Bundle;

use crate::store::of_bundle;
use crate::subject::subject;

/// What the proof of a bundle is worth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// There is none.
    Missing,
    /// It is about other files; what differs is said.
    Stale(String),
    /// It does not say that the bundle is right.
    Negative(Verdict),
    /// It says that runs of the bundle repeat, and nothing about the Python code.
    OnlyRepeats,
    /// It says that the bundle is right on everything compared, under so many assumptions.
    Conditional(usize),
    /// It says that the bundle is right, and the bundle is the one it is about.
    Good,
}

/// Says what the proof of a bundle is worth, by what the bundle records about its files. A proof
/// that cannot be read is refused.
pub fn standing(bundle: &Bundle) -> Result<Standing> {
    let has_proof = bundle.spec().veracity.as_ref().is_some_and(|block| block.proof.is_some());
    if !has_proof {
        return Ok(Standing::Missing);
    }
    let proof = of_bundle(bundle)?;
    Ok(judge_standing(&proof, &subject(bundle)))
}

pub(crate) fn judge_standing(proof: &Proof, now: &Subject) -> Standing {
    if let Some(change) = first_change(&proof.subject, now) {
        return Standing::Stale(change);
    }
    match proof.verdict {
        found if found.holds() && proof.reference.origin == Origin::Runtime => {
            Standing::OnlyRepeats
        }
        Verdict::Conditional => Standing::Conditional(proof.assumptions.len()),
        Verdict::Proved => Standing::Good,
        other => Standing::Negative(other),
    }
}

/// What differs first between what was proved and what is there; the name of a bundle may change.
fn first_change(proved: &Subject, now: &Subject) -> Option<String> {
    let paths = |subject: &Subject| -> Vec<(String, String)> {
        let models = subject.models.iter().map(|model| (model.path.clone(), model.sha256.clone()));
        let files = subject.files.iter().map(|(path, sha256)| (path.clone(), sha256.clone()));
        models.chain(files).collect()
    };
    let (before, after) = (paths(proved), paths(now));
    if let Some((path, _)) = after.iter().find(|file| !before.contains(file)) {
        return Some(format!("`{path}` is not the file that was proved"));
    }
    if let Some((path, _)) = before.iter().find(|file| !after.contains(file)) {
        return Some(format!("`{path}` was proved and is not there any more"));
    }
    let same = proved.description_sha256 == now.description_sha256;
    (!same).then(|| "nodes, ports, wiring or settings are not those that were proved".to_owned())
}
