//! Rows of values that somebody else computed: a program that torch runs, held against the module.
//!
//! Nothing is run here. Values come in pairs, are measured and judged as those of an export are, and
//! are not kept.

use veracity_compare::{MeasureOptions, measure};
use veracity_diag::{Diagnostic, Result, codes};
use veracity_results::{
    DRIFT_SCHEMA_VERSION, DriftReport, DriftRow, GraphRecord, Measurement, SessionRecord,
    Tolerance, Verdict,
};
use veracity_tensor::TensorView;

use crate::elements::{self, Allowed};
use crate::look::put;
use crate::rows::{Answer, DriftOptions, NOT_THERE, answer, figures, judge, not_a_number};
use crate::rules::Operator;
use crate::scales::around;
use crate::values::held;
use crate::wide::against_float64;

/// Where a value stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its name; no other row may have it.
    pub name: String,
    /// What computes it.
    pub op_type: String,
    /// The call that gives it; values of one call share it.
    pub node: String,
    /// Path of the module.
    pub module: String,
    /// The user's line.
    pub source: String,
}

/// What was compared so far.
#[derive(Debug)]
pub struct Ledger {
    options: DriftOptions,
    rows: Vec<DriftRow>,
}

impl Ledger {
    /// Nothing yet.
    pub fn new(options: DriftOptions) -> Self {
        Self { options, rows: Vec::new() }
    }

    /// Adds a row: what `place` gives when it is given what the original had. Without a candidate it
    /// could not be computed, and `problem` says why.
    pub fn introduced(
        &mut self,
        place: Place,
        reference: &TensorView<'_>,
        candidate: Option<&TensorView<'_>>,
        problem: Option<String>,
    ) -> Result<()> {
        let itself = compare(reference, reference)?;
        let (dtype, scale) = (reference.dtype(), itself.max_abs_reference);
        let operator =
            Operator { name: &place.name, op_type: &place.op_type, module: &place.module };
        let bound = self.options.bound(operator, dtype, scale);
        let mut row = DriftRow {
            budget: bound.limit,
            element: None,
            bias: 0.0,
            dtype: dtype.to_string(),
            shape: reference.shape().dims().to_vec(),
            scale,
            accumulated: NOT_THERE,
            introduced: NOT_THERE,
            float64: None,
            verdict: not_a_number(&itself),
            problem,
            cause: None,
            reference: String::new(),
            name: place.name,
            op_type: place.op_type,
            node: place.node,
            module: place.module,
            source: place.source,
        };
        match candidate {
            None => row.verdict = Verdict::NotComparable,
            Some(candidate) => {
                row.problem = disagreement(reference, candidate);
                if row.problem.is_none() {
                    row.introduced = figures(&compare(reference, candidate)?);
                    if let Some(relative) = bound.relative {
                        let moved = around(reference, relative);
                        let (limit, moved) = (bound.limit, Some(&moved));
                        let allowed = Allowed { relative, limit, moved };
                        put(&mut row, &elements::judge(reference, candidate, &allowed));
                    }
                }
                judge(&mut row);
            }
        }
        self.rows.push(row);
        Ok(())
    }

    /// Adds to a row what arrives there from the inputs, and what the value is in float64.
    pub fn accumulated(
        &mut self,
        name: &str,
        reference: &TensorView<'_>,
        candidate: &TensorView<'_>,
        wide: Option<&TensorView<'_>>,
    ) -> Result<()> {
        let Some(row) = self.rows.iter_mut().find(|row| row.name == name) else { return Ok(()) };
        if disagreement(reference, candidate).is_some() {
            return Ok(());
        }
        row.accumulated = figures(&compare(reference, candidate)?);
        if let Some(wide) = wide.filter(|wide| wide.shape() == reference.shape()) {
            row.float64 = against_float64(wide, &held(reference), &held(candidate))?;
        }
        Ok(())
    }

    /// The report. Nothing compared is not comparable.
    pub fn report(self, session: SessionRecord, graph: GraphRecord) -> DriftReport {
        let Self { options, rows } = self;
        let nothing = "no value of the program has a counterpart: nothing was compared";
        let nothing = || Diagnostic::error(codes::COMPARE_NOTHING, nothing);
        let reasons: Vec<Diagnostic> = rows.is_empty().then(nothing).into_iter().collect();
        let Answer { verdict, origin, drift_origin } = answer(&rows, &reasons, options.tolerance);
        DriftReport {
            schema_version: DRIFT_SCHEMA_VERSION.to_owned(),
            model: options.model,
            reference: options.reference,
            candidate: options.candidate,
            command: String::new(),
            session,
            graph,
            verdict,
            origin,
            drift_origin,
            tolerance: options.tolerance,
            rows,
            unmapped: Vec::new(),
            program: Vec::new(),
            notes: Vec::new(),
            reasons,
        }
    }
}

fn compare(reference: &TensorView<'_>, candidate: &TensorView<'_>) -> Result<Measurement> {
    measure(reference, candidate, &MeasureOptions::new(Tolerance::EXACT))
}

fn disagreement(reference: &TensorView<'_>, candidate: &TensorView<'_>) -> Option<String> {
    let same = reference.dtype() == candidate.dtype() && reference.shape() == candidate.shape();
    let [was, is] = [reference, candidate].map(|side| format!("{} {}", side.dtype(), side.shape()));
    (!same).then(|| format!("it is {is} in the program and {was} in the module"))
}

#[cfg(test)]
mod tests {
    use veracity_results::ErrorFigures;
    use veracity_tensor::{Shape, Tensor};

    use super::*;

    fn tensor(values: &[f32]) -> Tensor {
        Tensor::from_slice(Shape::new([values.len()]).unwrap(), values).unwrap()
    }

    fn judged(reference: &[f32], candidate: Option<&[f32]>) -> DriftReport {
        let mut ledger = Ledger::new(DriftOptions::default());
        let place = Place { name: "act".to_owned(), ..Place::default() };
        let (reference, candidate) = (tensor(reference), candidate.map(tensor));
        let view = candidate.as_ref().map(Tensor::view);
        ledger.introduced(place, &reference.view(), view.as_ref(), None).unwrap();
        if let Some(view) = &view {
            ledger.accumulated("act", &reference.view(), view, None).unwrap();
        }
        let session = SessionRecord {
            node: String::new(),
            engine: "torch".to_owned(),
            engine_version: String::new(),
            device: "cpu".to_owned(),
        };
        ledger.report(session, GraphRecord::default())
    }

    #[test]
    fn verdicts_go_by_introduced_error_and_nan_and_silence_are_no_proof() {
        let nan = f32::NAN;
        for (reference, candidate, expected) in [
            ([1.0, 2.0], Some(&[1.0, 2.0][..]), Verdict::Proved),
            ([1.0, 2.0], Some(&[1.0, 2.000_01]), Verdict::Proved),
            ([1.0, 2.0], Some(&[1.0, 2.001]), Verdict::Disproved),
            ([1.0, 2.0], Some(&[1.0, nan]), Verdict::Disproved),
            ([1.0, 2.0], Some(&[1.0]), Verdict::Disproved),
            ([1.0, nan], Some(&[1.0, nan]), Verdict::NotComparable),
            ([1.0, 2.0], None, Verdict::NotComparable),
        ] {
            let report = judged(&reference, candidate);
            assert_eq!(report.verdict, expected, "{candidate:?}");
            let is_wrong = expected == Verdict::Disproved;
            assert_eq!(report.origin.is_some(), is_wrong, "{candidate:?}");
        }
    }

    #[test]
    fn nothing_compared_is_not_comparable() {
        let session = SessionRecord {
            node: String::new(),
            engine: String::new(),
            engine_version: String::new(),
            device: String::new(),
        };
        let report = Ledger::new(DriftOptions::default()).report(session, GraphRecord::default());
        assert_eq!((report.verdict, report.reasons.len()), (Verdict::NotComparable, 1));
    }

    #[test]
    fn an_error_that_only_arrives_is_no_fault() {
        let mut ledger = Ledger::new(DriftOptions::default());
        let place = Place { name: "act".to_owned(), ..Place::default() };
        let (reference, far) = (tensor(&[1.0, 2.0]), tensor(&[1.5, 2.0]));
        ledger.introduced(place, &reference.view(), Some(&reference.view()), None).unwrap();
        ledger.accumulated("act", &reference.view(), &far.view(), None).unwrap();
        assert_eq!(ledger.rows[0].accumulated.max_abs.to_bits(), 0.5_f64.to_bits());
        assert_eq!(ledger.rows[0].verdict, Verdict::Proved);
        let figures = ErrorFigures { max_abs: 0.0, mean_abs: 0.0, mismatching: 0 };
        assert_eq!(ledger.rows[0].introduced, figures);
    }
}
