//! A drift report that was written once must be readable for good, as a proof must.
//!
//! The files under `golden` are never changed: a new version of the format gets a new file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod kept;
mod schema;

use kept::Format;
use serde_json::json;
use veracity_results::{DRIFT_SCHEMA_VERSION, DriftCounts, DriftReport, DriftRow};

const REPORTS: Format = Format {
    golden: &[("1.0", include_str!("golden/drift-1.0.json"))],
    schema: include_str!("../../../../docs/schema/drift-1.json"),
};

fn first() -> DriftReport {
    serde_json::from_value(REPORTS.first()).unwrap()
}

#[test]
fn reports_of_every_version_are_read_without_a_loss() {
    REPORTS.is_read::<DriftReport>();
}

#[test]
fn reports_of_every_version_fit_the_schema() {
    REPORTS.fits_its_schema(DRIFT_SCHEMA_VERSION);
}

#[test]
fn what_the_schema_refuses_is_refused_by_the_reader_too() {
    REPORTS.refuses::<DriftReport>(&[
        ("", "verdict", Some(json!("maybe"))),
        ("", "rows", None),
        ("", "tolerance", Some(json!("small"))),
        ("/session", "engine", None),
        ("/graph", "outputs", Some(json!("softmax"))),
        ("/rows/0", "budget", Some(json!(null))),
        ("/rows/0", "shape", Some(json!([1, -8]))),
        ("/rows/0/accumulated", "mismatching", Some(json!(0.5))),
        ("/rows/0/float64", "candidate", None),
        ("/rows/2/cause", "kind", Some(json!("bad luck"))),
        ("/unmapped/0", "op_type", None),
        ("/program/0", "status", Some(json!("lost"))),
    ]);
}

#[test]
fn fields_that_a_later_version_adds_do_not_disturb() {
    let mut value = REPORTS.first();
    value["colour"] = json!("green");
    value["rows"][0]["seconds"] = json!(1.5);
    assert!(serde_json::from_value::<DriftReport>(value).is_ok());
}

#[test]
fn a_report_counts_what_was_looked_at() {
    let expected = DriftCounts {
        proved: 2,
        disproved: 2,
        not_comparable: 1,
        parts: 1,
        not_mapped: 1,
        program: 5,
        program_proved: 1,
        program_folded: 1,
        program_not_mapped: 1,
    };
    assert_eq!(first().counts(), expected);
    assert_eq!((expected.compared(), expected.values()), (5, 7));
}

#[test]
fn what_went_into_something_wrong_is_not_counted_as_folded_into_something_proved() {
    let mut report = first();
    report.program[0].into.push("relu_1".to_owned());
    assert_eq!(report.counts().program_folded, 0);
}

#[test]
fn strain_is_the_part_of_the_budget_and_infinite_where_numbers_do_not_decide() {
    let report = first();
    let strains: Vec<f64> = report.rows.iter().map(DriftRow::strain).collect();
    assert!((strains[0] - 5.960_464_477_539_063e-8 / 1.716_613_769_531_25e-5).abs() < 1e-12);
    assert!(strains[2].is_finite() && strains[2] > 1e5);
    assert!(strains[3].is_infinite() && strains[4].is_infinite());
    let mut exact = report.rows[0].clone();
    exact.budget = 0.0;
    exact.introduced.max_abs = 0.0;
    assert_eq!(exact.strain().to_bits(), 0.0_f64.to_bits());
    exact.introduced.max_abs = 1.0;
    assert!(exact.strain().is_infinite());
    exact.introduced.max_abs = f64::NAN;
    assert!(exact.strain().is_infinite());
}

#[test]
fn sums_are_by_module_line_and_operator() {
    let report = first();
    let names = |groups: Vec<veracity_results::DriftGroup<'_>>| -> Vec<(String, usize, usize)> {
        let facts = |group: &veracity_results::DriftGroup<'_>| {
            (group.name.to_owned(), group.rows, group.disproved)
        };
        groups.iter().map(facts).collect()
    };
    let expected = [("conv", 1, 0), ("act", 2, 1), ("", 2, 1)];
    assert_eq!(names(report.by_module()), expected.map(|(name, r, d)| (name.to_owned(), r, d)));
    assert_eq!(report.by_source().len(), 5);
    assert_eq!(report.by_op_type().len(), 5);
    assert!(report.by_module()[1].introduced > 2.0);
}

#[test]
fn a_module_holds_what_is_inside_of_it_and_stays_together() {
    let mut report = first();
    let paths = ["a.x", "b", "a", "a.y.z", "a.x"];
    for (row, path) in report.rows.iter_mut().zip(paths) {
        path.clone_into(&mut row.module);
    }
    let tree = report.module_tree();
    let found: Vec<(usize, &str, usize)> =
        tree.iter().map(|module| (module.depth, module.group.name, module.group.rows)).collect();
    let expected = [(0, "a", 4), (1, "a.x", 2), (1, "a.y", 1), (2, "a.y.z", 1), (0, "b", 1)];
    assert_eq!(found, expected);
}
