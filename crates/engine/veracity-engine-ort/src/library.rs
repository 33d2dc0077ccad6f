//! The loaded library. A process loads one and keeps it.
//!
//! ONNX Runtime has global state (its environment, its logger, its providers), so a second library
//! beside a first is refused instead of being used in the first one's name.
#![expect(unsafe_code, reason = "the library is opened and called at run time")]

use std::ffi::{c_char, c_void};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use ort_sys::{ORT_API_VERSION, OrtApiBase, OrtEnv, OrtLoggingLevel};
use veracity_diag::{Diagnostic, Refusal, Result, codes};

use crate::api::{Api, Called, Failure, check, text};
use crate::file_name::LOADER_NAMES;
use crate::search::{Location, Looked};

/// The library that this process has loaded.
static LOADED: Mutex<Option<Arc<Library>>> = Mutex::new(None);

/// A loaded and initialised library.
pub(crate) struct Library {
    /// Where it was found; the plain name when the dynamic loader found it.
    pub(crate) path: PathBuf,
    /// As the library says it.
    pub(crate) version: String,
    /// What it can run models on, as it names them.
    pub(crate) providers: Vec<String>,
    /// Its functions.
    pub(crate) api: Api,
    environment: NonNull<OrtEnv>,
    /// The code behind `api` goes when this is dropped, so it is dropped last of all: never.
    _code: libloading::Library,
}

// SAFETY: the environment of ONNX Runtime may be used from any thread.
unsafe impl Send for Library {}
// SAFETY: as above, and by several threads at once.
unsafe impl Sync for Library {}

impl Library {
    /// Loads the library from there, or hands out the one that is loaded when it is the same.
    pub(crate) fn load(location: Location) -> Result<Arc<Self>> {
        let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let library = match location {
            Location::File(path) => Self::load_file(&path, loaded.as_ref())?,
            Location::System(looked) => Self::load_from_system(looked, loaded.as_ref())?,
        };
        *loaded = Some(Arc::clone(&library));
        Ok(library)
    }

    fn load_file(path: &Path, loaded: Option<&Arc<Self>>) -> Result<Arc<Self>> {
        if let Some(loaded) = loaded {
            return loaded.if_it_is(path);
        }
        // The loader takes a name without a folder for one that it shall search.
        let path = std::path::absolute(path).map_err(|error| unusable(path, &error.to_string()))?;
        let code = open(&path).map_err(|error| unusable(&path, &error))?;
        Self::from_code(path, code)
    }

    fn load_from_system(mut looked: Looked, loaded: Option<&Arc<Self>>) -> Result<Arc<Self>> {
        if let Some(loaded) = loaded {
            return loaded.if_it_is(Path::new(LOADER_NAMES[0]));
        }
        for name in LOADER_NAMES {
            match open(Path::new(name)) {
                Ok(code) => return Self::from_code(PathBuf::from(name), code),
                Err(error) => looked.note(format!("dynamic loader: {error}")),
            }
        }
        Err(looked.refusal())
    }

    /// This library, if that is what the path names.
    fn if_it_is(self: &Arc<Self>, wanted: &Path) -> Result<Arc<Self>> {
        let found_by_loader = |path: &Path| LOADER_NAMES.iter().any(|name| path == Path::new(name));
        let same_file = || {
            let canonical = |path: &Path| std::fs::canonicalize(path).ok();
            canonical(&self.path).is_some_and(|path| canonical(wanted) == Some(path))
        };
        if found_by_loader(&self.path) && found_by_loader(wanted) || same_file() {
            return Ok(Arc::clone(self));
        }
        let reason = format!(
            "this process already uses {} (version {}), and ONNX Runtime can be loaded once only",
            self.path.display(),
            self.version
        );
        Err(unusable(wanted, &reason))
    }

    /// Sets up a library that was opened.
    fn from_code(path: PathBuf, code: libloading::Library) -> Result<Arc<Self>> {
        let (api, version) = functions(&code).map_err(|reason| unusable(&path, &reason))?;
        let set_up = || Ok((create_environment(api)?, available_providers(api)?));
        let (environment, providers) =
            set_up().map_err(|failure: Failure| unusable(&path, &failure.message))?;
        Ok(Arc::new(Self { path, version, providers, api, environment, _code: code }))
    }

    /// The environment that sessions are made in.
    pub(crate) fn environment(&self) -> *mut OrtEnv {
        self.environment.as_ptr()
    }
}

fn unusable(path: &Path, reason: &str) -> Refusal {
    let message = format!("{} cannot be used as ONNX Runtime: {reason}", path.display());
    Diagnostic::error(codes::ENGINE_UNUSABLE, message)
        .hint(format!("ONNX Runtime 1.{ORT_API_VERSION} or later is needed"))
        .into()
}

/// Opens a shared library, by its path or by a name that the dynamic loader looks for.
fn open(path: &Path) -> std::result::Result<libloading::Library, String> {
    // SAFETY: the initialisers of the library run. Whoever chose the file trusts its code, which
    // is going to be called anyway.
    unsafe { libloading::Library::new(path) }.map_err(|error| error_with_causes(&error))
}

fn error_with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// The function table and the version of an opened library, or why it has none for us.
fn functions(code: &libloading::Library) -> std::result::Result<(Api, String), String> {
    // SAFETY: whatever exports this name has this type: it is the one stable entry of the library,
    // and what it returns is static.
    unsafe {
        let entry = code
            .get::<unsafe extern "system" fn() -> *const OrtApiBase>(c"OrtGetApiBase")
            .map_err(|_missing| "it does not export `OrtGetApiBase`".to_owned())?;
        let base = entry().as_ref().ok_or("`OrtGetApiBase` returned nothing")?;
        let version = text((base.GetVersionString)());
        // Asking an old library for a new table makes it print, so the version is looked at first.
        if !is_new_enough(&version) {
            return Err(format!("it has version {version}"));
        }
        let api = (base.GetApi)(ORT_API_VERSION).as_ref();
        Ok((api.ok_or_else(|| format!("version {version} lacks the functions"))?, version))
    }
}

/// Whether a library of this version has the functions that we call.
fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map_while(|part| part.parse::<u32>().ok());
    (parts.next(), parts.next()) >= (Some(1), Some(ORT_API_VERSION))
}

/// Makes the environment of the process. It lives as long as the process: releasing it while a
/// session of any thread lives would be wrong, and nothing is gained by it.
fn create_environment(api: Api) -> Called<NonNull<OrtEnv>> {
    let mut environment = std::ptr::null_mut();
    // SAFETY: the logger takes no parameter and lives forever; the texts are NUL-terminated.
    unsafe {
        let fatal = OrtLoggingLevel::ORT_LOGGING_LEVEL_FATAL;
        let make = api.CreateEnvWithCustomLogger;
        check(
            api,
            make(silence, std::ptr::null_mut(), fatal, c"veracity".as_ptr(), &raw mut environment),
        )?;
        // What a user's models look like is nobody else's business.
        check(api, (api.DisableTelemetryEvents)(environment))?;
    }
    NonNull::new(environment).ok_or_else(|| Failure::other("it made no environment"))
}

/// Drops log messages. Errors reach us as values; the rest would go to the terminal of whoever
/// uses this library.
unsafe extern "system" fn silence(
    _parameter: *mut c_void,
    _severity: OrtLoggingLevel,
    _category: *const c_char,
    _log_id: *const c_char,
    _code_location: *const c_char,
    _message: *const c_char,
) {
}

fn available_providers(api: Api) -> Called<Vec<String>> {
    let mut names = std::ptr::null_mut();
    let mut count = 0;
    // SAFETY: the library writes an array of `count` texts, which it frees again.
    unsafe {
        check(api, (api.GetAvailableProviders)(&raw mut names, &raw mut count))?;
        let providers =
            (0..usize::try_from(count).unwrap_or(0)).map(|index| text(*names.add(index))).collect();
        check(api, (api.ReleaseAvailableProviders)(names, count))?;
        Ok(providers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_older_than_the_function_table_are_refused() {
        for (version, expected) in [
            ("1.20.0", true),
            ("1.31.1", true),
            ("2.0.0", true),
            ("1.19.2", false),
            ("1.9.0", false),
            ("0.99.0", false),
            ("1", false),
            ("", false),
            ("unknown", false),
        ] {
            assert_eq!(is_new_enough(version), expected, "{version:?}");
        }
    }
}
