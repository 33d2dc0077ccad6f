//! The files of a report, in the shape of per-layer parity reports: JSON with rows by layer, the
//! same as Markdown, causes, layer map; and what that shape has no place for.
//!
//! The JSON is what Python's `json.dumps(indent=2, sort_keys=True)` gives. The one difference: what is
//! no number is text (`"NaN"`, `"Infinity"`) where Python writes tokens that are not JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};
use veracity_results::DriftReport;

use super::causes::{LayerCause, causes};
use super::layers::{Layer, layers};
use super::overlay::overlay;
use crate::markdown::{code, prose};
use crate::python::{exponential, general, json as dumps, json_number};

/// One file of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    /// What its name ends with, after the name that all of them share.
    pub ending: &'static str,
    /// What is in it.
    pub text: String,
}

/// The files of a report.
///
/// # Panics
/// Never: a report has only text as keys.
pub fn files(report: &DriftReport) -> Vec<ReportFile> {
    let layers = layers(report);
    let causes = causes(report, &layers);
    let whole = serde_json::to_value(report).expect("a report has only text as keys");
    [
        (".json", dumps(&main(report, &layers))),
        (".md", page(report, &layers, &causes)),
        ("_causes.json", dumps(&side(report, &causes))),
        ("_layer_map.json", dumps(&map(report, &layers))),
        ("_model_explorer.json", overlay(report)),
        ("_drift.json", dumps(&whole)),
    ]
    .map(|(ending, text)| ReportFile { ending, text })
    .into()
}

/// Keys are sorted.
fn main(report: &DriftReport, layers: &[Layer<'_>]) -> Value {
    let row = |layer: &Layer<'_>| {
        json!({
            "exceeds_tol": layer.exceeds,
            "layer": layer.name,
            "max_abs_diff": json_number(layer.max_abs),
            "mean_abs_diff": json_number(layer.mean_abs),
            "shape": layer.row.shape,
        })
    };
    json!({
        "drift_origin": origin(layers),
        "layers": layers.iter().map(row).collect::<Vec<_>>(),
        "layers_exceeding": exceeding(layers),
        "layers_total": layers.len(),
        "model": report.model,
        "tolerance": json_number(report.tolerance),
    })
}

fn side(report: &DriftReport, causes: &[LayerCause<'_>]) -> Value {
    let cause = |found: &LayerCause<'_>| {
        let LayerCause { layer, cause, detail } = found;
        json!({"cause": cause, "detail": detail, "layer": layer})
    };
    json!({
        "causes": causes.iter().map(cause).collect::<Vec<_>>(),
        "model": report.model,
        "tolerance": json_number(report.tolerance),
    })
}

fn map(report: &DriftReport, layers: &[Layer<'_>]) -> Value {
    let graph = &report.graph;
    let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
    let outputs = graph.outputs.iter().map(String::as_str);
    let values = layers.iter().map(|layer| (layer.name.clone(), json!(layer.row.name)));
    json!({
        "model": report.model,
        "opset_version": graph.opset,
        "input_name": graph.inputs.first(),
        "final_output": graph.outputs.first(),
        "layers": names,
        "all_outputs": outputs.chain(names.iter().copied()).collect::<Vec<_>>(),
        "input_names": graph.inputs,
        "values": values.collect::<serde_json::Map<_, _>>(),
    })
}

/// The first layer in order that exceeds the tolerance.
fn origin<'l>(layers: &'l [Layer<'_>]) -> Option<&'l str> {
    layers.iter().find(|layer| layer.exceeds).map(|layer| layer.name.as_str())
}

fn exceeding(layers: &[Layer<'_>]) -> usize {
    layers.iter().filter(|layer| layer.exceeds).count()
}

fn page(report: &DriftReport, layers: &[Layer<'_>], causes: &[LayerCause<'_>]) -> String {
    let tolerance = general(report.tolerance);
    let (total, over) = (layers.len(), exceeding(layers));
    let origin = origin(layers).map_or("none".into(), prose);
    let mut lines = vec![
        format!("# Per-layer divergence: {}", prose(&report.model)),
        String::new(),
        format!("Tolerance: {tolerance}  ·  layers checked: {total}  ·  layers exceeding: {over}"),
        format!("Drift origin: {origin}"),
        String::new(),
    ];
    let (head, rule) = if causes.is_empty() { ("", "") } else { (" cause |", "---|") };
    lines.push(format!("| layer | shape | max_abs_diff | mean_abs_diff | exceeds_tol |{head}"));
    lines.push(format!("|---|---|---:|---:|:-:|{rule}"));
    lines.extend(layers.iter().map(|layer| line(layer, causes)));
    if total == 0 {
        // Silence is no agreement.
        lines.extend([String::new(), "Nothing was compared.".to_owned()]);
    } else if over == 0 {
        lines.push(String::new());
        lines.push(format!("No drift detected at tolerance {tolerance} across {total} layers."));
    }
    if !causes.is_empty() {
        lines.extend([String::new(), "## Cause attribution".to_owned(), String::new()]);
        lines.extend(causes.iter().map(|found| {
            let LayerCause { layer, cause, detail } = found;
            format!("- {} → **{cause}** ({})", code(layer), prose(detail))
        }));
    }
    lines.join("\n") + "\n"
}

fn line(layer: &Layer<'_>, causes: &[LayerCause<'_>]) -> String {
    let sizes: Vec<String> = layer.row.shape.iter().map(ToString::to_string).collect();
    let number = |value: f64| if value == 0.0 { "0.0".to_owned() } else { exponential(value) };
    let exceeds = if layer.exceeds { "yes" } else { "—" };
    let mut line = format!(
        "| {} | ({}) | {} | {} | {exceeds} |",
        code(&layer.name),
        sizes.join(","),
        number(layer.max_abs),
        number(layer.mean_abs),
    );
    if !causes.is_empty() {
        let found = causes.iter().find(|cause| cause.layer == layer.name);
        let cause = found.map_or("—".to_owned(), |found| format!("`{}`", found.cause));
        let _ = write!(line, " {cause} |");
    }
    line
}
