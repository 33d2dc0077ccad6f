//! How a bundle stands to a robot.

use veracity::RobotCheck;
use veracity::spec::contract::{Row, Status};

use super::document::Document;
use super::style::{self, paint};
use super::table::{Cell, Column, Table};
use super::text::printable;

/// Every difference in full, then everything that was compared or could not be, then one line that
/// sums up. `map` says what became of the map, if one was wanted.
pub(crate) fn write(check: &RobotCheck, map: Option<&str>, document: &mut Document) {
    document.gap();
    for found in &check.diagnostics {
        document.finding(found);
        document.gap();
    }
    if !check.rows.is_empty() {
        document.table(table(&check.rows), 0);
        document.gap();
    }
    let differing = check.rows.iter().filter(|row| row.status == Status::Differs).count();
    let (color, word) = if check.differs() {
        (style::ERROR, "the robot differs")
    } else if check.agrees {
        (style::GOOD, "the robot agrees")
    } else {
        (style::WARNING, "nothing was compared with the robot")
    };
    let mut parts = vec![format!("{} compared", check.compared)];
    if differing > 0 {
        let verb = if differing == 1 { "differs" } else { "differ" };
        parts.push(format!("{differing} {verb}"));
    }
    if check.unchecked > 0 {
        parts.push(format!("{} unchecked (one side is silent)", check.unchecked));
    }
    document.line(format!("{}: {}", paint(color, word), parts.join(", ")));
    if let Some(map) = map {
        document.line(printable(map));
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new([
        Column::left("subject").path(),
        Column::left("what"),
        Column::left("verdict"),
        Column::left("bundle").flexible(),
        Column::left("robot").flexible(),
    ]);
    for row in rows {
        let (style, word) = match row.status {
            Status::Differs => (style::ERROR, "differs"),
            Status::Unchecked => (style::WARNING, "unchecked"),
            Status::Agrees => (style::GOOD, "agrees"),
        };
        table.row([
            Cell::from(&row.subject),
            Cell::from(&row.aspect),
            Cell::styled(style, word),
            Cell::from(&row.bundle),
            Cell::from(&row.robot),
        ]);
    }
    table
}
