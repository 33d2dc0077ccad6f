//! Results that are looked at while they change: what `veracity view` shows.
//!
//! A [`Watched`] reads results, or the proof of a bundle, again when their files change. A file that
//! cannot be read, because somebody is just writing it, leaves the page as it was and says so. What a
//! page is about is checked when it is made: a proof about other files is called stale.

mod marks;

use std::path::{Path, PathBuf};

use veracity_diag::{Refusal, Result};
use veracity_prove::Standing;
use veracity_report::html;
use veracity_results::Proof;
use veracity_spec::Bundle;
pub use veracity_view::{Content, Frame, Server};

use crate::reports::drawing::shown;
use crate::reports::{self, Results};
use marks::Marks;

/// Results, and the page that was made of them last.
#[derive(Debug)]
pub struct Watched {
    path: PathBuf,
    shown: Shown,
    /// Why the files cannot be read now.
    broken: Option<String>,
    marks: Marks,
}

/// What can be said about files as they were when they were read.
#[derive(Debug)]
struct Shown {
    page: String,
    proof: Option<Box<Proof>>,
    /// What must be known before the page is believed.
    caution: Option<String>,
    /// The files that it was made of.
    files: Vec<PathBuf>,
}

impl Watched {
    /// Reads a file of results or a bundle for the first time; refused when there is nothing to show.
    pub fn open(path: &Path) -> Result<Self> {
        // Before reading: what changes while it is read is read again.
        let first = Marks::of(&[path.to_owned()]);
        let shown = read(path)?;
        let marks = first.with(&shown.files);
        Ok(Self { path: path.to_owned(), shown, broken: None, marks })
    }

    /// Looks whether the files changed. Gives whether there is something else to show now.
    pub fn look(&mut self) -> bool {
        let now = Marks::of(&self.files());
        if now == self.marks && self.marks.is_settled() {
            return false;
        }
        let before = self.frame();
        match read(&self.path) {
            Ok(shown) => {
                self.marks = now.with(&shown.files);
                (self.shown, self.broken) = (shown, None);
            }
            Err(refusal) => {
                self.marks = now;
                self.broken = Some(reason(&refusal));
            }
        }
        self.frame() != before
    }

    /// The page, with what must be known about it.
    pub fn frame(&self) -> Frame {
        let broken = self.broken.as_ref().map(|reason| {
            format!("this is the page of before: the files cannot be read now: {reason}")
        });
        Frame {
            label: self.path.display().to_string(),
            page: self.shown.page.clone(),
            notice: broken.or_else(|| self.shown.caution.clone()),
        }
    }

    /// The proof that the page is about, if it is about one.
    pub fn proof(&self) -> Option<&Proof> {
        self.shown.proof.as_deref()
    }

    fn files(&self) -> Vec<PathBuf> {
        std::iter::once(&self.path).chain(&self.shown.files).cloned().collect()
    }
}

fn reason(refusal: &Refusal) -> String {
    refusal.diagnostics().first().map(ToString::to_string).unwrap_or_default()
}

fn read(path: &Path) -> Result<Shown> {
    let is_bundle =
        path.is_dir() || path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml");
    if is_bundle { read_bundle(&Bundle::open(path)?) } else { read_results(path) }
}

fn read_results(path: &Path) -> Result<Shown> {
    let results = reports::read(path)?;
    let page = reports::page(&results);
    Ok(Shown { page, proof: proof(results), caution: None, files: Vec::new() })
}

fn proof(results: Results) -> Option<Box<Proof>> {
    match results {
        Results::Proof(proof) => Some(proof),
        _ => None,
    }
}

fn read_bundle(bundle: &Bundle) -> Result<Shown> {
    let files = files(bundle);
    let standing = veracity_prove::standing(bundle)?;
    if standing == Standing::Missing {
        return Ok(Shown { page: unproved(bundle), proof: None, caution: None, files });
    }
    let shown = read_results(bundle.yaml_path())?;
    let caution = match standing {
        Standing::Stale(change) => Some(format!("the proof is stale: {change}")),
        // What the description says about its files holds only while it is true.
        _ => bundle.verify().err().map(|refusal| {
            format!("the proof is about other files than those that are here: {}", reason(&refusal))
        }),
    };
    Ok(Shown { caution, files, ..shown })
}

/// Every file that the page depends on.
fn files(bundle: &Bundle) -> Vec<PathBuf> {
    let spec = bundle.spec();
    let models = spec.nodes.iter().filter_map(|node| node.model.as_ref()).map(|model| &model.path);
    let block = spec.veracity.iter();
    let others = block.flat_map(|block| block.files.keys().chain(&block.proof));
    let paths = models.chain(others).map(|path| bundle.root().join(path.as_str()));
    std::iter::once(bundle.yaml_path().to_owned()).chain(paths).collect()
}

fn unproved(bundle: &Bundle) -> String {
    let name = bundle.yaml_path().file_stem().unwrap_or_default().to_string_lossy();
    let hint = format!("`veracity check {} --save` makes one.", bundle.root().display());
    // A bundle that cannot be drawn can still be shown to have no proof.
    let drawing = crate::picture(bundle).ok().map(|picture| shown(&picture.layout));
    html::unproved(&name, &hint, drawing.as_ref())
}
