//! A proof for build servers: a suite for each node and one for the roll-out, a case for each port.
//!
//! What was not compared is *skipped*, with the reason, so that it is seen; it is never a success.
//! There are no times in it: the same proof gives the same bytes.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use veracity_results::{Proof, ProofRow, Verdict};

use crate::plain;
use crate::text::{row_text, why_unknown};

/// A proof as XML in the dialect of `JUnit`.
///
/// # Panics
/// Never: writing to memory does not fail.
pub fn junit(proof: &Proof) -> String {
    let mut report = Report::new(printable(&proof.subject.bundle));
    for node in &proof.nodes {
        let mut suite = TestSuite::new(printable(&node.node));
        for row in node.rows() {
            suite.add_test_case(case(proof, &node.node, &row));
        }
        report.add_test_suite(suite);
    }
    report.add_test_suite(rollout(proof));
    report.to_string().expect("writing to memory does not fail")
}

fn rollout(proof: &Proof) -> TestSuite {
    let mut suite = TestSuite::new("rollout");
    let rows = proof.rollout.rows();
    for row in &rows {
        suite.add_test_case(case(proof, "rollout", row));
    }
    if rows.is_empty() {
        let reasons: Vec<&str> = proof.rollout.reasons.iter().map(|r| &*r.message).collect();
        let why = if reasons.is_empty() { "not run".to_owned() } else { reasons.join("; ") };
        suite.add_test_case(TestCase::new("rollout", skipped(&why)));
    }
    suite
}

fn case(proof: &Proof, class: &str, row: &ProofRow<'_>) -> TestCase {
    let unstable = if row.is_unstable() { "unstable: " } else { "" };
    let status = match row.verdict {
        Verdict::Disproved => failure(proof, row),
        Verdict::Proved if !row.is_unstable() => TestCaseStatus::success(),
        _ => skipped(&format!("{unstable}{}", why_unknown(row))),
    };
    let mut case = TestCase::new(printable(row.name), status);
    case.set_classname(printable(class));
    case
}

fn failure(proof: &Proof, row: &ProofRow<'_>) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    let text = without_non_characters(&row_text(proof, row));
    status.set_message(text.lines().next().unwrap_or_default());
    status.set_type("disproved");
    status.set_description(text);
    status
}

fn skipped(why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(printable(why));
    status
}

/// The text without anything that acts on a terminal or that XML cannot hold.
fn printable(text: &str) -> String {
    without_non_characters(&plain::printable(text))
}

fn without_non_characters(text: &str) -> String {
    text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
