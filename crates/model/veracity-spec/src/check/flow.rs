//! Whether edges agree with the order of execution.
//!
//! Nodes run in the order of the file, each once a tick. LEAPP does not compare that order with
//! the edges: a `data_flow` edge that leads backwards silently delivers one tick late, and a
//! `feedback_flow` edge that leads forwards delivers at once. Both are refused here.

use std::collections::{HashMap, HashSet, VecDeque};

use veracity_diag::{Diagnostic, codes};

use super::nodes::Index;
use super::routing::Wire;
use crate::yaml::Problems;

/// Most nodes of a cycle that a message names.
const MAX_NAMED: usize = 8;

/// Every `data_flow` edge leads from an earlier node to a later one.
pub(super) fn check_order(index: &Index<'_>, wires: &[Wire<'_>], problems: &mut Problems<'_>) {
    let backward: Vec<&Wire<'_>> = wires.iter().filter(|wire| wire.source >= wire.target).collect();
    if backward.is_empty() {
        return;
    }
    let edges: Vec<(usize, usize)> = wires.iter().map(|wire| (wire.source, wire.target)).collect();
    let groups = strongly_connected(index.len(), &edges);
    let mut shown = HashSet::new();
    for wire in backward {
        let diagnostic = if groups[wire.source] != groups[wire.target] {
            let (from, to) = (index.name(wire.source), index.name(wire.target));
            let message =
                format!("`data_flow` leads from {from:?} back to {to:?}, which runs earlier");
            Diagnostic::error(codes::FLOW_ORDER, message)
                .hint(format!("list {from:?} before {to:?}, or use `feedback_flow` if the value is for the next tick"))
        } else if shown.insert(groups[wire.source]) {
            let names = cycle_names(index, &edges, &groups, wire);
            let message = format!("`data_flow` runs in a circle: {names}");
            Diagnostic::error(codes::FLOW_CYCLE, message)
                .hint("one of these edges belongs into `feedback_flow`")
        } else {
            continue; // The same knot is already shown.
        };
        problems.add(wire.read.target_span, diagnostic);
    }
}

/// Every `feedback_flow` edge leads from a node to itself or to an earlier one.
pub(super) fn check_feedback(index: &Index<'_>, wires: &[Wire<'_>], problems: &mut Problems<'_>) {
    for wire in wires.iter().filter(|wire| wire.source < wire.target) {
        let (from, to) = (index.name(wire.source), index.name(wire.target));
        let message = format!(
            "`feedback_flow` leads from {from:?} to {to:?}, which runs later in the same tick: nothing would be delayed"
        );
        let diagnostic = Diagnostic::error(codes::FEEDBACK_FORWARD, message)
            .hint("move the edge to `data_flow`; a delay needs a node in between that runs after the target");
        problems.add(wire.read.target_span, diagnostic);
    }
}

/// The shortest circle through an edge, as `a → b → a`.
fn cycle_names(
    index: &Index<'_>,
    edges: &[(usize, usize)],
    groups: &[usize],
    wire: &Wire<'_>,
) -> String {
    let next = successors(
        groups.len(),
        edges.iter().copied().filter(|edge| groups[edge.0] == groups[wire.source]),
    );
    let mut came_from: HashMap<usize, usize> = HashMap::from([(wire.target, wire.target)]);
    let mut queue = VecDeque::from([wire.target]);
    while let Some(node) = queue.pop_front().filter(|&node| node != wire.source) {
        for &after in &next[node] {
            came_from.entry(after).or_insert_with(|| {
                queue.push_back(after);
                node
            });
        }
    }
    let mut path = vec![wire.source];
    let mut node = wire.source;
    while node != wire.target {
        node = came_from[&node];
        path.push(node);
    }
    path.push(wire.source);
    path.reverse();
    let mut names: Vec<&str> = path.iter().map(|&node| index.name(node)).collect();
    if names.len() > MAX_NAMED {
        names.splice(MAX_NAMED - 1..names.len() - 1, ["…"]);
    }
    names.join(" → ")
}

fn successors(count: usize, edges: impl Iterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); count];
    for (source, target) in edges {
        next[source].push(target);
    }
    next
}

/// A number for each node; nodes that reach each other have the same one. Two depth-first walks
/// (Kosaraju's algorithm), without recursion.
fn strongly_connected(count: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let forward = successors(count, edges.iter().copied());
    let backward = successors(count, edges.iter().map(|&(source, target)| (target, source)));
    let mut finished = Vec::with_capacity(count);
    let mut seen = vec![false; count];
    for start in 0..count {
        walk(start, &forward, &mut seen, &mut finished);
    }
    let mut groups = vec![0; count];
    let mut seen = vec![false; count];
    for &start in finished.iter().rev() {
        let mut group = Vec::new();
        walk(start, &backward, &mut seen, &mut group);
        for node in group {
            groups[node] = start;
        }
    }
    groups
}

/// Adds every node that is newly reached from `start`, those that are left last at the end.
fn walk(start: usize, next: &[Vec<usize>], seen: &mut [bool], finished: &mut Vec<usize>) {
    if std::mem::replace(&mut seen[start], true) {
        return;
    }
    let mut stack = vec![(start, 0)];
    while let Some((node, position)) = stack.last_mut() {
        if let Some(&after) = next[*node].get(*position) {
            *position += 1;
            if !std::mem::replace(&mut seen[after], true) {
                stack.push((after, 0));
            }
        } else {
            finished.push(*node);
            stack.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_reach_each_other_form_a_group() {
        let groups = strongly_connected(6, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3)]);
        assert!(groups[0] == groups[1] && groups[1] == groups[2]);
        assert!(groups[3] == groups[4] && groups[2] != groups[3]);
        assert!((0..5).all(|node| groups[node] != groups[5]));
    }

    #[test]
    fn a_chain_of_many_nodes_does_not_overflow_the_stack() {
        let edges: Vec<_> = (0..100_000).map(|node| (node, (node + 1) % 100_000)).collect();
        let groups = strongly_connected(100_000, &edges);
        assert!(groups.iter().all(|group| *group == groups[0]));
    }
}
