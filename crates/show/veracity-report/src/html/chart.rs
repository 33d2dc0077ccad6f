//! Errors against depth or time on a logarithmic scale.
//!
//! What is exactly zero lies on the line at the bottom, what is no number on the line at the top.

use std::fmt::Write as _;

use super::escape::escape;

const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 40.0;

/// Units between two labels of decades, at least.
const LABEL_DISTANCE: f64 = 22.0;

/// How a series is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// A line without points: something to compare with.
    Bound,
    /// Points on a line: each goes on from the one before it.
    Line,
    /// Points on stems: each stands for itself.
    Stems,
}

/// One kind of value.
pub(super) struct Series {
    /// A word of ours, which is its class and its name.
    pub(super) name: &'static str,
    /// A value for each point.
    pub(super) values: Vec<f64>,
    /// How it is drawn.
    pub(super) style: Style,
}

/// What all series have in common at one place.
pub(super) struct Point {
    /// What is said about it; text.
    pub(super) title: String,
    /// Id of what it leads to.
    pub(super) target: String,
    /// Whether it is to be seen at once.
    pub(super) is_wrong: bool,
    /// Whether there is a point at all; always where something is wrong.
    pub(super) is_shown: bool,
}

/// What a chart is about, and how large it is.
pub(super) struct Frame<'t> {
    /// What it shows; text.
    pub(super) label: &'t str,
    /// What goes from left to right; text.
    pub(super) caption: &'t str,
    /// Units from left to right. Letters take 11 of them from top to bottom.
    pub(super) width: f64,
    /// Units from top to bottom.
    pub(super) height: f64,
}

/// A chart. One without points is nothing.
pub(super) fn chart(frame: &Frame<'_>, points: &[Point], series: &[Series]) -> String {
    if points.is_empty() {
        return String::new();
    }
    let values = series.iter().flat_map(|line| &line.values).copied();
    let scale = Scale::new(frame, points.len(), values);
    // Letters stay readable: where there is no room for all of it, it scrolls.
    let mut html = format!(
        "<div class=\"scroll\">\n<svg class=\"chart\" viewBox=\"0 0 {0} {1}\" style=\"min-width: {0}px\" \
         role=\"group\" aria-label=\"{2}\">\n",
        frame.width,
        frame.height,
        escape(frame.label)
    );
    scale.write_grid(&mut html, frame.caption);
    for line in series {
        scale.write_line(&mut html, line);
    }
    for line in series.iter().filter(|line| line.style != Style::Bound) {
        let pairs = points.iter().zip(&line.values).enumerate();
        for (index, (point, &value)) in pairs.filter(|(_, (at, _))| at.is_shown || at.is_wrong) {
            scale.write_point(&mut html, line, index, point, value);
        }
    }
    html += "</svg>\n</div>\n<p class=\"legend\">";
    for line in series {
        let _ = write!(html, "<span class=\"{0}\">{0}</span> ", line.name);
    }
    html + "</p>\n"
}

/// From values to places.
struct Scale {
    width: f64,
    height: f64,
    count: usize,
    low: i32,
    high: i32,
}

impl Scale {
    #[expect(clippy::cast_possible_truncation, reason = "a decade between -324 and 309")]
    fn new(frame: &Frame<'_>, count: usize, values: impl Iterator<Item = f64>) -> Self {
        let Frame { width, height, .. } = *frame;
        let values = values.filter(|value| value.is_finite() && *value > 0.0);
        let decades = values.map(f64::log10);
        let start = (f64::INFINITY, f64::NEG_INFINITY);
        let (low, high) = decades.fold(start, |(low, high), at| (low.min(at), high.max(at)));
        if low > high {
            return Self { width, height, count, low: -8, high: 0 };
        }
        let (low, high) = (low.floor() as i32, high.ceil() as i32);
        Self { width, height, count, low, high: high.max(low + 1) }
    }

    #[expect(clippy::cast_precision_loss, reason = "a place on a page")]
    fn x(&self, index: usize) -> f64 {
        let steps = self.count.saturating_sub(1).max(1) as f64;
        LEFT + (self.width - LEFT - RIGHT) * index as f64 / steps
    }

    fn y(&self, value: f64) -> f64 {
        let (floor, ceiling) = (self.height - BOTTOM, TOP);
        if value.is_nan() || value.is_infinite() {
            return ceiling - 12.0;
        }
        if value <= 0.0 {
            return floor + 14.0;
        }
        let span = f64::from(self.high - self.low);
        floor - (value.log10() - f64::from(self.low)) / span * (floor - ceiling)
    }

    fn write_grid(&self, html: &mut String, caption: &str) {
        let fitting = ((self.height - BOTTOM - TOP) / LABEL_DISTANCE).max(1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 633")]
        let step = (f64::from(self.high - self.low) / fitting).ceil().max(1.0) as usize;
        let right = self.width - RIGHT;
        let mut line = |y: f64, label: &str| {
            let _ = writeln!(
                html,
                "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\"/><text \
                 x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                LEFT - 6.0,
                y + 4.0
            );
        };
        line(self.y(0.0), "0");
        line(self.y(f64::INFINITY), "not finite");
        for decade in (self.low..=self.high).step_by(step) {
            line(self.y(10.0_f64.powi(decade)), &format!("1e{decade}"));
        }
        let middle = f64::midpoint(LEFT, right);
        let _ = writeln!(
            html,
            "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            self.height - 6.0,
            escape(caption)
        );
    }

    fn write_line(&self, html: &mut String, line: &Series) {
        let _ = write!(html, "<path class=\"{}\" d=\"", line.name);
        let floor = self.y(0.0);
        for (index, &value) in line.values.iter().enumerate() {
            let (x, y) = (self.x(index), self.y(value));
            let _ = match line.style {
                Style::Stems if y >= floor => Ok(()),
                Style::Stems => write!(html, "M{x:.1} {floor:.1}V{y:.1}"),
                _ if index == 0 => write!(html, "M{x:.1} {y:.1}"),
                _ => write!(html, "L{x:.1} {y:.1}"),
            };
        }
        html.push_str("\"/>\n");
    }

    /// What is wrong can be reached with the keyboard; hundreds of other points would be in the way.
    fn write_point(&self, html: &mut String, line: &Series, index: usize, at: &Point, value: f64) {
        let (x, y) = (self.x(index), self.y(value));
        let (target, title, name) = (escape(&at.target), escape(&at.title), line.name);
        // Points that would touch each other are drawn smaller.
        let small = ((self.x(1) - self.x(0)) / 3.0).clamp(1.0, 2.5);
        let (class, radius, order) =
            if at.is_wrong { (" class=\"wrong\"", 5.0, 0) } else { ("", small, -1) };
        let _ = writeln!(
            html,
            "<a href=\"#{target}\"{class} tabindex=\"{order}\"><circle class=\"{name}\" cx=\"{x:.1}\" \
             cy=\"{y:.1}\" r=\"{radius:.1}\"><title>{title}</title></circle></a>"
        );
    }
}
