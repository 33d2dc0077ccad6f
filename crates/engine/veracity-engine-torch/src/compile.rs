//! Compiles the shim with whatever C++ compiler is there.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use memchr::memmem::Finder;
use veracity_diag::{Diagnostic, Refusal, Result, codes};

use crate::library::{C10, TORCH_CPU, TorchLibrary};

/// Source of the shim.
pub(crate) const SOURCE: &str = include_str!("../shim/shim.cpp");

/// Flags that do not depend on the machine.
const FLAGS: [&str; 4] = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden"];

/// The first torch, as major and minor version, whose headers are written in C++20.
const FIRST_CPP20: (u32, u32) = (2, 12);

/// Flags for this torch.
pub(crate) fn flags_for(library: &TorchLibrary) -> Vec<&'static str> {
    let needs_cpp20 = library.release().is_some_and(|release| release >= FIRST_CPP20);
    let standard = if needs_cpp20 { "-std=c++20" } else { "-std=c++17" };
    FLAGS.into_iter().chain([standard]).collect()
}

/// How many lines of a compiler's complaint are passed on.
const SHOWN_LINES: usize = 12;

/// Compilers to try, best first: a program and its leading arguments.
#[derive(Clone, Debug)]
pub(crate) struct Toolchain {
    compilers: Vec<Vec<String>>,
}

impl Toolchain {
    /// `CXX`, then the usual names.
    pub(crate) fn from_environment() -> Self {
        let wish = std::env::var("CXX").unwrap_or_default();
        Self::new(&[&wish, "c++", "g++", "clang++"])
    }

    /// Each command may carry arguments, as `CXX="ccache g++"` does.
    fn new(commands: &[&str]) -> Self {
        let split = |command: &&str| command.split_whitespace().map(str::to_owned).collect();
        let compilers: Vec<Vec<String>> = commands.iter().map(split).collect();
        Self { compilers: compilers.into_iter().filter(|words| !words.is_empty()).collect() }
    }

    /// Compiles the shim for this torch inside of `scratch`.
    pub(crate) fn compile(&self, library: &TorchLibrary, scratch: &Path) -> Result<PathBuf> {
        let source = scratch.join("shim.cpp");
        fs::write(&source, SOURCE)
            .map_err(|error| failed(&format!("{}: {error}", source.display())))?;
        let target = scratch.join("shim.so");
        let without_programs = (!has_runner(library)).then_some("-DVERACITY_WITHOUT_PROGRAMS");
        let (compiler, output) = self.first_that_exists(|command| {
            command
                .args(flags_for(library))
                .args(without_programs)
                .arg(format!("-D_GLIBCXX_USE_CXX11_ABI={}", string_abi(library)))
                .arg("-isystem")
                .arg(library.folder().join("include"))
                .arg(&source)
                .arg("-o")
                .arg(&target)
                .arg("-L")
                .arg(library.folder().join("lib"))
                .args(["-ltorch_cpu", "-lc10", "-ldl"]);
        })?;
        if output.status.success() { Ok(target) } else { Err(complaint(&compiler, &output)) }
    }

    fn first_that_exists(&self, arguments: impl Fn(&mut Command)) -> Result<(String, Output)> {
        for words in &self.compilers {
            let mut command = Command::new(&words[0]);
            command.args(&words[1..]).stdin(Stdio::null());
            arguments(&mut command);
            match command.output() {
                Ok(output) => return Ok((words.join(" "), output)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(failed(&format!("{}: {error}", words[0])).into()),
            }
        }
        Err(self.none_found())
    }

    fn none_found(&self) -> Refusal {
        let names: Vec<_> = self.compilers.iter().map(|words| words[0].as_str()).collect();
        failed(&format!("no C++ compiler was found (tried {})", names.join(", ")))
            .hint("install one, for example `apt install g++` or `dnf install gcc-c++`, or set CXX")
            .into()
    }
}

fn failed(why: &str) -> Diagnostic {
    Diagnostic::error(
        codes::SHIM_BUILD_FAILED,
        format!("the TorchScript shim was not built: {why}"),
    )
}

fn complaint(compiler: &str, output: &Output) -> Refusal {
    let text = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<_> = text.lines().collect();
    let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    failed(&format!("`{compiler}` ended with {}\n{shown}", output.status))
        .hint(
            "torch must be installed with its headers, and the compiler must know C++17, or C++20 for \
             torch 2.12 and newer",
        )
        .into()
}

/// Which of libstdc++'s two string types this torch was built with, read off the name of one
/// function. Wheels up to torch 2.5 used the old one.
fn string_abi(library: &TorchLibrary) -> u8 {
    const OLD: &[u8] = b"N3c105ErrorC2ENS_14SourceLocationESs";
    let bytes = fs::read(library.file(C10)).unwrap_or_default();
    let is_old = bytes.windows(OLD.len()).any(|window| window == OLD);
    u8::from(!is_old)
}

/// How much of a library is searched at a time.
const CHUNK: usize = 1 << 22;

/// Whether torch can run exported programs without Python: torch 2.15 has nothing but the header.
fn has_runner(library: &TorchLibrary) -> bool {
    const NAME: &[u8] = b"_ZN5torch8nativert17ModelRunnerHandle";
    let finder = Finder::new(NAME);
    let Ok(mut file) = File::open(library.file(TORCH_CPU)) else { return false };
    let mut buffer = vec![0; CHUNK];
    let mut kept = 0;
    loop {
        let Ok(read) = file.read(&mut buffer[kept..]) else { return false };
        let filled = kept + read;
        if finder.find(&buffer[..filled]).is_some() {
            return true;
        }
        if read == 0 {
            return false;
        }
        kept = filled.min(NAME.len() - 1); // it may lie across two of them
        buffer.copy_within(filled - kept..filled, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fake_torch(root: &Path, c10: &str) -> TorchLibrary {
        fake_version(root, c10, "2.11.0")
    }

    fn fake_version(root: &Path, c10: &str, version: &str) -> TorchLibrary {
        let lib = root.join("lib");
        fs::create_dir_all(&lib).unwrap();
        fs::write(lib.join("libtorch_cpu.so"), "").unwrap();
        fs::write(lib.join(C10), c10).unwrap();
        fs::write(root.join("version.py"), format!("__version__ = '{version}'\n")).unwrap();
        TorchLibrary::at(root).unwrap()
    }

    #[test]
    fn without_a_compiler_the_hint_says_what_to_install() {
        let root = tempfile::tempdir().unwrap();
        let library = fake_torch(root.path(), "");
        let toolchain = Toolchain::new(&["", "no-such-compiler", "nor-this --with arguments"]);
        let refusal = toolchain.compile(&library, root.path()).unwrap_err();
        let error = refusal.first_error();
        assert_eq!(error.code, codes::SHIM_BUILD_FAILED);
        assert!(error.message.contains("no-such-compiler, nor-this"), "{}", error.message);
        assert!(error.hints[0].contains("install"));
    }

    #[test]
    fn a_compile_error_is_shown() {
        let root = tempfile::tempdir().unwrap();
        let library = fake_torch(root.path(), "");
        let refusal = Toolchain::new(&["c++"]).compile(&library, root.path()).unwrap_err();
        let error = refusal.first_error();
        assert_eq!(error.code, codes::SHIM_BUILD_FAILED);
        assert!(error.message.contains("ATen/Parallel.h"), "{}", error.message);
    }

    #[test]
    fn the_standard_is_that_of_the_headers() {
        let root = tempfile::tempdir().unwrap();
        for (version, standard) in [
            ("2.3.0", "-std=c++17"),
            ("2.11.0+cu130", "-std=c++17"),
            ("2.12.0", "-std=c++20"),
            ("2.15.0a0+git123", "-std=c++20"),
            ("3.0.0", "-std=c++20"),
        ] {
            let flags = flags_for(&fake_version(root.path(), "", version));
            assert!(flags.contains(&standard), "{version}: {flags:?}");
        }
    }

    #[test]
    fn the_runner_is_looked_for_in_the_library() {
        let root = tempfile::tempdir().unwrap();
        let library = fake_torch(root.path(), "");
        assert!(!has_runner(&library));
        let name = "_ZN5torch8nativert17ModelRunnerHandleC1E";
        for before in [0, CHUNK - 20, CHUNK, 3 * CHUNK - 1] {
            fs::write(library.file(TORCH_CPU), ".".repeat(before) + name).unwrap();
            assert!(has_runner(&library), "{before}");
        }
    }

    #[test]
    fn the_string_abi_is_read_off_the_library() {
        let root = tempfile::tempdir().unwrap();
        let old = "..._ZN3c105ErrorC2ENS_14SourceLocationESs...";
        let new = "..._ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIc...";
        for (symbols, expected) in [(old, 0), (new, 1), ("", 1)] {
            assert_eq!(string_abi(&fake_torch(root.path(), symbols)), expected, "{symbols:?}");
        }
    }
}
