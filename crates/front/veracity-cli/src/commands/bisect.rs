//! `veracity bisect`: what made a model wrong.

use veracity::transform::{
    Culprit, Model, Tool, ToolCulprits, TransformOptions, bisect_model, bisect_with_tool,
};

use super::transform::{check_options, engines};
use crate::cli::BisectArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::bisection as rendered;
use crate::render::document::Document;
use crate::render::text::printable;

pub(super) fn execute(arguments: &BisectArgs, context: &Context) -> Result<Outcome, Failure> {
    match tool(arguments) {
        Some(tool) => search_tool(arguments, &tool, context),
        None => search_passes(arguments, context),
    }
}

fn tool(arguments: &BisectArgs) -> Option<Tool> {
    let command = arguments.tool.clone().map(Tool::Command);
    command.or_else(|| arguments.ort_level.map(Tool::OnnxRuntime))
}

fn search_passes(arguments: &BisectArgs, context: &Context) -> Result<Outcome, Failure> {
    let original = Model::read_whole(&arguments.input)?;
    let check = check_options(&arguments.what, Some(&original))?;
    let passes = arguments.what.passes.clone();
    let options = TransformOptions { passes, check, ..TransformOptions::default() };
    let engines = engines(&arguments.what);
    let found = bisect_model(&original, &options, &engines, arguments.repro.as_deref())?;
    answer(arguments, context, found.as_ref(), |found: &Culprit, into| {
        rendered::culprit(found, into);
    })
}

fn search_tool(arguments: &BisectArgs, tool: &Tool, context: &Context) -> Result<Outcome, Failure> {
    let original = Model::read_whole(&arguments.input)?;
    let check = check_options(&arguments.what, Some(&original))?;
    let engines = engines(&arguments.what);
    let found = bisect_with_tool(&arguments.input, tool, &arguments.names, &check, &engines)?;
    answer(arguments, context, found.as_ref(), |found: &ToolCulprits, into| {
        rendered::tool(found, into);
    })
}

fn answer<T: serde::Serialize>(
    arguments: &BisectArgs,
    context: &Context,
    found: Option<&T>,
    write: impl Fn(&T, &mut Document),
) -> Result<Outcome, Failure> {
    context.give(arguments.format, &found, || {
        let input = arguments.input.display().to_string();
        let mut document = Document::new(format!("Bisected: {}", printable(&input)));
        match found {
            Some(found) => write(found, &mut document),
            None => document.line("nothing to find: the outputs agree"),
        }
        document
    })?;
    Ok(if found.is_some() { Outcome::Disproved } else { Outcome::Proved })
}
