//! How what was found operator by operator is handed out: for whom, and into which files.

use std::path::PathBuf;

use clap::Args;

use super::Format;

/// Who the answer is for, and what is written.
#[derive(Args, Debug)]
pub(crate) struct FindingsArgs {
    /// For people, for programs or for a page
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
    /// Fail only on what is worse than in this report, which `--save` wrote
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write everything that was found, as JSON
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(crate) save: Option<PathBuf>,
    /// Write a page to look at
    #[arg(long, value_name = "FILE", help_heading = "Files")]
    pub(crate) html: Option<PathBuf>,
    /// Write `BASE.json`, `BASE.md` and the files beside them
    #[arg(long, value_name = "BASE", help_heading = "Files")]
    pub(crate) report_base: Option<PathBuf>,
    /// Write the first wrong operator alone, as a model that shows the fault
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    pub(crate) repro: Option<PathBuf>,
}
