//! Finds what made a model wrong: a rewrite of ours, or a part of another optimiser.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use serde::Serialize;
use veracity_diag::{Diagnostic, Refusal, Result, codes};
use veracity_engine::{ModelBytes, ModelFormat, ModelSource, OptimizationLevel, SessionOptions};
use veracity_onnx::{Graph, Model};
use veracity_results::Verdict;
use veracity_runtime::EngineProvider;
use veracity_transform::Class;
use veracity_transform::bisect::{bisect, bisect_tool, write_repro};
use veracity_transform::judge::{CheckOptions, Comparer};

use super::TransformOptions;
use crate::Engines;

/// The rewrite that made a model wrong.
#[derive(Clone, Debug, Serialize)]
pub struct Culprit {
    /// The pass.
    pub pass: String,
    /// What the pass promises.
    pub class: String,
    /// Its number among all rewrites, from 0.
    pub id: usize,
    /// Its number within its pass, from 0.
    pub index: usize,
    /// The first value of the node that it is about.
    pub value: String,
    /// Why the pass held it to be right.
    pub why: String,
    /// What is wrong.
    pub reason: String,
    /// Rewrites before it that it needs to be wrong, `pass at value`.
    pub others: Vec<String>,
    /// All rewrites that the passes make.
    pub rewrites: usize,
    /// Models that were run to find it.
    pub models: usize,
    /// Where the repro is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repro: Option<PathBuf>,
}

/// Finds the rewrite that makes a model wrong; `None` when the models agree.
pub fn bisect_model(
    original: &Model,
    options: &TransformOptions,
    engines: &Engines,
    repro: Option<&Path>,
) -> Result<Option<Culprit>> {
    let engine = engines.engine_for(ModelFormat::Onnx)?;
    let (graph, pipeline) = (Graph::new(original.clone())?, options.pipeline()?);
    let found = bisect(&graph, &pipeline, options.limits, engine.as_ref(), &options.check);
    let Some(found) = unless_nothing(found)? else { return Ok(None) };
    if let Some(folder) = repro {
        write_repro(folder, &found.before, &found.culprit, engine.as_ref(), &options.check)?;
    }
    let culprit = &found.culprit;
    Ok(Some(Culprit {
        pass: culprit.pass.to_owned(),
        class: culprit.class.name().to_owned(),
        id: culprit.id,
        index: culprit.index,
        value: culprit.value.clone(),
        why: culprit.applied.reason.clone(),
        reason: found.reason,
        others: found.others.iter().map(|one| format!("{} at {}", one.pass, one.value)).collect(),
        rewrites: found.rewrites,
        models: found.models,
        repro: repro.map(Path::to_owned),
    }))
}

/// Another optimiser, as a black box.
#[derive(Clone, Debug)]
pub enum Tool {
    /// A command. `{in}` and `{out}` stand for files; `{skip}` for the names to be left out, joined
    /// by commas, `{skip...}` for the names one by one. Words around a part that is empty stay out:
    /// the option before `{skip}` is dropped with it.
    Command(String),
    /// ONNX Runtime at a level of optimisation; names are those of its optimisers.
    OnnxRuntime(OptimizationLevel),
}

/// What a search over another optimiser found.
#[derive(Clone, Debug, Serialize)]
pub struct ToolCulprits {
    /// The smallest set of names without which the result is right.
    pub culprits: Vec<String>,
    /// What is wrong with everything in.
    pub reason: String,
    /// Results that were made and compared.
    pub models: usize,
}

/// Finds what another optimiser must leave out for its result to be right; `None` when it is right
/// with everything in.
pub fn bisect_with_tool(
    path: &Path,
    tool: &Tool,
    names: &[String],
    check: &CheckOptions,
    engines: &Engines,
) -> Result<Option<ToolCulprits>> {
    let engine = engines.engine_for(ModelFormat::Onnx)?;
    let original = Model::read_whole(path)?;
    let mut comparer = Comparer::new(&Graph::new(original.clone())?, engine.as_ref(), check);
    let mut reason = String::new();
    let mut is_wrong = |left_out: &BTreeSet<&str>| {
        let made = match tool {
            Tool::Command(command) => run_command(command, path, left_out)?,
            Tool::OnnxRuntime(level) => {
                let bytes = ModelBytes::Memory(Arc::from(original.to_bytes()?));
                let source = ModelSource { format: ModelFormat::Onnx, bytes };
                let options = SessionOptions { optimization: *level, ..SessionOptions::default() };
                let left_out: Vec<&str> = left_out.iter().copied().collect();
                Model::from_bytes(engine.optimized(&source, &options, &left_out)?.into())?
            }
        };
        let found = comparer.first_difference(&Graph::new(made.in_order())?, Class::ExactReal);
        let why = found.reason.unwrap_or_default();
        match found.verdict {
            Verdict::Proved | Verdict::Conditional => Ok(false),
            Verdict::NotComparable => {
                Err(Refusal::from(Diagnostic::error(codes::BISECT_UNDECIDED, why)))
            }
            Verdict::Disproved => {
                if reason.is_empty() {
                    reason = why;
                }
                Ok(true)
            }
        }
    };
    let found = unless_nothing(bisect_tool(names, &mut is_wrong))?;
    Ok(found.map(|found| ToolCulprits { culprits: found.culprits, reason, models: found.models }))
}

/// That there is nothing to find is an answer, not a failure.
fn unless_nothing<T>(found: Result<T>) -> Result<Option<T>> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(refusal) if refusal.first_error().code == codes::BISECT_NOTHING => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

fn run_command(command: &str, input: &Path, left_out: &BTreeSet<&str>) -> Result<Model> {
    let failed = |what: String| -> Refusal {
        Diagnostic::error(codes::TOOL_FAILED, format!("`{command}` {what}")).into()
    };
    let folder = tempfile::tempdir().map_err(|error| failed(format!("has no folder: {error}")))?;
    let output = folder.path().join("result.onnx");
    let words = words_of(command, input, &output, left_out);
    let Some((program, rest)) = words.split_first() else {
        return Err(failed("is empty".to_owned()));
    };
    let done = Command::new(program)
        .args(rest)
        .output()
        .map_err(|error| failed(format!("cannot be run: {error}")))?;
    if !done.status.success() || !output.is_file() {
        let said = String::from_utf8_lossy(&done.stderr);
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        let said = last.into_iter().rev().collect::<Vec<_>>().join("; ");
        return Err(failed(format!("gave no model ({}): {said}", done.status)));
    }
    // Everything is in memory before the folder goes.
    let model = Model::read_whole(&output)?;
    Model::from_bytes(model.to_bytes()?.into())
}

/// The command word by word, with its places filled in.
fn words_of(command: &str, input: &Path, output: &Path, left_out: &BTreeSet<&str>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in command.split_whitespace() {
        let skips = word.contains("{skip}") || word.contains("{skip...}");
        if skips && left_out.is_empty() {
            // `--skip {skip}` without names is no option at all.
            if words.last().is_some_and(|option| option.starts_with('-')) && !word.starts_with('-')
            {
                words.pop();
            }
            continue;
        }
        if word == "{skip...}" {
            words.extend(left_out.iter().map(|name| (*name).to_owned()));
            continue;
        }
        let joined: Vec<&str> = left_out.iter().copied().collect();
        words.push(
            word.replace("{in}", &input.display().to_string())
                .replace("{out}", &output.display().to_string())
                .replace("{skip}", &joined.join(",")),
        );
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_a_command_are_filled_in() {
        let words = |command: &str, names: &[&str]| {
            let names = names.iter().copied().collect();
            words_of(command, Path::new("a.onnx"), Path::new("b.onnx"), &names).join(" ")
        };
        for (command, names, expected) in [
            ("slim {in} {out}", &["A"][..], "slim a.onnx b.onnx"),
            ("slim {in} {out} --skip {skip...}", &["A", "B"], "slim a.onnx b.onnx --skip A B"),
            ("slim {in} {out} --skip {skip...}", &[], "slim a.onnx b.onnx"),
            ("sim --skip={skip} {in} {out}", &["A", "B"], "sim --skip=A,B a.onnx b.onnx"),
            ("sim -v --skip={skip} {in} {out}", &[], "sim -v a.onnx b.onnx"),
        ] {
            assert_eq!(words(command, names), expected, "{command} {names:?}");
        }
    }
}
