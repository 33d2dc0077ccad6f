//! Keeps compiled shims. A file is either whole or not there: it is written under another name and
//! renamed, and it ends with a hash of itself, because the dynamic linker crashes on a file that
//! was cut off.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};

/// Bytes of the hash at the end of an entry.
const HASH_LEN: usize = 32;

/// A folder of compiled shims.
#[derive(Clone, Debug)]
pub(crate) struct Cache {
    folder: PathBuf,
}

impl Cache {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The user's cache: `VERACITY_CACHE`, else `veracity` in `XDG_CACHE_HOME`, else in `~/.cache`.
    pub(crate) fn from_environment() -> Result<Self> {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = variable("VERACITY_CACHE")
            .map(PathBuf::from)
            .or_else(|| variable("XDG_CACHE_HOME").map(|home| PathBuf::from(home).join("veracity")))
            .or_else(|| variable("HOME").map(|home| PathBuf::from(home).join(".cache/veracity")));
        folder.map(Self::new).ok_or_else(|| {
            Diagnostic::error(codes::SHIM_BUILD_FAILED, "there is no folder to keep the shim in")
                .hint("set VERACITY_CACHE to a folder that you can write to")
                .into()
        })
    }

    /// The shim for this build of torch, made by `make` when there is no whole one. `make` gets an
    /// empty folder to work in and returns the file that it made there.
    pub(crate) fn get_or_make(
        &self,
        version: &str,
        identity: &[&str],
        make: impl FnOnce(&Path) -> Result<PathBuf>,
    ) -> Result<PathBuf> {
        let entry = self.folder.join(entry_name(version, identity));
        if is_whole(&entry) {
            return Ok(entry);
        }
        self.fill(&entry, make)?;
        Ok(entry)
    }

    fn fill(&self, entry: &Path, make: impl FnOnce(&Path) -> Result<PathBuf>) -> Result<()> {
        let unwritable = |error: std::io::Error| unwritable(&self.folder, &error);
        fs::create_dir_all(&self.folder).map_err(unwritable)?;
        let scratch = tempfile::Builder::new()
            .prefix("making-")
            .tempdir_in(&self.folder)
            .map_err(unwritable)?;
        let file = make(scratch.path())?;
        seal(&file).map_err(unwritable)?;
        fs::rename(&file, entry).map_err(unwritable)
    }
}

fn unwritable(folder: &Path, error: &std::io::Error) -> Refusal {
    Diagnostic::error(codes::SHIM_BUILD_FAILED, format!("the cache folder cannot be used: {error}"))
        .at(Place::file(folder.display().to_string()))
        .hint("set VERACITY_CACHE to a folder that you can write to")
        .into()
}

/// `torch-2.11.0+cu130-0123456789abcdef.so`. The version is for people; the hash decides.
fn entry_name(version: &str, identity: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in identity {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let hash = hash.finalize();
    let start = hash.first_chunk().expect("a hash has 32 bytes");
    let digits = u64::from_be_bytes(*start);
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "+.-".contains(c) { c } else { '_' }
    };
    let version: String = version.chars().take(40).map(plain).collect();
    format!("torch-{version}-{digits:016x}.so")
}

/// Appends the hash of the file to it. The dynamic linker does not read past the sections.
fn seal(path: &Path) -> std::io::Result<()> {
    let hash = Sha256::digest(fs::read(path)?);
    let mut file = fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(&hash)?;
    file.sync_all()
}

fn is_whole(path: &Path) -> bool {
    let Ok(bytes) = fs::read(path) else {
        return false;
    };
    bytes
        .split_last_chunk::<HASH_LEN>()
        .is_some_and(|(content, hash)| Sha256::digest(content).as_slice() == hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn make_with(content: &'static str) -> impl FnOnce(&Path) -> Result<PathBuf> {
        move |scratch| {
            let path = scratch.join("made");
            fs::write(&path, content).unwrap();
            Ok(path)
        }
    }

    fn must_not_make(_: &Path) -> Result<PathBuf> {
        panic!("a whole entry was made again")
    }

    #[test]
    fn an_entry_is_made_once() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(root.path().join("new/folder"));
        let first = cache.get_or_make("2.0", &["a"], make_with("shim")).unwrap();
        assert_eq!(cache.get_or_make("2.0", &["a"], must_not_make).unwrap(), first);
        let left: Vec<_> = fs::read_dir(root.path().join("new/folder")).unwrap().collect();
        assert_eq!(left.len(), 1, "scratch folders were left behind: {left:?}");
    }

    #[test]
    fn a_damaged_entry_is_made_again() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(root.path().to_owned());
        let entry = cache.get_or_make("2.0", &["a"], make_with("shim")).unwrap();
        for damage in [&b""[..], b"shim", b"other content that is longer than one hash is"] {
            fs::write(&entry, damage).unwrap();
            cache.get_or_make("2.0", &["a"], make_with("shim")).unwrap();
            assert!(is_whole(&entry));
        }
    }

    #[test]
    fn every_part_of_the_identity_counts() {
        let names = [
            entry_name("2.0", &["ab", "c"]),
            entry_name("2.0", &["a", "bc"]),
            entry_name("2.0", &["abc"]),
            entry_name("2.1", &["abc"]),
        ];
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name} stands for two things");
        }
        assert!(!entry_name("../../x", &[]).contains('/'));
    }

    #[test]
    fn a_failed_attempt_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let cache = Cache::new(root.path().to_owned());
        let fail = |_: &Path| Err(Diagnostic::error(codes::SHIM_BUILD_FAILED, "no").into());
        assert!(cache.get_or_make("2.0", &["a"], fail).is_err());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_refused() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let cache = Cache::new(root.path().join("file"));
        let refusal = cache.get_or_make("2.0", &["a"], make_with("shim")).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::SHIM_BUILD_FAILED);
        assert!(refusal.first_error().hints[0].contains("VERACITY_CACHE"));
    }
}
