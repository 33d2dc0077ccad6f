//! Where in its file each part of a bundle stands, for checks that come later.

use std::collections::HashMap;

use veracity_diag::Place;

use crate::yaml::{Source, Span};
use crate::{BundlePath, Direction, PortRef};

/// Where in its file each part of a bundle stands. What is not in the file gets the file as its
/// place, so an answer is always of use.
#[derive(Debug)]
pub struct Places {
    source: Source,
    spans: Spans,
}

/// Positions collected while reading.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    pub(crate) nodes: HashMap<String, Span>,
    pub(crate) models: HashMap<String, Span>,
    pub(crate) ports: HashMap<(PortRef, Direction), Span>,
    pub(crate) fed: HashMap<PortRef, Span>,
    pub(crate) files: HashMap<BundlePath, Span>,
    pub(crate) initial_values: Option<Span>,
    pub(crate) veracity: Option<Span>,
}

impl Places {
    pub(crate) fn new(source: Source, spans: Spans) -> Self {
        Self { source, spans }
    }

    /// The file.
    pub fn file(&self) -> Place {
        self.source.file()
    }

    /// The name of a node.
    pub fn node(&self, name: &str) -> Place {
        self.at(self.spans.nodes.get(name)).or(&Place::node(name))
    }

    /// The model path of a node.
    pub fn model(&self, node: &str) -> Place {
        let span = self.spans.models.get(node).or_else(|| self.spans.nodes.get(node));
        self.at(span).or(&Place::node(node))
    }

    /// The declaration of a port.
    pub fn port(&self, port: &PortRef, direction: Direction) -> Place {
        let span = self.spans.ports.get(&(port.clone(), direction));
        self.at(span).or(&Place::port(&port.node, &port.port))
    }

    /// The end of the edge that feeds an input, or the input when no edge does.
    pub fn edge_into(&self, input: &PortRef) -> Place {
        match self.spans.fed.get(input) {
            Some(span) => self.at(Some(span)).or(&Place::port(&input.node, &input.port)),
            None => self.port(input, Direction::Input),
        }
    }

    /// The entry of a file in the list of files.
    pub fn listed_file(&self, path: &BundlePath) -> Place {
        self.at(self.spans.files.get(path).or(self.spans.veracity.as_ref()))
    }

    /// The name of the file with the initial values.
    pub fn initial_values(&self) -> Place {
        self.at(self.spans.initial_values.as_ref())
    }

    fn at(&self, span: Option<&Span>) -> Place {
        span.map_or_else(|| self.source.file(), |span| self.source.place(*span))
    }
}
