//! A step that fails leaves the state as it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Ort, accumulator, pair, step};
use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Binding, Engine, ModelFormat, ModelSource, Ports, Session, SessionOptions};
use veracity_runtime::{EngineProvider, InputId, OutputId, RunOptions, Runner};
use veracity_tensor::{DType, SharedTensor};

/// ONNX Runtime that fails on demand, after it has already written its outputs.
struct Fragile(Arc<AtomicBool>);

struct FragileSession(Box<dyn Session>, Arc<AtomicBool>);

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
    ) -> Result<Box<dyn Session>> {
        let session = Ort.engine_for(source.format)?.load(source, ports, options)?;
        Ok(Box::new(FragileSession(session, Arc::clone(&self.0))))
    }
}

impl Session for FragileSession {
    fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<Binding> {
        self.0.bind(inputs, outputs)
    }

    fn run(&mut self, binding: Binding) -> Result<()> {
        self.0.run(binding)?;
        if self.1.load(Ordering::Relaxed) {
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
