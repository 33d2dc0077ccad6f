//! Edges between nodes, and their delays.
//!
//! The age of an input is the number of executions that its producer completed after the one that
//! made the value, counted when the consumer is completed. Counting when the input is marked would
//! be wrong for nodes that run into each other, and the difference of execution numbers is wrong for
//! nodes that start late. A producer that comes before its consumer has been completed once more in
//! the same tick, so its age is the delay; any other producer is one tick further back.

use std::collections::BTreeMap;

use crate::ids::{NodeId, PortId};
use crate::report::Origin;

/// The pipeline as it was seen so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// Sorted by target.
    pub edges: Vec<Edge>,
    /// Inputs whose source is not the same thing every time, sorted by target.
    pub problems: Vec<EdgeProblem>,
    /// Edges whose output was read again by a later execution of the target: the two nodes do not
    /// run equally often.
    pub reused: Vec<Edge>,
    /// The nodes in the order in which they were completed first.
    pub order: Vec<NodeId>,
}

/// An input that is an output, now or some ticks ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The output.
    pub source: (NodeId, PortId),
    /// The input.
    pub target: (NodeId, PortId),
    /// By how many ticks the input is behind the output.
    pub delay: u32,
}

/// An input without a definite source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EdgeProblem {
    /// The input.
    pub target: (NodeId, PortId),
    /// What is wrong.
    pub kind: EdgeProblemKind,
}

/// What is wrong with the source of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeProblemKind {
    /// The same output, but not equally old every time.
    DelayVaries {
        /// The output.
        source: (NodeId, PortId),
        /// The first delay seen, and another one.
        delays: (u32, u32),
        /// The executions of the target that showed them first.
        executions: (u32, u32),
    },
    /// Another output on another pass.
    SourceVaries {
        /// The first output seen, and another one.
        sources: ((NodeId, PortId), (NodeId, PortId)),
        /// The executions of the target that showed them first.
        executions: (u32, u32),
    },
    /// An output on one pass, no output on a later one.
    SourceLost {
        /// The output.
        source: (NodeId, PortId),
        /// The execution of the target that had none.
        execution: u32,
    },
}

/// An input of an execution that ended, and the output that it was, with whether a light execution
/// published that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observation {
    pub(crate) port: PortId,
    pub(crate) origin: Option<(Origin, bool)>,
}

/// A source that an input had.
#[derive(Debug, Clone, Copy)]
struct Seen {
    source: (NodeId, PortId),
    age: u32,
    /// The first execution of the target that had it.
    execution: u32,
}

/// What was seen of one input: a few entries, however many passes there were.
#[derive(Debug, Default)]
struct Input {
    /// Different sources and ages, in the order in which they appeared.
    seen: Vec<Seen>,
    /// The first execution without a source after one that had it.
    lost: Option<u32>,
    /// The value that it was last.
    last: Option<Origin>,
    /// Whether one value was read by two executions.
    reused: bool,
}

/// Completed executions of a node; for each, whether it was light.
#[derive(Debug, Default)]
struct Completed {
    light: Vec<bool>,
}

/// All completed executions.
#[derive(Debug, Default)]
pub(crate) struct History {
    order: Vec<NodeId>,
    nodes: BTreeMap<NodeId, Completed>,
    inputs: BTreeMap<(NodeId, PortId), Input>,
}

impl History {
    /// Counts a completion; gives the number of the execution.
    pub(crate) fn complete(
        &mut self,
        node: NodeId,
        light: bool,
        observations: impl Iterator<Item = Observation>,
    ) -> u32 {
        let number = self.completed(node);
        for observation in observations {
            self.observe((node, observation.port), number, light, observation.origin);
        }
        if number == 0 {
            self.order.push(node);
        }
        self.nodes.entry(node).or_default().light.push(light);
        number
    }

    fn completed(&self, node: NodeId) -> u32 {
        let count = self.nodes.get(&node).map_or(0, |completed| completed.light.len());
        u32::try_from(count).expect("a session has fewer than 2^32 executions")
    }

    fn observe(
        &mut self,
        target: (NodeId, PortId),
        execution: u32,
        light: bool,
        origin: Option<(Origin, bool)>,
    ) {
        match origin {
            // What was read or published while calls were not seen may be stale.
            Some((_, true)) => {}
            None if light => {}
            Some((origin, false)) => {
                let age = self.completed(origin.node).saturating_sub(origin.execution + 1);
                let seen = Seen { source: (origin.node, origin.port), age, execution };
                let input = self.inputs.entry(target).or_default();
                input.reused |= input.last.replace(origin) == Some(origin);
                let known = |known: &Seen| (known.source, known.age) == (seen.source, age);
                if !input.seen.iter().any(known) {
                    input.seen.push(seen);
                }
            }
            None => self.observe_loss(target, execution),
        }
    }

    /// An input that had a source has none. That says nothing when the source was light.
    fn observe_loss(&mut self, target: (NodeId, PortId), execution: u32) {
        let Some(Seen { source, age, .. }) =
            self.inputs.get(&target).and_then(|input| input.seen.first()).copied()
        else {
            return;
        };
        let expected = self.completed(source.0).checked_sub(age + 1);
        let runs = &self.nodes[&source.0].light;
        let was_light = expected.is_some_and(|number| runs[number as usize]);
        if let Some(input) = self.inputs.get_mut(&target).filter(|_| !was_light) {
            input.lost.get_or_insert(execution);
        }
    }

    /// What all that amounts to.
    pub(crate) fn graph(&self) -> Graph {
        let mut graph = Graph { order: self.order.clone(), ..Graph::default() };
        for (target, input) in &self.inputs {
            match self.judge(*target, input) {
                Ok(edge) => {
                    graph.reused.extend(edge.filter(|_| input.reused));
                    graph.edges.extend(edge);
                }
                Err(kind) => graph.problems.push(EdgeProblem { target: *target, kind }),
            }
        }
        graph
    }

    fn judge(
        &self,
        target: (NodeId, PortId),
        input: &Input,
    ) -> Result<Option<Edge>, EdgeProblemKind> {
        let Some(first) = input.seen.first() else { return Ok(None) };
        let source = first.source;
        if let Some(other) = input.seen.iter().find(|seen| seen.source != source) {
            let executions = (first.execution, other.execution);
            let sources = (source, other.source);
            return Err(EdgeProblemKind::SourceVaries { sources, executions });
        }
        let delay = |seen: &Seen| seen.age + u32::from(!self.precedes(source.0, target.0));
        if let Some(other) = input.seen.get(1) {
            let executions = (first.execution, other.execution);
            let delays = (delay(first), delay(other));
            return Err(EdgeProblemKind::DelayVaries { source, delays, executions });
        }
        if let Some(execution) = input.lost {
            return Err(EdgeProblemKind::SourceLost { source, execution });
        }
        Ok(Some(Edge { source, target, delay: delay(first) }))
    }

    fn precedes(&self, producer: NodeId, consumer: NodeId) -> bool {
        let place = |node| self.order.iter().position(|known| *known == node);
        place(producer) < place(consumer)
    }
}
