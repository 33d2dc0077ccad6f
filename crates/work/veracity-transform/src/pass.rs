//! What every pass provides.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::digest::sha256;
use crate::{Class, Found, View};

/// A typed parameter of a pass, so that 1, 1.0 and true are told apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", content = "value", rename_all = "kebab-case")]
pub enum Parameter {
    /// A number of things or bytes.
    Integer(i64),
    /// A real number.
    Number(f64),
    /// Yes or no.
    Switch(bool),
    /// A word.
    Word(String),
}

/// Looks at a graph and proposes changes. Holds no state: what it finds depends on the graph and
/// its parameters alone.
pub trait Pass: Send + Sync {
    /// Stable name, in words with hyphens: `fuse-batch-norm`.
    fn name(&self) -> &'static str;

    /// Goes up when the pass proposes something else for the same graph.
    fn version(&self) -> u32 {
        1
    }

    /// What it promises about the numbers.
    fn class(&self) -> Class;

    /// What it does, in a line.
    fn about(&self) -> &'static str;

    /// What it was made with.
    fn parameters(&self) -> BTreeMap<&'static str, Parameter> {
        BTreeMap::new()
    }

    /// Looks through the graph once.
    fn find(&self, view: &View<'_>, found: &mut Found);

    /// SHA-256 over canonical JSON of name, version and typed parameters: the same on every
    /// machine and in every process.
    fn signature(&self) -> String {
        let parameters = self.parameters();
        let json = serde_json::json!({
            "name": self.name(), "parameters": parameters, "version": self.version(),
        });
        sha256(json.to_string().as_bytes())
    }
}
