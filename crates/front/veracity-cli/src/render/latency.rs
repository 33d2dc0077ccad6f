//! How long steps took.

use veracity::results::{Latency, StepTiming};

use super::document::Document;
use super::table::{Cell, Column, Table};

/// Columns of one distribution of step times.
pub(crate) const COLUMNS: [Column; 5] = [
    Column::right("p50 us"),
    Column::right("p99 us"),
    Column::right("p99.9 us"),
    Column::right("max us"),
    Column::right("mean us"),
];

/// One distribution, for [`COLUMNS`]. A percentile that so few steps cannot tell from the slowest
/// one is not claimed.
pub(crate) fn cells(latency: &Latency) -> [Cell; 5] {
    let percentile = |secs, least_steps| {
        if latency.steps < least_steps { "-".to_owned() } else { micros(secs) }
    };
    [
        micros(latency.p50_secs),
        percentile(latency.p99_secs, 100),
        percentile(latency.p999_secs, 1000),
        micros(latency.max_secs),
        micros(latency.mean_secs),
    ]
    .map(Cell::from)
}

/// The times of a run, and the deadlines when there were any.
pub(crate) fn write(timing: &StepTiming, document: &mut Document) {
    let steps = timing.latency.steps;
    let mut table = Table::new([&[Column::right("steps")], &COLUMNS[..]].concat());
    table.row([&[Cell::from(steps.to_string())], &cells(&timing.latency)[..]].concat());
    document.table(table, 0);
    if let Some(period) = timing.period_secs {
        let missed = timing.missed_deadlines;
        let period = micros(period);
        document.line(format!("missed {missed} of {steps} deadlines, one every {period} us"));
    }
}

fn micros(secs: f64) -> String {
    format!("{:.1}", secs * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_measured_is_shown() {
        let latency = Latency {
            steps: 1000,
            p50_secs: 12.34e-6,
            p99_secs: 20e-6,
            p999_secs: 1.5e-3,
            max_secs: 0.25,
            mean_secs: 13e-6,
        };
        let few =
            StepTiming { latency: Latency { steps: 999, ..latency }, ..StepTiming::default() };
        let free = StepTiming { latency, ..StepTiming::default() };
        let paced = StepTiming { period_secs: Some(0.02), missed_deadlines: 1, ..free };
        let plain = |timing| {
            let mut document = Document::default();
            write(timing, &mut document);
            anstream::adapter::strip_str(&document.text(80)).to_string()
        };
        insta::assert_snapshot!(plain(&few), @"
        steps  p50 us  p99 us  p99.9 us    max us  mean us
          999    12.3    20.0         -  250000.0     13.0
        ");
        insta::assert_snapshot!(plain(&free), @"
        steps  p50 us  p99 us  p99.9 us    max us  mean us
         1000    12.3    20.0    1500.0  250000.0     13.0
        ");
        insta::assert_snapshot!(plain(&paced), @"
        steps  p50 us  p99 us  p99.9 us    max us  mean us
         1000    12.3    20.0    1500.0  250000.0     13.0
        missed 1 of 1000 deadlines, one every 20000.0 us
        ");
    }
}
