//! A drift report as a page.

use std::fmt::Write as _;

use veracity_results::{DriftGroup, DriftReport, DriftRow, ProgramStatus, Verdict};

use super::chart::{Frame, Point, Series, Style, chart};
use super::escape::escape;
use super::facts::{commands, facts};
use super::shell::Shell;
use super::table::{Cell, Column, Row, controls, end, table};
use super::tree::tree;
use super::words::{banner, class, number};
use crate::drift::{cause_line, coverage_lines, shape, verdict, verdict_line};

const COLUMNS: [Column; 14] = [
    Column::number("#"),
    Column::text("verdict"),
    Column::text("value"),
    Column::text("operator"),
    Column::text("module"),
    Column::text("source"),
    Column::text("shape"),
    Column::number("introduced"),
    Column::number("budget"),
    Column::number("of budget"),
    Column::number("accumulated"),
    Column::number("original vs float64"),
    Column::number("export vs float64"),
    Column::text("why"),
];

/// A drift report as one HTML file.
pub fn drift(report: &DriftReport) -> String {
    let mut page = Shell::new(&format!("Drift: {}", report.model), &head(report));
    page.section("depth", "Error over depth", &depth(report));
    page.section("causes", "Causes", &causes(report));
    page.section("operators", "Operators", &operators(report));
    page.section("modules", "By module", &tree(&report.module_tree(), number));
    page.section("sources", "By source line", &groups("by-source", &report.by_source()));
    page.section("types", "By operator type", &groups("by-type", &report.by_op_type()));
    page.section("unmapped", "Not compared", &unmapped(report));
    page.section("environment", "Environment", &environment(report));
    page.section("repeat", "How to repeat", &repeat(report));
    page.finish()
}

fn head(report: &DriftReport) -> String {
    let mut html = banner(class(report.verdict), &verdict_line(report));
    if let Some(index) =
        report.rows.iter().position(|row| Some(&row.name) == report.origin.as_ref())
    {
        let row = &report.rows[index];
        let _ = write!(
            html,
            "<p>Origin: <a href=\"#{}\"><code>{}</code></a> ({})",
            id(index),
            escape(&row.name),
            escape(&row.op_type)
        );
        for (how, what) in [("in", &row.module), ("at", &row.source)] {
            if !what.is_empty() {
                let _ = write!(html, " {how} <code>{}</code>", escape(what));
            }
        }
        if let Some(cause) = &row.cause {
            let _ = write!(html, "<br>Cause: {}", escape(&cause_line(cause)));
        }
        html += "</p>\n";
    }
    html += "<ul>\n";
    let reasons = report.reasons.iter().map(|reason| format!("reason: {}", reason.message));
    let notes = report.notes.iter().map(|note| format!("note: {note}"));
    for line in coverage_lines(report).into_iter().chain(reasons).chain(notes) {
        let _ = writeln!(html, "<li>{}</li>", escape(&line));
    }
    html + "</ul>\n"
}

fn depth(report: &DriftReport) -> String {
    let point = |(index, row): (usize, &DriftRow)| Point {
        title: title(row),
        target: id(index),
        is_wrong: row.verdict != Verdict::Proved,
        is_shown: true,
    };
    let points: Vec<Point> = report.rows.iter().enumerate().map(point).collect();
    let values = |of: fn(&DriftRow) -> f64| report.rows.iter().map(of).collect();
    let series = [
        Series { name: "budget", values: values(|row| row.budget), style: Style::Bound },
        Series {
            name: "accumulated",
            values: values(|row| row.accumulated.largest()),
            style: Style::Line,
        },
        Series {
            name: "introduced",
            values: values(|row| row.introduced.largest()),
            style: Style::Stems,
        },
    ];
    let frame = Frame {
        label: "Introduced and accumulated error of each operator",
        caption: "depth: operators in the order in which they run",
        width: 1000.0,
        height: 330.0,
    };
    chart(&frame, &points, &series)
}

/// What is shown beside a point of the chart.
fn title(row: &DriftRow) -> String {
    let mut title = format!(
        "{} ({}): introduced {}, accumulated {}",
        row.name,
        row.op_type,
        number(row.introduced.largest()),
        number(row.accumulated.largest())
    );
    for text in [&row.module, end(&row.source)] {
        if !text.is_empty() {
            title += "; ";
            title += text;
        }
    }
    title
}

fn operators(report: &DriftReport) -> String {
    let rows: Vec<Row> = report.rows.iter().enumerate().map(|(i, row)| operator(i, row)).collect();
    if rows.is_empty() {
        return "<p>Nothing was compared.</p>\n".to_owned();
    }
    controls("rows", "name, operator, module, line") + &table("rows", &COLUMNS, &rows)
}

#[expect(clippy::cast_precision_loss, reason = "no model has 2^52 operators")]
fn operator(index: usize, row: &DriftRow) -> Row {
    let figure = |value: f64| Cell::Number(value, number(value));
    let wide = |side: Option<f64>| match side {
        Some(value) => figure(value),
        None => Cell::Number(f64::NAN, String::new()),
    };
    let cause = row.cause.as_ref().map(cause_line);
    let why: Vec<String> = row.problem.clone().into_iter().chain(cause).collect();
    let cells = vec![
        Cell::Number(index as f64, (index + 1).to_string()),
        Cell::State(verdict(row.verdict).to_owned()),
        Cell::Code(row.name.clone()),
        Cell::Short(row.op_type.clone()),
        Cell::Code(row.module.clone()),
        Cell::Path(row.source.clone()),
        Cell::Short(shape(row)),
        figure(row.introduced.largest()),
        figure(row.budget),
        Cell::Number(row.strain(), share(row.strain())),
        figure(row.accumulated.largest()),
        wide(row.float64.map(|wide| wide.reference)),
        wide(row.float64.map(|wide| wide.candidate)),
        Cell::Text(why.join("; ")),
    ];
    Row { id: Some(id(index)), verdict: Some(class(row.verdict)), cells }
}

fn share(strain: f64) -> String {
    match strain {
        strain if !strain.is_finite() => "beyond".to_owned(),
        strain if strain < 100.0 => format!("{:.1} %", strain * 100.0),
        strain => format!("{strain:.1e} times"),
    }
}

fn groups(id: &str, groups: &[DriftGroup<'_>]) -> String {
    let columns = [
        Column::text("name"),
        Column::number("values"),
        Column::number("disproved"),
        Column::number("introduced"),
        Column::number("of budget"),
        Column::number("accumulated"),
    ];
    let rows: Vec<Row> = groups.iter().map(group).collect();
    table(id, &columns, &rows)
}

#[expect(clippy::cast_precision_loss, reason = "no model has 2^52 operators")]
fn group(group: &DriftGroup<'_>) -> Row {
    let name = if group.name.is_empty() { "(not known)" } else { group.name };
    let cells = vec![
        Cell::Code(name.to_owned()),
        Cell::Number(group.rows as f64, group.rows.to_string()),
        Cell::Number(group.disproved as f64, group.disproved.to_string()),
        Cell::Number(group.introduced, number(group.introduced)),
        Cell::Number(group.strain, share(group.strain)),
        Cell::Number(group.accumulated, number(group.accumulated)),
    ];
    Row { id: None, verdict: None, cells }
}

fn causes(report: &DriftReport) -> String {
    let mut html = String::new();
    for (index, row) in report.rows.iter().enumerate() {
        if let Some(cause) = &row.cause {
            let (name, cause) = (escape(&row.name), escape(&cause_line(cause)));
            let target = id(index);
            let _ =
                writeln!(html, "<li><a href=\"#{target}\"><code>{name}</code></a>: {cause}</li>");
        }
    }
    if html.is_empty() { html } else { format!("<ul>\n{html}</ul>\n") }
}

/// Values of the export that have no row, and tensors of the original that nothing was held against.
fn unmapped(report: &DriftReport) -> String {
    let row = |side: &str, name: &str, what: &str, why: String| Row {
        id: None,
        verdict: None,
        cells: vec![
            Cell::Short(side.to_owned()),
            Cell::Code(name.to_owned()),
            Cell::Short(what.to_owned()),
            Cell::Text(why),
        ],
    };
    let export = report.unmapped.iter().map(|value| {
        let part = value.part_of.as_ref().map(|whole| format!("part of {whole}"));
        let why = part.or_else(|| value.reason.clone()).unwrap_or_default();
        row("export", &value.name, &value.op_type, why)
    });
    let lost = |status| matches!(status, ProgramStatus::Folded | ProgramStatus::NotMapped);
    let program = report.program.iter().filter(|value| lost(value.status)).map(|value| {
        let folded = format!("folded into {}", value.into.join(", "));
        let why = if value.reason.is_empty() { folded } else { value.reason.clone() };
        row("original", &value.name, &value.target, why)
    });
    let rows: Vec<Row> = export.chain(program).collect();
    let columns = ["side", "name", "operator", "what became of it"].map(Column::text);
    table("not-compared", &columns, &rows)
}

fn environment(report: &DriftReport) -> String {
    let session = &report.session;
    let opset = report.graph.opset.map(|opset| opset.to_string());
    let facts_of = [
        ("reference", report.reference.clone()),
        ("candidate", report.candidate.clone()),
        ("engine", format!("{} {}", session.engine, session.engine_version)),
        ("device", session.device.clone()),
        ("operator set", opset.unwrap_or_default()),
        ("absolute tolerance of accumulated error", number(report.tolerance)),
        ("first above it", report.drift_origin.clone().unwrap_or_else(|| "none".to_owned())),
        ("inputs", report.graph.inputs.join(", ")),
        ("outputs", report.graph.outputs.join(", ")),
        ("schema", report.schema_version.clone()),
    ];
    facts(&facts_of)
}

/// What to type in, or what to call where it was no command.
fn repeat(report: &DriftReport) -> String {
    if !report.command.is_empty() {
        let what = "<p>In the folder in which it was done:</p>\n";
        return what.to_owned() + &commands(std::slice::from_ref(&report.command));
    }
    let is_torch = report.reference.starts_with("torch") || report.reference.is_empty();
    let call = if is_torch {
        "veracity.parity(MODEL, INPUTS).to_html(\"drift.html\")"
    } else {
        "veracity drift REFERENCE.onnx CANDIDATE.onnx --html drift.html"
    };
    let what = "<p>The results do not say with which command they were made. Such results come from:</p>\n";
    what.to_owned() + &commands(&[call.to_owned()])
}

fn id(index: usize) -> String {
    format!("row-{}", index + 1)
}
