//! Brings torch and the shim into the process, once.
#![expect(unsafe_code, reason = "loading a library runs its initialisers")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, RTLD_LOCAL};
use veracity_diag::Result;

use crate::cache::Cache;
use crate::compile::{SOURCE, Toolchain, flags_for};
use crate::library::{C10, TORCH_CPU, TORCH_CUDA, TorchLibrary, second_torch, unusable};
use crate::shim::{API_VERSION, Shim};

/// The torch of this process. A second one would share symbols with the first and crash, and
/// unloading one is not possible, so it stays until the process ends.
static TORCH: Mutex<Option<(PathBuf, Shim)>> = Mutex::new(None);

/// Why torch's CUDA library could not be loaded, or nothing.
static CUDA: OnceLock<std::result::Result<(), String>> = OnceLock::new();

/// The shim for this torch: from this process, from the cache, or newly compiled.
pub(crate) fn shim_for(
    library: &TorchLibrary,
    cache: &Cache,
    toolchain: &Toolchain,
) -> Result<Shim> {
    // The lock is held while compiling, so that two threads do not both do it. A panic inside
    // leaves `None`, which is a good state.
    let mut torch = TORCH.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((folder, shim)) = torch.as_ref() {
        return if folder == library.folder() {
            Ok(*shim)
        } else {
            Err(second_torch(folder, library.folder()))
        };
    }
    let shim = open(library, cache, toolchain)?;
    *torch = Some((library.folder().to_owned(), shim));
    Ok(shim)
}

/// Loads torch's CUDA library. It takes seconds and much memory, so only when a GPU is asked for.
pub(crate) fn load_cuda(library: &TorchLibrary) -> std::result::Result<(), String> {
    CUDA.get_or_init(|| {
        load_forever(&library.file(TORCH_CUDA), RTLD_LAZY | RTLD_GLOBAL)
            .map(drop)
            .map_err(|error| error.to_string())
    })
    .clone()
}

fn open(library: &TorchLibrary, cache: &Cache, toolchain: &Toolchain) -> Result<Shim> {
    let identity = [SOURCE, &flags_for(library).join(" "), library.build()];
    let get = || {
        cache.get_or_make(library.version(), &identity, |scratch| {
            toolchain.compile(library, scratch)
        })
    };
    let file = get()?;
    load_torch(library)?;
    match load_shim(&file) {
        Ok(shim) => Ok(shim),
        // A cache may be shared by machines that cannot run each other's files: make it anew.
        Err(_stale) => {
            fs::remove_file(&file).map_err(|error| unusable(&file, &error.to_string()))?;
            load_shim(&get()?)
        }
    }
}

fn load_torch(library: &TorchLibrary) -> Result<()> {
    for name in [C10, TORCH_CPU] {
        let path = library.file(name);
        load_forever(&path, RTLD_LAZY | RTLD_GLOBAL)
            .map_err(|error| unusable(&path, &error.to_string()))?;
    }
    Ok(())
}

fn load_shim(path: &Path) -> Result<Shim> {
    let no_shim = |error: libloading::Error| unusable(path, &error.to_string());
    let library = load_forever(path, RTLD_LAZY | RTLD_LOCAL).map_err(no_shim)?;
    let version = Shim::api_version(library).map_err(no_shim)?;
    if version != API_VERSION {
        return Err(unusable(path, &format!("its interface has version {version}")));
    }
    Shim::from_library(library).map_err(no_shim)
}

/// Loads a library and never unloads it.
fn load_forever(
    path: &Path,
    flags: i32,
) -> std::result::Result<&'static Library, libloading::Error> {
    // SAFETY: the libraries are torch's own, which the user chose, and the shim, which was
    // compiled here from our source. Their initialisers expect nothing of the process.
    let library = unsafe { Library::open(Some(path), flags) }?;
    Ok(Box::leak(Box::new(library)))
}
