//! The suite catches engines that do nothing, and holds engines to their known gaps.
#![expect(unsafe_code, reason = "a model that does nothing with its memory")]

use std::collections::BTreeSet;

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Engine, Model, ModelFormat, ModelSource, Ports, Session, SessionOptions};
use veracity_engine_suite::{Case, cases, surprises};
use veracity_tensor::SharedTensor;

/// Loads anything and computes nothing.
struct Lazy;

impl Engine for Lazy {
    fn name(&self) -> &'static str {
        "lazy"
    }

    fn version(&self) -> String {
        "0".to_owned()
    }

    fn supports(&self, _: ModelFormat) -> bool {
        true
    }

    fn load(&self, _: &ModelSource, ports: &Ports, _: &SessionOptions) -> Result<Session> {
        Ok(Session::new(ports.clone(), LazyModel))
    }
}

struct LazyModel;

impl Model for LazyModel {
    fn bind(&mut self, _: &[SharedTensor], _: &[SharedTensor]) -> Result<()> {
        Ok(())
    }

    unsafe fn run(&mut self, _: usize) -> Result<()> {
        Ok(())
    }

    fn device(&self) -> String {
        "sofa".to_owned()
    }
}

/// Refuses everything.
struct Sulking;

impl Engine for Sulking {
    fn name(&self) -> &'static str {
        "sulking"
    }

    fn version(&self) -> String {
        "0".to_owned()
    }

    fn supports(&self, _: ModelFormat) -> bool {
        false
    }

    fn load(&self, _: &ModelSource, _: &Ports, _: &SessionOptions) -> Result<Session> {
        Err(Diagnostic::error(codes::ENGINE_UNSUPPORTED_FORMAT, "no").into())
    }
}

fn passed_by(engine: &dyn Engine) -> Vec<&'static str> {
    let passed = |case: &&Case| (case.run)(engine).is_ok();
    cases().iter().filter(passed).map(|case| case.id).collect()
}

#[test]
fn an_engine_that_computes_nothing_passes_only_what_needs_no_computing() {
    assert_eq!(
        passed_by(&Lazy),
        [
            "empty_output",
            "one_memory_for_input_and_output_is_right_or_refused",
            "bind_refuses_a_wrong_count",
            "bind_refuses_a_wrong_dtype",
            "bind_refuses_a_wrong_shape",
            "load_refuses_a_format_it_does_not_support",
        ]
    );
}

#[test]
fn an_engine_that_refuses_everything_passes_only_what_it_refuses_rightly() {
    assert_eq!(passed_by(&Sulking), ["load_refuses_a_format_it_does_not_support"]);
}

#[test]
fn names_of_cases_are_unique() {
    let cases = cases();
    let names: BTreeSet<_> = cases.iter().map(|case| case.id).collect();
    assert_eq!(names.len(), cases.len());
    assert!(cases.len() >= 40);
}

#[test]
fn gaps_are_held_to_in_both_directions() {
    let works = Case { id: "works", run: |_| Ok(()) };
    let fails = Case { id: "fails", run: |_| Err("broken".to_owned()) };
    let none: [&str; 0] = [];
    assert_eq!(surprises(&Lazy, &[works, fails], &[("fails", "it cannot")]), none);
    assert_eq!(surprises(&Lazy, &[works, fails], &[]), ["fails on lazy: broken"]);
    assert_eq!(
        surprises(&Lazy, &[works], &[("works", "it could not"), ("gone", "renamed")]),
        [
            "works on lazy: passes now; remove the gap (it could not)",
            "gone on lazy: no case has this name; remove the gap (renamed)",
        ]
    );
}
