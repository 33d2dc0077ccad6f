//! Op-by-op parity of one model: [`drift`] compares, [`Parity`] collects what it needs.

use veracity_diag::Result;
pub use veracity_drift::{Budget, DriftOptions, Values, against_float64, drift, held};
use veracity_engine::ModelFormat;
use veracity_onnx::Model;
use veracity_results::DriftReport;
use veracity_runtime::EngineProvider;
use veracity_tensor::TensorView;

/// One model, what it is given and what the original computed, value by value.
pub struct Parity {
    model: Model,
    inputs: Values,
    references: Values,
    candidates: Values,
}

impl Parity {
    /// A model from the bytes of its file.
    pub fn new(bytes: Vec<u8>) -> Result<Self> {
        let model = Model::from_bytes(bytes.into())?;
        let [inputs, references, candidates] = std::array::from_fn(|_| Values::new());
        Ok(Self { model, inputs, references, candidates })
    }

    /// Keeps a copy of an input.
    pub fn input(&mut self, name: &str, value: &TensorView<'_>) {
        self.inputs.insert(name.to_owned(), held(value));
    }

    /// Keeps a copy of what the original computed.
    pub fn reference(&mut self, name: &str, value: &TensorView<'_>) {
        self.references.insert(name.to_owned(), held(value));
    }

    /// Compares; `keep` holds the values of the export for [`Parity::wide`].
    pub fn run(
        &mut self,
        engines: &dyn EngineProvider,
        options: &DriftOptions,
        keep: bool,
    ) -> Result<DriftReport> {
        let engine = engines.engine_for(ModelFormat::Onnx)?;
        let kept = keep.then_some(&mut self.candidates);
        drift(&self.model, &self.inputs, &self.references, engine.as_ref(), options, kept)
    }

    /// Adds to a report what a value is in float64, and forgets the value.
    pub fn wide(
        &mut self,
        report: &mut DriftReport,
        name: &str,
        value: &TensorView<'_>,
    ) -> Result<()> {
        let candidate = self.candidates.remove(name);
        let row = report.rows.iter_mut().find(|row| row.name == name);
        if let (Some(row), Some(candidate)) = (row, candidate)
            && let Some(reference) = self.references.remove(name)
            && value.shape() == reference.shape()
        {
            row.float64 = against_float64(value, &reference, &candidate)?;
        }
        Ok(())
    }
}
