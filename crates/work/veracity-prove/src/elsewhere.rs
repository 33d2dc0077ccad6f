//! Nodes once more, in the engine that runs them where Python is not.
//!
//! ONNX and TorchScript models are run by the same library in Python and elsewhere. pt2 models are
//! not: Python calls the operators of the program one by one, and torch's own runner loads the file
//! with code of its own. What holds for the one has to be shown for the other.

use veracity_diag::{Code, Diagnostic, Place, Refusal, codes};
use veracity_engine::{Device, SessionOptions};
use veracity_results::{SessionRecord, Verdict};
use veracity_runtime::{EngineProvider, NodeRunner};
use veracity_spec::{Backend, Bundle, Node};

use crate::builder::Builder;
use crate::judged::{judge_pair, tolerance_of};
use crate::nodes::inputs_of;
use crate::samples::{Kind, Samples};
use crate::subject::session_record;

/// What says something about a machine, and nothing about a model.
const NOT_HERE: [Code; 4] = [
    codes::ENGINE_NOT_FOUND,
    codes::ENGINE_UNUSABLE,
    codes::SHIM_BUILD_FAILED,
    codes::DEVICE_UNAVAILABLE,
];

/// What running nodes elsewhere showed.
#[derive(Debug, Default)]
pub struct Elsewhere {
    /// What ran the nodes that agreed on every sample.
    pub sessions: Vec<SessionRecord>,
    /// Whether there are such nodes, and all of them agreed.
    pub is_complete: bool,
}

/// Runs the stored samples of every pt2 node that nothing stands against, in the engine that runs it
/// where Python is not. What differs or does not run is disproved. What cannot be tried on this
/// machine is an assumption.
///
/// `proved` is what ran the nodes so far: a model that was made on a GPU holds that device.
pub fn prove_elsewhere(
    bundle: &Bundle,
    samples: &Samples,
    engines: &dyn EngineProvider,
    proved: &[SessionRecord],
    builder: &mut Builder,
) -> Elsewhere {
    let mut found = Elsewhere { is_complete: true, ..Elsewhere::default() };
    for node in bundle.spec().nodes.iter().filter(|node| is_pt2(node)) {
        let outcome = if builder.stands(&node.name) {
            prove_node(bundle, node, samples, engines, proved, builder)
        } else {
            None
        };
        found.is_complete &= outcome.is_some();
        found.sessions.extend(outcome);
    }
    found.is_complete &= !found.sessions.is_empty();
    found
}

/// Whether Python and others run the model of a node with different code.
pub fn is_pt2(node: &Node) -> bool {
    node.model.as_ref().is_some_and(|model| model.backend == Backend::Pt2)
}

fn prove_node(
    bundle: &Bundle,
    node: &Node,
    samples: &Samples,
    engines: &dyn EngineProvider,
    proved: &[SessionRecord],
    builder: &mut Builder,
) -> Option<SessionRecord> {
    let on_gpu = |one: &&SessionRecord| one.node == node.name && one.device != "cpu";
    if let Some(session) = proved.iter().find(on_gpu) {
        let why = format!("it was proved on {}, and that runner uses the CPU", session.device);
        builder.noticed([not_tried(node, &why)]);
        return None;
    }
    let options = SessionOptions { device: Device::Cpu, ..SessionOptions::default() };
    let ran = NodeRunner::load(bundle, node, engines, &options).and_then(|mut runner| {
        let session = session_record(runner.facts());
        let differs = run_samples(node, samples, &mut runner, builder)?;
        Ok((session, differs))
    });
    match ran {
        Ok((session, None)) => Some(session),
        Ok((_, Some(reason))) => {
            builder.refuse_node(&node.name, Verdict::Disproved, reason);
            None
        }
        Err(refusal) if NOT_HERE.contains(&refusal.first_error().code) => {
            builder.noticed([not_tried(node, &refusal.first_error().message)]);
            None
        }
        Err(refusal) => {
            builder.refuse_node(&node.name, Verdict::Disproved, refused(refusal));
            None
        }
    }
}

/// Runs every stored sample; gives the first that is not what was recorded.
fn run_samples(
    node: &Node,
    samples: &Samples,
    runner: &mut NodeRunner,
    builder: &Builder,
) -> Result<Option<Diagnostic>, Refusal> {
    let of_kind = |kind| (0..samples.count(&node.name, kind)).map(move |sample| (kind, sample));
    let every = Kind::ALL.into_iter().flat_map(of_kind);
    // The first once more: a model that remembers something answers otherwise.
    let first = Kind::ALL.into_iter().flat_map(of_kind).next();
    for (kind, sample) in every.chain(first) {
        runner.run(&inputs_of(node, samples, kind, sample))?;
        if let Some(why) = first_difference(node, samples, kind, sample, runner, builder) {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

fn first_difference(
    node: &Node,
    samples: &Samples,
    kind: Kind,
    sample: usize,
    runner: &NodeRunner,
    builder: &Builder,
) -> Option<Diagnostic> {
    let policy = builder.policy();
    for ((position, port), candidate) in node.outputs.iter().enumerate().zip(runner.outputs()) {
        let Some(reference) = samples.output(node, kind, position, sample) else { continue };
        let key = format!("{}/{}", node.name, port.name);
        let tolerance = tolerance_of(policy, &key, port.dtype);
        let parts = policy.parts_of(&key);
        let judged = judge_pair(&reference, &candidate, tolerance, parts, policy.equal_nan);
        if judged.verdict != Verdict::Proved {
            let why: Vec<String> = judged.reasons.into_iter().map(|one| one.message).collect();
            let message = format!(
                "torch's own runner, which runs pt2 where Python is not, gives other numbers than \
                 Python: {} sample {sample}: {}",
                kind.word(),
                why.join("; ")
            );
            let reason = Diagnostic::error(codes::RUNNER_DIFFERS, message)
                .at(Place::port(&node.name, &port.name));
            return Some(other_backends(reason));
        }
    }
    None
}

fn refused(refusal: Refusal) -> Diagnostic {
    let said = refusal.into_diagnostics().swap_remove(0);
    let message =
        format!("torch's own runner, which runs pt2 where Python is not, stops: {}", said.message);
    let reason = Diagnostic::error(codes::RUNNER_REFUSES, message).at(said.place);
    other_backends(reason)
}

fn other_backends(reason: Diagnostic) -> Diagnostic {
    reason.hint("`export_with=\"onnx\"` or `\"jit\"` takes another way to the robot")
}

fn not_tried(node: &Node, why: &str) -> Diagnostic {
    let message = format!(
        "it was not compared in torch's own runner, which runs pt2 where Python is not: {why}"
    );
    Diagnostic::warning(codes::RUNNER_UNPROVED, message)
        .at(Place::node(&node.name))
        .hint("`veracity check BUNDLE --save` on the robot compares it there")
        .hint("or export the node with `export_with=\"onnx\"` or `\"jit\"`")
}
