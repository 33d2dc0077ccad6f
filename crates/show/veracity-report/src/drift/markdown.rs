//! A drift report as Markdown, for comments on changes and for wikis.

use veracity_results::{DriftGroup, DriftReport, DriftRow};

use super::words::{cause_line, coverage_lines, shape, verdict, verdict_line};
use crate::markdown::{code, prose};
use crate::python::exponential;

/// Rows of the table; the worst come first.
const MOST_ROWS: usize = 30;

/// Groups of a roll-up.
const MOST_GROUPS: usize = 20;

/// A drift report as Markdown.
pub fn markdown(report: &DriftReport) -> String {
    let session = &report.session;
    let mut lines = vec![format!("# Drift: {}", prose(&report.model)), String::new()];
    lines.push(format!("**{}**", prose(&verdict_line(report))));
    lines.push(String::new());
    if !report.reference.is_empty() && !report.candidate.is_empty() {
        lines.push(format!(
            "- {} compared with {}",
            prose(&report.candidate),
            prose(&report.reference)
        ));
    }
    let engine = format!("{} {} ({})", session.engine, session.engine_version, session.device);
    lines.push(format!("- engine: {}", prose(&engine)));
    lines.extend(coverage_lines(report).iter().map(|line| format!("- {line}")));
    lines.extend(
        report.reasons.iter().map(|reason| format!("- reason: {}", prose(&reason.message))),
    );
    lines.extend(report.notes.iter().map(|note| format!("- note: {}", prose(note))));
    lines.extend(origin(report));
    lines.extend(table(report));
    lines.extend(groups("By module", &report.by_module()));
    lines.extend(groups("By operator", &report.by_op_type()));
    lines.extend(not_mapped(report));
    lines.join("\n") + "\n"
}

fn origin(report: &DriftReport) -> Vec<String> {
    let row = report.rows.iter().find(|row| Some(&row.name) == report.origin.as_ref());
    let Some(row) = row else { return Vec::new() };
    let mut lines = vec![String::new(), "## Origin".to_owned(), String::new()];
    lines.push(format!("{} ({}), {}", code(&row.name), prose(&row.op_type), prose(&shape(row))));
    lines.push(String::new());
    for (label, text) in [("module", &row.module), ("source", &row.source)] {
        if !text.is_empty() {
            lines.push(format!("- {label}: {}", code(text)));
        }
    }
    let (error, budget) = (number(row.introduced.largest()), number(row.budget));
    match &row.problem {
        None if row.element.as_ref().is_some_and(|one| one.strain() > 1.0) => {
            let one = row.element.as_ref();
            lines.extend(one.map(|one| {
                let (error, budget) =
                    (number((one.candidate - one.reference).abs()), number(one.budget));
                format!("- introduces {error} at {:?}; its budget there is {budget}", one.index)
            }));
        }
        Some(problem) => lines.push(format!("- {}", prose(problem))),
        None => lines.push(format!("- introduces {error}; its budget is {budget}")),
    }
    lines.extend(row.cause.iter().map(|cause| format!("- cause: {}", prose(&cause_line(cause)))));
    lines
}

fn table(report: &DriftReport) -> Vec<String> {
    if report.rows.is_empty() {
        return Vec::new();
    }
    let mut rows: Vec<&DriftRow> = report.rows.iter().collect();
    rows.sort_by(|left, right| right.strain().total_cmp(&left.strain()));
    let mut lines = vec![String::new(), "## Worst operators".to_owned(), String::new()];
    lines
        .push("| value | operator | module | introduced | budget | accumulated | verdict |".into());
    lines.push("|---|---|---|---:|---:|---:|---|".to_owned());
    lines.extend(rows.iter().take(MOST_ROWS).map(|row| {
        format!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            code(&row.name),
            code(&row.op_type),
            code(&row.module),
            number(row.introduced.largest()),
            number(row.budget),
            number(row.accumulated.largest()),
            verdict(row.verdict)
        )
    }));
    lines.extend(rest(rows.len(), MOST_ROWS));
    lines
}

fn groups(title: &str, groups: &[DriftGroup<'_>]) -> Vec<String> {
    if groups.len() < 2 {
        return Vec::new();
    }
    let mut sorted: Vec<&DriftGroup<'_>> = groups.iter().collect();
    sorted.sort_by(|left, right| right.strain.total_cmp(&left.strain));
    let mut lines = vec![String::new(), format!("## {title}"), String::new()];
    lines.push("| | rows | disproved | introduced | accumulated |".to_owned());
    lines.push("|---|---:|---:|---:|---:|".to_owned());
    lines.extend(sorted.iter().take(MOST_GROUPS).map(|group| {
        let name = if group.name.is_empty() { "(none)" } else { group.name };
        let [introduced, accumulated] = [group.introduced, group.accumulated].map(number);
        let (rows, disproved) = (group.rows, group.disproved);
        format!("| {} | {rows} | {disproved} | {introduced} | {accumulated} |", code(name))
    }));
    lines.extend(rest(sorted.len(), MOST_GROUPS));
    lines
}

fn not_mapped(report: &DriftReport) -> Vec<String> {
    let lost = report.unmapped.iter().filter_map(|value| {
        let reason = prose(value.reason.as_ref()?);
        Some(format!("- {} ({}): {reason}", code(&value.name), prose(&value.op_type)))
    });
    let program = report.program.iter().filter(|value| !value.reason.is_empty());
    let program = program.map(|value| {
        let reason = prose(&value.reason);
        format!("- {} ({}): {reason}", code(&value.name), prose(&value.target))
    });
    let lines: Vec<String> = lost.chain(program).collect();
    if lines.is_empty() {
        return lines;
    }
    [vec![String::new(), "## Not mapped".to_owned(), String::new()], lines].concat()
}

fn rest(all: usize, shown: usize) -> Option<String> {
    (all > shown).then(|| format!("\n… and {} more", all - shown))
}

fn number(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { exponential(value) }
}
