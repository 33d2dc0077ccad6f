//! A drift report as a screen: answer and coverage first, then the origin, the worst operators, the
//! error over depth, the modules; the counts last.

use std::fmt::Write as _;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};
use veracity_results::{DriftReport, DriftRow, ModuleGroup, Verdict};

use super::words::{cause_line, coverage_lines, verdict};
use crate::plain::{count, printable};
use crate::spark::Spark;
use crate::text::page::Page;
use crate::{TextOptions, Tone};

/// Modules that are shown.
const MOST_MODULES: usize = 6;

/// Values without a counterpart, notes and reasons that are shown.
const MOST_REMARKS: usize = 3;

/// Columns of a row before the text columns: three numbers.
const NUMBERS: usize = 36;

/// A drift report for people.
pub fn text(report: &DriftReport, options: &TextOptions) -> String {
    let mut page = Page::new(options);
    write_answer(report, &mut page);
    write_worst(report, options, &mut page);
    write_depth(report, options, &mut page);
    write_modules(report, options, &mut page);
    write_remarks(report, &mut page);
    write_counts(report, &mut page);
    page.finish()
}

fn write_answer(report: &DriftReport, page: &mut Page<'_>) {
    let session = &report.session;
    let engine = format!("on {} {} ({})", session.engine, session.engine_version, session.device);
    let answer = format!("{}: {}", report.model, verdict(report.verdict));
    page.headed(&answer, tone(report.verdict), &engine);
    if !report.reference.is_empty() && !report.candidate.is_empty() {
        page.line(0, &format!("compared: {} with {}", report.candidate, report.reference));
    }
    for line in coverage_lines(report) {
        page.line(0, &line);
    }
    for reason in report.reasons.iter().take(MOST_REMARKS) {
        page.headed("reason:", tone(report.verdict), &reason.message);
    }
    more(report.reasons.len(), MOST_REMARKS, "reasons", page);
    if let Some(origin) = origin(report) {
        write_origin(origin, page);
    }
    if let Some(name) = &report.drift_origin
        && report.drift_origin != report.origin
    {
        let above = format!("above {} first at {name}", figure(report.tolerance));
        page.item("accumulated", Tone::Heading, &above);
    }
}

/// The row of the first operator that is wrong.
fn origin(report: &DriftReport) -> Option<&DriftRow> {
    let name = report.origin.as_ref()?;
    report.rows.iter().find(|row| row.name == *name)
}

fn write_origin(row: &DriftRow, page: &mut Page<'_>) {
    let place = [("in", &row.module), ("at", &row.source)];
    let place: Vec<String> = place
        .iter()
        .filter(|(_, what)| !what.is_empty())
        .map(|(how, what)| format!(" {how} {what}"))
        .collect();
    page.headed("origin:", Tone::Bad, &format!("{} ({}){}", row.name, row.op_type, place.concat()));
    if let Some(problem) = &row.problem {
        page.line(4, problem);
    } else {
        page.line(4, &introduces(row));
    }
    if let Some(wide) = &row.float64 {
        let (ours, theirs) = (figure(wide.reference), figure(wide.candidate));
        page.line(4, &format!("against float64: original {ours}, export {theirs}"));
    }
    if let Some(cause) = &row.cause {
        page.line(4, &format!("cause: {}", cause_line(cause)));
    }
}

/// What an operator introduces, where it has most of what it may.
fn introduces(row: &DriftRow) -> String {
    let times = times(row);
    match &row.element {
        Some(element) if element.strain() > 1.0 => {
            let error = figure((element.candidate - element.reference).abs());
            let budget = figure(element.budget);
            format!("introduces {error} at {:?}, {times} its budget of {budget}", element.index)
        }
        Some(_) if row.introduced.largest().is_finite() => {
            let error = figure(row.introduced.largest());
            format!("introduces {error}, and errors point one way: {times} what roundings do")
        }
        _ => {
            let (error, budget) = (figure(row.introduced.largest()), figure(row.budget));
            format!("introduces {error}, {times} its budget of {budget}")
        }
    }
}

fn times(row: &DriftRow) -> String {
    match row.strain() {
        strain if !strain.is_finite() => "beyond".to_owned(),
        strain if strain < 1000.0 => format!("{strain:.1} times"),
        strain => format!("{strain:.1e} times"),
    }
}

fn write_worst(report: &DriftReport, options: &TextOptions, page: &mut Page<'_>) {
    if report.rows.is_empty() {
        return;
    }
    let mut rows: Vec<&DriftRow> = report.rows.iter().collect();
    rows.sort_by(|left, right| right.strain().total_cmp(&left.strain()));
    let most = options.most.min(MAX_ROWS);
    rows.truncate(most);
    let rest = options.width.saturating_sub(NUMBERS + 4);
    let longest = |of: fn(&DriftRow) -> &str, head: &str| {
        rows.iter().map(|row| of(row).width()).max().unwrap_or_default().max(head.len())
    };
    let operator = longest(|row| &row.op_type, "operator").min(MAX_OPERATOR);
    let value = longest(|row| &row.name, "value").min((rest - operator.min(rest)) * 3 / 5);
    let module = rest.saturating_sub(operator + value);
    let texts = |texts: [&str; 3]| -> String {
        let widths = [operator, value, module];
        let cells = texts.iter().zip(widths).map(|(text, width)| fitted(text, width));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    page.row("");
    let head = texts(["operator", "value", "module"]);
    page.row(&format!("{:<11}{:<11}{:<13} {head}", "introduced", "budget", "accumulated"));
    for row in rows {
        let mark = match row.verdict {
            Verdict::Proved => ' ',
            Verdict::Disproved => '✗',
            Verdict::Conditional | Verdict::NotComparable => '?',
        };
        let numbers = [row.introduced.largest(), row.budget, row.accumulated.largest()].map(figure);
        let texts = texts([&row.op_type, &row.name, &row.module]);
        let [introduced, budget, accumulated] = numbers;
        page.row(&format!("{introduced:<11}{budget:<11}{accumulated:<12}{mark} {texts}"));
    }
    more(report.rows.len(), most, "that are better", page);
}

/// Rows of the table.
const MAX_ROWS: usize = 6;

/// Columns of an operator.
const MAX_OPERATOR: usize = 18;

fn write_depth(report: &DriftReport, options: &TextOptions, page: &mut Page<'_>) {
    let introduced: Vec<f64> = report.rows.iter().map(|row| row.introduced.largest()).collect();
    let accumulated: Vec<f64> = report.rows.iter().map(|row| row.accumulated.largest()).collect();
    let columns = options.width.saturating_sub(12).clamp(1, 68);
    let all = introduced.iter().chain(&accumulated).copied();
    let Some(spark) = Spark::new(all, columns) else { return };
    let (lowest, highest) = spark.range();
    page.row("");
    let scale = format!("error over depth: ▁ is {}, █ is {}", figure(lowest), figure(highest));
    page.line(0, &format!("{scale}, · is none"));
    page.row(&format!("introduced  {}", spark.bar(&introduced)));
    page.row(&format!("accumulated {}", spark.bar(&accumulated)));
}

/// As many levels of the tree as fit; where not even the first does, its worst modules.
fn write_modules(report: &DriftReport, options: &TextOptions, page: &mut Page<'_>) {
    let tree = report.module_tree();
    let up_to = |depth: usize| tree.iter().filter(|module| module.depth <= depth).count();
    let deepest = tree.iter().map(|module| module.depth).max().unwrap_or_default();
    let depth = (0..=deepest).take_while(|depth| up_to(*depth) <= MOST_MODULES).last();
    let all = up_to(depth.unwrap_or_default());
    let mut shown: Vec<&ModuleGroup<'_>> =
        tree.iter().filter(|module| module.depth <= depth.unwrap_or_default()).collect();
    if all < 2 {
        return;
    }
    if depth.is_none() {
        shown.sort_by(|left, right| right.group.strain.total_cmp(&left.group.strain));
        shown.truncate(MOST_MODULES);
    }
    page.row("");
    page.row("by module, largest error introduced and accumulated");
    for module in shown {
        let group = &module.group;
        let own = group.name.rsplit('.').next().filter(|name| !name.is_empty());
        let name = format!("{}{}", "  ".repeat(module.depth), own.unwrap_or("(no module)"));
        let name = fitted(&name, options.width.saturating_sub(48).clamp(8, 40));
        let [introduced, accumulated] = [group.introduced, group.accumulated].map(figure);
        let mut line = format!("{name} {introduced:<10} {accumulated:<10} ");
        line += &count(group.rows, "row");
        if group.disproved > 0 {
            let _ = write!(line, ", {} disproved", group.disproved);
        }
        page.row(&line);
    }
    if depth.is_none() {
        more(all, MOST_MODULES, "modules that are better", page);
    }
}

fn write_remarks(report: &DriftReport, page: &mut Page<'_>) {
    let lost = report.unmapped.iter().filter_map(|value| Some((value, value.reason.as_ref()?)));
    let mut remarks: Vec<String> = lost
        .map(|(value, reason)| format!("{} ({}): {reason}", value.name, value.op_type))
        .collect();
    let program = report.program.iter().filter(|value| !value.reason.is_empty());
    remarks.extend(
        program.map(|value| format!("{} ({}): {}", value.name, value.target, value.reason)),
    );
    let doubts = report.rows.iter().filter(|row| row.verdict == Verdict::NotComparable);
    let doubts: Vec<String> = doubts
        .filter_map(|row| {
            Some(format!("{} ({}): {}", row.name, row.op_type, row.problem.as_ref()?))
        })
        .collect();
    if !remarks.is_empty() || !doubts.is_empty() || !report.notes.is_empty() {
        page.row("");
    }
    for doubt in doubts.iter().take(MOST_REMARKS) {
        page.item("not comparable", Tone::Doubt, doubt);
    }
    more(doubts.len(), MOST_REMARKS, "that are not comparable", page);
    for remark in remarks.iter().take(MOST_REMARKS) {
        page.item("not mapped", Tone::Doubt, remark);
    }
    more(remarks.len(), MOST_REMARKS, "that are not mapped", page);
    for note in report.notes.iter().take(MOST_REMARKS) {
        page.item("note", Tone::Heading, note);
    }
    more(report.notes.len(), MOST_REMARKS, "notes", page);
}

fn write_counts(report: &DriftReport, page: &mut Page<'_>) {
    let counts = report.counts();
    let parts = [
        (Tone::Good, counts.proved, "proved"),
        (Tone::Bad, counts.disproved, "disproved"),
        (Tone::Doubt, counts.not_comparable, "not comparable"),
    ];
    let mut line = Vec::new();
    for (index, (tone, amount, word)) in parts.into_iter().enumerate() {
        if index > 0 {
            line.push((None, ", ".to_owned()));
        }
        line.push(((amount > 0).then_some(tone), format!("{amount} {word}")));
    }
    page.last(&line);
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Proved => Tone::Good,
        Verdict::Disproved => Tone::Bad,
        Verdict::Conditional | Verdict::NotComparable => Tone::Doubt,
    }
}

/// An error in few columns.
fn figure(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { format!("{value:.2e}") }
}

fn more(all: usize, shown: usize, of_what: &str, page: &mut Page<'_>) {
    if all > shown {
        page.line(0, &format!("… and {} more {of_what}", all - shown));
    }
}

/// Exactly as wide: what is too long loses its beginning, which is what names share.
pub(crate) fn fitted(text: &str, width: usize) -> String {
    let text = printable(text);
    let mut kept = text.into_owned();
    if kept.width() > width {
        let mut room = width.saturating_sub(1);
        let tail: Vec<char> = kept
            .chars()
            .rev()
            .take_while(|character| {
                let wide = character.width().unwrap_or(0);
                let fits = wide <= room;
                room = room.saturating_sub(if fits { wide } else { room });
                fits
            })
            .collect();
        kept = std::iter::once('…').chain(tail.into_iter().rev()).collect();
    }
    let missing = width.saturating_sub(kept.width());
    kept + &" ".repeat(missing)
}
