//! What tells that a file changed, without reading it.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Files that changed so recently may change again without looking different: clocks of file systems
/// are coarse.
const SETTLING: Duration = Duration::from_secs(2);

/// Time, size and number of each file; nothing for one that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    files: Vec<(PathBuf, Option<Mark>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    changed: Option<SystemTime>,
    bytes: u64,
    number: u64,
}

impl Marks {
    /// The marks of files as they are now.
    pub(super) fn of(files: &[PathBuf]) -> Self {
        let files = files.iter().map(|path| (path.clone(), mark(path)));
        Self { files: files.collect() }
    }

    /// These marks for files that have one, and those of now for the others.
    pub(super) fn with(self, files: &[PathBuf]) -> Self {
        let known = |path: &PathBuf| self.files.iter().find(|(other, _)| other == path);
        let fresh = |path: &PathBuf| (path.clone(), mark(path));
        let others = files.iter().map(|path| known(path).cloned().unwrap_or_else(|| fresh(path)));
        let first = self.files.iter().take(1).cloned();
        Self { files: first.chain(others).collect() }
    }

    /// Whether a file that looks the same is the same.
    #[expect(
        clippy::disallowed_methods,
        reason = "held against times of files; nothing shown depends on it"
    )]
    pub(super) fn is_settled(&self) -> bool {
        let now = SystemTime::now();
        let is_old = |mark: &Mark| {
            // A time that lies ahead is not that of a change just now.
            let age = mark.changed.and_then(|changed| now.duration_since(changed).ok());
            age.is_none_or(|age| age > SETTLING)
        };
        self.files.iter().filter_map(|(_, mark)| mark.as_ref()).all(is_old)
    }
}

fn mark(path: &Path) -> Option<Mark> {
    let metadata = std::fs::metadata(path).ok()?;
    let changed = metadata.modified().ok();
    Some(Mark { changed, bytes: metadata.len(), number: number(&metadata) })
}

#[cfg(unix)]
fn number(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn number(_: &Metadata) -> u64 {
    0
}
