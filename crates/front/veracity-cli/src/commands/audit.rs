//! `veracity audit`: what was done to a model, from its log.

use serde::Serialize;
use veracity::results::{AuditReport, DeclinedMatch, Explanation, MappedValue, TouchedNodes};
use veracity::transform::{Audited, Model, audit_file};

use crate::cli::AuditArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::audit as rendered;

/// What was asked, answered.
#[derive(Serialize)]
pub(crate) struct Answers {
    pub(crate) report: AuditReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) touched: Option<Vec<TouchedNodes>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Explanation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<MappedValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why_not: Option<Vec<DeclinedMatch>>,
}

pub(super) fn execute(arguments: &AuditArgs, context: &Context) -> Result<Outcome, Failure> {
    let original = arguments.original.as_deref().map(Model::read_whole).transpose()?;
    let Audited { model, log, report } = audit_file(&arguments.model, original.as_ref())?;
    let asked = || veracity::transform::Audit::new(&model, &log);
    let answers = Answers {
        touched: match &arguments.pass {
            Some(pass) => Some(asked()?.transformed_nodes(Some(pass))),
            None => None,
        },
        node: arguments.node.as_ref().map(|name| asked()?.explain(name)).transpose()?,
        value: arguments.value.as_ref().map(|name| asked()?.map_value(name)).transpose()?,
        why_not: arguments.why_not.as_ref().map(|name| asked()?.why_not(name)).transpose()?,
        report,
    };
    let name = arguments.model.display().to_string();
    context.give(arguments.format, &answers, || rendered::document(&name, &answers))?;
    // Without the original hashes agree, and whether the rewrites lead there was not asked.
    let explained = answers.report.explained.unwrap_or(true);
    Ok(if explained { Outcome::Proved } else { Outcome::Disproved })
}
