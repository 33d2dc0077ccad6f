//! Measures every mapped value twice and says which operator is guilty.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use veracity_compare::{MeasureOptions, measure};
use veracity_diag::progress::Stage;
use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Device, Engine, OptimizationLevel, SessionOptions};
use veracity_onnx::{Model, NodeFacts, ValueInfo};
use veracity_results::{
    DRIFT_SCHEMA_VERSION, DriftReport, DriftRow, ErrorFigures, GraphRecord, Measurement,
    SessionRecord, Tolerance, Verdict,
};
use veracity_tensor::{DType, SharedTensor, Tensor};

use crate::budget::Budget;
use crate::careful::{Careful, Got};
use crate::origin::unmapped;
use crate::provenance::provenance;
use crate::rules::{Allowance, Operator, Rules};
use crate::values::{Values, view};

/// Names of inputs that stand for values at which the graph is cut.
pub(crate) const GIVEN: &str = "veracity:given:";

/// Errors of a value that could not be computed.
pub(crate) const NOT_THERE: ErrorFigures =
    ErrorFigures { max_abs: f64::INFINITY, mean_abs: f64::INFINITY, mismatching: 0 };

/// How to compare.
#[derive(Clone, Debug)]
pub struct DriftOptions {
    /// Name of the model, for the report.
    pub model: String,
    /// What the references are, for the report.
    pub reference: String,
    /// What is compared with them, for the report.
    pub candidate: String,
    /// What an operator may introduce.
    pub budget: Budget,
    /// What single operators may introduce instead.
    pub rules: Rules,
    /// Absolute tolerance of the accumulated error, for `drift_origin`.
    pub tolerance: f64,
    /// Bytes of outputs that are computed at once; more values take more runs.
    pub memory_bytes: usize,
    /// Threads and device. The graph is run as it stands: an engine that rewrites it would not
    /// compute the values that are looked at.
    pub session: SessionOptions,
}

impl Default for DriftOptions {
    fn default() -> Self {
        let optimization = OptimizationLevel::None;
        let session =
            SessionOptions { optimization, device: Device::Cpu, ..SessionOptions::default() };
        Self {
            model: "model".to_owned(),
            reference: "the original".to_owned(),
            candidate: "the export".to_owned(),
            budget: Budget::default(),
            rules: Rules::default(),
            tolerance: 1e-4,
            memory_bytes: 256 << 20,
            session,
        }
    }
}

/// The most that an operator may introduce.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound {
    /// As an absolute error.
    pub(crate) limit: f64,
    /// Whether a rule says so, whatever the values are.
    pub(crate) is_absolute: bool,
}

impl DriftOptions {
    /// The most that an operator may introduce, by the rules and the budget.
    pub(crate) fn bound(&self, operator: Operator<'_>, dtype: DType, scale: f64) -> Bound {
        let relative =
            |budget: Budget| Bound { limit: budget.bound(dtype, scale), is_absolute: false };
        match self.rules.first_for(operator) {
            Some((_, Allowance::Absolute(limit))) => Bound { limit, is_absolute: true },
            Some((_, Allowance::Units(units))) => relative(Budget { units }),
            Some((_, Allowance::Skip)) | None => relative(self.budget),
        }
    }

    /// The rule that holds for a row.
    pub(crate) fn rule_for(&self, row: &DriftRow) -> Option<usize> {
        let operator = Operator { name: &row.name, op_type: &row.op_type, module: &row.module };
        self.rules.first_for(operator).map(|(rule, _)| rule)
    }
}

/// Compares an export with what the original computed, value by value.
///
/// `inputs` are those of the model, `references` what the original computed. Values of the export
/// run from its inputs are put into `kept`, if it is given, for [`crate::against_float64`].
/// Nothing to compare is not comparable, never "no drift".
pub fn drift(
    model: &Model,
    inputs: &Values,
    references: &Values,
    engine: &dyn Engine,
    options: &DriftOptions,
    mut kept: Option<&mut Values>,
) -> Result<DriftReport> {
    let nodes = model.nodes();
    let (mut rows, skipped) = rows(model, &nodes, references, options)?;
    let comparable: Vec<usize> = (0..rows.len()).filter(|&i| rows[i].problem.is_none()).collect();
    let names: Vec<String> = comparable.iter().map(|&index| rows[index].name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let cut = model.cut_at(&names, GIVEN)?;
    let mut stage = Stage::new("values", names.len());
    for chunk in chunks(&names, references, options.memory_bytes) {
        let size = chunk.len();
        let (wanted, into) = (&names[chunk.clone()], &comparable[chunk]);
        let wanted: Vec<(&str, &SharedTensor)> =
            wanted.iter().map(|name| (*name, &references[*name])).collect();
        let found = from_inputs(model, &wanted, inputs, engine, options)?;
        for ((name, found), &index) in wanted.iter().zip(found).zip(into) {
            let Got::Value(found) = found else {
                rows[index].accumulated = NOT_THERE;
                continue;
            };
            rows[index].accumulated = figures(&compare(&references[name.0], &found)?);
            if let Some(kept) = kept.as_deref_mut() {
                kept.insert(name.0.to_owned(), found);
            }
        }
        let found = on_references(&cut, &wanted, inputs, references, engine, options)?;
        for ((name, found), &index) in wanted.iter().zip(found).zip(into) {
            match found {
                Got::Value(found) => {
                    rows[index].introduced = figures(&compare(&references[name.0], &found)?);
                }
                Got::Problem(text) => {
                    rows[index].introduced = NOT_THERE;
                    rows[index].problem = Some(text);
                }
                Got::Unreached => rows[index].introduced = NOT_THERE,
            }
        }
        stage.advance(size);
    }
    rows.iter_mut().for_each(judge);
    let used = rows.iter().filter_map(|row| options.rule_for(row)).chain(skipped);
    let unused = options.rules.unused(&used.collect::<Vec<_>>());
    let mut report = report(model, rows, &nodes, engine, options);
    report.notes.extend(unused);
    Ok(report)
}

/// The values of a model that is run from its inputs.
fn from_inputs(
    model: &Model,
    wanted: &[(&str, &SharedTensor)],
    inputs: &Values,
    engine: &dyn Engine,
    options: &DriftOptions,
) -> Result<Vec<Got>> {
    let given = |name: &str| inputs.get(name).cloned();
    Careful { engine, given: &given, session: &options.session }.run(model, wanted)
}

/// The values of a model that is cut, each computed from references.
fn on_references(
    cut: &Model,
    wanted: &[(&str, &SharedTensor)],
    inputs: &Values,
    references: &Values,
    engine: &dyn Engine,
    options: &DriftOptions,
) -> Result<Vec<Got>> {
    let given = |name: &str| match name.strip_prefix(GIVEN) {
        Some(value) => references.get(value).cloned(),
        None => inputs.get(name).cloned(),
    };
    Careful { engine, given: &given, session: &options.session }.run(cut, wanted)
}

/// A row for each value that has a reference and a declared type, still without figures, and the
/// rules that left values out.
fn rows(
    model: &Model,
    nodes: &[NodeFacts],
    references: &Values,
    options: &DriftOptions,
) -> Result<(Vec<DriftRow>, Vec<usize>)> {
    let described: BTreeMap<String, ValueInfo> =
        model.described_values().into_iter().map(|info| (info.name.clone(), info)).collect();
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for node in nodes {
        let origin = provenance(node);
        for output in &node.outputs {
            let Some(reference) = references.get(output) else { continue };
            let Some(info) = described.get(output) else { continue };
            let operator =
                Operator { name: output, op_type: &node.op_type, module: &origin.module };
            if let Some((rule, Allowance::Skip)) = options.rules.first_for(operator) {
                skipped.push(rule);
                continue;
            }
            let itself = compare(reference, reference)?;
            let scale = itself.max_abs_reference;
            rows.push(DriftRow {
                name: output.clone(),
                op_type: node.op_type.clone(),
                node: node.name.clone(),
                module: origin.module.clone(),
                source: origin.source.clone(),
                dtype: reference.dtype().to_string(),
                shape: reference.shape().dims().to_vec(),
                scale,
                accumulated: ErrorFigures::default(),
                introduced: ErrorFigures::default(),
                float64: None,
                budget: options.bound(operator, reference.dtype(), scale).limit,
                verdict: not_a_number(&itself),
                problem: disagreement(info, reference),
                cause: None,
                reference: String::new(),
            });
        }
    }
    Ok((rows, skipped))
}

/// The values that can be compared with their references, and at which the graph is cut.
pub(crate) fn comparable_values(model: &Model, references: &Values) -> Vec<String> {
    let described = model.described_values().into_iter();
    let agreeing = described.filter(|info| {
        references.get(&info.name).is_some_and(|value| disagreement(info, value).is_none())
    });
    agreeing.map(|info| info.name).collect()
}

/// Where the original is NaN, agreement says nothing.
pub(crate) fn not_a_number(itself: &Measurement) -> Verdict {
    if itself.non_finite.reference_nan > 0 { Verdict::NotComparable } else { Verdict::Proved }
}

/// Why a value cannot be compared with its reference, if it cannot.
fn disagreement(info: &ValueInfo, reference: &SharedTensor) -> Option<String> {
    let dims = reference.shape().dims();
    let fits = info.dims.as_ref().is_none_or(|declared| {
        declared.len() == dims.len() && declared.iter().zip(dims).all(|(dim, &is)| dim.admits(is))
    });
    let same = info.dtype == Some(reference.dtype()) && fits;
    let (is, shape) = (reference.dtype(), reference.shape());
    (!same).then(|| format!("it is {info} in the export and {is} {shape} in the original"))
}

/// Ranges of values that fit into memory together; one that does not fit alone is alone.
fn chunks(names: &[&str], references: &Values, limit: usize) -> Vec<Range<usize>> {
    let mut chunks: Vec<Range<usize>> = Vec::new();
    let mut held = 0;
    for (index, name) in names.iter().enumerate() {
        let bytes = references[*name].byte_len();
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

fn compare(reference: &SharedTensor, candidate: &SharedTensor) -> Result<Measurement> {
    measure(&view(reference)?, &view(candidate)?, &MeasureOptions::new(Tolerance::EXACT))
}

/// How far a tensor is from another of its type and shape.
pub(crate) fn measured(reference: &Tensor, candidate: &Tensor) -> Result<Measurement> {
    measure(&reference.view(), &candidate.view(), &MeasureOptions::new(Tolerance::EXACT))
}

/// The same, as a row shows it.
pub(crate) fn tensor_figures(reference: &Tensor, candidate: &Tensor) -> Result<ErrorFigures> {
    Ok(figures(&measured(reference, candidate)?))
}

pub(crate) fn figures(measured: &Measurement) -> ErrorFigures {
    ErrorFigures {
        max_abs: measured.max_abs,
        mean_abs: measured.mean_abs,
        mismatching: measured.non_finite.mismatching,
    }
}

/// A row comes in as proved, or as not comparable where the original is NaN.
pub(crate) fn judge(row: &mut DriftRow) {
    let within = row.introduced.max_abs <= row.budget && row.introduced.mismatching == 0;
    if row.problem.is_some() || !within {
        row.verdict = Verdict::Disproved;
    } else if row.verdict == Verdict::NotComparable {
        row.problem = Some("the original has NaN here".to_owned());
    }
}

pub(crate) fn report(
    model: &Model,
    rows: Vec<DriftRow>,
    nodes: &[NodeFacts],
    engine: &dyn Engine,
    options: &DriftOptions,
) -> DriftReport {
    let compared: BTreeSet<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    let reasons = gaps(model, &compared);
    let Answer { verdict, origin, drift_origin } = answer(&rows, &reasons, options.tolerance);
    DriftReport {
        schema_version: DRIFT_SCHEMA_VERSION.to_owned(),
        model: options.model.clone(),
        reference: options.reference.clone(),
        candidate: options.candidate.clone(),
        command: String::new(),
        session: SessionRecord {
            node: options.model.clone(),
            engine: engine.name().to_owned(),
            engine_version: engine.version(),
            device: options.session.device.to_string(),
        },
        graph: graph(model),
        verdict,
        origin,
        drift_origin,
        tolerance: options.tolerance,
        unmapped: unmapped(nodes, &model.body_values(), &compared),
        program: Vec::new(),
        notes: Vec::new(),
        reasons,
        rows,
    }
}

/// What rows say together.
pub(crate) struct Answer {
    pub(crate) verdict: Verdict,
    pub(crate) origin: Option<String>,
    pub(crate) drift_origin: Option<String>,
}

/// The worst verdict, which a reason keeps from being a proof, and the first rows that are off.
pub(crate) fn answer(rows: &[DriftRow], reasons: &[Diagnostic], tolerance: f64) -> Answer {
    let first = |wrong: &dyn Fn(&DriftRow) -> bool| {
        rows.iter().find(|row| wrong(row)).map(|row| row.name.clone())
    };
    let above =
        |row: &DriftRow| row.accumulated.max_abs > tolerance || row.accumulated.mismatching > 0;
    let worst = rows.iter().map(|row| row.verdict).max().unwrap_or(Verdict::NotComparable);
    let least = if reasons.is_empty() { Verdict::Proved } else { Verdict::NotComparable };
    Answer {
        verdict: worst.max(least),
        origin: first(&|row| row.verdict == Verdict::Disproved),
        drift_origin: first(&above),
    }
}

fn graph(model: &Model) -> GraphRecord {
    let names = |values: Vec<ValueInfo>| values.into_iter().map(|value| value.name).collect();
    GraphRecord {
        opset: model.opset(),
        inputs: names(model.inputs()),
        outputs: names(model.outputs()),
        leaves: Vec::new(),
    }
}

/// What keeps an export from being proved although no row is wrong.
fn gaps(model: &Model, compared: &BTreeSet<&str>) -> Vec<Diagnostic> {
    let mut gaps = Vec::new();
    if compared.is_empty() {
        let message = "no value of the export has a counterpart: nothing was compared";
        gaps.push(Diagnostic::error(codes::COMPARE_NOTHING, message));
    }
    for output in model.outputs() {
        if !compared.contains(output.name.as_str()) {
            let message = format!("output {:?} was not compared", output.name);
            gaps.push(Diagnostic::error(codes::COMPARE_MISSING, message));
        }
    }
    gaps
}
