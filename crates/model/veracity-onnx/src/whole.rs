//! Reads a model together with the weights that lie beside it.

use std::collections::HashMap;
use std::path::Path;

use bytes::Bytes;
use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};

use crate::generated::onnx::tensor_proto::DataLocation;
use crate::generated::onnx::{GraphProto, TensorProto};
use crate::{ExternalFile, Model, map};

impl Model {
    /// Reads a file, and the weights of its main graph that lie in files of their own: they are
    /// mapped, not copied. Refused when such a file is missing, too short or outside of the folder
    /// of the model, symbolic links included, and when tensors elsewhere lie in files.
    pub fn read_whole(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let place = map::place(path);
        let model = Self::read(path)?;
        let files = model.external_data()?;
        if files.is_empty() {
            return Ok(model);
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        // Weights of one model mostly lie in one file.
        let mut mapped: HashMap<&str, Bytes> = HashMap::new();
        let mut pieces: HashMap<&str, Bytes> = HashMap::with_capacity(files.len());
        for file in &files {
            let at = Place { node: Some(file.tensor.clone()), ..place.clone() };
            if !mapped.contains_key(file.location.as_str()) {
                let bytes = contained(folder, &file.location).map_err(|found| found.within(&at))?;
                mapped.insert(&file.location, bytes);
            }
            let bytes = &mapped[file.location.as_str()];
            let piece = piece(bytes, file).map_err(|found| found.within(&at))?;
            pieces.insert(&file.tensor, piece);
        }
        let mut whole = model.changed(|graph| put_in(graph, &pieces));
        if whole.has_external_data() {
            let message = "weights of a subgraph or of an attribute lie in another file";
            return Err(outside(message.to_owned()).within(&place));
        }
        whole.set_place(&place);
        Ok(whole)
    }
}

/// The bytes of one tensor.
fn piece(bytes: &Bytes, file: &ExternalFile) -> Result<Bytes> {
    let end = file.length.map_or(bytes.len() as u64, |length| file.offset + length);
    match (usize::try_from(file.offset), usize::try_from(end)) {
        (Ok(start), Ok(end)) if start <= end && end <= bytes.len() => Ok(bytes.slice(start..end)),
        _ => {
            let message =
                format!("{:?} has {} bytes, which are too few", file.location, bytes.len());
            Err(outside(message))
        }
    }
}

/// The bytes of a file that lies in a folder, and whose real path does too.
fn contained(folder: &Path, location: &str) -> Result<Bytes> {
    let path = folder.join(location);
    if let (Ok(folder), Ok(real)) = (folder.canonicalize(), path.canonicalize())
        && !real.starts_with(folder)
    {
        let message = format!("{location:?} leads out of the folder of the model");
        return Err(Diagnostic::error(codes::PATH_LEAVES_BUNDLE, message).into());
    }
    map::map_weights(&path)
}

fn put_in(graph: &mut GraphProto, pieces: &HashMap<&str, Bytes>) {
    let external = i32::from(DataLocation::External);
    let is_external = |tensor: &&mut TensorProto| tensor.data_location == Some(external);
    for tensor in graph.initializer.iter_mut().filter(is_external) {
        if let Some(piece) = pieces.get(tensor.name()) {
            tensor.raw_data = Some(piece.clone());
            tensor.external_data.clear();
            tensor.data_location = None;
        }
    }
}

fn outside(message: String) -> Refusal {
    Diagnostic::error(codes::ONNX_EXTERNAL_DATA, message).into()
}

#[cfg(test)]
mod tests {
    use veracity_tensor::{DType, Tensor};

    use super::*;
    use crate::build::entry;
    use crate::{GraphBuilder, Node};

    /// `y = x + w` with `w` in a file.
    fn write(folder: &Path, location: &str, bytes: usize) -> std::path::PathBuf {
        let model = GraphBuilder::new("g", 20)
            .input("x", DType::F32, [2_usize])
            .initializer("w", &Tensor::from_slice([2], &[0.0_f32, 0.0]).unwrap())
            .node(Node::new("Add", ["x", "w"], ["y"]))
            .output("y", DType::F32, [2_usize])
            .finish()
            .unwrap();
        let model = model.changed(|graph| {
            let tensor = &mut graph.initializer[0];
            tensor.raw_data = None;
            tensor.data_location = Some(DataLocation::External.into());
            tensor.external_data = vec![entry("location", location), entry("offset", "4")];
        });
        std::fs::write(folder.join("w.bin"), vec![1_u8; bytes]).unwrap();
        let path = folder.join("model.onnx");
        model.write(&path).unwrap();
        path
    }

    #[test]
    fn weights_beside_the_model_are_read_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::read_whole(write(folder.path(), "w.bin", 12)).unwrap();
        assert!(!model.has_external_data());
        assert_eq!(model.constant("w").unwrap().bytes(), [1; 8]);
    }

    #[test]
    fn weights_that_are_not_there_are_refused() {
        for (location, bytes, code) in [
            ("gone.bin", 12, codes::FILE_NOT_FOUND),
            ("w.bin", 11, codes::ONNX_EXTERNAL_DATA),
            ("../w.bin", 12, codes::PATH_LEAVES_BUNDLE),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let refused = Model::read_whole(write(folder.path(), location, bytes)).unwrap_err();
            assert_eq!(refused.first_error().code, code, "{location}");
        }
    }

    #[test]
    fn weights_may_be_larger_than_a_model() {
        let folder = tempfile::tempdir().unwrap();
        let elements = (3_u64 << 30) / 4;
        let size = usize::try_from(elements).unwrap();
        let model = GraphBuilder::new("g", 20)
            .input("x", DType::F32, [size])
            .initializer("w", &Tensor::from_slice([2], &[0.0_f32, 0.0]).unwrap())
            .node(Node::new("Add", ["x", "w"], ["y"]))
            .output("y", DType::F32, [size])
            .finish()
            .unwrap();
        let model = model.changed(|graph| {
            let tensor = &mut graph.initializer[0];
            tensor.dims = vec![elements.cast_signed()];
            tensor.raw_data = None;
            tensor.data_location = Some(DataLocation::External.into());
            tensor.external_data = vec![entry("location", "w.bin")];
        });
        let path = folder.path().join("model.onnx");
        model.write(&path).unwrap();
        // The file has holes: it takes no room.
        std::fs::File::create(folder.path().join("w.bin")).unwrap().set_len(3 << 30).unwrap();
        let whole = Model::read_whole(&path).unwrap();
        assert_eq!(whole.graph().initializer[0].raw_data().len() as u64, 3 << 30);
        let refused = whole.write(folder.path().join("whole.onnx")).unwrap_err();
        assert_eq!(refused.first_error().code, codes::FILE_TOO_LARGE);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_the_folder_is_refused() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = write(folder.path(), "link.bin", 12);
        std::fs::write(elsewhere.path().join("w.bin"), [1_u8; 12]).unwrap();
        let link = folder.path().join("link.bin");
        std::os::unix::fs::symlink(elsewhere.path().join("w.bin"), link).unwrap();
        let refused = Model::read_whole(path).unwrap_err();
        assert_eq!(refused.first_error().code, codes::PATH_LEAVES_BUNDLE);
    }
}
