//! Which stage feeds which, checked before anything is renamed.

use std::collections::{HashMap, HashSet};

use veracity_diag::{Diagnostic, Place, Refusal, Reporter, Result, codes};

use super::{Edge, PortRef, Stage, unfusable};
use crate::generated::onnx::{NodeProto, ValueInfoProto};
use crate::model::initializer_names;
use crate::walk::Parts;
use crate::{Dim, ValueInfo};

/// Every edge and output with the stages as indices. Producers come before consumers, every port
/// exists, the two ends of an edge fit, and no input is fed twice.
pub(super) struct Plan<'a> {
    /// Consumer, input, producer, output.
    feeds: Vec<(usize, &'a str, usize, &'a str)>,
    /// Stage, output.
    outputs: Vec<(usize, &'a str)>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        stages: &[Stage<'a>],
        edges: &[Edge<'a>],
        outputs: &[PortRef<'a>],
    ) -> Result<Self> {
        let mut reporter = Reporter::new();
        let mut index_of = HashMap::new();
        for (index, stage) in stages.iter().enumerate() {
            if index_of.insert(stage.name, index).is_some() {
                let message = format!("two stages are called {:?}", stage.name);
                reporter.report(unfusable(message));
            }
            reporter.absorb(check_stage(*stage));
        }
        if outputs.is_empty() {
            reporter.report(unfusable("the merged model would have no output"));
        }
        let ports = Ports::new(stages, index_of);
        let mut taken = HashSet::new();
        let mut plan = Self { feeds: Vec::new(), outputs: Vec::new() };
        for edge in edges {
            let once = taken.insert(edge.to);
            plan.feeds.extend(reporter.absorb(ports.connect(edge, once)));
        }
        let mut exposed = HashSet::new();
        for &output in outputs {
            let once = exposed.insert(output);
            plan.outputs.extend(reporter.absorb(ports.expose(output, once)));
        }
        reporter.finish().map(|_| plan)
    }

    /// Connected inputs of a stage: input, producer, output.
    pub(super) fn feeds(&self, stage: usize) -> impl Iterator<Item = (&'a str, usize, &'a str)> {
        let feeds = self.feeds.iter().filter(move |feed| feed.0 == stage);
        feeds.map(|&(_, input, producer, output)| (input, producer, output))
    }

    /// What the merged model returns: stage, output.
    pub(super) fn outputs(&self) -> &[(usize, &'a str)] {
        &self.outputs
    }
}

/// Refuses a stage that cannot be part of anything.
fn check_stage(stage: Stage<'_>) -> Result<()> {
    let refuse = |what: String| Err(unfusable(what).at(Place::node(stage.name)).into());
    let proto = stage.model.proto();
    if stage.name.is_empty() || stage.name.contains('/') {
        return refuse(format!("a stage cannot be called {:?}", stage.name));
    }
    if stage.model.has_external_data() {
        return refuse("weights of the model lie in other files".to_owned());
    }
    if !proto.training_info.is_empty() {
        return refuse("the model carries a training graph".to_owned());
    }
    let spread = |node: &&NodeProto| !node.device_configurations.is_empty();
    if !proto.configuration.is_empty() || Parts::of(proto).nodes.iter().any(spread) {
        return refuse("the model is spread over devices".to_owned());
    }
    match defined_twice(stage) {
        Some(name) => refuse(format!("the model defines value {name:?} twice")),
        None => Ok(()),
    }
}

/// A value of the main graph with two sources; renaming could hide that from the engine.
fn defined_twice(stage: Stage<'_>) -> Option<String> {
    let graph = stage.model.graph();
    let inputs = stage.model.fed_inputs().map(ValueInfoProto::name);
    let computed = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
    let mut seen = HashSet::new();
    inputs
        .chain(initializer_names(graph))
        .chain(computed.filter(|name| !name.is_empty()))
        .find(|name| !seen.insert(*name))
        .map(ToOwned::to_owned)
}

/// The ports of every stage.
struct Ports<'a> {
    stages: Vec<(HashMap<String, ValueInfo>, HashMap<String, ValueInfo>)>,
    index_of: HashMap<&'a str, usize>,
}

impl<'a> Ports<'a> {
    fn new(stages: &[Stage<'a>], index_of: HashMap<&'a str, usize>) -> Self {
        let by_name = |values: Vec<ValueInfo>| {
            values.into_iter().map(|value| (value.name.clone(), value)).collect()
        };
        let stages = stages
            .iter()
            .map(|stage| (by_name(stage.model.inputs()), by_name(stage.model.outputs())))
            .collect();
        Self { stages, index_of }
    }

    fn stage(&self, name: &str) -> Result<usize> {
        let index = self.index_of.get(name).copied();
        index.ok_or_else(|| unfusable(format!("no stage is called {name:?}")).into())
    }

    fn input(&self, (stage, port): PortRef<'_>) -> Result<(usize, &ValueInfo)> {
        let index = self.stage(stage)?;
        let found = self.stages[index].0.get(port);
        Ok((index, found.ok_or_else(|| missing("input", (stage, port)))?))
    }

    fn output(&self, (stage, port): PortRef<'_>) -> Result<(usize, &ValueInfo)> {
        let index = self.stage(stage)?;
        let found = self.stages[index].1.get(port);
        Ok((index, found.ok_or_else(|| missing("output", (stage, port)))?))
    }

    fn connect(&self, edge: &Edge<'a>, once: bool) -> Result<(usize, &'a str, usize, &'a str)> {
        let (producer, from) = self.output(edge.from)?;
        let (consumer, to) = self.input(edge.to)?;
        let place = Place::port(edge.to.0, edge.to.1);
        let refuse = |what: String| Err(unfusable(what).at(place.clone()).into());
        if !once {
            return refuse("two edges feed this input".to_owned());
        }
        if producer >= consumer {
            return refuse(format!("it is fed by {:?}, which does not run before it", edge.from.0));
        }
        if !fit(from, to) {
            return refuse(format!("it is {to}, but is fed with {from}"));
        }
        Ok((consumer, edge.to.1, producer, edge.from.1))
    }

    fn expose(&self, output: PortRef<'a>, once: bool) -> Result<(usize, &'a str)> {
        let (index, _) = self.output(output)?;
        if !once {
            let problem = unfusable("it is to be exposed twice");
            return Err(problem.at(Place::port(output.0, output.1)).into());
        }
        Ok((index, output.1))
    }
}

fn missing(side: &str, (stage, port): PortRef<'_>) -> Refusal {
    let message = format!("the model has no {side} {port:?}");
    Diagnostic::error(codes::ONNX_PORT_MISSING, message).at(Place::port(stage, port)).into()
}

/// Whether nothing that both ends say contradicts.
fn fit(from: &ValueInfo, to: &ValueInfo) -> bool {
    let untyped = [from, to].iter().any(|value| value.type_name == ValueInfo::UNTYPED);
    let dims_fit = match (&from.dims, &to.dims) {
        (Some(from), Some(to)) => {
            from.len() == to.len()
                && from.iter().zip(to).all(|(from, to)| match (from, to) {
                    (Dim::Fixed(from), Dim::Fixed(to)) => from == to,
                    _ => true,
                })
        }
        _ => true,
    };
    (untyped || from.type_name == to.type_name) && dims_fit
}
