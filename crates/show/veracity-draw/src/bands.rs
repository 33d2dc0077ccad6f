//! Columns in one or more bands, one below the other, as lines of a text are.
//!
//! A chain of a hundred nodes would be a picture of a hundred boxes by one. It is cut where few
//! edges lead from one part to the next, and into parts of about the same width.

use crate::layers::{ASPECT, Sized};
use crate::wiring::Wire;

/// A picture that is not wider than this is left in one piece.
const WIDE_ENOUGH: i32 = 2000;
/// Space between two bands, about.
const BETWEEN: i32 = 80;

/// Cuts columns into bands. Each band has at least one column.
pub(crate) fn bands(
    columns: Vec<Vec<usize>>,
    sized: &Sized<'_>,
    wires: &[Wire],
) -> Vec<Vec<Vec<usize>>> {
    let of = |sizes: &[i32], column: &[usize]| column.iter().map(|node| sizes[*node]).collect();
    let widths: Vec<i32> = columns.iter().map(|c| widest(of(sized.widths, c))).collect();
    let heights: Vec<i32> =
        columns.iter().map(|c| c.iter().map(|node| sized.heights[*node]).sum()).collect();
    let count = how_many(&widths, &heights);
    let cuts = cuts(&widths, &crossing(&columns, sized, wires), count);
    let mut bands = Vec::new();
    let mut rest = columns;
    for cut in cuts.into_iter().rev() {
        bands.push(rest.split_off(cut));
    }
    bands.push(rest);
    bands.reverse();
    bands
}

fn widest(widths: Vec<i32>) -> i32 {
    widths.into_iter().max().unwrap_or(0)
}

/// How many bands give a picture of the right shape.
fn how_many(widths: &[i32], heights: &[i32]) -> usize {
    let width: i32 = widths.iter().sum();
    let height = heights.iter().copied().max().unwrap_or(0) + BETWEEN;
    if width <= WIDE_ENOUGH {
        return 1;
    }
    let shape = |bands: usize| {
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let bands = bands as f64;
        (f64::from(width) / bands / (f64::from(height) * bands) / ASPECT).ln().abs()
    };
    let most = widths.len();
    (1..=most).min_by(|a, b| shape(*a).total_cmp(&shape(*b))).unwrap_or(1)
}

/// For each place between two columns, how many nets lead across it.
fn crossing(columns: &[Vec<usize>], sized: &Sized<'_>, wires: &[Wire]) -> Vec<i32> {
    let mut column = vec![0; sized.heights.len()];
    for (index, nodes) in columns.iter().enumerate() {
        for node in nodes {
            column[*node] = index;
        }
    }
    let mut spans = std::collections::BTreeMap::new();
    for wire in wires {
        let (a, b) = (column[wire.from.0], column[wire.to.0]);
        let span = spans.entry(wire.net).or_insert((a.min(b), a.max(b)));
        *span = (span.0.min(a.min(b)), span.1.max(a.max(b)));
    }
    let mut crossing = vec![0; columns.len() + 1];
    for (first, last) in spans.into_values() {
        for place in &mut crossing[first + 1..=last] {
            *place += 1;
        }
    }
    crossing
}

/// Where to cut: at places that few nets cross, so that bands are of about the same width.
fn cuts(widths: &[i32], crossing: &[i32], bands: usize) -> Vec<usize> {
    let total: i32 = widths.iter().sum();
    let ideal = f64::from(total) / f64::from(crate::boxes::count(bands));
    let columns = widths.len();
    let starts: Vec<i32> = std::iter::once(0)
        .chain(widths.iter().scan(0, |sum, width| {
            *sum += width;
            Some(*sum)
        }))
        .collect();
    let cost = |from: usize, to: usize| {
        let off = f64::from(starts[to] - starts[from]) / ideal - 1.0;
        let cut = if to == columns { 0.0 } else { f64::from(crossing[to]) * 0.02 };
        off * off + cut
    };
    // best[to]: cost of the first `to` columns in so many bands, and where the last one begins.
    let mut best: Vec<(f64, Vec<usize>)> = (0..=columns)
        .map(|to| (if to == 0 { f64::INFINITY } else { cost(0, to) }, vec![]))
        .collect();
    for _ in 1..bands {
        let next = (0..=columns).map(|to| {
            let sums = (1..to).map(|from| (best[from].0 + cost(from, to), from));
            let least = sums.min_by(|a, b| a.0.total_cmp(&b.0));
            least.map_or((f64::INFINITY, Vec::new()), |(sum, from)| {
                (sum, best[from].1.iter().copied().chain([from]).collect())
            })
        });
        best = next.collect();
    }
    best.pop().map(|(_, path)| path).unwrap_or_default()
}
