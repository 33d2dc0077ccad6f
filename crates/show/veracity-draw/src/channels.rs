//! How wide channels are, and where in them each line runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::boxes::count;
use crate::layout::Label;
use crate::routes::{Path, Shaft};
use crate::tracks::{Span, assign, assign_intervals, dodges};
use crate::wiring::Wire;

/// Distance between lines in a shaft.
const TRACK: i32 = 10;
/// Distance between lines in an aisle, which carry labels.
const LANE: i32 = 20;
/// Free space beside boxes: for stubs and arrow heads.
pub(crate) const SIDE: i32 = 30;
/// Least width of a shaft between two columns.
const NARROWEST: i32 = 76;
/// Free space above and below the lines of an aisle.
const PAD: i32 = 18;
/// Height of an aisle without lines between two bands.
const EMPTY_AISLE: i32 = 40;
/// Free space left of the outermost lines.
const EDGE: i32 = 8;
/// How far before a column a line that stepped aside steps back.
const STEP: i32 = 16;

/// Where the lines and columns are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channels {
    /// Left edge of each column of each band.
    pub(crate) columns: Vec<Vec<i32>>,
    /// Upper edge of each band.
    pub(crate) bands: Vec<i32>,
    shafts: BTreeMap<Shaft, i32>,
    /// How far lines of shafts to the right, by their height in the band, step aside.
    dodges: BTreeMap<(Shaft, i32), i32>,
    aisles: BTreeMap<(usize, usize), i32>,
    margin: BTreeMap<usize, i32>,
    /// Width of the whole, without labels that stand out.
    pub(crate) width: i32,
    /// Height of the whole.
    pub(crate) height: i32,
}

/// What lines and boxes ask for.
pub(crate) struct Wanted<'a> {
    pub(crate) wires: &'a [Wire],
    pub(crate) paths: &'a [Path],
    pub(crate) spans: &'a BTreeMap<Shaft, Span>,
    /// Width of each column of each band.
    pub(crate) widths: &'a [Vec<i32>],
    /// Height of each band.
    pub(crate) heights: &'a [i32],
    /// Labels of nets.
    pub(crate) labels: &'a BTreeMap<usize, Label>,
}

impl Channels {
    /// Gives everything its place.
    pub(crate) fn new(wanted: &Wanted<'_>) -> Self {
        let mut channels = Self::default();
        let left = channels.place_margin(wanted);
        for band in 0..wanted.widths.len() {
            channels.place_columns(wanted, band, left);
        }
        channels.part_shafts(wanted);
        channels.place_aisles(wanted);
        channels
    }

    /// Lines between aisles that are no neighbours; gives the width that they take.
    fn place_margin(&mut self, wanted: &Wanted<'_>) -> i32 {
        let mut nets: BTreeMap<usize, (i32, i32)> = BTreeMap::new();
        for (wire, path) in wanted.wires.iter().zip(wanted.paths) {
            if let Path::Around { first, last, .. } = path
                && first != last
            {
                // Far enough apart not to meet in the same aisle.
                let (low, high) = (count(*first.min(last)) * 100, count(*first.max(last)) * 100);
                let ends = nets.entry(wire.net).or_insert((low, high));
                *ends = (ends.0.min(low), ends.1.max(high));
            }
        }
        let (tracks, many) = assign_intervals(&nets.values().copied().collect::<Vec<_>>());
        for (net, track) in nets.keys().zip(tracks) {
            self.margin.insert(*net, EDGE + TRACK * count(many - 1 - track));
        }
        if many == 0 { 0 } else { EDGE + TRACK * count(many) }
    }

    /// Columns and shafts of a band, from left to right.
    fn place_columns(&mut self, wanted: &Wanted<'_>, band: usize, left: i32) {
        let widths = &wanted.widths[band];
        let mut x = left;
        let mut columns = Vec::new();
        for shaft in 0..=widths.len() {
            let here: Vec<(&Shaft, &Span)> = (wanted.spans.iter())
                .filter(|(key, _)| key.band == band && key.number == shaft)
                .collect();
            let spans: Vec<&Span> = here.iter().map(|(_, span)| *span).collect();
            let (tracks, many) = assign(&spans);
            let lines = TRACK * count(many.saturating_sub(1));
            let (before, width) = match shaft {
                0 => (EDGE, if many == 0 { SIDE } else { EDGE + lines + SIDE }),
                _ if shaft == widths.len() => {
                    (SIDE, if many == 0 { SIDE } else { SIDE + lines + EDGE })
                }
                _ => {
                    let width = NARROWEST.max(lines + 2 * SIDE);
                    ((width - lines) / 2, width)
                }
            };
            for (index, y, by) in dodges(&spans, &tracks) {
                self.dodges.insert((*here[index].0, y), by);
            }
            for ((key, _), track) in here.iter().zip(tracks) {
                // A straight line has no corner; the middle is as good a place as any.
                self.shafts.insert(**key, x + before + TRACK * count(track.unwrap_or(0)));
            }
            x += width;
            if let Some(column) = widths.get(shaft) {
                columns.push(x);
                x += column;
            }
        }
        self.columns.push(columns);
        self.width = self.width.max(x);
    }

    /// Lines that enter one aisle from above and from below must not lie on each other.
    fn part_shafts(&mut self, wanted: &Wanted<'_>) {
        let mut taken: BTreeMap<usize, BTreeSet<(i32, usize)>> = BTreeMap::new();
        for (key, span) in wanted.spans {
            let Some(x) = self.shafts.get_mut(key) else { continue };
            let aisles = [(span.up, key.band), (span.down, key.band + 1)];
            let aisles = || aisles.iter().filter(|(is_used, _)| *is_used).map(|(_, aisle)| *aisle);
            // Three steps of three lead not yet to the next track.
            for _ in 0..3 {
                let meets = |aisle| {
                    taken.get(&aisle).is_some_and(|xs: &BTreeSet<(i32, usize)>| {
                        xs.iter().any(|(other, net)| (other - *x).abs() < 2 && *net != key.net)
                    })
                };
                if !aisles().any(meets) {
                    break;
                }
                *x += 3;
            }
            for aisle in aisles() {
                taken.entry(aisle).or_default().insert((*x, key.net));
            }
        }
    }

    /// Aisles and bands, from top to bottom.
    fn place_aisles(&mut self, wanted: &Wanted<'_>) {
        let mut nets: BTreeMap<(usize, usize), (i32, i32)> = BTreeMap::new();
        for (wire, path) in wanted.wires.iter().zip(wanted.paths) {
            let Path::Around { first, last, .. } = path else { continue };
            for aisle in [*first, *last] {
                let (mut low, mut high) = self.stretch(path, aisle, wire.net);
                if let Some(label) = wanted.labels.get(&wire.net) {
                    let (middle, half) = (i32::midpoint(low, high), label.width / 2 + 6);
                    (low, high) = (low.min(middle - half), high.max(middle + half));
                }
                let ends = nets.entry((aisle, wire.net)).or_insert((low, high));
                *ends = (ends.0.min(low), ends.1.max(high));
            }
        }
        let mut y = 0;
        let bands = wanted.heights.len();
        for aisle in 0..=bands {
            let here: Vec<_> = nets.iter().filter(|((one, _), _)| *one == aisle).collect();
            let intervals: Vec<(i32, i32)> = here.iter().map(|(_, ends)| **ends).collect();
            let (tracks, many) = assign_intervals(&intervals);
            for ((key, _), track) in here.iter().zip(tracks) {
                self.aisles.insert(**key, y + PAD + LANE * count(track));
            }
            y += match many {
                0 if aisle == 0 || aisle == bands => 0,
                0 => EMPTY_AISLE,
                _ => 2 * PAD + LANE * count(many - 1),
            };
            if let Some(height) = wanted.heights.get(aisle) {
                self.bands.push(y);
                y += height;
            }
        }
        self.height = y;
    }

    /// From where to where a path runs in an aisle.
    fn stretch(&self, path: &Path, aisle: usize, net: usize) -> (i32, i32) {
        let Path::Around { out, first, last, back } = path else { return (0, 0) };
        let margin = self.margin.get(&net).copied().unwrap_or(0);
        let start = if *first == aisle { self.shafts[out] } else { margin };
        let end = if *last == aisle { self.shafts[back] } else { margin };
        (start.min(end), start.max(end))
    }

    /// The corners of a path between two points on the edges of boxes.
    pub(crate) fn points(
        &self,
        path: &Path,
        net: usize,
        start: (i32, i32),
        end: (i32, i32),
    ) -> Vec<(i32, i32)> {
        let mut points = vec![start];
        match path {
            Path::Through { shafts, heights } => {
                let mut y = start.1;
                for (index, one) in shafts.iter().enumerate() {
                    points.push((self.shafts[one], y));
                    y = heights.get(index).map_or(end.1, |height| self.at(one, *height));
                    points.extend(self.to_the_right(one, y));
                }
            }
            Path::Loop { out, back, height } => {
                let (right, y) = (self.shafts[out], self.at(out, *height));
                points.extend([(right, start.1), (right, y)]);
                points.extend(self.to_the_right(back, y).into_iter().rev());
                points.extend(self.to_the_right(back, end.1));
            }
            Path::Around { out, first, last, back } => {
                let (right, left) = (self.shafts[out], self.shafts[back]);
                let y = self.aisles[&(*first, net)];
                points.extend([(right, start.1), (right, y)]);
                if first != last {
                    let margin = self.margin[&net];
                    points.extend([(margin, y), (margin, self.aisles[&(*last, net)])]);
                }
                points.push((left, self.aisles[&(*last, net)]));
                points.extend(self.to_the_right(back, end.1));
            }
        }
        points.push(end);
        corners(points)
    }

    /// A height of a band, in the picture.
    fn at(&self, shaft: &Shaft, height: i32) -> i32 {
        self.bands[shaft.band] + height
    }

    /// From a shaft to the column at its right, at a height of the picture.
    fn to_the_right(&self, shaft: &Shaft, y: i32) -> Vec<(i32, i32)> {
        let x = self.shafts[shaft];
        match self.dodges.get(&(*shaft, y - self.bands[shaft.band])) {
            None => vec![(x, y)],
            Some(by) => {
                let back = self.columns[shaft.band][shaft.number] - STEP;
                vec![(x, y + by), (back, y + by), (back, y)]
            }
        }
    }

    /// Where the label of a path goes: the middle of its way around.
    pub(crate) fn label_at(&self, path: &Path, net: usize) -> Option<(i32, i32)> {
        match path {
            Path::Through { .. } => None,
            Path::Loop { out, back, height } => {
                let x = i32::midpoint(self.shafts[out], self.shafts[back]);
                Some((x, self.at(out, *height)))
            }
            Path::Around { first, .. } => {
                let (low, high) = self.stretch(path, *first, net);
                Some((i32::midpoint(low, high), self.aisles[&(*first, net)]))
            }
        }
    }
}

/// The same line without points that are no corners.
fn corners(points: Vec<(i32, i32)>) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::with_capacity(points.len());
    for point in points {
        if kept.last() == Some(&point) {
            continue;
        }
        if let [.., before, last] = kept.as_slice()
            && ((before.0 == last.0 && last.0 == point.0)
                || (before.1 == last.1 && last.1 == point.1))
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept
}
