//! Makes many files durable at once.
//!
//! A disk takes a few milliseconds for each file that is made durable alone; files that are waited
//! for together share that time. Small files wait for the last ones, so that one wait does for all.

use std::fs::File;
use std::path::PathBuf;
use std::thread;

use veracity_diag::{Diagnostic, Reporter, Result};

use super::unwritable;

/// Files that are waited for together, and held open until then.
const TOGETHER: usize = 16;

/// Bytes from which a file is worth a wait of its own, if there is something to do meanwhile.
const LARGE: u64 = 1 << 20;

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
        sync_all_while(&std::mem::take(&mut self.0), || Ok(()))
    }

    /// Does something else until the large files are on the disk. The others still have to get
    /// there.
    pub(super) fn sync_large_while<T>(&mut self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let is_large = |(_, file): &(PathBuf, File)| {
            file.metadata().is_ok_and(|metadata| metadata.len() >= LARGE)
        };
        let (large, others): (Vec<_>, _) =
            std::mem::take(&mut self.0).into_iter().partition(is_large);
        self.0 = others;
        sync_all_while(&large, work)
    }
}

fn sync_all_while<T>(files: &[(PathBuf, File)], work: impl FnOnce() -> Result<T>) -> Result<T> {
    let sync = |(path, file): &(PathBuf, File)| -> Option<Diagnostic> {
        file.sync_all().err().map(|error| unwritable(path, &error))
    };
    let (done, problems): (Result<T>, Vec<Diagnostic>) = thread::scope(|scope| {
        let threads: Vec<_> = files.iter().map(|file| scope.spawn(move || sync(file))).collect();
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn only_large_files_are_waited_for_while_something_else_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let mut unsynced = Unsynced::default();
        for (name, len) in [("small", 10), ("large", 1 << 20), ("empty", 0)] {
            let path = folder.path().join(name);
            let mut file = File::create(&path).unwrap();
            file.write_all(&vec![1; len]).unwrap();
            unsynced.add(path, file).unwrap();
        }
        assert_eq!(unsynced.sync_large_while(|| Ok(7)).unwrap(), 7);
        let left: Vec<_> = unsynced.0.iter().map(|(path, _)| path.file_name().unwrap()).collect();
        assert_eq!(left, ["small", "empty"]);
        unsynced.sync().unwrap();
        assert!(unsynced.0.is_empty());
    }
}
