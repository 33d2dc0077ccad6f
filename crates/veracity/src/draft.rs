//! Makes a bundle from models that already exist.
//!
//! A draft is what a person, or an exporter, writes down: nodes with their model files, and the
//! edges between them. What the models and the wiring tell is filled in: the ports of ONNX models,
//! their external data, and which ports are the pipeline's own.

mod folder;
mod json;
mod models;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use folder::strangers;
pub use json::Extra;
use serde::Deserialize;
use veracity_diag::{Diagnostic, Place, Reporter, Result, codes};
use veracity_onnx::{Dim, ValueInfo};
use veracity_spec::{
    AxisNames, Backend, Bundle, BundlePath, BundleWriter, Direction, Edge, FileContent, Model,
    Node, PortRef, PortSpec, Spec, Value, VeracityBlock,
};
use veracity_tensor::{DType, Shape, Tensor};

/// A pipeline of models that already exist.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleDraft {
    /// In the order in which they run.
    pub nodes: Vec<NodeDraft>,
    /// Edges within a step, from `node/output` to `node/input`.
    #[serde(default)]
    pub data_flow: Vec<(String, String)>,
    /// Edges into the next step.
    #[serde(default)]
    pub feedback_flow: Vec<(String, String)>,
    /// Outputs that feed other nodes and are wanted outside as well, as `node/output`.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// Steps per second that the pipeline was made for.
    #[serde(default)]
    pub frequency: Option<f64>,
    /// Other settings of the pipeline as a whole.
    #[serde(default)]
    pub configs: Extra,
    /// What the bundle was made with; the system and the version of Veracity are filled in.
    #[serde(default)]
    pub system: Extra,
    /// A safetensors file of recorded inputs and outputs; it is copied into the bundle.
    #[serde(default)]
    pub samples: Option<PathBuf>,
    /// Whether element names that do not fit the shape are written all the same. They are then a
    /// warning for everybody who reads the bundle.
    #[serde(default)]
    pub keep_misfit_names: bool,
}

/// One model of a draft.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeDraft {
    /// Unique among the nodes.
    pub name: String,
    /// The model file; it is copied into the bundle, with its external data. A node without one is
    /// only described.
    #[serde(default)]
    pub model: Option<PathBuf>,
    /// The recorded program as a file of `torch.export`, to compare the model with operator by
    /// operator; it is copied into the bundle beside the model.
    #[serde(default)]
    pub program: Option<PathBuf>,
    /// `onnx`, `jit` or `pt2`; taken from the file name when it is not given.
    #[serde(default)]
    pub backend: Option<String>,
    /// Inputs; read from the model when it is ONNX and they are not given.
    #[serde(default)]
    pub inputs: Option<Vec<PortDraft>>,
    /// Outputs; likewise.
    #[serde(default)]
    pub outputs: Option<Vec<PortDraft>>,
    /// Further keys of `parameters`, such as `opset_version`.
    #[serde(default)]
    pub parameters: Extra,
}

/// One port of a draft.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortDraft {
    /// Name in the model.
    pub name: String,
    /// Type of the elements; read from the model when it is ONNX.
    #[serde(default)]
    pub dtype: Option<String>,
    /// Sizes of the axes; read from the model when it is ONNX.
    #[serde(default)]
    pub shape: Option<Vec<usize>>,
    /// What the values mean.
    #[serde(default)]
    pub kind: Option<String>,
    /// Names along the axes; `null` for an axis without names, `"__temporal_axis__"` for time.
    #[serde(default, deserialize_with = "json::axes")]
    pub element_names: Option<Vec<AxisNames>>,
    /// Time between two elements of a temporal axis.
    #[serde(default)]
    pub temporal_period_ms: Option<f64>,
    /// Further keys of the port.
    #[serde(default)]
    pub extra: Extra,
}

impl PortDraft {
    /// Why the element names do not fit the shape, if so.
    pub fn element_names_problem(&self) -> Result<Option<String>> {
        port_from_draft(self, None).map(|port| port.element_names_problem())
    }
}

impl BundleDraft {
    /// Writes the bundle into `folder`, atomically. Refused when the folder holds files that
    /// belong to no bundle: they would be lost.
    pub fn write(&self, folder: &Path, initial: BTreeMap<String, Tensor>) -> Result<Bundle> {
        self.writer(folder, initial)?.write(folder)
    }

    /// Like [`BundleDraft::write`], with a proof: `prove` gets the bundle before anybody else can
    /// see it. Gives the path of the description.
    pub fn write_proved(
        &self,
        folder: &Path,
        initial: BTreeMap<String, Tensor>,
        prove: &mut dyn FnMut(&Bundle) -> Result<Vec<u8>>,
    ) -> Result<PathBuf> {
        self.writer(folder, initial)?.write_proved(folder, prove)
    }

    fn writer(&self, folder: &Path, initial: BTreeMap<String, Tensor>) -> Result<BundleWriter> {
        let mut reporter = Reporter::new();
        let nodes: Vec<(Node, &NodeDraft)> = self
            .nodes
            .iter()
            .filter_map(|draft| Some((reporter.absorb(self.node_from(draft))?, draft)))
            .collect();
        let data_flow = edges(&self.data_flow, &mut reporter);
        let feedback_flow = edges(&self.feedback_flow, &mut reporter);
        let initial = initial
            .into_iter()
            .filter_map(|(key, tensor)| Some((reporter.absorb(port_ref(&key))?, tensor)))
            .collect();
        let wanted: Vec<PortRef> =
            self.outputs.iter().filter_map(|key| reporter.absorb(port_ref(key))).collect();
        reporter.finish()?;
        folder::refuse_strangers(folder)?;
        let mut spec = Spec { data_flow, feedback_flow, ..Spec::default() };
        spec.configs.frequency = self.frequency;
        spec.configs.extra = self.configs.0.clone();
        spec.system = self.system_information();
        let mut files = models::Files::default();
        for (mut node, draft) in nodes {
            files.add(&mut node, draft)?;
            spec.nodes.push(node);
        }
        expose_loose_ends(&mut spec, &wanted);
        let mut files = files.into_contents();
        if let Some(samples) = &self.samples {
            let path = samples_path(folder)?;
            files.push((path.clone(), FileContent::File(samples.clone())));
            spec.veracity = Some(VeracityBlock { samples: Some(path), ..VeracityBlock::default() });
        }
        let writer = BundleWriter::new(spec).initial_values(initial);
        let files = files.into_iter();
        Ok(files.fold(writer, |writer, (path, content)| writer.file(path, content)))
    }

    /// By key, as LEAPP writes it.
    fn system_information(&self) -> veracity_spec::Map {
        let mut entries: BTreeMap<&str, Value> = BTreeMap::from([
            ("os", std::env::consts::OS.into()),
            ("veracity version", env!("CARGO_PKG_VERSION").into()),
        ]);
        entries.extend(self.system.0.iter().map(|(key, value)| (key, value.clone())));
        entries.into_iter().collect()
    }

    fn node_from(&self, draft: &NodeDraft) -> Result<Node> {
        let mut node = node_from_draft(draft)?;
        for port in node.inputs.iter_mut().chain(&mut node.outputs) {
            let Some(problem) = port.element_names_problem() else { continue };
            if !self.keep_misfit_names {
                let place = Place { port: Some(port.name.clone()), ..Place::node(&draft.name) };
                let misfit = Diagnostic::error(codes::ELEMENT_NAMES_MISMATCH, problem);
                return Err(misfit.at(place).into());
            }
        }
        node.parameters = draft.parameters.0.clone();
        Ok(node)
    }
}

/// Called after the bundle, as its initial values are.
fn samples_path(folder: &Path) -> Result<BundlePath> {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or("bundle");
    Ok(format!("{name}_samples.safetensors").parse::<BundlePath>()?)
}

/// Inputs that nothing feeds are the pipeline's inputs; outputs that feed nothing, and those that
/// are wanted, its outputs.
fn expose_loose_ends(spec: &mut Spec, wanted: &[PortRef]) {
    let edges = || spec.data_flow.iter().chain(&spec.feedback_flow);
    let fed: BTreeSet<&PortRef> = edges().map(|edge| &edge.target).collect();
    let feeding: BTreeSet<&PortRef> = edges().map(|edge| &edge.source).collect();
    let loose = |direction, connected: &BTreeSet<&PortRef>| -> Vec<PortRef> {
        let all = spec.nodes.iter().flat_map(|node| {
            node.ports(direction).iter().map(|port| PortRef::new(&node.name, &port.name))
        });
        all.filter(|port| !connected.contains(port)).collect()
    };
    let inputs = loose(Direction::Input, &fed);
    let mut outputs = loose(Direction::Output, &feeding);
    outputs.extend(wanted.iter().filter(|port| feeding.contains(port)).cloned());
    (spec.pipeline_inputs, spec.pipeline_outputs) = (inputs, outputs);
}

fn node_from_draft(draft: &NodeDraft) -> Result<Node> {
    let place = Place::node(&draft.name);
    let build = || -> Result<Node> {
        let Some(path) = &draft.model else {
            let inputs = ports(draft.inputs.as_deref(), &[])?;
            let outputs = ports(draft.outputs.as_deref(), &[])?;
            return Ok(Node { name: draft.name.clone(), inputs, outputs, ..Node::default() });
        };
        let backend = backend_of(draft, path)?;
        require_file(path)?;
        let onnx = match backend {
            Backend::Onnx => Some(veracity_onnx::Model::read(path)?),
            Backend::Jit | Backend::Pt2 => None,
        };
        let known = |side: fn(&veracity_onnx::Model) -> Vec<ValueInfo>| {
            onnx.as_ref().map(side).unwrap_or_default()
        };
        let inputs = ports(draft.inputs.as_deref(), &known(veracity_onnx::Model::inputs))?;
        let outputs = ports(draft.outputs.as_deref(), &known(veracity_onnx::Model::outputs))?;
        if let Some(model) = &onnx {
            veracity_onnx::check_ports(model, &declared(&inputs), &declared(&outputs))?;
        }
        Ok(Node {
            name: draft.name.clone(),
            inputs,
            outputs,
            model: Some(Model::unhashed(backend, models::path_in_bundle("", draft, backend)?)),
            ..Node::default()
        })
    };
    build().map_err(|refusal| refusal.within(&place))
}

fn declared(ports: &[PortSpec]) -> Vec<veracity_onnx::DeclaredPort<'_>> {
    ports.iter().map(|port| (port.name.as_str(), port.dtype, &port.shape)).collect()
}

/// Refuses what is no regular file before it is opened: a pipe would block, a device never end.
fn require_file(path: &Path) -> Result<()> {
    let (code, message) = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => return Ok(()),
        Ok(_) => (codes::PATH_NOT_A_FILE, "the model is not a regular file".to_owned()),
        Err(error) => (codes::FILE_NOT_FOUND, format!("the model cannot be read: {error}")),
    };
    let place = Place::file(path.display().to_string());
    Err(Diagnostic::error(code, message).at(place).into())
}

fn backend_of(draft: &NodeDraft, model: &Path) -> Result<Backend> {
    let ending = model.extension().and_then(|ending| ending.to_str());
    let name = match (&draft.backend, ending) {
        (Some(name), _) => name.as_str(),
        (None, Some("pt")) => "jit",
        (None, Some(other)) => other,
        (None, None) => "",
    };
    Backend::from_name(name).ok_or_else(|| {
        let message = format!("{name:?} is no backend");
        Diagnostic::error(codes::BACKEND_UNKNOWN, message)
            .hint("give `backend`: `onnx`, `jit` or `pt2`")
            .into()
    })
}

/// The drafted ports, completed by what the model says; all of the model's when none are drafted.
fn ports(drafts: Option<&[PortDraft]>, known: &[ValueInfo]) -> Result<Vec<PortSpec>> {
    let all: Vec<PortDraft>;
    let drafts = if let Some(drafts) = drafts {
        drafts
    } else {
        let named =
            |info: &ValueInfo| PortDraft { name: info.name.clone(), ..PortDraft::default() };
        all = known.iter().map(named).collect();
        &all
    };
    drafts
        .iter()
        .map(|draft| port_from_draft(draft, known.iter().find(|info| info.name == draft.name)))
        .collect()
}

fn port_from_draft(draft: &PortDraft, known: Option<&ValueInfo>) -> Result<PortSpec> {
    let place = Place { port: Some(draft.name.clone()), ..Place::default() };
    let missing = |what: &str, code| {
        let message = format!("the {what} of port {:?} is not known", draft.name);
        let hint = format!("give `{what}`: the model does not say it");
        Diagnostic::error(code, message).at(place.clone()).hint(hint)
    };
    let dtype = match &draft.dtype {
        Some(name) => Some(DType::from_name(name).ok_or_else(|| {
            Diagnostic::error(codes::DTYPE_UNKNOWN, format!("{name:?} is no dtype"))
                .at(place.clone())
        })?),
        None => known.and_then(|info| info.dtype),
    };
    let dims = draft.shape.clone().or_else(|| known.and_then(fixed_dims));
    let dims = dims.ok_or_else(|| missing("shape", codes::SHAPE_INVALID))?;
    let too_large = || {
        let message = format!("the shape of port {:?} has too many elements", draft.name);
        Diagnostic::error(codes::SHAPE_TOO_LARGE, message).at(place.clone())
    };
    let shape = Shape::new(dims).ok_or_else(too_large)?;
    let dtype = dtype.ok_or_else(|| missing("dtype", codes::DTYPE_UNKNOWN))?;
    let mut port = PortSpec::new(&draft.name, dtype, shape);
    port.kind.clone_from(&draft.kind);
    port.temporal_period_ms = draft.temporal_period_ms;
    port.element_names.clone_from(&draft.element_names);
    port.extra = draft.extra.0.clone();
    Ok(port)
}

fn fixed_dims(info: &ValueInfo) -> Option<Vec<usize>> {
    let fixed = |dim: &Dim| match dim {
        Dim::Fixed(size) => Some(*size),
        _ => None,
    };
    info.dims.as_ref()?.iter().map(fixed).collect()
}

fn edges(pairs: &[(String, String)], reporter: &mut Reporter) -> Vec<Edge> {
    let mut edge = |(source, target): &(String, String)| {
        let source = reporter.absorb(port_ref(source));
        let target = reporter.absorb(port_ref(target));
        Some(Edge { source: source?, target: target? })
    };
    pairs.iter().filter_map(&mut edge).collect()
}

fn port_ref(text: &str) -> Result<PortRef> {
    let unreadable = || {
        let message = format!("{text:?} is not written `node/port`");
        Diagnostic::error(codes::EDGE_MALFORMED, message)
    };
    Ok(text.parse().ok().ok_or_else(unreadable)?)
}
