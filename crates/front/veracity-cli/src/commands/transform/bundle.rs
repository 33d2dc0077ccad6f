//! `veracity transform BUNDLE`: every ONNX node changed, the whole proved again.

use serde_json::json;
use veracity::report::{TextOptions, markdown, rewrites};
use veracity::results::Verdict;
use veracity::transform::{BundleChange, CheckOptions, TransformOptions, transform_bundle};
use veracity::{Bundle, proof, reports};

use super::{check_options, engines, options, target};
use crate::cli::{Format, TransformArgs};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::proof as rendered;
use crate::render::proof::painted;

pub(super) fn execute(arguments: &TransformArgs, context: &Context) -> Result<Outcome, Failure> {
    let bundle = Bundle::open(&arguments.input)?;
    if let Some(page) = &arguments.html {
        target::check(page, &bundle, None)?;
    }
    context.warn(bundle.warnings())?;
    let options = TransformOptions {
        check: CheckOptions {
            validation: arguments.validate,
            on_fail: arguments.on_fail,
            ..check_options(&arguments.what, None)?
        },
        ..options(arguments)
    };
    let engines = engines(&arguments.what);
    let prove = proof::CheckOptions::default();
    let change = transform_bundle(&bundle, &arguments.output, &options, &prove, &engines)?;
    let beside = change.path.with_file_name("report.html");
    let page = arguments.html.as_ref().unwrap_or(&beside);
    reports::write_bundle_change_page(&change, page)?;
    answer(arguments, context, &change)?;
    Ok(verdict(&change).into())
}

/// The worst of what is known about the rewrites and about the new bundle.
fn verdict(change: &BundleChange) -> Verdict {
    let changes = change.nodes.iter().filter_map(|node| node.change.as_ref());
    let checks = changes.filter_map(|change| change.checks.as_ref());
    checks.map(|checks| checks.verdict).fold(change.proof.verdict, Verdict::max)
}

fn answer(
    arguments: &TransformArgs,
    context: &Context,
    change: &BundleChange,
) -> Result<(), Failure> {
    if arguments.format == Format::Json {
        let mut nodes = Vec::new();
        for node in &change.nodes {
            let change = node.change.as_ref();
            let recorded = change.map(|change| change.recorded()).transpose()?;
            nodes.push(json!({
                "node": node.node, "log": recorded.map(|recorded| &recorded.log),
                "checks": change.and_then(|change| change.checks.as_ref()),
            }));
        }
        let bundle = change.path.display().to_string();
        let answer = json!({ "bundle": bundle, "nodes": nodes, "proof": change.proof });
        return Ok(context.answer_json(&answer)?);
    }
    let width = context.width();
    let options = TextOptions { width, paint: painted, ..TextOptions::default() };
    let mut text = String::new();
    for node in &change.nodes {
        match &node.change {
            None => {
                text += &node.node;
                text += ": not an ONNX model, left as it is\n";
            }
            Some(done) => {
                let (log, checks) = (&done.recorded()?.log, done.checks.as_ref());
                text += &match arguments.format {
                    Format::Md => rewrites::markdown(&node.node, log, checks),
                    _ => rewrites::text(&node.node, log, checks, &options),
                };
            }
        }
        text.push('\n');
    }
    text += &match arguments.format {
        Format::Md => markdown::proof(&change.proof),
        _ => rendered::render(&change.proof, width),
    };
    Ok(context.answer(&text)?)
}
