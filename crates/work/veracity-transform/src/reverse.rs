//! Undoes the rewrites of a log.
//!
//! The original is not computed backwards: it was kept, without what the result still has. So every
//! rewrite can be undone, and the hash of the original says whether it is the original.

use veracity_diag::{Diagnostic, Result, codes};
use veracity_onnx::Model;
use veracity_results::RewriteLog;

use crate::log::{Elements, RESULT};
use crate::provenance::LOG_KEY;
use crate::{log_sha256, model_sha256};

/// The original of a result. Refused when the result or the log was changed since, and when what is
/// found is not the original byte for byte.
pub fn reverse(result: &Model, log: &RewriteLog, elements: &Elements) -> Result<Model> {
    belongs(result, log)?;
    let stored = result.stored();
    let skeleton = Model::from_bytes(elements.skeleton.clone())?;
    let original = skeleton.filled(|address| match address.strip_prefix(RESULT) {
        Some(index) => stored.get(index.parse::<usize>().ok()?).cloned(),
        None => elements.get(address),
    })?;
    let found = model_sha256(&original);
    if found != log.original_sha256 {
        let message = format!("the original was {}, this is {found}", log.original_sha256);
        return Err(Diagnostic::error(codes::REVERSE_DIFFERS, message)
            .hint("the file with the elements belongs to another log")
            .into());
    }
    Ok(original)
}

/// Refuses a model that is not the result of a log, and a log that was changed.
pub(crate) fn belongs(result: &Model, log: &RewriteLog) -> Result<()> {
    let named = result.metadata().into_iter().find(|(key, _)| key == LOG_KEY);
    let found = model_sha256(result);
    if found != log.result_sha256 {
        let message = format!("the log is about the result {}", log.result_sha256);
        return Err(Diagnostic::error(codes::LOG_MISFIT, message)
            .hint(format!("this model is {found}: it was changed since, or is another one"))
            .into());
    }
    if let Some((_, named)) = named
        && log.provenance
        && named != log_sha256(log)
    {
        let message = format!("the model names the log {named}, this one is {}", log_sha256(log));
        return Err(Diagnostic::error(codes::LOG_CHANGED, message).into());
    }
    Ok(())
}
