//! Changing ONNX models, and the ONNX nodes of bundles: each change logged, checked, undone.

mod bundle;
mod search;

use std::path::Path;
use std::sync::OnceLock;

pub use bundle::{BundleChange, NodeChange, transform_bundle};
pub use search::{Culprit, Tool, ToolCulprits, bisect_model, bisect_with_tool};
use serde::Serialize;
use veracity_diag::Result;
use veracity_engine::ModelFormat;
use veracity_onnx::Graph;
pub use veracity_onnx::Model;
use veracity_results::{AuditReport, CheckedLog, ModelDiff, RewriteChecks, RewriteLog};
use veracity_runtime::EngineProvider;
pub use veracity_transform::judge::{CheckOptions, Inputs, OnFail, Unchecked, Validation};
pub use veracity_transform::{
    Audit, Class, Limits, LogOptions, Pass, Pipeline, Recorded, diff, read_checked_log, read_log,
    replay, reverse,
};
use veracity_transform::{
    Elements, Transformed, Trusting, audit, elements_path, log_path, passes, record, transform,
};

use crate::Engines;

/// What is to be done to a model, and how it is checked.
#[derive(Clone, Debug, Default)]
pub struct TransformOptions {
    /// Names of passes as [`Pipeline::from_names`] reads them; the standard ones when empty.
    pub passes: Vec<String>,
    /// How rewrites are checked.
    pub check: CheckOptions,
    /// What is written down.
    pub log: LogOptions,
    /// How far it goes.
    pub limits: Limits,
}

impl TransformOptions {
    /// The passes.
    pub fn pipeline(&self) -> Result<Pipeline> {
        if self.passes.is_empty() {
            return Ok(Pipeline::standard());
        }
        Pipeline::from_names(self.passes.iter().map(String::as_str))
    }
}

/// A model that was changed, and what is known about it.
#[derive(Debug)]
pub struct Change {
    /// What checking showed; `None` when nothing was checked.
    pub checks: Option<RewriteChecks>,
    original: Model,
    pipeline: Pipeline,
    done: Transformed,
    log: LogOptions,
    recorded: OnceLock<Recorded>,
}

impl Change {
    /// The result, its log, and what is needed to undo it. Made when first asked for: both models
    /// are hashed for it, which takes longer than most transformations.
    pub fn recorded(&self) -> Result<&Recorded> {
        if let Some(recorded) = self.recorded.get() {
            return Ok(recorded);
        }
        let made = record(&self.original, &self.pipeline, &self.done, self.log)?;
        Ok(self.recorded.get_or_init(|| made))
    }

    /// The result. Its nodes say where they come from, unless that is not wanted.
    pub fn model(&self) -> Result<Model> {
        if self.log.provenance {
            Ok(self.recorded()?.model.clone())
        } else {
            self.done.graph.to_model()
        }
    }

    /// Writes the result with its log, in which stands what checking showed, and with what leads back;
    /// or the result alone.
    pub fn write(&self, path: &Path, with_log: bool) -> Result<()> {
        if !with_log {
            return self.model()?.write_fitting(path);
        }
        let checks = self.checks.as_ref();
        self.recorded()?.write_with(path, checks, |model, path| model.write_fitting(path))
    }

    /// What was done and what checking it showed.
    pub fn checked_log(&self) -> Result<CheckedLog> {
        Ok(CheckedLog { log: self.recorded()?.log.clone(), checks: self.checks.clone() })
    }
}

/// Changes a model.
pub fn transform_model(
    original: &Model,
    options: &TransformOptions,
    engines: &Engines,
) -> Result<Change> {
    let pipeline = options.pipeline()?;
    let graph = Graph::new(original.clone())?;
    let (done, checks) = if options.check.validation == Validation::Off {
        (transform(graph, &pipeline, options.limits, &mut Trusting)?, None)
    } else {
        let engine = engines.engine_for(ModelFormat::Onnx)?;
        let check = options.check.clone();
        let limits = options.limits;
        let (done, checks) = pipeline.run_checked(graph, limits, engine.as_ref(), check)?;
        (done, Some(checks))
    };
    let (original, log) = (original.clone(), options.log);
    Ok(Change { checks, original, pipeline, done, log, recorded: OnceLock::new() })
}

/// Changes the model of a file, the weights beside it included.
pub fn transform_file(
    path: &Path,
    options: &TransformOptions,
    engines: &Engines,
) -> Result<Change> {
    transform_model(&Model::read_whole(path)?, options, engines)
}

/// The original of a model that was written with its log.
pub fn reverse_file(path: &Path) -> Result<Model> {
    let log = read_log(log_path(path))?;
    reverse(&Model::read_whole(path)?, &log, &Elements::read(elements_path(path))?)
}

/// How two models differ in their structure.
pub fn diff_files(before: &Path, after: &Path) -> Result<ModelDiff> {
    Ok(diff(&Model::read_whole(before)?, &Model::read_whole(after)?))
}

/// A model with its log, and what holding them against each other showed.
#[derive(Debug)]
pub struct Audited {
    /// The model.
    pub model: Model,
    /// Its log.
    pub log: RewriteLog,
    /// What was found.
    pub report: AuditReport,
}

/// Says whether the log beside a model explains it. With the original every rewrite is done again.
pub fn audit_file(path: &Path, original: Option<&Model>) -> Result<Audited> {
    let model = Model::read_whole(path)?;
    let log = read_log(log_path(path))?;
    let elements = original.map(|_| Elements::read(elements_path(path))).transpose()?;
    let report = audit(&model, &log, original.zip(elements.as_ref()));
    Ok(Audited { model, log, report })
}

/// A pass, as people choose it.
#[derive(Clone, Debug, Serialize)]
pub struct PassFacts {
    /// Its name.
    pub name: &'static str,
    /// Goes up when it proposes something else for the same graph.
    pub version: u32,
    /// What it promises about the numbers.
    pub class: &'static str,
    /// Whether it is one of the standard passes.
    pub default: bool,
    /// What it does, in a line.
    pub about: &'static str,
    /// Hash over name, version and parameters.
    pub signature: String,
}

/// Every pass there is, the standard ones first and in their order.
pub fn pass_facts() -> Vec<PassFacts> {
    let standard: Vec<&str> = passes::standard().iter().map(|pass| pass.name()).collect();
    let facts = |pass: &dyn Pass| PassFacts {
        name: pass.name(),
        version: pass.version(),
        class: pass.class().name(),
        default: standard.contains(&pass.name()),
        about: pass.about(),
        signature: pass.signature(),
    };
    passes::all().iter().map(|pass| facts(pass.as_ref())).collect()
}
