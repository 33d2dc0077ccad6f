//! One ONNX model in memory.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::path::Path;

use bytes::Bytes;
use prost::Message as _;
use veracity_diag::{Diagnostic, Place, Result, codes};

use crate::generated::onnx::tensor_proto::DataLocation;
use crate::generated::onnx::{
    GraphProto, ModelProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
};
use crate::value::ValueInfo;
use crate::walk::{Parts, domain};
use crate::{limits, map};

/// One ONNX model. It has a graph, and its subgraphs nest only so deep; nothing else about it is
/// promised: whether the operators exist and fit together is for an engine to say.
///
/// Weights are slices of the file's mapping, so that a clone is cheap and the file must not be
/// overwritten in place meanwhile.
#[derive(Clone)]
pub struct Model {
    proto: ModelProto,
    file: Option<String>,
}

impl Model {
    /// Reads a file without copying its weights.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let place = map::place(path);
        let mut model = map::map_file(path)
            .and_then(Self::from_bytes)
            .map_err(|refusal| refusal.within(&place))?;
        model.file = place.file;
        Ok(model)
    }

    /// Reads bytes, which stay in use.
    pub fn from_bytes(bytes: Bytes) -> Result<Self> {
        limits::check(&bytes)?;
        let mut proto = ModelProto::decode(bytes)
            .map_err(|error| malformed(format!("not an ONNX model: {error}")))?;
        leave_out_the_default(&mut proto);
        Ok(Self::checked(proto).map_err(malformed)?)
    }

    /// Every model is made here, so that each has a graph and a bounded depth.
    pub(crate) fn checked(proto: ModelProto) -> std::result::Result<Self, &'static str> {
        if proto.graph.is_none() {
            return Err("not an ONNX model: it has no graph");
        }
        if proto.ir_version() < 1 {
            return Err("not an ONNX model: it has no format version");
        }
        if Parts::of(&proto).depth > limits::MAX_SUBGRAPH_DEPTH {
            return Err("subgraphs nest too deep");
        }
        Ok(Self { proto, file: None })
    }

    /// The model as a file. The same model gives the same bytes.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check_size()?;
        Ok(self.proto.encode_to_vec())
    }

    /// What the graph must be given. An input that has an initializer has a value already and is
    /// left out.
    pub fn inputs(&self) -> Vec<ValueInfo> {
        self.fed_inputs().map(ValueInfo::from_proto).collect()
    }

    /// What the graph returns.
    pub fn outputs(&self) -> Vec<ValueInfo> {
        self.graph().output.iter().map(ValueInfo::from_proto).collect()
    }

    /// Version of the default operator set, if the model names one.
    pub fn opset(&self) -> Option<i64> {
        let mut imports = self.proto.opset_import.iter();
        imports.find(|import| domain(import.domain()).is_empty()).map(OperatorSetIdProto::version)
    }

    /// Version of the file format.
    pub fn ir_version(&self) -> i64 {
        self.proto.ir_version()
    }

    /// Which program wrote the model, with its version; empty when it does not say.
    pub fn producer(&self) -> String {
        let (name, version) = (self.proto.producer_name(), self.proto.producer_version());
        [name, version].join(" ").trim().to_owned()
    }

    /// Free-form keys and values.
    pub fn metadata(&self) -> Vec<(String, String)> {
        let entries = self.proto.metadata_props.iter();
        entries.map(|entry| (entry.key().to_owned(), entry.value().to_owned())).collect()
    }

    /// Number of nodes, those of subgraphs and functions included.
    pub fn op_count(&self) -> usize {
        Parts::of(&self.proto).nodes.len()
    }

    /// Every operator with the number of its nodes. One outside of the default domain is written
    /// `domain::Operator`.
    pub fn op_types(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for node in Parts::of(&self.proto).nodes {
            let name = match domain(node.domain()) {
                "" => node.op_type().to_owned(),
                domain => format!("{domain}::{}", node.op_type()),
            };
            *counts.entry(name).or_default() += 1;
        }
        counts
    }

    /// The messages behind the model.
    pub(crate) fn proto(&self) -> &ModelProto {
        &self.proto
    }

    pub(crate) fn into_proto(self) -> ModelProto {
        self.proto
    }

    /// The main graph.
    pub(crate) fn graph(&self) -> &GraphProto {
        self.proto.graph.as_ref().expect("`checked` refuses models without a graph")
    }

    /// Graph inputs without an initializer.
    pub(crate) fn fed_inputs(&self) -> impl Iterator<Item = &ValueInfoProto> {
        let initialized: HashSet<&str> = initializer_names(self.graph()).collect();
        self.graph().input.iter().filter(move |input| !initialized.contains(input.name()))
    }

    /// Says where the model came from.
    pub(crate) fn set_place(&mut self, place: &Place) {
        self.file.clone_from(&place.file);
    }

    /// The file, as far as findings about the model can name it.
    pub(crate) fn place(&self) -> Place {
        Place { file: self.file.clone(), ..Place::default() }
    }
}

impl fmt::Debug for Model {
    /// Short: a model prints as megabytes otherwise.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({:?}, {} nodes)", self.graph().name(), self.graph().node.len())
    }
}

/// Names of the values that a graph holds itself.
pub(crate) fn initializer_names(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let sparse = graph.sparse_initializer.iter().filter_map(|tensor| tensor.values.as_ref());
    graph.initializer.iter().chain(sparse).map(TensorProto::name)
}

/// That a weight lies in the file itself is what holds when nothing is said. It is not said here, so
/// that a weight that was put into another file and read back is what it was.
fn leave_out_the_default(proto: &mut ModelProto) {
    let weights = proto.graph.iter_mut().flat_map(|graph| &mut graph.initializer);
    for tensor in
        weights.filter(|tensor| tensor.data_location == Some(DataLocation::Default.into()))
    {
        tensor.data_location = None;
    }
}

fn malformed(problem: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::ONNX_MALFORMED, problem)
}
