//! The error of a roll-out against time: a bar for each of the worst ports.

use unicode_width::UnicodeWidthStr as _;
use veracity_results::{RolloutPort, RolloutProof};

use super::page::{Page, TextOptions};
use crate::drift::fitted;
use crate::plain::number;
use crate::spark::Spark;

/// Ports that have a bar.
const MOST_BARS: usize = 3;

/// Columns of a name.
const MAX_NAME: usize = 28;

/// Columns of a bar.
const MAX_BAR: usize = 60;

/// Bars on one scale, the worst port first. Nothing where nothing was off, or no time is known.
pub(super) fn write(rollout: &RolloutProof, options: &TextOptions, page: &mut Page<'_>) {
    let worst = |port: &RolloutPort| port.over_time.max_abs.iter().copied().fold(0.0, f64::max);
    let mut ports: Vec<&RolloutPort> =
        rollout.ports.iter().filter(|port| worst(port) > 0.0 && rollout.ticks > 1).collect();
    ports.sort_by(|left, right| worst(right).total_cmp(&worst(left)));
    let mut ports = first_of_each_source(ports);
    ports.truncate(MOST_BARS);
    let name = ports.iter().map(|port| port.port.width()).max().unwrap_or(0).min(MAX_NAME);
    let columns = options.width.saturating_sub(name + 4).clamp(1, MAX_BAR);
    let errors = ports.iter().flat_map(|port| port.over_time.max_abs.iter().copied());
    let Some(spark) = Spark::new(errors, columns) else { return };
    let [lowest, highest] = <[f64; 2]>::from(spark.range()).map(number);
    page.line(0, &format!("error over time: ▁ is {lowest}, █ is {highest}, · is none"));
    for port in ports {
        let bar = spark.bar(&port.over_time.max_abs);
        page.row(&format!("  {}  {bar}", fitted(&port.port, name)));
    }
}

/// What several nodes read is shown once.
fn first_of_each_source<'p>(ports: Vec<&'p RolloutPort>) -> Vec<&'p RolloutPort> {
    let mut sources: Vec<&str> = Vec::new();
    let mut first: Vec<&'p RolloutPort> = Vec::new();
    for port in ports {
        if !sources.contains(&port.source.as_str()) {
            sources.push(&port.source);
            first.push(port);
        }
    }
    first
}
