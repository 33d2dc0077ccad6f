//! Merges neighbouring ONNX nodes into one session, and shows that this changed nothing.
//!
//! A session has a fixed cost of a few microseconds, so on small models merging halves a step. It
//! also lets the engine rewrite across node borders, which may change results: the merged form is
//! run beside the separate one on made-up inputs first, and used only if they agree.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use veracity_compare::{MeasureOptions, measure};
use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{ModelBytes, ModelFormat, ModelSource};
use veracity_onnx::{Edge, Model, Stage};
use veracity_results::Tolerance;
use veracity_spec::{PortRef, Spec};
use veracity_tensor::Tensor;

use crate::plan::{Plan, PlannedStage};
use crate::runner::Runner;

/// Episodes of made-up inputs that are run through both forms.
const EPISODES: u64 = 3;
/// Steps of each episode: enough for state to be read from staging and from both banks.
const STEPS: u64 = 4;

/// The groups of a bundle that can be merged, with their merged models.
pub(crate) struct Merged {
    groups: Vec<Range<usize>>,
    models: BTreeMap<usize, Arc<[u8]>>,
}

impl Merged {
    /// Merges what can be merged; `None` when there is nothing.
    pub(crate) fn new(spec: &Spec, sources: &[ModelSource]) -> Result<Option<Self>> {
        let loaded: Vec<Option<Model>> = sources.iter().map(mergeable).collect::<Result<_>>()?;
        let groups = groups(&loaded);
        let plan = Plan::with_groups(spec, groups.iter().cloned());
        let mut models = BTreeMap::new();
        for stage in plan.stages.iter().filter(|stage| stage.nodes.len() > 1) {
            models.insert(stage.nodes.start, merge(spec, &plan, stage, &loaded)?.into());
        }
        Ok((!models.is_empty()).then_some(Self { groups, models }))
    }

    pub(crate) fn plan(&self, spec: &Spec) -> Plan {
        Plan::with_groups(spec, self.groups.iter().cloned())
    }

    /// The merged model of a group; `None` for a node on its own.
    pub(crate) fn model(&self, nodes: &Range<usize>) -> Option<Arc<[u8]>> {
        (nodes.len() > 1).then(|| self.models.get(&nodes.start).cloned()).flatten()
    }
}

/// ONNX models in memory can be merged; those that are files are large or have others beside them.
fn mergeable(source: &ModelSource) -> Result<Option<Model>> {
    match (source.format, &source.bytes) {
        (ModelFormat::Onnx, ModelBytes::Memory(bytes)) => {
            Model::from_bytes(Bytes::from_owner(Arc::clone(bytes))).map(Some)
        }
        _ => Ok(None),
    }
}

/// Neighbouring nodes that can be merged, as ranges that cover all nodes.
fn groups(mergeable: &[Option<Model>]) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    for (index, model) in mergeable.iter().enumerate() {
        match groups.last_mut() {
            Some(last) if model.is_some() && mergeable[index - 1].is_some() => last.end += 1,
            _ => groups.push(index..index + 1),
        }
    }
    groups
}

fn merge(
    spec: &Spec,
    plan: &Plan,
    stage: &PlannedStage,
    loaded: &[Option<Model>],
) -> Result<Vec<u8>> {
    let nodes = &spec.nodes[stage.nodes.clone()];
    let is_inside = |port: &PortRef| nodes.iter().any(|node| node.name == port.node);
    let stages: Vec<Stage<'_>> = nodes
        .iter()
        .zip(&loaded[stage.nodes.clone()])
        .filter_map(|(node, model)| Some(Stage { name: &node.name, model: model.as_ref()? }))
        .collect();
    let edges: Vec<Edge<'_>> = spec
        .data_flow
        .iter()
        .filter(|edge| is_inside(&edge.source) && is_inside(&edge.target))
        .map(|edge| Edge { from: names(&edge.source), to: names(&edge.target) })
        .collect();
    let outputs: Vec<_> =
        stage.outputs.iter().map(|value| names(&plan.values[value.0].port.key)).collect();
    veracity_onnx::merge(&stages, &edges, &outputs)?.to_bytes()
}

fn names(port: &PortRef) -> (&str, &str) {
    (&port.node, &port.port)
}

/// The merged form if there is one and it was shown to agree with the separate one. Else the
/// separate one, with a warning that says why.
pub(crate) fn choose(
    mut separate: Runner,
    merged: Result<Option<Runner>>,
    tolerance: Tolerance,
) -> Runner {
    let shown = merged.and_then(|merged| {
        let Some(mut merged) = merged else { return Ok(None) };
        show_equal(&mut separate, &mut merged, tolerance)?;
        Ok(Some(merged))
    });
    let mut chosen = match shown {
        Ok(Some(merged)) => merged,
        Ok(None) => separate,
        Err(refusal) => {
            let why = &refusal.first_error().message;
            let message = format!("neighbouring nodes were not merged: {why}");
            let warning = Diagnostic::warning(codes::FUSION_UNPROVED, message);
            separate.warn(warning.hint("they run separately; no result is affected"));
            separate
        }
    };
    chosen.reset();
    chosen
}

fn show_equal(separate: &mut Runner, merged: &mut Runner, tolerance: Tolerance) -> Result<()> {
    let states: Vec<PortRef> = separate.states().map(|port| port.key.clone()).collect();
    for episode in 0..EPISODES {
        separate.reset();
        merged.reset();
        for step in 0..STEPS {
            let inputs = separate.mock_inputs(episode * STEPS + step);
            let (reference, candidate) = (separate.run(&inputs)?, merged.run(&inputs)?);
            for (name, expected) in &reference {
                agree(name, expected, &candidate[name], tolerance)?;
            }
            let pairs = separate.save_states().into_iter().zip(merged.save_states());
            for (key, (expected, found)) in states.iter().zip(pairs) {
                agree(&key.to_string(), &expected, &found, tolerance)?;
            }
        }
    }
    Ok(())
}

fn agree(name: &str, expected: &Tensor, found: &Tensor, tolerance: Tolerance) -> Result<()> {
    let options = MeasureOptions::new(tolerance).with_threads(1);
    let measured = measure(&expected.view(), &found.view(), &options)?;
    // Made-up inputs may well give NaN or infinities; both forms must then give the same.
    if measured.outside == 0 && measured.non_finite.mismatching == 0 {
        return Ok(());
    }
    let message = format!(
        "{name} differs by {:e}, more than {:e} + {:e} * |value|",
        measured.max_abs,
        tolerance.atol(),
        tolerance.rtol()
    );
    Err(Diagnostic::error(codes::FUSION_UNPROVED, message).into())
}
