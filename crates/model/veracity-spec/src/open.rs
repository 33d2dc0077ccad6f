//! Finds a bundle on disk and reads its description.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use veracity_diag::{Diagnostic, Place, Result, codes};

use crate::yaml::{MAX_FILE_BYTES, Problems, Source, load};
use crate::{Description, Places, Spec};

/// Most YAML files of one folder that are looked into for a bundle.
const MAX_CANDIDATES: usize = 64;

/// A bundle whose description was read and found consistent. Its files are not checked yet: see
/// [`Bundle::verify_files`].
#[derive(Debug)]
pub struct Bundle {
    yaml: PathBuf,
    root: PathBuf,
    description: Description,
}

impl Bundle {
    /// Reads a bundle. `path` is its YAML file, or the folder that holds it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let yaml = find_yaml(path.as_ref())?;
        let description = Description::from_yaml(&yaml.display().to_string(), read(&yaml)?)?;
        let root = match yaml.parent() {
            Some(parent) if parent != Path::new("") => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Self { yaml, root, description })
    }

    /// What the bundle says.
    pub fn spec(&self) -> &Spec {
        &self.description.spec
    }

    /// Where it says so.
    pub fn places(&self) -> &Places {
        &self.description.places
    }

    /// What is probably unintended in the description.
    pub fn warnings(&self) -> &[Diagnostic] {
        &self.description.warnings
    }

    /// The YAML file.
    pub fn yaml_path(&self) -> &Path {
        &self.yaml
    }

    /// The folder that every path of the bundle is relative to.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

fn problem(code: veracity_diag::Code, path: &Path, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(code, message).at(Place::file(path.display().to_string()))
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    problem(codes::FILE_UNREADABLE, path, format!("cannot be read: {error}"))
}

fn find_yaml(path: &Path) -> Result<PathBuf> {
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            problem(codes::BUNDLE_NOT_FOUND, path, "there is no bundle here")
        }
        _ => unreadable(path, &error),
    })?;
    if metadata.is_dir() {
        return find_in_folder(path);
    }
    if !metadata.is_file() {
        return Err(problem(codes::PATH_NOT_A_FILE, path, "this is not a regular file").into());
    }
    if !is_yaml(path) {
        let message = "a bundle is a `.yaml` file or the folder that holds it";
        return Err(problem(codes::BUNDLE_NOT_FOUND, path, message).into());
    }
    Ok(path.to_owned())
}

fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
}

/// The YAML file named like the folder, else the only one that describes a pipeline.
fn find_in_folder(folder: &Path) -> Result<PathBuf> {
    if let Some(name) = fs::canonicalize(folder).ok().as_deref().and_then(Path::file_name) {
        let named = folder.join(name).with_added_extension("yaml");
        if named.is_file() {
            return Ok(named);
        }
    }
    let candidates = yaml_files(folder)?;
    if let [only] = candidates.as_slice() {
        return Ok(only.clone());
    }
    let mut bundles: Vec<PathBuf> =
        candidates.into_iter().take(MAX_CANDIDATES).filter(|path| has_models(path)).collect();
    match bundles.len() {
        0 => Err(problem(codes::BUNDLE_NOT_FOUND, folder, "the folder holds no bundle")
            .hint("name the YAML file, to see what is wrong with it")
            .into()),
        1 => Ok(bundles.swap_remove(0)),
        _ => {
            let names: Vec<String> = bundles
                .iter()
                .filter_map(|path| path.file_name())
                .map(|name| name.to_string_lossy().into_owned())
                .collect();
            let message = format!("the folder holds more than one bundle: {}", names.join(", "));
            Err(problem(codes::BUNDLE_AMBIGUOUS, folder, message)
                .hint("name the YAML file that is meant")
                .into())
        }
    }
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(io::Result::ok)
        .map(|entry| entry.path())
        .filter(|path| is_yaml(path) && path.is_file())
        .collect();
    files.sort();
    Ok(files)
}

/// Whether a folder holds a bundle, sound or not.
pub(crate) fn holds_bundle(folder: &Path) -> bool {
    find_in_folder(folder).is_ok()
}

fn has_models(path: &Path) -> bool {
    let name = path.display().to_string();
    read(path).and_then(|bytes| Source::from_bytes(&name, bytes)).is_ok_and(|source| {
        let root = load(&source, &mut Problems::new(&source));
        root.is_some_and(|root| root.get("models").is_some())
    })
}

/// Reads a file, though not much more than a description may take.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(path, &error))?;
    Ok(bytes)
}
