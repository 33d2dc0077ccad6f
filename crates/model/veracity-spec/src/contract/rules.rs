//! Holds what a bundle declares against what a robot declares.
//!
//! A row for everything that either side says: agreeing, differing, or unchecked because the
//! other side is silent. Every difference is a finding too, at its place in the robot's file.

mod elements;
mod joints;
mod ports;

use serde::Serialize;
use veracity_diag::{Diagnostic, codes};

use super::order::{Relation, readable, relation};
use super::{Contract, Stated};
use crate::{Reorder, ReorderMap};

/// Rates and periods that differ by less are one: 33.333 and 100/3 are not told apart.
const RATE_RTOL: f64 = 1e-4;

/// How one thing came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// The two sides differ.
    Differs,
    /// Only one side says it.
    Unchecked,
    /// The two sides say the same.
    Agrees,
}

/// One thing that was compared, or could not be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// The port, `the joints` or `the pipeline`.
    pub subject: String,
    /// What about it: `order`, `units`, `stiffness` and so on.
    pub aspect: String,
    /// How it came out.
    pub status: Status,
    /// What the bundle says; empty when it says nothing.
    pub bundle: String,
    /// What the robot says; empty when it says nothing.
    pub robot: String,
}

/// What comparing two contracts found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// Every difference, and what is probably unintended.
    pub diagnostics: Vec<Diagnostic>,
    /// Everything that was compared or could not be.
    pub rows: Vec<Row>,
    /// What brings the elements of ports into the other side's order.
    pub reorder: ReorderMap,
}

/// Compares what a bundle says with what a robot says. Gains may differ by `gain_rtol` of the
/// larger one, besides what rounding in a file explains.
pub fn compare(bundle: &Contract, robot: &Contract, gain_rtol: f64) -> Findings {
    let mut findings = Findings::default();
    findings.rate(bundle, robot);
    joints::compare(bundle, robot, gain_rtol, &mut findings);
    for (aspect, ours, theirs) in [
        ("observations", &bundle.observation_names, &robot.observation_names),
        ("commands", &bundle.command_names, &robot.command_names),
    ] {
        findings.terms(aspect, ours.as_ref(), theirs.as_ref());
    }
    ports::compare(bundle, robot, &mut findings);
    findings
}

/// One thing of one subject, to be told about.
#[derive(Clone, Copy)]
struct Topic<'t> {
    subject: &'t str,
    aspect: &'t str,
}

impl Findings {
    fn row(&mut self, topic: Topic<'_>, status: Status, bundle: String, robot: String) {
        let (subject, aspect) = (topic.subject.to_owned(), topic.aspect.to_owned());
        self.rows.push(Row { subject, aspect, status, bundle, robot });
    }

    /// Tells a difference.
    fn differs(&mut self, topic: Topic<'_>, bundle: String, robot: String, problem: Diagnostic) {
        self.row(topic, Status::Differs, bundle, robot);
        self.diagnostics.push(problem);
    }

    /// Both values, when both sides say something; else the one is noted as unchecked.
    fn both<'v, T>(
        &mut self,
        topic: Topic<'_>,
        bundle: Option<&'v Stated<T>>,
        robot: Option<&'v Stated<T>>,
        show: impl Fn(&T) -> String,
    ) -> Option<(&'v Stated<T>, &'v Stated<T>)> {
        let text =
            |said: Option<&Stated<T>>| said.map(|said| show(&said.value)).unwrap_or_default();
        match (bundle, robot) {
            (Some(bundle), Some(robot)) => return Some((bundle, robot)),
            (None, None) => {}
            _ => self.row(topic, Status::Unchecked, text(bundle), text(robot)),
        }
        None
    }

    fn rate(&mut self, bundle: &Contract, robot: &Contract) {
        let topic = Topic { subject: "the pipeline", aspect: "rate" };
        let show = |hertz: &f64| format!("{hertz} Hz");
        let (ours, theirs) = (bundle.rate_hz.as_ref(), robot.rate_hz.as_ref());
        let Some((ours, theirs)) = self.both(topic, ours, theirs, show) else { return };
        let (bundle, robot) = (show(&ours.value), show(&theirs.value));
        if near(ours.value, theirs.value) {
            return self.row(topic, Status::Agrees, bundle, robot);
        }
        let message = format!("the bundle was made for {bundle}, the robot runs at {robot}");
        let problem = Diagnostic::error(codes::RATE_DIFFERS, message).at(theirs.place.clone());
        self.differs(topic, bundle, robot, problem);
    }

    /// Lists of names that have an order and no port.
    fn terms(
        &mut self,
        aspect: &str,
        bundle: Option<&Stated<Vec<String>>>,
        robot: Option<&Stated<Vec<String>>>,
    ) {
        let topic = Topic { subject: "the pipeline", aspect };
        let Some((ours, theirs)) = self.both(topic, bundle, robot, |names| listed(names)) else {
            return;
        };
        let (bundle, robot) = (listed(&ours.value), listed(&theirs.value));
        match relation(&ours.value, &theirs.value) {
            Relation::Same => self.row(topic, Status::Agrees, bundle, robot),
            Relation::Different { only_left, only_right } => {
                self.row(topic, Status::Differs, bundle, robot);
                self.names_differ(&format!("the {aspect}"), &only_left, &only_right, theirs);
            }
            Relation::Repeated(name) => {
                self.row(topic, Status::Unchecked, bundle, robot);
                self.repeated(&format!("the {aspect}"), &name, theirs);
            }
            Relation::Permuted(take) => {
                let message = format!(
                    "the {aspect} stand in another order: the bundle's 0 to {} are the robot's {}",
                    take.len() - 1,
                    readable(&take)
                );
                let problem = Diagnostic::error(codes::ELEMENT_ORDER, message)
                    .at(theirs.place.clone())
                    .hint("terms have different sizes, so that no map is written for them");
                self.differs(topic, bundle, robot, problem);
            }
        }
    }

    /// Tells which names only one side has.
    fn names_differ<T>(
        &mut self,
        what: &str,
        missing: &[String],
        extra: &[String],
        robot: &Stated<T>,
    ) {
        for (names, code, verb) in [
            (missing, codes::ELEMENT_MISSING, "the robot lacks"),
            (extra, codes::ELEMENT_EXTRA, "the bundle does not have"),
        ] {
            if !names.is_empty() {
                let message = format!("{what}: {verb} {}", quoted(names));
                let mut problem = Diagnostic::error(code, message).at(robot.place.clone());
                let others = if code == codes::ELEMENT_MISSING { extra } else { missing };
                problem.hints.extend(spelling(names, others));
                self.diagnostics.push(problem);
            }
        }
    }

    /// Tells that names cannot be compared, as one of them stands twice.
    fn repeated<T>(&mut self, what: &str, name: &str, robot: &Stated<T>) {
        let message =
            format!("{what}: {name:?} stands twice, so that there is no order to compare");
        let problem = Diagnostic::error(codes::CONTRACT_INVALID, message);
        self.diagnostics.push(problem.at(robot.place.clone()));
    }

    fn reordered(&mut self, entry: Reorder) {
        self.reorder.entries.push(entry);
    }
}

/// Names that look like misspellings of each other.
fn spelling(names: &[String], others: &[String]) -> Option<String> {
    let meant = |name: &String| {
        let near = veracity_diag::nearest(name, others.iter().map(String::as_str))?;
        Some(format!("{name:?} may be the other side's {near:?}"))
    };
    names.iter().take(8).find_map(meant)
}

fn near(left: f64, right: f64) -> bool {
    (left - right).abs() <= RATE_RTOL * left.abs().max(right.abs())
}

fn listed(names: &[String]) -> String {
    names.join(", ")
}

/// Names for a message. Long lists are cut: the rows and the files have all of them.
fn quoted(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &rest
}
