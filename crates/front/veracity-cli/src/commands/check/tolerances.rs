//! What `--tolerance` and `--equal-nan` mean for a bundle.

use veracity::proof::{ToleranceChoice, policy};
use veracity::results::TolerancePolicy;
use veracity::{Bundle, Diagnostic, Result, codes};

use crate::cli::ToleranceSpec;

/// The tolerances that were asked for. What is said for every port replaces everything that was
/// recorded; what is said for one port changes only that one.
pub(super) fn choice(
    specs: &[ToleranceSpec],
    equal_nan: bool,
    bundle: &Bundle,
) -> Result<ToleranceChoice> {
    if specs.is_empty() && !equal_nan {
        return Ok(ToleranceChoice::AsRecorded);
    }
    let mut policy = base(specs, bundle)?;
    let mut given: Vec<&str> = Vec::new();
    for spec in specs {
        if let ToleranceSpec::Port(port, tolerance) = spec {
            if given.contains(&port.as_str()) {
                return Err(twice(&format!("two tolerances are given for {port:?}")));
            }
            given.push(port);
            policy.ports.insert(port.clone(), *tolerance);
            policy.parts.remove(port);
        }
    }
    policy.equal_nan |= equal_nan;
    Ok(ToleranceChoice::Given(policy))
}

fn base(specs: &[ToleranceSpec], bundle: &Bundle) -> Result<TolerancePolicy> {
    let is_general = |spec: &&ToleranceSpec| !matches!(spec, ToleranceSpec::Port(..));
    let mut general = specs.iter().filter(is_general);
    let first = general.next();
    if general.next().is_some() {
        return Err(twice("two tolerances are given for every port"));
    }
    match first {
        Some(ToleranceSpec::Default(tolerance)) => Ok(TolerancePolicy::new(*tolerance)),
        Some(ToleranceSpec::Auto) => policy(bundle, &ToleranceChoice::Auto),
        Some(ToleranceSpec::Port(..)) | None => policy(bundle, &ToleranceChoice::AsRecorded),
    }
}

fn twice(message: &str) -> veracity::Refusal {
    Diagnostic::error(codes::OPTION_INVALID, message)
        .hint("give `--tolerance` once for every port, and once for each port that differs")
        .into()
}
