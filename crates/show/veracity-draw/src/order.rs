//! What stands above what in the columns of one band, so that few lines cross.
//!
//! A line that leads over more than one column takes a place in each column in between, as a node
//! would. Columns are then sorted again and again by where their neighbours stand, and the best
//! order that was seen is kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::boxes::row_y;
use crate::wiring::Wire;

/// How often columns are sorted, from left to right and back.
const SWEEPS: usize = 12;

/// Something that takes a place in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Item {
    /// A node.
    Node(usize),
    /// A net on its way to a column further right.
    Pass(usize),
}

/// A line between neighbouring columns, by the numbers of items and heights inside of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Joint {
    pub(crate) left: usize,
    pub(crate) left_y: i32,
    pub(crate) right: usize,
    pub(crate) right_y: i32,
}

/// The columns of a band.
#[derive(Clone, Debug, Default)]
pub(crate) struct Band {
    pub(crate) items: Vec<Item>,
    /// Items of each column from top to bottom.
    pub(crate) columns: Vec<Vec<usize>>,
    /// Lines from each column to the next.
    pub(crate) joints: Vec<Vec<Joint>>,
    /// Number of the item of each net in each column that it passes.
    pub(crate) passes: BTreeMap<(usize, usize), usize>,
}

impl Band {
    /// The columns of some nodes, in an order with few crossings.
    pub(crate) fn new(nodes: &[Vec<usize>], wires: &[Wire]) -> Self {
        let mut band = Self::default();
        let mut column_of = BTreeMap::new();
        for (column, nodes) in nodes.iter().enumerate() {
            let mut items = Vec::new();
            for node in nodes {
                column_of.insert(*node, (column, band.items.len()));
                items.push(band.items.len());
                band.items.push(Item::Node(*node));
            }
            band.columns.push(items);
        }
        let mut joints = vec![BTreeSet::new(); nodes.len()];
        for wire in wires {
            let (from, to) = (column_of.get(&wire.from.0), column_of.get(&wire.to.0));
            let (Some(&(first, from)), Some(&(last, to))) = (from, to) else { continue };
            if wire.is_feedback || last <= first {
                continue;
            }
            let (mut left, mut left_y) = (from, row_y(wire.from.1));
            for column in first + 1..last {
                let right = band.pass(wire.net, column);
                joints[column - 1].insert(Joint { left, left_y, right, right_y: 0 });
                (left, left_y) = (right, 0);
            }
            let right_y = row_y(wire.to.1);
            joints[last - 1].insert(Joint { left, left_y, right: to, right_y });
        }
        band.joints = joints.into_iter().map(|set| set.into_iter().collect()).collect();
        band.sort();
        band
    }

    fn pass(&mut self, net: usize, column: usize) -> usize {
        if let Some(item) = self.passes.get(&(net, column)) {
            return *item;
        }
        let item = self.items.len();
        self.items.push(Item::Pass(net));
        self.columns[column].push(item);
        self.passes.insert((net, column), item);
        item
    }

    /// Keeps the best order of several sweeps.
    fn sort(&mut self) {
        let mut best = (self.crossings(), self.columns.clone());
        for sweep in 0..SWEEPS {
            let to_the_right = sweep % 2 == 0;
            let count = self.columns.len();
            for step in 1..count {
                let column = if to_the_right { step } else { count - 1 - step };
                self.sort_column(column, to_the_right);
            }
            let crossings = self.crossings();
            if crossings < best.0 {
                best = (crossings, self.columns.clone());
            }
        }
        self.columns = best.1;
    }

    /// Sorts a column by the mean place of its neighbours in the column before it.
    fn sort_column(&mut self, column: usize, by_left: bool) {
        let positions = self.positions();
        let joints = if by_left { &self.joints[column - 1] } else { &self.joints[column] };
        let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for joint in joints {
            let (item, other, y) = if by_left {
                (joint.right, joint.left, joint.left_y)
            } else {
                (joint.left, joint.right, joint.right_y)
            };
            let sum = sums.entry(item).or_default();
            // Rows of a box are apart by less than two boxes are.
            sum.0 += positions[other] + f64::from(y) / 10_000.0;
            sum.1 += 1.0;
        }
        let key = |item: &usize| match sums.get(item) {
            Some((sum, count)) => sum / count,
            None => positions[*item],
        };
        let mut items = std::mem::take(&mut self.columns[column]);
        items.sort_by(|a, b| key(a).total_cmp(&key(b)));
        self.columns[column] = items;
    }

    /// Place of each item in its column.
    fn positions(&self) -> Vec<f64> {
        let mut positions = vec![0.0; self.items.len()];
        for items in &self.columns {
            for (index, item) in items.iter().enumerate() {
                positions[*item] = f64::from(crate::boxes::count(index));
            }
        }
        positions
    }

    /// How many pairs of lines cross.
    fn crossings(&self) -> usize {
        let positions = self.positions();
        let mut crossings = 0;
        for joints in &self.joints {
            let mut ends: Vec<_> = joints
                .iter()
                .map(|joint| {
                    let left = positions[joint.left] * 1e5 + f64::from(joint.left_y);
                    (left, positions[joint.right] * 1e5 + f64::from(joint.right_y))
                })
                .collect();
            ends.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
            crossings += inversions(&mut ends.into_iter().map(|end| end.1).collect::<Vec<_>>());
        }
        crossings
    }
}

/// Pairs in the wrong order, counted while sorting by merging.
fn inversions(values: &mut [f64]) -> usize {
    if values.len() < 2 {
        return 0;
    }
    let (left, right) = values.split_at_mut(values.len() / 2);
    let mut count = inversions(left) + inversions(right);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut a, mut b) = (0, 0);
    while a < left.len() || b < right.len() {
        if b == right.len() || (a < left.len() && left[a] <= right[b]) {
            merged.push(left[a]);
            a += 1;
        } else {
            count += left.len() - a;
            merged.push(right[b]);
            b += 1;
        }
    }
    values.copy_from_slice(&merged);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(net: usize, from: usize, to: usize) -> Wire {
        Wire { from: (from, 0), to: (to, 0), is_feedback: false, net }
    }

    #[test]
    fn inversions_are_counted() {
        for (values, expected) in
            [(&[1.0, 2.0, 3.0][..], 0), (&[3.0, 2.0, 1.0], 3), (&[2.0, 1.0, 2.0, 1.0], 3), (&[], 0)]
        {
            assert_eq!(inversions(&mut values.to_vec()), expected, "{values:?}");
        }
    }

    #[test]
    fn crossings_that_can_go_do_go() {
        let wires = [wire(0, 0, 3), wire(1, 1, 2)];
        let band = Band::new(&[vec![0, 1], vec![2, 3]], &wires);
        assert_eq!(band.crossings(), 0);
    }

    #[test]
    fn a_net_passes_a_column_once() {
        let wires = [wire(0, 0, 2), wire(0, 0, 3), wire(1, 0, 1)];
        let band = Band::new(&[vec![0], vec![1], vec![2, 3]], &wires);
        assert_eq!(band.passes.keys().collect::<Vec<_>>(), [&(0, 1)]);
        assert_eq!(band.columns[1].len(), 2);
    }
}
