//! What a folder holds besides a bundle: files that replacing it would lose.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_spec::{Backend, Bundle};

/// How many names a message lists.
const NAMED: usize = 5;

/// Files and folders below `folder` that belong to no bundle, as paths relative to it. A folder
/// that is not there holds none. What an exporter leaves beside a bundle, its log, its picture and its
/// report, belongs to the bundle.
pub fn strangers(folder: &Path) -> Result<Vec<String>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut known = BTreeSet::from(["log.txt".to_owned(), "report.html".to_owned()]);
    if let Ok(bundle) = Bundle::open(folder) {
        known.extend(files_of(&bundle));
    }
    let mut found = Vec::new();
    collect(folder, "", &known, &mut found)?;
    found.sort();
    Ok(found)
}

pub(super) fn refuse_strangers(folder: &Path) -> Result<()> {
    let found = strangers(folder)?;
    if found.is_empty() {
        return Ok(());
    }
    let more = found.len().saturating_sub(NAMED);
    let names = found.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let message =
        format!("the folder holds files of no bundle, which would be lost: {names}{more}");
    Err(Diagnostic::error(codes::FILE_UNWRITABLE, message)
        .at(Place::file(folder.display().to_string()))
        .hint("name a folder of its own for the bundle, or move these files away")
        .into())
}

fn files_of(bundle: &Bundle) -> BTreeSet<String> {
    let named = bundle.named_files();
    let mut files: BTreeSet<String> = named.iter().map(|path| path.as_str().to_owned()).collect();
    let yaml = bundle.yaml_path();
    files.extend(yaml.file_name().map(|name| name.to_string_lossy().into_owned()));
    for ending in ["png", "svg"] {
        let picture = yaml.with_extension(ending);
        files.extend(picture.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    files.extend(unlisted_side_files(bundle));
    files
}

/// External data of a bundle that does not list its files.
fn unlisted_side_files(bundle: &Bundle) -> Vec<String> {
    let models = bundle.spec().nodes.iter().filter_map(|node| node.model.as_ref());
    let onnx = models.filter(|model| model.backend == Backend::Onnx);
    let side_files = |path: &str| {
        let folder =
            path.rsplit_once('/').map_or(String::new(), |(folder, _)| format!("{folder}/"));
        let model = veracity_onnx::Model::read(bundle.root().join(path)).ok()?;
        let files = model.external_data().ok()?;
        Some(files.into_iter().map(move |file| format!("{folder}{}", file.location)))
    };
    onnx.filter_map(|model| side_files(model.path.as_str())).flatten().collect()
}

/// Only folders that hold a known file are entered: a stranger may be large.
fn collect(
    root: &Path,
    prefix: &str,
    known: &BTreeSet<String>,
    found: &mut Vec<String>,
) -> Result<()> {
    let unreadable = |error: std::io::Error| {
        Diagnostic::error(codes::FILE_UNREADABLE, format!("cannot be read: {error}"))
            .at(Place::file(root.display().to_string()))
    };
    for entry in fs::read_dir(root.join(prefix)).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let inside = format!("{path}/");
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && known.iter().any(|file| file.starts_with(&inside)) {
            collect(root, &inside, known, found)?;
        } else if !known.contains(&path) {
            found.push(path);
        }
    }
    Ok(())
}
