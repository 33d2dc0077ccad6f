//! What can be said in tables: the passes, what was taken back, the outputs, what was left alone.

use veracity_results::{CumulativeCheck, RewriteCheck, Verdict};

use super::super::table::{Cell, Column, Row, search, table};
use super::super::words::{class, number};
use super::Rewritten;
use crate::drift::verdict;
use crate::rewrites::words::summaries;

/// A row for each pass that saw something.
#[expect(clippy::cast_precision_loss, reason = "a key to sort by")]
pub(super) fn passes(of: &Rewritten<'_>, prefix: &str) -> String {
    let columns = [
        Column::text("pass"),
        Column::text("promises"),
        Column::number("matches"),
        Column::number("rewrites"),
        Column::number("proved"),
        Column::number("disproved"),
        Column::number("not comparable"),
        Column::number("taken back"),
        Column::number("left alone"),
        Column::number("largest error"),
    ];
    let amount = |amount: usize| Cell::Number(amount as f64, amount.to_string());
    let mut rows = Vec::new();
    for pass in summaries(of.log, of.checks) {
        let back = of.log.rejected.iter().filter(|one| one.pass == pass.name).count();
        let matches = pass.rewrites + pass.declined + back;
        if matches == 0 {
            continue;
        }
        let checked = of.checks.into_iter().flat_map(|checks| &checks.rewrites);
        let kept: Vec<&RewriteCheck> =
            checked.filter(|check| check.kept && check.pass == pass.name).collect();
        let known = |verdict| amount(kept.iter().filter(|check| check.verdict == verdict).count());
        let error = pass.error.map_or_else(String::new, number);
        let cells = vec![
            Cell::Code(pass.name),
            Cell::Short(pass.class),
            amount(matches),
            amount(pass.rewrites),
            known(Verdict::Proved),
            known(Verdict::Disproved),
            known(Verdict::NotComparable),
            amount(back),
            amount(pass.declined),
            Cell::Number(pass.error.unwrap_or(f64::NAN), error),
        ];
        rows.push(Row { id: None, verdict: None, cells });
    }
    if rows.is_empty() {
        return "<p>No pass found anything.</p>\n".to_owned();
    }
    table(&format!("{prefix}pass-table"), &columns, &rows)
}

/// What was judged wrong.
pub(super) fn taken_back(of: &Rewritten<'_>, prefix: &str) -> String {
    let row = |one: &veracity_results::RejectedRewrite| Row {
        id: None,
        verdict: Some(class(Verdict::Disproved)),
        cells: vec![
            Cell::Code(one.pass.clone()),
            Cell::Code(one.nodes.join(", ")),
            Cell::Text(one.reason.clone()),
            Cell::Text(one.problem.clone()),
        ],
    };
    let rows: Vec<Row> = of.log.rejected.iter().map(row).collect();
    let columns = ["pass", "nodes", "what the pass said", "what the check said"].map(Column::text);
    table(&format!("{prefix}taken-back-table"), &columns, &rows)
}

/// The outputs of the whole model beside those of the original.
pub(super) fn outputs(of: &Rewritten<'_>, prefix: &str) -> String {
    let columns = [
        Column::text("verdict"),
        Column::text("after"),
        Column::text("output"),
        Column::text("inputs"),
        Column::number("largest error"),
        Column::number("largest value"),
        Column::text("decided by"),
        Column::text("why"),
    ];
    let row = |check: &CumulativeCheck| {
        let after = if check.pass.is_empty() { "everything" } else { &check.pass };
        let cells = vec![
            Cell::State(verdict(check.verdict).to_owned()),
            Cell::Short(after.to_owned()),
            Cell::Code(check.output.clone()),
            Cell::Short(check.set.clone()),
            Cell::Number(check.max_abs, number(check.max_abs)),
            Cell::Number(check.scale, number(check.scale)),
            Cell::Short(check.rule.clone()),
            Cell::Text(check.reason.clone().unwrap_or_default()),
        ];
        Row { id: None, verdict: Some(class(check.verdict)), cells }
    };
    let checks = of.checks.into_iter().flat_map(|checks| &checks.cumulative);
    let rows: Vec<Row> = checks.map(row).collect();
    table(&format!("{prefix}output-table"), &columns, &rows)
}

/// What was seen and left alone, with the precondition that does not hold.
pub(super) fn declined(of: &Rewritten<'_>, prefix: &str) -> String {
    let row = |one: &veracity_results::DeclinedMatch| Row {
        id: None,
        verdict: None,
        cells: vec![
            Cell::Code(one.pass.clone()),
            Cell::Code(one.name.clone()),
            Cell::Text(one.reason.clone()),
        ],
    };
    let rows: Vec<Row> = of.log.declined.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let id = format!("{prefix}declined-table");
    let columns = ["pass", "node", "precondition that does not hold"].map(Column::text);
    search(&id, "pass, node, reason") + &table(&id, &columns, &rows)
}
