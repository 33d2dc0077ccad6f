//! A folder beside the target that becomes the target in one step.
//!
//! A writer holds a lock on its folder, so that the next writer can tell the left-overs of one that
//! was killed from the work of one that is alive. Creating a folder and clearing left-overs happen
//! under a lock on the parent folder; otherwise a new folder could be cleared before it is locked.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use veracity_diag::{Diagnostic, Place, Result, codes};

use super::unwritable;
use crate::BundlePath;
use crate::open::holds_bundle;

/// A folder that is being filled. Dropped without [`Staging::publish`], it is removed.
#[derive(Debug)]
pub(super) struct Staging {
    path: PathBuf,
    target: PathBuf,
    parent: PathBuf,
    name: String,
    /// Held, not read: tells others that this writer is alive.
    _lock: Option<File>,
    /// Folders below `path` that were made.
    folders: BTreeSet<PathBuf>,
}

impl Staging {
    /// Makes a folder that can take the place of `target`.
    pub(super) fn begin(target: &Path) -> Result<Self> {
        let (parent, name) = locate(target)?;
        let target = parent.join(&name);
        check_replaceable(&target)?;
        let _parent_lock = lock_folder(&parent);
        restore_or_clear(&parent, &name, &target);
        let path = create_fresh(&parent, &name).map_err(|error| unwritable(&target, &error))?;
        let lock = File::open(&path).ok().filter(|folder| folder.try_lock().is_ok());
        Ok(Self { path, target, parent, name, _lock: lock, folders: BTreeSet::new() })
    }

    /// The folder to fill.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What the target is called.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Where to write a file, with its folders made.
    pub(super) fn prepare(&mut self, path: &BundlePath) -> Result<PathBuf> {
        let file = self.path.join(path.as_str());
        let mut folder = file.parent();
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        }
        while let Some(path) = folder.filter(|path| *path != self.path) {
            self.folders.insert(path.to_owned());
            folder = path.parent();
        }
        Ok(file)
    }

    /// The folders, which must reach the disk like the files in them.
    #[cfg(unix)]
    pub(super) fn folders(&self) -> Result<Vec<(PathBuf, File)>> {
        let folders = self.folders.iter().chain([&self.path]);
        let open = |path: &PathBuf| {
            let file = File::open(path).map_err(|error| unwritable(path, &error))?;
            Ok((path.clone(), file))
        };
        folders.map(open).collect()
    }

    /// Folders cannot be opened as files.
    #[cfg(not(unix))]
    pub(super) fn folders(&self) -> Result<Vec<(PathBuf, File)>> {
        Ok(Vec::new())
    }

    /// Puts the folder, which has reached the disk, in the place of the target.
    ///
    /// A step that has not reached the disk itself is as good as not taken, and leaves what was
    /// there before. It is only waited for where that is about to be removed.
    pub(super) fn publish(self) -> Result<PathBuf> {
        // Checked again: someone may have put something else there since.
        check_replaceable(&self.target)?;
        self.swap().map_err(|error| unwritable(&self.target, &error))?;
        Ok(self.target.clone()) // Dropping `self` removes the old bundle, which now is at `path`.
    }

    fn swap(&self) -> io::Result<()> {
        // Takes the place of nothing or of an empty folder.
        match fs::rename(&self.path, &self.target) {
            Err(error) if is_taken(&error) => {}
            result => return result,
        }
        match exchange(&self.path, &self.target) {
            Err(error) if cannot_exchange(&error) => self.swap_by_renaming(),
            result => result.and_then(|()| sync_folder(&self.parent)),
        }
    }

    /// For file systems that cannot exchange two folders. The parent is locked, so that no other
    /// writer takes the old bundle for a left-over meanwhile.
    fn swap_by_renaming(&self) -> io::Result<()> {
        let _parent_lock = lock_folder(&self.parent);
        let aside = self.parent.join(sibling(&self.name, OLD, &unique(0)));
        fs::rename(&self.target, &aside)?;
        if let Err(error) = fs::rename(&self.path, &self.target) {
            fs::rename(&aside, &self.target)?;
            return Err(error);
        }
        sync_folder(&self.parent)?;
        fs::remove_dir_all(&aside)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What cannot be removed is cleared by the next writer.
        let _ = fs::remove_dir_all(&self.path);
    }
}

const TEMPORARY: &str = "veracity-tmp";
const OLD: &str = "veracity-old";

fn sibling(name: &str, kind: &str, suffix: &str) -> String {
    format!(".{name}.{kind}-{suffix}")
}

fn unique(attempt: u32) -> String {
    format!("{}-{attempt}", std::process::id())
}

/// The parent folder, which is made if need be, and the name of the target in it.
fn locate(target: &Path) -> Result<(PathBuf, String)> {
    // A link to a folder stands for that folder.
    let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    let refuse = |message: &str| {
        Diagnostic::error(codes::FILE_UNWRITABLE, message)
            .at(Place::file(target.display().to_string()))
    };
    let Some(name) = target.file_name().map(OsString::from) else {
        return Err(refuse("the path does not name a folder that could be replaced").into());
    };
    let Ok(name) = name.into_string() else {
        return Err(refuse("the name of the folder is not UTF-8").into());
    };
    let parent = match target.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(|error| unwritable(parent, &error))?;
    let parent = fs::canonicalize(parent).map_err(|error| unwritable(parent, &error))?;
    Ok((parent, name))
}

/// Replacing a folder loses what it holds, so it must be empty or hold a bundle.
fn check_replaceable(target: &Path) -> Result<()> {
    let is_empty = match fs::read_dir(target) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => true,
        Err(error) => return Err(unwritable(target, &error).into()),
    };
    if is_empty || holds_bundle(target) {
        return Ok(());
    }
    let message = "the folder holds something other than a bundle and is not replaced";
    Err(Diagnostic::error(codes::FILE_UNWRITABLE, message)
        .at(Place::file(target.display().to_string()))
        .hint("name a new folder, or remove this one")
        .into())
}

fn create_fresh(parent: &Path, name: &str) -> io::Result<PathBuf> {
    let mut attempt = 0;
    loop {
        let path = parent.join(sibling(name, TEMPORARY, &unique(attempt)));
        match fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            result => return result.map(|()| path),
        }
    }
}

/// Waits for the lock on a folder. `None` where folders cannot be locked: then nothing is cleared.
fn lock_folder(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    folder.lock().ok().map(|()| folder)
}

/// Puts back an old bundle that a killed writer had moved aside, and clears what killed writers
/// left. Whatever fails here is left for the next writer.
fn restore_or_clear(parent: &Path, name: &str, target: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    let (temporary, old) = (sibling(name, TEMPORARY, ""), sibling(name, OLD, ""));
    for entry in entries.filter_map(io::Result::ok) {
        let file_name = entry.file_name();
        let file_name = file_name.to_string_lossy();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && file_name.starts_with(&old) {
            let _ = if target.exists() {
                fs::remove_dir_all(entry.path())
            } else {
                fs::rename(entry.path(), target)
            };
        } else if is_folder && file_name.starts_with(&temporary) {
            let abandoned = File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok());
            if abandoned {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(()) // Folders cannot be opened as files.
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn exchange(left: &Path, right: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    Ok(renameat_with(CWD, left, CWD, right, RenameFlags::EXCHANGE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn exchange(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether the error means that the target holds something.
fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists)
}

/// Whether the error means that the system or the file system has no such operation.
fn cannot_exchange(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old_and_new(folder: &Path) -> Staging {
        let target = folder.join("b");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("b.yaml"), "models: {}").unwrap();
        let staging = Staging::begin(&target).unwrap();
        fs::write(staging.path().join("new"), "").unwrap();
        staging
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn both_ways_to_swap_leave_only_the_new_bundle() {
        for by_renaming in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let staging = old_and_new(folder.path());
            if by_renaming {
                staging.swap_by_renaming().unwrap();
                drop(staging);
            } else {
                staging.publish().unwrap();
            }
            assert_eq!(names(folder.path()), ["b"]);
            assert_eq!(names(&folder.path().join("b")), ["new"]);
        }
    }

    #[test]
    fn a_bundle_that_was_moved_aside_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let aside = folder.path().join(".b.veracity-old-1-0");
        fs::create_dir(&aside).unwrap();
        fs::write(aside.join("b.yaml"), "old").unwrap();
        drop(Staging::begin(&folder.path().join("b")).unwrap());
        assert_eq!(names(folder.path()), ["b"]);
        assert_eq!(names(&folder.path().join("b")), ["b.yaml"]);
    }

    #[test]
    fn left_overs_are_cleared_and_living_writers_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("b");
        fs::create_dir(folder.path().join(".b.veracity-tmp-1-0")).unwrap();
        fs::create_dir(folder.path().join(".c.veracity-tmp-1-0")).unwrap();
        let first = Staging::begin(&target).unwrap();
        let second = Staging::begin(&target).unwrap();
        assert!(first.path().exists() && second.path().exists());
        drop((first, second));
        assert_eq!(names(folder.path()), [".c.veracity-tmp-1-0"]);
    }

    #[test]
    fn a_folder_with_other_things_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.tex"), "").unwrap();
        let refusal = Staging::begin(folder.path()).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::FILE_UNWRITABLE);
        assert_eq!(names(folder.path()), ["thesis.tex"]);
    }
}
