//! Options as Python names them.

use std::num::NonZeroUsize;

use veracity::{Device, Diagnostic, EngineChoice, Refusal, SessionOptions, codes};

/// The engine of that name.
pub(crate) fn engine_choice(name: &str) -> veracity::Result<EngineChoice> {
    EngineChoice::from_name(name).ok_or_else(|| invalid(format!("there is no engine {name:?}")))
}

/// How models are to be run.
pub(crate) fn session_options(device: &str, threads: usize) -> veracity::Result<SessionOptions> {
    let device = Device::from_name(device)
        .ok_or_else(|| invalid(format!("there is no device {device:?}")))?;
    let threads =
        NonZeroUsize::new(threads).ok_or_else(|| invalid("at least 1 thread is needed".into()))?;
    Ok(SessionOptions { device, threads, ..SessionOptions::default() })
}

/// The refusal of an option.
pub(crate) fn invalid(message: String) -> Refusal {
    Diagnostic::error(codes::OPTION_INVALID, message).into()
}
