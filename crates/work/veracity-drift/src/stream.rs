//! Compares while the original is still being computed, so that few of its values are held at once.
//!
//! Values are compared in the order in which the export computes them, a stretch at a time. The
//! export goes on from what it computed before the stretch, which a run from its inputs would
//! compute again; each operator alone is run on references. What nothing behind a stretch reads is
//! let go.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use veracity_diag::progress::Stage;
use veracity_diag::{Diagnostic, Result};
use veracity_engine::Engine;
use veracity_onnx::{Model, NodeFacts};
use veracity_results::{DriftReport, DriftRow};
use veracity_tensor::{SharedTensor, Tensor};

use crate::careful::{Careful, Got};
use crate::end;
use crate::look::{Suspect, look, put};
use crate::noise::{nudged, with_moved_constants};
use crate::rows::{
    DriftOptions, GIVEN, NOT_THERE, Planned, compare, figures, judge, plan, report, row,
};
use crate::values::{Values, held as held_tensor, view};
use crate::wide::against_float64;

/// What the original's values are compared with. It is the same in all calls of a [`Stream`].
#[derive(Clone, Copy)]
pub struct Against<'a> {
    /// The export.
    pub model: &'a Model,
    /// Its inputs, which must be there before the first reference.
    pub inputs: &'a Values,
    /// What runs it.
    pub engine: &'a dyn Engine,
    /// How to compare.
    pub options: &'a DriftOptions,
}

/// A comparison that is going on.
pub struct Stream {
    nodes: Vec<NodeFacts>,
    planned: Vec<Planned>,
    /// Where values are among the planned ones.
    places: BTreeMap<String, usize>,
    skipped: Vec<usize>,
    /// The first value that is not compared yet.
    next: usize,
    /// What computes the values that are not compared yet, cut at those that are.
    rest: Model,
    references: Values,
    wide: Values,
    /// What the export computed, as far as it is read again.
    candidates: Values,
    /// Whether the export could not compute a value: it is run from its inputs from then on.
    is_broken: bool,
    kept: Option<Values>,
    /// What the export gives from its inputs, and what it should give.
    outputs: Vec<Output>,
    output_names: BTreeSet<String>,
    relative: BTreeMap<String, f64>,
    stage: Stage,
}

/// A value whose turn it is.
struct Due {
    place: usize,
    name: String,
    reference: SharedTensor,
}

/// An output of the export that differs from what it should be.
struct Output {
    name: String,
    reference: SharedTensor,
    found: SharedTensor,
    wide: Option<SharedTensor>,
}

impl Output {
    /// Nothing but what moves bounds what adds up.
    fn suspect(&self, relative: f64) -> Result<Suspect> {
        let [reference, found] = [view(&self.reference)?, view(&self.found)?];
        let (reference, found) = (reference.to_tensor(), found.to_tensor());
        Ok(Suspect { relative, limit: f64::INFINITY, reference, found })
    }

    fn wide_tensor(&self) -> Option<Tensor> {
        self.wide.as_ref().and_then(|wide| view(wide).ok()).map(|wide| wide.to_tensor())
    }
}

impl Stream {
    /// Begins a comparison in which the values that are `expected` are compared.
    pub fn new(
        model: &Model,
        expected: &dyn Fn(&str) -> bool,
        options: &DriftOptions,
    ) -> Result<Self> {
        let nodes = model.nodes();
        let (planned, skipped) = plan(model, &nodes, expected, options);
        let names: Vec<&str> = planned.iter().map(|one| one.name.as_str()).collect();
        let places = names.iter().enumerate().map(|(i, name)| ((*name).to_owned(), i)).collect();
        let (rest, stage) = (model.part_for(&names)?, Stage::new("values", names.len()));
        let [references, wide, candidates] = std::array::from_fn(|_| Values::new());
        Ok(Self {
            nodes,
            planned,
            places,
            skipped,
            next: 0,
            rest,
            references,
            wide,
            candidates,
            is_broken: false,
            kept: None,
            outputs: Vec::new(),
            output_names: model.outputs().into_iter().map(|output| output.name).collect(),
            relative: BTreeMap::new(),
            stage,
        })
    }

    /// Whether a value is compared.
    pub fn wants(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// Takes what the original computed, and what that is in float64.
    pub fn reference(
        &mut self,
        name: &str,
        reference: SharedTensor,
        wide: Option<SharedTensor>,
        options: &DriftOptions,
    ) -> Result<()> {
        let Some(&place) = self.places.get(name) else { return Ok(()) };
        let planned = &mut self.planned[place];
        if planned.row.is_none() {
            let made = row(planned, &self.nodes, &reference, options)?;
            planned.row = Some(made);
            self.wide.extend(wide.map(|wide| (name.to_owned(), wide)));
            self.references.insert(name.to_owned(), reference);
        }
        Ok(())
    }

    /// Compares what is there, if it is more than the memory that the options give.
    pub fn advance(&mut self, against: &Against<'_>) -> Result<()> {
        while let Some(stretch) = self.stretch(against.options.memory_bytes, false) {
            self.compare(stretch, against)?;
        }
        Ok(())
    }

    /// Compares what is left and says what was found. Values that never came have no row.
    pub fn finish(mut self, against: &Against<'_>) -> Result<DriftReport> {
        self.compare_rest(against)?;
        let planned = std::mem::take(&mut self.planned);
        self.relative =
            planned.iter().filter_map(|one| Some((one.name.clone(), one.relative?))).collect();
        let mut rows: Vec<DriftRow> = planned.into_iter().filter_map(|one| one.row).collect();
        rows.iter_mut().for_each(judge);
        let options = against.options;
        let is_due = end::is_due(&rows, options);
        let wrong = if is_due { self.end_to_end(against, &rows)? } else { Vec::new() };
        let Self { nodes, skipped, .. } = self;
        let used = rows.iter().filter_map(|row| options.rule_for(row)).chain(skipped);
        let unused = options.rules.unused(&used.collect::<Vec<_>>());
        let mut report = report(against.model, rows, &nodes, against.engine, options);
        report.notes.extend(unused);
        end::put(&mut report, wrong);
        Ok(report)
    }

    /// Holds the outputs, computed from the inputs, to what roundings explain.
    fn end_to_end(&self, against: &Against<'_>, rows: &[DriftRow]) -> Result<Vec<Diagnostic>> {
        let relative = |output: &Output| self.relative.get(&output.name).copied();
        let due: Vec<(&Output, f64)> =
            self.outputs.iter().filter_map(|one| Some((one, relative(one)?))).collect();
        let suspects: Vec<Suspect> =
            due.iter().map(|(one, relative)| one.suspect(*relative)).collect::<Result<_>>()?;
        let mut again = |relative: f64, seed: u64, group: &[usize]| {
            let wanted: Vec<Due> = group
                .iter()
                .map(|&one| Due {
                    place: 0,
                    name: due[one].0.name.clone(),
                    reference: due[one].0.reference.clone(),
                })
                .collect();
            let wanted: Vec<&Due> = wanted.iter().collect();
            moved(against.model, &wanted, &Values::new(), against, relative, seed)
        };
        let names: Vec<&str> = due.iter().map(|(one, _)| one.name.as_str()).collect();
        let wide: Vec<Option<Tensor>> = due.iter().map(|(one, _)| one.wide_tensor()).collect();
        Ok(end::findings(&names, &suspects, &wide, rows, &self.nodes, &mut again))
    }

    fn compare_rest(&mut self, against: &Against<'_>) -> Result<()> {
        // Whatever is compared already is there, so that `next` stays right.
        self.planned.retain(|one| one.row.is_some());
        while let Some(stretch) = self.stretch(against.options.memory_bytes, true) {
            self.compare(stretch, against)?;
        }
        Ok(())
    }

    /// The values whose turn it is: those that fit into memory together, once there are more. One
    /// that does not fit alone is alone. At the end the rest is due.
    fn stretch(&self, limit: usize, is_end: bool) -> Option<Range<usize>> {
        let mut bytes = 0;
        let mut end = self.next;
        for one in self.planned[self.next..].iter().take_while(|one| one.row.is_some()) {
            bytes += self.references.get(&one.name).map_or(0, SharedTensor::byte_len);
            if bytes > limit && end > self.next {
                return Some(self.next..end);
            }
            end += 1;
        }
        (is_end && end > self.next).then_some(self.next..end)
    }

    fn compare(&mut self, stretch: Range<usize>, against: &Against<'_>) -> Result<()> {
        let due = self.due(stretch.clone());
        let names: Vec<&str> = due.iter().map(|one| one.name.as_str()).collect();
        let cut = self.rest.cut_at(&names, GIVEN)?;
        let pending: Vec<&str> =
            self.planned[stretch.end..].iter().map(|one| one.name.as_str()).collect();
        let rest = cut.part_for(&pending)?;
        let inputs = rest.inputs().into_iter();
        let read_again: BTreeSet<String> =
            inputs.filter_map(|input| input.name.strip_prefix(GIVEN).map(str::to_owned)).collect();
        if !due.is_empty() {
            self.accumulated(&due, &read_again, against)?;
            self.introduced(&due, &cut, against)?;
        }
        (self.rest, self.next) = (rest, stretch.end);
        let compared: BTreeSet<&str> =
            self.planned[..self.next].iter().map(|one| one.name.as_str()).collect();
        let is_needed =
            |name: &String| read_again.contains(name) || !compared.contains(name.as_str());
        self.references.retain(|name, _| is_needed(name));
        self.wide.retain(|name, _| is_needed(name));
        self.candidates.retain(|name, _| read_again.contains(name));
        self.stage.advance(stretch.len());
        Ok(())
    }

    /// The values of a stretch that can be compared.
    fn due(&self, stretch: Range<usize>) -> Vec<Due> {
        let is_comparable = |row: &DriftRow| row.problem.is_none();
        let planned = stretch.map(|place| (place, &self.planned[place]));
        planned
            .filter(|(_, one)| one.row.as_ref().is_some_and(is_comparable))
            .filter_map(|(place, one)| {
                let reference = self.references.get(&one.name)?.clone();
                Some(Due { place, name: one.name.clone(), reference })
            })
            .collect()
    }

    /// Measures values of the export run from its inputs, and keeps those that are read again.
    fn accumulated(
        &mut self,
        due: &[Due],
        read_again: &BTreeSet<String>,
        against: &Against<'_>,
    ) -> Result<()> {
        let model = if self.is_broken { against.model } else { &self.rest };
        let found = computed(model, due, &self.candidates, against)?;
        for (Due { place, name, reference }, found) in due.iter().zip(found) {
            let Some(row) = self.planned[*place].row.as_mut() else { continue };
            let Got::Value(found) = found else {
                row.accumulated = NOT_THERE;
                self.is_broken = true;
                continue;
            };
            let measured = compare(reference, &found)?;
            row.accumulated = figures(&measured);
            let is_output = self.output_names.contains(name);
            if is_output && (measured.differing > 0 || measured.non_finite.mismatching > 0) {
                let wide = self.wide.get(name).cloned();
                let (reference, found) = (reference.clone(), found.clone());
                self.outputs.push(Output { name: name.clone(), reference, found, wide });
            }
            if let Some(wide) = self.wide.remove(name)
                && wide.shape() == reference.shape()
            {
                row.float64 = against_float64(&view(&wide)?, reference, &found)?;
            }
            if let Some(kept) = &mut self.kept {
                kept.insert(name.clone(), found.clone());
            }
            if read_again.contains(name) && !self.is_broken {
                self.candidates.insert(name.clone(), found);
            }
        }
        Ok(())
    }

    /// Measures values that are each computed from references.
    fn introduced(&mut self, due: &[Due], cut: &Model, against: &Against<'_>) -> Result<()> {
        let found = computed(cut, due, &self.references, against)?;
        let (mut suspects, mut places) = (Vec::new(), Vec::new());
        for (number, (Due { place, reference, .. }, found)) in due.iter().zip(found).enumerate() {
            let relative = self.planned[*place].relative;
            let Some(row) = self.planned[*place].row.as_mut() else { continue };
            match found {
                Got::Value(found) => {
                    let measured = compare(reference, &found)?;
                    row.introduced = figures(&measured);
                    if let Some(relative) = relative.filter(|_| measured.differing > 0) {
                        let [reference, found] = [view(reference)?, view(&found)?];
                        let (reference, found) = (reference.to_tensor(), found.to_tensor());
                        suspects.push(Suspect { relative, limit: row.budget, reference, found });
                        places.push(number);
                    }
                }
                Got::Problem(text) => {
                    row.introduced = NOT_THERE;
                    row.problem = Some(text);
                }
                Got::Unreached => row.introduced = NOT_THERE,
            }
        }
        let mut again = |relative: f64, seed: u64, group: &[usize]| {
            let due: Vec<&Due> = group.iter().map(|&one| &due[places[one]]).collect();
            moved(cut, &due, &self.references, against, relative, seed)
        };
        let judged = look(&suspects, &mut again);
        for (judged, number) in judged.iter().zip(places) {
            if let Some(row) = self.planned[due[number].place].row.as_mut() {
                put(row, judged);
            }
        }
        Ok(())
    }
}

/// What values are when everything that they are computed from is moved a little.
fn moved(
    cut: &Model,
    due: &[&Due],
    given: &Values,
    against: &Against<'_>,
    relative: f64,
    seed: u64,
) -> Result<Vec<Option<Tensor>>> {
    let names: Vec<&str> = due.iter().map(|one| one.name.as_str()).collect();
    let part = with_moved_constants(&cut.part_for(&names)?, relative, seed);
    let value = |name: &str| {
        let held = match name.strip_prefix(GIVEN) {
            Some(value) => given.get(value)?,
            None => against.inputs.get(name)?,
        };
        let tensor = view(held).ok()?.to_tensor();
        Some(held_tensor(&nudged(&tensor, relative, seed, name).view()))
    };
    let wanted: Vec<(&str, &SharedTensor)> =
        due.iter().map(|one| (one.name.as_str(), &one.reference)).collect();
    let session = &against.options.session;
    let found = Careful { engine: against.engine, given: &value, session }.run(&part, &wanted)?;
    let tensor = |got: &Got| match got {
        Got::Value(value) => view(value).ok().map(|value| value.to_tensor()),
        _ => None,
    };
    Ok(found.iter().map(tensor).collect())
}

/// Values of a model, which reads those at which it is cut from `given`.
fn computed(model: &Model, due: &[Due], given: &Values, against: &Against<'_>) -> Result<Vec<Got>> {
    let wanted: Vec<(&str, &SharedTensor)> =
        due.iter().map(|one| (one.name.as_str(), &one.reference)).collect();
    let given = |name: &str| match name.strip_prefix(GIVEN) {
        Some(value) => given.get(value).cloned(),
        None => against.inputs.get(name).cloned(),
    };
    let session = &against.options.session;
    Careful { engine: against.engine, given: &given, session }.run(model, &wanted)
}

/// Compares an export with what the original computed, value by value.
///
/// `inputs` are those of the model, `references` what the original computed. Values of the export
/// run from its inputs are put into `kept`, if it is given. Nothing to compare is not comparable,
/// never "no drift".
pub fn drift(
    model: &Model,
    inputs: &Values,
    references: &Values,
    engine: &dyn Engine,
    options: &DriftOptions,
    kept: Option<&mut Values>,
) -> Result<DriftReport> {
    let against = Against { model, inputs, engine, options };
    let mut stream = Stream::new(model, &|name| references.contains_key(name), options)?;
    stream.kept = kept.is_some().then(Values::new);
    for (name, reference) in references {
        stream.reference(name, reference.clone(), None, options)?;
    }
    stream.compare_rest(&against)?;
    if let (Some(kept), Some(found)) = (kept, stream.kept.take()) {
        kept.extend(found);
    }
    stream.finish(&against)
}
