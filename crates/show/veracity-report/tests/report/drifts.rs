//! Drift reports of one kind each.

use veracity_diag::{Diagnostic, codes};
use veracity_results::{
    AgainstFloat64, Cause, CauseKind, DRIFT_SCHEMA_VERSION, DriftReport, DriftRow, ErrorFigures,
    GraphRecord, ProgramStatus, ProgramValue, SessionRecord, Unmapped, Verdict,
};

/// A row that is right: `accumulated` is its largest error end to end.
pub(crate) fn row(name: &str, op_type: &str, module: &str, accumulated: f64) -> DriftRow {
    DriftRow {
        name: name.into(),
        op_type: op_type.into(),
        node: format!("node_{name}"),
        module: module.into(),
        source: "/home/me/net.py:12".into(),
        dtype: "float32".into(),
        shape: vec![1, 8, 4, 4],
        scale: 2.0,
        accumulated: figures(accumulated),
        introduced: figures(0.0),
        float64: None,
        budget: 1.5e-5,
        element: None,
        bias: 0.0,
        verdict: Verdict::Proved,
        problem: None,
        cause: None,
        reference: String::new(),
    }
}

pub(crate) fn figures(max_abs: f64) -> ErrorFigures {
    ErrorFigures { max_abs, mean_abs: max_abs / 4.0, mismatching: 0 }
}

/// The row with an error of its own that is above its budget.
pub(crate) fn guilty(row: DriftRow, introduced: f64) -> DriftRow {
    DriftRow { introduced: figures(introduced), verdict: Verdict::Disproved, ..row }
}

/// The verdict is the worst of the rows; origins are the first that exceed.
pub(crate) fn report(rows: Vec<DriftRow>) -> DriftReport {
    let first = |wrong: &dyn Fn(&DriftRow) -> bool| {
        rows.iter().find(|row| wrong(row)).map(|row| row.name.clone())
    };
    DriftReport {
        schema_version: DRIFT_SCHEMA_VERSION.into(),
        model: "net".into(),
        reference: "torch 2.11.0".into(),
        candidate: "the export".into(),
        command: "veracity parity zoo:net".into(),
        session: SessionRecord {
            node: "net".into(),
            engine: "ort".into(),
            engine_version: "1.31.1".into(),
            device: "cpu".into(),
        },
        graph: GraphRecord {
            opset: Some(20),
            inputs: vec!["x".into()],
            outputs: rows.last().map(|row| row.name.clone()).into_iter().collect(),
            leaves: Vec::new(),
        },
        verdict: rows.iter().map(|row| row.verdict).max().unwrap_or(Verdict::NotComparable),
        origin: first(&|row| row.verdict == Verdict::Disproved),
        drift_origin: first(&|row| row.accumulated.largest() > 1e-4),
        tolerance: 1e-4,
        unmapped: Vec::new(),
        program: Vec::new(),
        notes: Vec::new(),
        reasons: Vec::new(),
        rows,
    }
}

/// Convolution, norm, a shared activation that is called twice, a sum that belongs to no leaf.
pub(crate) fn clean() -> DriftReport {
    report(vec![
        row("conv2d", "Conv", "stem.conv", 1e-6),
        row("relu", "Relu", "stem.act", 1e-6),
        row("conv2d_1", "Conv", "block.conv", 2.5e-6),
        row("add", "Add", "block", 3e-6),
        row("relu_1", "Relu", "stem.act", 3e-6),
        row("linear", "Gemm", "head", 0.0),
    ])
}

/// The same with a wrong weight in the second convolution, and everything that a report can say.
pub(crate) fn wrong() -> DriftReport {
    let mut found = clean();
    let conv = &found.rows[2];
    found.rows[2] = DriftRow {
        accumulated: figures(0.5),
        float64: Some(AgainstFloat64 { reference: 2e-7, candidate: 0.5 }),
        cause: Some(Cause {
            kind: CauseKind::WeightBitMismatch,
            detail: "block.conv.weight differs by 5e-2".into(),
            ruled_out: vec!["layout".into(), "threads".into()],
        }),
        ..guilty(conv.clone(), 0.5)
    };
    for (index, error) in [(3, 0.5), (4, 0.25), (5, 0.125)] {
        found.rows[index].accumulated = figures(error);
    }
    let lost = Unmapped {
        name: "val_9".into(),
        op_type: "Shape".into(),
        part_of: None,
        reason: Some("it feeds no compared value".into()),
    };
    let part = Unmapped {
        name: "val_3".into(),
        op_type: "MatMul".into(),
        part_of: Some("linear".into()),
        reason: None,
    };
    let program = [
        ("conv2d", ProgramStatus::Proved, vec![], ""),
        ("batch_norm", ProgramStatus::Folded, vec!["relu".to_owned()], ""),
        ("conv2d_1", ProgramStatus::Disproved, vec![], ""),
        ("sym_size", ProgramStatus::NotMapped, vec![], "no output depends on it"),
    ];
    let program = program.map(|(name, status, into, reason)| ProgramValue {
        name: name.into(),
        target: format!("aten.{name}.default"),
        status,
        into,
        reason: reason.into(),
    });
    DriftReport {
        unmapped: vec![lost, part],
        program: program.into(),
        notes: vec!["float64 is not known everywhere".into()],
        reasons: vec![Diagnostic::error(codes::OUTPUT_COUNT_DIFFERS, "one output too many")],
        verdict: Verdict::Disproved,
        origin: Some("conv2d_1".into()),
        drift_origin: Some("conv2d_1".into()),
        ..found
    }
}
