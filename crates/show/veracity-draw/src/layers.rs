//! Which column each node stands in: behind everything that it reads within the tick.
//!
//! Longest paths first, then nodes move to where their edges are short. A column that would be much
//! taller than the picture is wide is split: what does not fit goes one further to the right.

use crate::wiring::Wire;

/// What is known of the nodes while they are put into columns.
pub(crate) struct Sized<'a> {
    /// The nodes, in the order in which they run.
    pub(crate) nodes: &'a [usize],
    /// Height of each node of the pipeline, with the space below it.
    pub(crate) heights: &'a [i32],
    /// Width of each, with the space beside it.
    pub(crate) widths: &'a [i32],
}

/// No column is split below this height.
const LEAST_HEIGHT: i32 = 900;
/// How wide pictures should be, in parts of their height.
pub(crate) const ASPECT: f64 = 1.5;

/// The columns of some nodes from left to right, none of them empty; `None` when nodes wait for each
/// other.
pub(crate) fn layers(sized: &Sized<'_>, wires: &[Wire]) -> Option<Vec<Vec<usize>>> {
    let links = Links::of(sized, wires);
    let order = links.order(sized.nodes)?;
    let most = tallest_column(sized);
    let mut layer = vec![0; sized.heights.len()];
    assign(&mut layer, &order, &links, sized, most);
    tighten(&mut layer, &order, &links, sized, most);
    let depth = sized.nodes.iter().map(|node| layer[*node] + 1).max().unwrap_or(0);
    let mut columns = vec![Vec::new(); depth];
    for node in sized.nodes {
        columns[layer[*node]].push(*node);
    }
    columns.retain(|column| !column.is_empty());
    Some(columns)
}

/// What each node reads from and gives to within the tick.
struct Links {
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
}

impl Links {
    fn of(sized: &Sized<'_>, wires: &[Wire]) -> Self {
        let count = sized.heights.len();
        let (mut before, mut after) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        for wire in wires.iter().filter(|wire| !wire.is_feedback) {
            before[wire.to.0].push(wire.from.0);
            after[wire.from.0].push(wire.to.0);
        }
        Self { before, after }
    }

    /// The nodes, each behind those that it reads from; `None` when there is no such order.
    fn order(&self, nodes: &[usize]) -> Option<Vec<usize>> {
        let mut missing: Vec<usize> = self.before.iter().map(Vec::len).collect();
        let mut order: Vec<usize> =
            nodes.iter().copied().filter(|node| missing[*node] == 0).collect();
        let mut next = 0;
        while let Some(&node) = order.get(next) {
            next += 1;
            for &reader in &self.after[node] {
                missing[reader] -= 1;
                if missing[reader] == 0 {
                    order.push(reader);
                }
            }
        }
        (order.len() == nodes.len()).then_some(order)
    }
}

fn tallest_column(sized: &Sized<'_>) -> i32 {
    let areas =
        sized.nodes.iter().map(|n| f64::from(sized.heights[*n]) * f64::from(sized.widths[*n]));
    let height = (areas.sum::<f64>() / ASPECT).sqrt();
    let tallest = sized.nodes.iter().map(|node| sized.heights[*node]).max().unwrap_or(0);
    #[expect(clippy::cast_possible_truncation, reason = "saturates, which is as good")]
    let height = height as i32;
    height.max(tallest).max(LEAST_HEIGHT)
}

/// Each node goes into the first column behind what it reads that has room for it.
fn assign(layer: &mut [usize], order: &[usize], links: &Links, sized: &Sized<'_>, most: i32) {
    let mut filled: Vec<i32> = Vec::new();
    for &node in order {
        let behind = links.before[node].iter().map(|from| layer[*from] + 1).max().unwrap_or(0);
        let height = sized.heights[node];
        let mut column = behind;
        while filled.get(column).is_some_and(|taken| taken + height > most) {
            column += 1;
        }
        if filled.len() <= column {
            filled.resize(column + 1, 0);
        }
        filled[column] += height;
        layer[node] = column;
    }
}

/// Moves nodes between those they read from and those they give to, where that shortens edges and
/// where there is room.
fn tighten(layer: &mut [usize], order: &[usize], links: &Links, sized: &Sized<'_>, most: i32) {
    let depth = order.iter().map(|node| layer[*node] + 1).max().unwrap_or(0);
    let mut filled = vec![0; depth];
    for &node in order {
        filled[layer[node]] += sized.heights[node];
    }
    // Ends early when nothing moves; every move shortens the edges.
    for _ in 0..order.len() {
        let mut moved = false;
        for &node in order.iter().rev() {
            let (reads, gives) = (&links.before[node], &links.after[node]);
            let Some(last) = gives.iter().map(|to| layer[*to] - 1).min() else { continue };
            if gives.len() <= reads.len() {
                continue;
            }
            let height = sized.heights[node];
            let room = |column: &usize| filled[*column] + height <= most;
            if let Some(column) = (layer[node] + 1..=last).rev().find(room) {
                filled[layer[node]] -= height;
                filled[column] += height;
                layer[node] = column;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
}
