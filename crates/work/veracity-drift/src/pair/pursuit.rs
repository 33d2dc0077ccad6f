//! Finds out what makes operators of the candidate wrong, and writes the first as a folder.
//!
//! Each row is looked into on the very values on which it was measured: those of the reference,
//! rounded at the cuts. The reference itself is the original, in its own types.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Engine, OptimizationLevel, SessionOptions};
use veracity_onnx::Model;
use veracity_results::{Cause, DriftReport, DriftRow, Verdict};

use super::bank::Bank;
use super::grid::Grid;
use super::survey::Surveyed;
use super::{Inputs, Side, Source};
use crate::causes::{
    self, Evidence, Original, explain_row, export_slice, passed_over, run_alone, unknown,
};
use crate::quantised::Step;
use crate::repro;
use crate::values::{Values, held, view};

/// What to do about operators that are wrong.
#[derive(Clone, Copy, Default)]
pub struct Pursuit<'a> {
    /// How many of them to look into, the first ones.
    pub rows: usize,
    /// Another engine to try them in.
    pub second: Option<&'a dyn Engine>,
    /// Where to write the first of them as a model of its own.
    pub repro: Option<&'a Path>,
}

/// Looks into what is wrong.
pub(super) fn pursue(
    report: &mut DriftReport,
    bank: &Bank<'_>,
    candidate: (&Side<'_>, &Inputs),
    (surveyed, cuts): (&Surveyed, &[usize]),
    pursuit: &Pursuit<'_>,
) -> Result<()> {
    let is_wrong = |row: &DriftRow| row.verdict == Verdict::Disproved;
    let wrong: Vec<usize> =
        (0..report.rows.len()).filter(|&index| is_wrong(&report.rows[index])).collect();
    if wrong.is_empty() || (pursuit.rows == 0 && pursuit.repro.is_none()) {
        return Ok(());
    }
    let scene = Scene::new(bank, candidate, surveyed, cuts)?;
    let looked_into = if pursuit.rows == 0 { &[][..] } else { &wrong };
    for (count, &index) in looked_into.iter().enumerate() {
        let row = &report.rows[index];
        let cause = if count < pursuit.rows {
            scene.cause(row, index, pursuit)?
        } else {
            passed_over(pursuit.rows)
        };
        report.rows[index].cause = Some(cause);
    }
    if let (Some(folder), Some(&first)) = (pursuit.repro, wrong.first()) {
        let found = scene.found(first)?;
        let name = Some(surveyed.name(first));
        scene.with_evidence(&found, pursuit, |evidence| {
            repro::write(folder, report, evidence, name)
        })?;
    }
    Ok(())
}

/// Both models and what they are given.
struct Scene<'p, 'a> {
    bank: &'p Bank<'a>,
    engine: &'p dyn Engine,
    session: SessionOptions,
    surveyed: &'p Surveyed,
    rounds: bool,
    /// Declared, and cut.
    candidate: (Model, Model),
    reference: (Model, Model),
    inputs: (Values, Values),
}

/// What is given to the operator of one row on both sides, and what should come out.
struct Found {
    references: Values,
    given: Values,
    names: BTreeMap<String, String>,
}

impl<'p, 'a> Scene<'p, 'a> {
    fn new(
        bank: &'p Bank<'a>,
        (candidate, inputs): (&'p Side<'_>, &Inputs),
        surveyed: &'p Surveyed,
        cuts: &[usize],
    ) -> Result<Self> {
        let (here, there) = (candidate.model, bank.model());
        Ok(Self {
            bank,
            engine: candidate.engine,
            session: SessionOptions {
                optimization: OptimizationLevel::None,
                ..candidate.session.clone()
            },
            surveyed,
            rounds: surveyed.rounds_at(cuts),
            candidate: (surveyed.declared_candidate(here), surveyed.cut_candidate(here, cuts)?),
            reference: (surveyed.declared_reference(there), surveyed.cut_reference(there, cuts)?),
            inputs: (all_held(inputs), all_held(bank.inputs())),
        })
    }

    fn cause(&self, row: &DriftRow, index: usize, pursuit: &Pursuit<'_>) -> Result<Cause> {
        let found = self.found(index)?;
        self.with_evidence(&found, pursuit, |evidence| {
            let Some((step, slack)) = self.surveyed.step(index) else {
                return explain_row(row, evidence);
            };
            if let Some(cause) = self.cause_of_quantisation(row, index, evidence, (step, *slack)) {
                return Ok(cause);
            }
            if row.introduced.max_abs <= row.budget && row.introduced.mismatching == 0 {
                // Experiments go by one bound for all elements, which is that of the largest step.
                let detail = "not looked into: each element has a bound of its own".to_owned();
                return Ok(unknown(detail, Vec::new()));
            }
            explain_row(row, evidence)
        })
    }

    /// Holds a dequantised value against the reference's value, quantised anew.
    fn cause_of_quantisation(
        &self,
        row: &DriftRow,
        index: usize,
        evidence: &Evidence<'_>,
        (step, slack): (&Step, f64),
    ) -> Option<Cause> {
        let pairing = &self.surveyed.pairings[index];
        let nodes = self.candidate.0.nodes();
        let grid = Grid::of(&self.candidate.0, &nodes[pairing.node], step)?;
        let reference = view(evidence.references.get(&row.name)?).ok()?.to_tensor();
        let slice = export_slice(row, evidence).ok()?;
        let found = run_alone(&slice, reference.shape(), self.engine, &self.session).ok()?;
        let found = view(&found).ok()?.to_tensor();
        let weight = match &pairing.source {
            Source::Constant(name, _) => Some(name.as_str()),
            _ => None,
        };
        grid.cause(&reference, &found, slack, weight)
    }

    /// The values on which a row was measured.
    fn found(&self, index: usize) -> Result<Found> {
        let (surveyed, name) = (self.surveyed, self.surveyed.name(index));
        let needed = surveyed.given_to(&self.candidate.1.showing(&[name])?);
        let wanted: BTreeSet<usize> = needed.iter().copied().chain([index]).collect();
        let values = self.bank.values(wanted.iter().map(|&one| (one, surveyed.source(one))))?;
        let mut expected = values.get(&index).cloned();
        if self.rounds {
            let all = surveyed.expected(&self.reference.1, self.bank, &[index], &values)?;
            expected = all.get(&index).cloned();
        }
        let expected = expected.ok_or_else(|| {
            let message = format!("what the reference computes for {name:?} is not there any more");
            Diagnostic::error(codes::REPRO_ROW_UNKNOWN, message)
        })?;
        let needs: BTreeMap<usize, _> = values
            .iter()
            .filter(|(one, _)| needed.contains(one))
            .map(|(one, value)| (*one, value.clone()))
            .collect();
        let rounded = surveyed.rounded(&needs)?;
        let mut references: Values = rounded
            .iter()
            .map(|(&one, value)| (surveyed.name(one).to_owned(), held(&value.view())))
            .collect();
        references.insert(name.to_owned(), held(&expected.view()));
        let names = wanted
            .iter()
            .map(|&one| (surveyed.name(one).to_owned(), surveyed.source(one).name().to_owned()));
        Ok(Found { references, given: self.given(index)?, names: names.collect() })
    }

    /// What the reference's operators are given.
    fn given(&self, index: usize) -> Result<Values> {
        let Some(name) = self.surveyed.computed(index) else { return Ok(Values::new()) };
        let part = self.reference.1.showing(&[name])?;
        let given = self.surveyed.given_to_reference(&part, self.bank)?;
        Ok(given.iter().map(|(name, value)| ((*name).to_owned(), held(&value.view()))).collect())
    }

    fn with_evidence<R>(
        &self,
        found: &Found,
        pursuit: &Pursuit<'_>,
        work: impl FnOnce(&Evidence<'_>) -> Result<R>,
    ) -> Result<R> {
        let (weights, named) = (BTreeSet::new(), Values::new());
        let side = |model, inputs| causes::Side { model, inputs, weights: &weights };
        work(&Evidence {
            export: side(&self.candidate.0, &self.inputs.0),
            references: &found.references,
            original: Some(Original {
                side: side(&self.reference.0, &self.inputs.1),
                names: &found.names,
                given: Some(&found.given),
            }),
            named: &named,
            engine: self.engine,
            second: pursuit.second,
            session: &self.session,
        })
    }
}

fn all_held(inputs: &Inputs) -> Values {
    inputs.iter().map(|(name, value)| (name.clone(), held(&value.view()))).collect()
}
