//! Each node alone: every sample through its model, and one of them twice.

use veracity_compare::{MeasureOptions, measure};
use veracity_diag::progress::Stage;
use veracity_diag::{Code, Diagnostic, Refusal, codes};
use veracity_engine::SessionOptions;
use veracity_results::{SessionRecord, Verdict};
use veracity_runtime::{EngineProvider, NodeRunner};
use veracity_spec::{Bundle, Node};
use veracity_tensor::{Tensor, TensorView};

use crate::builder::{Builder, Label};
use crate::fingerprint::{Fingerprint, fingerprint};
use crate::judged::tolerance_of;
use crate::samples::{Kind, Samples};
use crate::subject::session_record;

/// What a model says about itself by being refused: it is not the node's.
const WRONG_MODEL: [Code; 5] = [
    codes::ONNX_PORT_MISSING,
    codes::ONNX_PORT_MISMATCH,
    codes::ONNX_INPUT_UNDECLARED,
    codes::ENGINE_OUTPUT_MISMATCH,
    codes::ENGINE_RUN_FAILED,
];

/// Runs the samples of every node through its model. Gives what ran them.
pub fn prove_nodes(
    bundle: &Bundle,
    samples: &Samples,
    engines: &dyn EngineProvider,
    options: &SessionOptions,
    builder: &mut Builder,
) -> Vec<SessionRecord> {
    let mut sessions = Vec::new();
    let nodes = &bundle.spec().nodes;
    let of_node = |node: &Node| Kind::ALL.map(|kind| samples.count(&node.name, kind));
    let mut stage = Stage::new("samples", nodes.iter().flat_map(of_node).sum());
    for node in nodes {
        builder.declare(&node.name, node.outputs.iter().map(|port| port.name.as_str()));
        if let Some(note) = samples.fresh_note(&node.name) {
            builder.fresh_note(&node.name, note);
        }
        if let Some(seen) = samples.passes(&node.name) {
            builder.passes(&node.name, seen);
        }
        if let Some(adequacy) = samples.adequacy(&node.name) {
            builder.adequacy(&node.name, adequacy.clone());
        }
        if let Some(why) = samples.unstable(&node.name) {
            builder.unrepeatable(&node.name, why);
        }
        if let Some(why) = samples.wrong(&node.name) {
            let reason = Diagnostic::error(codes::RECORDED_WRONG, why)
                .hint("mend the code, and export it again");
            builder.refuse_node(&node.name, Verdict::Disproved, reason);
        }
        if Kind::ALL.iter().all(|kind| samples.count(&node.name, *kind) == 0) {
            let message = format!("node {:?} has no samples", node.name);
            let reason = Diagnostic::error(codes::SAMPLES_MISSING, message)
                .hint("`veracity check --record` makes samples from a run of the bundle");
            builder.refuse_node(&node.name, Verdict::NotComparable, reason);
            continue;
        }
        let proved = NodeRunner::load(bundle, node, engines, options).and_then(|mut runner| {
            sessions.push(session_record(runner.facts()));
            prove_node(node, samples, &mut runner, builder, &mut stage)
        });
        if let Err(refusal) = proved {
            let verdict = verdict_of(&refusal);
            for reason in refusal.into_diagnostics() {
                builder.refuse_node(&node.name, verdict, reason);
            }
        }
    }
    sessions
}

/// A model that cannot be looked at is not comparable. One that was looked at and is another, or
/// does not run on what the code ran on, is disproved.
fn verdict_of(refusal: &Refusal) -> Verdict {
    if WRONG_MODEL.contains(&refusal.first_error().code) {
        Verdict::Disproved
    } else {
        Verdict::NotComparable
    }
}

fn prove_node(
    node: &Node,
    samples: &Samples,
    runner: &mut NodeRunner,
    builder: &mut Builder,
    stage: &mut Stage,
) -> Result<(), Refusal> {
    let mut first: Option<(Kind, Vec<Fingerprint>)> = None;
    for kind in Kind::ALL {
        for sample in 0..samples.count(&node.name, kind) {
            let inputs = inputs_of(node, samples, kind, sample);
            for (port, value) in node.inputs.iter().zip(&inputs) {
                builder.input(&node.name, &port.name, value);
            }
            runner.run(&inputs)?;
            let label = match kind {
                Kind::Recorded => Label::Recorded(sample),
                Kind::Fresh => Label::Fresh(sample),
            };
            compare_outputs(node, samples, label, runner, builder);
            first.get_or_insert_with(|| (kind, fingerprints(runner)));
            stage.advance(1);
        }
    }
    let Some((kind, before)) = first else { return Ok(()) };
    control(node, &inputs_of(node, samples, kind, 0), &before, runner, builder)
}

pub(crate) fn inputs_of<'s>(
    node: &'s Node,
    samples: &'s Samples,
    kind: Kind,
    sample: usize,
) -> Vec<TensorView<'s>> {
    let input = |port| samples.input(node, kind, port, sample).expect("samples fit their node");
    (0..node.inputs.len()).map(input).collect()
}

fn compare_outputs(
    node: &Node,
    samples: &Samples,
    label: Label,
    runner: &NodeRunner,
    builder: &mut Builder,
) {
    let (kind, sample) = match label {
        Label::Recorded(sample) => (Kind::Recorded, sample),
        Label::Fresh(sample) => (Kind::Fresh, sample),
    };
    for ((position, port), candidate) in node.outputs.iter().enumerate().zip(runner.outputs()) {
        if let Some(reference) = samples.output(node, kind, position, sample) {
            builder.compare(&node.name, &port.name, label, &reference, &candidate);
        }
    }
}

fn fingerprints(runner: &NodeRunner) -> Vec<Fingerprint> {
    let of = |view: TensorView<'_>| fingerprint(view.contiguous_bytes().unwrap_or_default());
    runner.outputs().map(of).collect()
}

/// Runs the first sample again. A model that disagrees with itself is not wrong, but nothing can
/// be said about it either.
fn control(
    node: &Node,
    inputs: &[TensorView<'_>],
    before: &[Fingerprint],
    runner: &mut NodeRunner,
    builder: &mut Builder,
) -> Result<(), Refusal> {
    runner.run(inputs)?;
    let after = fingerprints(runner);
    if before == after {
        return Ok(());
    }
    let kept: Vec<Tensor> = runner.outputs().map(|view| view.to_tensor()).collect();
    runner.run(inputs)?;
    let changed = before.iter().zip(&after).map(|(before, after)| before != after);
    let pairs = kept.iter().zip(runner.outputs());
    for ((port, (kept, again)), changed) in node.outputs.iter().zip(pairs).zip(changed) {
        if !changed {
            continue;
        }
        let key = format!("{}/{}", node.name, port.name);
        let tolerance = tolerance_of(builder.policy(), &key, port.dtype);
        let measured = measure(&kept.view(), &again, &MeasureOptions::new(tolerance))?;
        let beyond = measured.outside > 0 || measured.non_finite.mismatching > 0;
        builder.unstable(&node.name, &port.name, measured.max_abs, beyond);
    }
    Ok(())
}
