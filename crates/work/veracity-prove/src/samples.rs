//! Recorded values of a bundle: what went in and out of each node, sample by sample.
//!
//! The file holds a tensor for each port, `recorded/<node>/in/<port>` and so on, with the samples
//! along its first axis. Recorded samples are passes of the traced code, in order; fresh ones were
//! drawn afterwards. Its metadata says who computed them.

use std::collections::BTreeMap;

use veracity_diag::{Diagnostic, Place, Reporter, Result, codes};
use veracity_results::{Adequacy, Origin, Reference, TolerancePolicy};
use veracity_spec::{Bundle, Direction, Node, PortSpec};
use veracity_tensor::{Tensor, TensorView, file};

/// Version of the layout, in the file's metadata as `veracity.samples`.
pub const SAMPLES_FORMAT: &str = "1";

/// How a sample came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A pass of the traced code.
    Recorded,
    /// Drawn afterwards.
    Fresh,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Recorded, Self::Fresh];

    /// The word in the file.
    pub fn word(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Fresh => "fresh",
        }
    }
}

/// The samples of one kind of one node.
#[derive(Debug, Default)]
struct Set {
    count: usize,
    /// In the order of the node's ports; an output may be missing.
    inputs: Vec<Tensor>,
    outputs: Vec<Option<Tensor>>,
}

/// Recorded values, known to fit the ports of their bundle.
#[derive(Debug, Default)]
pub struct Samples {
    reference: Reference,
    sets: BTreeMap<(String, Kind), Set>,
    fresh_notes: BTreeMap<String, String>,
    unstable: BTreeMap<String, String>,
    wrong: BTreeMap<String, String>,
    ticks: BTreeMap<String, Vec<usize>>,
    passes: BTreeMap<String, usize>,
    adequacy: BTreeMap<String, Adequacy>,
    findings: Vec<Diagnostic>,
    policy: Option<TolerancePolicy>,
    contract: Option<serde_json::Value>,
}

impl Samples {
    /// Reads the samples of a bundle. One without samples has none; samples that do not fit are
    /// refused.
    pub fn read(bundle: &Bundle) -> Result<Self> {
        let block = bundle.spec().veracity.as_ref();
        let Some(path) = block.and_then(|block| block.samples.as_ref()) else {
            return Ok(Self::default());
        };
        let place = Place::file(path.to_string());
        let (tensors, metadata) = path
            .resolve(bundle.root())
            .and_then(file::safetensors::read_with_metadata)
            .map_err(|refusal| refusal.within(&place))?;
        let sort = || {
            let mut samples = Self::described_by(&metadata)?;
            samples.sets = sets(&bundle.spec().nodes, tensors)?;
            Ok(samples)
        };
        sort().map_err(|refusal: veracity_diag::Refusal| refusal.within(&place))
    }

    /// What the file of samples says about itself, without its values.
    pub(crate) fn metadata(bundle: &Bundle) -> Result<Self> {
        let block = bundle.spec().veracity.as_ref();
        let Some(path) = block.and_then(|block| block.samples.as_ref()) else {
            return Ok(Self::default());
        };
        let place = Place::file(path.to_string());
        path.resolve(bundle.root())
            .and_then(file::safetensors::read_metadata)
            .and_then(|metadata| Self::described_by(&metadata))
            .map_err(|refusal| refusal.within(&place))
    }

    fn described_by(metadata: &BTreeMap<String, String>) -> Result<Self> {
        let text = |key: &str| metadata.get(key).map_or("", String::as_str);
        let format = text("veracity.samples");
        if format != SAMPLES_FORMAT {
            let message =
                format!("samples of format {format:?} are not known; {SAMPLES_FORMAT} is");
            return Err(Diagnostic::error(codes::SAMPLES_MISMATCH, message).into());
        }
        let origin = match text("origin") {
            "python" => Origin::Python,
            "runtime" => Origin::Runtime,
            other => {
                let message = format!("samples of unknown origin {other:?}");
                return Err(Diagnostic::error(codes::SAMPLES_MISMATCH, message).into());
            }
        };
        Ok(Self {
            reference: Reference {
                origin,
                made_with: text("made_with").to_owned(),
                seed: text("seed").parse().ok(),
                sources: json(text("sources")),
            },
            fresh_notes: json(text("fresh_notes")),
            unstable: json(text("unstable")),
            wrong: json(text("wrong")),
            ticks: json(text("ticks")),
            passes: json(text("passes")),
            adequacy: json(text("adequacy")),
            findings: json(text("findings")),
            policy: json(text("policy")),
            contract: json(text("contract")),
            ..Self::default()
        })
    }

    /// Who computed them.
    pub fn reference(&self) -> &Reference {
        &self.reference
    }

    /// Why a node has no fresh samples, or few.
    pub fn fresh_note(&self, node: &str) -> Option<&str> {
        self.fresh_notes.get(node).map(String::as_str)
    }

    /// What the code of a node did while it was recorded that its export cannot do, if it did.
    pub fn wrong(&self, node: &str) -> Option<&str> {
        self.wrong.get(node).map(String::as_str)
    }

    /// How the code of a node disagreed with itself, if it did.
    pub fn unstable(&self, node: &str) -> Option<&str> {
        self.unstable.get(node).map(String::as_str)
    }

    /// How many passes of a node were seen while recording, kept or not, where that is known.
    pub fn passes(&self, node: &str) -> Option<usize> {
        self.passes.get(node).copied()
    }

    /// What counted as equal when the bundle was exported, where the file says so. It is covered by
    /// the hash of the file, so that a proof cannot change it.
    pub fn policy(&self) -> Option<&TolerancePolicy> {
        self.policy.as_ref()
    }

    /// What was declared of ports and pipeline while recording, where the file says so.
    pub(crate) fn contract(&self) -> Option<&serde_json::Value> {
        self.contract.as_ref()
    }

    /// How many planted faults the samples of a node find, where somebody planted some.
    pub fn adequacy(&self, node: &str) -> Option<&Adequacy> {
        self.adequacy.get(node)
    }

    /// What tracing noticed.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// The tick of each recorded sample of a node; samples are ticks unless the file says
    /// otherwise.
    pub(crate) fn ticks(&self, node: &str) -> Vec<usize> {
        let count = self.count(node, Kind::Recorded);
        let told = self.ticks.get(node).filter(|ticks| ticks.len() == count);
        told.cloned().unwrap_or_else(|| (0..count).collect())
    }

    /// How many samples of a kind a node has.
    pub fn count(&self, node: &str, kind: Kind) -> usize {
        self.set(node, kind).map_or(0, |set| set.count)
    }

    /// One sample of an input, by its position in the node.
    pub fn input<'s>(
        &'s self,
        node: &'s Node,
        kind: Kind,
        port: usize,
        sample: usize,
    ) -> Option<TensorView<'s>> {
        let tensor = self.set(&node.name, kind)?.inputs.get(port)?;
        part(tensor, &node.inputs[port], sample)
    }

    /// One sample of an output, by its position in the node; `None` when it was not recorded.
    pub fn output<'s>(
        &'s self,
        node: &'s Node,
        kind: Kind,
        port: usize,
        sample: usize,
    ) -> Option<TensorView<'s>> {
        let tensor = self.set(&node.name, kind)?.outputs.get(port)?.as_ref()?;
        part(tensor, &node.outputs[port], sample)
    }

    fn set(&self, node: &str, kind: Kind) -> Option<&Set> {
        self.sets.get(&(node.to_owned(), kind))
    }
}

fn json<T: serde::de::DeserializeOwned + Default>(text: &str) -> T {
    serde_json::from_str(text).unwrap_or_default()
}

fn part<'t>(tensor: &'t Tensor, port: &PortSpec, sample: usize) -> Option<TensorView<'t>> {
    let len = port.shape.elements() * port.dtype.size();
    let bytes = tensor.bytes().get(sample * len..(sample + 1) * len)?;
    let within = sample < *tensor.shape().dims().first()?;
    within
        .then(|| TensorView::new(port.dtype, &port.shape, bytes).expect("the part was cut to fit"))
}

/// Sorts tensors by node. Everything that does not fit is told at once.
fn sets(
    nodes: &[Node],
    mut tensors: BTreeMap<String, Tensor>,
) -> Result<BTreeMap<(String, Kind), Set>> {
    let mut reporter = Reporter::new();
    let mut sets = BTreeMap::new();
    for node in nodes {
        for kind in Kind::ALL {
            if let Some(set) = reporter.absorb(take_set(node, kind, &mut tensors)).flatten() {
                sets.insert((node.name.clone(), kind), set);
            }
        }
    }
    for name in tensors.keys() {
        let message = format!("the samples hold {name:?}, which is no port of the bundle");
        reporter.report(Diagnostic::error(codes::SAMPLES_MISMATCH, message));
    }
    reporter.finish().map(|_| sets)
}

fn take_set(
    node: &Node,
    kind: Kind,
    tensors: &mut BTreeMap<String, Tensor>,
) -> Result<Option<Set>> {
    let mut take = |direction: Direction| -> Result<Vec<Option<Tensor>>> {
        let side = if direction == Direction::Input { "in" } else { "out" };
        let ports = node.ports(direction).iter();
        let take_one = |port: &PortSpec| {
            let key = format!("{}/{}/{side}/{}", kind.word(), node.name, port.name);
            let tensor = tensors.remove(&key);
            tensor.map(|tensor| fitting(node, port, tensor)).transpose()
        };
        ports.map(take_one).collect()
    };
    let (inputs, outputs) = (take(Direction::Input)?, take(Direction::Output)?);
    let mut counts: Vec<usize> = inputs.iter().chain(&outputs).flatten().map(samples_in).collect();
    counts.dedup();
    match counts.as_slice() {
        [] => Ok(None),
        [count] => {
            let missing = || mismatch(node, "has samples that lack an input");
            let inputs: Option<Vec<Tensor>> = inputs.into_iter().collect();
            let inputs = inputs.ok_or_else(missing)?;
            Ok(Some(Set { count: *count, inputs, outputs }))
        }
        _ => Err(mismatch(node, "has ports with different numbers of samples").into()),
    }
}

fn samples_in(tensor: &Tensor) -> usize {
    tensor.shape().dims().first().copied().unwrap_or(0)
}

fn fitting(node: &Node, port: &PortSpec, tensor: Tensor) -> Result<Tensor> {
    let dims = tensor.shape().dims();
    if tensor.dtype() == port.dtype && dims.get(1..) == Some(port.shape.dims()) {
        return Ok(tensor);
    }
    let message = format!(
        "has samples of {:?} that are {}{}, and the port is {}{}",
        port.name,
        tensor.dtype(),
        tensor.shape(),
        port.dtype,
        port.shape
    );
    Err(mismatch(node, &message).into())
}

fn mismatch(node: &Node, what: &str) -> Diagnostic {
    let message = format!("node {:?} {what}", node.name);
    Diagnostic::error(codes::SAMPLES_MISMATCH, message).at(Place::node(&node.name))
}
