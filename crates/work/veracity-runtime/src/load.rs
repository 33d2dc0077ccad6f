//! From a bundle on disk to a runner.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use veracity_diag::{Diagnostic, Place, Reporter, Result, codes};
use veracity_engine::{ModelBytes, ModelFormat, ModelSource, Port, Ports};
use veracity_spec::{Backend, Bundle, Model, Node};
use veracity_tensor::Tensor;

use crate::fuse::{self, Merged};
use crate::memory::Memory;
use crate::options::{Fusion, RunOptions};
use crate::plan::{Plan, PlannedPort, PlannedStage};
use crate::provider::EngineProvider;
use crate::runner::Runner;
use crate::stage::Stage;

/// Largest model that is read into memory before it is loaded, so that the bytes that were hashed
/// are the bytes that run. Larger ones are given to the engine as a file, to keep peak memory at
/// one copy.
const MAX_IN_MEMORY_BYTES: u64 = 256 << 20;

impl Runner {
    /// Loads a bundle. Everything that can be refused is refused here: hashes, ports, missing
    /// engines, merged nodes that do not agree.
    pub fn load(
        bundle: &Bundle,
        engines: &dyn EngineProvider,
        options: &RunOptions,
    ) -> Result<Self> {
        options.reorder.check(bundle.spec())?;
        let mut runner = Self::load_in_order(bundle, engines, options)?;
        runner.reorder(&options.reorder);
        Ok(runner)
    }

    /// A runner that takes and gives values in the bundle's own order.
    fn load_in_order(
        bundle: &Bundle,
        engines: &dyn EngineProvider,
        options: &RunOptions,
    ) -> Result<Self> {
        let loader = Loader::new(bundle, engines, options)?;
        let separate = loader.load(Plan::new(bundle.spec()), None)?;
        let Fusion::WhenEqual(tolerance) = options.fusion else { return Ok(separate) };
        let merged = || {
            loader.require_merging_engine()?;
            match Merged::new(bundle.spec(), &loader.sources)? {
                Some(merged) => loader.load(merged.plan(bundle.spec()), Some(&merged)).map(Some),
                None => Ok(None),
            }
        };
        Ok(fuse::choose(separate, merged(), tolerance))
    }
}

struct Loader<'a> {
    bundle: &'a Bundle,
    engines: &'a dyn EngineProvider,
    options: &'a RunOptions,
    /// The model of each node.
    sources: Vec<ModelSource>,
    warnings: Vec<Diagnostic>,
}

impl<'a> Loader<'a> {
    fn new(
        bundle: &'a Bundle,
        engines: &'a dyn EngineProvider,
        options: &'a RunOptions,
    ) -> Result<Self> {
        let mut reporter = Reporter::new();
        reporter.absorb(bundle.require_models());
        for warning in reporter.absorb(bundle.verify()).unwrap_or_default() {
            reporter.report(warning);
        }
        crate::check_models(bundle, &mut reporter);
        let warnings = reporter.finish()?;
        let nodes = bundle.spec().nodes.iter();
        let sources = nodes.map(|node| source(bundle, node)).collect::<Result<_>>()?;
        Ok(Self { bundle, engines, options, sources, warnings })
    }

    fn require_merging_engine(&self) -> Result<()> {
        let engine = self.engines.engine_for(ModelFormat::Onnx)?;
        if engine.may_merge() {
            return Ok(());
        }
        let message = format!("engine {:?} checks values between nodes", engine.name());
        Err(Diagnostic::error(codes::FUSION_UNPROVED, message).into())
    }

    fn load(&self, plan: Plan, merged: Option<&Merged>) -> Result<Runner> {
        let memory = Memory::new(&plan);
        let stages: Vec<Stage> = plan
            .stages
            .iter()
            .map(|stage| self.load_stage(&plan, stage, &memory, merged))
            .collect::<Result<_>>()?;
        let initial = self.initial_values(&plan)?;
        Ok(Runner::assemble(plan, memory, stages, initial, self.warnings.clone()))
    }

    fn load_stage(
        &self,
        plan: &Plan,
        stage: &PlannedStage,
        memory: &Memory,
        merged: Option<&Merged>,
    ) -> Result<Stage> {
        let nodes = &self.bundle.spec().nodes[stage.nodes.clone()];
        let name = nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>().join("+");
        let source = match merged.and_then(|merged| merged.model(&stage.nodes)) {
            Some(bytes) => {
                ModelSource { format: ModelFormat::Onnx, bytes: ModelBytes::Memory(bytes) }
            }
            None => self.sources[stage.nodes.start].clone(),
        };
        let ports = stage_ports(plan, stage);
        let place =
            if nodes.len() == 1 { self.bundle.places().model(&name) } else { Place::node(&name) };
        let load = || {
            let engine = self.engines.engine_for(source.format)?;
            let session = engine.load(&source, &ports, &self.options.session)?;
            Stage::new(name, engine.as_ref(), session, stage, memory)
        };
        load().map_err(|refusal| refusal.within(&place))
    }

    /// What each state starts from. The bundle has checked dtypes and shapes.
    fn initial_values(&self, plan: &Plan) -> Result<Vec<Option<Tensor>>> {
        let values = self.bundle.initial_values()?.values;
        Ok(plan.states.iter().map(|state| values.get(&state.port.key).cloned()).collect())
    }
}

/// The model of a node: its bytes, whose hash is checked here, or the file when it is too large or
/// has external data beside it.
pub(crate) fn source(bundle: &Bundle, node: &Node) -> Result<ModelSource> {
    let Some(model) = &node.model else {
        let message = format!("node {:?} has no model", node.name);
        return Err(Diagnostic::error(codes::MODEL_ABSENT, message).into());
    };
    let path = model.path.resolve(bundle.root())?;
    let format = format_of(model.backend);
    let size = std::fs::metadata(&path).map_or(u64::MAX, |metadata| metadata.len());
    if size > MAX_IN_MEMORY_BYTES {
        return Ok(ModelSource { format, bytes: ModelBytes::File(path) });
    }
    let place = bundle.places().model(&node.name);
    let bytes = read_checked(model, &path).map_err(|refusal| refusal.within(&place))?;
    let has_side_files = format == ModelFormat::Onnx && has_external_data(&bytes)?;
    let bytes = if has_side_files { ModelBytes::File(path) } else { ModelBytes::Memory(bytes) };
    Ok(ModelSource { format, bytes })
}

fn read_checked(model: &Model, path: &Path) -> Result<Arc<[u8]>> {
    let bytes = std::fs::read(path).map_err(|error| {
        Diagnostic::error(codes::FILE_UNREADABLE, format!("the model cannot be read: {error}"))
    })?;
    if veracity_spec::hash_bytes(&bytes).sha256 != model.sha256 {
        let message = "the model changed while the bundle was being loaded";
        return Err(Diagnostic::error(codes::HASH_MISMATCH, message).into());
    }
    Ok(bytes.into())
}

fn has_external_data(bytes: &Arc<[u8]>) -> Result<bool> {
    let model = veracity_onnx::Model::from_bytes(Bytes::from_owner(Arc::clone(bytes)))?;
    Ok(!model.external_data()?.is_empty())
}

fn format_of(backend: Backend) -> ModelFormat {
    match backend {
        Backend::Jit => ModelFormat::TorchScript,
        Backend::Onnx => ModelFormat::Onnx,
        Backend::Pt2 => ModelFormat::Pt2,
    }
}

/// What the session of a stage must have. A merged model names its ports `node/port`.
fn stage_ports(plan: &Plan, stage: &PlannedStage) -> Ports {
    let is_merged = is_merged(&stage.nodes);
    let port = |planned: &PlannedPort| Port {
        name: if is_merged { planned.key.to_string() } else { planned.key.port.clone() },
        dtype: planned.dtype,
        shape: planned.shape.clone(),
    };
    Ports {
        inputs: stage.inputs.iter().map(|(planned, _)| port(planned)).collect(),
        outputs: stage.outputs.iter().map(|value| port(&plan.values[value.0].port)).collect(),
    }
}

fn is_merged(nodes: &Range<usize>) -> bool {
    nodes.len() > 1
}
