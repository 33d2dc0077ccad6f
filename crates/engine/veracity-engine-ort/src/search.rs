//! Where to look for the library: option, environment variable, Python package, system.
//!
//! An option or a variable is a wish: when it is set and leads nowhere, that is refused, and no
//! other library takes its place. The Python package and the system are looked at only without a
//! wish. No Python process is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use veracity_diag::{Code, Diagnostic, Refusal, Result, codes};
use veracity_engine::site_packages_of;

use crate::file_name;

/// Variables that name the library, the first one set wins. The second belongs to the `ort` crate:
/// machines that are set up for other programs work without further ado.
const VARIABLES: [&str; 2] = ["VERACITY_ORT_LIBRARY", "ORT_DYLIB_PATH"];

/// Variables by which an active Python environment is known.
const PYTHON_PREFIXES: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// Where to look for the library before and beside the places that are always looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The library, or a folder that holds it. No other place is looked at then.
    pub library: Option<PathBuf>,
    /// `site-packages` folders of the Python that is running, if one is.
    pub site_packages: Vec<PathBuf>,
}

/// Where the library is, as far as files tell.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// In this file.
    File(PathBuf),
    /// In no file that we know of; the dynamic loader may find it.
    System(Looked),
}

/// The places that were looked at so far, in order, each with what was there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Looked(Vec<String>);

impl Search {
    /// Looks through options, variables and Python environments. `env` reads one environment
    /// variable; it is the only way in which the environment is read.
    pub(crate) fn locate(&self, env: &dyn Fn(&str) -> Option<OsString>) -> Result<Location> {
        let mut looked = Looked::default();
        if let Some(wish) = self.wish(env, &mut looked) {
            return match library_at(&wish) {
                Some(file) => Ok(Location::File(file)),
                None => Err(looked.unfulfilled()),
            };
        }
        for packages in self.package_folders(env) {
            let folder = match packages {
                Ok(packages) => packages.join("onnxruntime").join("capi"),
                Err(why_none) => {
                    looked.note(why_none);
                    continue;
                }
            };
            looked.note(format!("Python package: {}", folder.display()));
            if let Some(file) = library_in(&folder) {
                return Ok(Location::File(file));
            }
        }
        Ok(Location::System(looked))
    }

    /// What the option or a variable names.
    fn wish(&self, env: &dyn Fn(&str) -> Option<OsString>, looked: &mut Looked) -> Option<PathBuf> {
        if let Some(library) = &self.library {
            looked.note(format!("option: {}", library.display()));
            return Some(library.clone());
        }
        looked.note("option: not given");
        for variable in VARIABLES {
            if let Some(value) = env(variable).filter(|value| !value.is_empty()) {
                let library = PathBuf::from(value);
                looked.note(format!("environment variable {variable}: {}", library.display()));
                return Some(library);
            }
            looked.note(format!("environment variable {variable}: not set"));
        }
        None
    }

    /// `site-packages` folders: the given ones, then those of active environments, or why an
    /// environment has none.
    fn package_folders(
        &self,
        env: &dyn Fn(&str) -> Option<OsString>,
    ) -> Vec<std::result::Result<PathBuf, String>> {
        let mut folders: Vec<_> = self.site_packages.iter().cloned().map(Ok).collect();
        for variable in PYTHON_PREFIXES {
            let Some(prefix) = env(variable).filter(|value| !value.is_empty()) else {
                folders.push(Err(format!("Python environment: {variable} is not set")));
                continue;
            };
            let found = site_packages_of(Path::new(&prefix));
            if found.is_empty() {
                let prefix = Path::new(&prefix).display();
                folders.push(Err(format!("Python environment: no site-packages in {prefix}")));
            }
            folders.extend(found.into_iter().map(Ok));
        }
        folders
    }
}

impl Looked {
    /// Remembers a place.
    pub(crate) fn note(&mut self, place: impl Into<String>) {
        self.0.push(place.into());
    }

    /// Says that the library was in none of the places.
    pub(crate) fn refusal(self) -> Refusal {
        self.refusal_as(codes::ENGINE_NOT_FOUND, "the ONNX Runtime library was not found")
    }

    /// Says that there is no library where the option or a variable says. Another code than
    /// absence: whoever named a library does not want another engine in its place.
    fn unfulfilled(self) -> Refusal {
        let message = "there is no ONNX Runtime library at the place that was named";
        self.refusal_as(codes::ENGINE_UNUSABLE, message)
    }

    fn refusal_as(self, code: Code, message: &str) -> Refusal {
        let mut diagnostic = Diagnostic::error(code, message);
        for (index, place) in self.0.into_iter().enumerate() {
            diagnostic = diagnostic.hint(format!("looked at {}. {place}", index + 1));
        }
        diagnostic
            .hint("`pip install onnxruntime` in the active Python environment brings the library")
            .hint(format!("or set {} to the library or to its folder", VARIABLES[0]))
            .into()
    }
}

/// The library that a path names: the file itself, or the one in that folder or in its `lib`, as
/// the archives of the project have it.
fn library_at(path: &Path) -> Option<PathBuf> {
    if path.is_file() {
        return Some(path.to_owned());
    }
    library_in(path).or_else(|| library_in(&path.join("lib")))
}

/// The library in a folder; the newest, when there are several.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?;
    entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some((file_name::version_in(&name)?, folder.join(name))))
        .filter(|(_, path)| path.is_file())
        .max()
        .map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &str = crate::file_name::LOADER_NAMES[0];

    /// Makes empty files under a new folder.
    fn folder_with(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    fn packages(prefix: &str) -> String {
        let python = if cfg!(windows) { "Lib" } else { "lib/python3.12" };
        format!("{prefix}/{python}/site-packages/onnxruntime/capi/{LIBRARY}")
    }

    #[test]
    fn the_first_place_that_is_set_decides() {
        let (venv, conda) = (packages("venv"), packages("conda"));
        let given = format!("given/onnxruntime/capi/{LIBRARY}");
        let option = format!("option/lib/{LIBRARY}");
        let ours = format!("ours/{LIBRARY}");
        let root = folder_with(&[&venv, &conda, &given, &option, &ours, "theirs/any.name"]);
        let at = |path: &str| root.path().join(path);
        let mut env = vec![
            ("VERACITY_ORT_LIBRARY", at("ours")),
            ("ORT_DYLIB_PATH", at("theirs/any.name")),
            ("VIRTUAL_ENV", at("venv")),
            ("CONDA_PREFIX", at("conda")),
        ];
        let mut search = Search { library: Some(at("option")), site_packages: vec![at("given")] };
        let locate = |search: &Search, env: &[(&str, PathBuf)]| {
            let value =
                |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, v)| v.into());
            search.locate(&value).unwrap()
        };

        assert_eq!(locate(&search, &env), Location::File(at(&option)));
        search.library = None;
        assert_eq!(locate(&search, &env), Location::File(at(&ours)));
        env[0].1 = PathBuf::new();
        assert_eq!(locate(&search, &env), Location::File(at("theirs/any.name")));
        env.drain(..2);
        assert_eq!(locate(&search, &env), Location::File(at(&given)));
        search.site_packages.clear();
        assert_eq!(locate(&search, &env), Location::File(at(&venv)));
        env.remove(0);
        assert_eq!(locate(&search, &env), Location::File(at(&conda)));
        env.clear();
        assert!(matches!(locate(&search, &env), Location::System(_)));
    }

    #[test]
    fn a_wish_that_leads_nowhere_is_refused_and_not_replaced() {
        let root = folder_with(&[&packages("venv"), "wish/libonnxruntime_providers_shared.so"]);
        let nowhere = root.path().join("wish");
        let venv = root.path().join("venv");
        let by_option = Search { library: Some(nowhere.clone()), ..Search::default() };
        for (search, variable) in [
            (by_option, ""),
            (Search::default(), "VERACITY_ORT_LIBRARY"),
            (Search::default(), "ORT_DYLIB_PATH"),
        ] {
            let env = |name: &str| match name {
                "VIRTUAL_ENV" => Some(venv.clone().into()),
                _ => (name == variable).then(|| nowhere.clone().into()),
            };
            let refusal = search.locate(&env).unwrap_err();
            assert_eq!(refusal.first_error().code, codes::ENGINE_UNUSABLE);
            let hints = refusal.first_error().hints.join("\n");
            assert!(hints.contains(&*nowhere.to_string_lossy()), "{hints}");
            assert!(!hints.contains(&*venv.to_string_lossy()), "{hints}");
        }
    }

    #[test]
    fn every_place_is_named_in_order() {
        let search = Search { library: None, site_packages: vec!["packages of python".into()] };
        let env = |name: &str| (name == "VIRTUAL_ENV").then(|| "no such venv".into());
        let Location::System(mut looked) = search.locate(&env).unwrap() else {
            panic!("nothing was there to be found");
        };
        looked.note("system");
        let hints = looked.refusal().first_error().hints.join("\n");
        let places = [
            "option",
            "VERACITY_ORT_LIBRARY",
            "ORT_DYLIB_PATH",
            "packages of python",
            "no such venv",
            "CONDA_PREFIX",
            "system",
            "pip install",
        ];
        let positions = places.map(|place| hints.find(place));
        assert!(positions.iter().all(Option::is_some), "{hints}");
        assert!(positions.is_sorted(), "{hints}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn of_several_versions_the_newest_is_taken() {
        let root = folder_with(&["libonnxruntime.so.1.9.0", "libonnxruntime.so.1.31.1"]);
        assert_eq!(library_in(root.path()), Some(root.path().join("libonnxruntime.so.1.31.1")));
    }
}
