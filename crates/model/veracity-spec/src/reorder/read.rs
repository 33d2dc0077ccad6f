//! Reads a map file.

use std::path::Path;

use veracity_diag::{Diagnostic, Result, codes};

use super::{Reorder, ReorderMap};
use crate::Direction;
use crate::check::fields;
use crate::contract::refuse_unknown;
use crate::yaml::{Atom, Node as YamlNode, Problems, Source, load};

/// Most entries of a map: far more than the ports of any robot, and few enough to compare with each
/// other.
const MAX_ENTRIES: usize = 1024;

/// Version of the layout.
const VERSION: i128 = 1;

impl ReorderMap {
    /// Reads a map file. Whether it fits a bundle is for [`ReorderMap::check`].
    pub fn open(path: &Path) -> Result<Self> {
        Self::from_yaml(&path.display().to_string(), crate::open::read(path)?)
    }

    /// Reads the bytes of a map file, which messages call `name`.
    pub fn from_yaml(name: &str, yaml: Vec<u8>) -> Result<Self> {
        let source = Source::within_limits(name, yaml)?;
        let mut problems = Problems::new(&source);
        let mut map = Self { entries: Vec::new(), place: source.file() };
        if let Some(root) = load(&source, &mut problems) {
            read(&root, &mut map, &mut problems);
        }
        problems.finish()?;
        Ok(map)
    }
}

fn read(root: &YamlNode, map: &mut ReorderMap, problems: &mut Problems<'_>) {
    let Some(pairs) = fields::mapping(root, "a reordering map", problems) else { return };
    refuse_unknown(pairs, &["reorder", "inputs", "outputs"], "a reordering map", problems);
    let version = fields::required(root, "reorder", "a reordering map", root.span, problems);
    if let Some(version) = version
        && whole(version) != Some(VERSION)
    {
        misfit::<()>(version, format!("only maps of version {VERSION} are known"), problems);
        return;
    }
    for (key, direction) in [("inputs", Direction::Input), ("outputs", Direction::Output)] {
        let Some(list) = root.get(key).filter(|node| !node.is_null()) else { continue };
        let items = fields::sequence(list, &format!("`{key}`"), problems).unwrap_or_default();
        if items.len() > MAX_ENTRIES {
            misfit::<()>(list, format!("a map of more than {MAX_ENTRIES} entries"), problems);
            continue;
        }
        for item in items {
            map.entries.extend(entry(item, direction, problems));
        }
    }
}

fn entry(item: &YamlNode, direction: Direction, problems: &mut Problems<'_>) -> Option<Reorder> {
    let pairs = fields::mapping(item, "an entry of the map", problems)?;
    refuse_unknown(pairs, &["port", "axis", "take", "robot", "bundle"], "an entry", problems);
    let port = fields::required(item, "port", "an entry", item.span, problems)
        .and_then(|node| Some((node, fields::text(node, "`port`", problems)?)))
        .and_then(|(node, text)| match text.parse() {
            Ok(port) => Some(port),
            Err(_) => misfit(node, format!("{text:?} is not written `node/port`"), problems),
        });
    let axis = match item.get("axis").filter(|node| !node.is_null()) {
        None => Some(None),
        Some(node) => position(node, "`axis`", problems).map(Some),
    };
    let take = fields::required(item, "take", "an entry", item.span, problems)
        .and_then(|node| fields::sequence(node, "`take`", problems))
        .and_then(|items| {
            let all: Vec<Option<usize>> =
                items.iter().map(|item| position(item, "a position", problems)).collect();
            all.into_iter().collect::<Option<Vec<usize>>>()
        });
    let bundle = names(item, "bundle", problems);
    let robot = names(item, "robot", problems);
    Some(Reorder { port: port?, direction, axis: axis?, take: take?, bundle, robot })
}

fn names(item: &YamlNode, key: &str, problems: &mut Problems<'_>) -> Option<Vec<String>> {
    let node = item.get(key).filter(|node| !node.is_null())?;
    let items = fields::sequence(node, &format!("`{key}`"), problems)?;
    let texts: Vec<Option<&str>> =
        items.iter().map(|item| fields::text(item, "a name", problems)).collect();
    texts.into_iter().map(|text| text.map(str::to_owned)).collect()
}

fn whole(node: &YamlNode) -> Option<i128> {
    match node.scalar().map(crate::yaml::Scalar::atom) {
        Some(Atom::Int(value)) => Some(value),
        _ => None,
    }
}

fn position(node: &YamlNode, what: &str, problems: &mut Problems<'_>) -> Option<usize> {
    match whole(node).and_then(|value| usize::try_from(value).ok()) {
        Some(value) => Some(value),
        None => misfit(node, format!("{what} must be a whole number from 0 on"), problems),
    }
}

fn misfit<T>(node: &YamlNode, message: String, problems: &mut Problems<'_>) -> Option<T> {
    problems.add(node.span, Diagnostic::error(codes::REORDER_MISFIT, message));
    None
}
