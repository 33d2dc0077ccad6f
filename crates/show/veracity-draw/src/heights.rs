//! How high everything stands in its column: near its neighbours, so that lines are straight.
//!
//! Each item wants to be where a line to its neighbours has no step. What overlaps is pushed apart
//! by the least sum of distances, so that most lines stay exactly straight. No column moves far from
//! the others for that: a band is hardly taller than its tallest column.

use crate::order::{Band, Item, Joint};

/// Space between boxes.
pub(crate) const GAP: i32 = 28;
/// Space between a line that passes and anything else.
const PASS_GAP: i32 = 14;
/// How often columns are placed.
const ROUNDS: usize = 8;

/// Upper edge of each item of a band; the highest is at 0.
pub(crate) fn heights(band: &Band, height_of: impl Fn(usize) -> i32) -> Vec<i32> {
    let heights: Vec<i32> = band
        .items
        .iter()
        .map(|item| match item {
            Item::Node(node) => height_of(*node),
            Item::Pass(_) => 0,
        })
        .collect();
    let mut placer = Placer { band, heights, half: 0 };
    let tallest = band.columns.iter().map(|items| placer.total(items)).max().unwrap_or(0);
    placer.half = tallest * 6 / 10;
    let mut tops = placer.stacked();
    let count = band.columns.len();
    for round in 0..ROUNDS {
        let is_last = round + 1 == ROUNDS;
        for column in 0..count {
            placer.place(&mut tops, column, if is_last { Look::Both } else { Look::Left });
        }
        for column in (0..count).rev() {
            placer.place(&mut tops, column, if is_last { Look::Both } else { Look::Right });
        }
    }
    let top = tops.iter().copied().min().unwrap_or(0);
    tops.iter().map(|y| y - top).collect()
}

/// Which neighbours count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    Left,
    Right,
    Both,
}

struct Placer<'b> {
    band: &'b Band,
    heights: Vec<i32>,
    /// Half of the height that the band may take; its middle is at 0.
    half: i32,
}

impl Placer<'_> {
    /// Every column by itself, with its middle at 0.
    fn stacked(&self) -> Vec<i32> {
        let mut tops = vec![0; self.heights.len()];
        for items in &self.band.columns {
            let offsets = self.offsets(items);
            let total = self.total(items);
            for (item, offset) in items.iter().zip(offsets) {
                tops[*item] = offset - total / 2;
            }
        }
        tops
    }

    /// Upper edges of items that stand as close as they may, the first at 0.
    fn offsets(&self, items: &[usize]) -> Vec<i32> {
        let mut offsets = Vec::with_capacity(items.len());
        let mut y = 0;
        for (index, item) in items.iter().enumerate() {
            offsets.push(y);
            let is_node = |item: &usize| matches!(self.band.items[*item], Item::Node(_));
            let both = is_node(item) && items.get(index + 1).is_some_and(is_node);
            y += self.heights[*item] + if both { GAP } else { PASS_GAP };
        }
        offsets
    }

    /// Least height of a column.
    fn total(&self, items: &[usize]) -> i32 {
        let last = items.last().map_or(0, |item| self.heights[*item]);
        self.offsets(items).last().copied().unwrap_or(0) + last
    }

    /// Moves the items of a column to where lines to the columns beside it are straight.
    fn place(&self, tops: &mut [i32], column: usize, look: Look) {
        let items = &self.band.columns[column];
        let offsets = self.offsets(items);
        let wishes = items.iter().zip(&offsets).map(|(item, offset)| {
            let mut wishes = self.wishes(tops, column, *item, look);
            if wishes.is_empty() {
                wishes.push((tops[*item], 1));
            }
            wishes.iter().map(|(y, weight)| (y - offset, *weight)).collect()
        });
        for ((item, offset), y) in items.iter().zip(&offsets).zip(monotone(wishes.collect())) {
            // What never falls still does not when it is cut off at both ends.
            let lowest = self.half - self.total(items);
            tops[*item] = y.clamp(-self.half, lowest.max(-self.half)) + offset;
        }
    }

    /// Where an item would have straight lines, and how much that matters.
    fn wishes(&self, tops: &[i32], column: usize, item: usize, look: Look) -> Vec<(i32, i32)> {
        let mut wishes = Vec::new();
        if look != Look::Right && column > 0 {
            for joint in self.band.joints[column - 1].iter().filter(|joint| joint.right == item) {
                let y = tops[joint.left] + joint.left_y - joint.right_y;
                wishes.push((y, self.weight(joint)));
            }
        }
        if look != Look::Left {
            for joint in self.band.joints[column].iter().filter(|joint| joint.left == item) {
                let y = tops[joint.right] + joint.right_y - joint.left_y;
                wishes.push((y, self.weight(joint)));
            }
        }
        wishes
    }

    /// Steps in the middle of long lines are the ugliest.
    fn weight(&self, joint: &Joint) -> i32 {
        let is_pass = |item: usize| matches!(self.band.items[item], Item::Pass(_));
        match (is_pass(joint.left), is_pass(joint.right)) {
            (true, true) => 8,
            (false, false) => 2,
            _ => 3,
        }
    }
}

/// Numbers that never fall, with the least weighted sum of distances from the wishes.
fn monotone(wishes: Vec<Vec<(i32, i32)>>) -> Vec<i32> {
    struct Run {
        wishes: Vec<(i32, i32)>,
        length: usize,
        value: i32,
    }
    let mut runs: Vec<Run> = Vec::new();
    for wishes in wishes {
        let mut run = Run { value: median(&wishes), wishes, length: 1 };
        while let Some(before) = runs.pop_if(|before| before.value > run.value) {
            run.wishes.extend(before.wishes);
            run.length += before.length;
            run.value = median(&run.wishes);
        }
        runs.push(run);
    }
    runs.iter().flat_map(|run| std::iter::repeat_n(run.value, run.length)).collect()
}

/// The weighted median; of two that are as good, the smaller.
fn median(wishes: &[(i32, i32)]) -> i32 {
    let mut sorted = wishes.to_vec();
    sorted.sort_unstable();
    let total: i32 = sorted.iter().map(|wish| wish.1).sum();
    let mut sum = 0;
    for (value, weight) in &sorted {
        sum += weight;
        if 2 * sum >= total {
            return *value;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_is_pushed_apart_by_the_least_sum_of_distances() {
        for (wishes, expected) in [
            (&[1, 2, 3][..], &[1, 2, 3][..]),
            (&[3, 1, 2], &[1, 1, 2]),
            (&[0, 9, 5, 7], &[0, 5, 5, 7]),
            (&[], &[]),
        ] {
            let wishes = wishes.iter().map(|wish| vec![(*wish, 1)]).collect();
            assert_eq!(monotone(wishes), expected);
        }
    }

    #[test]
    fn heavier_wishes_win() {
        assert_eq!(monotone(vec![vec![(9, 1)], vec![(4, 5)]]), [4, 4]);
    }
}
