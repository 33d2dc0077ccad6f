//! What a judgement may say, and that it never contradicts measuring again.

use proptest::prelude::*;
use veracity_tensor::Tensor;

use super::*;
use crate::{MeasureOptions, measure};

fn tolerance(atol: f64, rtol: f64) -> Tolerance {
    Tolerance::new(atol, rtol).unwrap()
}

fn measured(reference: &[f64], candidate: &[f64], tolerance: Tolerance) -> Measurement {
    let tensor = |values: &[f64]| Tensor::from_slice([values.len()], values).unwrap();
    let (reference, candidate) = (tensor(reference), tensor(candidate));
    measure(&reference.view(), &candidate.view(), &MeasureOptions::new(tolerance)).unwrap()
}

#[test]
fn nan_and_infinities_follow_the_one_rule() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let (proved, disproved) = (Judgement::Proved, Judgement::Disproved);
    for (reference, candidate, strict, equal_nan) in [
        (1.0, 1.0, proved, proved),
        (nan, nan, disproved, proved),
        (inf, inf, proved, proved),
        (-inf, -inf, proved, proved),
        (inf, -inf, disproved, disproved),
        (nan, inf, disproved, disproved),
        (nan, 1.0, disproved, disproved),
        (1.0, nan, disproved, disproved),
        (1.0, inf, disproved, disproved),
        (inf, f64::MAX, disproved, disproved),
    ] {
        // The widest tolerance there is does not let a mismatch pass.
        let widest = tolerance(f64::MAX, f64::MAX);
        let measurement = measured(&[0.0, reference], &[0.0, candidate], widest);
        for (accept, expected) in [(false, strict), (true, equal_nan)] {
            let what = format!("{reference} {candidate} {accept}");
            assert_eq!(judge(&measurement, widest, accept), expected, "{what}");
            let silent = reasons(&measurement, widest, accept).is_empty();
            assert_eq!(silent, expected == proved, "{what}");
        }
    }
}

#[test]
fn an_empty_tensor_has_nothing_that_differs() {
    let measurement = measured(&[], &[], Tolerance::EXACT);
    assert_eq!(measurement.elements, 0);
    assert_eq!(judge(&measurement, Tolerance::EXACT, false), Judgement::Proved);
}

#[test]
fn another_tolerance_is_decided_where_the_extremes_decide_it() {
    // Errors 0.5 at 1 and 2 at 100, counted with atol 0.1 + rtol 0.1.
    let measurement = measured(&[1.0, 100.0, 4.0], &[1.5, 102.0, 4.0], tolerance(0.1, 0.1));
    assert_eq!(measurement.outside, 1);
    for (atol, rtol, expected) in [
        (0.1, 0.1, Judgement::Disproved),
        (0.05, 0.1, Judgement::Disproved),
        (2.0, 0.0, Judgement::Proved),
        (1.9, 0.0, Judgement::Disproved),
        (0.5, 0.1, Judgement::Proved),
        (0.41, 0.2, Judgement::Proved),
        (0.3, 0.1, Judgement::Disproved),
        (0.0, 0.51, Judgement::Proved),
        (0.0, 0.49, Judgement::Disproved),
        (0.3, 0.19, Judgement::Disproved),
        (0.45, 0.05, Judgement::Undecided),
    ] {
        let found = judge(&measurement, tolerance(atol, rtol), false);
        assert_eq!(found, expected, "atol {atol}, rtol {rtol}");
    }
}

#[test]
fn a_record_that_leaves_elements_out_proves_nothing() {
    let mut measurement = measured(&[1.0, 2.0], &[1.0, 2.0], Tolerance::EXACT);
    measurement.compared = 1;
    assert_eq!(judge(&measurement, Tolerance::EXACT, false), Judgement::Undecided);
    assert_eq!(reasons(&measurement, Tolerance::EXACT, false).len(), 1);
}

#[test]
fn an_error_beyond_float64_never_passes() {
    let widest = tolerance(f64::MAX, 0.0);
    let measurement = measured(&[f64::MAX], &[f64::MIN], widest);
    assert_eq!(judge(&measurement, widest, false), Judgement::Disproved);
}

#[test]
fn reasons_say_how_many_and_where() {
    let measurement = measured(&[1.0, f64::NAN, 3.0], &[1.0, 0.0, 3.5], tolerance(0.25, 0.0));
    let found = reasons(&measurement, tolerance(0.25, 0.0), false);
    let messages: Vec<_> = found.iter().map(|reason| reason.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "1 NaN or infinite values have no equal on the other side, the first at [1]",
            "1 of 3 values are outside of atol 0.25 + rtol 0; the largest error is 0.5 at [2] \
             (reference 3, candidate 3.5)",
        ]
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn judging_agrees_with_measuring_again(
        pairs in prop::collection::vec(
            (prop::sample::select(vec![0.0, 1.0, -2.0, 0.1, 1e6, 3e-7]), -1.0_f64..1.0),
            1..6,
        ),
        scale in prop::sample::select(vec![0.0, 1e-16, 1e-3, 1.0]),
        first in (0_usize..5, 0_usize..5),
        second in (0_usize..5, 0_usize..5),
    ) {
        let parts = [0.0, 1e-9, 1e-3, 0.1, 0.5];
        let pick = |(atol, rtol): (usize, usize)| tolerance(parts[atol], parts[rtol]);
        let reference: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let candidate: Vec<f64> = pairs.iter().map(|pair| pair.0 + pair.1 * scale).collect();
        let judged = judge(&measured(&reference, &candidate, pick(first)), pick(second), false);
        let again = judge(&measured(&reference, &candidate, pick(second)), pick(second), false);
        prop_assert_ne!(again, Judgement::Undecided);
        prop_assert!(judged == again || judged == Judgement::Undecided, "{:?} {:?}", judged, again);
    }
}
