//! YAML text as a tree that knows where everything stands.
//!
//! Only what bundles need: one document, plain scalars read as `PyYAML` reads them, aliases shared
//! instead of copied. Work and memory are bounded by the limits below, so a hostile file is refused
//! in milliseconds. Nothing here knows what a bundle is.

mod load;
mod problems;
mod scalar;
mod source;

use std::rc::Rc;

pub(crate) use load::load;
pub(crate) use problems::Problems;
pub(crate) use scalar::{Atom, needs_quotes_as_text};
pub(crate) use source::{Source, Span};

/// Largest file that is read. A bundle of a thousand nodes takes about 1 MiB.
pub(crate) const MAX_FILE_BYTES: u64 = 16 << 20;

/// Deepest nesting, aliases followed. Bundles nest 5 deep; the rest is room for extra keys.
const MAX_DEPTH: usize = 64;

/// Most nodes, counted as if every alias were written out.
const MAX_NODES: u64 = 200_000;

/// Most text in scalars, counted as if every alias were written out. A file without aliases cannot
/// reach it.
const MAX_TEXT_BYTES: u64 = MAX_FILE_BYTES;

/// A value and where it stands. For an alias the position is the alias, not its anchor.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) kind: Rc<Kind>,
}

/// What a value is.
#[derive(Debug)]
pub(crate) enum Kind {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    /// Pairs in the order of the file. Keys are scalars and unique.
    Mapping(Vec<(Node, Node)>),
}

/// Text, with what decides whether it stays text.
#[derive(Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    /// Written without quotes and not as a block.
    pub(crate) plain: bool,
    pub(crate) tag: Option<CoreTag>,
}

/// A tag such as `!!int`, which overrules the look of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoreTag {
    Null,
    Bool,
    Int,
    Float,
    Str,
}

impl Node {
    /// What the value is called in messages.
    pub(crate) fn kind_name(&self) -> &'static str {
        match &*self.kind {
            Kind::Sequence(_) => "a list",
            Kind::Mapping(_) => "a mapping",
            Kind::Scalar(scalar) => match scalar.atom() {
                Atom::Null => "nothing",
                Atom::Bool(_) => "true or false",
                Atom::Int(_) | Atom::TooLarge => "a whole number",
                Atom::Float(_) => "a number",
                Atom::Text => "text",
            },
        }
    }

    /// The value, when it is not a list or mapping.
    pub(crate) fn scalar(&self) -> Option<&Scalar> {
        match &*self.kind {
            Kind::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The text, when a reader takes it for text.
    pub(crate) fn text(&self) -> Option<&str> {
        self.scalar().filter(|scalar| scalar.atom() == Atom::Text).map(|scalar| &*scalar.text)
    }

    /// Whether this is `null`, `~` or nothing.
    pub(crate) fn is_null(&self) -> bool {
        self.scalar().is_some_and(|scalar| scalar.atom() == Atom::Null)
    }

    /// The value of a key, in a mapping that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let Kind::Mapping(pairs) = &*self.kind else {
            return None;
        };
        pairs.iter().find(|(name, _)| name.text() == Some(key)).map(|(_, value)| value)
    }
}
