//! `veracity bench`.

use crate::bundle::{write_policy, write_sum};
use crate::support::{Desk, Said, python_environment};

#[test]
fn separate_and_fused_sessions_are_measured_side_by_side() {
    let desk = Desk::new();
    write_policy(&desk);
    let mut command = desk.command("bench policy --engine ort --steps 50 --warmup 5");
    command.env("VIRTUAL_ENV", python_environment());
    let said = Said::from(command).done();
    let lines: Vec<Vec<&str>> =
        said.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[0].join(" "), "engine sessions p50 us p99 us p99.9 us max us mean us ratio");
    assert_eq!(lines[1][..3], ["ort", "2", "separate"]);
    assert_eq!(lines[1].last(), Some(&"1.00"));
    assert_eq!(lines[2][..3], ["ort", "1", "fused"]);
    assert!(said.stdout.contains("in 17 interleaved blocks, after 5 unmeasured"), "{said}");
    assert!(said.stdout.lines().all(|line| line.chars().count() <= 80), "{said}");
}

#[test]
fn a_bundle_without_neighbours_is_measured_alone() {
    let desk = Desk::new();
    write_sum(&desk);
    let said = desk.run("bench sum --engine embedded --steps 3 --warmup 0").done();
    assert!(said.stdout.contains("no neighbouring nodes were merged"), "{said}");
    assert!(!said.stdout.contains("fused"), "{said}");
}

#[test]
fn engines_are_compared_when_several_are_given() {
    let desk = Desk::new();
    write_policy(&desk);
    let bench = "bench policy --engine ort --engine embedded --steps 20 --warmup 1 --format json";
    let mut command = desk.command(bench);
    command.env("VIRTUAL_ENV", python_environment());
    let found = Said::from(command).done().json();
    let rows: Vec<(&str, bool)> = found["variants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["engine"].as_str().unwrap(), row["fused"].as_bool().unwrap()))
        .collect();
    // The embedded engine checks values between nodes and is never merged.
    assert_eq!(rows, [("ort", false), ("ort", true), ("embedded", false)]);
    assert_eq!(found["variants"][0]["p50_ratio"], 1.0);
    assert_eq!(found["variants"][2]["latency"]["steps"], 20);
}
