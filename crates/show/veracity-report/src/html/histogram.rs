//! Distances in units in the last place, by powers of two.

use std::fmt::Write as _;

use veracity_results::ulp_bin_label;

use super::escape::escape;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 150.0;
const SIDE: f64 = 14.0;
const BOTTOM: f64 = 34.0;
const TOP: f64 = 18.0;
/// Bars that have a label below.
const MOST_LABELS: usize = 10;

/// Bars for counts, of which the first is of pairs that are equal. Heights are logarithmic, so that a
/// single element that is off is seen beside millions that are not. Without counts it is nothing.
#[expect(clippy::cast_precision_loss, reason = "a place on a page")]
pub(super) fn histogram(label: &str, counts: &[u64]) -> String {
    let Some(most) = counts.iter().copied().max().filter(|most| *most > 0) else {
        return String::new();
    };
    let mut html = format!(
        "<div class=\"scroll\">\n<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" style=\"min-width: \
         {WIDTH}px\" role=\"img\" aria-label=\"{}\">\n",
        escape(label)
    );
    let step = (WIDTH - 2.0 * SIDE) / counts.len() as f64;
    let every = counts.len().div_ceil(MOST_LABELS);
    for (bin, &amount) in counts.iter().enumerate() {
        let share = (1.0 + amount as f64).log2() / (1.0 + most as f64).log2();
        let height = share * (HEIGHT - BOTTOM - TOP);
        let (x, y) = (SIDE + bin as f64 * step, HEIGHT - BOTTOM - height);
        let (middle, width) = (x + step / 2.0, (step * 0.8).min(60.0));
        let left = middle - width / 2.0;
        let name = escape(&ulp_bin_label(bin));
        if amount > 0 {
            let _ = writeln!(
                html,
                "<rect x=\"{left:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">\
                 <title>{amount} at {name} ULP</title></rect>"
            );
            if counts.len() <= 2 * MOST_LABELS {
                let above = y - 4.0;
                let _ = writeln!(
                    html,
                    "<text x=\"{middle:.1}\" y=\"{above:.1}\" text-anchor=\"middle\">{amount}</text>"
                );
            }
        }
        if bin % every == 0 {
            let name = if bin < 2 { bin.to_string() } else { format!("2^{}", bin - 1) };
            let _ = writeln!(
                html,
                "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{name}</text>",
                HEIGHT - 20.0
            );
        }
    }
    let _ = writeln!(
        html,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">units in the last place</text>\n</svg>\n</div>",
        WIDTH / 2.0,
        HEIGHT - 5.0
    );
    html
}
