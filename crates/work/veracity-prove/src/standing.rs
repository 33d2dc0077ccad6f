//! Whether a bundle still is what its proof is about.

use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
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

fn judge_standing(proof: &Proof, now: &Subject) -> Standing {
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

/// What somebody wants of a proof before a bundle is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demand {
    /// Whether a verdict may rest on assumptions.
    pub accept_conditional: bool,
}

/// Refuses a bundle whose proof is missing, stale or negative, or rests on assumptions that nobody
/// accepted.
pub fn require(bundle: &Bundle, demand: &Demand) -> Result<()> {
    let standing = standing(bundle)?;
    let root = bundle.root().display();
    let again = format!("`veracity check {root} --save` proves it again");
    let (code, message, hint) = match standing {
        Standing::Good => return Ok(()),
        Standing::Conditional(_) if demand.accept_conditional => return Ok(()),
        Standing::Missing => (codes::PROOF_MISSING, "the bundle has no proof".to_owned(), again),
        Standing::Stale(change) => {
            (codes::PROOF_STALE, format!("the proof is stale: {change}"), again)
        }
        Standing::Negative(Verdict::Disproved) => (
            codes::PROOF_NEGATIVE,
            "the bundle was disproved".to_owned(),
            format!("`veracity check {root}` says why; fix it and export again"),
        ),
        Standing::Negative(_) => (
            codes::PROOF_NEGATIVE,
            "not everything in the bundle could be proved".to_owned(),
            again,
        ),
        Standing::OnlyRepeats => (
            codes::PROOF_NEGATIVE,
            "the proof shows that runs repeat, and nothing about the Python code".to_owned(),
            "export it from the Python code with Veracity, which records what the code computes"
                .to_owned(),
        ),
        Standing::Conditional(open) => (
            codes::PROOF_CONDITIONAL,
            format!("the bundle is right only under {}", assumptions(open)),
            format!(
                "`veracity check {root}` lists them with what would settle them; \
                 `--accept-conditional` (`accept_conditional=True`) takes them as they are"
            ),
        ),
    };
    let place = Place::file(bundle.yaml_path().display().to_string());
    Err(Refusal::from(Diagnostic::error(code, message).at(place).hint(hint)))
}

fn assumptions(open: usize) -> String {
    if open == 1 { "1 assumption".to_owned() } else { format!("{open} assumptions") }
}
