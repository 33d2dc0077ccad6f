//! What is asked of a proof before a bundle is run, and how a bundle is loaded under such a demand.

use veracity_diag::{Code, Diagnostic, Place, Refusal, Result, codes};
use veracity_results::{Proof, Tolerance, TolerancePolicy, Verdict};
use veracity_runtime::{EngineProvider, RunOptions, Runner};
use veracity_spec::Bundle;

use crate::check::{CheckOptions, check, default_policy};
use crate::conduct::Conduct;
use crate::consistency::contradiction;
use crate::samples::Samples;
use crate::standing::{Standing, judge_standing};
use crate::store::of_bundle;
use crate::subject::subject;

/// What somebody wants of a proof before a bundle is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demand {
    /// Whether a verdict may rest on assumptions.
    pub accept_conditional: bool,
    /// The widest tolerance that the proof may have been judged by; `None` for what the bundle was
    /// exported with.
    pub ceiling: Option<Tolerance>,
    /// Whether to prove the bundle now, as it will run, instead of believing its proof.
    pub prove: bool,
}

/// Loads a bundle if its proof, or one that is made now, covers how it will be run.
pub fn load_proved(
    bundle: &Bundle,
    engines: &dyn EngineProvider,
    options: &RunOptions,
    demand: &Demand,
) -> Result<Runner> {
    // A bundle that is refused anyway need not be loaded for it.
    let stored = if demand.prove { None } else { Some(require(bundle, demand)?) };
    let runner = Runner::load(bundle, engines, options)?;
    let proof = match stored {
        Some(proof) => proof,
        None => prove_now(bundle, engines, options, demand)?,
    };
    let within = |refused: Box<Diagnostic>| Refusal::from(refused.at(place(bundle)));
    Conduct::of(&runner, options).covered_by(&proof).map_err(within)?;
    Ok(runner)
}

fn prove_now(
    bundle: &Bundle,
    engines: &dyn EngineProvider,
    options: &RunOptions,
    demand: &Demand,
) -> Result<Proof> {
    // A proof that lies in the bundle does not say how wide the new one may be.
    let widest = widest(Samples::metadata(bundle)?.policy(), demand);
    let checked = CheckOptions {
        tolerance: crate::ToleranceChoice::Given(widest),
        session: options.session.clone(),
        fusion: options.fusion,
        reorder: options.reorder.clone(),
    };
    let proof = check(bundle, engines, &checked)?;
    let standing = judge_standing(&proof, &subject(bundle));
    accept(bundle, standing, demand).map(|()| proof)
}

/// Refuses a bundle whose proof is missing, stale, negative, contradicts itself or the bundle, was
/// judged too widely, or rests on assumptions that nobody accepted. Gives the proof.
pub fn require(bundle: &Bundle, demand: &Demand) -> Result<Proof> {
    let has_proof = bundle.spec().veracity.as_ref().is_some_and(|block| block.proof.is_some());
    if !has_proof {
        accept(bundle, Standing::Missing, demand)?;
    }
    let proof = of_bundle(bundle)?;
    accept(bundle, judge_standing(&proof, &subject(bundle)), demand)?;
    let samples = Samples::read(bundle)?;
    if let Some(what) = contradiction(bundle, &samples, &proof) {
        let message = format!("the proof does not hold together: {what}");
        return Err(refused(bundle, codes::PROOF_INCONSISTENT, message, again(bundle)));
    }
    let ceiling = widest(samples.policy(), demand);
    if let Some(port) = too_wide(bundle, &proof.policy, &ceiling) {
        let (used, most) = (text(proof.policy.of(&port)), text(ceiling.of(&port)));
        let message = if proof.policy.parts_of(&port) == ceiling.parts_of(&port) {
            format!("`{port}` was judged by {used}, and {most} is allowed")
        } else {
            format!("`{port}` was judged by {used}, and less is allowed for some of its elements")
        };
        let hint = format!(
            "`veracity check {} --save` judges it as it was exported; `--ceiling` (`ceiling=`) \
             allows more",
            bundle.root().display()
        );
        return Err(refused(bundle, codes::PROOF_TOO_WIDE, message, hint));
    }
    Ok(proof)
}

/// The widest tolerances that are allowed, for a bundle that was exported with these.
fn widest(exported: Option<&TolerancePolicy>, demand: &Demand) -> TolerancePolicy {
    match demand.ceiling {
        Some(ceiling) => TolerancePolicy::new(ceiling),
        None => exported.cloned().unwrap_or_else(default_policy),
    }
}

/// The first output of floats whose tolerance is wider than allowed.
fn too_wide(bundle: &Bundle, used: &TolerancePolicy, most: &TolerancePolicy) -> Option<String> {
    let nodes = bundle.spec().nodes.iter();
    let floats = nodes.flat_map(|node| {
        let floats = node.outputs.iter().filter(|port| port.dtype.is_float());
        floats.map(|port| format!("{}/{}", node.name, port.name))
    });
    let within =
        |used: Tolerance, most: Tolerance| used.atol() <= most.atol() && used.rtol() <= most.rtol();
    let is_wide = |port: &String| {
        let (used_here, parts) = (used.of(port), most.parts_of(port));
        // The tolerance of a port is the widest of those of its elements.
        let elements = used.parts_of(port) == parts
            || parts.iter().all(|part| within(used_here, part.tolerance));
        !within(used_here, most.of(port)) || !elements || (used.equal_nan && !most.equal_nan)
    };
    floats.into_iter().find(is_wide)
}

fn text(tolerance: Tolerance) -> String {
    format!("atol {:e} and rtol {:e}", tolerance.atol(), tolerance.rtol())
}

fn accept(bundle: &Bundle, standing: Standing, demand: &Demand) -> Result<()> {
    let root = bundle.root().display();
    let (code, message, hint) = match standing {
        Standing::Good => return Ok(()),
        Standing::Conditional(_) if demand.accept_conditional => return Ok(()),
        Standing::Missing => {
            (codes::PROOF_MISSING, "the bundle has no proof".to_owned(), again(bundle))
        }
        Standing::Stale(change) => {
            (codes::PROOF_STALE, format!("the proof is stale: {change}"), again(bundle))
        }
        Standing::Negative(Verdict::Disproved) => (
            codes::PROOF_NEGATIVE,
            "the bundle was disproved".to_owned(),
            format!("`veracity check {root}` says why; fix it and export again"),
        ),
        Standing::Negative(_) => (
            codes::PROOF_NEGATIVE,
            "not everything in the bundle could be proved".to_owned(),
            again(bundle),
        ),
        Standing::OnlyRepeats => (
            codes::PROOF_NEGATIVE,
            "the proof shows that runs repeat, and nothing about the Python code".to_owned(),
            "export it from the Python code with Veracity, which records what the code computes"
                .to_owned(),
        ),
        Standing::Conditional(open) => (
            codes::PROOF_CONDITIONAL,
            format!("the bundle is right only under {}", assumptions(open)),
            format!(
                "`veracity check {root}` lists them with what would settle them; \
                 `--accept-conditional` (`accept_conditional=True`) takes them as they are"
            ),
        ),
    };
    Err(refused(bundle, code, message, hint))
}

fn again(bundle: &Bundle) -> String {
    format!("`veracity check {} --save` proves it again", bundle.root().display())
}

fn refused(bundle: &Bundle, code: Code, message: String, hint: String) -> Refusal {
    Refusal::from(Diagnostic::error(code, message).at(place(bundle)).hint(hint))
}

fn place(bundle: &Bundle) -> Place {
    Place::file(bundle.yaml_path().display().to_string())
}

fn assumptions(open: usize) -> String {
    if open == 1 { "1 assumption".to_owned() } else { format!("{open} assumptions") }
}
