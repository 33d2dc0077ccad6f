//! The colours, in one place.

use anstyle::{AnsiColor, Style};

/// What stopped the work, and what is disproved.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// What is probably unintended, and what could not be compared.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What holds.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default().bold();
/// Names of parts.
pub(crate) const HEADING: Style = Style::new().bold();
/// Frames and arrows that lead the eye.
pub(crate) const FRAME: Style = AnsiColor::Blue.on_default().bold();
/// What is there for completeness.
pub(crate) const FAINT: Style = Style::new().dimmed();

/// Text in a style.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
