//! The view of a report by layers: a row for each call of a module that has no modules inside.
//!
//! A layer stands for its last value. Operators that belong to no such module have rows of their
//! own, by the name of the value; so has an output of the model that is not the last value of its
//! layer. Where a report does not say which modules have nothing inside, those are taken that no
//! other row is inside of.

use std::collections::{HashMap, HashSet};

use veracity_results::{DriftReport, DriftRow, Verdict};

use crate::python::rounded;

/// One layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer<'r> {
    /// Path of the module, with the number of the call after a `#` from the second on; or the name
    /// of a value.
    pub name: String,
    /// The value that stands for it.
    pub row: &'r DriftRow,
    /// Every value of this call.
    pub values: Vec<&'r DriftRow>,
    /// Largest accumulated error, rounded to 13 digits. Infinite where shapes or NaN do not match,
    /// NaN where the original has NaN.
    pub max_abs: f64,
    /// Mean accumulated error, in the same way.
    pub mean_abs: f64,
    /// Whether the largest error is above the tolerance, or no number.
    pub exceeds: bool,
}

/// The layers of a report, in the order in which the export computes them.
pub fn layers(report: &DriftReport) -> Vec<Layer<'_>> {
    let leaves = leaves(report);
    let outputs: HashSet<&str> = report.graph.outputs.iter().map(String::as_str).collect();
    let mut calls: Vec<(bool, Vec<&DriftRow>)> = Vec::new();
    for row in &report.rows {
        let is_leaf = leaves.contains(row.module.as_str());
        match calls.last_mut() {
            Some((true, values)) if is_leaf && continues(values, row) => values.push(row),
            _ => calls.push((is_leaf, vec![row])),
        }
    }
    let mut names = Names::default();
    let mut found = Vec::new();
    for (is_leaf, values) in calls {
        let last = values.len() - 1;
        for (index, &row) in values.iter().enumerate() {
            let (name, values) = if is_leaf && index == last {
                (names.module(&row.module), values.clone())
            } else if !is_leaf || outputs.contains(row.name.as_str()) {
                (row.name.clone(), vec![row])
            } else {
                continue;
            };
            found.push(Layer::new(name, row, values, report.tolerance));
        }
    }
    // A value may be called like a module.
    let modules: HashSet<&str> = names.calls.keys().copied().collect();
    for layer in &mut found {
        if layer.name == layer.row.name
            && layer.name != layer.row.module
            && modules.contains(layer.name.as_str())
        {
            layer.name = format!("value:{}", layer.name);
        }
    }
    found
}

/// How often each module was called so far.
#[derive(Default)]
struct Names<'r> {
    calls: HashMap<&'r str, usize>,
}

impl<'r> Names<'r> {
    fn module(&mut self, path: &'r str) -> String {
        let calls = self.calls.entry(path).or_default();
        *calls += 1;
        if *calls == 1 { path.to_owned() } else { format!("{path}#{calls}") }
    }
}

fn leaves(report: &DriftReport) -> HashSet<&str> {
    if !report.graph.leaves.is_empty() {
        return report.graph.leaves.iter().map(String::as_str).collect();
    }
    let mut leaves: HashSet<&str> = report.rows.iter().map(|row| row.module.as_str()).collect();
    leaves.remove("");
    for row in &report.rows {
        for (dot, _) in row.module.match_indices('.') {
            leaves.remove(&row.module[..dot]);
        }
    }
    leaves
}

/// Whether a value belongs to the same call as those before it: another output of the same node does,
/// one that starts like the call before does not. A row too many does no harm, one too few hides a
/// call.
fn continues(values: &[&DriftRow], row: &DriftRow) -> bool {
    let (first, last) = (values[0], values[values.len() - 1]);
    let same_node = !row.node.is_empty() && row.node == last.node;
    let starts_again = first.op_type == row.op_type && stem(&first.name) == stem(&row.name);
    first.module == row.module && (same_node || !starts_again)
}

/// `conv2d` of `conv2d_3`.
fn stem(name: &str) -> &str {
    let stem = name.trim_end_matches(|character: char| character.is_ascii_digit());
    stem.strip_suffix('_').filter(|stem| !stem.is_empty()).unwrap_or(name)
}

impl<'r> Layer<'r> {
    fn new(name: String, row: &'r DriftRow, values: Vec<&'r DriftRow>, tolerance: f64) -> Self {
        let unknown = match row.verdict {
            Verdict::NotComparable => Some(f64::NAN),
            _ if row.problem.is_some() || row.accumulated.mismatching > 0 => Some(f64::INFINITY),
            _ => None,
        };
        let figure = |value: f64| unknown.unwrap_or_else(|| rounded(value));
        let max_abs = figure(row.accumulated.max_abs);
        let mean_abs = figure(row.accumulated.mean_abs);
        // NaN is not above anything, and yet it is no agreement.
        let exceeds = !max_abs.is_finite() || max_abs > tolerance;
        Self { name, row, values, max_abs, mean_abs, exceeds }
    }
}
