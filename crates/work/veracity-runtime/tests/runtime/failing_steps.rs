//! A step that fails leaves the state as it was.
#![expect(unsafe_code, reason = "a model that works on shared memory")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Ort, accumulator, pair, step};
use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{
    Binding, Engine, Model, ModelFormat, ModelSource, Ports, Session, SessionOptions,
};
use veracity_runtime::{EngineProvider, InputId, OutputId, RunOptions, Runner};
use veracity_tensor::{DType, SharedTensor};

/// ONNX Runtime that fails on demand, after it has already written its outputs.
struct Fragile(Arc<AtomicBool>);

/// Wraps a session, so that memory is claimed twice: its own buffers stand in between.
struct FragileModel {
    session: Session,
    bindings: Vec<Inner>,
    fail: Arc<AtomicBool>,
}

/// A binding of the wrapped session on memory of its own, and the memory that it stands for.
struct Inner {
    binding: Binding,
    own: [Vec<SharedTensor>; 2],
    outer: [Vec<SharedTensor>; 2],
}

impl EngineProvider for Fragile {
    fn engine_for(&self, _format: ModelFormat) -> Result<Arc<dyn Engine>> {
        Ok(Arc::new(Self(Arc::clone(&self.0))))
    }
}

impl Engine for Fragile {
    fn name(&self) -> &'static str {
        "fragile"
    }

    fn version(&self) -> String {
        "0".into()
    }

    fn supports(&self, _format: ModelFormat) -> bool {
        true
    }

    fn load(
        &self,
        source: &ModelSource,
        ports: &Ports,
        options: &SessionOptions,
    ) -> Result<Session> {
        let session = Ort.engine_for(source.format)?.load(source, ports, options)?;
        let fail = Arc::clone(&self.0);
        Ok(Session::new(ports.clone(), FragileModel { session, bindings: Vec::new(), fail }))
    }
}

fn copies_of(tensors: &[SharedTensor]) -> Vec<SharedTensor> {
    tensors
        .iter()
        .map(|tensor| SharedTensor::zeros(tensor.dtype(), tensor.shape().clone()))
        .collect()
}

/// # Safety
/// Nobody else uses either side.
unsafe fn copy(from: &[SharedTensor], to: &[SharedTensor]) {
    for (from, to) in from.iter().zip(to) {
        // SAFETY: passed on to the caller.
        unsafe { to.bytes_mut().copy_from_slice(from.bytes()) };
    }
}

impl Model for FragileModel {
    fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<()> {
        let own = [copies_of(inputs), copies_of(outputs)];
        let binding = self.session.bind(&own[0], &own[1])?;
        self.bindings.push(Inner { binding, own, outer: [inputs.to_vec(), outputs.to_vec()] });
        Ok(())
    }

    unsafe fn run(&mut self, binding: usize) -> Result<()> {
        let Inner { binding, own, outer } = &self.bindings[binding];
        // SAFETY: the caller lets nobody else use the outer memory; the own memory is ours alone.
        unsafe { copy(&outer[0], &own[0]) };
        self.session.run(*binding)?;
        // SAFETY: as above.
        unsafe { copy(&own[1], &outer[1]) };
        if self.fail.load(Ordering::Relaxed) {
            return Err(Diagnostic::error(codes::ENGINE_RUN_FAILED, "on demand").into());
        }
        Ok(())
    }

    fn device(&self) -> String {
        "cpu".into()
    }
}

#[test]
fn a_failed_step_can_be_repeated_in_every_phase() {
    let fail = Arc::new(AtomicBool::new(false));
    let (_folder, bundle) = accumulator().write();
    let mut runner =
        Runner::load(&bundle, &Fragile(Arc::clone(&fail)), &RunOptions::new()).unwrap();
    for tick in 1_u8..=4 {
        fail.store(true, Ordering::Relaxed);
        let x = pair(1.0, 1.0);
        runner.write_input(InputId(0), DType::F32, &[1, 2], x.bytes()).unwrap();
        let refusal = runner.step().unwrap_err();
        assert_eq!(refusal.first_error().code, codes::ENGINE_RUN_FAILED);
        assert_eq!(refusal.first_error().place.node.as_deref(), Some("sum"));
        let read = runner.output_bytes(OutputId(0)).unwrap_err();
        assert_eq!(read.first_error().code, codes::STEP_FAILED, "half-written outputs are hidden");
        fail.store(false, Ordering::Relaxed);
        let shown = step(&mut runner, "sum/x", pair(1.0, 1.0), "sum/shown");
        assert_eq!(shown, [10.0 + f32::from(tick), 20.0 + f32::from(tick)]);
    }
}
