//! What must hold of every picture.

use veracity_draw::{Block, Label, Layout, layout};
use veracity_results::Pipeline;

use crate::pipelines::{chain, fan, mesh, one, three, twelve};

type Point = (i32, i32);

/// Everything that is wrong with a layout.
pub(crate) fn faults(layout: &Layout) -> Vec<String> {
    let mut faults = Vec::new();
    lines_and_boxes(layout, &mut faults);
    boxes_apart(layout, &mut faults);
    labels_fit(layout, &mut faults);
    all_inside(layout, &mut faults);
    lines_apart(layout, &mut faults);
    faults
}

fn segments(layout: &Layout) -> impl Iterator<Item = (usize, Point, Point)> {
    layout.routes.iter().enumerate().flat_map(|(index, route)| {
        route.points.windows(2).map(move |pair| (index, pair[0], pair[1]))
    })
}

fn lines_and_boxes(layout: &Layout, faults: &mut Vec<String>) {
    for (index, a, b) in segments(layout) {
        if a.0 != b.0 && a.1 != b.1 {
            faults.push(format!("route {index} is slanted from {a:?} to {b:?}"));
        }
        for block in &layout.blocks {
            // Open on all sides: lines end on the edges of boxes.
            let across = a.0.min(b.0) < block.x + block.width && a.0.max(b.0) > block.x;
            let along = a.1.min(b.1) < block.y + block.height && a.1.max(b.1) > block.y;
            if across && along {
                faults.push(format!("route {index} crosses `{}` from {a:?} to {b:?}", block.node));
            }
        }
    }
    for (index, route) in layout.routes.iter().enumerate() {
        let port = |node: &str, port: &str, side| {
            let block = layout.blocks.iter().find(|block| block.node == node).unwrap();
            let found = block.ports.iter().find(|one| one.port == port && one.side == side);
            found.map(|port| (port.x, port.y)).unwrap()
        };
        let (source, target) = (&route.source, &route.target);
        let ends = [
            port(&source.node, &source.port, veracity_draw::Side::Output),
            port(&target.node, &target.port, veracity_draw::Side::Input),
        ];
        if [route.points[0], *route.points.last().unwrap()] != ends {
            faults.push(format!("route {index} does not lead from port to port"));
        }
        if (route.points[1].0 <= route.points[0].0) || (route.points[1].1 != route.points[0].1) {
            faults.push(format!("route {index} does not leave its box to the right"));
        }
    }
}

fn boxes_apart(layout: &Layout, faults: &mut Vec<String>) {
    for (index, a) in layout.blocks.iter().enumerate() {
        for b in &layout.blocks[..index] {
            let across = a.x < b.x + b.width && b.x < a.x + a.width;
            if across && a.y < b.y + b.height && b.y < a.y + a.height {
                faults.push(format!("`{}` and `{}` overlap", a.node, b.node));
            }
        }
    }
}

fn labels_fit(layout: &Layout, faults: &mut Vec<String>) {
    for block in &layout.blocks {
        let inside = |label: &Label| {
            let (left, right) = label.span();
            left >= block.x && right <= block.x + block.width
        };
        let rows = block.ports.iter().flat_map(|port| &port.labels);
        for label in block.labels.iter().chain(rows).filter(|label| !inside(label)) {
            faults.push(format!("{:?} stands out of `{}`", label.text, block.node));
        }
        labels_apart(block, faults);
    }
}

/// Texts in one line of a box.
fn labels_apart(block: &Block, faults: &mut Vec<String>) {
    let rows = block.ports.iter().flat_map(|port| &port.labels);
    let labels: Vec<&Label> = block.labels.iter().chain(rows).collect();
    for (index, a) in labels.iter().enumerate() {
        for b in &labels[..index] {
            let ((a_left, a_right), (b_left, b_right)) = (a.span(), b.span());
            if a.y == b.y && a_left < b_right && b_left < a_right {
                faults.push(format!("{:?} and {:?} overlap in `{}`", a.text, b.text, block.node));
            }
        }
    }
}

fn all_inside(layout: &Layout, faults: &mut Vec<String>) {
    let inside =
        |(x, y): Point| (0..=layout.width).contains(&x) && (0..=layout.height).contains(&y);
    let corners = layout.blocks.iter().flat_map(|block| {
        let end = (block.x + block.width, block.y + block.height);
        let stubs = block.ports.iter().map(|port| (port.stub_x, port.y));
        stubs.chain([(block.x, block.y), end]).collect::<Vec<_>>()
    });
    let lines = layout.routes.iter().flat_map(|route| route.points.iter().copied());
    let labels = layout.titles.iter().chain(layout.legend.iter().map(|entry| &entry.label));
    let labels = labels.chain(layout.routes.iter().filter_map(|route| route.label.as_ref()));
    let ends = labels.flat_map(|label| {
        let (left, right) = label.span();
        [(left, label.y - label.size), (right, label.y)]
    });
    for point in corners.chain(lines).chain(ends).filter(|point| !inside(*point)) {
        faults.push(format!("{point:?} is outside of {} by {}", layout.width, layout.height));
    }
}

/// Lines of different outputs may cross; they must not lie on each other.
fn lines_apart(layout: &Layout, faults: &mut Vec<String>) {
    let all: Vec<(usize, Point, Point)> = segments(layout).collect();
    let source = |route: usize| &layout.routes[route].source;
    let common = |a: (i32, i32), b: (i32, i32)| {
        let (a, b) = ((a.0.min(a.1), a.0.max(a.1)), (b.0.min(b.1), b.0.max(b.1)));
        a.1.min(b.1) - a.0.max(b.0)
    };
    for (index, (first, a, b)) in all.iter().enumerate() {
        for (second, c, d) in &all[..index] {
            let shared = if a.0 == b.0 && c.0 == d.0 && a.0 == c.0 {
                common((a.1, b.1), (c.1, d.1))
            } else if a.1 == b.1 && c.1 == d.1 && a.1 == c.1 {
                common((a.0, b.0), (c.0, d.0))
            } else {
                0
            };
            if shared > 0 && source(*first) != source(*second) {
                faults.push(format!("routes {first} and {second} share {shared} units from {a:?}"));
            }
        }
    }
}

fn is_sound(pipeline: &Pipeline) {
    let faults = faults(&layout(pipeline).unwrap());
    assert!(faults.is_empty(), "{}: {faults:#?}", pipeline.name);
}

#[test]
fn no_line_crosses_a_box_and_no_label_is_cut() {
    for pipeline in [
        Pipeline::default(),
        one(),
        three(),
        twelve(),
        chain(120),
        fan(118),
        mesh(6, 20),
        mesh(2, 3),
    ] {
        is_sound(&pipeline);
    }
}

#[test]
fn nodes_without_edges_stand_side_by_side() {
    let mut pipeline = chain(120);
    pipeline.edges.clear();
    is_sound(&pipeline);
    let layout = layout(&pipeline).unwrap();
    assert!(layout.width < 3 * layout.height && layout.height < 3 * layout.width);
}

#[test]
fn large_pictures_are_neither_strips_nor_towers() {
    for pipeline in [chain(120), fan(118), mesh(6, 20), chain(30)] {
        let Layout { width, height, .. } = layout(&pipeline).unwrap();
        assert!(width < 3 * height && height < 2 * width, "{}: {width} {height}", pipeline.name);
    }
}
