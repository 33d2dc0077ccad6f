//! Measures every mapped value twice and says which operator is guilty.

use std::collections::{BTreeMap, BTreeSet};

use veracity_compare::{MeasureOptions, measure};
use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Engine, OptimizationLevel, SessionOptions};
use veracity_onnx::{Model, NodeFacts};
use veracity_results::{
    AgainstFloat64, DRIFT_SCHEMA_VERSION, DriftReport, DriftRow, ErrorFigures, Measurement,
    SessionRecord, Tolerance, Verdict,
};
use veracity_tensor::{DType, Tensor, TensorView};

use crate::budget::Budget;
use crate::origin::unmapped;
use crate::provenance::provenance;
use crate::run::{by_name, run_once};

/// Names of inputs that stand for values at which the graph is cut.
const GIVEN: &str = "veracity:given:";

/// What the original computed, by the names of the export.
pub type References = BTreeMap<String, Tensor>;

/// How to compare.
#[derive(Clone, Debug)]
pub struct DriftOptions {
    /// Name of the model, for the report.
    pub model: String,
    /// What an operator may introduce.
    pub budget: Budget,
    /// Absolute tolerance of the accumulated error, for `drift_origin`.
    pub tolerance: f64,
    /// Bytes of outputs that are held at once; more values take more runs.
    pub memory_bytes: usize,
    /// Threads and device. The graph is run as it stands: an engine that rewrites it would not
    /// compute the values that are looked at.
    pub session: SessionOptions,
}

impl Default for DriftOptions {
    fn default() -> Self {
        let optimization = OptimizationLevel::None;
        Self {
            model: "model".to_owned(),
            budget: Budget::default(),
            tolerance: 1e-4,
            memory_bytes: 256 << 20,
            session: SessionOptions { optimization, ..SessionOptions::default() },
        }
    }
}

/// Compares an export with what the original computed, value by value.
///
/// `inputs` are those of the model. `wide` are the same values computed in float64, where they are
/// known. Nothing to compare is not comparable, never "no drift".
pub fn drift(
    model: &Model,
    inputs: &References,
    references: &References,
    wide: &References,
    engine: &dyn Engine,
    options: &DriftOptions,
) -> Result<DriftReport> {
    let nodes = model.nodes();
    let mut rows = rows(&nodes, references, options.budget);
    let mapped: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let mapped: Vec<&str> = mapped.iter().map(String::as_str).collect();
    let cut = model.cut_at(&mapped, GIVEN)?;
    for chunk in chunks(&rows, references, options.memory_bytes) {
        let names = &mapped[chunk.clone()];
        let marked = model.part_for(names)?;
        look(
            &marked,
            names,
            &by_name(inputs),
            references,
            engine,
            options,
            &mut |index, found| {
                let row = &mut rows[chunk.start + index];
                let reference = &references[&row.name];
                row.accumulated = figures(&compare(&reference.view(), found)?);
                row.float64 =
                    wide.get(&row.name).map(|wide| against(wide, reference, found)).transpose()?;
                Ok(())
            },
        )?;
        let part = cut.part_for(names)?;
        let given = |name: &str| match name.strip_prefix(GIVEN) {
            Some(value) => references.get(value).cloned(),
            None => inputs.get(name).cloned(),
        };
        look(&part, names, &given, references, engine, options, &mut |index, found| {
            let row = &mut rows[chunk.start + index];
            row.introduced = figures(&compare(&references[&row.name].view(), found)?);
            Ok(())
        })?;
    }
    rows.iter_mut().for_each(judge);
    Ok(report(rows, &nodes, engine, options))
}

fn look(
    model: &Model,
    names: &[&str],
    given: &dyn Fn(&str) -> Option<Tensor>,
    references: &References,
    engine: &dyn Engine,
    options: &DriftOptions,
    seen: &mut dyn FnMut(usize, &TensorView<'_>) -> Result<()>,
) -> Result<()> {
    let wanted: Vec<(&str, &Tensor)> =
        names.iter().map(|name| (*name, &references[*name])).collect();
    run_once(engine, model, given, &wanted, &options.session, seen)
}

/// A row for each value that has a reference, still without figures.
fn rows(nodes: &[NodeFacts], references: &References, budget: Budget) -> Vec<DriftRow> {
    let mut rows = Vec::new();
    for node in nodes {
        let origin = provenance(node);
        for output in &node.outputs {
            let Some(reference) = references.get(output) else { continue };
            let scale = scale(reference);
            rows.push(DriftRow {
                name: output.clone(),
                op_type: node.op_type.clone(),
                module: origin.module.clone(),
                source: origin.source.clone(),
                dtype: reference.dtype().to_string(),
                shape: reference.shape().dims().to_vec(),
                scale,
                accumulated: ErrorFigures::default(),
                introduced: ErrorFigures::default(),
                float64: None,
                budget: budget.bound(reference.dtype(), scale),
                verdict: Verdict::NotComparable,
            });
        }
    }
    rows
}

fn scale(reference: &Tensor) -> f64 {
    let view = reference.view();
    compare(&view, &view).map_or(0.0, |measured| measured.max_abs_reference)
}

/// Ranges of rows whose values fit into memory together; one that does not fit alone is alone.
fn chunks(rows: &[DriftRow], references: &References, limit: usize) -> Vec<std::ops::Range<usize>> {
    let mut chunks: Vec<std::ops::Range<usize>> = Vec::new();
    let mut held = 0;
    for (index, row) in rows.iter().enumerate() {
        let bytes = references[&row.name].bytes().len();
        match chunks.last_mut() {
            Some(last) if held + bytes <= limit => {
                last.end = index + 1;
                held += bytes;
            }
            _ => {
                chunks.push(index..index + 1);
                held = bytes;
            }
        }
    }
    chunks
}

fn compare(reference: &TensorView<'_>, candidate: &TensorView<'_>) -> Result<Measurement> {
    measure(reference, candidate, &MeasureOptions::new(Tolerance::EXACT))
}

fn figures(measured: &Measurement) -> ErrorFigures {
    ErrorFigures {
        max_abs: measured.max_abs,
        mean_abs: measured.mean_abs,
        mismatching: measured.non_finite.mismatching,
    }
}

/// Errors of both sides against float64.
fn against(wide: &Tensor, reference: &Tensor, found: &TensorView<'_>) -> Result<AgainstFloat64> {
    let error = |side: &TensorView<'_>| -> Result<f64> {
        Ok(compare(&wide.view(), &widened(side)?.view())?.max_abs)
    };
    Ok(AgainstFloat64 { reference: error(&reference.view())?, candidate: error(found)? })
}

/// A tensor of floats as float64.
fn widened(view: &TensorView<'_>) -> Result<Tensor> {
    let tensor = view.to_tensor();
    let values: Option<Vec<f64>> = match tensor.dtype() {
        DType::F64 => tensor.as_slice::<f64>().map(<[f64]>::to_vec),
        DType::F32 => {
            tensor.as_slice::<f32>().map(|values| values.iter().copied().map(f64::from).collect())
        }
        _ => None,
    };
    let values = values.ok_or_else(|| {
        let message = format!("{} cannot be compared with float64", tensor.dtype());
        Diagnostic::error(codes::DTYPE_UNSUPPORTED, message)
    })?;
    Tensor::from_slice(tensor.shape().clone(), &values)
}

fn judge(row: &mut DriftRow) {
    let within = row.introduced.max_abs <= row.budget && row.introduced.mismatching == 0;
    row.verdict = if within { Verdict::Proved } else { Verdict::Disproved };
}

fn report(
    rows: Vec<DriftRow>,
    nodes: &[NodeFacts],
    engine: &dyn Engine,
    options: &DriftOptions,
) -> DriftReport {
    let mapped: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let first = |wrong: &dyn Fn(&DriftRow) -> bool| {
        rows.iter().find(|row| wrong(row)).map(|row| row.name.clone())
    };
    let above = |row: &DriftRow| {
        row.accumulated.max_abs > options.tolerance || row.accumulated.mismatching > 0
    };
    let mut reasons = Vec::new();
    if rows.is_empty() {
        let message = "no value of the export has a counterpart: nothing was compared";
        reasons.push(Diagnostic::error(codes::COMPARE_NOTHING, message));
    }
    DriftReport {
        schema_version: DRIFT_SCHEMA_VERSION.to_owned(),
        model: options.model.clone(),
        session: SessionRecord {
            node: options.model.clone(),
            engine: engine.name().to_owned(),
            engine_version: engine.version(),
            device: "cpu".to_owned(),
        },
        verdict: rows.iter().map(|row| row.verdict).max().unwrap_or(Verdict::NotComparable),
        origin: first(&|row| row.verdict == Verdict::Disproved),
        drift_origin: first(&above),
        tolerance: options.tolerance,
        unmapped: unmapped(nodes, &mapped),
        reasons,
        rows,
    }
}
