//! Structure of pictures, as text.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use veracity_draw::{Layout, layout};
use veracity_results::Pipeline;

use crate::pipelines::{chain, fan, mesh, one, three, twelve};

/// Boxes, lines and labels with their coordinates.
fn exact(pipeline: &Pipeline) -> String {
    let layout = layout(pipeline).unwrap();
    let mut text = format!("{} by {}\n", layout.width, layout.height);
    for block in &layout.blocks {
        let (x, y, width, height) = (block.x, block.y, block.width, block.height);
        let name = &block.labels[0].text;
        let _ = writeln!(text, "{name}: {width} by {height} at {x}, {y}");
        for port in &block.ports {
            let end = if port.is_pipeline_end { ", end of the pipeline" } else { "" };
            let labels: Vec<&str> = port.labels.iter().map(|label| label.text.as_str()).collect();
            let _ = writeln!(text, "  {}, {}: {}{end}", port.x, port.y, labels.join(" | "));
        }
    }
    for route in &layout.routes {
        let points: Vec<String> = route.points.iter().map(|(x, y)| format!("{x},{y}")).collect();
        let label = route.label.as_ref().map(|label| format!(" [{}]", label.text));
        let (from, to) = (&route.source.port, &route.target.port);
        let _ = writeln!(text, "{from} > {to}: {}{}", points.join(" "), label.unwrap_or_default());
    }
    text
}

/// Columns of boxes from left to right, in bands from top to bottom; and how often lines bend.
fn rough(pipeline: &Pipeline) -> String {
    let layout = layout(pipeline).unwrap();
    let mut columns: BTreeMap<(usize, i32), usize> = BTreeMap::new();
    for block in &layout.blocks {
        let band = band_of(&layout, block.y);
        *columns.entry((band, block.x)).or_default() += 1;
    }
    let mut text = format!("{} by {}\n", layout.width, layout.height);
    for band in columns.keys().map(|key| key.0).collect::<BTreeSet<_>>() {
        let counts = columns.iter().filter(|(key, _)| key.0 == band).map(|(_, n)| n.to_string());
        let _ = writeln!(text, "{}", counts.collect::<Vec<_>>().join(" "));
    }
    let straight = layout.routes.iter().filter(|route| route.points.len() == 2).count();
    let _ = writeln!(text, "{straight} of {} lines are straight", layout.routes.len());
    text
}

/// How many heights without any box lie above.
fn band_of(layout: &Layout, y: i32) -> usize {
    let mut edges: Vec<(i32, i32)> =
        layout.blocks.iter().map(|block| (block.y, block.y + block.height)).collect();
    edges.sort_unstable();
    let mut bands = 0;
    let mut bottom = edges[0].1;
    for (top, end) in edges.iter().filter(|(top, _)| *top <= y) {
        bands += usize::from(*top > bottom);
        bottom = bottom.max(*end);
    }
    bands
}

#[test]
fn small_pipelines_are_drawn_like_this() {
    insta::assert_snapshot!("one", exact(&one()));
    insta::assert_snapshot!("three", exact(&three()));
    insta::assert_snapshot!("twelve", exact(&twelve()));
}

#[test]
fn large_pipelines_fill_a_page() {
    insta::assert_snapshot!("chain_of_120", rough(&chain(120)));
    insta::assert_snapshot!("fan_of_120", rough(&fan(118)));
    insta::assert_snapshot!("mesh_of_120", rough(&mesh(6, 20)));
}
