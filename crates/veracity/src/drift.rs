//! Op-by-op parity of one model: [`Comparing`] compares, [`Parity`] holds what it needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use veracity_diag::Result;
pub use veracity_drift::causes::{EXPLAINED_ROWS, Evidence, Needs, Original, Side, explain, needs};
use veracity_drift::{Against, Stream, domain, screen_original};
pub use veracity_drift::{
    Budget, DriftOptions, Ledger, Place, Values, against_float64, drift, held, repro, source_line,
};
pub use veracity_drift::{Inputs, Outputs, Screening, Suspicion};
use veracity_engine::{Engine, ModelFormat};
use veracity_onnx::Model;
use veracity_results::{DriftReport, ReproRun};
use veracity_runtime::EngineProvider;
use veracity_tensor::{SharedTensor, TensorView};

use crate::{EngineChoice, Engines};

/// One model, what it is given and what the original computed, value by value.
pub struct Parity {
    export: Held,
    references: Values,
    original: Option<(Held, BTreeMap<String, String>)>,
    named: Values,
}

/// A model with what it is given.
struct Held {
    model: Model,
    inputs: Values,
    weights: BTreeSet<String>,
}

impl Held {
    fn new(bytes: Vec<u8>) -> Result<Self> {
        let model = Model::from_bytes(bytes.into())?;
        Ok(Self { model, inputs: Values::new(), weights: BTreeSet::new() })
    }

    fn side(&self) -> Side<'_> {
        Side { model: &self.model, inputs: &self.inputs, weights: &self.weights }
    }
}

impl Parity {
    /// A model from the bytes of its file.
    pub fn new(bytes: Vec<u8>) -> Result<Self> {
        let export = Held::new(bytes)?;
        Ok(Self { export, references: Values::new(), original: None, named: Values::new() })
    }

    /// Ranges of integer inputs as far as the model shows them, and how far inputs should reach if
    /// something clips, rounds or chooses.
    pub fn domain(&self) -> (BTreeMap<String, (i64, i64)>, Option<f64>) {
        let model = &self.export.model;
        let reach = domain::has_corners(model).then(|| domain::reach(model));
        (domain::ranges(model), reach)
    }

    /// Looks for inputs on which the model and its original part as a whole: the original gives its
    /// outputs for each of many inputs.
    pub fn screen(
        &self,
        engines: &dyn EngineProvider,
        options: &DriftOptions,
        original: &dyn Fn(&[Inputs]) -> Vec<Outputs>,
    ) -> Result<Screening> {
        let engine = engines.engine_for(ModelFormat::Onnx)?;
        let held = &self.export;
        let weights = held.weights.iter().filter_map(|name| {
            let value = veracity_drift::copied(held.inputs.get(name)?).ok()?;
            Some((name.clone(), value))
        });
        let (weights, session) = (weights.collect(), &options.session);
        Ok(screen_original(&held.model, &weights, engine.as_ref(), session, original))
    }

    /// Keeps a copy of an input.
    pub fn input(&mut self, name: &str, value: &TensorView<'_>) {
        self.export.inputs.insert(name.to_owned(), held(value));
    }

    /// Keeps a weight that the model reads as an input.
    pub fn weight(&mut self, name: &str, value: SharedTensor) {
        self.export.inputs.insert(name.to_owned(), value);
        self.export.weights.insert(name.to_owned());
    }

    /// Keeps a copy of what the original computed, for [`Parity::explain`] and [`Parity::repro`].
    pub fn reference(&mut self, name: &str, value: &TensorView<'_>) {
        self.references.insert(name.to_owned(), held(value));
    }

    /// Keeps the original as a model of its own. `weights` are those of its inputs that are weights,
    /// `names` those that the export's values and inputs have in it, where they differ.
    pub fn original(
        &mut self,
        bytes: Vec<u8>,
        weights: BTreeSet<String>,
        names: BTreeMap<String, String>,
    ) -> Result<()> {
        self.original = Some((Held { weights, ..Held::new(bytes)? }, names));
        Ok(())
    }

    /// Keeps a copy of a weight of the original's model.
    pub fn original_weight(&mut self, name: &str, value: &TensorView<'_>) {
        if let Some((original, _)) = &mut self.original {
            original.inputs.insert(name.to_owned(), held(value));
        }
    }

    /// Keeps a copy of a weight of the original, by the name that it has in the export.
    pub fn named_weight(&mut self, name: &str, value: &TensorView<'_>) {
        self.named.insert(name.to_owned(), held(value));
    }

    /// Begins to compare the values that are `expected`.
    pub fn compare(
        self,
        engines: &dyn EngineProvider,
        options: DriftOptions,
        expected: &BTreeSet<String>,
    ) -> Result<Comparing> {
        let engine = engines.engine_for(ModelFormat::Onnx)?;
        let stream = Stream::new(&self.export.model, &|name| expected.contains(name), &options)?;
        Ok(Comparing { parity: self, engine, options, stream })
    }

    /// What [`Parity::explain`] could use: weights of the original's model, and names of constants.
    pub fn needs(
        &self,
        report: &DriftReport,
        engines: &Engines,
        options: &DriftOptions,
        rows: usize,
    ) -> Result<Needs> {
        self.with_evidence(engines, options, |evidence| needs(report, evidence, rows))
    }

    /// Finds out what makes the first rows wrong that are.
    pub fn explain(
        &self,
        report: &mut DriftReport,
        engines: &Engines,
        options: &DriftOptions,
        rows: usize,
    ) -> Result<()> {
        self.with_evidence(engines, options, |evidence| explain(report, evidence, rows))
    }

    /// Writes a repro of a row, by default of the origin; gives the name of the row.
    pub fn repro(
        &self,
        folder: &Path,
        report: &DriftReport,
        engines: &Engines,
        options: &DriftOptions,
        row: Option<&str>,
    ) -> Result<Option<String>> {
        self.with_evidence(engines, options, |evidence| repro::write(folder, report, evidence, row))
    }

    fn with_evidence<R>(
        &self,
        engines: &Engines,
        options: &DriftOptions,
        work: impl FnOnce(&Evidence<'_>) -> Result<R>,
    ) -> Result<R> {
        let engine = engines.engine_for(ModelFormat::Onnx)?;
        let second: Option<Arc<dyn Engine>> = engines.second_onnx();
        let original = self.original.as_ref();
        work(&Evidence {
            export: self.export.side(),
            references: &self.references,
            original: original.map(|(held, names)| Original {
                side: held.side(),
                names,
                given: None,
            }),
            named: &self.named,
            engine: engine.as_ref(),
            second: second.as_deref(),
            session: &options.session,
        })
    }
}

/// A comparison that goes on while the original computes its values.
pub struct Comparing {
    parity: Parity,
    engine: Arc<dyn Engine>,
    options: DriftOptions,
    stream: Stream,
}

impl Comparing {
    /// Keeps a copy of an input; all of them come before the first reference.
    pub fn input(&mut self, name: &str, value: &TensorView<'_>) {
        self.parity.input(name, value);
    }

    /// Takes what the original computed, and what that is in float64. Values are copied, and let go
    /// when nothing reads them any more.
    pub fn reference(
        &mut self,
        name: &str,
        value: &TensorView<'_>,
        wide: Option<&TensorView<'_>>,
    ) -> Result<()> {
        if !self.stream.wants(name) {
            return Ok(());
        }
        self.stream.reference(name, held(value), wide.map(held), &self.options)
    }

    /// Compares what is there, once it is enough to be worth it.
    pub fn advance(&mut self) -> Result<()> {
        let Self { parity, engine, options, stream } = self;
        stream.advance(&against(parity, engine.as_ref(), options))
    }

    /// Compares what is left; gives back what was compared, and what was found.
    pub fn finish(self) -> Result<(Parity, DriftReport)> {
        let Self { parity, engine, options, stream } = self;
        let report = stream.finish(&against(&parity, engine.as_ref(), &options))?;
        Ok((parity, report))
    }
}

fn against<'a>(
    parity: &'a Parity,
    engine: &'a dyn Engine,
    options: &'a DriftOptions,
) -> Against<'a> {
    let Held { model, inputs, .. } = &parity.export;
    Against { model, inputs, engine, options }
}

/// The engine that a repro was made with, if it is one that can be chosen.
pub fn engine_of_repro(folder: &Path) -> Result<EngineChoice> {
    let record = repro::read(folder)?;
    Ok(EngineChoice::from_name(&record.session.engine).unwrap_or_default())
}

/// Runs a repro again.
pub fn rerun(folder: &Path, engines: &dyn EngineProvider) -> Result<ReproRun> {
    repro::run(folder, engines.engine_for(ModelFormat::Onnx)?.as_ref())
}
