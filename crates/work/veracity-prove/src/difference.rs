//! What changed between two proofs, and whether that is for the worse.
//!
//! The rule, for every port of the nodes and of the roll-out:
//!
//! | before | after | judged |
//! |---|---|---|
//! | any verdict | one that ranks worse (proved, conditional, not comparable, disproved) | worse |
//! | any verdict | one that ranks better | better |
//! | disproved | disproved, and the smallest passing `atol` grew by more than a factor of 2 | worse |
//! | disproved | disproved, and it shrank by more than a factor of 2 | better |
//! | there | not there: nothing is known about it any more | gone, which counts as worse |
//! | not there | disproved | worse |
//! | not there | anything else | new |
//!
//! What tracing noticed and had not noticed before is worse, too.
//!
//! The rest is the same. Errors within the tolerance are noise of engines and machines; they are
//! told, not judged. Where no `atol` passes (another shape, NaN) the smallest one is infinite.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use veracity_diag::{Diagnostic, Place, codes};
use veracity_results::{
    Change, Errors, Judged, Measurement, Part, PortDifference, PortProof, PortSide, Proof,
    ProofDifference, ProofRow, SCHEMA_VERSION, Section, Sides, Subject, Tolerance, TolerancePolicy,
    Verdict,
};

/// Growth of the smallest passing `atol` that is not noise.
const GROWTH: f64 = 2.0;

/// What changed from one proof to another.
pub fn difference(before: &Proof, after: &Proof) -> ProofDifference {
    ProofDifference {
        schema_version: SCHEMA_VERSION.to_owned(),
        verdict: Sides { before: before.verdict, after: after.verdict },
        subject: changes(&subject_facts(&before.subject), &subject_facts(&after.subject)),
        reference: changes(&reference_facts(before), &reference_facts(after)),
        environment: changes(&environment_facts(before), &environment_facts(after)),
        policy: changes(&policy_facts(&before.policy), &policy_facts(&after.policy)),
        noticed: new_findings(before, after),
        ports: port_differences(before, after),
    }
}

/// What is worse than in the baseline: one finding for each port, and one for each that tracing had
/// not warned of; empty when nothing is.
pub fn worse_than(baseline: &Proof, proof: &Proof) -> Vec<Diagnostic> {
    let before = sides(baseline);
    let after = sides(proof);
    let found = port_differences(baseline, proof);
    let worse = found.iter().filter(|port| port.judged.is_worse());
    let finding = |port: &PortDifference| {
        let key = (port.section, port.port.clone());
        let tolerances = [&before, &after].map(|rows| rows.get(&key).and_then(Row::tolerance));
        worse_port(port, tolerances)
    };
    let noticed = new_findings(baseline, proof).into_iter().map(new_finding);
    worse.map(finding).chain(noticed).collect()
}

/// What tracing noticed and had not noticed before. Lines of code move, so that they tell nothing.
fn new_findings(baseline: &Proof, proof: &Proof) -> Vec<Diagnostic> {
    let is_same = |one: &Diagnostic, other: &Diagnostic| {
        (one.code, &one.place.node, &one.message) == (other.code, &other.place.node, &other.message)
    };
    let count = |found: &[Diagnostic], wanted: &Diagnostic| {
        found.iter().filter(|one| is_same(one, wanted)).count()
    };
    let mut told: Vec<Diagnostic> = Vec::new();
    for found in &proof.findings {
        if count(&baseline.findings, found) + count(&told, found) < count(&proof.findings, found) {
            told.push(found.clone());
        }
    }
    told
}

fn new_finding(found: Diagnostic) -> Diagnostic {
    let message = format!("{} is new: {}", found.code, found.message);
    found
        .hints
        .into_iter()
        .fold(Diagnostic::error(codes::BASELINE_WORSE, message).at(found.place), Diagnostic::hint)
}

fn worse_port(port: &PortDifference, tolerances: [Option<Tolerance>; 2]) -> Diagnostic {
    let name = match port.section {
        Section::Node => format!("{:?}", port.port),
        Section::Rollout => format!("{:?} over time", port.port),
    };
    let message = match (&port.before, &port.after) {
        (Some(before), None) => {
            format!("{name} was {} and is not in the proof any more", word(before.verdict))
        }
        (Some(before), Some(after)) if before.verdict == after.verdict => format!(
            "{name} is disproved as before, but passes with atol {} only, not with {}",
            min_atol(after),
            min_atol(before)
        ),
        (Some(before), Some(after)) => {
            format!("{name} was {} and is {}", word(before.verdict), word(after.verdict))
        }
        (None, _) => format!("{name} is disproved and was not in the baseline"),
    };
    let place = match port.port.split_once('/') {
        Some((node, port)) => Place::port(node, port),
        None => Place::node(&port.port),
    };
    let found = Diagnostic::error(codes::BASELINE_WORSE, message).at(place);
    match tolerances {
        [Some(before), Some(after)] if before != after => found.hint(format!(
            "the tolerance is not that of the baseline: {}, not {}",
            tolerance_text(after),
            tolerance_text(before)
        )),
        _ => found,
    }
}

fn word(verdict: Verdict) -> &'static str {
    verdict.word()
}

fn tolerance_text(tolerance: Tolerance) -> String {
    format!("atol {:e}, rtol {:e}", tolerance.atol(), tolerance.rtol())
}

/// A port in both proofs is the same port when it has the same name in the same part.
type Rows<'p> = BTreeMap<(Section, String), Row<'p>>;

struct Row<'p> {
    row: ProofRow<'p>,
    equal_nan: bool,
}

fn sides(proof: &Proof) -> Rows<'_> {
    let equal_nan = proof.policy.equal_nan;
    proof.rows().into_iter().map(|row| (key(&row), Row { row, equal_nan })).collect()
}

fn key(row: &ProofRow<'_>) -> (Section, String) {
    let section = if row.is_rollout() { Section::Rollout } else { Section::Node };
    (section, row.name.to_owned())
}

fn port_differences(before: &Proof, after: &Proof) -> Vec<PortDifference> {
    let (earlier, later) = (sides(before), sides(after));
    let present = after.rows().iter().map(key).collect::<Vec<_>>();
    let is_gone = |key: &(Section, String)| !later.contains_key(key);
    let gone: Vec<_> = before.rows().iter().map(key).filter(is_gone).collect();
    let compare = |key: (Section, String)| {
        let [before, after] = [&earlier, &later].map(|rows| rows.get(&key).map(Row::side));
        let judged = judged(before.as_ref(), after.as_ref());
        PortDifference { port: key.1, section: key.0, before, after, judged }
    };
    present.into_iter().chain(gone).map(compare).collect()
}

/// The rule of this module.
fn judged(before: Option<&PortSide>, after: Option<&PortSide>) -> Judged {
    let (before, after) = match (before, after) {
        (_, None) => return Judged::Gone,
        (None, Some(after)) if after.verdict == Verdict::Disproved => return Judged::Worse,
        (None, Some(_)) => return Judged::New,
        (Some(before), Some(after)) => (before, after),
    };
    match after.verdict.cmp(&before.verdict) {
        Ordering::Greater => Judged::Worse,
        Ordering::Less => Judged::Better,
        Ordering::Equal if after.verdict != Verdict::Disproved => Judged::Same,
        Ordering::Equal if min_atol(after) > GROWTH * min_atol(before) => Judged::Worse,
        Ordering::Equal if min_atol(before) > GROWTH * min_atol(after) => Judged::Better,
        Ordering::Equal => Judged::Same,
    }
}

/// The smallest `atol` that passes; infinite where nothing could be measured.
fn min_atol(side: &PortSide) -> f64 {
    side.errors.map_or(f64::INFINITY, |errors| errors.min_atol)
}

impl Row<'_> {
    fn tolerance(&self) -> Option<Tolerance> {
        self.row.tolerance()
    }

    fn side(&self) -> PortSide {
        let errors = match self.row.part {
            Part::Port(_, port) => self.errors_of_port(port),
            Part::RolloutPort(_, port) => Some(self.errors_of(&port.measurement)),
            Part::Node(_) | Part::Rollout(_) => None,
        };
        PortSide { verdict: self.row.verdict, errors }
    }

    /// The worst of all samples; none when one of them could not be measured.
    fn errors_of_port(&self, port: &PortProof) -> Option<Errors> {
        let mut worst: Option<Errors> = None;
        for sample in &port.samples {
            let errors = self.errors_of(sample.measurement.as_ref()?);
            worst = Some(worst.map_or(errors, |worst| Errors {
                max_abs: worst.max_abs.max(errors.max_abs),
                min_atol: worst.min_atol.max(errors.min_atol),
            }));
        }
        worst
    }

    fn errors_of(&self, measured: &Measurement) -> Errors {
        let found = &measured.non_finite;
        let hopeless = found.mismatching > 0 || (found.matching_nan > 0 && !self.equal_nan);
        let min_atol = if hopeless { f64::INFINITY } else { measured.min_atol };
        Errors { max_abs: measured.max_abs, min_atol }
    }
}

/// Named values, to be compared name by name.
type Facts = BTreeMap<String, String>;

fn changes(before: &Facts, after: &Facts) -> Vec<Change> {
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| {
        let [before, after] = [before, after].map(|facts| facts.get(name).cloned());
        (before != after).then(|| Change { what: name.clone(), before, after })
    };
    names.into_iter().filter_map(change).collect()
}

fn subject_facts(subject: &Subject) -> Facts {
    let mut facts = Facts::from([
        ("bundle".to_owned(), subject.bundle.clone()),
        ("description".to_owned(), subject.description_sha256.clone()),
    ]);
    for model in &subject.models {
        let value = format!("{} {} {}", model.backend, model.path, model.sha256);
        facts.insert(format!("model {}", model.node), value);
    }
    let files = subject.files.iter();
    facts.extend(files.map(|(path, sha256)| (format!("file {path}"), sha256.clone())));
    facts
}

fn reference_facts(proof: &Proof) -> Facts {
    let reference = &proof.reference;
    let mut facts = Facts::from([
        ("origin".to_owned(), format!("{:?}", reference.origin).to_lowercase()),
        ("made with".to_owned(), reference.made_with.clone()),
    ]);
    facts.extend(reference.seed.map(|seed| ("seed".to_owned(), seed.to_string())));
    facts
}

fn environment_facts(proof: &Proof) -> Facts {
    let environment = &proof.environment;
    let mut facts = Facts::from([
        ("veracity".to_owned(), proof.veracity_version.clone()),
        ("threads".to_owned(), environment.threads.to_string()),
        ("system".to_owned(), environment.system.clone()),
    ]);
    for session in &environment.sessions {
        let engine = format!("{} {}", session.engine, session.engine_version);
        for (what, value) in [("engine", engine), ("device", session.device.clone())] {
            // A node may have been run by more than one.
            let entry = facts.entry(format!("{what} of {}", session.node)).or_default();
            let known = entry.split(", ").any(|one| one == value);
            if !known {
                *entry = if entry.is_empty() { value } else { format!("{entry}, {value}") };
            }
        }
    }
    facts
}

fn policy_facts(policy: &TolerancePolicy) -> Facts {
    let mut facts = Facts::from([
        ("basis".to_owned(), format!("{:?}", policy.basis).to_lowercase()),
        ("default".to_owned(), tolerance_text(policy.default)),
        ("equal_nan".to_owned(), policy.equal_nan.to_string()),
    ]);
    let ports = policy.ports.iter();
    facts.extend(ports.map(|(port, tolerance)| (port.clone(), tolerance_text(*tolerance))));
    facts
}

#[cfg(test)]
mod tests;
