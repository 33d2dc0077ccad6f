//! Runs the binary and shows what it said.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use veracity::tensor::Tensor;
use veracity::tensor::file::{self, TensorMap};

/// Variables of the caller that would change what the binary says or finds.
const VARIABLES: [&str; 7] = [
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "VERACITY_ORT_LIBRARY",
    "VERACITY_TORCH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
];

/// An empty folder that the binary runs in, so that it names files as they are given.
pub(crate) struct Desk {
    folder: TempDir,
}

/// What the binary said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The binary, ready to be given more than arguments.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_veracity"));
        command.args(arguments.split_whitespace()).current_dir(self.folder.path());
        for variable in VARIABLES {
            command.env_remove(variable);
        }
        command
    }

    /// Runs the binary with arguments that hold no spaces.
    pub(crate) fn run(&self, arguments: &str) -> Said {
        Said::from(self.command(arguments))
    }

    /// Writes a file of tensors.
    pub(crate) fn tensors<const N: usize>(&self, name: &str, tensors: [(&str, Tensor); N]) {
        let tensors: TensorMap =
            tensors.into_iter().map(|(key, tensor)| (key.to_owned(), tensor)).collect();
        file::write(self.path(name), &tensors).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Changes a bit of the last byte of a file.
    pub(crate) fn damage(&self, name: &str) {
        let mut bytes = std::fs::read(self.path(name)).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(self.path(name), bytes).unwrap();
    }

    /// Changes a text file.
    pub(crate) fn edit(&self, name: &str, from: &str, to: &str) {
        let text = std::fs::read_to_string(self.path(name)).unwrap();
        assert!(text.contains(from), "{name} has no {from:?}:\n{text}");
        std::fs::write(self.path(name), text.replacen(from, to, 1)).unwrap();
    }
}

impl From<Command> for Said {
    fn from(mut command: Command) -> Self {
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        Self { code: output.status.code().expect("it was not killed"), stdout, stderr }
    }
}

impl Said {
    /// Refuses to go on when the command did.
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit code {}", self.code)?;
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                write!(f, "\n----- {name} -----\n{text}")?;
            }
        }
        Ok(())
    }
}

/// What changes from run to run or from release to release.
pub(crate) const FILTERS: [(&str, &str); 8] = [
    (r"\b[0-9a-f]{64}\b", "[sha256]"),
    (r"\d+\.\d+\.\d+", "[version]"),
    (r" +\d+ B\b", " [size]"),
    (r"size: \d+", "size: [size]"),
    (r"(\[size\]  |sha256:? )[0-9a-f]{12,}", "$1[sha256 start]"),
    (r"\bos( +)\w+", "os$1[os]"),
    (r"\b[0-9a-f]{12}\b", "[hash start]"),
    (r"\b(linux|macos|windows) \w+", "[system]"),
];

/// Compares what was said with a snapshot.
#[macro_export]
macro_rules! assert_said {
    ($said:expr, @$snapshot:literal) => {
        insta::with_settings!({ filters => $crate::support::FILTERS }, {
            insta::assert_snapshot!($said, @$snapshot);
        });
    };
}

/// The Python environment of the workspace, which holds ONNX Runtime.
pub(crate) fn python_environment() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../.venv");
    assert!(folder.is_dir(), "{} is missing: run `make setup`", folder.display());
    folder
}
