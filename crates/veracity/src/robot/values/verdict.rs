//! What is said about the values of one port.

use veracity_diag::{Diagnostic, Place, codes};
use veracity_spec::contract::{Findings, Row, Status, readable};
use veracity_spec::{AxisNames, Direction, PortRef, PortSpec, Reorder};

/// A port whose values are compared.
pub(super) struct Subject<'s> {
    pub(super) key: PortRef,
    pub(super) direction: Direction,
    pub(super) port: &'s PortSpec,
    /// Passes that were compared.
    pub(super) count: usize,
}

/// An order that was found by value.
pub(super) struct Order {
    pub(super) axis: Option<usize>,
    /// None when names move several axes, so that there is no one order.
    pub(super) robot_of_bundle: Option<Vec<usize>>,
    /// Whether no other order fits as well.
    pub(super) unique: bool,
}

impl Subject<'_> {
    fn names(&self) -> Option<&Vec<String>> {
        let mut axes = self.port.element_names.as_ref()?.iter();
        axes.find_map(|axis| match axis {
            AxisNames::Named(names) => Some(names),
            AxisNames::Unnamed | AxisNames::Temporal => None,
        })
    }

    fn passes(&self) -> String {
        format!("{} passes", self.count)
    }

    pub(super) fn agrees(&self, unique: bool, findings: &mut Findings) {
        let found = if unique { "the same" } else { "the same, some elements alike" };
        findings.rows.push(row(&self.key, Status::Agrees, self.passes(), found.to_owned()));
    }

    /// Values that are there, but elsewhere. Names that say otherwise make the order doubtful, and
    /// so do columns that are alike: neither gives a map.
    pub(super) fn permuted(
        &self,
        order: Order,
        moved: bool,
        place: &Place,
        findings: &mut Findings,
    ) {
        let (direction, key) = (self.direction, &self.key);
        let take = order.robot_of_bundle;
        let shown = take.as_deref().map_or_else(String::new, |take| {
            format!(": the bundle's 0 to {} are the robot's {}", take.len() - 1, readable(take))
        });
        let message =
            format!("the values of {direction} \"{key}\" agree only in another order{shown}");
        let mut problem = Diagnostic::error(codes::VALUES_PERMUTED, message).at(place.clone());
        let named = moved || self.is_named_alike(findings);
        if named {
            let is_it = |entry: &Reorder| entry.port == *key && entry.direction == direction;
            findings.reorder.entries.retain(|entry| !is_it(entry));
            problem = problem.hint(
                "the names of bundle and robot say another order: one of them is wrong, so no map is \
                 written for it",
            );
        } else if !order.unique {
            problem = problem.hint(
                "some elements are alike, so that other orders fit as well and no map is written: \
                 record passes in which every element moves",
            );
        } else if let Some(take) = take {
            problem = problem.hint("write the map with `--write-map map.yaml`");
            findings.reorder.entries.push(self.entry(order.axis, take));
        }
        findings.diagnostics.push(problem);
        let found = "in another order".to_owned();
        findings.rows.push(row(key, Status::Differs, self.passes(), found));
    }

    /// The entry of the map for an order that only values tell. The bundle's names, where it has
    /// some, keep the map from being used for another bundle.
    fn entry(&self, axis: Option<usize>, robot_of_bundle: Vec<usize>) -> Reorder {
        let mut robot = vec![String::new(); robot_of_bundle.len()];
        let bundle = self.names().filter(|names| names.len() == robot.len()).cloned();
        for (name, &position) in bundle.iter().flatten().zip(&robot_of_bundle) {
            robot[position].clone_from(name);
        }
        let robot = bundle.is_some().then_some(robot);
        let (port, direction) = (self.key.clone(), self.direction);
        let entry = Reorder::from_robot_of_bundle(port, direction, axis, robot_of_bundle);
        Reorder { bundle, robot, ..entry }
    }

    /// Whether both sides name the elements in the same order.
    fn is_named_alike(&self, findings: &Findings) -> bool {
        let key = self.key.to_string();
        findings
            .rows
            .iter()
            .any(|row| row.subject == key && row.aspect == "order" && row.status == Status::Agrees)
    }

    pub(super) fn differs(&self, unmatched: &[usize], place: &Place, findings: &mut Findings) {
        let name = |position: &usize| match self.names().and_then(|names| names.get(*position)) {
            Some(name) => format!("{name:?}"),
            None => position.to_string(),
        };
        let mut shown: Vec<String> = unmatched.iter().take(8).map(name).collect();
        if unmatched.len() > shown.len() {
            shown.push(format!("{} more", unmatched.len() - shown.len()));
        }
        let message = format!(
            "the values of {} \"{}\" agree in no order: the robot has nothing like {}",
            self.direction,
            self.key,
            shown.join(", ")
        );
        let problem = Diagnostic::error(codes::VALUES_DIFFER, message).at(place.clone()).hint(
            "both recordings must be of the same passes; allow noise with `--atol`, `--rtol`",
        );
        findings.diagnostics.push(problem);
        let found = "different".to_owned();
        findings.rows.push(row(&self.key, Status::Differs, self.passes(), found));
    }
}

pub(super) fn row(key: &PortRef, status: Status, bundle: String, robot: String) -> Row {
    Row { subject: key.to_string(), aspect: "values".to_owned(), status, bundle, robot }
}
