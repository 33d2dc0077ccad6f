//! Repeats the proof of a bundle where the bundle is.

use veracity_diag::{Diagnostic, Place, Result, codes, nearest};
use veracity_engine::SessionOptions;
use veracity_results::{Basis, Proof, Tolerance, TolerancePolicy};
use veracity_runtime::{EngineProvider, Fusion, RunOptions, Runner};
use veracity_spec::{Bundle, ReorderMap};

use crate::builder::Builder;
use crate::conduct::{Conduct, reorder_of};
use crate::contract;
use crate::describe::describe;
use crate::elsewhere::prove_elsewhere;
use crate::nodes::prove_nodes;
use crate::rollout::roll_out;
use crate::samples::Samples;
use crate::subject::{environment, subject};

/// What counts as equal when nobody says it: what LEAPP takes, so that its users find the same.
const DEFAULT: (f64, f64) = (1e-5, 1e-3);

/// Where the tolerances of a check come from.
#[derive(Clone, Debug, Default)]
pub enum ToleranceChoice {
    /// Those that the bundle was exported with, which lie in its samples; the defaults (atol 1e-5,
    /// rtol 1e-3) where it does not say. Never those of a stored proof, which may be wider.
    #[default]
    AsRecorded,
    /// These.
    Given(TolerancePolicy),
    /// Those that were derived while the bundle was exported.
    Auto,
}

/// How to check a bundle.
#[derive(Clone, Debug, Default)]
pub struct CheckOptions {
    /// What counts as equal.
    pub tolerance: ToleranceChoice,
    /// Threads, device and optimisation.
    pub session: SessionOptions,
    /// Whether neighbouring nodes share a session over time.
    pub fusion: Fusion,
    /// The map that inputs and outputs will be reordered by. It is a matter of the border, and named
    /// in the proof; the recorded values go in and out in the bundle's own order.
    pub reorder: ReorderMap,
}

/// Runs every sample through every node, and the recorded episode through the whole bundle.
///
/// Refused when the bundle is not sound, when its samples do not fit it, and when a tolerance is for
/// a port that it does not have. Whatever else is in the way is part of the proof.
pub fn check(
    bundle: &Bundle,
    engines: &dyn EngineProvider,
    options: &CheckOptions,
) -> Result<Proof> {
    check_with(bundle, engines, None, options)
}

/// The same inside of Python, where `engines` run pt2 models in another way than those that run them
/// elsewhere: such nodes are proved in both.
pub fn check_in_both(
    bundle: &Bundle,
    engines: &dyn EngineProvider,
    elsewhere: &dyn EngineProvider,
    options: &CheckOptions,
) -> Result<Proof> {
    check_with(bundle, engines, Some(elsewhere), options)
}

fn check_with(
    bundle: &Bundle,
    engines: &dyn EngineProvider,
    elsewhere: Option<&dyn EngineProvider>,
    options: &CheckOptions,
) -> Result<Proof> {
    bundle.verify()?;
    let policy = policy(bundle, &options.tolerance)?;
    let samples = Samples::read(bundle)?;
    let mut builder = Builder::new(policy.clone());
    builder.noticed(samples.findings().iter().cloned());
    let mut sessions = prove_nodes(bundle, &samples, engines, &options.session, &mut builder);
    let mut over_time = engines;
    if let Some(elsewhere) = elsewhere {
        let found = prove_elsewhere(bundle, &samples, elsewhere, &sessions, &mut builder);
        sessions.extend(found.sessions);
        over_time = if found.is_complete { elsewhere } else { engines };
    }
    contract::check(bundle, &samples, &mut builder);
    let run_options =
        RunOptions::new().with_session(options.session.clone()).with_fusion(options.fusion);
    builder.rollout(roll_out(bundle, &samples, over_time, &run_options, &policy));
    let mut environment = environment(sessions, &options.session);
    if options.fusion != Fusion::Off {
        let runner = Runner::load(bundle, engines, &run_options)?;
        environment.merged = Conduct::of(&runner, &run_options).merged;
    }
    options.reorder.check(bundle.spec())?;
    environment.reorder = reorder_of(&run_options.with_reorder(options.reorder.clone()));
    let proof = builder.finish(subject(bundle), samples.reference().clone(), environment);
    Ok(Proof { pipeline: Some(describe(bundle)), ..proof })
}

/// What a choice means for a bundle. Refused when a tolerance is for a port that the bundle does not
/// have, and when tolerances are to be those that were derived and there are none.
pub fn policy(bundle: &Bundle, choice: &ToleranceChoice) -> Result<TolerancePolicy> {
    // A stored proof says by what it was judged, which may be wider than what was exported.
    let exported = || exported_policy(bundle).ok().flatten();
    match choice {
        ToleranceChoice::AsRecorded => Ok(exported().unwrap_or_else(default_policy)),
        ToleranceChoice::Given(policy) => {
            refuse_unknown_ports(bundle, policy)?;
            Ok(policy.clone())
        }
        ToleranceChoice::Auto => match exported() {
            Some(policy) if policy.basis == Basis::Auto => Ok(policy),
            _ => Err(no_derived_tolerances(bundle).into()),
        },
    }
}

/// What counted as equal when the bundle was exported, where it says so.
fn exported_policy(bundle: &Bundle) -> Result<Option<TolerancePolicy>> {
    Ok(Samples::metadata(bundle)?.policy().cloned())
}

pub(crate) fn default_policy() -> TolerancePolicy {
    let tolerance = Tolerance::new(DEFAULT.0, DEFAULT.1).expect("the defaults are finite");
    TolerancePolicy::new(tolerance)
}

fn no_derived_tolerances(bundle: &Bundle) -> Diagnostic {
    let message = "the bundle carries no derived tolerances: they need the Python code";
    Diagnostic::error(codes::AUTO_TOLERANCE_UNKNOWN, message)
        .at(Place::file(bundle.yaml_path().display().to_string()))
        .hint("export it with `compile_graph(tolerance=\"auto\")`, or give a tolerance")
}

fn refuse_unknown_ports(bundle: &Bundle, policy: &TolerancePolicy) -> Result<()> {
    let nodes = bundle.spec().nodes.iter();
    let known: Vec<String> = nodes
        .flat_map(|node| node.outputs.iter().map(|port| format!("{}/{}", node.name, port.name)))
        .collect();
    for port in policy.ports.keys() {
        if !known.contains(port) {
            let message = format!("there is no output {port:?} to have a tolerance");
            let hint = match nearest(port, known.iter().map(String::as_str)) {
                Some(meant) => format!("did you mean {meant:?}?"),
                None => format!("the outputs are {}", known.join(", ")),
            };
            let unknown = Diagnostic::error(codes::TOLERANCE_PORT_UNKNOWN, message).hint(hint);
            return Err(unknown.into());
        }
    }
    Ok(())
}
