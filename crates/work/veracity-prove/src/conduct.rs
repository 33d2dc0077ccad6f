//! How a bundle is run: a proof is about one way of running it, and says little about others.

use veracity_diag::{Diagnostic, codes};
use veracity_results::{Proof, SessionRecord};
use veracity_runtime::{RunOptions, Runner};
use veracity_spec::hash_bytes;

use crate::subject::session_record;

/// How a loaded bundle will be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conduct {
    /// What runs each node.
    pub sessions: Vec<SessionRecord>,
    /// Nodes that share a session, joined by `+`.
    pub merged: Vec<String>,
    /// SHA-256 of the map that reorders inputs and outputs, if there is one.
    pub reorder: Option<String>,
}

impl Conduct {
    /// How a loaded bundle will be run.
    pub fn of(runner: &Runner, options: &RunOptions) -> Self {
        let mut conduct = Self { reorder: reorder_of(options), ..Self::default() };
        for session in runner.sessions().map(session_record) {
            let nodes: Vec<String> = session.node.split('+').map(str::to_owned).collect();
            if nodes.len() > 1 {
                conduct.merged.push(session.node.clone());
            }
            let one = |node| SessionRecord { node, ..session.clone() };
            conduct.sessions.extend(nodes.into_iter().map(one));
        }
        conduct
    }

    /// Refuses to be covered by a proof that was made in another way.
    pub fn covered_by(&self, proof: &Proof) -> Result<(), Box<Diagnostic>> {
        for session in &self.sessions {
            let of_node = |one: &&SessionRecord| one.node == session.node;
            let proved: Vec<_> = proof.environment.sessions.iter().filter(of_node).collect();
            let is_pt2 = proof
                .subject
                .models
                .iter()
                .any(|model| model.node == session.node && model.backend == "pt2");
            covered(&proved, session, is_pt2)?;
        }
        let environment = &proof.environment;
        if let Some(group) = self.merged.iter().find(|group| !environment.merged.contains(group)) {
            return Err(elsewhere(&format!("`{group}` are to run as one model, and ran apart")));
        }
        if self.reorder != environment.reorder {
            let what = "inputs and outputs are to be reordered by a map that it does not know";
            let other = "it was made with a map, and there is none now";
            return Err(elsewhere(if self.reorder.is_some() { what } else { other }));
        }
        Ok(())
    }
}

/// The hash of the map of some options, if they have one.
pub(crate) fn reorder_of(options: &RunOptions) -> Option<String> {
    let map = &options.reorder;
    (!map.is_empty()).then(|| hash_bytes(map.to_yaml().as_bytes()).sha256.to_string())
}

/// A node may have been proved in more than one way; one of them has to be this one.
fn covered(
    proved: &[&SessionRecord],
    now: &SessionRecord,
    is_pt2: bool,
) -> Result<(), Box<Diagnostic>> {
    let mut refused = elsewhere(&format!("nothing is said of `{}`", now.node));
    for one in proved {
        match same_session(one, now, is_pt2) {
            Ok(()) => return Ok(()),
            Err(other) => refused = other,
        }
    }
    Err(refused)
}

fn same_session(
    proved: &SessionRecord,
    now: &SessionRecord,
    is_pt2: bool,
) -> Result<(), Box<Diagnostic>> {
    let node = &now.node;
    if engine(&proved.engine, is_pt2) != engine(&now.engine, is_pt2) {
        let (proved, now) = (&proved.engine, &now.engine);
        return Err(elsewhere(&format!("`{node}` was proved in {proved}, and {now} is to run it")));
    }
    if major(&proved.engine_version) != major(&now.engine_version) {
        let (engine, proved, now) = (&now.engine, &proved.engine_version, &now.engine_version);
        return Err(elsewhere(&format!(
            "`{node}` was proved in {engine} {proved}, and this is {now}"
        )));
    }
    if device_class(&proved.device) != device_class(&now.device) {
        let (proved, now) = (&proved.device, &now.device);
        return Err(elsewhere(&format!("`{node}` was proved on {proved}, and is to run on {now}")));
    }
    Ok(())
}

/// ONNX Runtime and TorchScript are the same libraries in Python and elsewhere. What runs pt2 is not:
/// Python interprets the graph, and torch's own runner has kernels and memory of its own.
fn engine(name: &str, is_pt2: bool) -> &str {
    if is_pt2 { name } else { name.strip_suffix(" (python)").unwrap_or(name) }
}

/// What may change what a library computes: the first number of a version, and the second where the
/// first is 0.
fn major(version: &str) -> Vec<&str> {
    let parts: Vec<&str> = version.split(['.', '+']).collect();
    let taken = if parts.first() == Some(&"0") { 2 } else { 1 };
    parts.into_iter().take(taken).collect()
}

/// `cuda` of `cuda:0`.
fn device_class(device: &str) -> &str {
    device.split(':').next().unwrap_or(device)
}

fn elsewhere(what: &str) -> Box<Diagnostic> {
    let message = format!("the proof is about another way of running: {what}");
    Box::new(
        Diagnostic::error(codes::PROOF_ELSEWHERE, message)
            .hint("`--prove` (`prove=True`) proves it as it will run")
            .hint("or `veracity check --save` with the same engine and device"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(engine: &str, version: &str, device: &str) -> SessionRecord {
        SessionRecord {
            node: "policy".into(),
            engine: engine.into(),
            engine_version: version.into(),
            device: device.into(),
        }
    }

    #[test]
    fn what_may_change_results_is_another_way_of_running() {
        let ort = record("ort", "1.24.2", "cpu");
        for (proved, now, is_pt2, covered) in [
            (&ort, record("ort", "1.24.2", "cpu"), false, true),
            (&ort, record("ort", "1.31.0", "cpu"), false, true),
            (&ort, record("ort", "2.0.0", "cpu"), false, false),
            (&ort, record("embedded", "0.1.0", "cpu"), false, false),
            (&ort, record("ort", "1.24.2", "cuda:0"), false, false),
            (&record("ort (python)", "1.24.2", "cpu"), ort.clone(), false, true),
            (
                &record("torch (python)", "2.11.0", "cpu"),
                record("torch", "2.11.0", "cpu"),
                false,
                true,
            ),
            (
                &record("torch (python)", "2.11.0", "cpu"),
                record("torch", "2.11.0", "cpu"),
                true,
                false,
            ),
            (&record("ort", "1.24.2", "cuda:0"), record("ort", "1.24.2", "cuda:1"), false, true),
            (&record("embedded", "0.1.0", "cpu"), record("embedded", "0.2.0", "cpu"), false, false),
        ] {
            let found = same_session(proved, &now, is_pt2);
            assert_eq!(found.is_ok(), covered, "{proved:?} {now:?} {is_pt2} {found:?}");
        }
    }

    #[test]
    fn one_of_the_ways_in_which_a_node_was_proved_is_enough() {
        let python = record("torch (python)", "2.11.0", "cpu");
        let runner = record("torch", "2.11.0", "cpu");
        for (proved, is_covered) in
            [(vec![], false), (vec![&python], false), (vec![&python, &runner], true)]
        {
            assert_eq!(covered(&proved, &runner, true).is_ok(), is_covered, "{proved:?}");
        }
    }
}
