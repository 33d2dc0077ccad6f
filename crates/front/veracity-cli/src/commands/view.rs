//! `veracity view`: results in the browser, for as long as somebody looks at them.

use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use veracity::view::{Content, Server, Watched};
use veracity::{Diagnostic, Refusal, codes, proof};

use crate::cli::ViewArgs;
use crate::context::Context;
use crate::outcome::{Failure, Outcome};
use crate::render::difference;

/// Time between two looks at the files.
const INTERVAL: Duration = Duration::from_millis(300);

/// What opens an address in the browser of whoever sits here.
const OPENER: &[&str] = if cfg!(target_os = "macos") {
    &["open"]
} else if cfg!(windows) {
    &["rundll32", "url.dll,FileProtocolHandler"]
} else {
    &["xdg-open"]
};

/// The exit code tells whether there was something to show, not what it said.
pub(super) fn execute(arguments: &ViewArgs, context: &Context) -> Result<Outcome, Failure> {
    let paths = [Some(&arguments.results), arguments.second.as_ref()];
    let mut watched: Vec<Watched> =
        paths.into_iter().flatten().map(|path| Watched::open(path)).collect::<Result<_, _>>()?;
    let interrupts = interrupts()?;
    let server = Server::start(content(&watched))?;
    context.answer(&format!("{}\n", server.address()))?;
    context.remark("Ctrl-C ends it")?;
    if !arguments.no_open {
        open(server.address());
    }
    while interrupts.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
        if arguments.once && server.was_shown() {
            break;
        }
        let mut has_changed = false;
        for one in &mut watched {
            has_changed |= one.look();
        }
        if has_changed {
            server.publish(content(&watched));
        }
    }
    Ok(Outcome::Proved)
}

fn content(watched: &[Watched]) -> Content {
    let frames: Vec<_> = watched.iter().map(Watched::frame).collect();
    let names: Vec<&str> = frames.iter().map(|frame| frame.label.as_str()).collect();
    let proofs: Vec<_> = watched.iter().filter_map(Watched::proof).collect();
    let comparison = match proofs[..] {
        [before, after] => Some(difference::document(&proof::difference(before, after)).html()),
        _ => None,
    };
    Content { title: format!("{} - Veracity", names.join(", ")), frames, comparison }
}

/// Gets a message when whoever started this has seen enough.
fn interrupts() -> Result<Receiver<()>, Refusal> {
    let (sender, receiver) = channel();
    let ask = move || {
        // Nobody listens any more when it is ending anyway.
        let _ = sender.send(());
    };
    ctrlc::set_handler(ask).map_err(|error| {
        let message = format!("Ctrl-C could not be heard: {error}");
        Refusal::from(Diagnostic::error(codes::VIEW_UNSERVED, message))
    })?;
    Ok(receiver)
}

/// Opens the address. Where there is no browser, the address has been said.
fn open(address: &str) {
    let [program, arguments @ ..] = OPENER else { return };
    let mut command = Command::new(program);
    command.args(arguments).arg(address);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // Some openers stay as long as the browser does.
        std::thread::spawn(move || child.wait());
    }
}
