//! A line on stderr while Rust works, where somebody looks at it; `VERACITY_PROGRESS=0` turns it off.

use std::io::{self, IsTerminal as _, Stderr};

use veracity::progress::shown_on;

/// Does work with a line that says how far it is.
pub(crate) fn shown<T>(work: impl FnOnce() -> T) -> T {
    shown_on(terminal(), work)
}

fn terminal() -> Option<(Stderr, usize)> {
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    let stderr = io::stderr();
    if is("VERACITY_PROGRESS", "0") || is("TERM", "dumb") || !stderr.is_terminal() {
        return None;
    }
    let (columns, _) = terminal_size::terminal_size_of(&stderr)?;
    Some((stderr, usize::from(columns.0)))
}
