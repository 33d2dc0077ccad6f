//! Which files the models of a draft bring, and what they are called in the bundle.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use veracity_diag::{Place, Result};
use veracity_spec::{Backend, BundlePath, FileContent, Model, Node};

use super::{NodeDraft, require_file};

/// What the program of a node is called, after the node.
const PROGRAM_ENDING: &str = ".program.pt2";

/// Files of a bundle and where their content is now.
#[derive(Default)]
pub(super) struct Files(BTreeMap<BundlePath, PathBuf>);

impl Files {
    /// Adds the model of a node and what lies beside it.
    ///
    /// A model names its external data itself, so that two models may call different files alike.
    /// The second one then gets a folder of its own.
    pub(super) fn add(&mut self, node: &mut Node, draft: &NodeDraft) -> Result<()> {
        let (Some(model), Some(source)) = (&mut node.model, &draft.model) else {
            return Ok(());
        };
        let place = Place::node(&draft.name);
        let side = side_files(model, source).map_err(|refusal| refusal.within(&place))?;
        let mut added = located("", model.backend, draft, source, &side)?;
        if added.iter().any(|(path, from)| self.0.get(path).is_some_and(|old| old != from)) {
            added = located(&format!("{}/", draft.name), model.backend, draft, source, &side)?;
        }
        if let Some((path, _)) = added.first() {
            model.path = path.clone();
        }
        self.0.extend(added);
        Ok(())
    }

    /// What the writer takes.
    pub(super) fn into_contents(self) -> Vec<(BundlePath, FileContent)> {
        self.0.into_iter().map(|(path, source)| (path, FileContent::File(source))).collect()
    }
}

/// The model first, then its side files and its program, all below `folder`.
fn located(
    folder: &str,
    backend: Backend,
    draft: &NodeDraft,
    source: &Path,
    side: &BTreeSet<String>,
) -> Result<Vec<(BundlePath, PathBuf)>> {
    let mut files = vec![(path_in_bundle(folder, draft, backend)?, source.to_owned())];
    for location in side {
        let from = source.with_file_name("").join(location);
        require_file(&from)?;
        files.push((format!("{folder}{location}").parse()?, from));
    }
    if let Some(program) = &draft.program {
        require_file(program)?;
        let path = format!("{folder}{}{PROGRAM_ENDING}", draft.name).parse()?;
        files.push((path, program.clone()));
    }
    Ok(files)
}

/// Where a model keeps weights outside of itself, seen from its folder.
fn side_files(model: &Model, source: &Path) -> Result<BTreeSet<String>> {
    if model.backend != Backend::Onnx {
        return Ok(BTreeSet::new());
    }
    let files = veracity_onnx::Model::read(source)?.external_data()?;
    Ok(files.into_iter().map(|file| file.location).collect())
}

/// Models are called after their node, so that two nodes never overwrite each other's.
pub(super) fn path_in_bundle(
    folder: &str,
    draft: &NodeDraft,
    backend: Backend,
) -> Result<BundlePath> {
    let ending = match backend {
        Backend::Onnx => "onnx",
        Backend::Jit => "pt",
        Backend::Pt2 => "pt2",
    };
    Ok(format!("{folder}{}.{ending}", draft.name).parse::<BundlePath>()?)
}
