//! What the library is called on each system.

/// Names by which the dynamic loader knows the library.
#[cfg(target_os = "macos")]
pub(crate) const LOADER_NAMES: &[&str] = &["libonnxruntime.dylib", "libonnxruntime.1.dylib"];
/// Names by which the dynamic loader knows the library.
#[cfg(windows)]
pub(crate) const LOADER_NAMES: &[&str] = &["onnxruntime.dll"];
/// Names by which the dynamic loader knows the library. Without development files, distributions
/// install the second alone.
#[cfg(not(any(target_os = "macos", windows)))]
pub(crate) const LOADER_NAMES: &[&str] = &["libonnxruntime.so", "libonnxruntime.so.1"];

#[cfg(target_os = "macos")]
const AFFIXES: (&str, &str) = ("libonnxruntime", ".dylib");
#[cfg(windows)]
const AFFIXES: (&str, &str) = ("onnxruntime.dll", "");
#[cfg(not(any(target_os = "macos", windows)))]
const AFFIXES: (&str, &str) = ("libonnxruntime.so", "");

/// The version numbers in a file name of the library, empty when it has none; `None` for the name
/// of any other file, such as `libonnxruntime_providers_shared.so`.
pub(crate) fn version_in(name: &str) -> Option<Vec<u32>> {
    version_between(name, AFFIXES)
}

fn version_between(name: &str, (prefix, suffix): (&str, &str)) -> Option<Vec<u32>> {
    match name.strip_prefix(prefix)?.strip_suffix(suffix)? {
        "" => Some(Vec::new()),
        version => version.strip_prefix('.')?.split('.').map(|part| part.parse().ok()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_library_itself_has_a_version() {
        let linux = ("libonnxruntime.so", "");
        let macos = ("libonnxruntime", ".dylib");
        for (name, affixes, expected) in [
            ("libonnxruntime.so", linux, Some(vec![])),
            ("libonnxruntime.so.1", linux, Some(vec![1])),
            ("libonnxruntime.so.1.31.1", linux, Some(vec![1, 31, 1])),
            ("libonnxruntime.so.1.31.1.sig", linux, None),
            ("libonnxruntime.so.", linux, None),
            ("libonnxruntime_providers_shared.so", linux, None),
            ("libonnxruntime.dylib", macos, Some(vec![])),
            ("libonnxruntime.1.31.1.dylib", macos, Some(vec![1, 31, 1])),
            ("libonnxruntime_providers_shared.dylib", macos, None),
            ("onnxruntime.dll", ("onnxruntime.dll", ""), Some(vec![])),
        ] {
            assert_eq!(version_between(name, affixes), expected, "{name}");
        }
    }
}
