//! The judgement of one pair of tensors.

use veracity_compare::{Judgement, MeasureOptions, find_permutation, judge, measure, reasons};
use veracity_diag::Diagnostic;
use veracity_results::{Measurement, Tolerance, TolerancePart, TolerancePolicy, Verdict};
use veracity_tensor::{DType, TensorView};

use crate::parts::measure_parts;

/// Largest tensor whose errors are spread out in a histogram even when it is right.
const MAX_DETAILED_ELEMENTS: usize = 1 << 14;
/// Largest tensor for which another order of axes is searched when it is wrong.
const MAX_PERMUTED_ELEMENTS: usize = 1 << 20;

/// What one comparison found.
pub(crate) struct Judged {
    pub(crate) verdict: Verdict,
    pub(crate) measurement: Option<Measurement>,
    pub(crate) reasons: Vec<Diagnostic>,
}

/// The tolerance of a port: integers and bools must be equal.
pub(crate) fn tolerance_of(policy: &TolerancePolicy, port: &str, dtype: DType) -> Tolerance {
    if dtype.is_float() { policy.of(port) } else { Tolerance::EXACT }
}

/// Compares shape and dtype first, then values. Percentiles read the tensors again, so those of large
/// ones are found only when somebody will want to know more.
pub(crate) fn judge_pair(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    tolerance: Tolerance,
    parts: &[TolerancePart],
    equal_nan: bool,
) -> Judged {
    let mut options = MeasureOptions::new(tolerance);
    if reference.shape().elements() <= MAX_DETAILED_ELEMENTS {
        options = options.with_percentiles().with_ulp_histogram();
    }
    let measurement = match measure(reference, candidate, &options) {
        Ok(measurement) => measurement,
        Err(refusal) => {
            let mut reasons = refusal.into_diagnostics();
            explain_layout(reference, candidate, tolerance, &mut reasons);
            return Judged { verdict: Verdict::Disproved, measurement: None, reasons };
        }
    };
    match judge(&measurement, tolerance, equal_nan) {
        Judgement::Proved if !parts.is_empty() => {
            judge_by_parts(reference, candidate, parts, measurement)
        }
        Judgement::Proved => {
            Judged { verdict: Verdict::Proved, measurement: Some(measurement), reasons: Vec::new() }
        }
        Judgement::Disproved => explain(reference, candidate, &options, equal_nan),
        Judgement::Undecided => {
            let reasons = reasons(&measurement, tolerance, equal_nan);
            let measurement = Some(measurement);
            Judged { verdict: Verdict::NotComparable, measurement, reasons }
        }
    }
}

/// Judges elements by tolerances of their own, once they are within the widest of them.
fn judge_by_parts(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    parts: &[TolerancePart],
    mut measurement: Measurement,
) -> Judged {
    let found = measure_parts(reference, candidate, parts);
    let (verdict, reasons) = match found {
        Ok(None) => (Verdict::Proved, Vec::new()),
        Ok(Some(outside)) => {
            outside.write_into(&mut measurement);
            (Verdict::Disproved, vec![outside.reason(measurement.elements)])
        }
        Err(refusal) => (Verdict::NotComparable, refusal.into_diagnostics()),
    };
    Judged { verdict, measurement: Some(measurement), reasons }
}

fn explain(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    options: &MeasureOptions,
    equal_nan: bool,
) -> Judged {
    let tolerance = options.tolerance;
    let options = options.clone().with_percentiles().with_ulp_histogram();
    let measurement =
        measure(reference, candidate, &options).expect("it was just measured without percentiles");
    let mut reasons = reasons(&measurement, tolerance, equal_nan);
    explain_layout(reference, candidate, tolerance, &mut reasons);
    let measurement = Some(measurement);
    Judged { verdict: Verdict::Disproved, measurement, reasons }
}

/// Says when the values are right and stand in the wrong order.
fn explain_layout(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    tolerance: Tolerance,
    reasons: &mut [Diagnostic],
) {
    let Some(first) = reasons.first_mut() else { return };
    if reference.shape().elements() > MAX_PERMUTED_ELEMENTS {
        return;
    }
    if let Some(order) = find_permutation(reference, candidate, tolerance) {
        let hint = format!("the values are right with the axes in the order {order:?}");
        first.hints.push(hint);
    }
}
