//! Where to look for torch: option, environment variable, Python environment.
//!
//! An option or a variable is a wish: when it is set and leads nowhere, that is refused, and no
//! other torch takes its place. Reads files only: neither Python nor torch runs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use veracity_diag::{Diagnostic, Refusal, Result, codes};
use veracity_engine::site_packages_of;

use crate::library::TORCH_CPU;

/// The variable that names the folder of torch.
const VARIABLE: &str = "VERACITY_TORCH";

/// Variables by which an active Python environment is known.
const PYTHON_PREFIXES: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// Where to look for torch before and beside the places that are always looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Search {
    /// The folder `torch`, or one that holds it. No other place is looked at then.
    pub folder: Option<PathBuf>,
    /// `site-packages` folders of the Python that is running, if one is.
    pub site_packages: Vec<PathBuf>,
}

/// Reads one environment variable. The only way in which the environment is read.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<OsString>;

impl Search {
    /// The folder that holds torch's `lib` and `include`.
    pub(crate) fn locate(&self, environment: Environment<'_>) -> Result<PathBuf> {
        let mut looked = Vec::new();
        if let Some(wish) = self.wish(environment, &mut looked) {
            return torch_in(&wish).ok_or_else(|| not_found(looked));
        }
        for folder in &self.site_packages {
            looked.push(format!("Python package: {}", folder.join("torch").display()));
            if let Some(found) = torch_in(folder) {
                return Ok(found);
            }
        }
        for variable in PYTHON_PREFIXES {
            if let Some(found) = in_environment(variable, environment(variable), &mut looked) {
                return Ok(found);
            }
        }
        Err(not_found(looked))
    }

    /// What the option or the variable names.
    pub(crate) fn wish(
        &self,
        environment: Environment<'_>,
        looked: &mut Vec<String>,
    ) -> Option<PathBuf> {
        if let Some(folder) = &self.folder {
            looked.push(format!("option: {}", folder.display()));
            return Some(folder.clone());
        }
        looked.push("option: not given".to_owned());
        let value = environment(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
        looked.push(match &value {
            Some(folder) => format!("environment variable {VARIABLE}: {}", folder.display()),
            None => format!("environment variable {VARIABLE}: not set"),
        });
        value
    }
}

/// `folder` itself or the torch inside of it.
pub(crate) fn torch_in(folder: &Path) -> Option<PathBuf> {
    [folder.to_owned(), folder.join("torch")]
        .into_iter()
        .find(|candidate| candidate.join("lib").join(TORCH_CPU).is_file())
}

/// The torch of the Python environment at `prefix`, which `variable` named.
fn in_environment(
    variable: &str,
    prefix: Option<OsString>,
    looked: &mut Vec<String>,
) -> Option<PathBuf> {
    let Some(prefix) = prefix.filter(|value| !value.is_empty()).map(PathBuf::from) else {
        looked.push(format!("Python environment: {variable} is not set"));
        return None;
    };
    let packages = site_packages_of(&prefix);
    if packages.is_empty() {
        looked.push(format!("Python environment: no site-packages in {}", prefix.display()));
    }
    for folder in &packages {
        looked.push(format!("Python environment: {}", folder.join("torch").display()));
    }
    packages.iter().find_map(|folder| torch_in(folder))
}

fn not_found(looked: Vec<String>) -> Refusal {
    let mut diagnostic = Diagnostic::error(codes::ENGINE_NOT_FOUND, "torch was not found");
    for (index, place) in looked.into_iter().enumerate() {
        diagnostic = diagnostic.hint(format!("looked at {}. {place}", index + 1));
    }
    diagnostic
        .hint("`pip install torch` in the active Python environment brings it")
        .hint(format!("or set {VARIABLE} to the folder that holds `lib/{TORCH_CPU}`"))
        .into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn install(site_packages: &Path) -> PathBuf {
        let torch = site_packages.join("torch");
        fs::create_dir_all(torch.join("lib")).unwrap();
        fs::write(torch.join("lib").join(TORCH_CPU), "").unwrap();
        torch
    }

    /// An environment with these variables.
    fn environment<'a>(
        variables: &'a [(&'a str, PathBuf)],
    ) -> impl Fn(&str) -> Option<OsString> + 'a {
        |wanted| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.clone().into_os_string())
        }
    }

    #[test]
    fn the_first_place_wins() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let places = [
            install(&at("option")),
            install(&at("variable")),
            install(&at("python")),
            install(&at("venv/lib/python3.11/site-packages")),
            install(&at("conda/lib/python3.12/site-packages")),
        ];
        let variables = [
            (VARIABLE, at("variable")),
            ("VIRTUAL_ENV", at("venv")),
            ("CONDA_PREFIX", at("conda")),
        ];
        let python = || Search { folder: None, site_packages: vec![at("empty"), at("python")] };
        let option = || Search { folder: Some(at("option")), ..python() };
        let none = Search::default;
        for (search, variables, expected) in [
            (option(), &variables[..], &places[0]),
            (python(), &variables[..], &places[1]),
            (python(), &variables[1..], &places[2]),
            (none(), &variables[1..], &places[3]),
            (none(), &variables[2..], &places[4]),
        ] {
            assert_eq!(search.locate(&environment(variables)).unwrap(), *expected);
        }
    }

    #[test]
    fn a_wish_is_not_replaced_by_something_else() {
        let root = tempfile::tempdir().unwrap();
        install(&root.path().join("python"));
        let nowhere = root.path().join("nowhere");
        let mut search = Search { folder: None, site_packages: vec![root.path().join("python")] };
        let variables = [(VARIABLE, nowhere.clone())];
        assert!(search.locate(&environment(&variables)).is_err(), "the variable was ignored");
        search.folder = Some(nowhere);
        assert!(search.locate(&environment(&[])).is_err(), "the option was ignored");
    }

    #[test]
    fn every_place_looked_at_is_named() {
        let root = tempfile::tempdir().unwrap();
        let packages = root.path().join("lib/python3.12/site-packages");
        fs::create_dir_all(&packages).unwrap();
        let search = Search { folder: None, site_packages: vec!["/one".into(), "/two".into()] };
        let variables = [("VIRTUAL_ENV", root.path().to_owned())];
        let refusal = search.locate(&environment(&variables)).unwrap_err();
        assert_eq!(refusal.first_error().code, codes::ENGINE_NOT_FOUND);
        let hints = refusal.first_error().hints.join("\n");
        for place in
            ["option", VARIABLE, "/one", "/two", &packages.to_string_lossy(), "CONDA_PREFIX"]
        {
            assert!(hints.contains(place), "{hints} lacks {place}");
        }
    }
}
