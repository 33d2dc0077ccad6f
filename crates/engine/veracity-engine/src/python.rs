//! Where the packages of a Python environment are. No Python is started.

use std::path::{Path, PathBuf};

/// The `site-packages` folders under the prefix of a Python environment, in a fixed order.
pub fn site_packages_of(prefix: &Path) -> Vec<PathBuf> {
    if cfg!(windows) {
        let folder = prefix.join("Lib").join("site-packages");
        return folder.is_dir().then_some(folder).into_iter().collect();
    }
    let Ok(entries) = std::fs::read_dir(prefix.join("lib")) else {
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("python3"))
        })
        .map(|path| path.join("site-packages"))
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}
