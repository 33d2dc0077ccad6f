//! What the inputs of nodes were: what lies outside was not tried.

use std::collections::BTreeSet;

use veracity_compare::{MeasureOptions, measure};
use veracity_results::{InputCoverage, Tolerance};
use veracity_tensor::TensorView;

use crate::fingerprint::{Fingerprint, fingerprint};

/// Different values of an input that are told apart; more are many.
const MAX_TOLD_APART: usize = 1 << 16;

/// The inputs that were tried so far, in the order in which they came first.
#[derive(Debug, Default)]
pub(crate) struct Inputs(Vec<Input>);

#[derive(Debug)]
struct Input {
    port: String,
    values: BTreeSet<Fingerprint>,
    range: Option<(f64, f64)>,
}

impl Inputs {
    pub(crate) fn add(&mut self, node: &str, port: &str, value: &TensorView<'_>) {
        let port = format!("{node}/{port}");
        let position = self.0.iter().position(|input| input.port == port).unwrap_or_else(|| {
            self.0.push(Input { port, values: BTreeSet::new(), range: None });
            self.0.len() - 1
        });
        let input = &mut self.0[position];
        if input.values.len() < MAX_TOLD_APART {
            input.values.insert(match value.contiguous_bytes() {
                Some(bytes) => fingerprint(bytes),
                None => fingerprint(&value.to_bytes()),
            });
        }
        input.range = union(input.range, range(value));
    }

    pub(crate) fn finish(self) -> Vec<InputCoverage> {
        let coverage = |input: Input| InputCoverage {
            port: input.port,
            samples: input.values.len(),
            constant: input.values.len() < 2,
            range: input.range,
        };
        self.0.into_iter().map(coverage).collect()
    }
}

/// Measuring a tensor against itself gives its range at memory speed.
fn range(value: &TensorView<'_>) -> Option<(f64, f64)> {
    measure(value, value, &MeasureOptions::new(Tolerance::EXACT)).ok()?.reference_range
}

fn union(left: Option<(f64, f64)>, right: Option<(f64, f64)>) -> Option<(f64, f64)> {
    match (left, right) {
        (Some((low, high)), Some((lower, higher))) => Some((low.min(lower), high.max(higher))),
        (one, other) => one.or(other),
    }
}
