//! Whether the connections make sense: ends exist and agree, every port is used exactly as it may.

use std::collections::{HashMap, HashSet};

use veracity_diag::{Diagnostic, Place, codes, nearest};

use super::flow;
use super::nodes::Index;
use super::pipeline::{ReadEdge, Wiring};
use super::ports::ReadPort;
use crate::yaml::{Problems, Span};
use crate::{Direction, PortRef, Spec};

/// An edge whose ends exist: node positions in order of execution.
pub(super) struct Wire<'w> {
    pub(super) source: usize,
    pub(super) target: usize,
    pub(super) read: &'w ReadEdge,
}

/// Checks all connections and puts them into `spec`.
pub(super) fn check(
    index: &Index<'_>,
    wiring: &Wiring,
    spec: &mut Spec,
    problems: &mut Problems<'_>,
) {
    let mut router = Router {
        index,
        fed: HashMap::new(),
        routed: HashSet::new(),
        incomplete: wiring.incomplete || (0..index.len()).any(|node| index.is_incomplete(node)),
        problems,
    };
    let data_flow = router.connect(&wiring.data_flow);
    let feedback_flow = router.connect(&wiring.feedback_flow);
    flow::check_order(index, &data_flow, router.problems);
    flow::check_feedback(index, &feedback_flow, router.problems);
    router.take_inputs(&wiring.inputs);
    router.take_outputs(&wiring.outputs);
    router.refuse_silence(wiring);
    router.check_every_port();
    if !wiring.has_initial_values {
        for wire in &feedback_flow {
            router.note_zero_start(wire.read);
        }
    }
    let edges = |edges: &[ReadEdge]| edges.iter().map(|read| read.edge.clone()).collect();
    spec.data_flow = edges(&wiring.data_flow);
    spec.feedback_flow = edges(&wiring.feedback_flow);
    let names = |ports: &[(PortRef, Span)]| ports.iter().map(|(port, _)| port.clone()).collect();
    spec.pipeline_inputs = names(&wiring.inputs);
    spec.pipeline_outputs = names(&wiring.outputs);
}

/// What feeds an input, and the line that says so.
#[derive(Clone, Copy, PartialEq)]
enum Feed {
    Edge(u32),
    Pipeline(u32),
}

struct Router<'i, 'p, 's> {
    index: &'i Index<'i>,
    fed: HashMap<PortRef, Feed>,
    routed: HashSet<PortRef>,
    /// A name was not understood: a port that seems unused may only be misspelt elsewhere.
    incomplete: bool,
    problems: &'p mut Problems<'s>,
}

impl<'i> Router<'i, '_, '_> {
    fn connect<'w>(&mut self, edges: &'w [ReadEdge]) -> Vec<Wire<'w>> {
        edges.iter().filter_map(|read| self.connect_one(read)).collect()
    }

    fn connect_one<'w>(&mut self, read: &'w ReadEdge) -> Option<Wire<'w>> {
        let code = codes::EDGE_UNKNOWN_END;
        let edge = &read.edge;
        let source = self.find(&edge.source, Direction::Output, read.source_span, code);
        let target = self.find(&edge.target, Direction::Input, read.target_span, code);
        let ((source, source_port), (target, target_port)) = (source?, target?);
        self.routed.insert(edge.source.clone());
        if let Some(Feed::Edge(line)) = self.fed.get(&edge.target) {
            let message =
                format!("`{}` is fed by more than one edge (see line {line})", edge.target);
            let diagnostic = Diagnostic::error(codes::EDGE_TWICE, message);
            self.add(&edge.target, read.target_span, diagnostic);
        } else {
            self.fed.insert(edge.target.clone(), Feed::Edge(read.target_span.line));
        }
        self.compare_ends(read, source_port, target_port);
        Some(Wire { source, target, read })
    }

    fn compare_ends(&mut self, read: &ReadEdge, source: &ReadPort, target: &ReadPort) {
        let (from, to) = (&source.spec, &target.spec);
        if !(source.sound && target.sound) || (from.dtype == to.dtype && from.shape == to.shape) {
            return;
        }
        let message = format!(
            "`{}` is {} {}, but `{}` takes {} {}",
            read.edge.source, from.dtype, from.shape, read.edge.target, to.dtype, to.shape
        );
        let diagnostic = Diagnostic::error(codes::EDGE_MISMATCH, message);
        self.add(&read.edge.target, read.target_span, diagnostic);
    }

    fn take_inputs(&mut self, inputs: &[(PortRef, Span)]) {
        for (port, span) in inputs {
            let found = self.find(port, Direction::Input, *span, codes::PIPELINE_PORT_UNKNOWN);
            if found.is_none() {
                continue;
            }
            let diagnostic = match self.fed.insert(port.clone(), Feed::Pipeline(span.line)) {
                None => continue,
                Some(Feed::Pipeline(line)) => Diagnostic::error(
                    codes::DUPLICATE_PORT,
                    format!("`{port}` is listed twice (see line {line})"),
                ),
                Some(Feed::Edge(line)) => Diagnostic::error(
                    codes::PIPELINE_INPUT_ALSO_FED,
                    format!("`{port}` is a pipeline input and also fed by an edge (line {line})"),
                )
                .hint("the edge would overwrite what the caller gives: remove one of the two"),
            };
            self.add(port, *span, diagnostic);
        }
    }

    fn take_outputs(&mut self, outputs: &[(PortRef, Span)]) {
        let mut listed = HashSet::new();
        for (port, span) in outputs {
            let found = self.find(port, Direction::Output, *span, codes::PIPELINE_PORT_UNKNOWN);
            if found.is_some() && !listed.insert(port) {
                let message = format!("`{port}` is listed twice");
                self.add(port, *span, Diagnostic::error(codes::DUPLICATE_PORT, message));
            }
            self.routed.insert(port.clone());
        }
    }

    /// Whoever runs a bundle without outputs gets nothing from it. An output that leads nowhere is
    /// refused as that, and is then the reason.
    fn refuse_silence(&mut self, wiring: &Wiring) {
        let has_nodes = self.index.len() > 0;
        if self.incomplete || !has_nodes || !wiring.outputs.is_empty() || self.has_unrouted() {
            return;
        }
        let mut edges = wiring.feedback_flow.iter().chain(&wiring.data_flow);
        let Some(read) = edges.next() else { return };
        let source = &read.edge.source;
        let diagnostic = Diagnostic::error(codes::OUTPUTS_MISSING, "the bundle has no outputs")
            .hint(format!(
                "add `{source}` to `outputs` of `pipeline`: what is fed back may be given"
            ));
        self.add(source, read.source_span, diagnostic);
    }

    fn has_unrouted(&self) -> bool {
        self.index.ports.keys().any(|&(node, direction, name)| {
            direction == Direction::Output
                && !self.routed.contains(&PortRef::new(self.index.name(node), name))
        })
    }

    fn check_every_port(&mut self) {
        if self.incomplete {
            return;
        }
        let mut ports: Vec<_> = self.index.ports.iter().collect();
        ports.sort_unstable_by_key(|(_, port)| port.span.index);
        for (&(node, direction, name), port) in ports {
            let port_ref = PortRef::new(self.index.name(node), name);
            let diagnostic = match direction {
                Direction::Input if !self.fed.contains_key(&port_ref) => Diagnostic::error(
                    codes::INPUT_UNFED,
                    format!("`{port_ref}` is neither fed by an edge nor a pipeline input"),
                )
                .hint("add it to `inputs` of `pipeline`"),
                Direction::Output if !self.routed.contains(&port_ref) => {
                    Diagnostic::error(codes::OUTPUT_UNROUTED, format!("`{port_ref}` leads nowhere"))
                        .hint("add it to `outputs` of `pipeline`")
                }
                _ => continue,
            };
            self.add(&port_ref, port.span, diagnostic);
        }
    }

    fn note_zero_start(&mut self, read: &ReadEdge) {
        let target = &read.edge.target;
        let message = format!("`{target}` has no initial value and starts from zeros");
        let diagnostic = Diagnostic::warning(codes::INITIAL_VALUE_MISSING, message)
            .hint("name a file with initial values in `initial_values` of `pipeline`");
        self.add(target, read.target_span, diagnostic);
    }

    /// The node position and port that a name means, or a problem with what may have been meant.
    fn find(
        &mut self,
        port: &PortRef,
        direction: Direction,
        span: Span,
        code: veracity_diag::Code,
    ) -> Option<(usize, &'i ReadPort)> {
        let index = self.index;
        let Some(&node) = index.by_name.get(port.node.as_str()) else {
            self.incomplete = true;
            let diagnostic = Diagnostic::error(code, format!("there is no node {:?}", port.node));
            let diagnostic = self.suggest(diagnostic, &port.node, index.names());
            self.add(port, span, diagnostic);
            return None;
        };
        if let Some(found) = index.ports.get(&(node, direction, port.port.as_str())) {
            return Some((node, found));
        }
        self.incomplete = true;
        if index.is_incomplete(node) {
            return None; // It may be one of those that could not be read.
        }
        let message = format!("node {:?} has no {direction} {:?}", port.node, port.port);
        let mut diagnostic = Diagnostic::error(code, message);
        let other = match direction {
            Direction::Input => Direction::Output,
            Direction::Output => Direction::Input,
        };
        if index.ports.contains_key(&(node, other, port.port.as_str())) {
            diagnostic = diagnostic.hint(format!("`{port}` is an {other}"));
        } else {
            let names = index.port_names(node, direction);
            diagnostic = self.suggest(diagnostic, &port.port, names);
        }
        self.add(port, span, diagnostic);
        None
    }

    /// Says what may have been meant, unless nobody will read it.
    fn suggest<'c>(
        &self,
        diagnostic: Diagnostic,
        name: &str,
        candidates: impl Iterator<Item = &'c str>,
    ) -> Diagnostic {
        if self.problems.is_full() {
            return diagnostic;
        }
        match nearest(name, candidates) {
            Some(near) => diagnostic.hint(format!("did you mean `{near}`?")),
            None => diagnostic,
        }
    }

    fn add(&mut self, port: &PortRef, span: Span, diagnostic: Diagnostic) {
        self.problems.add(span, diagnostic.at(Place::port(&port.node, &port.port)));
    }
}
