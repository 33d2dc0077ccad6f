//! Which of several lines in one channel runs left of which, so that they neither lie on each other
//! nor cross without need.

use std::collections::BTreeSet;

/// Least distance between two lines that share a track.
const APART: i32 = 10;
/// What it costs to lie on another line, in crossings.
const OVERLAP: usize = 50;

/// A line down or up a channel, with the lines that lead into it from both sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Heights of lines to the left side of the channel.
    pub(crate) left: BTreeSet<i32>,
    /// Heights of lines to the right side.
    pub(crate) right: BTreeSet<i32>,
    /// Whether it leaves the channel at the top.
    pub(crate) up: bool,
    /// Whether it leaves the channel at the bottom.
    pub(crate) down: bool,
}

impl Span {
    /// Upper and lower end.
    pub(crate) fn ends(&self) -> (i32, i32) {
        let ys = || self.left.iter().chain(&self.right).copied();
        let low = if self.up { i32::MIN / 2 } else { ys().min().unwrap_or(0) };
        let high = if self.down { i32::MAX / 2 } else { ys().max().unwrap_or(0) };
        (low, high)
    }

    /// Whether it leads straight from side to side and needs no track.
    pub(crate) fn is_straight(&self) -> bool {
        let (low, high) = self.ends();
        low == high
    }
}

/// A track for each span that needs one, counted from the left, and how many tracks there are.
pub(crate) fn assign(spans: &[&Span]) -> (Vec<Option<usize>>, usize) {
    let bent: Vec<usize> = (0..spans.len()).filter(|index| !spans[*index].is_straight()).collect();
    let costs: Vec<Vec<usize>> =
        bent.iter().map(|a| bent.iter().map(|b| cost(spans[*a], spans[*b])).collect()).collect();
    let mut order: Vec<usize> = (0..bent.len()).collect();
    order.sort_by_key(|index| {
        let (low, high) = spans[bent[*index]].ends();
        (i64::from(low) + i64::from(high), *index)
    });
    sift(&mut order, &costs);
    let mut tracks = vec![None; spans.len()];
    let mut count = 0;
    for (position, &one) in order.iter().enumerate() {
        let behind = |other: &&usize| {
            costs[one][**other] != costs[**other][one]
                || overlap(spans[bent[one]], spans[bent[**other]])
        };
        let before = order[..position].iter().filter(behind);
        let track =
            before.filter_map(|other| tracks[bent[*other]]).max().map_or(0, |last: usize| last + 1);
        tracks[bent[one]] = Some(track);
        count = count.max(track + 1);
    }
    (tracks, count)
}

/// Which lines to the right must step aside, and by how much, because another line comes from the
/// left at the same height and reaches beyond theirs. Two nets that change places cannot be told
/// apart by tracks alone.
pub(crate) fn dodges(spans: &[&Span], tracks: &[Option<usize>]) -> Vec<(usize, i32, i32)> {
    let all: BTreeSet<i32> =
        spans.iter().flat_map(|span| span.left.iter().chain(&span.right)).copied().collect();
    let is_free = |y: i32| all.range(y - 2..=y + 2).next().is_none();
    let mut dodges = Vec::new();
    for (index, (a, track)) in spans.iter().zip(tracks).enumerate() {
        let beyond = |y: &i32| {
            let others = spans.iter().zip(tracks);
            others.filter(|(b, _)| b.left.contains(y)).any(|(_, other)| *other > *track)
        };
        for y in a.right.iter().filter(|y| track.is_some() && beyond(y)) {
            let by = [6, -6, 9, -9].into_iter().find(|by| is_free(y + by)).unwrap_or(4);
            dodges.push((index, *y, by));
        }
    }
    dodges
}

fn overlap(a: &Span, b: &Span) -> bool {
    let ((a_low, a_high), (b_low, b_high)) = (a.ends(), b.ends());
    a_low < b_high + APART && b_low < a_high + APART
}

/// Crossings when `a` runs left of `b`.
fn cost(a: &Span, b: &Span) -> usize {
    let through = |ys: &BTreeSet<i32>, other: &Span| -> usize {
        let (low, high) = other.ends();
        // A line through a corner is taken for a junction: worse than a crossing.
        let one = |y: &i32| match () {
            () if *y == low || *y == high => 3,
            () if low < *y && *y < high => 1,
            () => 0,
        };
        ys.iter().map(one).sum()
    };
    let on_each_other = a.right.intersection(&b.left).count();
    through(&b.left, a) + through(&a.right, b) + OVERLAP * on_each_other
}

/// Moves one after the other to where it costs least.
fn sift(order: &mut Vec<usize>, costs: &[Vec<usize>]) {
    for _ in 0..4 {
        let mut changed = false;
        for (one, beside) in costs.iter().enumerate() {
            let Some(from) = order.iter().position(|other| *other == one) else { continue };
            order.remove(from);
            // At the far left: it is left of all others.
            let mut sum: usize = order.iter().map(|other| beside[*other]).sum();
            let mut sums = vec![sum];
            for other in order.iter() {
                sum = sum + costs[*other][one] - beside[*other];
                sums.push(sum);
            }
            let best = sums.iter().copied().min().unwrap_or(0);
            let to = if sums[from] == best {
                from
            } else {
                sums.iter().position(|sum| *sum == best).unwrap_or(from)
            };
            order.insert(to, one);
            changed |= to != from;
        }
        if !changed {
            break;
        }
    }
}

/// Tracks for intervals along a channel, short ones first; those that share a track stay apart.
pub(crate) fn assign_intervals(intervals: &[(i32, i32)]) -> (Vec<usize>, usize) {
    let mut order: Vec<usize> = (0..intervals.len()).collect();
    order.sort_by_key(|index| {
        let (low, high) = intervals[*index];
        (high - low, low, *index)
    });
    let mut taken: Vec<Vec<(i32, i32)>> = Vec::new();
    let mut tracks = vec![0; intervals.len()];
    for index in order {
        let (low, high) = intervals[index];
        let is_free = |used: &Vec<(i32, i32)>| {
            used.iter().all(|(from, to)| high + APART < *from || to + APART < low)
        };
        let track = taken.iter().position(is_free).unwrap_or(taken.len());
        if track == taken.len() {
            taken.push(Vec::new());
        }
        taken[track].push((low, high));
        tracks[index] = track;
    }
    (tracks, taken.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(left: i32, right: i32) -> Span {
        Span { left: [left].into(), right: [right].into(), up: false, down: false }
    }

    #[test]
    fn lines_that_need_not_cross_do_not() {
        for (spans, expected) in [
            // Both down: the lower one bends first.
            (vec![span(0, 100), span(20, 120)], vec![Some(1), Some(0)]),
            // Both up: the upper one bends first.
            (vec![span(100, 0), span(120, 20)], vec![Some(0), Some(1)]),
            // A straight line needs no track.
            (vec![span(50, 50), span(0, 100)], vec![None, Some(0)]),
            // Far from each other: one track is enough.
            (vec![span(0, 20), span(100, 140)], vec![Some(0), Some(0)]),
            // One ends at the height at which the other begins: no lying on each other.
            (vec![span(0, 50), span(50, 100)], vec![Some(1), Some(0)]),
        ] {
            let all: Vec<&Span> = spans.iter().collect();
            assert_eq!(assign(&all).0, expected, "{spans:?}");
        }
    }

    #[test]
    fn nets_that_change_places_step_aside() {
        let spans = [span(0, 50), span(50, 0)];
        let all: Vec<&Span> = spans.iter().collect();
        let (tracks, count) = assign(&all);
        assert_eq!((count, dodges(&all, &tracks).len()), (2, 1));
        let apart = [span(0, 50), span(60, 110)];
        let all: Vec<&Span> = apart.iter().collect();
        assert_eq!(dodges(&all, &assign(&all).0), []);
    }

    #[test]
    fn intervals_that_meet_get_tracks_of_their_own() {
        let (tracks, count) = assign_intervals(&[(0, 100), (20, 40), (60, 80), (95, 120)]);
        assert_eq!((tracks, count), (vec![1, 0, 0, 0], 2));
    }
}
