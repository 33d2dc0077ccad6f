//! Which channels the line of each edge runs through.
//!
//! Channels are the places without boxes: shafts between neighbouring columns of a band, aisles
//! above and below bands, and a margin at the left. Lines run in channels only, or straight through a
//! column where it keeps a place for them; so none of them crosses a box.

use std::collections::BTreeMap;

use crate::boxes::row_y;
use crate::heights::GAP;
use crate::order::Band;
use crate::tracks::Span;
use crate::wiring::Wire;

/// Distance between the lines of edges from a node to itself, below its box.
pub(crate) const LOOP: i32 = 20;

/// Whether a line comes from a box into a shaft, or leads out of a shaft to a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// From column to column.
    Through,
    /// From a box towards an aisle.
    Out,
    /// From an aisle towards a box.
    In,
}

/// The line of a net in a shaft. Shaft `n` of a band is left of its column `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shaft {
    pub(crate) band: usize,
    pub(crate) number: usize,
    pub(crate) net: usize,
    pub(crate) way: Way,
}

/// How the line of an edge runs, from shaft to shaft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// Through shafts; between them at these heights of the band.
    Through { shafts: Vec<Shaft>, heights: Vec<i32> },
    /// Around the box, below it at this height of the band.
    Loop { out: Shaft, back: Shaft, height: i32 },
    /// Through one aisle, or through two and the margin between them. Aisle `n` is above band `n`.
    Around { out: Shaft, first: usize, last: usize, back: Shaft },
}

/// Where nodes stand.
pub(crate) struct Stand<'a> {
    pub(crate) bands: &'a [Band],
    /// Upper edges of the items of each band.
    pub(crate) tops: &'a [Vec<i32>],
    /// Band, column and item of each node.
    pub(crate) seats: &'a BTreeMap<usize, (usize, usize, usize)>,
    /// Height of each box.
    pub(crate) heights: &'a [i32],
}

impl Stand<'_> {
    /// Height of a port in its band.
    pub(crate) fn port_y(&self, (node, row): (usize, usize)) -> i32 {
        let (band, _, item) = self.seats[&node];
        self.tops[band][item] + row_y(row)
    }

    /// The path of an edge; `loops` numbers the nets that lead from a node to itself.
    pub(crate) fn path(&self, wire: &Wire, loops: &Loops) -> Path {
        let (net, from, to) = (wire.net, self.seats[&wire.from.0], self.seats[&wire.to.0]);
        let out = |way| Shaft { band: from.0, number: from.1 + 1, net, way };
        let back = |way| Shaft { band: to.0, number: to.1, net, way };
        if wire.from.0 == wire.to.0 {
            let slot = crate::boxes::count(loops.slot(wire.from.0, net));
            let bottom = self.tops[from.0][from.2] + self.heights[wire.from.0];
            let height = bottom + GAP / 2 + LOOP * slot;
            return Path::Loop { out: out(Way::Out), back: back(Way::In), height };
        }
        if !wire.is_feedback && from.0 == to.0 {
            let shafts = (from.1 + 1..=to.1).map(|number| Shaft { number, ..out(Way::Through) });
            let heights = (from.1 + 1..to.1).map(|column| {
                let item = self.bands[from.0].passes[&(net, column)];
                self.tops[from.0][item]
            });
            return Path::Through { shafts: shafts.collect(), heights: heights.collect() };
        }
        // Between the bands where they are neighbours; below a band that both are in.
        let (first, last) = match from.0.cmp(&to.0) {
            std::cmp::Ordering::Less => (from.0 + 1, to.0),
            std::cmp::Ordering::Equal => (from.0 + 1, from.0 + 1),
            std::cmp::Ordering::Greater => (from.0, to.0 + 1),
        };
        Path::Around { out: out(Way::Out), first, last, back: back(Way::In) }
    }

    /// What all paths ask of the shafts.
    pub(crate) fn spans(&self, wires: &[Wire], paths: &[Path]) -> BTreeMap<Shaft, Span> {
        let mut spans: BTreeMap<Shaft, Span> = BTreeMap::new();
        for (wire, path) in wires.iter().zip(paths) {
            let (start, end) = (self.port_y(wire.from), self.port_y(wire.to));
            match path {
                Path::Through { shafts, heights } => {
                    let mut left = start;
                    for (index, shaft) in shafts.iter().enumerate() {
                        let right = heights.get(index).copied().unwrap_or(end);
                        let span = spans.entry(*shaft).or_default();
                        span.left.insert(left);
                        span.right.insert(right);
                        left = right;
                    }
                }
                Path::Loop { out, back, height } => {
                    spans.entry(*out).or_default().left.extend([start, *height]);
                    spans.entry(*back).or_default().right.extend([end, *height]);
                }
                Path::Around { out, first, last, back } => {
                    let span = spans.entry(*out).or_default();
                    span.left.insert(start);
                    *(if *first == out.band { &mut span.up } else { &mut span.down }) = true;
                    let span = spans.entry(*back).or_default();
                    span.right.insert(end);
                    *(if *last == back.band { &mut span.up } else { &mut span.down }) = true;
                }
            }
        }
        spans
    }
}

/// Which nets lead from a node to itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loops(BTreeMap<usize, Vec<usize>>);

impl Loops {
    /// Finds them.
    pub(crate) fn of(wires: &[Wire]) -> Self {
        let mut loops: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut wires: Vec<&Wire> = wires.iter().filter(|wire| wire.from.0 == wire.to.0).collect();
        // The lowest output bends first; then they do not cross at the right.
        wires.sort_by_key(|wire| (wire.from.0, std::cmp::Reverse(wire.from.1)));
        for wire in wires {
            let nets = loops.entry(wire.from.0).or_default();
            if !nets.contains(&wire.net) {
                nets.push(wire.net);
            }
        }
        Self(loops)
    }

    /// Space that they take below the box of a node.
    pub(crate) fn space(&self, node: usize) -> i32 {
        self.0.get(&node).map_or(0, |nets| GAP / 2 + LOOP * crate::boxes::count(nets.len() - 1) + 8)
    }

    fn slot(&self, node: usize, net: usize) -> usize {
        self.0.get(&node).and_then(|nets| nets.iter().position(|one| *one == net)).unwrap_or(0)
    }
}
