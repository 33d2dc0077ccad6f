//! Compares the files of a bundle with what it says about them.

use std::collections::BTreeMap;
use std::fs;

use veracity_diag::{Diagnostic, Place, Refusal, Reporter, Result, codes};

use crate::{Bundle, BundlePath, FileRecord, FileSums, Model, hash_file};

impl Bundle {
    /// Checks everything that can be checked without opening a model: files, hashes, initial
    /// values. Gives the warnings, those of reading included.
    pub fn verify(&self) -> Result<Vec<Diagnostic>> {
        let mut reporter = Reporter::new();
        for warning in self.warnings() {
            reporter.report(warning.clone());
        }
        for node in self.spec().nodes_without_model() {
            reporter.report(self.model_absent(&node.name, Diagnostic::warning));
        }
        for warning in reporter.absorb(self.verify_files()).unwrap_or_default() {
            reporter.report(warning);
        }
        // A file that cannot be reached was just reported.
        let reachable = |path: &BundlePath| path.resolve(self.root()).is_ok();
        if self.spec().initial_values.as_ref().is_some_and(reachable) {
            let values = reporter.absorb(self.initial_values()).unwrap_or_default();
            for warning in values.warnings {
                reporter.report(warning);
            }
        }
        reporter.finish()
    }

    /// Refuses a bundle with a node that cannot be run.
    pub fn require_models(&self) -> Result<()> {
        let mut reporter = Reporter::new();
        for node in self.spec().nodes_without_model() {
            reporter.report(self.model_absent(&node.name, Diagnostic::error));
        }
        reporter.finish().map(|_| ())
    }

    fn model_absent(
        &self,
        node: &str,
        severity: fn(veracity_diag::Code, String) -> Diagnostic,
    ) -> Diagnostic {
        severity(codes::MODEL_ABSENT, format!("node {node:?} has no model"))
            .at(self.places().node(node).or(&Place::node(node)))
            .hint("it was exported without a backend: export it with one, or leave it out")
    }

    /// Hashes every file that the bundle names and compares. Gives the warnings.
    pub fn verify_files(&self) -> Result<Vec<Diagnostic>> {
        self.verify_files_with(&mut |_| {})
    }

    /// Like [`Bundle::verify_files`]; `progress` hears how many bytes were read, piece by piece.
    pub fn verify_files_with(&self, progress: &mut dyn FnMut(u64)) -> Result<Vec<Diagnostic>> {
        let mut reporter = Reporter::new();
        for (path, expectations) in self.expectations() {
            let place = expectations.place();
            let sums = path
                .resolve(self.root())
                .and_then(|file| hash_file(&file, progress))
                .map_err(|refusal| move_to(&place, refusal));
            let Some(sums) = reporter.absorb(sums) else {
                continue;
            };
            expectations.compare(&path, &sums, &mut reporter);
        }
        reporter.finish()
    }

    /// Bytes that [`Bundle::verify_files`] has to read, for a progress bar.
    pub fn bytes_to_verify(&self) -> u64 {
        let size = |path: &BundlePath| {
            fs::metadata(self.root().join(path.as_str())).map_or(0, |file| file.len())
        };
        self.expectations().keys().map(size).sum()
    }

    /// What the bundle says a file must be: `None` when it does not list the file. For side files
    /// that only a reader of models can find, such as external data of ONNX.
    pub fn recorded(&self, path: &BundlePath) -> Option<FileRecord> {
        self.spec().veracity.as_ref()?.files.get(path).copied()
    }

    /// Every file that is listed or used.
    pub fn named_files(&self) -> Vec<BundlePath> {
        self.expectations().into_keys().collect()
    }

    /// Every file that is listed or used, with all that is said about it.
    fn expectations(&self) -> BTreeMap<BundlePath, Expectations<'_>> {
        let block = self.spec().veracity.as_ref();
        let mut files: BTreeMap<BundlePath, Expectations<'_>> = BTreeMap::new();
        for node in &self.spec().nodes {
            if let Some(model) = &node.model {
                let place = self.places().model(&node.name);
                files.entry(model.path.clone()).or_default().models.push((model, place));
            }
        }
        let mut uses = vec![(self.spec().initial_values.as_ref(), self.places().initial_values())];
        if let Some(block) = block {
            for (path, record) in &block.files {
                let listed = Some((*record, self.places().listed_file(path)));
                files.entry(path.clone()).or_default().listed = listed;
            }
            for path in [&block.samples, &block.proof] {
                let place = path.as_ref().map(|path| self.places().listed_file(path));
                uses.push((path.as_ref(), place.unwrap_or_default()));
            }
        }
        for (path, place) in uses {
            if let Some(path) = path {
                files.entry(path.clone()).or_default().used_at = Some(place);
            }
        }
        for expectations in files.values_mut() {
            expectations.must_be_listed = block.is_some();
        }
        files
    }
}

/// All that a bundle says about one file.
#[derive(Default)]
struct Expectations<'b> {
    models: Vec<(&'b Model, Place)>,
    listed: Option<(FileRecord, Place)>,
    used_at: Option<Place>,
    must_be_listed: bool,
}

impl Expectations<'_> {
    /// Where the file is named, preferably where it is used.
    fn place(&self) -> Place {
        let model = self.models.first().map(|(_, place)| place);
        let listed = self.listed.as_ref().map(|(_, place)| place);
        model.or(self.used_at.as_ref()).or(listed).cloned().unwrap_or_default()
    }

    fn compare(&self, path: &BundlePath, sums: &FileSums, reporter: &mut Reporter) {
        let before = reporter.diagnostics().len();
        for (model, place) in &self.models {
            let mismatch = if model.sha256 != sums.sha256 {
                Some(hash_mismatch(path, "SHA-256", model.sha256, sums.sha256))
            } else if model.md5 != sums.md5 {
                Some(hash_mismatch(path, "MD5", model.md5, sums.md5))
            } else {
                None
            };
            if let Some(diagnostic) = mismatch {
                reporter.report(diagnostic.at(place.clone()));
            }
        }
        // One changed file is one problem, however often its hash is recorded.
        if reporter.diagnostics().len() > before {
            return;
        }
        match &self.listed {
            Some((record, place)) if record.size != sums.size => {
                let message =
                    format!("`{path}` has {} bytes, not the recorded {}", sums.size, record.size);
                let diagnostic = Diagnostic::error(codes::FILE_SIZE_MISMATCH, message);
                reporter.report(diagnostic.at(place.clone()));
            }
            Some((record, place)) if record.sha256 != sums.sha256 => {
                let diagnostic = hash_mismatch(path, "SHA-256", record.sha256, sums.sha256);
                reporter.report(diagnostic.at(place.clone()));
            }
            None if self.must_be_listed => {
                let message = format!("`{path}` is not in the list of files");
                let diagnostic = Diagnostic::error(codes::HASH_MISSING, message)
                    .hint("`files` of `veracity` must name every file that the bundle uses");
                reporter.report(diagnostic.at(self.place()));
            }
            None if self.models.is_empty() => {
                let message = format!("`{path}` is not hashed: a change would go unnoticed");
                let diagnostic = Diagnostic::warning(codes::HASH_MISSING, message);
                reporter.report(diagnostic.at(self.place()));
            }
            Some(_) | None => {}
        }
    }
}

fn hash_mismatch<T: std::fmt::Display>(
    path: &BundlePath,
    hash: &str,
    expected: T,
    found: T,
) -> Diagnostic {
    let message = format!("`{path}` has {hash} {found}, not the recorded {expected}");
    Diagnostic::error(codes::HASH_MISMATCH, message).hint(
        "the file was changed or cut short after the bundle was made: get both anew, or \
             record a deliberate change with `veracity seal`",
    )
}

/// Points at where the bundle names a file, instead of at the file.
fn move_to(place: &Place, refusal: Refusal) -> Refusal {
    let moved =
        refusal.into_diagnostics().into_iter().map(|diagnostic| diagnostic.at(place.clone()));
    Refusal::from_errors_in(moved.collect())
        .expect("a refusal holds an error, and moving it keeps its severity")
}
