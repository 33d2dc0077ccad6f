//! One set of cases that every engine must pass.
//!
//! A case is a model made in code, run through [`Engine`] alone, with the expected outputs computed
//! by plain Rust. What an engine cannot do is declared in its own tests, with the reason, and
//! [`surprises`] holds it to that list in both directions.

mod cases;
mod memory;
mod trial;
mod values;

use veracity_engine::Engine;

/// One thing that every engine must do.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Stable name, which says what must hold.
    pub id: &'static str,
    /// Tries it; on failure says what went wrong.
    pub run: fn(&dyn Engine) -> Result<(), String>,
}

/// Every case. All models are ONNX.
pub fn cases() -> Vec<Case> {
    cases::all()
}

/// Runs every case and holds the engine to its known gaps, each with its reason: a failure that is
/// no known gap is a surprise, and so is a gap that has quietly closed or that names no case.
pub fn surprises(engine: &dyn Engine, cases: &[Case], known_gaps: &[(&str, &str)]) -> Vec<String> {
    let gap = |id: &str| known_gaps.iter().find(|(gap, _)| *gap == id).map(|(_, reason)| *reason);
    let on = engine.name();
    let unexpected = cases.iter().filter_map(|case| match ((case.run)(engine), gap(case.id)) {
        (Ok(()), None) | (Err(_), Some(_)) => None,
        (Ok(()), Some(reason)) => {
            Some(format!("{} on {on}: passes now; remove the gap ({reason})", case.id))
        }
        (Err(why), None) => Some(format!("{} on {on}: {why}", case.id)),
    });
    let stale = known_gaps.iter().filter(|(id, _)| !cases.iter().any(|case| case.id == *id)).map(
        |(id, reason)| format!("{id} on {on}: no case has this name; remove the gap ({reason})"),
    );
    unexpected.chain(stale).collect()
}
