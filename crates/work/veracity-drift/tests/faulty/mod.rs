//! An engine that is made wrong on purpose.
#![expect(unsafe_code, reason = "an engine writes memory that it was handed")]

use std::sync::atomic::{AtomicUsize, Ordering};

use veracity_diag::Result;
use veracity_engine::{
    Binding, Engine, Model, ModelFormat, ModelSource, Ports, Session, SessionOptions,
};
use veracity_tensor::{DType, SharedTensor};

use crate::common::ort;

/// ONNX Runtime, with this added to the first element of each float32 output. What is added depends
/// on the session and on how many runs there were before.
pub(crate) struct Faulty(pub(crate) fn(&SessionOptions, usize) -> f32);

impl Engine for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn version(&self) -> String {
        "1".to_owned()
    }

    fn supports(&self, format: ModelFormat) -> bool {
        ort().supports(format)
    }

    fn load(
        &self,
        source: &ModelSource,
        ports: &Ports,
        options: &SessionOptions,
    ) -> Result<Session> {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        let session = ort().load(source, ports, options)?;
        let added = (self.0)(options, RUNS.fetch_add(1, Ordering::Relaxed));
        Ok(Session::new(ports.clone(), FaultyModel { session, bound: Vec::new(), added }))
    }
}

struct FaultyModel {
    session: Session,
    bound: Vec<(Binding, Vec<SharedTensor>, Vec<SharedTensor>)>,
    added: f32,
}

impl Model for FaultyModel {
    fn bind(&mut self, inputs: &[SharedTensor], outputs: &[SharedTensor]) -> Result<()> {
        let own: Vec<SharedTensor> = outputs
            .iter()
            .map(|one| SharedTensor::zeros(one.dtype(), one.shape().clone()))
            .collect();
        let binding = self.session.bind(inputs, &own)?;
        self.bound.push((binding, own, outputs.to_vec()));
        Ok(())
    }

    unsafe fn run(&mut self, binding: usize) -> Result<()> {
        let (inner, own, outputs) = &self.bound[binding];
        self.session.run(*inner)?;
        for (from, to) in own.iter().zip(outputs) {
            // SAFETY: the inner session has run, and the caller gave the outputs to this one alone.
            let (from, to) = unsafe { (from.bytes(), to.bytes_mut()) };
            to.copy_from_slice(from);
        }
        for to in outputs.iter().filter(|to| to.dtype() == DType::F32) {
            // SAFETY: as above.
            let bytes = unsafe { to.bytes_mut() };
            if let Some(first) = bytes.first_chunk_mut::<4>() {
                *first = (f32::from_le_bytes(*first) + self.added).to_le_bytes();
            }
        }
        Ok(())
    }

    fn device(&self) -> String {
        "cpu".to_owned()
    }
}
