//! What was done to a model: answer and coverage first, then the passes, what was taken back, and
//! where outputs drifted.

mod difference;
pub(crate) mod words;

use std::fmt::Write as _;

use veracity_results::{RewriteCheck, RewriteChecks, RewriteLog, Verdict};

pub use difference::{diff_markdown, diff_text};
use words::{PassSummary, answer, figure, summaries, tone, verdict};

use crate::plain::count;
use crate::text::page::Page;
use crate::{TextOptions, Tone};

/// Rewrites that are shown one by one.
const MOST_REWRITES: usize = 8;

/// A transformation for people. `checks` is what checking it showed, if it was checked.
pub fn text(
    name: &str,
    log: &RewriteLog,
    checks: Option<&RewriteChecks>,
    options: &TextOptions,
) -> String {
    let mut page = Page::new(options);
    write_answer(name, log, checks, &mut page);
    write_passes(log, checks, options, &mut page);
    write_taken_back(log, &mut page);
    if let Some(checks) = checks {
        write_doubts(checks, &mut page);
        write_drift(checks, &mut page);
    }
    if !log.records.is_empty() || !log.rejected.is_empty() {
        write_counts(log, checks, &mut page);
    }
    page.finish()
}

/// The same as Markdown.
pub fn markdown(name: &str, log: &RewriteLog, checks: Option<&RewriteChecks>) -> String {
    let mut text = format!("# {name}\n\n{}\n\n", answer(log, checks));
    text += "| pass | class | rewrites | left alone | largest error | verdict |\n";
    text += "|---|---|---:|---:|---:|---|\n";
    for PassSummary { name, class, rewrites, declined, error, verdict: found } in
        summaries(log, checks)
    {
        let error = error.map_or_else(String::new, figure);
        let found = found.map_or("not checked", verdict);
        let _ =
            writeln!(text, "| {name} | {class} | {rewrites} | {declined} | {error} | {found} |");
    }
    if !log.rejected.is_empty() {
        text += "\n## Taken back\n\n";
        for one in &log.rejected {
            let nodes = one.nodes.join(", ");
            let _ = writeln!(text, "- {} at {nodes}: {}", one.pass, one.problem);
        }
    }
    text
}

fn write_answer(name: &str, log: &RewriteLog, checks: Option<&RewriteChecks>, page: &mut Page<'_>) {
    let (word, tone) = match checks {
        _ if log.records.is_empty() && log.rejected.is_empty() => ("unchanged", Tone::Good),
        Some(checks) => (verdict(checks.verdict), tone(checks.verdict)),
        None => ("not checked", Tone::Doubt),
    };
    page.headed(&format!("{name}: {word}"), tone, &answer(log, checks));
    if !log.settled {
        page.line(0, "a limit ended it: another run would find more");
    }
}

fn write_passes(
    log: &RewriteLog,
    checks: Option<&RewriteChecks>,
    options: &TextOptions,
    page: &mut Page<'_>,
) {
    let all = summaries(log, checks);
    let shown: Vec<&PassSummary> =
        all.iter().filter(|one| one.rewrites + one.declined > 0).collect();
    if shown.is_empty() {
        page.line(0, "no pass found anything");
        return;
    }
    let width = shown.iter().map(|one| one.name.len()).max().unwrap_or(0).max(4);
    page.row("");
    page.row(&format!(
        "{:<width$}  {:<12}{:>9}{:>12}  {:<10} verdict",
        "pass", "class", "rewrites", "left alone", "error"
    ));
    for one in shown.iter().take(options.most.max(shown.len())) {
        let error = one.error.map_or_else(|| "-".to_owned(), figure);
        let found = match (one.rewrites, one.verdict) {
            (0, _) => "-",
            (_, Some(found)) => verdict(found),
            (_, None) => "not checked",
        };
        page.row(&format!(
            "{:<width$}  {:<12}{:>9}{:>12}  {error:<10} {found}",
            one.name, one.class, one.rewrites, one.declined
        ));
    }
}

fn write_taken_back(log: &RewriteLog, page: &mut Page<'_>) {
    if log.rejected.is_empty() {
        return;
    }
    page.row("");
    for one in log.rejected.iter().take(MOST_REWRITES) {
        let nodes = one.nodes.join(", ");
        page.headed("taken back:", Tone::Bad, &format!("{} at {nodes}: {}", one.pass, one.problem));
    }
    more(log.rejected.len(), "that were taken back", page);
}

/// What stayed and is wrong, or could not be checked.
fn write_doubts(checks: &RewriteChecks, page: &mut Page<'_>) {
    let open: Vec<&RewriteCheck> = checks
        .rewrites
        .iter()
        .filter(|check| check.kept && check.verdict != Verdict::Proved)
        .collect();
    if !open.is_empty() {
        page.row("");
    }
    for check in open.iter().take(MOST_REWRITES) {
        let reason = check.reason.as_deref().unwrap_or("no reason was given");
        let head = format!("{}:", verdict(check.verdict));
        let rest = format!("rewrite {} of {} ({}): {reason}", check.index, check.pass, check.why);
        page.headed(&head, tone(check.verdict), &rest);
    }
    more(open.len(), "like these", page);
    for note in &checks.notes {
        page.item("note", Tone::Heading, note);
    }
}

fn write_drift(checks: &RewriteChecks, page: &mut Page<'_>) {
    let worst = checks.cumulative.iter().filter(|check| check.pass.is_empty());
    let worst = worst.max_by(|left, right| left.max_abs.total_cmp(&right.max_abs));
    if let Some(worst) = worst {
        let text = format!(
            "{} off by at most {} of {} on {} inputs ({})",
            worst.output,
            figure(worst.max_abs),
            figure(worst.scale),
            worst.set,
            worst.rule
        );
        page.row("");
        page.item("outputs", tone(worst.verdict), &text);
        if let Some(reason) = &worst.reason {
            page.line(4, reason);
        }
    }
}

fn write_counts(log: &RewriteLog, checks: Option<&RewriteChecks>, page: &mut Page<'_>) {
    page.row("");
    let rewrites = count(log.records.len(), "rewrite");
    let Some(checks) = checks else {
        page.last(&[(Some(Tone::Doubt), format!("{rewrites}, none of them checked"))]);
        return;
    };
    let coverage = &checks.coverage;
    page.last(&[
        (None, format!("{rewrites}: ")),
        (Some(Tone::Good), format!("{} proved", coverage.proved)),
        (None, ", ".to_owned()),
        (Some(Tone::Bad), format!("{} disproved", coverage.disproved)),
        (None, ", ".to_owned()),
        (Some(Tone::Doubt), format!("{} not comparable", coverage.not_comparable)),
        (None, format!("; {} taken back", log.rejected.len())),
    ]);
}

fn more(all: usize, what: &str, page: &mut Page<'_>) {
    if all > MOST_REWRITES {
        page.line(0, &format!("… and {} more {what}", all - MOST_REWRITES));
    }
}
