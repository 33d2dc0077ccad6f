//! Which stage reads and writes which value.
//!
//! The plan is pure data made from a checked [`Spec`]: it knows no engine and no memory. A *stage*
//! is one session: a node, or several neighbouring ONNX nodes merged into one.

use std::collections::BTreeMap;
use std::ops::Range;

use veracity_spec::{PortRef, PortSpec, Spec};
use veracity_tensor::{DType, Shape};

/// Number of a pipeline input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InputId(pub usize);

/// Number of a pipeline output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId(pub usize);

/// Number of a feedback input: one piece of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub usize);

/// Number of a value that a stage writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValueId(pub(crate) usize);

/// A port with the memory it needs.
#[derive(Clone, Debug)]
pub struct PlannedPort {
    /// `node/port`.
    pub key: PortRef,
    /// Type of the elements.
    pub dtype: DType,
    /// Sizes of the axes.
    pub shape: Shape,
}

impl PlannedPort {
    /// Whether `key` is this port, written `node/port`. Allocates nothing.
    pub fn has_key(&self, key: &str) -> bool {
        key.split_once('/')
            .is_some_and(|(node, port)| self.key.node == node && self.key.port == port)
    }
}

/// Where a stage's input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Given by the caller on every step.
    Input(InputId),
    /// Written by an earlier stage in the same step.
    Value(ValueId),
    /// Written in the step before.
    State(StateId),
}

/// A value that a stage writes.
#[derive(Clone, Debug)]
pub(crate) struct PlannedValue {
    pub(crate) port: PlannedPort,
    /// Whether the next step reads it, so that it needs two banks.
    pub(crate) carried: bool,
}

/// A feedback input.
#[derive(Clone, Debug)]
pub(crate) struct PlannedState {
    pub(crate) port: PlannedPort,
    pub(crate) source: ValueId,
}

/// One session.
#[derive(Clone, Debug)]
pub(crate) struct PlannedStage {
    /// The nodes it runs, as positions in the spec.
    pub(crate) nodes: Range<usize>,
    pub(crate) inputs: Vec<(PlannedPort, Source)>,
    pub(crate) outputs: Vec<ValueId>,
}

/// What runs in which order on which values.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) inputs: Vec<PlannedPort>,
    pub(crate) outputs: Vec<ValueId>,
    pub(crate) values: Vec<PlannedValue>,
    pub(crate) states: Vec<PlannedState>,
    pub(crate) stages: Vec<PlannedStage>,
}

impl Plan {
    /// A plan in which every node is its own stage.
    pub(crate) fn new(spec: &Spec) -> Self {
        Self::with_groups(spec, (0..spec.nodes.len()).map(|index| index..index + 1))
    }

    /// A plan in which each range of nodes is one stage. Values that stay inside a stage have no
    /// memory of their own. The ranges cover all nodes in order.
    pub(crate) fn with_groups(spec: &Spec, groups: impl Iterator<Item = Range<usize>>) -> Self {
        let wiring = Wiring::new(spec);
        let mut planner = Planner::new(spec, &wiring);
        for group in groups {
            planner.add_stage(group);
        }
        planner.finish()
    }
}

/// The edges of a spec, by the port they end or start at.
struct Wiring<'a> {
    /// Producer of each input that an edge of the same step feeds.
    data_source: BTreeMap<&'a PortRef, &'a PortRef>,
    /// Producer of each input that the step before feeds.
    feedback_source: BTreeMap<&'a PortRef, &'a PortRef>,
}

impl<'a> Wiring<'a> {
    fn new(spec: &'a Spec) -> Self {
        let by_target = |edges: &'a [veracity_spec::Edge]| {
            edges.iter().map(|edge| (&edge.target, &edge.source)).collect()
        };
        Self {
            data_source: by_target(&spec.data_flow),
            feedback_source: by_target(&spec.feedback_flow),
        }
    }
}

struct Planner<'a> {
    spec: &'a Spec,
    wiring: &'a Wiring<'a>,
    value_ids: BTreeMap<PortRef, ValueId>,
    /// States whose producer may come later; resolved at the end.
    open_states: Vec<(PlannedPort, &'a PortRef)>,
    plan: Plan,
}

impl<'a> Planner<'a> {
    fn new(spec: &'a Spec, wiring: &'a Wiring<'a>) -> Self {
        let plan = Plan {
            inputs: Vec::new(),
            outputs: Vec::new(),
            values: Vec::new(),
            states: Vec::new(),
            stages: Vec::new(),
        };
        Self { spec, wiring, value_ids: BTreeMap::new(), open_states: Vec::new(), plan }
    }

    fn add_stage(&mut self, group: Range<usize>) {
        let mut inputs = Vec::new();
        for node in &self.spec.nodes[group.clone()] {
            for port in &node.inputs {
                let port = planned(&node.name, port);
                if !self.is_fed_inside(&port.key, &group) {
                    let source = self.source_of(&port);
                    inputs.push((port, source));
                }
            }
        }
        let mut outputs = Vec::new();
        for node in &self.spec.nodes[group.clone()] {
            for port in &node.outputs {
                let port = planned(&node.name, port);
                if group.len() == 1 || self.is_needed_outside(&port.key, &group) {
                    outputs.push(self.add_value(port));
                }
            }
        }
        self.plan.stages.push(PlannedStage { nodes: group, inputs, outputs });
    }

    fn source_of(&mut self, port: &PlannedPort) -> Source {
        if let Some(&producer) = self.wiring.data_source.get(&port.key) {
            // The spec refuses `data_flow` that leads backwards: the producer is planned already.
            return Source::Value(self.value_ids[producer]);
        }
        if let Some(&producer) = self.wiring.feedback_source.get(&port.key) {
            self.open_states.push((port.clone(), producer));
            return Source::State(StateId(self.open_states.len() - 1));
        }
        self.plan.inputs.push(port.clone());
        Source::Input(InputId(self.plan.inputs.len() - 1))
    }

    fn add_value(&mut self, port: PlannedPort) -> ValueId {
        let id = ValueId(self.plan.values.len());
        self.value_ids.insert(port.key.clone(), id);
        let carried = self.spec.feedback_flow.iter().any(|edge| edge.source == port.key);
        self.plan.values.push(PlannedValue { port, carried });
        id
    }

    fn is_fed_inside(&self, key: &PortRef, group: &Range<usize>) -> bool {
        self.wiring.data_source.get(key).is_some_and(|producer| self.is_inside(producer, group))
    }

    fn is_needed_outside(&self, key: &PortRef, group: &Range<usize>) -> bool {
        let leaves = |edge: &veracity_spec::Edge| {
            edge.source == *key && !self.is_inside(&edge.target, group)
        };
        self.spec.pipeline_outputs.contains(key)
            || self.spec.feedback_flow.iter().any(|edge| edge.source == *key)
            || self.spec.data_flow.iter().any(leaves)
    }

    fn is_inside(&self, key: &PortRef, group: &Range<usize>) -> bool {
        self.spec.nodes[group.clone()].iter().any(|node| node.name == key.node)
    }

    fn finish(mut self) -> Plan {
        for (port, producer) in self.open_states {
            self.plan.states.push(PlannedState { port, source: self.value_ids[producer] });
        }
        // The spec refuses pipeline outputs that no node has.
        self.plan.outputs =
            self.spec.pipeline_outputs.iter().map(|key| self.value_ids[key]).collect();
        self.plan
    }
}

fn planned(node: &str, port: &PortSpec) -> PlannedPort {
    PlannedPort {
        key: PortRef { node: node.to_owned(), port: port.name.clone() },
        dtype: port.dtype,
        shape: port.shape.clone(),
    }
}
