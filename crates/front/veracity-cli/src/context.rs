//! What every command needs to talk: colour, width, quiet.

use std::io::{self, Write as _};

use serde::Serialize;
use veracity::Diagnostic;

use crate::cli::{ColorArg, Format, GlobalArgs};
use crate::render::diagnostic;
use crate::render::document::Document;
use crate::render::style;

/// Width of everything that is not shown on a terminal, and the least that tables take on one.
const MIN_WIDTH: usize = 80;

/// How to talk to whoever called.
#[derive(Debug)]
pub(crate) struct Context {
    quiet: bool,
    width: usize,
}

impl Context {
    /// Takes the global options into account; those about colour hold for the whole process.
    pub(crate) fn new(options: &GlobalArgs) -> Self {
        match options.color {
            // The streams look at `NO_COLOR`, `CLICOLOR_FORCE` and the terminal by themselves.
            ColorArg::Auto => {}
            ColorArg::Always => anstream::ColorChoice::Always.write_global(),
            ColorArg::Never => anstream::ColorChoice::Never.write_global(),
        }
        let columns = terminal_size::terminal_size_of(io::stdout());
        let width = columns.map_or(MIN_WIDTH, |(columns, _)| usize::from(columns.0));
        Self { quiet: options.quiet, width: width.max(MIN_WIDTH) }
    }

    /// Columns that an answer may take.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether only answers and errors are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Gives the answer, or a part of it. Colours are taken out where they do not belong. A reader
    /// that has seen enough and left does not change what the answer is, nor the exit code.
    #[expect(clippy::unused_self, reason = "says that the context was set up before")]
    pub(crate) fn answer(&self, text: &str) -> io::Result<()> {
        let mut stdout = anstream::stdout().lock();
        match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result,
        }
    }

    /// Gives the answer to a program.
    pub(crate) fn answer_json(&self, value: &impl Serialize) -> io::Result<()> {
        self.answer(&(serde_json::to_string_pretty(value)? + "\n"))
    }

    /// Gives the answer in the form that was asked for.
    pub(crate) fn give(
        &self,
        format: Format,
        value: &impl Serialize,
        document: impl FnOnce() -> Document,
    ) -> io::Result<()> {
        match format {
            Format::Json => self.answer_json(value),
            Format::Md => self.answer(&document().markdown()),
            Format::Table => self.answer(&document().text(self.width)),
        }
    }

    /// Shows warnings, unless they are not wanted.
    pub(crate) fn warn(&self, warnings: &[Diagnostic]) -> io::Result<()> {
        if self.quiet { Ok(()) } else { self.refuse(warnings) }
    }

    /// Says something beside the answer, unless it is not wanted.
    pub(crate) fn remark(&self, text: &str) -> io::Result<()> {
        if self.quiet { Ok(()) } else { writeln!(anstream::stderr(), "{text}") }
    }

    /// Shows why there is no answer.
    pub(crate) fn refuse(&self, diagnostics: &[Diagnostic]) -> io::Result<()> {
        let mut stderr = anstream::stderr().lock();
        for found in diagnostics {
            writeln!(stderr, "{}", diagnostic::render(found, self.width))?;
        }
        Ok(())
    }

    /// Shows an error that is not about anything the user gave.
    #[expect(clippy::unused_self, reason = "says that the context was set up before")]
    pub(crate) fn complain(&self, message: &str) -> io::Result<()> {
        let (bold, plain) = (style::ERROR, style::ERROR.render_reset());
        writeln!(anstream::stderr(), "{bold}error{plain}: {message}")
    }
}
