//! The longest source files, so that growth is seen before it hurts.

use std::path::{Path, PathBuf};

/// How many files are shown.
const SHOWN: usize = 10;

/// Lists the longest files, tests left out.
pub(crate) fn report() -> Result<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["crates", "python", "xtask"] {
        collect(&root.join(folder), &mut files).map_err(|error| error.to_string())?;
    }
    let mut sizes: Vec<(usize, PathBuf)> =
        files.into_iter().map(|file| (production_lines(&file), file)).collect();
    sizes.sort_by(|left, right| right.cmp(left));
    let line = |(lines, file): &(usize, PathBuf)| {
        format!("{lines:6} {}", file.strip_prefix(&root).unwrap_or(file).display())
    };
    Ok(sizes.iter().take(SHOWN).map(line).collect::<Vec<_>>().join("\n"))
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_source = path.extension().is_some_and(|ending| ending == "rs" || ending == "py");
        if path.is_dir() {
            if !matches!(name, "target" | "generated" | "tests" | "__pycache__") {
                collect(&path, files)?;
            }
        } else if is_source {
            files.push(path);
        }
    }
    Ok(())
}

/// Lines before the inline tests.
fn production_lines(file: &Path) -> usize {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().take_while(|line| *line != "mod tests {").count()
}
