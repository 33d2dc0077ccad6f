//! The elements of a port: their names, their number, their order.

use std::collections::HashMap;

use veracity_diag::{Diagnostic, codes};

use super::{Findings, Status, Topic, listed};
use crate::contract::order::{Relation, readable, relation};
use crate::contract::{Port, Stated};
use crate::{AxisNames, PortRef, Reorder};

/// Compares the names along every axis that both sides name.
pub(super) fn compare(ours: &Port, theirs: &Port, findings: &mut Findings) {
    let topic = Topic { subject: &ours.key, aspect: "order" };
    let (own, other) = match (&ours.element_names, &theirs.element_names) {
        (None, None) => return,
        (Some(own), Some(other)) => (own, other),
        (own, other) => {
            let text = |names: &Option<Stated<Vec<AxisNames>>>| {
                names.as_ref().map(|names| shown(&names.value)).unwrap_or_default()
            };
            findings.row(topic, Status::Unchecked, text(own), text(other));
            return unnamed(ours, theirs, findings);
        }
    };
    match axes(ours, &own.value, &other.value) {
        Ok(axes) => {
            for axis in axes {
                compare_axis(ours, &axis, other, findings);
            }
        }
        Err(why) => {
            let message = format!("{} {:?}: {why}", ours.direction, ours.key);
            let problem = Diagnostic::error(codes::SIZE_DIFFERS, message).at(other.place.clone());
            findings.differs(topic, shown(&own.value), shown(&other.value), problem);
        }
    }
}

/// Only one side names the elements: their order is unknown, their number may still be wrong.
fn unnamed(ours: &Port, theirs: &Port, findings: &mut Findings) {
    let place = theirs.element_names.as_ref().map_or(&theirs.place, |names| &names.place);
    let (silent, other) = match theirs.element_names {
        Some(_) => ("the bundle does", "the robot does"),
        None => ("the robot does", "the bundle does"),
    };
    if let (Some(names), Some(shape)) = (&theirs.element_names, &ours.shape)
        && let [AxisNames::Named(list)] = names.value.as_slice()
        && named_axis(list, &shape.value).is_err()
    {
        let message = format!(
            "the robot names {} elements of {} {:?}, which is {:?}",
            list.len(),
            ours.direction,
            ours.key,
            shape.value
        );
        let problem = Diagnostic::error(codes::SIZE_DIFFERS, message).at(place.clone());
        return findings.diagnostics.push(problem);
    }
    let message = format!(
        "the order of {} {:?} was not compared: {silent} not name its elements, {other}",
        ours.direction, ours.key
    );
    findings
        .diagnostics
        .push(Diagnostic::warning(codes::CONTRACT_UNCHECKED, message).at(place.clone()));
}

/// Names along one axis, as both sides have them. No axis means all elements.
struct Axis<'n> {
    position: Option<usize>,
    ours: &'n [String],
    theirs: &'n [String],
}

/// Pairs up the axes that both sides name.
fn axes<'n>(
    port: &Port,
    ours: &'n [AxisNames],
    theirs: &'n [AxisNames],
) -> Result<Vec<Axis<'n>>, String> {
    let shape = port.shape.as_ref().map(|shape| shape.value.as_slice()).unwrap_or_default();
    let ours = resolved(ours, shape)?;
    if let [AxisNames::Named(theirs)] = theirs {
        // A single list is for the one axis that has names, whichever it is.
        return match ours.as_slice() {
            [] => Ok(Vec::new()),
            [(axis, ours)] => Ok(vec![Axis { position: *axis, ours, theirs }]),
            _ => Err("the bundle names more than one axis: give names for each axis".to_owned()),
        };
    }
    let theirs = resolved(theirs, shape)?;
    let pair = |(axis, ours): &Named<'n>| {
        let (_, theirs) = theirs.iter().find(|(other, _)| other == axis)?;
        Some(Axis { position: *axis, ours, theirs })
    };
    Ok(ours.iter().filter_map(pair).collect())
}

/// Position and names of an axis; no position means all elements.
type Named<'n> = (Option<usize>, &'n [String]);

/// The axes that have names.
fn resolved<'n>(axes: &'n [AxisNames], shape: &[usize]) -> Result<Vec<Named<'n>>, String> {
    if let [AxisNames::Named(names)] = axes {
        return Ok(vec![(named_axis(names, shape)?, names)]);
    }
    if axes.len() != shape.len() {
        return Err(format!("names for {} axes, but the shape is {shape:?}", axes.len()));
    }
    let named = axes.iter().enumerate().filter_map(|(axis, names)| match names {
        AxisNames::Named(names) => Some((Some(axis), names.as_slice())),
        AxisNames::Unnamed | AxisNames::Temporal => None,
    });
    Ok(named.collect())
}

/// The axis that a single list of names is for: the last, or none when it is for all elements.
fn named_axis(names: &[String], shape: &[usize]) -> Result<Option<usize>, String> {
    if shape.last() == Some(&names.len()) {
        return Ok(Some(shape.len() - 1));
    }
    if shape.iter().product::<usize>() == names.len() {
        return Ok(None);
    }
    Err(format!("{} names for shape {shape:?}", names.len()))
}

fn compare_axis(
    port: &Port,
    axis: &Axis<'_>,
    robot: &Stated<Vec<AxisNames>>,
    findings: &mut Findings,
) {
    let topic = Topic { subject: &port.key, aspect: "order" };
    let (bundle_text, robot_text) = (listed(axis.ours), listed(axis.theirs));
    match relation(axis.ours, axis.theirs) {
        Relation::Same => findings.row(topic, Status::Agrees, bundle_text, robot_text),
        Relation::Different { only_left, only_right } => {
            let topic = Topic { aspect: "names", ..topic };
            findings.row(topic, Status::Differs, bundle_text, robot_text);
            let what = format!("{} {:?}", port.direction, port.key);
            findings.names_differ(&what, &only_left, &only_right, robot);
        }
        Relation::Repeated(name) => {
            findings.row(topic, Status::Unchecked, bundle_text, robot_text);
            findings.repeated(&format!("{} {:?}", port.direction, port.key), &name, robot);
        }
        Relation::Permuted(robot_of_bundle) => {
            let message = format!(
                "{} {:?} has the same elements in another order: the bundle's 0 to {} are the robot's {}",
                port.direction,
                port.key,
                robot_of_bundle.len() - 1,
                readable(&robot_of_bundle)
            );
            let problem = Diagnostic::error(codes::ELEMENT_ORDER, message)
                .at(robot.place.clone())
                .hint("write the map with `--write-map map.yaml` and run the bundle with it");
            findings.differs(topic, bundle_text, robot_text, problem);
            if let Ok(key) = port.key.parse::<PortRef>() {
                let (direction, position) = (port.direction, axis.position);
                let order =
                    Reorder::from_robot_of_bundle(key, direction, position, robot_of_bundle);
                let (bundle, robot) = (Some(axis.ours.to_vec()), Some(axis.theirs.to_vec()));
                findings.reordered(Reorder { bundle, robot, ..order });
            }
        }
    }
}

/// The units of both sides for each element, matched by name where both have names. One unit for
/// all elements on both sides is a single pair without a name.
pub(super) fn unit_pairs<'u>(
    ours: &Port,
    theirs: &Port,
    own: &'u [String],
    other: &'u [String],
) -> Result<Vec<(String, &'u str, &'u str)>, String> {
    if let ([own], [other]) = (own, other) {
        return Ok(vec![(String::new(), own, other)]);
    }
    let count = own.len().max(other.len());
    let own = by_name(own, element_names(ours, count), &ours.key)?;
    let other = by_name(other, element_names(theirs, count), &ours.key)?;
    let other: HashMap<String, &str> = other.into_iter().collect();
    let pair = |(name, own): (String, &'u str)| {
        let other = *other.get(&name)?;
        Some((name, own, other))
    };
    Ok(own.into_iter().filter_map(pair).collect())
}

/// The names of a port's one named axis, or the numbers of its elements.
fn element_names(port: &Port, count: usize) -> Vec<String> {
    let axes = port.element_names.as_ref().map(|names| names.value.as_slice());
    let mut named = axes.unwrap_or_default().iter().filter_map(|axis| match axis {
        AxisNames::Named(names) => Some(names.clone()),
        AxisNames::Unnamed | AxisNames::Temporal => None,
    });
    named.next().unwrap_or_else(|| (0..count).map(|index| index.to_string()).collect())
}

/// A unit for each name; a single unit is for all of them.
fn by_name<'u>(
    units: &'u [String],
    names: Vec<String>,
    key: &str,
) -> Result<Vec<(String, &'u str)>, String> {
    match units {
        [one] => Ok(names.into_iter().map(|name| (name, one.as_str())).collect()),
        _ if units.len() == names.len() => {
            Ok(names.into_iter().zip(units.iter().map(String::as_str)).collect())
        }
        _ => Err(format!("{} units for {} elements of {key:?}", units.len(), names.len())),
    }
}

fn shown(axes: &[AxisNames]) -> String {
    let text = |axis: &AxisNames| match axis {
        AxisNames::Named(names) => listed(names),
        AxisNames::Unnamed => "-".to_owned(),
        AxisNames::Temporal => "time".to_owned(),
    };
    axes.iter().map(text).collect::<Vec<_>>().join(" x ")
}
