//! Where a finding is: a position in a file, a node, a port, or several of these.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a finding is. Every field may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Place {
    /// The file, as the user named it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in that file, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in that line, in characters, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The pipeline node or model node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The input or output of that node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// The source text the finding is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<Snippet>,
}

/// One line of source with the part that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snippet {
    /// The line, without its line break.
    pub text: String,
    /// First marked character of the line, counted from 0.
    pub start: u32,
    /// How many characters are marked; at least 1.
    pub length: u32,
}

impl Place {
    /// A whole file.
    pub fn file(file: impl Into<String>) -> Self {
        Self { file: Some(file.into()), ..Self::default() }
    }

    /// A node of the pipeline.
    pub fn node(node: impl Into<String>) -> Self {
        Self { node: Some(node.into()), ..Self::default() }
    }

    /// A port of a node.
    pub fn port(node: impl Into<String>, port: impl Into<String>) -> Self {
        Self { node: Some(node.into()), port: Some(port.into()), ..Self::default() }
    }

    /// Adds the position inside the file; both count from 1.
    #[must_use]
    pub fn with_position(mut self, line: u32, column: u32) -> Self {
        (self.line, self.column) = (Some(line), Some(column));
        self
    }

    /// Adds the file.
    #[must_use]
    pub fn with_file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Whether nothing at all is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// This place, with unknown fields taken from `other`.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        // A position belongs to its file: the two are never mixed from different places.
        let (file, line, column, snippet) = match self.file {
            Some(_) => (self.file, self.line, self.column, self.snippet),
            None => (other.file.clone(), other.line, other.column, other.snippet.clone()),
        };
        Self {
            file,
            line,
            column,
            snippet,
            node: self.node.or_else(|| other.node.clone()),
            port: self.port.or_else(|| other.port.clone()),
        }
    }
}

impl fmt::Display for Place {
    /// `file:line:column (node/port)`, as far as it is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            f.write_str(file)?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
                if let Some(column) = self.column {
                    write!(f, ":{column}")?;
                }
            }
        }
        let name = match (&self.node, &self.port) {
            (Some(node), Some(port)) => format!("{node}/{port}"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => return Ok(()),
        };
        if self.file.is_some() { write!(f, " ({name})") } else { f.write_str(&name) }
    }
}
