//! `veracity`: the list of files and what else Veracity adds.

use veracity_diag::{Diagnostic, codes};

use super::fields;
use super::nodes::{read_path, read_sum};
use crate::places::Spans;
use crate::yaml::{Atom, Node as YamlNode, Problems};
use crate::{BundlePath, FileRecord, FormatVersion, VeracityBlock};

/// Reads the block, when there is one.
pub(super) fn read(
    root: &YamlNode,
    spans: &mut Spans,
    problems: &mut Problems<'_>,
) -> Option<VeracityBlock> {
    let block = root.get("veracity")?;
    spans.veracity = Some(block.span);
    let pairs = fields::mapping(block, "`veracity`", problems)?;
    let schema = read_schema(block, problems)?;
    let known = ["schema", "files", "samples", "proof", "signature"];
    let mut result = VeracityBlock {
        schema,
        extra: fields::extra(pairs, &known, problems),
        ..VeracityBlock::default()
    };
    if let Some(files) = fields::required(block, "files", "`veracity`", block.span, problems) {
        for (path, record) in fields::mapping(files, "`files`", problems)? {
            let path = read_path_key(path, spans, problems);
            let record = read_record(record, problems);
            if let (Some(path), Some(record)) = (path, record) {
                result.files.insert(path, record);
            }
        }
    }
    let mut optional_path = |key: &str| {
        let node = block.get(key).filter(|node| !node.is_null())?;
        read_path(node, &format!("`{key}`"), problems)
    };
    result.samples = optional_path("samples");
    result.proof = optional_path("proof");
    result.signature = block
        .get("signature")
        .filter(|node| !node.is_null())
        .map(|node| fields::value_from(node, problems));
    Some(result)
}

/// The version of the block, when it can be read.
fn read_schema(block: &YamlNode, problems: &mut Problems<'_>) -> Option<FormatVersion> {
    let node = fields::required(block, "schema", "`veracity`", block.span, problems)?;
    let text = node.scalar().map_or("", |scalar| &scalar.text);
    let known = VeracityBlock::SCHEMA;
    let version = text.parse().ok().filter(|version: &FormatVersion| version.major == known.major);
    if version != Some(known) {
        let severity = if version.is_some() { Diagnostic::warning } else { Diagnostic::error };
        let message = format!("schema {text:?} of `veracity` is not known; {known} is");
        problems.add(node.span, severity(codes::VERSION_UNSUPPORTED, message));
    }
    version
}

fn read_path_key(
    node: &YamlNode,
    spans: &mut Spans,
    problems: &mut Problems<'_>,
) -> Option<BundlePath> {
    let path = read_path(node, "a path in `files`", problems)?;
    if spans.files.insert(path.clone(), node.span).is_some() {
        let message = format!("file `{path}` is listed twice");
        problems.add(node.span, Diagnostic::error(codes::YAML_DUPLICATE_KEY, message));
    }
    Some(path)
}

fn read_record(node: &YamlNode, problems: &mut Problems<'_>) -> Option<FileRecord> {
    fields::mapping(node, "an entry of `files`", problems)?;
    let owner = "the entry";
    let sha256 = read_sum(node, "sha256", owner, node.span, problems);
    let size = fields::required(node, "size", owner, node.span, problems).and_then(|size| {
        match size.scalar().map(crate::yaml::Scalar::atom) {
            Some(Atom::Int(bytes)) if bytes >= 0 => u64::try_from(bytes).ok(),
            _ => None,
        }
        .or_else(|| fields::wrong_kind(size, "`size`", "a count of bytes", problems))
    });
    Some(FileRecord { size: size?, sha256: sha256? })
}
