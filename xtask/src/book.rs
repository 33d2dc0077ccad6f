//! The documentation as a site.
//!
//! `stage` lays out what mdBook reads: the pages of `docs/SUMMARY.md` and every file that they link
//! to, in the places that they have in the repository. `check` reads the finished site and refuses
//! links that lead nowhere, also those that mdBook or rustdoc made.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

/// Where mdBook finds its source, and where it puts the site; `book.toml` says the same.
const SOURCE: &str = "target/book-src";
const SITE: &str = "target/book";
const SUMMARY: &str = "docs/SUMMARY.md";

/// Copies the pages, and what they link to.
pub(crate) fn stage() -> Result<String, String> {
    let source = root().join(SOURCE);
    if source.exists() {
        std::fs::remove_dir_all(&source).map_err(|error| format!("{SOURCE}: {error}"))?;
    }
    let summary = read(&root().join(SUMMARY))?;
    let pages: BTreeSet<PathBuf> =
        targets(&summary).map(|target| beside(Path::new(SUMMARY), target)).collect();
    let mut files = pages.clone();
    // Pictures may also be named in HTML, so everything in the folder that is no page goes along.
    collect_files(Path::new("docs"), &mut files)?;
    for page in &pages {
        let text = read(&root().join(page))?;
        files.extend(targets(&text).map(|target| beside(page, target)));
    }
    for file in &files {
        if root().join(file).is_file() {
            copy(&root().join(file), &source.join(file))?;
        }
    }
    let placed = relocated(&summary);
    std::fs::write(source.join("SUMMARY.md"), placed).map_err(|error| error.to_string())?;
    Ok(format!("book: {} pages and {} files", pages.len(), files.len() - pages.len()))
}

/// Refuses links of the finished site that lead nowhere.
pub(crate) fn check() -> Result<String, String> {
    let site = root().join(SITE);
    let mut pages = BTreeMap::new();
    collect(&site, &mut pages)?;
    let mut dead = Vec::new();
    let mut links = 0;
    for (page, text) in pages.iter().filter(|(page, _)| !page.starts_with("rust")) {
        let names = ["href", "src", "srcset"];
        for target in names.into_iter().flat_map(|name| attributes(text, name)) {
            links += 1;
            if !leads_somewhere(&site, &pages, page, target) {
                dead.push(format!("{}: {target}", page.display()));
            }
        }
    }
    if dead.is_empty() {
        Ok(format!("book: {links} links on {} pages lead somewhere", pages.len()))
    } else {
        Err(format!("links that lead nowhere:\n{}", dead.join("\n")))
    }
}

/// Files of a folder that are no pages, by their places in the repository.
fn collect_files(folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let entries = std::fs::read_dir(root().join(folder))
        .map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let place = folder.join(entry.file_name());
        if entry.path().is_dir() {
            collect_files(&place, files)?;
        } else if place.extension().is_none_or(|ending| ending != "md") {
            files.insert(place);
        }
    }
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    }
    std::fs::copy(from, to).map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

/// What the links and pictures of a page name in this repository, without the place in the file.
fn targets(markdown: &str) -> impl Iterator<Item = &str> {
    let ends = markdown.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    ends.map(|(target, _)| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://"))
}

/// A path that stands on a page, from the root of the repository.
fn beside(page: &Path, target: &str) -> PathBuf {
    plain(&page.parent().unwrap_or(Path::new("")).join(target))
}

/// Takes `..` out of a path.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// The summary as seen from the root instead of from `docs/`.
fn relocated(summary: &str) -> String {
    let mut pieces = summary.split("](");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (target, rest) = piece.split_once(')').unwrap_or((piece, ""));
        let path = beside(Path::new(SUMMARY), target);
        let _ = write!(text, "]({}){rest}", path.display());
    }
    text
}

/// Every page of a site by its place.
fn collect(site: &Path, pages: &mut BTreeMap<PathBuf, String>) -> Result<(), String> {
    let mut folders = vec![site.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder)
            .map_err(|error| format!("{}: {error}: run `make docs`", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "html") {
                let place = path.strip_prefix(site).unwrap_or(&path).to_owned();
                pages.insert(place, read(&path)?);
            }
        }
    }
    Ok(())
}

/// The values of an attribute, wherever it stands on a page.
fn attributes<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let opening = format!(" {name}=\"");
    let starts: Vec<usize> = html.match_indices(&opening).map(|(at, _)| at).collect();
    let skip = opening.len();
    starts.into_iter().filter_map(move |at| html[at + skip..].split('"').next())
}

fn leads_somewhere(
    site: &Path,
    pages: &BTreeMap<PathBuf, String>,
    page: &Path,
    target: &str,
) -> bool {
    if target.contains(':') || target.starts_with('/') || page == Path::new("404.html") {
        return true; // Another site; and the page of errors stands nowhere in particular.
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = path.split('?').next().unwrap_or_default();
    let file = if path.is_empty() { page.to_owned() } else { beside(page, path) };
    if anchor.is_empty() {
        return site.join(&file).exists();
    }
    pages.get(&file).is_some_and(|text| text.contains(&format!("id=\"{anchor}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_seen_from_the_root() {
        for (page, target, place) in [
            ("docs/start.md", "proof.md", "docs/proof.md"),
            ("docs/how-to/ci.md", "../proof.md", "docs/proof.md"),
            ("docs/README.md", "../README.md", "README.md"),
        ] {
            assert_eq!(beside(Path::new(page), target), Path::new(place));
        }
    }

    #[test]
    fn the_summary_moves_to_the_root() {
        let moved = relocated("- [A](a.md)\n- [B](../B.md)\n");
        assert_eq!(moved, "- [A](docs/a.md)\n- [B](B.md)\n");
    }

    #[test]
    fn a_dead_link_is_told_from_a_live_one() {
        let site = Path::new("nowhere");
        let page = |text: &str| text.to_owned();
        let pages = BTreeMap::from([
            (PathBuf::from("a.html"), page("<h2 id=\"top\">")),
            (PathBuf::from("b/c.html"), page("<a href=\"../a.html#top\">")),
        ]);
        for (target, expected) in [
            ("../a.html#top", true),
            ("../a.html#gone", false),
            ("../gone.html", false),
            ("https://example.org/x", true),
            ("#gone", false),
        ] {
            let found = leads_somewhere(site, &pages, Path::new("b/c.html"), target);
            assert_eq!(found, expected, "{target}");
        }
    }

    #[test]
    fn targets_are_paths_of_the_repository() {
        let page = "[a](a.md#x) ![b](b.svg) [c](https://c) [d](#here)";
        assert_eq!(targets(page).collect::<Vec<_>>(), ["a.md", "b.svg"]);
    }
}
