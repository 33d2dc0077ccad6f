//! Colours for a picture of the graph: node data for Model Explorer.
//!
//! The value of a node is what its operator introduces, as a part of its budget. There is no graph
//! id in the file, so that it fits whatever graph is open. Nodes go by their names, as in the picture;
//! a node without a name goes by its value. Of several outputs the worst counts.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use veracity_results::{DriftReport, DriftRow, Verdict};

use crate::python;

/// Stands for what no number says: JSON has no infinity, and a gradient could not show it.
const OUT_OF_SCALE: f64 = 1e9;

/// Shades up to these parts of a budget; what is above has that of the verdict.
const SHADES: [(f64, &str); 5] =
    [(0.0, "#f1f8f4"), (0.1, "#c8e6d0"), (0.5, "#f9e8a0"), (1.0, "#f4b860"), (OUT_OF_SCALE, BAD)];

const BAD: &str = "#c62828";
const DOUBT: &str = "#8e7cc3";

/// Node data for Model Explorer, as JSON.
pub fn overlay(report: &DriftReport) -> String {
    let mut worst: Vec<(&str, &DriftRow)> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for row in &report.rows {
        let key = if row.node.is_empty() { row.name.as_str() } else { row.node.as_str() };
        let at = *known.entry(key).or_insert(worst.len());
        match worst.get_mut(at) {
            None => worst.push((key, row)),
            Some((_, other)) if row.strain() > other.strain() => *other = row,
            Some(_) => {}
        }
    }
    let results: Map<String, Value> =
        worst.into_iter().map(|(key, row)| (key.to_owned(), result(row))).collect();
    let thresholds: Vec<Value> =
        SHADES.iter().map(|(value, colour)| json!({"value": value, "bgColor": colour})).collect();
    python::json(&json!({"results": results, "thresholds": thresholds}))
}

fn result(row: &DriftRow) -> Value {
    let value = row.strain().min(OUT_OF_SCALE);
    match row.verdict {
        Verdict::Proved => json!({"value": value}),
        Verdict::Disproved => json!({"value": value, "bgColor": BAD, "textColor": "#ffffff"}),
        Verdict::Conditional | Verdict::NotComparable => {
            json!({"value": value, "bgColor": DOUBT, "textColor": "#ffffff"})
        }
    }
}
