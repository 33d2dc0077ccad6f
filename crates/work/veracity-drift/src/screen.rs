//! Runs two models as a whole on many made-up inputs, to find some on which they part.
//!
//! Looking at every operator is dear, so that few inputs are looked at so closely. These are cheap:
//! both models are loaded once for each kind of inputs and run for their outputs alone. Nothing is
//! judged here. Inputs on which outputs differ are worth the closer look.

mod draws;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use veracity_engine::{
    Engine, Evaluation, ModelBytes, ModelFormat, ModelSource, OptimizationLevel, SessionOptions,
};
use veracity_onnx::Model;
use veracity_tensor::Tensor;

use self::draws::Draws;
use crate::convert::{floats, integers};
use crate::pair::{Inputs, Side};

/// How long models are run for. One kind is always finished.
const LIMIT: Duration = Duration::from_millis(1500);
/// Models with more bytes are left to the inputs that are looked at closely: loading them is dear.
const MOST_BYTES: usize = 64 << 20;
/// Inputs that are given back.
const MOST_FOUND: usize = 3;
/// Below this share of an element, or of the usual elements of its tensor, outputs are alike.
const OF_ELEMENT: f64 = 1e-3;
const OF_USUAL: f64 = 1e-5;
/// And below this share of the largest input: engines round functions that vanish far away.
const OF_INPUTS: f64 = 1e-6;

/// Inputs on which two models part.
#[derive(Debug)]
pub struct Suspicion {
    /// The inputs.
    pub inputs: Inputs,
    /// What they are.
    pub said: String,
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Screening {
    /// How many inputs both models were run on.
    pub tried: usize,
    /// Those on which they part the most, the worst first.
    pub found: Vec<Suspicion>,
}

/// The outputs of one run, `None` where it is no tensor of ours; nothing where it was refused.
pub type Outputs = Option<Vec<Option<Tensor>>>;

/// Looks for inputs on which two models part. `sizes` are those of axes that have a name.
pub fn screen(
    reference: &Side<'_>,
    candidate: &Side<'_>,
    sizes: &BTreeMap<String, usize>,
    seed: u64,
) -> Screening {
    let Some(outputs) = outputs_of(reference.model, candidate.model) else {
        return Screening::default();
    };
    let (theirs, ours): (Vec<&str>, Vec<&str>) =
        outputs.iter().map(|(one, other)| (one.as_str(), other.as_str())).unzip();
    let held = BTreeMap::new();
    let there = Loaded::new(reference.model, reference.engine, reference.session, &held);
    let here = Loaded::new(candidate.model, candidate.engine, candidate.session, &held);
    let (Some(there), Some(here)) = (there, here) else { return Screening::default() };
    if !here.inputs.iter().all(|name| there.inputs.contains(name)) {
        return Screening::default();
    }
    let draws = Draws::new([reference.model, candidate.model], &held, sizes, seed);
    search(&draws, &|draws| there.run(draws, &theirs), &|draws| here.run(draws, &ours))
}

/// Looks for inputs on which a model and its original part, which is run by whoever has it. `weights`
/// are inputs of the model that are none of the original's.
pub fn screen_original(
    candidate: &Model,
    weights: &BTreeMap<String, Tensor>,
    engine: &dyn Engine,
    session: &SessionOptions,
    original: &dyn Fn(&[Inputs]) -> Vec<Outputs>,
) -> Screening {
    let bytes: usize = weights.values().map(|weight| weight.bytes().len()).sum();
    let Some(here) =
        Loaded::new(candidate, engine, session, weights).filter(|_| bytes <= MOST_BYTES)
    else {
        return Screening::default();
    };
    let names: Vec<String> = candidate.outputs().into_iter().map(|info| info.name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let sizes = BTreeMap::new();
    let mut draws = Draws::new([candidate, candidate], weights, &sizes, 0);
    draws.takes_large = false;
    search(&draws, original, &|draws| here.run(draws, &names))
}

fn search(
    draws: &Draws<'_>,
    reference: &dyn Fn(&[Inputs]) -> Vec<Outputs>,
    candidate: &dyn Fn(&[Inputs]) -> Vec<Outputs>,
) -> Screening {
    let mut screening = Screening::default();
    let began = Instant::now();
    let mut found: Vec<(f64, Suspicion)> = Vec::new();
    for group in draws.groups() {
        let (there, here) = (reference(&group.draws), candidate(&group.draws));
        let mut worst: Option<(f64, usize)> = None;
        for (number, pair) in there.iter().zip(&here).enumerate() {
            let (Some(there), Some(here)) = pair else { continue };
            screening.tried += 1;
            let given = largest(&group.draws[number]);
            let pairs = there.iter().zip(here);
            let apart = pairs.map(|(one, other)| parted(one.as_ref(), other.as_ref(), given));
            let apart = apart.fold(0.0, f64::max);
            if apart > 1.0 && worst.is_none_or(|(most, _)| apart > most) {
                worst = Some((apart, number));
            }
        }
        if let Some((apart, number)) = worst {
            let (inputs, said) = (group.draws[number].clone(), group.said);
            found.push((apart, Suspicion { inputs, said }));
        }
        if began.elapsed() > LIMIT {
            break;
        }
    }
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    screening.found = found.into_iter().take(MOST_FOUND).map(|(_, one)| one).collect();
    screening
}

/// The outputs of both models, by name where they have the same, else by their places.
fn outputs_of(reference: &Model, candidate: &Model) -> Option<Vec<(String, String)>> {
    let names = |model: &Model| -> Vec<String> {
        model.outputs().into_iter().map(|info| info.name).collect()
    };
    let (there, here) = (names(reference), names(candidate));
    if there.iter().all(|name| here.contains(name)) {
        return Some(there.into_iter().map(|name| (name.clone(), name)).collect());
    }
    (there.len() == here.len()).then(|| there.into_iter().zip(here).collect())
}

/// A model that is run many times.
struct Loaded<'a> {
    engine: &'a dyn Engine,
    source: ModelSource,
    inputs: Vec<String>,
    weights: &'a BTreeMap<String, Tensor>,
    options: SessionOptions,
}

impl<'a> Loaded<'a> {
    fn new(
        model: &Model,
        engine: &'a dyn Engine,
        session: &SessionOptions,
        weights: &'a BTreeMap<String, Tensor>,
    ) -> Option<Self> {
        let bytes = model.to_bytes().ok().filter(|bytes| bytes.len() <= MOST_BYTES)?;
        let bytes = ModelBytes::Memory(Arc::from(bytes));
        let source = ModelSource { format: ModelFormat::Onnx, bytes };
        let inputs = model.inputs().into_iter().map(|info| info.name).collect();
        let options = SessionOptions { optimization: OptimizationLevel::None, ..session.clone() };
        Some(Self { engine, source, inputs, weights, options })
    }

    /// What a model gives for each of these.
    fn run(&self, draws: &[Inputs], outputs: &[&str]) -> Vec<Outputs> {
        let given: Vec<Vec<(&str, &Tensor)>> = draws
            .iter()
            .map(|draw| {
                let value = |name: &String| draw.get(name).or_else(|| self.weights.get(name));
                self.inputs.iter().filter_map(|name| Some((name.as_str(), value(name)?))).collect()
            })
            .collect();
        let runs: Vec<Evaluation<'_>> =
            given.iter().map(|inputs| Evaluation { inputs, outputs }).collect();
        match self.engine.evaluate_each(&self.source, &runs, &self.options) {
            Ok(found) => found.into_iter().map(Some).collect(),
            // One that is refused says nothing about the others.
            Err(_) if draws.len() > 1 => {
                let (first, second) = draws.split_at(draws.len() / 2);
                let mut found = self.run(first, outputs);
                found.extend(self.run(second, outputs));
                found
            }
            Err(_) => vec![None; draws.len()],
        }
    }
}

/// How far apart two outputs are, in units of what counts as alike.
fn parted(one: Option<&Tensor>, other: Option<&Tensor>, given: f64) -> f64 {
    let (Some(one), Some(other)) = (one, other) else { return 0.0 };
    if one.shape() != other.shape() {
        return f64::INFINITY;
    }
    if let (Some(one), Some(other)) = (floats(one), floats(other)) {
        return parted_floats(&one, &other, given);
    }
    let same = match (integers(one), integers(other)) {
        (Some(one), Some(other)) => one == other,
        _ => one.bytes() == other.bytes(),
    };
    if same { 0.0 } else { 1.0 / OF_ELEMENT }
}

/// The largest finite float among inputs.
fn largest(inputs: &Inputs) -> f64 {
    let all = inputs.values().filter_map(floats).flatten();
    all.map(f64::abs).filter(|size| size.is_finite()).fold(0.0, f64::max)
}

#[expect(clippy::float_cmp, reason = "equal numbers are alike, infinities among them")]
fn parted_floats(one: &[f64], other: &[f64], given: f64) -> f64 {
    let mut sizes: Vec<f64> = one
        .iter()
        .map(|value| value.abs())
        .filter(|size| *size > 0.0 && size.is_finite())
        .collect();
    sizes.sort_by(f64::total_cmp);
    let usual = sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
    let apart = one.iter().zip(other).map(|(one, other)| {
        if one == other || (one.is_nan() && other.is_nan()) {
            return 0.0;
        }
        let error = (one - other).abs();
        if !error.is_finite() {
            return f64::INFINITY;
        }
        error / (OF_ELEMENT * one.abs().max(other.abs()) + OF_USUAL * usual + OF_INPUTS * given)
    });
    apart.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_part_by_what_is_usual_for_their_elements() {
        let nan = f64::NAN;
        for (one, other, is_apart) in [
            (vec![1.0, 2.0], vec![1.0, 2.0], false),
            (vec![1.0, 2.0], vec![1.0001, 2.0], false),
            (vec![1.0, 2.0], vec![1.01, 2.0], true),
            (vec![-1e9, -1e9, 0.5, 0.1, 0.2], vec![-1e9, -1e9, 0.6, 0.1, 0.2], true),
            (vec![1.0, 1e-9], vec![1.0, -1e-9], false),
            (vec![nan], vec![nan], false),
            (vec![nan], vec![0.0], true),
            (vec![f64::INFINITY], vec![1.0], true),
        ] {
            assert_eq!(parted_floats(&one, &other, 0.0) > 1.0, is_apart, "{one:?} {other:?}");
        }
    }
}
