//! The recorded passes as an episode: which sample is which tick, and where the code began anew.

use std::ops::Range;

use veracity_diag::{Diagnostic, codes};
use veracity_spec::{Bundle, Direction, Edge, Node, PortRef, Spec};
use veracity_tensor::TensorView;

use crate::samples::{Kind, Samples};

/// A recorded episode of a bundle.
pub(crate) struct Episode<'s> {
    spec: &'s Spec,
    samples: &'s Samples,
    /// Ticks on which every recorded node has a sample.
    ticks: Range<usize>,
    /// Of each node, its first sample's tick.
    firsts: Vec<usize>,
}

impl<'s> Episode<'s> {
    /// Lines the samples up. Refused when they are not the ticks of one episode.
    pub(crate) fn new(bundle: &'s Bundle, samples: &'s Samples) -> Result<Self, Box<Diagnostic>> {
        let spec = bundle.spec();
        for input in &spec.pipeline_inputs {
            if samples.count(&input.node, Kind::Recorded) == 0 {
                return Err(refused(format!("`{input}` was not recorded")));
            }
        }
        let mut ticks = 0..usize::MAX;
        let mut firsts = Vec::new();
        for node in &spec.nodes {
            let of_node = samples.ticks(&node.name);
            firsts.push(of_node.first().copied().unwrap_or(0));
            let Some((&first, &last)) = of_node.first().zip(of_node.last()) else { continue };
            if !of_node.is_sorted() || last - first + 1 != of_node.len() {
                let name = &node.name;
                return Err(refused(format!("node {name:?} did not run once on every tick")));
            }
            ticks = ticks.start.max(first)..ticks.end.min(last + 1);
        }
        if ticks.end == usize::MAX || ticks.is_empty() {
            return Err(refused("there is no tick on which every node was recorded".to_owned()));
        }
        Ok(Self { spec, samples, ticks, firsts })
    }

    pub(crate) fn ticks(&self) -> Range<usize> {
        self.ticks.clone()
    }

    /// Whether the episode begins where the bundle begins.
    pub(crate) fn begins_at_the_start(&self) -> bool {
        self.ticks.start == 0
    }

    /// What was recorded at a port on a tick.
    pub(crate) fn value(
        &self,
        port: &PortRef,
        direction: Direction,
        tick: usize,
    ) -> Option<TensorView<'s>> {
        let (position, node) = self.node(&port.node)?;
        let sample = tick.checked_sub(self.firsts[position])?;
        let index = node.ports(direction).iter().position(|spec| spec.name == port.port)?;
        match direction {
            Direction::Input => self.samples.input(node, Kind::Recorded, index, sample),
            Direction::Output => self.samples.output(node, Kind::Recorded, index, sample),
        }
    }

    fn node(&self, name: &str) -> Option<(usize, &'s Node)> {
        self.spec.nodes.iter().enumerate().find(|(_, node)| node.name == name)
    }

    /// The states that the code set back to what they were in the beginning, before this tick.
    ///
    /// A state counts as set back only when it is what it was on the first tick and not what its
    /// source gave. Any other difference is left to be found: it may be a wrong edge.
    pub(crate) fn set_back(&self, tick: usize) -> Vec<&'s PortRef> {
        if tick == self.ticks.start {
            return Vec::new();
        }
        let is_set_back = |edge: &&Edge| {
            let now = self.bytes(&edge.target, Direction::Input, tick);
            let given = self.bytes(&edge.source, Direction::Output, tick - 1);
            let beginning = self.bytes(&edge.target, Direction::Input, self.ticks.start);
            given.is_some() && now.is_some() && now != given && now == beginning
        };
        self.spec.feedback_flow.iter().filter(is_set_back).map(|edge| &edge.target).collect()
    }

    fn bytes(&self, port: &PortRef, direction: Direction, tick: usize) -> Option<&'s [u8]> {
        self.value(port, direction, tick)?.contiguous_bytes()
    }
}

fn refused(message: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::warning(codes::ROLLOUT_NOT_RUN, message))
}
