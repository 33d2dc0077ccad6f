//! The map that brings a robot's values into the order of a bundle, and the bundle's into that of the
//! robot.
//!
//! One rule for both directions: what is handed over at position `i` is element `take[i]` of what
//! comes. A map that carries names is refused by a bundle that has other names, so that an old map
//! does no harm.

mod read;

use serde::Serialize;
use veracity_diag::{Diagnostic, Place, Reporter, Result, codes, nearest};

use crate::contract::{Quantity, inverse, readable};
use crate::write::quote::scalar;
use crate::{AxisNames, Direction, PortRef, PortSpec, Spec, Value};

/// How the elements of one port are brought into another order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reorder {
    /// The input or output of the pipeline.
    pub port: PortRef,
    /// Inputs go from the robot's order to the bundle's, outputs the other way.
    pub direction: Direction,
    /// The axis along which elements move; none for all elements, row by row.
    pub axis: Option<usize>,
    /// Position `i` gets element `take[i]`.
    pub take: Vec<usize>,
    /// Names in the bundle's order, if there are names.
    pub bundle: Option<Vec<String>>,
    /// Names in the robot's order.
    pub robot: Option<Vec<String>>,
}

/// How the ports of a bundle are reordered for a robot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReorderMap {
    /// At most one entry for each axis of a port.
    pub entries: Vec<Reorder>,
    /// Where the map was read from.
    pub place: Place,
}

impl ReorderMap {
    /// Whether nothing is to be reordered.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The text of a map file. The same map gives the same bytes.
    pub fn to_yaml(&self) -> String {
        let mut lines = vec![
            "# Position i gets element take[i] of what comes: of the robot's values for inputs,"
                .to_owned(),
            "# of the bundle's values for outputs.".to_owned(),
            "reorder: 1".to_owned(),
        ];
        for (key, direction) in [("inputs", Direction::Input), ("outputs", Direction::Output)] {
            let of_side = |entry: &&Reorder| entry.direction == direction;
            let entries: Vec<&Reorder> = self.entries.iter().filter(of_side).collect();
            let none = if entries.is_empty() { " []" } else { "" };
            lines.push(format!("{key}:{none}"));
            lines.extend(entries.into_iter().flat_map(Reorder::lines));
        }
        lines.join("\n") + "\n"
    }

    /// What a bundle says about its ports, in the order that the caller sees once the map is applied:
    /// names, and units and gains that are said for each element.
    pub fn seen_by_caller(&self, spec: &Spec) -> Spec {
        let mut spec = spec.clone();
        for entry in &self.entries {
            let nodes = spec.nodes.iter_mut().filter(|node| node.name == entry.port.node);
            let ports = nodes.flat_map(|node| match entry.direction {
                Direction::Input => &mut node.inputs,
                Direction::Output => &mut node.outputs,
            });
            for port in ports.filter(|port| port.name == entry.port.port) {
                entry.rename(port);
            }
        }
        spec
    }

    /// Refuses a map that is not for this bundle: other ports, other sizes, other names, orders
    /// that are none. Every problem is told.
    pub fn check(&self, spec: &Spec) -> Result<()> {
        let mut reporter = Reporter::new();
        for (position, entry) in self.entries.iter().enumerate() {
            let twice = self.entries[..position].iter().any(|other| {
                (&other.port, other.direction) == (&entry.port, entry.direction)
                    && (other.axis == entry.axis || other.axis.is_none() || entry.axis.is_none())
            });
            let problem = if twice {
                Some((format!("reorders {} {} twice", entry.direction, entry.port), None))
            } else {
                entry.problem(spec)
            };
            if let Some((message, hint)) = problem {
                let mut found =
                    Diagnostic::error(codes::REORDER_MISFIT, format!("the map {message}"));
                found.hints.extend(hint);
                reporter.report(found.at(self.place.clone()));
            }
        }
        reporter.finish().map(|_| ())
    }
}

impl Reorder {
    /// An entry without names, from where each element of the bundle stands on the robot.
    pub fn from_robot_of_bundle(
        port: PortRef,
        direction: Direction,
        axis: Option<usize>,
        robot_of_bundle: Vec<usize>,
    ) -> Self {
        let take = match direction {
            Direction::Input => robot_of_bundle,
            Direction::Output => inverse(&robot_of_bundle),
        };
        Self { port, direction, axis, take, bundle: None, robot: None }
    }

    /// Where each element of the bundle stands on the robot.
    pub fn robot_of_bundle(&self) -> Vec<usize> {
        match self.direction {
            Direction::Input => self.take.clone(),
            Direction::Output => inverse(&self.take),
        }
    }

    fn rename(&self, port: &mut PortSpec) {
        let bundle_of_robot = inverse(&self.robot_of_bundle());
        let moved = |names: &Vec<String>| -> Vec<String> {
            bundle_of_robot.iter().map(|&position| names[position].clone()).collect()
        };
        if let Some(axes) = &mut port.element_names {
            let position = if axes.len() == 1 { Some(0) } else { self.axis };
            let axis = position.and_then(|position| axes.get_mut(position));
            if let Some(AxisNames::Named(names)) = axis
                && names.len() == self.take.len()
            {
                *names = moved(names);
            }
        }
        let is_listed = |key: &str| key == "units" || key == "unit" || Quantity::is_key(key);
        let extra = port.extra.iter().map(|(key, value)| match value {
            Value::List(items) if is_listed(key) && items.len() == self.take.len() => {
                let items = bundle_of_robot.iter().map(|&position| items[position].clone());
                (key.to_owned(), Value::List(items.collect()))
            }
            _ => (key.to_owned(), value.clone()),
        });
        port.extra = extra.collect();
    }

    fn lines(&self) -> Vec<String> {
        let list = |names: &Vec<String>| {
            let names: Vec<String> = names.iter().map(|name| scalar(name)).collect();
            format!("[{}]", names.join(", "))
        };
        let mut lines = vec![format!("- port: {}", scalar(&self.port.to_string()))];
        lines.extend(self.axis.map(|axis| format!("  axis: {axis}")));
        lines.push(format!("  take: {}", readable(&self.take)));
        lines.extend(self.robot.as_ref().map(|names| format!("  robot: {}", list(names))));
        lines.extend(self.bundle.as_ref().map(|names| format!("  bundle: {}", list(names))));
        lines
    }

    /// What is wrong with this entry for a bundle, and what may help.
    fn problem(&self, spec: &Spec) -> Option<(String, Option<String>)> {
        let ports = match self.direction {
            Direction::Input => &spec.pipeline_inputs,
            Direction::Output => &spec.pipeline_outputs,
        };
        let (direction, key) = (self.direction, &self.port);
        let port = ports.contains(key).then(|| spec.port(key, direction)).flatten();
        let Some(port) = port else {
            let keys: Vec<String> = ports.iter().map(ToString::to_string).collect();
            let near = nearest(&key.to_string(), keys.iter().map(String::as_str));
            let hint = near.map(|near| format!("did you mean {near:?}?"));
            return Some((
                format!("is for {direction} {key}, which the bundle does not have"),
                hint,
            ));
        };
        let named = |why: String| (format!("does not fit {direction} {key}: {why}"), None);
        self.size_problem(port).map(named).or_else(|| {
            let again = "make it anew with `veracity verify BUNDLE --robot ROBOT --write-map MAP`";
            self.names_problem(port)
                .map(|why| (format!("does not fit {direction} {key}: {why}"), Some(again.into())))
        })
    }

    fn size_problem(&self, port: &PortSpec) -> Option<String> {
        let dims = port.shape.dims();
        let size = match self.axis {
            None => port.shape.elements(),
            Some(axis) => match dims.get(axis) {
                Some(&size) => size,
                None => return Some(format!("it has no axis {axis}, its shape is {}", port.shape)),
            },
        };
        if self.take.len() != size {
            return Some(format!("{} positions for {size} elements", self.take.len()));
        }
        (!crate::contract::is_permutation(&self.take))
            .then(|| "a position is beyond the elements, or stands twice".to_owned())
    }

    /// Whether the names contradict the order or the bundle.
    fn names_problem(&self, port: &PortSpec) -> Option<String> {
        let (Some(bundle), Some(robot)) = (&self.bundle, &self.robot) else { return None };
        let (from, to) = match self.direction {
            Direction::Input => (robot, bundle),
            Direction::Output => (bundle, robot),
        };
        let fits = from.len() == self.take.len()
            && to.len() == self.take.len()
            && self.take.iter().zip(to).all(|(&position, name)| from[position] == *name);
        if !fits {
            return Some("its order is not that of its names".to_owned());
        }
        let axes = port.element_names.as_deref().unwrap_or_default();
        let declared = match (axes, self.axis) {
            ([AxisNames::Named(names)], _) => Some(names),
            (_, Some(position)) => match axes.get(position) {
                Some(AxisNames::Named(names)) => Some(names),
                _ => None,
            },
            _ => None,
        };
        (declared.is_some_and(|names| names != bundle))
            .then(|| "the bundle names its elements otherwise".to_owned())
    }
}
