//! An installed torch, known by its files.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use veracity_diag::{Diagnostic, Refusal, Result, codes};

use crate::search::{Environment, Search, torch_in};

/// File names of torch's libraries.
pub(crate) const C10: &str = "libc10.so";
pub(crate) const TORCH_CPU: &str = "libtorch_cpu.so";
pub(crate) const TORCH_CUDA: &str = "libtorch_cuda.so";

/// The oldest torch, as major and minor version: the first with uint16, uint32 and uint64.
const OLDEST: (u32, u32) = (2, 3);

/// The largest version file that is read; real ones have 300 bytes.
const MAX_VERSION_FILE: u64 = 64 * 1024;

/// An installed torch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TorchLibrary {
    folder: PathBuf,
    version: String,
    /// Tells builds of one version apart.
    build: String,
}

impl TorchLibrary {
    /// Finds torch: the one that this process has already loaded, else the first of: the folder of
    /// `search`, `VERACITY_TORCH`, the `site-packages` of `search`, `VIRTUAL_ENV`, `CONDA_PREFIX`.
    pub fn find(search: &Search) -> Result<Self> {
        let environment = |name: &str| std::env::var_os(name);
        let loaded = fs::read_to_string("/proc/self/maps").ok().and_then(|maps| loaded_in(&maps));
        match loaded {
            Some(folder) => Self::already_loaded(&folder, search, &environment),
            None => Self::at(&search.locate(&environment)?),
        }
    }

    /// The folder that holds `lib` and `include`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Version as torch says it, such as `2.11.0+cu130`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Major and minor version, where they can be read.
    pub(crate) fn release(&self) -> Option<(u32, u32)> {
        release_of(&self.version)
    }

    /// The version and whatever else tells this build from others.
    pub(crate) fn build(&self) -> &str {
        &self.build
    }

    /// A shared library of torch.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join("lib").join(name)
    }

    /// Two torches in one process break each other, so the wish for another one is refused.
    fn already_loaded(
        folder: &Path,
        search: &Search,
        environment: Environment<'_>,
    ) -> Result<Self> {
        let loaded = Self::at(folder)?;
        match search.wish(environment, &mut Vec::new()) {
            Some(wish)
                if torch_in(&wish).and_then(|path| path.canonicalize().ok()).as_deref()
                    != Some(loaded.folder()) =>
            {
                Err(second_torch(loaded.folder(), &wish))
            }
            _ => Ok(loaded),
        }
    }

    pub(crate) fn at(folder: &Path) -> Result<Self> {
        // Absolute, because a relative name would mean something else to the dynamic linker.
        let folder =
            fs::canonicalize(folder).map_err(|error| unusable(folder, &error.to_string()))?;
        let python = read_small(&folder.join("version.py"));
        // The archives for C++ have no Python file but this one.
        let plain = read_small(&folder.join("build-version"));
        let version = [quoted_after(&python, "__version__").unwrap_or_default(), plain.trim()]
            .into_iter()
            .find(|version| !version.is_empty())
            .ok_or_else(|| unusable(&folder, "it does not say its version"))?
            .to_owned();
        if is_too_old(&version) {
            let (major, minor) = OLDEST;
            let why = format!("it is version {version}, {major}.{minor} is the oldest that works");
            return Err(unusable(&folder, &why));
        }
        let size_of =
            |name| fs::metadata(folder.join("lib").join(name)).map_or(0, |file| file.len());
        let commit = quoted_after(&python, "git_version").unwrap_or_default();
        let build = format!("{version} {commit} {} {}", size_of(C10), size_of(TORCH_CPU));
        Ok(Self { folder, version, build })
    }
}

/// A refusal for a process that has one torch and is asked to use another.
pub(crate) fn second_torch(loaded: &Path, wished: &Path) -> Refusal {
    Diagnostic::error(
        codes::ENGINE_UNUSABLE,
        format!(
            "this process has already loaded the torch in {}, so the one in {} cannot be used",
            loaded.display(),
            wished.display()
        ),
    )
    .into()
}

/// A refusal for a torch, or a part of one, that is there but does not work.
pub(crate) fn unusable(path: &Path, why: &str) -> Refusal {
    Diagnostic::error(codes::ENGINE_UNUSABLE, format!("{} cannot be used: {why}", path.display()))
        .into()
}

/// The torch folder whose library is mapped into a process with this `/proc/self/maps`.
fn loaded_in(maps: &str) -> Option<PathBuf> {
    let path = maps
        .lines()
        .filter_map(|line| line.find('/').map(|start| Path::new(&line[start..])))
        .find(|path| path.file_name().is_some_and(|name| name == TORCH_CPU))?;
    Some(path.parent()?.parent()?.to_owned())
}

/// A version that cannot be read is given the benefit of the doubt.
fn is_too_old(version: &str) -> bool {
    release_of(version).is_some_and(|release| release < OLDEST)
}

/// Major and minor version.
fn release_of(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The text in quotes on the line `name = '…'`, with or without a type in between.
fn quoted_after<'a>(python: &'a str, name: &str) -> Option<&'a str> {
    let line = python.lines().find_map(|line| {
        let rest = line.strip_prefix(name)?;
        rest.starts_with([' ', '=', ':']).then_some(rest)
    })?;
    let value = line.split_once('=')?.1.trim();
    let quote = value.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    value[1..].split_once(quote).map(|(text, _)| text)
}

/// The text of a small file; empty when there is none.
fn read_small(path: &Path) -> String {
    let read = || {
        let mut text = String::new();
        fs::File::open(path)?.take(MAX_VERSION_FILE).read_to_string(&mut text)?;
        std::io::Result::Ok(text)
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(torch: &Path, version: &str) {
        fs::create_dir_all(torch.join("lib")).unwrap();
        fs::write(torch.join("lib").join(TORCH_CPU), "").unwrap();
        fs::write(torch.join("version.py"), format!("__version__ = '{version}'\n")).unwrap();
    }

    #[test]
    fn the_version_is_read_without_python() {
        let root = tempfile::tempdir().unwrap();
        install(root.path(), "2.11.0+cu130");
        assert_eq!(TorchLibrary::at(root.path()).unwrap().version(), "2.11.0+cu130");
        fs::remove_file(root.path().join("version.py")).unwrap();
        fs::write(root.path().join("build-version"), "2.9.0+cpu\n").unwrap();
        assert_eq!(TorchLibrary::at(root.path()).unwrap().version(), "2.9.0+cpu");
    }

    #[test]
    fn a_torch_without_a_version_or_too_old_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for version in ["", "1.13.1", "2.2.2+cpu"] {
            install(root.path(), version);
            let refusal = TorchLibrary::at(root.path()).unwrap_err();
            assert_eq!(refusal.first_error().code, codes::ENGINE_UNUSABLE, "{version:?}");
        }
        for version in ["2.3.0", "2.12.0a0+git1234567", "3.0.0", "main"] {
            install(root.path(), version);
            assert!(TorchLibrary::at(root.path()).is_ok(), "{version:?}");
        }
    }

    #[test]
    fn a_loaded_torch_is_seen_in_the_memory_map() {
        let maps = "7f00-7f01 r--p 0 08:01 1 /usr/lib/libc.so.6\n\
                    7f02-7f03 r-xp 0 08:01 2 /opt/my env/torch/lib/libtorch_cpu.so\n";
        assert_eq!(loaded_in(maps), Some("/opt/my env/torch".into()));
        assert_eq!(loaded_in("7f00-7f01 r--p 0 08:01 1 /x/libtorch_cpu.so.bak\n"), None);
    }

    #[test]
    fn a_second_torch_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let (loaded, other) = (root.path().join("one/torch"), root.path().join("two/torch"));
        install(&loaded, "2.4.0");
        install(&other, "2.5.0");
        let find = |wish: Option<&Path>| {
            let search = Search { folder: wish.map(Path::to_owned), ..Search::default() };
            TorchLibrary::already_loaded(&loaded, &search, &|_| None)
        };
        for wish in [None, Some(loaded.as_path()), loaded.parent()] {
            assert_eq!(find(wish).unwrap().version(), "2.4.0", "{wish:?}");
        }
        for wish in [other.as_path(), Path::new("/nowhere")] {
            let refusal = find(Some(wish)).unwrap_err();
            assert_eq!(refusal.first_error().code, codes::ENGINE_UNUSABLE, "{wish:?}");
        }
    }

    #[test]
    fn values_are_read_from_python_text() {
        let python = "__version__extra = 'no'\n__version__ = '2.1.0+cpu'\n\
                      git_version: str = \"abc\"\ncuda: Optional[str] = None\n";
        assert_eq!(quoted_after(python, "__version__"), Some("2.1.0+cpu"));
        assert_eq!(quoted_after(python, "git_version"), Some("abc"));
        assert_eq!(quoted_after(python, "cuda"), None);
        assert_eq!(quoted_after(python, "hip"), None);
    }
}
