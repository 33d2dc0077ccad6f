//! Where progress is shown: on a terminal that somebody looks at, and nowhere else.

use std::io::{self, IsTerminal as _, Stderr};

/// The terminal and its width; nothing when stderr is not one, or one that cannot erase.
pub(crate) fn terminal(is_quiet: bool) -> Option<(Stderr, usize)> {
    let stderr = io::stderr();
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    if is_quiet || is_dumb || !stderr.is_terminal() {
        return None;
    }
    let (columns, _) = terminal_size::terminal_size_of(&stderr)?;
    Some((stderr, usize::from(columns.0)))
}
