//! Writes models piece by piece, so that weights go from where they lie to the file.
//!
//! The bytes are those that the protobuf encoder gives for the whole model at once: fields in the
//! order of their numbers. Nothing larger than one node, or one weight that is not plain bytes, is
//! held in memory on the way.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use prost::Message;
use veracity_diag::{Diagnostic, Refusal, Result, codes};

use crate::generated::onnx::{GraphProto, ModelProto, NodeProto, TensorProto};
use crate::{Model, limits, map};

/// Numbers of fields in `onnx.proto`, as the tag of a field that has a length.
const MODEL_GRAPH: u64 = 7 << 3 | 2;
const GRAPH_NODE: u64 = 1 << 3 | 2;
const GRAPH_INITIALIZER: u64 = 5 << 3 | 2;
const TENSOR_RAW_DATA: u64 = 9 << 3 | 2;

/// Elements of fewer bytes are copied: that is quicker than taking their message apart.
const SMALL_BYTES: usize = 4096;

impl Model {
    /// Writes the bytes of the model, of whatever size: the same as [`Model::to_bytes`] gives.
    pub fn encode(&self, writer: &mut impl Write) -> io::Result<()> {
        self.encode_body(writer)?;
        self.encode_rest(writer)
    }

    /// Writes the first part of the bytes, up to the end of the main graph. Keys of the model are
    /// not in it: whoever hashes it can add them later.
    pub fn encode_body(&self, writer: &mut impl Write) -> io::Result<()> {
        encode_body(self.proto(), writer)
    }

    /// Writes the bytes that come after the main graph.
    pub fn encode_rest(&self, writer: &mut impl Write) -> io::Result<()> {
        encode_rest(self.proto(), writer)
    }

    /// Writes the model. A file that is already there is replaced, never written into: it may be
    /// the one that this or another model has mapped.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        self.check_size().map_err(|refusal| refusal.within(&map::place(path)))?;
        let written = Replacement::fill(path, |writer| self.encode(writer));
        written.and_then(Replacement::keep).map_err(|error| unwritable(path, &error))
    }

    /// Refuses a model that no reader of protobuf takes.
    pub(crate) fn check_size(&self) -> Result<()> {
        let size = self.proto().encoded_len();
        if size as u64 <= limits::MAX_FILE_BYTES {
            return Ok(());
        }
        let message = format!("the model takes {size} bytes; an ONNX file has at most 2 GiB");
        Err(Diagnostic::error(codes::FILE_TOO_LARGE, message)
            .hint("keep the weights in a file of their own")
            .into())
    }
}

fn encode_body(model: &ModelProto, writer: &mut impl Write) -> io::Result<()> {
    let head = ModelProto {
        ir_version: model.ir_version,
        producer_name: model.producer_name.clone(),
        producer_version: model.producer_version.clone(),
        domain: model.domain.clone(),
        model_version: model.model_version,
        doc_string: model.doc_string.clone(),
        ..ModelProto::default()
    };
    writer.write_all(&head.encode_to_vec())?;
    let Some(graph) = &model.graph else { return Ok(()) };
    open(writer, MODEL_GRAPH, graph.encoded_len())?;
    encode_graph(graph, writer)
}

fn encode_rest(model: &ModelProto, writer: &mut impl Write) -> io::Result<()> {
    let rest = ModelProto {
        opset_import: model.opset_import.clone(),
        metadata_props: model.metadata_props.clone(),
        training_info: model.training_info.clone(),
        functions: model.functions.clone(),
        configuration: model.configuration.clone(),
        ..ModelProto::default()
    };
    writer.write_all(&rest.encode_to_vec())
}

fn encode_graph(graph: &GraphProto, writer: &mut impl Write) -> io::Result<()> {
    for node in &graph.node {
        encode_node(node, writer)?;
    }
    let name = GraphProto { name: graph.name.clone(), ..GraphProto::default() };
    writer.write_all(&name.encode_to_vec())?;
    for tensor in &graph.initializer {
        open(writer, GRAPH_INITIALIZER, tensor.encoded_len())?;
        encode_tensor(tensor, writer)?;
    }
    let tail = GraphProto {
        sparse_initializer: graph.sparse_initializer.clone(),
        doc_string: graph.doc_string.clone(),
        input: graph.input.clone(),
        output: graph.output.clone(),
        value_info: graph.value_info.clone(),
        quantization_annotation: graph.quantization_annotation.clone(),
        metadata_props: graph.metadata_props.clone(),
        ..GraphProto::default()
    };
    writer.write_all(&tail.encode_to_vec())
}

fn encode_node(node: &NodeProto, writer: &mut impl Write) -> io::Result<()> {
    open(writer, GRAPH_NODE, node.encoded_len())?;
    writer.write_all(&node.encode_to_vec())
}

fn encode_tensor(tensor: &TensorProto, writer: &mut impl Write) -> io::Result<()> {
    let Some(raw) = tensor.raw_data.as_ref().filter(|raw| raw.len() >= SMALL_BYTES) else {
        return writer.write_all(&tensor.encode_to_vec());
    };
    let head = TensorProto {
        dims: tensor.dims.clone(),
        data_type: tensor.data_type,
        segment: tensor.segment,
        float_data: tensor.float_data.clone(),
        int32_data: tensor.int32_data.clone(),
        string_data: tensor.string_data.clone(),
        int64_data: tensor.int64_data.clone(),
        name: tensor.name.clone(),
        ..TensorProto::default()
    };
    let tail = TensorProto {
        double_data: tensor.double_data.clone(),
        uint64_data: tensor.uint64_data.clone(),
        doc_string: tensor.doc_string.clone(),
        external_data: tensor.external_data.clone(),
        data_location: tensor.data_location,
        metadata_props: tensor.metadata_props.clone(),
        ..TensorProto::default()
    };
    writer.write_all(&head.encode_to_vec())?;
    open(writer, TENSOR_RAW_DATA, raw.len())?;
    writer.write_all(raw)?;
    writer.write_all(&tail.encode_to_vec())
}

/// Writes the tag and the length of a field.
fn open(writer: &mut impl Write, tag: u64, length: usize) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(20);
    prost::encoding::encode_varint(tag, &mut bytes);
    prost::encoding::encode_varint(length as u64, &mut bytes);
    writer.write_all(&bytes)
}

/// A file that is filled and not yet in its place; gone when it never gets there.
pub(crate) struct Replacement {
    temporary: PathBuf,
    target: PathBuf,
    kept: bool,
}

impl Replacement {
    /// Fills a new file beside `path`.
    pub(crate) fn fill(
        path: &Path,
        content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<Self> {
        let temporary = beside(path, "new")?;
        let file = File::create(&temporary)?;
        let made = Self { temporary, target: path.to_owned(), kept: false };
        let mut writer = BufWriter::with_capacity(1 << 16, file);
        content(&mut writer)?;
        writer.flush()?;
        Ok(made)
    }

    /// Moves it to its place.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.target)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.kept {
            // Whatever went wrong before is the one to report.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

/// A path in the same folder that nobody else uses.
pub(crate) fn beside(path: &Path, ending: &str) -> io::Result<PathBuf> {
    // Two threads may write the same model.
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let name = path.file_name().ok_or_else(|| io::Error::other("the path has no file name"))?;
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    Ok(path.with_file_name(format!(".{}.{process}.{count}.{ending}", name.display())))
}

pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Refusal {
    let message = format!("cannot be written: {error}");
    Diagnostic::error(codes::FILE_UNWRITABLE, message).at(map::place(path)).into()
}

#[cfg(test)]
mod tests {
    use veracity_tensor::{DType, Shape, Tensor};

    use super::*;
    use crate::generated::onnx::{
        FunctionProto, OperatorSetIdProto, SparseTensorProto, StringStringEntryProto,
        TensorAnnotation, TrainingInfoProto,
    };
    use crate::{GraphBuilder, Node};

    fn entry() -> StringStringEntryProto {
        crate::build::entry("key", "value")
    }

    /// A model in which every field that is written by hand has a value.
    fn full() -> Model {
        let large = Tensor::zeros(DType::F32, Shape::from([SMALL_BYTES]));
        let small = Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap();
        let model = GraphBuilder::new("graph", 20)
            .input("x", DType::F32, [2_usize])
            .initializer("large", &large)
            .initializer("small", &small)
            .node(Node::new("Relu", ["x"], ["y"]).named("relu").tensor("t", &large))
            .output("y", DType::F32, [2_usize])
            .metadata("a", "b")
            .finish()
            .unwrap();
        let mut proto = model.into_proto();
        (proto.domain, proto.model_version) = (Some("domain".into()), Some(7));
        proto.doc_string = Some("text".into());
        let import = OperatorSetIdProto { domain: Some("d".into()), version: Some(1) };
        proto.opset_import.push(import);
        proto.functions.push(FunctionProto { name: Some("f".into()), ..Default::default() });
        proto.training_info.push(TrainingInfoProto::default());
        proto.configuration.push(crate::generated::onnx::DeviceConfigurationProto::default());
        let graph = proto.graph.as_mut().unwrap();
        graph.doc_string = Some("about".into());
        graph.value_info = graph.input.clone();
        graph.metadata_props = vec![entry()];
        graph.quantization_annotation.push(TensorAnnotation::default());
        graph.sparse_initializer.push(SparseTensorProto { dims: vec![2], ..Default::default() });
        let tensor = &mut graph.initializer[0];
        (tensor.float_data, tensor.int32_data) = (vec![1.0], vec![2]);
        (tensor.string_data, tensor.int64_data) = (vec![vec![1]], vec![3]);
        (tensor.double_data, tensor.uint64_data) = (vec![1.0], vec![2]);
        (tensor.doc_string, tensor.data_location) = (Some("weight".into()), Some(1));
        (tensor.external_data, tensor.metadata_props) = (vec![entry()], vec![entry()]);
        tensor.segment = Some(crate::generated::onnx::tensor_proto::Segment::default());
        Model::checked(proto).unwrap()
    }

    #[test]
    fn pieces_make_the_bytes_that_the_whole_makes() {
        let model = full();
        let mut pieces = Vec::new();
        model.encode(&mut pieces).unwrap();
        assert!(pieces == model.to_bytes().unwrap());
    }

    #[test]
    fn a_written_file_holds_these_bytes_and_nothing_is_left_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        fs::write(&path, "old").unwrap();
        full().write(&path).unwrap();
        assert!(fs::read(&path).unwrap() == full().to_bytes().unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_that_cannot_be_filled_leaves_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        fs::write(&path, "old").unwrap();
        let failed = Replacement::fill(&path, |_| Err(io::Error::other("full")));
        assert!(failed.is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
