//! The number of threads is a session's own affair.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "support/lib.rs"]
mod support;

use std::num::NonZeroUsize;

use support::{buffers, calls_of, engine, file_of, on_cpu, ports_of, read};
use veracity_engine::{Engine, SessionOptions};
use veracity_tensor::Tensor;

/// Runs a large product with that many threads; returns the result.
fn product(threads: usize) -> Tensor {
    let ports = ports_of(&calls_of("matmul")[0]);
    let options = SessionOptions { threads: NonZeroUsize::new(threads).unwrap(), ..on_cpu() };
    let mut session = engine().load(&file_of("matmul"), &ports, &options).unwrap();
    let (inputs, outputs) = (buffers(&ports.inputs), buffers(&ports.outputs));
    let binding = session.bind(&inputs, &outputs).unwrap();
    session.run(binding).unwrap();
    read(&outputs[0])
}

fn threads_of_this_process() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

// One test in this file: other tests would start threads of their own.
#[test]
fn threads_are_used_as_asked_and_only_during_a_run() {
    engine().prepare().unwrap();
    let ambient = engine().ambient_threads().unwrap();
    let before = threads_of_this_process();
    product(1);
    assert_eq!(threads_of_this_process(), before, "one thread was asked for");
    product(ambient + 3);
    assert_eq!(threads_of_this_process(), before + ambient + 2, "OpenMP keeps its threads");
    assert_eq!(
        engine().ambient_threads().unwrap(),
        ambient,
        "the run changed the thread's setting"
    );
}
