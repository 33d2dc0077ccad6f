//! Random programs over memory: the slice of a node computes what the program computed.
//!
//! A machine runs a random program on real memory and tells the tape what it does, as a front
//! would. Every clean slice is then run on its own and must give the machine's outputs, for the
//! inputs that were recorded and for other ones.
//!
//! `VERACITY_FUZZ_CASES=1000000 cargo test -p veracity-trace --test programs` fuzzes for longer.

mod machine;
mod replay;
mod tensor;

use std::cell::Cell;

use machine::{Code, Flavour, Machine};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use veracity_trace::Problem;

fn config() -> Config {
    let cases = match std::env::var("VERACITY_FUZZ_CASES") {
        Ok(count) => count.parse().expect("VERACITY_FUZZ_CASES is a number"),
        Err(_) => 3000,
    };
    // The failing program is printed in full; a file of seeds would only litter the sources.
    Config { cases, failure_persistence: None, max_shrink_iters: 20_000, ..Config::default() }
}

fn programs() -> impl Strategy<Value = Vec<Code>> {
    vec(any::<Code>(), 4..60)
}

#[test]
fn a_slice_computes_what_the_program_computed() {
    let (clean, refused) = (Cell::new(0_u32), Cell::new(0_u32));
    let result = TestRunner::new(config()).run(&programs(), |program| {
        let recorded = Machine::record(&program, Flavour::Wild);
        for node in 0..machine::NODES {
            let Some(closed) = recorded.closed(node) else { continue };
            if !closed.problems.is_empty() {
                refused.set(refused.get() + 1);
                continue;
            }
            clean.set(clean.get() + 1);
            let outputs = replay::run(&recorded, &closed.slice, &recorded.inputs[node]);
            prop_assert_eq!(&outputs, &recorded.outputs[node], "node {} on its inputs", node);
            let other = Machine::rerun(&program, &recorded, node);
            let outputs = replay::run(&recorded, &closed.slice, &other.inputs[node]);
            prop_assert_eq!(&outputs, &other.outputs[node], "node {} on other inputs", node);
        }
        Ok(())
    });
    tell(result, Flavour::Wild);
    let (clean, refused) = (clean.get(), refused.get());
    assert!(clean * 2 > refused, "{clean} clean slices are too few beside {refused} refused ones");
}

#[test]
fn one_node_with_whole_tensors_as_inputs_is_never_refused() {
    let result = TestRunner::new(config()).run(&programs(), |program| {
        let recorded = Machine::record(&program, Flavour::Tame);
        let Some(closed) = recorded.closed(0) else { return Ok(()) };
        for problem in &closed.problems {
            prop_assert!(matches!(problem, Problem::OutputUntraced { .. }), "{problem:?}");
        }
        Ok(())
    });
    tell(result, Flavour::Tame);
}

/// Fails with what the smallest failing program does.
fn tell(result: Result<(), TestError<Vec<Code>>>, flavour: Flavour) {
    match result {
        Ok(()) => {}
        Err(TestError::Abort(reason)) => panic!("{reason}"),
        Err(TestError::Fail(reason, program)) => {
            let log = Machine::record(&program, flavour).log.join("\n");
            panic!("{reason}\n{program:?}\n{log}");
        }
    }
}
