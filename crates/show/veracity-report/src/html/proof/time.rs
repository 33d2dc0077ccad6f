//! The error of each port over the recorded episode.

use std::fmt::Write as _;

use veracity_results::{ErrorOverTime, Part, Proof, Role, RolloutPort, RolloutProof};

use super::super::chart::{Frame, Point, Series, Style, chart};
use super::super::escape::escape;
use super::super::words::{class, number};
use super::checks;
use crate::plain::count;

/// Pieces of an episode that have a point each; in a longer one the line says the same.
const MOST_POINTS: usize = 64;

/// What was run, and a chart for each port that is not equal throughout.
pub(super) fn over_time(proof: &Proof) -> String {
    let mut html = extent(&proof.rollout);
    let mut charts = String::new();
    let (mut equal, mut unknown) = (0, 0);
    for (index, row) in proof.rows().iter().enumerate() {
        let Part::RolloutPort(_, port) = row.part else { continue };
        if port.over_time.is_empty() {
            unknown += 1;
        } else if port.over_time.max_abs.iter().all(|error| *error == 0.0) {
            equal += 1;
        } else {
            charts += &card(port, &checks::id(index));
        }
    }
    if !charts.is_empty() {
        let _ = writeln!(html, "<div class=\"cards\">\n{charts}</div>");
    }
    if equal > 0 {
        let ports = count(equal, "port");
        let _ = writeln!(html, "<p class=\"quiet\">Without any error at every tick: {ports}.</p>");
    }
    if unknown > 0 {
        let ports = count(unknown, "port");
        let _ = writeln!(
            html,
            "<p class=\"quiet\">The proof does not say when the errors of {ports} were made.</p>"
        );
    }
    html
}

fn extent(rollout: &RolloutProof) -> String {
    let mut text = match rollout.verdict {
        None => "The bundle was not run over time".to_owned(),
        Some(_) => format!(
            "{} of the recorded episode, {} and {}",
            count(rollout.ticks, "tick"),
            count(rollout.steps, "step"),
            count(rollout.resets, "reset")
        ),
    };
    if let Some(first) = &rollout.first_divergence {
        text = format!("{text}; it leaves the episode at tick {} in {}", first.tick, first.port);
    }
    let reasons =
        rollout.reasons.iter().map(|reason| format!("<li>{}</li>\n", escape(&reason.message)));
    let reasons: String = reasons.collect();
    let list = if reasons.is_empty() { reasons } else { format!("<ul>\n{reasons}</ul>\n") };
    format!("<p>{}.</p>\n{list}", escape(&text))
}

fn card(port: &RolloutPort, target: &str) -> String {
    let series = &port.over_time;
    let has_points = series.max_abs.len() <= MOST_POINTS;
    let point = |piece: usize| {
        let ticks = series.ticks(piece);
        let (first, last) = (ticks.start, ticks.end - 1);
        let when = if first == last {
            format!("tick {first}")
        } else {
            format!("ticks {first} to {last}")
        };
        Point {
            title: format!("{when}: {}", number(series.max_abs[piece])),
            target: target.to_owned(),
            is_wrong: port.first_divergence.is_some_and(|tick| ticks.contains(&tick)),
            is_shown: has_points,
        }
    };
    let points: Vec<Point> = (0..series.max_abs.len()).map(point).collect();
    let errors = Series { name: "error", values: series.max_abs.clone(), style: Style::Line };
    let mut lines = vec![errors];
    let atol = port.tolerance.atol();
    if atol > 0.0 {
        let values = vec![atol; points.len()];
        lines.insert(0, Series { name: "tolerance", values, style: Style::Bound });
    }
    let label = format!("Largest error of {} over time", port.port);
    let caption = caption(series);
    let frame = Frame { label: &label, caption: &caption, width: 460.0, height: 200.0 };
    let first = port.first_divergence.map(|tick| format!(", first outside at tick {tick}"));
    format!(
        "<div class=\"card\">\n<h3 class=\"{}\"><a href=\"#{target}\">{}</a></h3>\n\
         <span class=\"quiet\">{}{}</span>\n{}</div>\n",
        class(port.verdict),
        escape(&port.port),
        role(port.role),
        first.unwrap_or_default(),
        chart(&frame, &points, &lines)
    )
}

fn caption(series: &ErrorOverTime) -> String {
    match series.ticks_each {
        0 | 1 => "ticks".to_owned(),
        each => format!("ticks, the largest of {each} at each point"),
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Output => "output of the pipeline",
        Role::Feedback => "state from the tick before",
        Role::Edge => "input from an earlier node",
        Role::Inner => "output that other nodes read",
    }
}
