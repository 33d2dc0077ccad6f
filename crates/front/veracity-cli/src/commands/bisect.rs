//! `veracity bisect`: what made a model wrong.

use veracity::transform::{
    Culprit, Model, Tool, ToolCulprits, TransformOptions, bisect_model, bisect_with_tool,
};

use super::transform::{check_options, engines};
use crate::cli::{BisectArgs, PageFormat};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::bisection as rendered;

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
    answer(arguments, context, found.as_ref(), |found: &Culprit| rendered::culprit(found))
}

fn search_tool(arguments: &BisectArgs, tool: &Tool, context: &Context) -> Result<Outcome, Failure> {
    let original = Model::read_whole(&arguments.input)?;
    let check = check_options(&arguments.what, Some(&original))?;
    let engines = engines(&arguments.what);
    let found = bisect_with_tool(&arguments.input, tool, &arguments.names, &check, &engines)?;
    answer(arguments, context, found.as_ref(), |found: &ToolCulprits| rendered::tool(found))
}

fn answer<T: serde::Serialize>(
    arguments: &BisectArgs,
    context: &Context,
    found: Option<&T>,
    render: impl Fn(&T) -> String,
) -> Result<Outcome, Failure> {
    match (arguments.format, found) {
        (PageFormat::Json, found) => context.answer_json(&found)?,
        (_, Some(found)) => context.answer(&render(found))?,
        (_, None) => context.answer("nothing to find: the outputs agree\n")?,
    }
    Ok(if found.is_some() { Outcome::Disproved } else { Outcome::Proved })
}
