//! Measures two tensors. Refuses what cannot be compared element by element; never broadcasts.

use veracity_diag::{Diagnostic, Refusal, Result, codes};
use veracity_results::{Measurement, Tolerance, Worst};
use veracity_tensor::TensorView;

use crate::accumulate::Accumulator;
use crate::options::MeasureOptions;
use crate::pairs::TileReader;
use crate::parallel::over_blocks;
use crate::percentiles::{BracketTally, Brackets, Known, Source, errors, percentiles};
use crate::plan::Plan;
use crate::summary::Summary;
use crate::ulp::UlpTally;

#[cfg(test)]
mod tests;

/// Measures how far the candidate is from the reference.
///
/// Refused when shape or dtype differ. Extra memory stays below 64 MB whatever the size.
pub fn measure(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    options: &MeasureOptions,
) -> Result<Measurement> {
    let plan = Plan::new(reference.shape().elements(), options.threads);
    measure_with(reference, candidate, options, plan)
}

fn measure_with(
    reference: &TensorView<'_>,
    candidate: &TensorView<'_>,
    options: &MeasureOptions,
    plan: Plan,
) -> Result<Measurement> {
    check_alike(reference, candidate)?;
    let source = Source { reference, candidate, plan };
    let pass = first_pass(&source, options);
    Ok(assemble(&source, options, pass))
}

/// Refuses tensors that differ in dtype or shape, with all reasons.
fn check_alike(reference: &TensorView<'_>, candidate: &TensorView<'_>) -> Result<()> {
    let mut reasons = Vec::new();
    if reference.dtype() != candidate.dtype() {
        reasons.push(Diagnostic::error(
            codes::COMPARE_DTYPE_DIFFERS,
            format!("the reference is {}, the candidate {}", reference.dtype(), candidate.dtype()),
        ));
    }
    if reference.shape() != candidate.shape() {
        reasons.push(Diagnostic::error(
            codes::COMPARE_SHAPE_DIFFERS,
            format!(
                "the reference has shape {}, the candidate {}",
                reference.shape(),
                candidate.shape()
            ),
        ));
    }
    Refusal::from_errors_in(reasons).map_or(Ok(()), Err)
}

/// What one pass over all pairs found.
struct Pass {
    summary: Summary,
    ulps: UlpTally,
    brackets: Option<(Brackets, BracketTally)>,
}

/// What one thread needs and finds.
struct Worker<'a> {
    reader: TileReader<'a>,
    summary: Summary,
    ulps: UlpTally,
    errors: Vec<f64>,
    tally: Option<BracketTally>,
}

fn first_pass(source: &Source<'_>, options: &MeasureOptions) -> Pass {
    let plan = source.plan;
    let elements = source.reference.shape().elements();
    let wants_brackets = options.percentiles && elements > plan.direct_limit;
    let brackets = wants_brackets.then(|| Brackets::from_sample(source));
    let ulps = || UlpTally::new(plan.tile, options.ulp_histogram);
    let tally = || brackets.as_ref().map(|brackets| brackets.tally(&plan));
    let start = || Worker {
        reader: TileReader::new(source.reference, source.candidate, plan.tile),
        summary: Summary::new(),
        ulps: ulps(),
        errors: vec![0.0; plan.tile],
        tally: tally(),
    };
    let workers = over_blocks(plan.blocks(elements), plan.threads, start, |worker, block| {
        let mut totals = Accumulator::new(options.tolerance);
        for (first, len) in plan.tiles(block, elements) {
            let tile = worker.reader.tile(first, len);
            // Most exports compute most values to the bit. An error of 0 is below every bracket.
            if tile.reference == tile.candidate && totals.add_same(plan.set, tile.values) {
                worker.ulps.add_same(&tile, len);
                continue;
            }
            let errors = &mut worker.errors[..len];
            totals.add_tile(plan.set, tile.values, first, errors);
            worker.ulps.add_tile(plan.set, &tile);
            if let (Some(tally), Some(brackets)) = (&mut worker.tally, &brackets) {
                tally.add(&plan, errors, brackets);
            }
        }
        worker.summary.add_block(block, &totals);
    });
    let (mut summary, mut ulps, mut total) = (Summary::new(), ulps(), tally());
    for mut worker in workers {
        summary.merge(worker.summary);
        ulps.merge(&worker.ulps);
        if let (Some(total), Some(tally), Some(brackets)) =
            (&mut total, &mut worker.tally, &brackets)
        {
            tally.finish(brackets);
            total.merge(tally);
        }
    }
    Pass { summary, ulps, brackets: brackets.zip(total) }
}

#[expect(clippy::cast_precision_loss, reason = "a mean over 2^53 elements is rounded anyway")]
fn assemble(source: &Source<'_>, options: &MeasureOptions, pass: Pass) -> Measurement {
    let Pass { mut summary, ulps, brackets } = pass;
    let shape = source.reference.shape();
    let elements = shape.elements() as u64;
    let compared = elements - summary.non_finite.total();
    let (sum, sum_of_squares) = summary.sums();
    let mean = |total: f64| if compared == 0 { 0.0 } else { total / compared as f64 };
    let known =
        Known { compared, zeros: compared - summary.differing, max_abs: summary.max_abs, brackets };
    Measurement {
        elements,
        compared,
        differing: summary.differing,
        max_abs: summary.max_abs,
        mean_abs: mean(sum),
        rms: mean(sum_of_squares).sqrt(),
        max_rel: summary.max_rel,
        max_abs_reference: summary.max_abs_reference(),
        reference_range: summary.references().ends(),
        candidate_range: summary.candidates.ends(),
        worst: worst(source, options.tolerance, &summary),
        tolerance: options.tolerance,
        outside: summary.outside,
        min_atol: summary.min_atol(options.tolerance),
        ulp_histogram: ulps.histogram(),
        max_ulp: ulps.max(),
        percentiles: options.percentiles.then(|| percentiles(source, known)).flatten(),
        non_finite: summary.non_finite.into_results(shape),
    }
}

/// The pair to look at first. Where pairs are outside of the tolerance it is the one that is farthest
/// outside, as a part of its own bound: the largest error may well be inside.
fn worst(source: &Source<'_>, tolerance: Tolerance, summary: &Summary) -> Option<Worst> {
    if summary.outside > 0 && tolerance != Tolerance::EXACT {
        return find_farthest(source, tolerance);
    }
    find_worst(source, summary)
}

/// The first pair with the largest error as a part of its bound. Reads everything again.
fn find_farthest(source: &Source<'_>, tolerance: Tolerance) -> Option<Worst> {
    let Source { reference, candidate, plan } = source;
    let shape = reference.shape();
    let mut reader = TileReader::new(reference, candidate, plan.tile);
    let mut room = vec![0.0; plan.tile];
    let mut found: Option<(f64, usize, f64, f64)> = None;
    for block in 0..plan.blocks(shape.elements()) {
        for (first, len) in plan.tiles(block, shape.elements()) {
            let values = reader.tile(first, len).values;
            let errors = errors::fill(plan.set, values, &mut room);
            for (position, &error) in errors.iter().enumerate() {
                let (reference, candidate) = values.at(position);
                // Pairs that are not compared have no error.
                let part = if error > 0.0 { error / tolerance.bound(reference) } else { 0.0 };
                if part > found.map_or(0.0, |(most, ..)| most) {
                    found = Some((part, first + position, reference, candidate));
                }
            }
        }
    }
    found.map(|(_, position, reference, candidate)| Worst {
        index: shape.index_from_flat(position),
        reference,
        candidate,
    })
}

/// The first pair with the largest error: only the first block that holds it is read again.
fn find_worst(source: &Source<'_>, summary: &Summary) -> Option<Worst> {
    if summary.differing == 0 {
        return None;
    }
    let Source { reference, candidate, plan } = source;
    let shape = reference.shape();
    let mut reader = TileReader::new(reference, candidate, plan.tile);
    let mut room = vec![0.0; plan.tile];
    for (first, len) in plan.tiles(summary.worst_block, shape.elements()) {
        let values = reader.tile(first, len).values;
        let errors = errors::fill(plan.set, values, &mut room);
        let same = |error: &f64| error.to_bits() == summary.max_abs.to_bits();
        if let Some(position) = errors.iter().position(same) {
            let (reference, candidate) = values.at(position);
            let index = shape.index_from_flat(first + position);
            return Some(Worst { index, reference, candidate });
        }
    }
    None
}
