//! `--record`: samples from a run of the bundle.

use veracity::proof::{self, RecordOptions};
use veracity::tensor::file;
use veracity::{Bundle, Diagnostic, Engines, Place, Result, RunOptions, Runner, Target, codes};

use crate::cli::{CheckArgs, RecordArgs};
use crate::commands::feed::Feed;
use crate::commands::sessions;

/// Steps with made-up values when their number is not given: as many as get an entry of their own
/// in a proof.
const DEFAULT_STEPS: u64 = 32;

/// Runs the bundle and puts what it did into it.
pub(super) fn record(bundle: &Bundle, engines: &Engines, arguments: &CheckArgs) -> Result<Bundle> {
    let RecordArgs { inputs, mock, steps, replace, .. } = &arguments.record;
    let session = sessions::options(&arguments.sessions);
    let mut options = RecordOptions {
        seed: mock.unwrap_or(0),
        replace: *replace,
        run: RunOptions::new().with_session(session),
        ..RecordOptions::default()
    };
    if let Some(path) = inputs {
        let mut runner = sessions::load(bundle, engines, &arguments.sessions, false)?;
        refuse_states(path, &runner)?;
        options.inputs = Feed::from_file(path, *steps, &mut runner)?.tensors(&runner)?;
    } else {
        options.steps = usize::try_from(steps.unwrap_or(DEFAULT_STEPS)).unwrap_or(usize::MAX);
    }
    proof::record(bundle, engines, &options)
}

/// The recorded episode is repeated from the bundle's own initial values, so that it must not start
/// from others.
fn refuse_states(path: &std::path::Path, runner: &Runner) -> Result<()> {
    for key in file::read(path)?.keys() {
        if let Ok(Target::State(_)) = runner.find_target(key) {
            let message = format!(
                "{key:?} is a feedback input: a recorded episode starts from the bundle's initial values"
            );
            return Err(Diagnostic::error(codes::INPUT_NOT_SETTABLE, message)
                .at(Place::file(path.display().to_string()))
                .hint("leave it out of the file")
                .into());
        }
    }
    Ok(())
}
