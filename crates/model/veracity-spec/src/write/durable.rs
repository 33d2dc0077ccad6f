//! Makes many files durable at once.
//!
//! A disk takes a few milliseconds for each file that is made durable alone; files that are waited
//! for together share that time.

use std::fs::File;
use std::path::PathBuf;
use std::thread;

use veracity_diag::{Diagnostic, Reporter, Result};

use super::unwritable;

/// Files that are waited for together, and held open until then.
const TOGETHER: usize = 16;

/// Files that were written and may not have reached the disk.
#[derive(Debug, Default)]
pub(super) struct Unsynced(Vec<(PathBuf, File)>);

impl Unsynced {
    /// Takes over a file that was just written.
    pub(super) fn add(&mut self, path: PathBuf, file: File) -> Result<()> {
        self.0.push((path, file));
        if self.0.len() < TOGETHER { Ok(()) } else { self.sync() }
    }

    /// Waits until every file is on the disk.
    pub(super) fn sync(&mut self) -> Result<()> {
        self.sync_while(|| Ok(()))
    }

    /// Does something else until every file is on the disk.
    pub(super) fn sync_while<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let files = std::mem::take(&mut self.0);
        let sync = |(path, file): &(PathBuf, File)| -> Option<Diagnostic> {
            file.sync_all().err().map(|error| unwritable(path, &error))
        };
        let (done, problems): (Result<T>, Vec<Diagnostic>) = thread::scope(|scope| {
            let threads: Vec<_> =
                files.iter().map(|file| scope.spawn(move || sync(file))).collect();
            let done = work();
            let joined = threads.into_iter().map(|thread| thread.join().expect("syncing ends"));
            (done, joined.flatten().collect())
        });
        let mut reporter = Reporter::new();
        for problem in problems {
            reporter.report(problem);
        }
        reporter.finish()?;
        done
    }
}
