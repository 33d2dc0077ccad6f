//! A wrong rewrite as a folder of its own: what was there and what came, as two models, and values
//! on which they differ.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};
use veracity_engine::Engine;
use veracity_onnx::{Graph, Model};
use veracity_tensor::Tensor;
use veracity_tensor::file::{self, TensorMap};

use super::folder;
use crate::Rewrite;
use crate::judge::{CheckOptions, Shown, show, show_again};

/// What was there.
pub(super) const BEFORE_FILE: &str = "before.onnx";
/// What came instead.
pub(super) const AFTER_FILE: &str = "after.onnx";
/// `in/<name>`, `before/<name>` and `after/<name>`.
pub(super) const VALUES_FILE: &str = "values.safetensors";
/// What it is about.
pub(super) const RECORD_FILE: &str = "rewrite.json";
/// How to run it again, for people.
pub(super) const README_FILE: &str = "README.md";

/// Version of the JSON of a [`RewriteRepro`]. The major part changes when old readers break.
const SCHEMA_VERSION: &str = "1.0";

/// What a repro of a rewrite shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewriteRepro {
    /// Version of this JSON.
    pub schema_version: String,
    /// The pass that proposed the rewrite.
    pub pass: String,
    /// What the pass promises.
    pub class: String,
    /// Number of the rewrite.
    pub id: usize,
    /// Its number within its pass.
    pub index: usize,
    /// Why the pass holds it to be right.
    pub why: String,
    /// What is wrong; empty when nothing is.
    pub reason: String,
    /// The values on which it shows.
    pub set: String,
    /// Values that are compared, each with its name afterwards.
    pub outputs: BTreeMap<String, String>,
    /// What ran it.
    pub engine: String,
    /// Its version.
    pub engine_version: String,
}

/// What running a repro again showed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RewriteReproRun {
    /// Whether the two models differ again.
    pub shows: bool,
    /// Whether both give bit for bit what they gave when the repro was written.
    pub repeats: bool,
    /// What is wrong.
    pub reason: String,
}

/// Writes a repro of a rewrite of a graph as it was just before. The folder is written whole or not
/// at all; one that holds anything but a repro is refused.
///
/// The values are those on which the two sides differ, and the real ones when they differ on none.
pub fn write_repro(
    target: impl AsRef<Path>,
    graph: &Graph,
    rewrite: &Rewrite,
    engine: &dyn Engine,
    options: &CheckOptions,
) -> Result<RewriteRepro> {
    folder::refuse_others(target.as_ref())?;
    let shown = show(graph, rewrite, engine, options)
        .map_err(|reason| Diagnostic::error(codes::REWRITE_UNCHECKED, reason))?;
    let Shown { before, after, set, outputs, reason, inputs, was, is } = shown;
    let record = RewriteRepro {
        schema_version: SCHEMA_VERSION.to_owned(),
        pass: rewrite.pass.to_owned(),
        class: rewrite.class.name().to_owned(),
        id: rewrite.id,
        index: rewrite.index,
        why: rewrite.applied.reason.clone(),
        reason,
        set,
        outputs: outputs.into_iter().collect(),
        engine: engine.name().to_owned(),
        engine_version: engine.version(),
    };
    let mut tensors = TensorMap::new();
    for (side, values) in [("in", inputs), ("before", was), ("after", is)] {
        tensors.extend(values.into_iter().map(|(name, one)| (format!("{side}/{name}"), one)));
    }
    folder::write(target.as_ref(), [&before, &after], &tensors, &record)?;
    Ok(record)
}

/// Runs a repro again.
pub fn rerun(
    target: impl AsRef<Path>,
    engine: &dyn Engine,
    options: &CheckOptions,
) -> Result<RewriteReproRun> {
    let target = target.as_ref();
    let record = read(target)?;
    let models = [BEFORE_FILE, AFTER_FILE].map(|name| Model::read(target.join(name)));
    let [before, after] = models;
    let tensors = file::read(target.join(VALUES_FILE))?;
    let side = |side: &str| -> BTreeMap<String, Tensor> {
        let named = tensors.iter().filter_map(|(name, tensor)| {
            let name = name.strip_prefix(side)?.strip_prefix('/')?;
            Some((name.to_owned(), tensor.clone()))
        });
        named.collect()
    };
    let class = crate::Class::from_name(&record.class)
        .ok_or_else(|| unreadable(target, format!("there is no class {:?}", record.class)))?;
    let outputs: Vec<(String, String)> = record.outputs.into_iter().collect();
    let models = [&before?, &after?];
    let again = show_again(models, &outputs, &side("in"), class, engine, options)?;
    let repeats = again.was == side("before") && again.is == side("after");
    Ok(RewriteReproRun { shows: !again.reason.is_empty(), repeats, reason: again.reason })
}

fn read(target: &Path) -> Result<RewriteRepro> {
    let path = target.join(RECORD_FILE);
    let text = std::fs::read_to_string(&path)
        .map_err(|error| unreadable(&path, format!("not a repro of a rewrite: {error}")))?;
    let record: RewriteRepro = serde_json::from_str(&text)
        .map_err(|error| unreadable(&path, format!("not a repro of a rewrite: {error}")))?;
    let major = |version: &str| version.split('.').next().map(str::to_owned);
    if major(&record.schema_version) != major(SCHEMA_VERSION) {
        let version = &record.schema_version;
        let problem =
            format!("version {version} of the format; this program reads {SCHEMA_VERSION}");
        return Err(unreadable(&path, problem));
    }
    Ok(record)
}

fn unreadable(path: &Path, problem: String) -> Refusal {
    let place = Place::file(path.display().to_string());
    Diagnostic::error(codes::REPRO_UNREADABLE, problem).at(place).into()
}
