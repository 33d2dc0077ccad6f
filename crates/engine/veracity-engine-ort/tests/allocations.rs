//! A run makes no Rust allocation, from the first one on.
#![expect(unsafe_code, reason = "an allocator is unsafe by nature")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use veracity_engine::{
    Device, Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, SessionOptions,
};
use veracity_engine_ort::{OrtEngine, Search};
use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::{DType, Shape, SharedTensor, Tensor};

#[path = "support/library.rs"]
mod library;

thread_local! {
    /// Counted by thread: the test harness has threads of its own.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn allocations_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATIONS.get();
    let result = work();
    (ALLOCATIONS.get() - before, result)
}

#[test]
fn a_run_allocates_nothing() {
    let weight = Tensor::zeros(DType::F32, Shape::from([48, 12]));
    let model = GraphBuilder::new("linear", 18)
        .input("observation", DType::F32, [1_usize, 48])
        .initializer("weight", &weight)
        .output("observation", DType::F32, [1_usize, 48])
        .output("action", DType::F32, [1_usize, 12])
        .node(Node::new("MatMul", ["observation", "weight"], ["action"]))
        .finish()
        .unwrap();
    let bytes = ModelBytes::Memory(Arc::from(model.to_bytes().unwrap()));
    let observation = Port::new("observation", DType::F32, [1, 48]);
    let action = Port::new("action", DType::F32, [1, 12]);
    let ports = Ports { inputs: vec![observation.clone()], outputs: vec![observation, action] };
    let options = SessionOptions { device: Device::Cpu, ..SessionOptions::default() };
    let source = ModelSource { format: ModelFormat::Onnx, bytes };
    let mut session = library::engine().load(&source, &ports, &options).unwrap();
    let memory = |ports: &[Port]| -> Vec<SharedTensor> {
        ports.iter().map(|port| SharedTensor::zeros(port.dtype, port.shape.clone())).collect()
    };
    let (binds, binding) =
        allocations_of(|| session.bind(&memory(&ports.inputs), &memory(&ports.outputs)));
    assert!(binds > 0, "the count must be able to move");
    let binding = binding.unwrap();
    for run in 0..100 {
        let (allocations, result) = allocations_of(|| session.run(binding));
        result.unwrap();
        assert_eq!(allocations, 0, "run {run}");
    }
}
