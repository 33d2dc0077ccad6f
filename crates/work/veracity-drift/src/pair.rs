//! Compares two models, operator by operator: one gives the references, the other is looked at.
//!
//! Nothing needs to be declared in either: what a value is, is found by running. Both are run from
//! the inputs, which gives the accumulated error and the types; then the candidate is cut at all
//! values that have a counterpart and its operators are run on the reference's values, which gives
//! the introduced error. Where the types differ, the reference's values are rounded to those of the
//! candidate at the cut, and the reference's own operators are run on the rounded values, so that
//! rounding at the cut is charged to nobody.

mod bank;
mod grid;
mod inputs;
mod pursuit;
mod survey;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use veracity_diag::progress::Stage;
use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_engine::{Engine, SessionOptions};
use veracity_onnx::{Model, NodeFacts};
use veracity_results::{DriftReport, DriftRow, Verdict};
use veracity_tensor::{DType, Tensor};

use crate::convert::{alike, cast};
use crate::elements::Judged;
use crate::end;
use crate::look::{Suspect, look, put};
use crate::noise::{nudged, with_moved_constants};
use crate::pairing::{self, Found, Source};
use crate::program::program;
use crate::quantised::is_quantised;
use crate::repro;
use crate::rows::{DriftOptions, GIVEN, figures, judge, report, tensor_figures};
use crate::stretch::Stretches;
use crate::tables;
use bank::{Bank, chunks_of, evaluate};
pub use pursuit::Pursuit;
use pursuit::pursue;
use survey::{Measured, Surveyed, survey};

/// One of the two models, and what runs it.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The model, complete: weights in other files are not found.
    pub model: &'a Model,
    /// What runs it.
    pub engine: &'a dyn Engine,
    /// How. The graph is run as it stands, whatever level is given here.
    pub session: &'a SessionOptions,
    /// Where it is, for findings about it.
    pub place: &'a Place,
}

/// Inputs by name.
pub type Inputs = BTreeMap<String, Tensor>;

/// Compares a candidate with a reference on the same inputs.
///
/// The report is about the candidate; `program` in it says what became of the reference's values.
/// Refused when the models do not take the same inputs. Nothing to compare is not comparable,
/// never "no drift". What is found wrong is looked into as far as `pursuit` asks for.
pub fn pair(
    reference: &Side<'_>,
    candidate: &Side<'_>,
    inputs: &Inputs,
    options: &DriftOptions,
    pursuit: &Pursuit<'_>,
) -> Result<DriftReport> {
    if let Some(folder) = pursuit.repro {
        repro::check_target(folder)?;
    }
    let given = inputs::for_both(reference.model, candidate.model, inputs)?;
    let nodes = candidate.model.nodes();
    let found = pairing::find(reference.model, candidate.model, &nodes, &options.rules);
    let mut bank = Bank::new(*reference, &given.reference);
    let mut surveyed = survey(&mut bank, candidate, &given.candidate, &nodes, found, options)?;
    let (cuts, note) = introduced(&mut bank, candidate, &given.candidate, &mut surveyed, options)?;
    let mut report = finish(reference, candidate, &nodes, &mut surveyed, options);
    report.notes.splice(0..0, given.notes.into_iter().chain(note));
    if end::is_due(&report.rows, options) && !surveyed.is_quantised() {
        let (inputs, rows) = (&given.candidate, &report.rows);
        let wrong = end_to_end(&bank, candidate, inputs, &surveyed, rows, &nodes)?;
        end::put(&mut report, wrong);
    }
    pursue(&mut report, &bank, (candidate, &given.candidate), (&surveyed, &cuts), pursuit)?;
    Ok(report)
}

/// Measures what each operator introduces. Gives the values at which the graph was cut, and a note
/// if it could not be cut everywhere.
fn introduced(
    bank: &mut Bank<'_>,
    candidate: &Side<'_>,
    inputs: &Inputs,
    surveyed: &mut Surveyed,
    options: &DriftOptions,
) -> Result<(Vec<usize>, Option<String>)> {
    let everywhere: Vec<usize> = surveyed.comparable();
    match introduced_at(bank, candidate, inputs, surveyed, &everywhere, options) {
        Ok(()) => Ok((everywhere, None)),
        // Sizes that come from outside instead of from constants are more than some engines take.
        Err(refusal) if surveyed.has_integers(&everywhere) && is_about_the_model(&refusal) => {
            let floats: Vec<usize> = surveyed.floats(&everywhere);
            introduced_at(bank, candidate, inputs, surveyed, &floats, options)?;
            let note = "the graph is cut at floats only: cut at integers as well, the engine does \
                        not take it";
            Ok((floats, Some(note.to_owned())))
        }
        Err(refusal) => Err(refusal),
    }
}

fn is_about_the_model(refusal: &veracity_diag::Refusal) -> bool {
    let code = refusal.first_error().code;
    [codes::ENGINE_UNSUPPORTED, codes::ENGINE_LOAD_FAILED, codes::ENGINE_RUN_FAILED].contains(&code)
}

fn introduced_at(
    bank: &mut Bank<'_>,
    candidate: &Side<'_>,
    inputs: &Inputs,
    surveyed: &mut Surveyed,
    cuts: &[usize],
    options: &DriftOptions,
) -> Result<()> {
    let cut = surveyed.cut_candidate(candidate.model, cuts)?;
    let rounds = surveyed.rounds_at(cuts);
    let cut_reference = rounds.then(|| surveyed.cut_reference(bank.model(), cuts)).transpose()?;
    let comparable = surveyed.comparable();
    let bytes = |index: usize| surveyed.bytes(index);
    let mut all: Vec<(usize, Measured, Option<Judged>)> = Vec::new();
    let mut stage = Stage::new("operators", comparable.len());
    for chunk in chunks_of(&comparable, bytes, options.memory_bytes) {
        let names: Vec<&str> = chunk.iter().map(|&index| surveyed.name(index)).collect();
        let part = cut.showing(&names)?;
        let needed: Vec<usize> = surveyed.given_to(&part);
        let wanted: BTreeSet<usize> = needed.iter().chain(&chunk).copied().collect();
        let values = bank.values(wanted.iter().map(|&index| (index, surveyed.source(index))))?;
        let rounded = surveyed.rounded(&values)?;
        let given = |name: &str| match name.strip_prefix(GIVEN) {
            Some(value) => {
                let held = surveyed.position(value).and_then(|index| rounded.get(&index));
                held.map(std::borrow::Cow::as_ref)
            }
            None => inputs.get(name),
        };
        let found = evaluate(candidate, &part, &names, &given)?;
        let expected = match &cut_reference {
            Some(cut) => surveyed.expected(cut, bank, &chunk, &values)?,
            None => values.clone(),
        };
        let mut measured: Vec<Measured> = chunk
            .iter()
            .zip(found)
            .map(|(&index, found)| surveyed.measured(index, &expected[&index], found.as_ref()))
            .collect::<Result<_>>()?;
        let judged = looked_at(candidate, &part, &names, &given, &mut measured);
        stage.advance(chunk.len());
        let found = chunk.into_iter().zip(measured).zip(judged);
        all.extend(found.map(|((index, measured), judged)| (index, measured, judged)));
    }
    for (index, measured, judged) in all {
        let row = &mut surveyed.rows[index];
        (row.introduced, row.problem) = (measured.figures, measured.problem);
        if measured.is_nan {
            row.verdict = Verdict::NotComparable;
        }
        if let Some(judged) = judged {
            put(row, &judged);
        }
    }
    Ok(())
}

/// Looks at the elements of what was measured; `None` for what has none of its own to look at.
fn looked_at<'v>(
    candidate: &Side<'_>,
    part: &Model,
    names: &[&str],
    given: &dyn Fn(&str) -> Option<&'v Tensor>,
    measured: &mut [Measured],
) -> Vec<Option<Judged>> {
    let mut places = Vec::new();
    let mut suspects = Vec::new();
    for (place, measured) in measured.iter_mut().enumerate() {
        if let Some(suspect) = measured.suspect.take() {
            places.push(place);
            suspects.push(suspect);
        }
    }
    let mut again = |relative: f64, seed: u64, group: &[usize]| {
        let names: Vec<&str> = group.iter().map(|&one| names[places[one]]).collect();
        let types = group.iter().map(|&one| suspects[one].found.dtype());
        moved(candidate, part, &names, given, (relative, seed), types)
    };
    let mut found: Vec<Option<Judged>> = vec![None; measured.len()];
    for (judged, &place) in look(&suspects, &mut again).into_iter().zip(&places) {
        found[place] = Some(judged);
    }
    found
}

/// What values are when everything that they are computed from is moved a little, each in the type
/// that it is compared in.
fn moved<'v>(
    side: &Side<'_>,
    part: &Model,
    names: &[&str],
    given: &dyn Fn(&str) -> Option<&'v Tensor>,
    (relative, seed): (f64, u64),
    types: impl Iterator<Item = DType>,
) -> Result<Vec<Option<Tensor>>> {
    let model = with_moved_constants(&part.showing(names)?, relative, seed);
    let inputs: BTreeMap<String, Tensor> = model
        .inputs()
        .into_iter()
        .filter_map(|info| {
            Some((info.name.clone(), nudged(given(&info.name)?, relative, seed, &info.name)))
        })
        .collect();
    let found = evaluate(side, &model, names, &|name| inputs.get(name))?;
    let in_type = |(value, dtype): (Option<Tensor>, DType)| {
        value.and_then(|value| cast(&value, dtype).map(Cow::into_owned))
    };
    Ok(found.into_iter().zip(types).map(in_type).collect())
}

/// Holds the outputs of the candidate, computed from the inputs, to what roundings explain.
fn end_to_end(
    bank: &Bank<'_>,
    candidate: &Side<'_>,
    inputs: &Inputs,
    surveyed: &Surveyed,
    rows: &[DriftRow],
    nodes: &[NodeFacts],
) -> Result<Vec<Diagnostic>> {
    let outputs: BTreeSet<String> =
        candidate.model.outputs().into_iter().map(|output| output.name).collect();
    let due: Vec<usize> = (0..rows.len())
        .filter(|&index| outputs.contains(&rows[index].name))
        .filter(|&index| rows[index].accumulated.largest() > 0.0)
        .collect();
    let names: Vec<&str> = due.iter().map(|&index| surveyed.name(index)).collect();
    let values = bank.values(due.iter().map(|&index| (index, surveyed.source(index))))?;
    let given = |name: &str| inputs.get(name);
    let found = evaluate(candidate, candidate.model, &names, &given)?;
    let (mut suspects, mut judged) = (Vec::new(), Vec::new());
    for ((&index, found), &name) in due.iter().zip(&found).zip(&names) {
        let both = values.get(&index).zip(found.as_ref());
        let both = both.and_then(|(reference, found)| alike(reference, found));
        if let (Some((reference, found)), Some(relative)) = (both, surveyed.relative(index)) {
            let (reference, found) = (reference.into_owned(), found.into_owned());
            suspects.push(Suspect { relative, limit: f64::INFINITY, reference, found });
            judged.push(name);
        }
    }
    let mut again = |relative: f64, seed: u64, group: &[usize]| {
        let names: Vec<&str> = group.iter().map(|&one| judged[one]).collect();
        let types = group.iter().map(|&one| suspects[one].found.dtype());
        moved(candidate, candidate.model, &names, &given, (relative, seed), types)
    };
    let wide: Vec<Option<Tensor>> = suspects.iter().map(|_| None).collect();
    Ok(end::findings(&judged, &suspects, &wide, rows, nodes, &mut again))
}

/// Judges every row and puts the report together.
fn finish(
    reference: &Side<'_>,
    candidate: &Side<'_>,
    nodes: &[NodeFacts],
    surveyed: &mut Surveyed,
    options: &DriftOptions,
) -> DriftReport {
    let mut rows = std::mem::take(&mut surveyed.rows);
    let Surveyed { pairings, left_out, rules, .. } = surveyed;
    rows.iter_mut().for_each(judge);
    let cuts = pairings.iter().map(|pairing| pairing.name.as_str()).collect();
    let stretches = Stretches::new(nodes, cuts);
    for (row, pairing) in rows.iter_mut().zip(&*pairings) {
        if row.verdict == Verdict::Disproved
            && row.problem.is_none()
            && stretches.of(pairing.node).any(is_quantised)
        {
            let text = "it is computed from quantised values that have no counterpart, and judged \
                        like floats";
            row.problem = Some(text.to_owned());
        }
    }
    let mut report = report(candidate.model, rows, nodes, candidate.engine, options);
    for unmapped in &mut report.unmapped {
        unmapped.reason = left_out.get(&unmapped.name).cloned().or(unmapped.reason.take());
    }
    let sources: BTreeMap<&str, &DriftRow> =
        pairings.iter().map(|pairing| pairing.source.name()).zip(&report.rows).collect();
    report.program = program(&reference.model.nodes(), &sources, left_out);
    let missing = missing_outputs(reference.model, &sources);
    let tables = wrong_tables(reference.model, candidate.model, nodes, pairings, options);
    if !missing.is_empty() {
        report.verdict = report.verdict.max(Verdict::NotComparable);
    }
    report.reasons.extend(missing);
    end::put(&mut report, tables);
    if report.verdict < Verdict::Disproved {
        let limits = other_limits(reference.model, candidate.model, nodes, pairings, options);
        if !limits.is_empty() {
            report.verdict = report.verdict.max(Verdict::NotComparable);
        }
        report.reasons.extend(limits);
    }
    let used = report.rows.iter().filter_map(|row| options.rule_for(row));
    let used: Vec<usize> = used.chain(rules.iter().copied()).collect();
    report.notes.extend(options.rules.unused(&used));
    report
}

/// Tables behind compared values that are not the reference's. Where a wrong row was read, the row
/// of the value says so already.
fn wrong_tables(
    reference: &Model,
    candidate: &Model,
    nodes: &[NodeFacts],
    pairings: &[pairing::Pairing],
    options: &DriftOptions,
) -> Vec<Diagnostic> {
    let judged = |there: &NodeFacts, here: &NodeFacts| {
        tables::differing((reference, there), (candidate, here), options.budget)
    };
    both_nodes(reference, nodes, pairings, &judged)
}

/// Numbers at which both clip or compare that are others, and that no value shows.
fn other_limits(
    reference: &Model,
    candidate: &Model,
    nodes: &[NodeFacts],
    pairings: &[pairing::Pairing],
    options: &DriftOptions,
) -> Vec<Diagnostic> {
    let judged = |there: &NodeFacts, here: &NodeFacts| {
        tables::other_limit((reference, there), (candidate, here), options.budget)
    };
    both_nodes(reference, nodes, pairings, &judged)
}

/// What is to be said about the two nodes that give each compared value.
fn both_nodes(
    reference: &Model,
    nodes: &[NodeFacts],
    pairings: &[pairing::Pairing],
    judged: &dyn Fn(&NodeFacts, &NodeFacts) -> Option<Diagnostic>,
) -> Vec<Diagnostic> {
    let theirs = reference.nodes();
    let producers = pairing::producers(&theirs);
    let found = pairings.iter().filter_map(|pairing| {
        let there = &theirs[*producers.get(pairing.source.name())?];
        judged(there, &nodes[pairing.node])
    });
    found.collect()
}

/// Outputs of the reference that nothing was held against.
fn missing_outputs(model: &Model, sources: &BTreeMap<&str, &DriftRow>) -> Vec<Diagnostic> {
    let outputs = model.outputs().into_iter();
    outputs
        .filter(|output| !sources.contains_key(output.name.as_str()))
        .map(|output| {
            let message = format!("output {:?} of the reference has no counterpart", output.name);
            Diagnostic::error(codes::COMPARE_MISSING, message)
        })
        .collect()
}
