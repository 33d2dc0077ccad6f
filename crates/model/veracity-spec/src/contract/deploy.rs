//! Reads a `deploy.yaml`, which Unitree's training writes for the controllers of its robots.
//!
//! It has numbers and no names, so that joints are told apart by their positions. Gains stand in the
//! order of the motors, defaults and actions in that of the policy; joint `i` of the policy is motor
//! `joint_ids_map[i]`. Keys that say nothing about a contract (clipping, ranges) are not read.

use veracity_diag::{Diagnostic, codes};

use super::order::is_permutation;
use super::quantity::{Number, Quantity};
use super::robot::{MAX_JOINTS, given, invalid, positive};
use super::{Contract, Joints, Stated};
use crate::check::fields;
use crate::yaml::{Atom, Kind, Node as YamlNode, Problems, Scalar, Source};

/// The key that no other robot file has.
const MAP: &str = "joint_ids_map";

/// Actions that are about all joints.
const ACTIONS: [&str; 2] = ["JointPositionAction", "JointVelocityAction"];

/// Whether a file is one of these.
pub(super) fn is_deploy(root: &YamlNode) -> bool {
    root.get(MAP).is_some()
}

/// Fills in what the file says.
pub(super) fn read(
    root: &YamlNode,
    source: &Source,
    contract: &mut Contract,
    problems: &mut Problems<'_>,
) {
    // It is about what one policy reads, not about everything that the robot has.
    contract.lists_all_ports = false;
    contract.rate_hz = given(root, "step_dt").and_then(|node| {
        let secs = positive(node, "step_dt", problems)?;
        Some(Stated::new(rate(secs), source.place(node.span)))
    });
    for (slot, key) in [
        (&mut contract.observation_names, "observations"),
        (&mut contract.command_names, "commands"),
    ] {
        *slot = given(root, key)
            .and_then(|node| Some(Stated::new(terms(node)?, source.place(node.span))));
    }
    let Some(map) = given(root, MAP) else { return };
    let Some(motors) = positions(map, problems) else { return };
    let mut quantities = gains(root, source, &motors, problems);
    quantities.extend(settings(root, source, motors.len(), problems));
    quantities.sort_by_key(|(quantity, _)| *quantity);
    let names = (0..motors.len()).map(|joint| joint.to_string()).collect();
    contract.joints.push(Joints {
        subject: "the joints".to_owned(),
        names: Stated::new(names, source.place(map.span)),
        has_names: false,
        of_port: false,
        quantities,
    });
}

/// Numbers of all joints, in the order of the policy.
type Numbers = (Quantity, Stated<Vec<Option<Number>>>);

/// What stands in the order of the motors.
fn gains(
    root: &YamlNode,
    source: &Source,
    motors: &[usize],
    problems: &mut Problems<'_>,
) -> Vec<Numbers> {
    let mut found = Vec::new();
    for key in ["stiffness", "damping"] {
        let Some(node) = given(root, key) else { continue };
        let Some(numbers) = numbers(node, key, problems) else { continue };
        if numbers.len() != motors.len() || !is_permutation(motors) {
            let message = format!(
                "`{key}` has {} numbers, and `{MAP}` does not say which joint each is for; it is \
                 not compared",
                numbers.len()
            );
            problems.add(node.span, Diagnostic::warning(codes::CONTRACT_INVALID, message));
            continue;
        }
        let own = motors.iter().map(|motor| numbers[*motor]).collect();
        found.extend(known(key).map(|of| (of, Stated::new(own, source.place(node.span)))));
    }
    found
}

/// What stands in the order of the policy.
fn settings(
    root: &YamlNode,
    source: &Source,
    count: usize,
    problems: &mut Problems<'_>,
) -> Vec<Numbers> {
    // An action on some joints says nothing about the others.
    let action = given(root, "actions")
        .and_then(|all| ACTIONS.iter().find_map(|name| given(all, name)))
        .filter(|action| given(action, "joint_ids").is_none());
    let of_action = |key: &str| action.and_then(|action| given(action, key));
    let mut found = Vec::new();
    for (node, key, quantity) in [
        (given(root, "default_joint_pos"), "default_joint_pos", "default_position"),
        (of_action("scale"), "scale", "action_scale"),
        (of_action("offset"), "offset", "action_offset"),
    ] {
        let Some(node) = node else { continue };
        let Some(mut numbers) = numbers(node, key, problems) else { continue };
        if node.scalar().is_some() {
            numbers = vec![numbers[0]; count];
        }
        if numbers.len() != count {
            let message = format!("`{key}` has {} numbers for {count} joints", numbers.len());
            invalid(node, &message, problems);
            continue;
        }
        found.extend(known(quantity).map(|of| (of, Stated::new(numbers, source.place(node.span)))));
    }
    found
}

fn known(name: &str) -> Option<Quantity> {
    Quantity::all().find(|quantity| quantity.name() == name)
}

/// Steps a second. The time between two is rounded to three digits in the file, so that a whole
/// number that is rounded to it is what was meant.
fn rate(secs: f64) -> f64 {
    let hertz = 1.0 / secs;
    let whole = hertz.round();
    if whole > 0.0 && (1.0 / whole - secs).abs() <= rounded(secs).slack { whole } else { hertz }
}

/// A number that was rounded to three digits, as this file's numbers are.
fn rounded(value: f64) -> Number {
    let digits = format!("{value:e}");
    let exponent: Option<i32> = digits.split_once('e').and_then(|(_, text)| text.parse().ok());
    let slack = exponent.filter(|_| value != 0.0).map_or(0.0, |at| 0.5 * 10_f64.powi(at - 2));
    Number { value, slack }
}

/// Names of terms, in order; nothing where terms stand in groups.
fn terms(node: &YamlNode) -> Option<Vec<String>> {
    let Kind::Mapping(pairs) = &*node.kind else { return None };
    let is_term = |value: &YamlNode| {
        ["scale", "history_length", "ranges", "params"].iter().any(|key| value.get(key).is_some())
    };
    if pairs.is_empty() || !pairs.iter().all(|(_, value)| is_term(value)) {
        return None;
    }
    pairs.iter().map(|(key, _)| key.text().map(str::to_owned)).collect()
}

/// Which motor each joint of the policy is.
fn positions(node: &YamlNode, problems: &mut Problems<'_>) -> Option<Vec<usize>> {
    let items = fields::sequence(node, "`joint_ids_map`", problems)?;
    if items.len() > MAX_JOINTS {
        invalid(node, &format!("a robot of more than {MAX_JOINTS} joints"), problems);
        return None;
    }
    let mut found = Vec::with_capacity(items.len());
    for item in items {
        let motor = match item.scalar().map(Scalar::atom) {
            Some(Atom::Int(number)) => usize::try_from(number).ok(),
            _ => None,
        };
        match motor.filter(|motor| *motor < MAX_JOINTS) {
            Some(motor) if !found.contains(&motor) => found.push(motor),
            Some(motor) => {
                invalid(item, &format!("motor {motor} stands twice"), problems);
                return None;
            }
            None => return fields::wrong_kind(item, "a motor", "its number", problems),
        }
    }
    Some(found)
}

fn numbers(
    node: &YamlNode,
    what: &str,
    problems: &mut Problems<'_>,
) -> Option<Vec<Option<Number>>> {
    let what = format!("`{what}`");
    let finite = |node: &YamlNode, problems: &mut Problems<'_>| {
        let value = fields::number(node, &what, problems)?;
        if !value.is_finite() {
            invalid(node, &format!("{what} must be finite, not {value}"), problems);
            return None;
        }
        Some(rounded(value))
    };
    if node.scalar().is_some() {
        return finite(node, problems).map(|number| vec![Some(number)]);
    }
    let items = fields::sequence(node, &what, problems)?;
    let numbers: Vec<Option<Number>> = items.iter().map(|item| finite(item, problems)).collect();
    numbers.iter().all(Option::is_some).then_some(numbers)
}
