//! `veracity check`: proves a bundle where it is.

mod record;
mod tolerances;

use serde::Serialize;
use veracity::proof::{self, CheckOptions, Standing};
use veracity::results::{Proof, Verdict};
use veracity::{Bundle, Diagnostic, Place, Refusal, codes, report, reports};

use super::{sessions, target};
use crate::cli::{CheckArgs, Format};
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::document::Document;
use crate::render::{baseline, proof as rendered};

pub(super) fn execute(arguments: &CheckArgs, context: &Context) -> Result<Outcome, Failure> {
    let bundle = Bundle::open(&arguments.bundle)?;
    context.warn(bundle.warnings())?;
    // What can be refused is refused before anything runs.
    let files = [&arguments.output, &arguments.junit, &arguments.html];
    for path in files.into_iter().flatten() {
        target::check(path, &bundle, arguments.record.inputs.as_deref())?;
    }
    let baseline = arguments.baseline.as_deref().map(proof::read).transpose()?;
    let (bundle, proof) = prove(arguments, bundle)?;
    write_files(arguments, &proof)?;
    if arguments.save {
        proof::save(&bundle, &proof)?;
    }
    let worse = baseline.map(|baseline| proof::worse_than(&baseline, &proof));
    answer(arguments, context, &proof, worse.as_deref())?;
    Ok(match worse {
        None if arguments.deny_warnings && proof.warnings() > 0 => unless_warned(proof.verdict),
        None if arguments.accept_conditional && proof.verdict.holds() => Outcome::Proved,
        None => proof.verdict.into(),
        Some(worse) if worse.is_empty() => Outcome::Proved,
        Some(_) => Outcome::Disproved,
    })
}

/// What a verdict is worth where tracing was not sure of what was recorded.
fn unless_warned(verdict: Verdict) -> Outcome {
    match verdict {
        Verdict::Proved | Verdict::Conditional | Verdict::NotComparable => Outcome::Inconclusive,
        Verdict::Disproved => Outcome::Disproved,
    }
}

/// Gives the bundle as it is afterwards, and what is known about it.
fn prove(arguments: &CheckArgs, bundle: Bundle) -> Result<(Bundle, Proof), Refusal> {
    if arguments.rejudge {
        let proof = rejudge(arguments, &bundle)?;
        return Ok((bundle, proof));
    }
    // Before recording, which changes the bundle.
    let tolerance = tolerances::choice(&arguments.tolerance, arguments.equal_nan, &bundle)?;
    let engines = sessions::engines(arguments.engine, &arguments.sessions);
    let bundle = if arguments.record.record {
        record::record(&bundle, &engines, arguments)?
    } else {
        bundle
    };
    let session = sessions::options(&arguments.sessions);
    let options = CheckOptions { tolerance, session, ..CheckOptions::default() };
    let proof = proof::check(&bundle, &engines, &options)?;
    Ok((bundle, proof))
}

/// Judges what was measured before. That says something only while the bundle is what was
/// measured.
fn rejudge(arguments: &CheckArgs, bundle: &Bundle) -> Result<Proof, Refusal> {
    let place = Place::file(bundle.yaml_path().display().to_string());
    let measured = proof::of_bundle(bundle)?;
    bundle.verify()?;
    if let Standing::Stale(change) = proof::standing(bundle)? {
        let message = format!("the proof is stale: {change}");
        return Err(Diagnostic::error(codes::PROOF_STALE, message)
            .at(place)
            .hint("check it without `--rejudge`")
            .into());
    }
    let choice = tolerances::choice(&arguments.tolerance, arguments.equal_nan, bundle)?;
    Ok(proof::rejudge(&measured, &proof::policy(bundle, &choice)?))
}

fn write_files(arguments: &CheckArgs, proof: &Proof) -> Result<(), Failure> {
    if let Some(path) = &arguments.output {
        let json = serde_json::to_string_pretty(proof).map_err(std::io::Error::from)?;
        target::write(path, &(json + "\n"))?;
    }
    if let Some(path) = &arguments.junit {
        target::write(path, &report::junit(proof))?;
    }
    if let Some(path) = &arguments.html {
        reports::write_proof_page(proof, path)?;
    }
    Ok(())
}

/// A proof, with what is worse than in a baseline if there is one.
#[derive(Serialize)]
struct Answer<'p> {
    #[serde(flatten)]
    proof: &'p Proof,
    #[serde(skip_serializing_if = "Option::is_none")]
    worse: Option<&'p [Diagnostic]>,
}

fn answer(
    arguments: &CheckArgs,
    context: &Context,
    proof: &Proof,
    worse: Option<&[Diagnostic]>,
) -> Result<(), Failure> {
    let since = || worse.map(baseline::document);
    let text = match arguments.format {
        Format::Json => return Ok(context.answer_json(&Answer { proof, worse })?),
        Format::Md => baseline::below(report::markdown::proof(proof), since(), Document::markdown),
        Format::Table => {
            let width = context.width();
            let shown = rendered::render(proof, width);
            baseline::below(shown, since(), |since| since.text(width))
        }
    };
    Ok(context.answer(&text)?)
}
