//! Coordinates of nodes that hang together, and of the edges between them.

use std::collections::BTreeMap;

use crate::bands::bands;
use crate::boxes::row_y;
use crate::channels::{Channels, SIDE, Wanted};
use crate::heights::{GAP, heights};
use crate::layers::{Sized, layers};
use crate::layout::{Align, Block, Label};
use crate::order::{Band, Item};
use crate::routes::{Loops, Stand};
use crate::wiring::Wire;

/// Nodes that hang together, with coordinates.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arranged {
    /// Width, from 0.
    pub(crate) width: i32,
    /// Height, from 0.
    pub(crate) height: i32,
    /// Node, left edge, upper edge and width of each box.
    pub(crate) boxes: Vec<(usize, i32, i32, i32)>,
    /// Corners of the wires that were given, in their order.
    pub(crate) lines: Vec<Vec<(i32, i32)>>,
    /// Labels of wires, by their place among those that were given.
    pub(crate) labels: BTreeMap<usize, Label>,
}

/// Arranges some nodes and all edges between them; `None` when nodes wait for each other within
/// the tick. `labels` are those of nets.
pub(crate) fn arrange(
    nodes: &[usize],
    wires: &[Wire],
    blocks: &[Block],
    labels: &BTreeMap<usize, Label>,
) -> Option<Arranged> {
    let loops = Loops::of(wires);
    let outer = |node: usize| blocks[node].height + loops.space(node);
    let outer: Vec<i32> = (0..blocks.len()).map(outer).collect();
    let spaced: Vec<i32> = outer.iter().map(|height| height + GAP).collect();
    let widths: Vec<i32> = blocks.iter().map(|block| block.width + 3 * SIDE).collect();
    let sized = Sized { nodes, heights: &spaced, widths: &widths };
    let columns = layers(&sized, wires)?;
    let bands: Vec<Band> =
        bands(columns, &sized, wires).iter().map(|band| Band::new(band, wires)).collect();
    let tops: Vec<Vec<i32>> = bands.iter().map(|band| heights(band, |node| outer[node])).collect();
    let seats = seats(&bands);
    let inner: Vec<i32> = blocks.iter().map(|block| block.height).collect();
    let stand = Stand { bands: &bands, tops: &tops, seats: &seats, heights: &inner };
    let paths: Vec<_> = wires.iter().map(|wire| stand.path(wire, &loops)).collect();
    let widths = column_widths(&bands, blocks);
    let channels = Channels::new(&Wanted {
        wires,
        paths: &paths,
        spans: &stand.spans(wires, &paths),
        widths: &widths,
        heights: &band_heights(&bands, &tops, &outer),
        labels,
    });
    let mut made =
        Arranged { width: channels.width, height: channels.height, ..Default::default() };
    let mut place = BTreeMap::new();
    for (node, (band, column, item)) in &seats {
        let (x, y) = (channels.columns[*band][*column], channels.bands[*band] + tops[*band][*item]);
        let width = widths[*band][*column];
        place.insert(*node, (x, y, width));
        made.boxes.push((*node, x, y, width));
    }
    let mut labelled = std::collections::BTreeSet::new();
    for (index, (wire, path)) in wires.iter().zip(&paths).enumerate() {
        let (from, to) = (place[&wire.from.0], place[&wire.to.0]);
        let start = (from.0 + from.2, from.1 + row_y(wire.from.1));
        let end = (to.0, to.1 + row_y(wire.to.1));
        made.lines.push(channels.points(path, wire.net, start, end));
        let label = labels.get(&wire.net).zip(channels.label_at(path, wire.net));
        if let Some((label, (x, y))) = label
            && labelled.insert(wire.net)
        {
            made.labels.insert(index, label.clone().at(x, y + 4, Align::Middle));
        }
    }
    made.fit();
    Some(made)
}

impl Arranged {
    /// Makes room for labels that stand out at the left or right.
    fn fit(&mut self) {
        let left = self.labels.values().map(|label| label.span().0 - 4).min().unwrap_or(0).min(0);
        let right = self.labels.values().map(|label| label.span().1 + 4).max().unwrap_or(0);
        self.width = self.width.max(right);
        self.shift(-left, 0);
        self.width -= left;
    }

    /// Moves everything.
    pub(crate) fn shift(&mut self, x: i32, y: i32) {
        for one in &mut self.boxes {
            (one.1, one.2) = (one.1 + x, one.2 + y);
        }
        for point in self.lines.iter_mut().flatten() {
            *point = (point.0 + x, point.1 + y);
        }
        for label in self.labels.values_mut() {
            (label.x, label.y) = (label.x + x, label.y + y);
        }
    }
}

/// Band, column and item of each node.
fn seats(bands: &[Band]) -> BTreeMap<usize, (usize, usize, usize)> {
    let mut seats = BTreeMap::new();
    for (number, band) in bands.iter().enumerate() {
        for (column, items) in band.columns.iter().enumerate() {
            for item in items {
                if let Item::Node(node) = band.items[*item] {
                    seats.insert(node, (number, column, *item));
                }
            }
        }
    }
    seats
}

/// The widest box of each column of each band; the others become as wide.
fn column_widths(bands: &[Band], blocks: &[Block]) -> Vec<Vec<i32>> {
    let width = |item: &Item| match item {
        Item::Node(node) => blocks[*node].width,
        Item::Pass(_) => 0,
    };
    let of = |band: &Band, items: &Vec<usize>| {
        items.iter().map(|item| width(&band.items[*item])).max().unwrap_or(0)
    };
    bands.iter().map(|band| band.columns.iter().map(|items| of(band, items)).collect()).collect()
}

fn band_heights(bands: &[Band], tops: &[Vec<i32>], outer: &[i32]) -> Vec<i32> {
    let height = |item: &Item| match item {
        Item::Node(node) => outer[*node],
        Item::Pass(_) => 0,
    };
    let bottom = |(band, tops): (&Band, &Vec<i32>)| {
        let bottoms = band.items.iter().zip(tops).map(|(item, top)| top + height(item));
        bottoms.max().unwrap_or(0)
    };
    bands.iter().zip(tops).map(bottom).collect()
}
