//! One rewrite as two models with values on which they differ, for a repro.

use std::collections::BTreeMap;
use std::sync::Arc;

use veracity_diag::{Refusal, Result};
use veracity_engine::{
    Engine, ModelBytes, ModelFormat, ModelSource, OptimizationLevel, SessionOptions,
};
use veracity_onnx::{Graph, Model};
use veracity_tensor::Tensor;

use super::CheckOptions;
use super::adverse::Adverse;
use super::rules::{Demand, Outcome, ROUNDINGS, Row, compare};
use super::run::{Bench, Job, Values};
use super::second::{Suspect, look};
use super::store::Store;
use super::sums::roundings;
use super::window::{Side, Window};
use crate::{Class, Rewrite};

/// Two models and values on which they differ.
pub(crate) struct Shown {
    pub(crate) before: Model,
    pub(crate) after: Model,
    pub(crate) set: String,
    pub(crate) outputs: Vec<(String, String)>,
    /// What is wrong; empty when nothing is.
    pub(crate) reason: String,
    pub(crate) inputs: BTreeMap<String, Tensor>,
    pub(crate) was: BTreeMap<String, Tensor>,
    pub(crate) is: BTreeMap<String, Tensor>,
}

/// What running two models again gave.
pub(crate) struct Again {
    pub(crate) reason: String,
    pub(crate) was: BTreeMap<String, Tensor>,
    pub(crate) is: BTreeMap<String, Tensor>,
}

/// Cuts a rewrite out and looks for values on which it is wrong: the real ones first.
pub(crate) fn show(
    graph: &Graph,
    rewrite: &Rewrite,
    engine: &dyn Engine,
    options: &CheckOptions,
) -> std::result::Result<Shown, String> {
    let mut bench = Bench::new(engine, options);
    let mut window = Window::of(graph, &graph.places(), rewrite);
    let sets = options.inputs.of(graph)?;
    let mut store = Store::new(graph, &sets, 0);
    store.fetch(&mut bench, graph, graph, &window.given);
    let mut tried: Vec<(String, Values, bool)> = Vec::new();
    for set in 0..store.len() {
        let values = window
            .given
            .iter()
            .filter_map(|name| Some((name.clone(), store.values(set).get(name)?.clone())));
        let values: Values = values.collect();
        if values.len() < window.given.len() {
            return Err(format!("what it is given cannot be had: {}", store.problem(set)));
        }
        tried.push((store.name(set).to_owned(), values, true));
    }
    let real = tried.first().map(|(_, values, _)| values.clone()).unwrap_or_default();
    let kinds = Adverse::for_class(rewrite.class).iter().filter(|_| window.is_closed);
    for kind in kinds {
        let like = |(name, value): (&String, &Arc<Tensor>)| {
            (name.clone(), Arc::new(kind.like(value, name, options.inputs.seed)))
        };
        tried.push((kind.name().to_owned(), real.iter().map(like).collect(), false));
    }
    // What is a constant or handed in on one side becomes something that a node gives.
    give_all(&mut window);
    let mut kept = None;
    for (set, values, is_real) in tried {
        let demand = Demand {
            class: rewrite.class,
            roundings: roundings(&window),
            limit: options.approximate_limit,
            is_real,
        };
        let found = differ(&mut bench, graph, &window, &values, demand, options.inputs.seed)?;
        let is_wrong = !found.reason.is_empty();
        if is_wrong || kept.is_none() {
            kept = Some((set, values, found));
        }
        if is_wrong {
            break;
        }
    }
    let (set, values, found) = kept.ok_or_else(|| "there are no values to run it on".to_owned())?;
    let told = |refusal: Refusal| refusal.first_error().message.clone();
    let old: Vec<String> = window.outputs.iter().map(|(old, _)| old.clone()).collect();
    let new: Vec<String> = window.outputs.iter().map(|(_, new)| new.clone()).collect();
    let inputs = values.iter().map(|(name, value)| (name.clone(), (**value).clone())).collect();
    Ok(Shown {
        before: alone(&window.before, &values, old).to_model(graph).map_err(told)?,
        after: alone(&window.after, &values, new).to_model(graph).map_err(told)?,
        set,
        outputs: window.outputs,
        reason: found.reason,
        inputs,
        was: found.was,
        is: found.is,
    })
}

/// Runs two models again on the same values.
pub(crate) fn show_again(
    models: [&Model; 2],
    outputs: &[(String, String)],
    inputs: &BTreeMap<String, Tensor>,
    class: Class,
    engine: &dyn Engine,
    options: &CheckOptions,
) -> Result<Again> {
    let run = |model: &Model, wanted: Vec<&str>| -> Result<BTreeMap<String, Tensor>> {
        let source = ModelSource {
            format: ModelFormat::Onnx,
            bytes: ModelBytes::Memory(Arc::from(model.to_bytes()?)),
        };
        let taken: Vec<String> = model.inputs().into_iter().map(|input| input.name).collect();
        let given: Vec<(&str, &Tensor)> = inputs
            .iter()
            .filter(|(name, _)| taken.contains(name))
            .map(|(name, tensor)| (name.as_str(), tensor))
            .collect();
        let session = SessionOptions {
            threads: options.threads,
            optimization: OptimizationLevel::None,
            ..SessionOptions::default()
        };
        let found = engine.evaluate(&source, &given, &wanted, &session)?;
        let named = wanted.into_iter().map(str::to_owned).zip(found);
        Ok(named.filter_map(|(name, tensor)| Some((name, tensor?))).collect())
    };
    let was = run(models[0], outputs.iter().map(|(old, _)| old.as_str()).collect())?;
    let is = run(models[1], outputs.iter().map(|(_, new)| new.as_str()).collect())?;
    let limit = options.approximate_limit;
    let demand = Demand { class, roundings: ROUNDINGS, limit, is_real: true };
    let wrong = outputs.iter().find_map(|(old, new)| {
        match compare(was.get(old)?, is.get(new)?, demand).outcome {
            Outcome::Right => None,
            Outcome::Suspect => Some(format!("{old:?} is off by more than roundings")),
            Outcome::Wrong(reason) => Some(format!("{old:?}: {reason}")),
        }
    });
    Ok(Again { reason: wrong.unwrap_or_default(), was, is })
}

/// Sees to it that nodes give all outputs, under names that nothing else has.
fn give_all(window: &mut Window) {
    let given = |side: &mut Side, name: &mut String| {
        if !side.makes(name) {
            let handed = format!("{name}:given");
            side.nodes.push(veracity_onnx::Node::new("Identity", [name.as_str()], [&handed]));
            *name = handed;
        }
    };
    for (old, new) in &mut window.outputs {
        given(&mut window.before, old);
        given(&mut window.after, new);
    }
}

fn alone(side: &Side, values: &Values, outputs: Vec<String>) -> veracity_onnx::Window {
    let reads: std::collections::BTreeSet<String> =
        side.nodes.iter().flat_map(veracity_onnx::Node::reads).collect();
    let inputs = reads.into_iter().filter_map(|name| {
        let value = values.get(&name)?;
        Some((name, value.dtype(), value.shape().dims().to_vec()))
    });
    veracity_onnx::Window {
        nodes: side.nodes.clone(),
        inputs: inputs.collect(),
        weights: side.weights.iter().map(|(name, one)| (name.clone(), one.clone())).collect(),
        outputs,
    }
}

fn differ(
    bench: &mut Bench<'_>,
    graph: &Graph,
    window: &Window,
    values: &Values,
    demand: Demand,
    seed: u64,
) -> std::result::Result<Again, String> {
    let old: Vec<&str> = window.outputs.iter().map(|(old, _)| old.as_str()).collect();
    let new: Vec<&str> = window.outputs.iter().map(|(_, new)| new.as_str()).collect();
    let mut run = |side: &Side, wanted: &[&str]| {
        let job = Job { side, wanted, values: (0, values) };
        bench.run(graph, &[job]).pop()
    };
    let named = |names: &[&str], found: &[Tensor]| -> BTreeMap<String, Tensor> {
        names.iter().map(|name| (*name).to_owned()).zip(found.iter().cloned()).collect()
    };
    let was = match run(&window.before, &old) {
        Some(Ok(was)) => was,
        Some(Err(failure)) => return Err(failure.reason),
        None => return Err("it was not run".to_owned()),
    };
    let is = match run(&window.after, &new) {
        Some(Ok(is)) => is,
        Some(Err(failure)) => {
            let reason = format!("what came cannot be run: {}", failure.reason);
            return Ok(Again { reason, was: named(&old, &was), is: BTreeMap::new() });
        }
        None => return Err("it was not run".to_owned()),
    };
    let mut reason = String::new();
    for ((output, before), after) in old.iter().zip(&was).zip(&is) {
        let mut row: Row = compare(before, after, demand);
        if row.outcome == Outcome::Suspect {
            let side = &window.before;
            let suspect = Suspect { side, output, values: (0, values), before, after, row };
            let Some(looked) = look(bench, graph, &[suspect], seed).pop() else { continue };
            row = looked;
        }
        if let Outcome::Wrong(why) = row.outcome {
            reason = format!("{output:?}: {why}");
            break;
        }
    }
    Ok(Again { reason, was: named(&old, &was), is: named(&new, &is) })
}
