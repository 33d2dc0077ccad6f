//! Joints: their names, their order, and the numbers that belong to each.

use std::collections::HashMap;

use veracity_diag::{Diagnostic, codes};

use super::{Findings, Status, Topic, listed};
use crate::contract::order::{Relation, readable, relation};
use crate::contract::{Contract, Joints, Number, Quantity, Stated};

/// Compares every group of joints of the bundle with the robot's.
pub(super) fn compare(
    bundle: &Contract,
    robot: &Contract,
    gain_rtol: f64,
    findings: &mut Findings,
) {
    let theirs = robot.joints.first();
    if bundle.joints.is_empty()
        && let Some(theirs) = theirs
    {
        unchecked(theirs, findings, |findings, topic, said| {
            findings.row(topic, Status::Unchecked, String::new(), said);
        });
    }
    for ours in &bundle.joints {
        match theirs {
            Some(theirs) => group(ours, theirs, gain_rtol, findings),
            None => unchecked(ours, findings, |findings, topic, said| {
                findings.row(topic, Status::Unchecked, said, String::new());
            }),
        }
    }
}

/// Notes everything about joints that only one side has.
fn unchecked(
    joints: &Joints,
    findings: &mut Findings,
    note: impl Fn(&mut Findings, Topic<'_>, String),
) {
    let topic = |aspect| Topic { subject: &joints.subject, aspect };
    if !joints.of_port {
        note(findings, topic("order"), called(joints));
    }
    for (quantity, numbers) in &joints.quantities {
        note(findings, topic(quantity.name()), shown(&numbers.value));
    }
}

fn group(ours: &Joints, theirs: &Joints, gain_rtol: f64, findings: &mut Findings) {
    let by_position = (!theirs.has_names).then(|| by_position(ours, theirs, findings));
    let theirs = match &by_position {
        Some(Some(theirs)) => theirs,
        Some(None) => return,
        None => theirs,
    };
    if !ours.of_port && theirs.has_names {
        order(ours, theirs, findings);
    }
    for quantity in Quantity::all() {
        let find = |joints: &Joints| -> Option<Stated<Vec<Option<Number>>>> {
            let mut all = joints.quantities.iter();
            all.find(|(other, _)| *other == quantity).map(|(_, numbers)| numbers.clone())
        };
        let (own, other) = (find(ours), find(theirs));
        let topic = Topic { subject: &ours.subject, aspect: quantity.name() };
        let both = findings.both(topic, own.as_ref(), other.as_ref(), |all| shown(all));
        if let Some((own, other)) = both {
            let bundle = Numbers { names: &ours.names.value, all: own };
            let robot = Numbers { names: &theirs.names.value, all: other };
            numbers(topic, &bundle, &robot, gain_rtol, findings);
        }
    }
}

/// A robot's joints under the bundle's names, where the robot has none: the first is the first. That
/// this is so cannot be checked, and is told as that. Nothing where their numbers differ.
fn by_position(ours: &Joints, theirs: &Joints, findings: &mut Findings) -> Option<Joints> {
    let topic = Topic { subject: &ours.subject, aspect: "order" };
    let (bundle, robot) = (listed(&ours.names.value), called(theirs));
    let (own, other) = (ours.names.value.len(), theirs.names.value.len());
    if own == other {
        findings.row(topic, Status::Unchecked, bundle, robot);
        return Some(Joints { names: ours.names.clone(), ..theirs.clone() });
    }
    let message = format!("{} are {own} in the bundle, {other} on the robot", ours.subject);
    let problem = Diagnostic::error(codes::SIZE_DIFFERS, message).at(theirs.names.place.clone());
    findings.differs(topic, bundle, robot, problem);
    None
}

/// The joints for a row.
fn called(joints: &Joints) -> String {
    if joints.has_names {
        return listed(&joints.names.value);
    }
    format!("{} joints without names", joints.names.value.len())
}

fn order(ours: &Joints, theirs: &Joints, findings: &mut Findings) {
    let topic = Topic { subject: &ours.subject, aspect: "order" };
    let (bundle, robot) = (listed(&ours.names.value), listed(&theirs.names.value));
    match relation(&ours.names.value, &theirs.names.value) {
        Relation::Same => findings.row(topic, Status::Agrees, bundle, robot),
        Relation::Different { only_left, only_right } => {
            findings.row(topic, Status::Differs, bundle, robot);
            findings.names_differ(&ours.subject, &only_left, &only_right, &theirs.names);
        }
        Relation::Repeated(name) => {
            findings.row(topic, Status::Unchecked, bundle, robot);
            findings.repeated(&ours.subject, &name, &theirs.names);
        }
        Relation::Permuted(take) => {
            let message = format!(
                "{} stand in another order: the bundle's 0 to {} are the robot's {}",
                ours.subject,
                take.len() - 1,
                readable(&take)
            );
            let problem = Diagnostic::error(codes::ELEMENT_ORDER, message)
                .at(theirs.names.place.clone())
                .hint("a map brings those ports in order whose elements are named on both sides");
            findings.differs(topic, bundle, robot, problem);
        }
    }
}

/// Numbers of joints, in the order of their names.
struct Numbers<'n> {
    names: &'n [String],
    all: &'n Stated<Vec<Option<Number>>>,
}

/// Compares joint by joint, by name.
fn numbers(
    topic: Topic<'_>,
    bundle: &Numbers<'_>,
    robot: &Numbers<'_>,
    gain_rtol: f64,
    findings: &mut Findings,
) {
    let known: HashMap<&String, Option<Number>> =
        robot.names.iter().zip(robot.all.value.iter().copied()).collect();
    let mut compared = 0;
    let mut wrong: Vec<String> = Vec::new();
    for (name, own) in bundle.names.iter().zip(&bundle.all.value) {
        let (Some(own), Some(Some(other))) = (own, known.get(name)) else { continue };
        compared += 1;
        if !own.agrees(*other, gain_rtol) {
            wrong.push(format!("{name:?} ({own} in the bundle, {other} on the robot)"));
        }
    }
    let (ours, theirs) = (shown(&bundle.all.value), shown(&robot.all.value));
    if compared == 0 {
        return findings.row(topic, Status::Unchecked, ours, theirs);
    }
    if wrong.is_empty() {
        if compared < bundle.names.len() {
            let left = Topic { aspect: &format!("{}, other joints", topic.aspect), ..topic };
            findings.row(left, Status::Unchecked, ours.clone(), String::new());
        }
        return findings.row(topic, Status::Agrees, ours, theirs);
    }
    let count = wrong.len();
    wrong.truncate(8);
    let more = if count > wrong.len() { " and others" } else { "" };
    let message = format!(
        "{} of {} differs for {count} of {compared} joints: {}{more}",
        topic.aspect,
        topic.subject,
        wrong.join(", ")
    );
    let problem = Diagnostic::error(codes::GAIN_DIFFERS, message)
        .at(robot.all.place.clone())
        .hint("if the difference is meant, allow it with `--gain-rtol`");
    findings.differs(topic, ours, theirs, problem);
}

/// Numbers for a row: one when all are alike.
fn shown(numbers: &[Option<Number>]) -> String {
    let text = |number: &Option<Number>| number.map_or("-".to_owned(), |number| number.to_string());
    match numbers.first() {
        Some(first) if numbers.iter().all(|number| number == first) => text(first),
        _ => numbers.iter().map(text).collect::<Vec<_>>().join(", "),
    }
}
