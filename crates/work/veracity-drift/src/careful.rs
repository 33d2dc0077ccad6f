//! Runs a model although some of its values cannot be had.
//!
//! A file may say wrong things about shapes, and an operator may fail on what it is given. That is a
//! fault of one value and must not hide the others. What an engine does not load at all is refused
//! as ever: nothing is known about such a model.

use std::collections::BTreeSet;

use veracity_diag::{Code, Refusal, Result, codes};
use veracity_engine::{Engine, SessionOptions};
use veracity_onnx::Model;
use veracity_tensor::SharedTensor;

use crate::run::run_once;

/// What became of a value.
pub(crate) enum Got {
    /// It was computed.
    Value(SharedTensor),
    /// It cannot be computed, or is of another shape.
    Problem(String),
    /// It depends on one that cannot be computed.
    Unreached,
}

/// A value by name, with one that has its dtype and shape.
type Wanted<'a> = (&'a str, &'a SharedTensor);

/// One model and what it is given.
pub(crate) struct Careful<'a> {
    pub(crate) engine: &'a dyn Engine,
    pub(crate) given: &'a dyn Fn(&str) -> Option<SharedTensor>,
    pub(crate) session: &'a SessionOptions,
}

impl Careful<'_> {
    /// Computes values of a model. Most models are run once.
    pub(crate) fn run(&self, model: &Model, wanted: &[Wanted<'_>]) -> Result<Vec<Got>> {
        match self.once(model, wanted) {
            Ok(found) => Ok(found),
            Err(refusal)
                if may_be_one_value(&refusal) || is(&refusal, codes::ENGINE_LOAD_FAILED) =>
            {
                let mut failed = BTreeSet::new();
                self.halves(&model.without_shapes(), wanted, &mut failed)
            }
            Err(refusal) => Err(refusal),
        }
    }

    fn once(&self, model: &Model, wanted: &[Wanted<'_>]) -> Result<Vec<Got>> {
        let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        let part = model.part_for(&names)?;
        let found = run_once(self.engine, &part, self.given, wanted, self.session)?;
        Ok(found.into_iter().map(Got::Value).collect())
    }

    /// Runs less and less at once, until what fails stands alone. Values come in the order in which
    /// they are computed.
    fn halves(
        &self,
        model: &Model,
        wanted: &[Wanted<'_>],
        failed: &mut BTreeSet<String>,
    ) -> Result<Vec<Got>> {
        let reached = |(name, _): &Wanted<'_>| !failed.contains(*name);
        let run: Vec<Wanted<'_>> = wanted.iter().filter(|one| reached(one)).copied().collect();
        if run.len() < wanted.len() {
            let mut found = self.halves(model, &run, failed)?.into_iter();
            let given = |one: &Wanted<'_>| run.iter().any(|(name, _)| *name == one.0);
            let got = |one| if given(one) { found.next() } else { None };
            return Ok(wanted.iter().map(got).map(|one| one.unwrap_or(Got::Unreached)).collect());
        }
        match (self.once(model, wanted), wanted) {
            (Err(refusal), [(name, like)]) if may_be_one_value(&refusal) => {
                if !other_shape(&refusal) {
                    failed.extend(dependents(model, name));
                }
                Ok(vec![Got::Problem(problem(&refusal, like))])
            }
            (Err(refusal), many) if may_be_one_value(&refusal) => {
                let (earlier, later) = many.split_at(many.len() / 2);
                let mut found = self.halves(model, earlier, failed)?;
                found.extend(self.halves(model, later, failed)?);
                Ok(found)
            }
            (found, _) => found,
        }
    }
}

fn is(refusal: &Refusal, code: Code) -> bool {
    refusal.first_error().code == code
}

fn other_shape(refusal: &Refusal) -> bool {
    is(refusal, codes::ENGINE_OUTPUT_MISMATCH) || is(refusal, codes::ONNX_PORT_MISMATCH)
}

/// Whether what was refused may be the fault of one value. Shapes that do not fit are found while
/// loading or while running; while loading, ONNX's own inference says so.
fn may_be_one_value(refusal: &Refusal) -> bool {
    let shapes = refusal.first_error().message.contains("ShapeInferenceError");
    other_shape(refusal)
        || is(refusal, codes::ENGINE_RUN_FAILED)
        || (is(refusal, codes::ENGINE_LOAD_FAILED) && shapes)
}

fn problem(refusal: &Refusal, like: &SharedTensor) -> String {
    if other_shape(refusal) {
        let (dtype, shape) = (like.dtype(), like.shape());
        return format!(
            "it has another shape when it is run; it is {dtype} {shape} in the original"
        );
    }
    let message = &refusal.first_error().message;
    format!("it cannot be computed: {}", message.lines().next().unwrap_or_default())
}

/// The values that are computed from one.
fn dependents(model: &Model, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::from([name.to_owned()]);
    for node in model.nodes() {
        if node.inputs.iter().any(|input| found.contains(input)) {
            found.extend(node.outputs);
        }
    }
    found
}
