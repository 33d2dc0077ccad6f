//! A bundle against a robot: what both declare, and what both recorded.

mod sides;
mod values;

use std::path::Path;

use serde::Serialize;
use veracity_diag::{Diagnostic, Result, Severity, codes};
use veracity_results::Tolerance;
use veracity_spec::contract::{Row, Status, compare};
use veracity_spec::{Bundle, Reorder, ReorderMap};

/// How a bundle is to be held against a robot.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RobotOptions {
    /// How far gains may differ, relative to the larger one.
    pub gain_rtol: f64,
    /// How far recorded values may differ.
    pub tolerance: Tolerance,
}

impl Default for RobotOptions {
    /// Gains as equal as single precision keeps them, values exactly.
    fn default() -> Self {
        Self { gain_rtol: 1e-6, tolerance: Tolerance::EXACT }
    }
}

impl RobotOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how far gains may differ.
    #[must_use]
    pub fn with_gain_rtol(mut self, gain_rtol: f64) -> Self {
        self.gain_rtol = gain_rtol;
        self
    }

    /// Sets how far recorded values may differ.
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }
}

/// What holding a bundle against a robot found, and how much could be compared.
#[derive(Clone, Debug, Serialize)]
pub struct RobotCheck {
    /// The robot's file.
    pub robot: String,
    /// Whether something was compared and nothing differs.
    pub agrees: bool,
    /// How many things were compared.
    pub compared: usize,
    /// How many things only one side says.
    pub unchecked: usize,
    /// Everything that was compared or could not be: what differs first.
    pub rows: Vec<Row>,
    /// Every difference, and what is probably unintended.
    pub diagnostics: Vec<Diagnostic>,
    /// What brings the values of one side into the order of the other.
    pub reorder: Vec<Reorder>,
}

impl RobotCheck {
    /// Whether something differs.
    pub fn differs(&self) -> bool {
        self.diagnostics.iter().any(|found| found.severity == Severity::Error)
    }

    /// The map that the runtime applies.
    pub fn reorder_map(&self) -> ReorderMap {
        ReorderMap { entries: self.reorder.clone(), ..ReorderMap::default() }
    }
}

/// Holds a bundle against a robot: a robot file, or an ONNX model whose metadata declares the
/// robot. With `values`, tensors that the robot recorded, compares them with the bundle's samples.
/// Refused when a file cannot be read.
pub fn check_robot(
    bundle: &Bundle,
    robot: &Path,
    values: Option<&Path>,
    options: RobotOptions,
) -> Result<RobotCheck> {
    let (theirs, mut diagnostics) = sides::robot(robot)?;
    let (ours, problems) = sides::bundle(bundle);
    diagnostics.extend(problems);
    let mut findings = compare(&ours, &theirs, options.gain_rtol);
    if let Some(values) = values {
        values::compare(bundle, &ours, values, options.tolerance, &mut findings)?;
    }
    diagnostics.append(&mut findings.diagnostics);
    let mut rows = findings.rows;
    rows.sort_by_key(|row| row.status);
    let unchecked = rows.iter().filter(|row| row.status == Status::Unchecked).count();
    let compared = rows.len() - unchecked;
    if compared == 0 {
        let message = "nothing was compared: bundle and robot declare nothing in common";
        let place = theirs.place.clone();
        diagnostics.push(Diagnostic::warning(codes::CONTRACT_UNCHECKED, message).at(place));
    }
    let mut check = RobotCheck {
        robot: robot.display().to_string(),
        agrees: false,
        compared,
        unchecked,
        rows,
        diagnostics,
        reorder: findings.reorder.entries,
    };
    check.agrees = compared > 0 && !check.differs();
    Ok(check)
}
