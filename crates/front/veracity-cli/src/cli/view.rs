//! What can be asked to be shown.

use std::path::PathBuf;

use clap::Args;

/// Show results in the browser, and show them again when they change
#[derive(Args, Debug)]
#[command(after_help = "\
The page is that of `veracity report`. It is served to this machine only, on a port
that the system chooses, under an address that cannot be guessed; nothing can be
changed through it. A file that is just being written leaves the page as it was.
With SECOND two results stand side by side, below what `veracity diff` says about
two proofs. Ctrl-C ends it.

Exits with 0 whatever the page says, and with 2 when there is nothing to show.

Examples:
  veracity view policy/
  veracity view laptop.json robot.json
  veracity view drift.json --no-open")]
pub(crate) struct ViewArgs {
    /// A bundle, `proof.json`, or another file that `veracity report` takes
    pub(crate) results: PathBuf,
    /// Another one, to be shown beside it
    pub(crate) second: Option<PathBuf>,
    /// Print the address and open nothing
    #[arg(long)]
    pub(crate) no_open: bool,
    /// End when the page was fetched
    #[arg(long)]
    pub(crate) once: bool,
}
