//! Takes values of an expected kind out of the tree, noting those of another.

use veracity_diag::{Diagnostic, codes, nearest};

use crate::yaml::{Atom, Kind, Node as YamlNode, Problems, Span};
use crate::{Map, Value};

/// The pairs of a mapping. `what` names the value in the message.
pub(crate) fn mapping<'n>(
    node: &'n YamlNode,
    what: &str,
    problems: &mut Problems<'_>,
) -> Option<&'n [(YamlNode, YamlNode)]> {
    match &*node.kind {
        Kind::Mapping(pairs) => Some(pairs),
        _ => wrong_kind(node, what, "a mapping", problems),
    }
}

/// The elements of a list.
pub(crate) fn sequence<'n>(
    node: &'n YamlNode,
    what: &str,
    problems: &mut Problems<'_>,
) -> Option<&'n [YamlNode]> {
    match &*node.kind {
        Kind::Sequence(items) => Some(items),
        _ => wrong_kind(node, what, "a list", problems),
    }
}

/// Text.
pub(crate) fn text<'n>(
    node: &'n YamlNode,
    what: &str,
    problems: &mut Problems<'_>,
) -> Option<&'n str> {
    node.text().or_else(|| {
        let mut diagnostic = wrong_kind_diagnostic(node, what, "text");
        if let Some(scalar) = node.scalar().filter(|scalar| !scalar.text.is_empty()) {
            diagnostic = diagnostic.hint(format!("put it in quotes: '{}'", scalar.text));
        }
        problems.add(node.span, diagnostic);
        None
    })
}

/// A number.
#[expect(clippy::cast_precision_loss, reason = "the caller wants a float")]
pub(crate) fn number(node: &YamlNode, what: &str, problems: &mut Problems<'_>) -> Option<f64> {
    match node.scalar().map(crate::yaml::Scalar::atom) {
        Some(Atom::Int(value)) => Some(value as f64),
        Some(Atom::Float(value)) => Some(value),
        _ => wrong_kind(node, what, "a number", problems),
    }
}

/// Notes that a value is of the wrong kind.
pub(crate) fn wrong_kind<T>(
    node: &YamlNode,
    what: &str,
    expected: &str,
    problems: &mut Problems<'_>,
) -> Option<T> {
    problems.add(node.span, wrong_kind_diagnostic(node, what, expected));
    None
}

fn wrong_kind_diagnostic(node: &YamlNode, what: &str, expected: &str) -> Diagnostic {
    let message = format!("{what} must be {expected}, not {}", node.kind_name());
    Diagnostic::error(codes::YAML_WRONG_KIND, message)
}

/// The value of a key that must be there. `owner` is what the message says lacks it, at `span`.
pub(crate) fn required<'n>(
    node: &'n YamlNode,
    key: &str,
    owner: &str,
    span: Span,
    problems: &mut Problems<'_>,
) -> Option<&'n YamlNode> {
    let found = node.get(key);
    if found.is_none() {
        let message = format!("{owner} has no key `{key}`");
        let mut diagnostic = Diagnostic::error(codes::YAML_MISSING_KEY, message);
        if let Some(near) = nearest(key, keys(node)) {
            diagnostic = diagnostic.hint(format!("is `{near}` meant to be `{key}`?"));
        }
        problems.add(span, diagnostic);
    }
    found
}

fn keys(node: &YamlNode) -> impl Iterator<Item = &str> {
    let pairs: &[(YamlNode, YamlNode)] = match &*node.kind {
        Kind::Mapping(pairs) => pairs,
        _ => &[],
    };
    pairs.iter().filter_map(|(key, _)| key.text())
}

/// Every pair whose key is not known here, kept as it is.
pub(crate) fn extra(
    pairs: &[(YamlNode, YamlNode)],
    known: &[&str],
    problems: &mut Problems<'_>,
) -> Map {
    let mut map = Map::new();
    for (key, value) in pairs {
        let name = &key.scalar().expect("the loader takes only scalar keys").text;
        if !known.contains(&name.as_str()) {
            map.push(name.clone(), value_from(value, problems));
        }
    }
    map
}

/// Any value. Recursion ends because the loader limits the depth.
pub(crate) fn value_from(node: &YamlNode, problems: &mut Problems<'_>) -> Value {
    match &*node.kind {
        Kind::Sequence(items) => {
            Value::List(items.iter().map(|item| value_from(item, problems)).collect())
        }
        Kind::Mapping(pairs) => Value::Map(extra(pairs, &[], problems)),
        Kind::Scalar(scalar) => match scalar.atom() {
            Atom::Null => Value::Null,
            Atom::Bool(value) => Value::Bool(value),
            Atom::Int(value) => Value::Int(value),
            Atom::Float(value) => Value::Float(value),
            Atom::Text => Value::Text(scalar.text.clone()),
            Atom::TooLarge => {
                let message = "a whole number does not fit into 128 bits";
                problems.add(node.span, Diagnostic::error(codes::YAML_WRONG_KIND, message));
                Value::Null
            }
        },
    }
}
