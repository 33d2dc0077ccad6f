//! How long steps took.

use veracity::results::{Latency, StepTiming};

use super::table::{Cell, Column, Table};

/// Columns of one distribution of step times.
pub(crate) const COLUMNS: [Column; 6] = [
    Column::right("steps"),
    Column::right("p50 us"),
    Column::right("p99 us"),
    Column::right("p99.9 us"),
    Column::right("max us"),
    Column::right("mean us"),
];

/// One distribution, for [`COLUMNS`].
pub(crate) fn cells(latency: &Latency) -> [Cell; 6] {
    [
        latency.steps.to_string(),
        micros(latency.p50_secs),
        micros(latency.p99_secs),
        micros(latency.p999_secs),
        micros(latency.max_secs),
        micros(latency.mean_secs),
    ]
    .map(Cell::from)
}

/// The times of a run, and the deadlines when there were any.
pub(crate) fn render(timing: &StepTiming, width: usize) -> String {
    let mut table = Table::new(COLUMNS);
    table.row(cells(&timing.latency));
    let mut text = table.render(0, width);
    if let Some(period) = timing.period_secs {
        let steps = timing.latency.steps;
        let missed = timing.missed_deadlines;
        text += &format!("missed {missed} of {steps} deadlines, one every {} us\n", micros(period));
    }
    text
}

fn micros(secs: f64) -> String {
    format!("{:.1}", secs * 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_mentioned_when_there_were_any() {
        let latency = Latency {
            steps: 1000,
            p50_secs: 12.34e-6,
            p99_secs: 20e-6,
            p999_secs: 1.5e-3,
            max_secs: 0.25,
            mean_secs: 13e-6,
        };
        let free = StepTiming { latency, ..StepTiming::default() };
        let paced = StepTiming { period_secs: Some(0.02), missed_deadlines: 1, ..free };
        let plain = |timing| anstream::adapter::strip_str(&render(timing, 80)).to_string();
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
