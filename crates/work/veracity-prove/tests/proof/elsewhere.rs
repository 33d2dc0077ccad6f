//! pt2 models are proved once more, in the engine that runs them where Python is not.

use std::sync::Arc;

use veracity_diag::{Code, Diagnostic, Result, codes};
use veracity_engine::{
    Engine, ModelBytes, ModelFormat, ModelSource, Ports, Session, SessionOptions,
};
use veracity_onnx::Node as Op;
use veracity_prove::check_in_both;
use veracity_results::{Proof, Verdict};
use veracity_runtime::EngineProvider;
use veracity_spec::Backend;

use crate::common::{Draft, Ort, chain};
use crate::support::{changed, options, recorded};

/// An engine for pt2 models; those of these tests are ONNX under that name.
#[derive(Clone)]
enum Runner {
    Right,
    /// Runs another model instead.
    Mistakes(Arc<[u8]>),
    /// Refuses every model, with this code.
    Refuses(Code),
}

impl EngineProvider for Runner {
    fn engine_for(&self, format: ModelFormat) -> Result<Arc<dyn Engine>> {
        match format {
            ModelFormat::Pt2 => Ok(Arc::new(self.clone())),
            _ => Ort.engine_for(format),
        }
    }
}

impl Engine for Runner {
    fn name(&self) -> &'static str {
        "runner"
    }

    fn version(&self) -> String {
        "1".to_owned()
    }

    fn supports(&self, _: ModelFormat) -> bool {
        true
    }

    fn load(
        &self,
        source: &ModelSource,
        ports: &Ports,
        options: &SessionOptions,
    ) -> Result<Session> {
        let bytes = match self {
            Self::Right => source.bytes.clone(),
            Self::Mistakes(other) => ModelBytes::Memory(other.clone()),
            Self::Refuses(code) => return Err(Diagnostic::error(*code, "no such luck").into()),
        };
        let source = ModelSource { format: ModelFormat::Onnx, bytes };
        Ort.engine_for(ModelFormat::Onnx)?.load(&source, ports, options)
    }
}

/// The proof of a chain whose second node is a pt2 model.
fn proved_with(elsewhere: &Runner) -> Proof {
    let (_folder, bundle) = recorded(chain(), 3);
    let (_changed, bundle) = changed(&bundle, |spec, _| {
        spec.nodes[1].model.as_mut().unwrap().backend = Backend::Pt2;
    });
    check_in_both(&bundle, &Runner::Right, elsewhere, &options(1e-6)).unwrap()
}

/// A model with the ports of the second node, which adds nothing.
fn identity() -> Arc<[u8]> {
    let ops = vec![Op::new("Identity", ["in"], ["shifted"])];
    let draft = Draft::default().node("second", &["in"], &["shifted"], ops);
    let (_folder, bundle) = draft.inputs(&["second/in"]).outputs(&["second/shifted"]).write();
    std::fs::read(bundle.root().join("second.onnx")).unwrap().into()
}

#[test]
fn a_pt2_node_is_as_good_as_its_worse_runner() {
    let here = "about this machine";
    for (case, elsewhere, verdict, code) in [
        ("both are right", Runner::Right, Verdict::Proved, None),
        (
            "other numbers",
            Runner::Mistakes(identity()),
            Verdict::Disproved,
            Some(codes::RUNNER_DIFFERS),
        ),
        (
            "an operator that it does not know",
            Runner::Refuses(codes::ENGINE_LOAD_FAILED),
            Verdict::Disproved,
            Some(codes::RUNNER_REFUSES),
        ),
        (
            here,
            Runner::Refuses(codes::SHIM_BUILD_FAILED),
            Verdict::Conditional,
            Some(codes::RUNNER_UNPROVED),
        ),
        (
            here,
            Runner::Refuses(codes::ENGINE_UNUSABLE),
            Verdict::Conditional,
            Some(codes::RUNNER_UNPROVED),
        ),
    ] {
        let proof = proved_with(&elsewhere);
        let node = &proof.nodes[1];
        assert_eq!(node.verdict, verdict, "{case}: {node:?}");
        assert_eq!([0, 2].map(|other| proof.nodes[other].verdict), [Verdict::Proved; 2], "{case}");
        let said = node.reasons.iter().chain(&node.assumptions).map(|one| one.code);
        assert_eq!(said.collect::<Vec<_>>(), Vec::from_iter(code), "{case}");
        let told = node.reasons.iter().chain(&node.assumptions);
        assert!(told.into_iter().all(|one| !one.hints.is_empty()), "{case}");
        let ran = proof.environment.sessions.iter().filter(|one| one.node == "second").count();
        assert_eq!(ran, if code.is_none() { 2 } else { 1 }, "{case}");
    }
}
