//! Runs both models from their inputs: what each value is, and how errors add up.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use veracity_diag::progress::Stage;
use veracity_diag::{Diagnostic, Result, codes};
use veracity_onnx::{Dim, Model, NodeFacts};
use veracity_results::{DriftRow, ErrorFigures};
use veracity_tensor::{DType, Shape, Tensor};

use super::bank::{Bank, Held, chunks_of, evaluate};
use super::{Found, GIVEN, Inputs, Side, Source, alike, cast, figures, tensor_figures};
use crate::convert::narrower;
use crate::look::Suspect;
use crate::pairing::Pairing;
use crate::provenance::provenance;
use crate::quantised::Step;
use crate::rows::{DriftOptions, measured, not_a_number};
use crate::rules::Operator;
use crate::stretch::Stretches;

/// Bytes that a value is taken to have as long as nobody knows.
const GUESSED_BYTES: usize = 1 << 20;

/// What floats are moved by to see whether integers that come of them flip.
const INTEGERS_MOVE: f64 = 64.0 * f32::EPSILON as f64;

/// What an operator introduces.
#[derive(Debug, Default)]
pub(super) struct Measured {
    pub(super) figures: ErrorFigures,
    /// Why the numbers do not decide.
    pub(super) problem: Option<String>,
    /// Whether the reference is NaN on the values that it was given.
    pub(super) is_nan: bool,
    /// What each element is to be looked at for.
    pub(super) suspect: Option<Suspect>,
}

/// Everything that has a counterpart, with the errors that add up.
pub(super) struct Surveyed {
    pub(super) rows: Vec<DriftRow>,
    pub(super) pairings: Vec<Pairing>,
    pub(super) left_out: BTreeMap<String, String>,
    pub(super) rules: Vec<usize>,
    facts: Vec<Facts>,
    positions: BTreeMap<String, usize>,
}

/// What one value is on both sides.
#[derive(Clone, Debug)]
struct Facts {
    reference: DType,
    candidate: DType,
    shape: Shape,
    /// Half a step of it may be lost, and this much more to the arithmetic of floats.
    step: Option<(Step, f64)>,
    /// The part of itself by which an element may be off.
    relative: Option<f64>,
}

/// Runs both models and pairs what they gave.
pub(super) fn survey(
    bank: &mut Bank<'_>,
    candidate: &Side<'_>,
    inputs: &Inputs,
    nodes: &[NodeFacts],
    found: Found,
    options: &DriftOptions,
) -> Result<Surveyed> {
    let Found { pairings, left_out, rules } = found;
    let mut surveyed = Surveyed {
        rows: Vec::new(),
        pairings: Vec::new(),
        left_out,
        rules,
        facts: Vec::new(),
        positions: BTreeMap::new(),
    };
    let outputs: BTreeSet<String> =
        candidate.model.outputs().into_iter().map(|output| output.name).collect();
    let sizes = guessed_sizes(candidate.model);
    let guessed = |index: usize| sizes.get(&pairings[index].name).copied().unwrap_or(GUESSED_BYTES);
    let all: Vec<usize> = (0..pairings.len()).collect();
    let chunks = chunks_of(&all, guessed, options.memory_bytes);
    let mut stage = Stage::new("values", all.len());
    for chunk in &chunks {
        if chunks.len() == 1 {
            let names: Vec<&str> = pairings.iter().filter_map(computed_name).collect();
            let values = bank.computed(&names)?;
            bank.keep(values);
        }
        let names: Vec<&str> = chunk.iter().map(|&index| pairings[index].name.as_str()).collect();
        let values = bank.values(chunk.iter().map(|&index| (index, &pairings[index].source)))?;
        let found = evaluate(candidate, candidate.model, &names, &|name| inputs.get(name))?;
        for (&index, found) in chunk.iter().zip(&found) {
            let pairing = &pairings[index];
            let is_output = outputs.contains(&pairing.name);
            let values = (values.get(&index).map(Cow::as_ref), found.as_ref());
            surveyed.add(candidate.model, nodes, pairing, values, is_output, options)?;
        }
        stage.advance(chunk.len());
    }
    surveyed.narrow(candidate.model, nodes, options);
    Ok(surveyed)
}

fn computed_name(pairing: &Pairing) -> Option<&str> {
    match &pairing.source {
        Source::Value(name) => Some(name),
        _ => None,
    }
}

/// Bytes of values, as far as the model declares them.
fn guessed_sizes(model: &Model) -> BTreeMap<String, usize> {
    let described = model.described_values().into_iter();
    described
        .filter_map(|info| {
            let elements = info.dims?.iter().try_fold(1_usize, |product, dim| match dim {
                Dim::Fixed(size) => product.checked_mul(*size),
                _ => None,
            })?;
            Some((info.name, elements.checked_mul(info.dtype?.size())?))
        })
        .collect()
}

impl Surveyed {
    /// Adds a value, or says why it is left out. An output is never left out.
    fn add(
        &mut self,
        model: &Model,
        nodes: &[NodeFacts],
        pairing: &Pairing,
        values: (Option<&Tensor>, Option<&Tensor>),
        is_output: bool,
        options: &DriftOptions,
    ) -> Result<()> {
        let (Some(reference), Some(found)) = values else {
            let reason = "it is not a tensor of a type that is compared".to_owned();
            self.left_out.insert(pairing.name.clone(), reason);
            return Ok(());
        };
        let (is, shape) = (reference.dtype(), reference.shape());
        let fits = cast(reference, found.dtype()).is_some() && found.shape() == shape;
        let both = alike(reference, found).filter(|_| fits);
        let (here, there) = (found.dtype(), found.shape());
        let problem = both
            .is_none()
            .then(|| format!("it is {here} {there}, and {is} {shape} in the reference"));
        if let (Some(reason), false) = (&problem, is_output) {
            self.left_out.insert(pairing.name.clone(), reason.clone());
            return Ok(());
        }
        let accumulated = match &both {
            Some((reference, found)) => tensor_figures(reference, found)?,
            None => ErrorFigures::default(),
        };
        let node = &nodes[pairing.node];
        let (mut row, step, relative) = row(model, node, pairing, reference, found, options)?;
        (row.accumulated, row.problem) = (accumulated, problem);
        self.positions.insert(pairing.name.clone(), self.rows.len());
        self.rows.push(row);
        self.pairings.push(pairing.clone());
        let shape = found.shape().clone();
        self.facts.push(Facts { reference: is, candidate: here, shape, step, relative });
        Ok(())
    }

    /// Gives rows that are computed in a narrower type than they have the budget of that type: an
    /// operator on the way takes it, or a cast leads to it.
    fn narrow(&mut self, model: &Model, nodes: &[NodeFacts], options: &DriftOptions) {
        let cuts = self.pairings.iter().map(|pairing| pairing.name.as_str()).collect();
        let stretches = Stretches::new(nodes, cuts);
        let taken = |node: &NodeFacts, narrowest: DType| {
            if node.op_type == "Cast" {
                let to = node.outputs.first().and_then(|name| model.cast_type(name));
                return narrower(narrowest, to.filter(|to| to.is_float()).unwrap_or(narrowest));
            }
            let given = node.inputs.iter().filter_map(|name| self.position(name));
            let types = given.map(|index| self.facts[index].candidate);
            types.filter(|dtype| dtype.is_float()).fold(narrowest, narrower)
        };
        let mut bounds = Vec::new();
        for (index, (row, facts)) in self.rows.iter().zip(&self.facts).enumerate() {
            let own = narrower(facts.reference, facts.candidate);
            if !facts.candidate.is_float() || facts.step.is_some() {
                continue;
            }
            let stretch = stretches.of(self.pairings[index].node);
            let narrowest = stretch.fold(own, |narrowest, node| taken(node, narrowest));
            if narrowest != own {
                let operator =
                    Operator { name: &row.name, op_type: &row.op_type, module: &row.module };
                bounds.push((index, options.bound(operator, narrowest, row.scale)));
            }
        }
        for (index, bound) in bounds {
            self.rows[index].budget = bound.limit;
            self.facts[index].relative = bound.relative;
        }
    }

    /// Positions of the rows whose numbers decide.
    pub(super) fn comparable(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&index| self.rows[index].problem.is_none()).collect()
    }

    pub(super) fn has_integers(&self, positions: &[usize]) -> bool {
        self.floats(positions).len() < positions.len()
    }

    pub(super) fn floats(&self, positions: &[usize]) -> Vec<usize> {
        let is_float = |index: &usize| self.facts[*index].candidate.is_float();
        positions.iter().copied().filter(is_float).collect()
    }

    pub(super) fn name(&self, index: usize) -> &str {
        &self.pairings[index].name
    }

    pub(super) fn source(&self, index: usize) -> &Source {
        &self.pairings[index].source
    }

    pub(super) fn position(&self, name: &str) -> Option<usize> {
        self.positions.get(name).copied()
    }

    /// The candidate's model, with all compared values declared as they are.
    pub(super) fn declared_candidate(&self, model: &Model) -> Model {
        let values = self.pairings.iter().zip(&self.facts);
        model.declaring(
            values.map(|(pairing, facts)| (pairing.name.as_str(), facts.candidate, &facts.shape)),
        )
    }

    /// The reference's model, with the counterparts declared as they are.
    pub(super) fn declared_reference(&self, model: &Model) -> Model {
        let values = self.pairings.iter().zip(&self.facts);
        model.declaring(values.filter_map(|(pairing, facts)| {
            Some((computed_name(pairing)?, facts.reference, &facts.shape))
        }))
    }

    /// The value of the reference that a node gives, if it is none of the others.
    pub(super) fn computed(&self, index: usize) -> Option<&str> {
        computed_name(&self.pairings[index])
    }

    /// The step of a quantisation of which half may be lost in a value, and what more may be lost.
    pub(super) fn step(&self, index: usize) -> Option<&(Step, f64)> {
        self.facts[index].step.as_ref()
    }

    /// The part of itself by which an element may be off; what holds integers must be equal.
    pub(super) fn relative(&self, index: usize) -> Option<f64> {
        let facts = &self.facts[index];
        facts.relative.or((!facts.candidate.is_float()).then_some(INTEGERS_MOVE))
    }

    /// Whether values were rounded to steps: how far that moves outputs is not known.
    pub(super) fn is_quantised(&self) -> bool {
        self.facts.iter().any(|facts| facts.step.is_some())
    }

    /// Bytes of a value on both sides.
    pub(super) fn bytes(&self, index: usize) -> usize {
        let facts = &self.facts[index];
        facts.shape.elements() * (facts.reference.size() + facts.candidate.size())
    }

    /// The candidate, cut at these values.
    pub(super) fn cut_candidate(&self, model: &Model, cuts: &[usize]) -> Result<Model> {
        let names: Vec<&str> = cuts.iter().map(|&index| self.name(index)).collect();
        let values = cuts.iter().map(|&index| {
            let facts = &self.facts[index];
            (self.name(index), facts.candidate, &facts.shape)
        });
        model.declaring(values).cut_at(&names, GIVEN)
    }

    /// Whether rounding at the cuts changes values of the reference.
    pub(super) fn rounds_at(&self, cuts: &[usize]) -> bool {
        cuts.iter()
            .map(|&index| &self.facts[index])
            .any(|facts| facts.reference != facts.candidate && facts.reference.is_float())
    }

    /// The reference, cut at the same values.
    pub(super) fn cut_reference(&self, model: &Model, cuts: &[usize]) -> Result<Model> {
        let mut values: BTreeMap<&str, usize> = BTreeMap::new();
        for &index in cuts {
            if let Some(name) = computed_name(&self.pairings[index]) {
                values.entry(name).or_insert(index);
            }
        }
        let names: Vec<&str> = values.keys().copied().collect();
        let values = values.iter().map(|(name, &index)| {
            let facts = &self.facts[index];
            (*name, facts.reference, &facts.shape)
        });
        model.declaring(values).cut_at(&names, GIVEN)
    }

    /// Positions of the values that a part of the candidate is given.
    pub(super) fn given_to(&self, part: &Model) -> Vec<usize> {
        let names = part.inputs().into_iter();
        names.filter_map(|info| self.position(info.name.strip_prefix(GIVEN)?)).collect()
    }

    /// Values of the reference in the types of the candidate.
    pub(super) fn rounded<'v>(&self, values: &'v Held<'v>) -> Result<Held<'v>> {
        let rounded = values.iter().map(|(&index, value)| {
            let dtype = self.facts[index].candidate;
            let cast = cast(value, dtype).ok_or_else(|| {
                let message = format!("{:?} does not fit into {dtype}", self.name(index));
                Diagnostic::error(codes::DTYPE_UNSUPPORTED, message)
            })?;
            Ok((index, cast))
        });
        rounded.collect()
    }

    /// What a part of the reference that is cut is given: rounded at the cuts, in its own types.
    pub(super) fn given_to_reference(
        &self,
        part: &Model,
        bank: &Bank<'_>,
    ) -> Result<BTreeMap<&str, Tensor>> {
        let by_source: BTreeMap<&str, usize> = self
            .pairings
            .iter()
            .enumerate()
            .rev()
            .filter_map(|(index, pairing)| Some((computed_name(pairing)?, index)))
            .collect();
        let needed: Vec<usize> = part
            .inputs()
            .iter()
            .filter_map(|info| by_source.get(info.name.strip_prefix(GIVEN)?).copied())
            .collect();
        let held = bank.values(needed.iter().map(|&index| (index, self.source(index))))?;
        let rounded = self.rounded(&held)?;
        let mut widened: BTreeMap<&str, Tensor> = BTreeMap::new();
        for (&index, value) in &rounded {
            let wide = cast(value, self.facts[index].reference);
            widened.extend(wide.map(|wide| (self.source(index).name(), wide.into_owned())));
        }
        Ok(widened)
    }

    /// What the reference's own operators make of values that were rounded at the cut.
    pub(super) fn expected<'v>(
        &self,
        cut: &Model,
        bank: &'v Bank<'_>,
        chunk: &[usize],
        values: &Held<'v>,
    ) -> Result<Held<'v>> {
        let mut names: Vec<&str> =
            chunk.iter().filter_map(|&index| computed_name(&self.pairings[index])).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Ok(values.clone());
        }
        let widened = self.given_to_reference(&cut.showing(&names)?, bank)?;
        let given = |name: &str| widened.get(name.strip_prefix(GIVEN)?);
        let found = bank.evaluate(cut, &names, &given)?;
        let found: BTreeMap<&str, Tensor> =
            names.into_iter().zip(found).filter_map(|(name, value)| Some((name, value?))).collect();
        let mut expected = values.clone();
        for &index in chunk {
            let value = computed_name(&self.pairings[index]).and_then(|name| found.get(name));
            expected.extend(value.map(|value| (index, Cow::Owned(value.clone()))));
        }
        Ok(expected)
    }

    /// Measures what the operator of a row introduces.
    pub(super) fn measured(
        &self,
        index: usize,
        expected: &Tensor,
        found: Option<&Tensor>,
    ) -> Result<Measured> {
        let same = found.filter(|found| found.shape() == expected.shape());
        let Some((expected, found)) = same.and_then(|found| alike(expected, found)) else {
            let problem = Some("it has another shape on the reference's values".to_owned());
            return Ok(Measured { problem, ..Measured::default() });
        };
        let step = self.facts[index].step.as_ref();
        let problem = step.and_then(|(step, slack)| step.problem(&expected, &found, *slack));
        let measurement = measured(&expected, &found)?;
        let is_nan = measurement.non_finite.reference_nan > 0;
        let suspect =
            self.facts[index].relative.filter(|_| measurement.differing > 0).map(|relative| {
                Suspect {
                    limit: self.rows[index].budget,
                    relative,
                    reference: expected.into_owned(),
                    found: found.into_owned(),
                }
            });
        Ok(Measured { figures: figures(&measurement), problem, is_nan, suspect })
    }
}

/// A row without errors, the step that may be lost in it with what arithmetic may lose beside it, and
/// the part of itself by which an element may be off.
type Begun = (DriftRow, Option<(Step, f64)>, Option<f64>);

fn row(
    model: &Model,
    node: &NodeFacts,
    pairing: &Pairing,
    reference: &Tensor,
    found: &Tensor,
    options: &DriftOptions,
) -> Result<Begun> {
    let origin = provenance(node);
    let itself = measured(reference, reference)?;
    let scale = itself.max_abs_reference;
    let operator = Operator { name: &pairing.name, op_type: &node.op_type, module: &origin.module };
    let dtype = narrower(reference.dtype(), found.dtype());
    let bound = options.bound(operator, dtype, scale);
    let step = Step::of(model, node, found.shape().rank()).filter(|_| bound.relative.is_some());
    let half = step.as_ref().map_or(0.0, Step::largest_half);
    let row = DriftRow {
        name: pairing.name.clone(),
        node: node.name.clone(),
        op_type: node.op_type.clone(),
        module: origin.module,
        source: origin.source,
        dtype: found.dtype().to_string(),
        shape: found.shape().dims().to_vec(),
        scale,
        accumulated: ErrorFigures::default(),
        introduced: ErrorFigures::default(),
        float64: None,
        budget: bound.limit + half,
        element: None,
        bias: 0.0,
        verdict: not_a_number(&itself),
        problem: None,
        cause: None,
        reference: said(pairing, reference.dtype(), found.dtype()),
    };
    let relative = bound.relative.filter(|_| step.is_none());
    Ok((row, step.map(|step| (step, bound.limit)), relative))
}

/// What a value was compared with, where that is not the value of the same name and type.
fn said(pairing: &Pairing, reference: DType, candidate: DType) -> String {
    let name = pairing.source.name();
    match &pairing.source {
        Source::Value(_) if name == pairing.name && reference == candidate => String::new(),
        Source::Value(_) if name == pairing.name => reference.to_string(),
        Source::Value(_) => format!("{reference} {name:?}"),
        Source::Input(_) => format!("{reference} input {name:?}"),
        Source::Constant(..) => format!("{reference} constant {name:?}"),
    }
}
