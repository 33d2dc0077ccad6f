//! Paths that stay inside of the bundle.
//!
//! A [`BundlePath`] cannot name anything outside by its text; [`BundlePath::resolve`] makes sure
//! that symbolic links do not either. There is no search and no working directory: a path means
//! the file below the bundle's folder, or nothing.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;
use veracity_diag::{Diagnostic, Place, Result, codes};

/// Longest path, in bytes. Also keeps it usable as a YAML key.
const MAX_PATH: usize = 512;

/// A relative path inside of a bundle, with `/` between its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct BundlePath(String);

impl BundlePath {
    /// The path as the bundle writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The file that the path names below `root`. Refused unless it is a regular file that is
    /// really there, links followed.
    pub fn resolve(&self, root: &Path) -> Result<PathBuf> {
        let place = || Place::file(root.join(&self.0).display().to_string());
        let cannot = |error: &io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                Diagnostic::error(codes::FILE_NOT_FOUND, format!("{:?} is not there", self.0))
            }
            _ => Diagnostic::error(
                codes::FILE_UNREADABLE,
                format!("{:?} cannot be read: {error}", self.0),
            ),
        };
        let real_root = fs::canonicalize(root).map_err(|error| cannot(&error).at(place()))?;
        let real = fs::canonicalize(real_root.join(&self.0))
            .map_err(|error| cannot(&error).at(place()))?;
        if !real.starts_with(&real_root) {
            return Err(Diagnostic::error(
                codes::PATH_SYMLINK_LEAVES_BUNDLE,
                format!("{:?} leads out of the bundle by a symbolic link", self.0),
            )
            .at(place())
            .hint("copy the file into the bundle")
            .into());
        }
        let metadata = fs::metadata(&real).map_err(|error| cannot(&error).at(place()))?;
        if !metadata.is_file() {
            return Err(not_a_file(&self.0).at(place()).into());
        }
        Ok(real)
    }
}

fn not_a_file(path: &str) -> Diagnostic {
    Diagnostic::error(codes::PATH_NOT_A_FILE, format!("{path:?} does not name a regular file"))
}

impl FromStr for BundlePath {
    type Err = Diagnostic;

    /// Takes a path as written. `.` parts and doubled slashes are dropped.
    fn from_str(text: &str) -> std::result::Result<Self, Diagnostic> {
        let bytes = text.as_bytes();
        let drive = bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
        if text.starts_with(['/', '\\']) || drive {
            return Err(Diagnostic::error(
                codes::PATH_ABSOLUTE,
                format!("path {text:?} is absolute"),
            )
            .hint("paths in a bundle are relative to its YAML file"));
        }
        if text.contains('\\') {
            return Err(leaves(text, "has a backslash, which some systems take for `/`")
                .hint("write `/` between folders"));
        }
        if text.split('/').any(|part| part == "..") {
            return Err(leaves(text, "leads out of the bundle")
                .hint("copy the file into the bundle (LEAPP: `copy_original_model=True`)"));
        }
        if text.chars().any(char::is_control) {
            return Err(leaves(text, "has a control character"));
        }
        if text.len() > MAX_PATH {
            return Err(leaves(text, "is longer than 512 bytes"));
        }
        let parts: Vec<&str> =
            text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
        if parts.is_empty() || text.ends_with('/') || text.ends_with("/.") {
            return Err(not_a_file(text));
        }
        Ok(Self(parts.join("/")))
    }
}

fn leaves(path: &str, why: &str) -> Diagnostic {
    Diagnostic::error(codes::PATH_LEAVES_BUNDLE, format!("path {path:?} {why}"))
}

impl fmt::Display for BundlePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_that_stay_inside_are_taken() {
        for (text, expected) in [
            ("a.onnx", Ok("a.onnx")),
            ("./models//a.onnx", Ok("models/a.onnx")),
            ("a..b/...c", Ok("a..b/...c")),
            ("", Err(codes::PATH_NOT_A_FILE)),
            (".", Err(codes::PATH_NOT_A_FILE)),
            ("models/", Err(codes::PATH_NOT_A_FILE)),
            ("/etc/passwd", Err(codes::PATH_ABSOLUTE)),
            ("C:/x", Err(codes::PATH_ABSOLUTE)),
            ("\\\\host\\x", Err(codes::PATH_ABSOLUTE)),
            ("../x.pt", Err(codes::PATH_LEAVES_BUNDLE)),
            ("a/../../x", Err(codes::PATH_LEAVES_BUNDLE)),
            ("a/..", Err(codes::PATH_LEAVES_BUNDLE)),
            ("a\\..\\x", Err(codes::PATH_LEAVES_BUNDLE)),
            ("a\0b", Err(codes::PATH_LEAVES_BUNDLE)),
            (&"x".repeat(513), Err(codes::PATH_LEAVES_BUNDLE)),
        ] {
            let found = text.parse::<BundlePath>();
            let found = found.as_ref().map(BundlePath::as_str).map_err(|problem| problem.code);
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_may_not_leave_and_only_regular_files_count() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("bundle");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("real"), b"x").unwrap();
        fs::write(folder.path().join("secret"), b"x").unwrap();
        symlink("real", root.join("inner")).unwrap();
        symlink("../secret", root.join("outer")).unwrap();
        symlink(folder.path(), root.join("up")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        for (text, expected) in [
            ("real", None),
            ("inner", None),
            ("outer", Some(codes::PATH_SYMLINK_LEAVES_BUNDLE)),
            ("up/secret", Some(codes::PATH_SYMLINK_LEAVES_BUNDLE)),
            ("broken", Some(codes::FILE_NOT_FOUND)),
            ("missing", Some(codes::FILE_NOT_FOUND)),
            ("sub", Some(codes::PATH_NOT_A_FILE)),
        ] {
            let found = text.parse::<BundlePath>().unwrap().resolve(&root);
            assert_eq!(found.err().map(|refusal| refusal.first_error().code), expected, "{text}");
        }
    }
}
