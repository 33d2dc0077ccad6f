//! One disproved row and the means to try things on it.

use std::num::NonZeroUsize;

use veracity_compare::{MeasureOptions, measure};
use veracity_diag::Result;
use veracity_engine::{Engine, SessionOptions};
use veracity_results::{CauseKind, DriftRow, Measurement, Tolerance};
use veracity_tensor::{Shape, SharedTensor, Tensor};

use crate::causes::pairing::{Pairs, pair};
use crate::causes::room::{is_within, room};
use crate::causes::slice::Slice;
use crate::causes::{Evidence, export_slice, original_slice, reference_of};
use crate::values::{Values, view};
use crate::wide::widened;

/// What an experiment showed.
pub(crate) enum Outcome {
    /// It makes the error vanish.
    Explained {
        /// The kind of fault.
        kind: CauseKind,
        /// What was seen.
        detail: String,
    },
    /// It does not.
    RuledOut(String),
    /// There is nothing to try.
    NotApplicable,
}

/// One disproved row.
pub(crate) struct Trial<'a> {
    pub(crate) row: &'a DriftRow,
    pub(crate) reference: SharedTensor,
    /// Its operators in the export, and what they gave, if they can be run at all.
    pub(crate) slice: Slice,
    pub(crate) found: Option<SharedTensor>,
    /// What its elements may be off, where each has a budget of its own.
    room: Option<Tensor>,
    /// Those of the original, and which part is which.
    pub(crate) original: Option<(Slice, Pairs)>,
    pub(crate) named: &'a Values,
    pub(crate) engine: &'a dyn Engine,
    pub(crate) second: Option<&'a dyn Engine>,
    pub(crate) session: &'a SessionOptions,
}

impl<'a> Trial<'a> {
    pub(crate) fn new(row: &'a DriftRow, evidence: &Evidence<'a>) -> Result<Self> {
        let slice = export_slice(row, evidence)?;
        let original = original_slice(row, evidence).map(|original| {
            let names = evidence.original.map(|original| original.names);
            let pairs = pair(&slice, &original, names);
            (original, pairs)
        });
        let reference = reference_of(row, evidence)?;
        let (engine, session) = (evidence.engine, evidence.session);
        let found = run_alone(&slice, reference.shape(), engine, session).ok();
        let room = found
            .as_ref()
            .and_then(|found| room(row, &slice, &reference, found, (engine, session)));
        let Evidence { named, second, .. } = *evidence;
        Ok(Self { row, reference, slice, found, room, original, named, engine, second, session })
    }

    /// What a slice gives, if it can be run and has the shape of the reference.
    pub(crate) fn run(&self, slice: &Slice) -> Option<SharedTensor> {
        slice.run(self.engine, self.session, self.reference.shape()).ok()
    }

    /// The same with another number of threads.
    pub(crate) fn run_with_threads(&self, threads: NonZeroUsize) -> Option<SharedTensor> {
        let session = SessionOptions { threads, ..self.session.clone() };
        self.slice.run(self.engine, &session, self.reference.shape()).ok()
    }

    /// How far a slice is from the reference; infinite when it cannot be run.
    pub(crate) fn error(&self, slice: &Slice) -> f64 {
        self.run(slice).map_or(f64::INFINITY, |found| self.distance(&found))
    }

    /// How far a value is from the reference. Where each element has a budget of its own, it is more
    /// than the budget of the row exactly if one of them is beyond its own.
    pub(crate) fn distance(&self, found: &SharedTensor) -> f64 {
        let error = distance(&self.reference, found).unwrap_or(f64::INFINITY);
        match &self.room {
            None => error,
            Some(room) if is_within(&self.reference, found, room) => error.min(self.row.budget),
            Some(_) => error.max(self.row.budget.next_up()),
        }
    }

    /// How far the export's own slice is.
    pub(crate) fn own_error(&self) -> f64 {
        self.found.as_ref().map_or(f64::INFINITY, |found| self.distance(found))
    }

    /// Whether an error is one that the operator may introduce.
    pub(crate) fn allowed(&self, error: f64) -> bool {
        error <= self.row.budget
    }

    /// Whether a slice is right.
    pub(crate) fn right(&self, slice: &Slice) -> bool {
        self.allowed(self.error(slice))
    }
}

/// What a slice gives, whatever its shape is; most likely this one.
pub(crate) fn run_alone(
    slice: &Slice,
    likely: &Shape,
    engine: &dyn Engine,
    session: &SessionOptions,
) -> Result<SharedTensor> {
    slice.run(engine, session, likely).or_else(|_| {
        let shape = slice.actual_shape(engine, session)?;
        slice.run(engine, session, &shape)
    })
}

/// Largest difference of two values; infinite where a NaN or infinity has no match. Floats of
/// different types are compared in float64.
pub(crate) fn distance(reference: &SharedTensor, found: &SharedTensor) -> Option<f64> {
    let (reference, found) = (view(reference).ok()?, view(found).ok()?);
    if reference.shape() != found.shape() {
        return None;
    }
    let measured = if reference.dtype() == found.dtype() {
        compared(&reference.to_tensor(), &found.to_tensor())?
    } else {
        compared(&widened(&reference).ok()?, &widened(&found).ok()?)?
    };
    let matching = measured.non_finite.mismatching == 0;
    Some(if matching { measured.max_abs } else { f64::INFINITY })
}

/// Two tensors, measured; `None` when dtype or shape differ.
pub(crate) fn compared(reference: &Tensor, found: &Tensor) -> Option<Measurement> {
    let options = MeasureOptions::new(Tolerance::EXACT);
    measure(&reference.view(), &found.view(), &options).ok()
}
