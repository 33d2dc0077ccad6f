//! Ports: which of the robot's is which of the bundle's, and what both say about it.

use std::collections::HashMap;

use veracity_diag::{Diagnostic, codes, nearest};

use super::elements;
use super::{Findings, Status, Topic, near};
use crate::Direction;
use crate::contract::units::{Kinship, kinship};
use crate::contract::{Contract, Port, Stated};

pub(super) fn compare(bundle: &Contract, robot: &Contract, findings: &mut Findings) {
    let partner = partners(bundle, robot, findings);
    for (position, ours) in bundle.ports.iter().enumerate() {
        match partner.get(&position) {
            Some(&theirs) => port(ours, &robot.ports[theirs], findings),
            None => missing(ours, robot, findings),
        }
    }
}

/// For ports of the bundle the robot's that are the same.
fn partners(bundle: &Contract, robot: &Contract, findings: &mut Findings) -> HashMap<usize, usize> {
    let mut partner = HashMap::new();
    for (position, theirs) in robot.ports.iter().enumerate() {
        let problem = match candidates(theirs, bundle).as_slice() {
            [] if !robot.lists_all_ports => continue,
            [] => extra(theirs, bundle),
            [only] if !partner.contains_key(only) => {
                partner.insert(*only, position);
                continue;
            }
            [only] => {
                let key = &bundle.ports[*only].key;
                let message = format!("{} {key:?} is declared twice", theirs.direction);
                Diagnostic::error(codes::CONTRACT_INVALID, message)
            }
            several => {
                let keys: Vec<&str> =
                    several.iter().map(|&ours| bundle.ports[ours].key.as_str()).collect();
                let message = format!("{:?} may be any of {}", theirs.key, keys.join(", "));
                Diagnostic::error(codes::CONTRACT_INVALID, message)
                    .hint("write the port as `node/port`")
            }
        };
        findings.diagnostics.push(problem.at(theirs.place.clone()));
    }
    partner
}

/// The bundle's ports that a robot's port may be.
fn candidates(theirs: &Port, bundle: &Contract) -> Vec<usize> {
    let is_it = |ours: &Port| {
        let name = ours.key.rsplit('/').next().unwrap_or_default();
        ours.direction == theirs.direction && (ours.key == theirs.key || name == theirs.key)
    };
    (0..bundle.ports.len()).filter(|&ours| is_it(&bundle.ports[ours])).collect()
}

/// A robot's port that the bundle does not have. A robot may offer more than is asked for, but
/// cannot act on what it does not get.
fn extra(theirs: &Port, bundle: &Contract) -> Diagnostic {
    let direction = theirs.direction;
    let message = format!("the bundle has no {direction} {:?}", theirs.key);
    let problem = match direction {
        Direction::Input => Diagnostic::warning(codes::ROBOT_PORT_EXTRA, message),
        Direction::Output => Diagnostic::error(codes::ROBOT_PORT_EXTRA, message),
    };
    let same_side = bundle.ports.iter().filter(|ours| ours.direction == direction);
    let keys: Vec<&str> = same_side.map(|ours| ours.key.as_str()).collect();
    let name = |key: &&str| key.rsplit('/').next().unwrap_or_default().to_owned();
    let names: Vec<String> = keys.iter().map(name).collect();
    let known = keys.iter().copied().chain(names.iter().map(String::as_str));
    problem.hint(match nearest(&theirs.key, known) {
        Some(meant) => format!("did you mean {meant:?}?"),
        None => format!("its {direction}s are {}", keys.join(", ")),
    })
}

/// A bundle's port that the robot does not declare. A robot that declares no port on that side
/// says nothing about them; one that declares others cannot feed this one.
fn missing(ours: &Port, robot: &Contract, findings: &mut Findings) {
    let topic = Topic { subject: &ours.key, aspect: "port" };
    let declares_any = robot.ports.iter().any(|theirs| theirs.direction == ours.direction);
    if !(declares_any && robot.lists_all_ports) {
        return findings.row(topic, Status::Unchecked, ours.direction.to_string(), String::new());
    }
    let message = format!("the robot does not declare {} {:?}", ours.direction, ours.key);
    let problem = match ours.direction {
        Direction::Input => Diagnostic::error(codes::ROBOT_PORT_MISSING, message),
        Direction::Output => Diagnostic::warning(codes::ROBOT_PORT_MISSING, message),
    };
    let status = match ours.direction {
        Direction::Input => Status::Differs,
        Direction::Output => Status::Unchecked,
    };
    findings.row(topic, status, ours.direction.to_string(), String::new());
    findings.diagnostics.push(problem.at(robot.place.clone()));
}

fn port(ours: &Port, theirs: &Port, findings: &mut Findings) {
    let before = findings.rows.len();
    sizes(ours, theirs, findings);
    kind(ours, theirs, findings);
    elements::compare(ours, theirs, findings);
    units(ours, theirs, findings);
    period(ours, theirs, findings);
    if findings.rows.len() == before {
        let topic = Topic { subject: &ours.key, aspect: "port" };
        findings.row(topic, Status::Agrees, "there".to_owned(), "there".to_owned());
    }
}

fn sizes(ours: &Port, theirs: &Port, findings: &mut Findings) {
    let (key, direction) = (&ours.key, ours.direction);
    if let (Some(own), Some(other)) = (&ours.shape, &theirs.shape) {
        let topic = Topic { subject: key, aspect: "shape" };
        let (bundle, robot) = (format!("{:?}", own.value), format!("{:?}", other.value));
        if own.value == other.value {
            findings.row(topic, Status::Agrees, bundle, robot);
        } else {
            let message = format!("{direction} {key:?} is {bundle} in the bundle, not {robot}");
            let problem = Diagnostic::error(codes::SIZE_DIFFERS, message).at(other.place.clone());
            findings.differs(topic, bundle, robot, problem);
        }
    }
    if let (Some(own), Some(other)) = (&ours.dtype, &theirs.dtype) {
        let topic = Topic { subject: key, aspect: "dtype" };
        let (bundle, robot) = (own.value.to_string(), other.value.to_string());
        if own.value == other.value {
            findings.row(topic, Status::Agrees, bundle, robot);
        } else {
            let message = format!("{direction} {key:?} is {bundle} in the bundle, not {robot}");
            let problem = Diagnostic::error(codes::SIZE_DIFFERS, message)
                .at(other.place.clone())
                .hint("nothing is converted silently: convert it on the robot's side");
            findings.differs(topic, bundle, robot, problem);
        }
    }
}

fn kind(ours: &Port, theirs: &Port, findings: &mut Findings) {
    let topic = Topic { subject: &ours.key, aspect: "kind" };
    let both = findings.both(topic, ours.kind.as_ref(), theirs.kind.as_ref(), String::clone);
    let Some((own, other)) = both else { return };
    let (bundle, robot) = (own.value.clone(), other.value.clone());
    if bundle == robot {
        return findings.row(topic, Status::Agrees, bundle, robot);
    }
    let direction = ours.direction;
    let message = format!(
        "{direction} {:?} is a {bundle:?} for the bundle, a {robot:?} for the robot",
        ours.key
    );
    let problem = Diagnostic::error(codes::KIND_DIFFERS, message).at(other.place.clone());
    findings.differs(topic, bundle, robot, problem);
}

fn period(ours: &Port, theirs: &Port, findings: &mut Findings) {
    let topic = Topic { subject: &ours.key, aspect: "period" };
    let show = |period: &f64| format!("{period} ms");
    let (own, other) = (ours.temporal_period_ms.as_ref(), theirs.temporal_period_ms.as_ref());
    let Some((own, other)) = findings.both(topic, own, other, show) else { return };
    let (bundle, robot) = (show(&own.value), show(&other.value));
    if near(own.value, other.value) {
        return findings.row(topic, Status::Agrees, bundle, robot);
    }
    let message = format!(
        "{} {:?} has an element every {bundle} in the bundle, every {robot} on the robot",
        ours.direction, ours.key
    );
    let problem = Diagnostic::error(codes::RATE_DIFFERS, message).at(other.place.clone());
    findings.differs(topic, bundle, robot, problem);
}

fn units(ours: &Port, theirs: &Port, findings: &mut Findings) {
    let topic = Topic { subject: &ours.key, aspect: "units" };
    let show = |units: &Vec<String>| units.join(", ");
    let both = findings.both(topic, ours.units.as_ref(), theirs.units.as_ref(), show);
    let Some((own, other)) = both else { return };
    let (bundle, robot) = (show(&own.value), show(&other.value));
    let problem = match elements::unit_pairs(ours, theirs, &own.value, &other.value) {
        Ok(pairs) => unit_problem(ours, other, &pairs),
        Err(why) => Some(Diagnostic::error(codes::UNIT_DIFFERS, why).at(other.place.clone())),
    };
    match problem {
        None => findings.row(topic, Status::Agrees, bundle, robot),
        Some(problem) => findings.differs(topic, bundle, robot, problem),
    }
}

/// What is wrong with units, element by element: those that differ, and the factor if there is one
/// for all of them.
fn unit_problem(
    port: &Port,
    robot: &Stated<Vec<String>>,
    pairs: &[(String, &str, &str)],
) -> Option<Diagnostic> {
    let differing = |(name, own, other): &(String, &str, &str)| match kinship(other, own) {
        Kinship::Same => None,
        kinship => Some((name.clone(), (*own).to_owned(), (*other).to_owned(), kinship)),
    };
    let wrong: Vec<_> = pairs.iter().filter_map(differing).collect();
    let (name, own, other, kinship) = wrong.first()?;
    let at = if name.is_empty() { String::new() } else { format!(" at {name:?}") };
    let more =
        if wrong.len() > 1 { format!(" (and {} more)", wrong.len() - 1) } else { String::new() };
    let message = format!(
        "{} {:?}{at} is in {own:?} for the bundle, in {other:?} for the robot{more}",
        port.direction, port.key
    );
    let problem = Diagnostic::error(codes::UNIT_DIFFERS, message).at(robot.place.clone());
    Some(match kinship {
        // A factor turns the robot's values into the bundle's; outputs go the other way.
        Kinship::Factor(factor) => problem.hint(match port.direction {
            Direction::Input => format!("multiply the robot's values by {factor}"),
            Direction::Output => format!("multiply the bundle's values by {}", factor.recip()),
        }),
        Kinship::Unknown => problem.hint("at least one of them is not a unit known here"),
        Kinship::Same | Kinship::Different => problem,
    })
}
