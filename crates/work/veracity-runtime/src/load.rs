//! From a bundle on disk to a runner.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

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
        let loader = Loader::new(bundle, engines, options)?;
        let separate = loader.load(Plan::new(bundle.spec()), None)?;
        let Fusion::WhenEqual(tolerance) = options.fusion else { return Ok(separate) };
        let merged = || match Merged::new(bundle)? {
            Some(merged) => loader.load(merged.plan(bundle.spec()), Some(&merged)).map(Some),
            None => Ok(None),
        };
        Ok(fuse::choose(separate, merged(), tolerance))
    }
}

struct Loader<'a> {
    bundle: &'a Bundle,
    engines: &'a dyn EngineProvider,
    options: &'a RunOptions,
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
        Ok(Self { bundle, engines, options, warnings })
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
            None => self.source(&nodes[0])?,
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

    /// The model of a node. Its hash is checked on the very bytes that are handed on.
    fn source(&self, node: &Node) -> Result<ModelSource> {
        let model = node.model.as_ref();
        let model = model.expect("a bundle with a node without model was refused before");
        let path = model.path.resolve(self.bundle.root())?;
        let format = format_of(model.backend);
        let bytes = if fits_in_memory(&path, model) {
            ModelBytes::Memory(self.read_checked(node, model, &path)?)
        } else {
            ModelBytes::File(path)
        };
        Ok(ModelSource { format, bytes })
    }

    fn read_checked(&self, node: &Node, model: &Model, path: &Path) -> Result<Arc<[u8]>> {
        let place = self.bundle.places().model(&node.name);
        let bytes = std::fs::read(path).map_err(|error| {
            Diagnostic::error(codes::FILE_UNREADABLE, format!("the model cannot be read: {error}"))
                .at(place.clone())
        })?;
        if veracity_spec::hash_bytes(&bytes).sha256 != model.sha256 {
            return Err(Diagnostic::error(
                codes::HASH_MISMATCH,
                "the model changed while the bundle was being loaded",
            )
            .at(place)
            .into());
        }
        Ok(bytes.into())
    }

    /// What each state starts from. The bundle has checked dtypes and shapes.
    fn initial_values(&self, plan: &Plan) -> Result<Vec<Option<Tensor>>> {
        let values = self.bundle.initial_values()?.values;
        Ok(plan.states.iter().map(|state| values.get(&state.port.key).cloned()).collect())
    }
}

fn fits_in_memory(path: &Path, model: &Model) -> bool {
    let is_small =
        std::fs::metadata(path).is_ok_and(|metadata| metadata.len() <= MAX_IN_MEMORY_BYTES);
    is_small && !(model.backend == Backend::Onnx && fuse::has_external_data(path))
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
