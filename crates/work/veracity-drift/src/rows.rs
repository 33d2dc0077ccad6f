//! One row for each value that is compared, and what rows say together.

use std::collections::{BTreeMap, BTreeSet};

use veracity_compare::{MeasureOptions, measure};
use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Device, Engine, OptimizationLevel, SessionOptions};
use veracity_onnx::{Model, NodeFacts, ValueInfo};
use veracity_results::{
    DRIFT_SCHEMA_VERSION, DriftReport, DriftRow, ErrorFigures, GraphRecord, Measurement,
    SessionRecord, Tolerance, Verdict,
};
use veracity_tensor::{DType, SharedTensor, Tensor};

use crate::budget::Budget;
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
    /// As a part of the values; `None` where a rule says how much, whatever the values are.
    pub(crate) relative: Option<f64>,
}

impl DriftOptions {
    /// The most that an operator may introduce, by the rules and the budget.
    pub(crate) fn bound(&self, operator: Operator<'_>, dtype: DType, scale: f64) -> Bound {
        let relative = |budget: Budget| Bound {
            limit: budget.bound(dtype, scale),
            relative: Some(budget.relative(dtype)).filter(|_| dtype.is_float()),
        };
        match self.rules.first_for(operator) {
            Some((_, Allowance::Absolute(limit))) => Bound { limit, relative: None },
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

/// A value that is to be compared.
pub(crate) struct Planned {
    pub(crate) name: String,
    /// Position of the node that gives it.
    node: usize,
    info: ValueInfo,
    /// The part of itself by which an element may be off.
    pub(crate) relative: Option<f64>,
    /// Its row, once its reference is there.
    pub(crate) row: Option<DriftRow>,
}

/// The expected values that have a declared type, in the order in which they are computed, and the
/// rules that left values out.
pub(crate) fn plan(
    model: &Model,
    nodes: &[NodeFacts],
    expected: &dyn Fn(&str) -> bool,
    options: &DriftOptions,
) -> (Vec<Planned>, Vec<usize>) {
    let described: BTreeMap<String, ValueInfo> =
        model.described_values().into_iter().map(|info| (info.name.clone(), info)).collect();
    let (mut planned, mut skipped) = (Vec::new(), Vec::new());
    for (position, node) in nodes.iter().enumerate() {
        let module = provenance(node).module;
        for name in node.outputs.iter().filter(|name| expected(name)) {
            let Some(info) = described.get(name).cloned() else { continue };
            let operator = Operator { name, op_type: &node.op_type, module: &module };
            if let Some((rule, Allowance::Skip)) = options.rules.first_for(operator) {
                skipped.push(rule);
                continue;
            }
            planned.push(Planned {
                name: name.clone(),
                node: position,
                info,
                relative: None,
                row: None,
            });
        }
    }
    (planned, skipped)
}

/// The row of a value, still without figures.
pub(crate) fn row(
    planned: &mut Planned,
    nodes: &[NodeFacts],
    reference: &SharedTensor,
    options: &DriftOptions,
) -> Result<DriftRow> {
    let (name, node) = (&planned.name, &nodes[planned.node]);
    let origin = provenance(node);
    let operator = Operator { name, op_type: &node.op_type, module: &origin.module };
    let itself = compare(reference, reference)?;
    let scale = itself.max_abs_reference;
    let bound = options.bound(operator, reference.dtype(), scale);
    planned.relative = bound.relative;
    Ok(DriftRow {
        name: name.clone(),
        op_type: node.op_type.clone(),
        node: node.name.clone(),
        module: origin.module,
        source: origin.source,
        dtype: reference.dtype().to_string(),
        shape: reference.shape().dims().to_vec(),
        scale,
        accumulated: ErrorFigures::default(),
        introduced: ErrorFigures::default(),
        float64: None,
        budget: bound.limit,
        element: None,
        bias: 0.0,
        verdict: not_a_number(&itself),
        problem: disagreement(&planned.info, reference),
        cause: None,
        reference: String::new(),
    })
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

/// How far a value is from its reference.
pub(crate) fn compare(reference: &SharedTensor, candidate: &SharedTensor) -> Result<Measurement> {
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
    if row.strain() > 1.0 {
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
