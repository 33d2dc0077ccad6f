//! What became of the values of the reference.

use std::collections::{BTreeMap, BTreeSet};

use veracity_onnx::NodeFacts;
use veracity_results::{DriftRow, ProgramStatus, ProgramValue, Verdict};

/// Each value of the reference: compared, gone into values that were, or neither.
///
/// `rows` names the values of the reference by what they were compared as.
pub(crate) fn program(
    nodes: &[NodeFacts],
    rows: &BTreeMap<&str, &DriftRow>,
    left_out: &BTreeMap<String, String>,
) -> Vec<ProgramValue> {
    let into = consumers(nodes, rows);
    let nodes = nodes.iter().filter(|node| node.op_type != "Constant");
    let values = nodes.flat_map(|node| node.outputs.iter().map(move |output| (node, output)));
    values
        .filter(|(_, name)| !name.is_empty())
        .map(|(node, name)| {
            let folded = into.get(name.as_str()).cloned().unwrap_or_default();
            let (status, into, reason) = match rows.get(name.as_str()) {
                Some(row) => (status(row.verdict), Vec::new(), String::new()),
                None if folded.is_empty() => {
                    let reason = left_out.get(name).cloned();
                    let gone = || "nothing that was compared depends on it".to_owned();
                    (ProgramStatus::NotMapped, Vec::new(), reason.unwrap_or_else(gone))
                }
                None => (ProgramStatus::Folded, folded.into_iter().collect(), String::new()),
            };
            let target = node.op_type.clone();
            ProgramValue { name: name.clone(), target, status, into, reason }
        })
        .collect()
}

fn status(verdict: Verdict) -> ProgramStatus {
    match verdict {
        Verdict::Proved => ProgramStatus::Proved,
        Verdict::Disproved => ProgramStatus::Disproved,
        Verdict::Conditional | Verdict::NotComparable => ProgramStatus::NotComparable,
    }
}

/// The compared values that each value goes into, by their names in the candidate: the first on
/// every way.
fn consumers<'n>(
    nodes: &'n [NodeFacts],
    rows: &BTreeMap<&str, &DriftRow>,
) -> BTreeMap<&'n str, BTreeSet<String>> {
    let mut into: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for node in nodes.iter().rev() {
        let mut reached: BTreeSet<String> = BTreeSet::new();
        for output in &node.outputs {
            match rows.get(output.as_str()) {
                Some(row) => drop(reached.insert(row.name.clone())),
                None => reached.extend(into.get(output.as_str()).into_iter().flatten().cloned()),
            }
        }
        for input in &node.inputs {
            into.entry(input).or_default().extend(reached.iter().cloned());
        }
    }
    into
}
