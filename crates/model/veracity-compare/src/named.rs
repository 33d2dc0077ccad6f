//! Compares tensors by name. A tensor without a counterpart is a row, never a silence.

use std::collections::{BTreeMap, BTreeSet};

use veracity_diag::{Diagnostic, Place, codes};
use veracity_results::{Comparison, ComparisonRow, Tolerance, Verdict};
use veracity_tensor::Tensor;

use crate::judge::{Judgement, judge, reasons};
use crate::measure::measure;
use crate::options::MeasureOptions;

/// How to compare named tensors. Build with [`CompareOptions::new`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CompareOptions {
    /// What to measure; its tolerance is for floats.
    pub measure: MeasureOptions,
    /// The tolerance for integers and bools.
    pub integer_tolerance: Tolerance,
    /// Whether NaN beside NaN counts as equal.
    pub equal_nan: bool,
}

impl CompareOptions {
    /// Floats by the tolerance of `measure`, integers and bools exactly, NaN fails.
    pub fn new(measure: MeasureOptions) -> Self {
        Self { measure, integer_tolerance: Tolerance::EXACT, equal_nan: false }
    }

    /// Allows integers and bools to differ.
    #[must_use]
    pub fn with_integer_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.integer_tolerance = tolerance;
        self
    }

    /// Accepts NaN that both sides hold in the same place.
    #[must_use]
    pub fn with_equal_nan(mut self) -> Self {
        self.equal_nan = true;
        self
    }

    fn for_tensor(&self, tensor: &Tensor) -> MeasureOptions {
        let mut options = self.measure.clone();
        if !tensor.dtype().is_float() {
            options.tolerance = self.integer_tolerance;
        }
        options
    }
}

/// Compares tensors of the same name and sums up.
///
/// A name on one side only is not comparable; a difference in shape or dtype disproves. No names
/// at all is not comparable either.
pub fn compare_named(
    reference: &BTreeMap<String, Tensor>,
    candidate: &BTreeMap<String, Tensor>,
    options: &CompareOptions,
) -> Comparison {
    let names: BTreeSet<&String> = reference.keys().chain(candidate.keys()).collect();
    let rows = names.into_iter().map(|name| match (reference.get(name), candidate.get(name)) {
        (Some(reference), Some(candidate)) => compare_row(name, reference, candidate, options),
        (reference, _) => {
            let side = if reference.is_some() { "reference" } else { "candidate" };
            missing_row(name, side, options)
        }
    });
    Comparison::from_rows(rows.collect())
}

fn compare_row(
    name: &str,
    reference: &Tensor,
    candidate: &Tensor,
    options: &CompareOptions,
) -> ComparisonRow {
    let measure_options = options.for_tensor(reference);
    let tolerance = measure_options.tolerance;
    let (verdict, measurement, found) =
        match measure(&reference.view(), &candidate.view(), &measure_options) {
            Ok(measurement) => {
                let verdict = match judge(&measurement, tolerance, options.equal_nan) {
                    Judgement::Proved => Verdict::Proved,
                    Judgement::Disproved => Verdict::Disproved,
                    Judgement::Undecided => Verdict::NotComparable,
                };
                let found = reasons(&measurement, tolerance, options.equal_nan);
                (verdict, Some(measurement), found)
            }
            Err(refusal) => (Verdict::Disproved, None, refusal.into_diagnostics()),
        };
    let place = place_of(name);
    let reasons = found.into_iter().map(|diagnostic| diagnostic.within(&place)).collect();
    ComparisonRow { name: name.to_owned(), verdict, tolerance, measurement, reasons }
}

fn missing_row(name: &str, side: &str, options: &CompareOptions) -> ComparisonRow {
    let reason =
        Diagnostic::error(codes::COMPARE_MISSING, format!("{name:?} exists in the {side} only"));
    ComparisonRow {
        name: name.to_owned(),
        verdict: Verdict::NotComparable,
        tolerance: options.measure.tolerance,
        measurement: None,
        reasons: vec![reason.at(place_of(name))],
    }
}

/// Names of bundles read `node/port`.
fn place_of(name: &str) -> Place {
    match name.rsplit_once('/') {
        Some((node, port)) => Place::port(node, port),
        None => Place { port: Some(name.to_owned()), ..Place::default() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensors(entries: &[(&str, Tensor)]) -> BTreeMap<String, Tensor> {
        entries.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect()
    }

    fn floats(values: &[f32]) -> Tensor {
        Tensor::from_slice([values.len()], values).unwrap()
    }

    fn integers(values: &[i32]) -> Tensor {
        Tensor::from_slice([values.len()], values).unwrap()
    }

    fn options() -> CompareOptions {
        CompareOptions::new(MeasureOptions::new(Tolerance::new(1e-3, 1e-3).unwrap()))
    }

    #[test]
    fn every_name_gets_a_row_and_only_checked_ones_are_proved() {
        let reference = tensors(&[
            ("a/equal", floats(&[1.0, 2.0])),
            ("a/close", floats(&[1.0, 2.0])),
            ("a/far", floats(&[1.0, 2.0])),
            ("gone", floats(&[1.0])),
            ("shape", floats(&[1.0, 2.0])),
            ("dtype", floats(&[1.0])),
            ("both", floats(&[1.0])),
            ("nan", floats(&[f32::NAN])),
        ]);
        let candidate = tensors(&[
            ("a/equal", floats(&[1.0, 2.0])),
            ("a/close", floats(&[1.001, 2.0])),
            ("a/far", floats(&[1.0, 2.1])),
            ("new", floats(&[1.0])),
            ("shape", Tensor::from_slice([2, 1], &[1.0_f32, 2.0]).unwrap()),
            ("dtype", integers(&[1])),
            ("both", integers(&[1, 1])),
            ("nan", floats(&[f32::NAN])),
        ]);
        let comparison = compare_named(&reference, &candidate, &options());
        assert_eq!(comparison.verdict, Verdict::Disproved);
        let row = |name: &str| comparison.rows.iter().find(|row| row.name == name).unwrap();
        for (name, verdict, reasons) in [
            ("a/equal", Verdict::Proved, &[][..]),
            ("a/close", Verdict::Proved, &[]),
            ("a/far", Verdict::Disproved, &[codes::COMPARE_OUTSIDE]),
            ("gone", Verdict::NotComparable, &[codes::COMPARE_MISSING]),
            ("new", Verdict::NotComparable, &[codes::COMPARE_MISSING]),
            ("shape", Verdict::Disproved, &[codes::COMPARE_SHAPE_DIFFERS]),
            ("dtype", Verdict::Disproved, &[codes::COMPARE_DTYPE_DIFFERS]),
            (
                "both",
                Verdict::Disproved,
                &[codes::COMPARE_DTYPE_DIFFERS, codes::COMPARE_SHAPE_DIFFERS],
            ),
            ("nan", Verdict::Disproved, &[codes::COMPARE_OUTSIDE]),
        ] {
            let found: Vec<_> = row(name).reasons.iter().map(|reason| reason.code).collect();
            assert_eq!((row(name).verdict, &found[..]), (verdict, reasons), "{name}");
        }
        assert_eq!(row("a/far").reasons[0].place, Place::port("a", "far"));
        assert_eq!(comparison.coverage.proved, 2);
        assert_eq!(comparison.coverage.not_comparable, 2);
        assert_eq!(comparison.coverage.disproved, 5);
    }

    #[test]
    fn integers_are_held_to_equality_unless_a_tolerance_is_given() {
        let (reference, candidate) =
            (tensors(&[("x", integers(&[1_000_000]))]), tensors(&[("x", integers(&[1_000_001]))]));
        let verdict = |options| compare_named(&reference, &candidate, &options).verdict;
        assert_eq!(verdict(options()), Verdict::Disproved);
        let one_off = Tolerance::new(1.0, 0.0).unwrap();
        assert_eq!(verdict(options().with_integer_tolerance(one_off)), Verdict::Proved);
    }

    #[test]
    fn no_names_prove_nothing() {
        let nothing = BTreeMap::new();
        assert_eq!(compare_named(&nothing, &nothing, &options()).verdict, Verdict::NotComparable);
    }

    #[test]
    fn equal_nan_accepts_what_both_sides_hold() {
        let both = tensors(&[("x", floats(&[f32::NAN, f32::INFINITY, 1.0]))]);
        let comparison = compare_named(&both, &both, &options().with_equal_nan());
        assert_eq!(comparison.verdict, Verdict::Proved);
        assert!(comparison.rows[0].reasons.is_empty());
    }
}
