//! Writes a model with its large weights in a file beside it, for models of any size.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;
use prost::Message as _;
use veracity_diag::{Diagnostic, Result, codes};

use crate::build::entry;
use crate::external::check_location;
use crate::generated::onnx::tensor_proto::DataLocation;
use crate::generated::onnx::{GraphProto, TensorProto};
use crate::limits::MAX_FILE_BYTES;
use crate::write::{Replacement, beside, unwritable};
use crate::{Model, map};

/// Weights start at multiples of this, so that readers can map each by itself.
const ALIGNMENT: u64 = 4096;

/// Weights of at least so many bytes lie beside a model that is too large for one file.
const EXTERNAL_THRESHOLD: usize = 1024;

impl Model {
    /// Writes the model as one file where it fits into one, else with its large weights beside it.
    pub fn write_fitting(&self, path: impl AsRef<Path>) -> Result<()> {
        if self.proto().encoded_len() as u64 <= MAX_FILE_BYTES {
            return self.write(path);
        }
        self.write_external(path, EXTERNAL_THRESHOLD)
    }

    /// Writes the model, and those weights of its main graph that take at least `threshold` bytes
    /// into `<file name>.data` beside it. Both files take their places one after the other, and in
    /// between there is no model: an old model never stands beside new weights. Weights that are
    /// lists of numbers instead of bytes stay in the model. Refused when weights lie in other files
    /// already, and when what is left is more than a protobuf file may have.
    pub fn write_external(&self, path: impl AsRef<Path>, threshold: usize) -> Result<()> {
        let path = path.as_ref();
        let place = map::place(path);
        if self.has_external_data() {
            let message = "weights lie in other files, which would not be found again";
            let found = Diagnostic::error(codes::ONNX_EXTERNAL_DATA, message).at(place);
            return Err(found.hint("read the model together with its weights").into());
        }
        let location = data_name(path).map_err(|found| found.within(&place))?;
        let mut pieces = Vec::new();
        let outside = self.changed(|graph| pieces = move_out(graph, &location, threshold));
        if pieces.is_empty() {
            return self.write(path);
        }
        outside.check_size().map_err(|refusal| refusal.within(&place))?;
        let data_path = path.with_file_name(&location);
        let data = Replacement::fill(&data_path, |writer| write_pieces(writer, &pieces))
            .map_err(|error| unwritable(&data_path, &error))?;
        let model = Replacement::fill(path, |writer| outside.encode(writer))
            .map_err(|error| unwritable(path, &error))?;
        exchange(path, data, model).map_err(|error| unwritable(path, &error))
    }
}

fn data_name(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if name.is_empty() {
        let message = "the name of the file is not text that a model can hold";
        return Err(Diagnostic::error(codes::FILE_UNWRITABLE, message).into());
    }
    let location = format!("{name}.data");
    check_location(&location)?;
    Ok(location)
}

/// Takes the large weights out, and gives each with the offset that its tensor names now.
fn move_out(graph: &mut GraphProto, location: &str, threshold: usize) -> Vec<(u64, Bytes)> {
    let mut pieces = Vec::new();
    let mut end = 0_u64;
    for tensor in &mut graph.initializer {
        let Some(raw) = tensor.raw_data.take_if(|raw| raw.len() >= threshold.max(1)) else {
            continue;
        };
        let offset = end.next_multiple_of(ALIGNMENT);
        end = offset + raw.len() as u64;
        point_to(tensor, location, offset, raw.len());
        pieces.push((offset, raw));
    }
    pieces
}

fn point_to(tensor: &mut TensorProto, location: &str, offset: u64, length: usize) {
    tensor.data_location = Some(DataLocation::External.into());
    tensor.external_data = vec![
        entry("location", location),
        entry("offset", offset.to_string()),
        entry("length", length.to_string()),
    ];
}

fn write_pieces(writer: &mut impl Write, pieces: &[(u64, Bytes)]) -> io::Result<()> {
    let mut end = 0;
    for (offset, piece) in pieces {
        let gap = offset - end;
        io::copy(&mut io::Read::take(io::repeat(0), gap), writer)?;
        writer.write_all(piece)?;
        end = offset + piece.len() as u64;
    }
    Ok(())
}

/// Puts both files into their places. The old model goes first and comes back when something fails
/// before the new weights are there.
fn exchange(path: &Path, data: Replacement, model: Replacement) -> io::Result<()> {
    let aside = beside(path, "old")?;
    let had_one = match fs::rename(path, &aside) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    if let Err(error) = data.keep() {
        if had_one {
            fs::rename(&aside, path)?;
        }
        return Err(error);
    }
    model.keep()?;
    if had_one { fs::remove_file(&aside) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use veracity_tensor::{DType, Shape, Tensor};

    use super::*;
    use crate::{GraphBuilder, Node};

    fn model() -> Model {
        let large: Vec<f32> = (0_u16..2000).map(f32::from).collect();
        let large = Tensor::from_slice(Shape::from([2000]), &large).unwrap();
        GraphBuilder::new("g", 20)
            .input("x", DType::F32, [2000_usize])
            .initializer("a", &large)
            .initializer("one", &Tensor::from_slice([1], &[1.0_f32]).unwrap())
            .initializer("b", &large)
            .node(Node::new("Sum", ["x", "a", "one", "b"], ["y"]))
            .output("y", DType::F32, [2000_usize])
            .finish()
            .unwrap()
    }

    #[test]
    fn what_is_written_in_two_files_is_read_as_one_model() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        for _ in 0..2 {
            model().write_external(&path, 1024).unwrap();
            let files = Model::read(&path).unwrap().external_data().unwrap();
            let places: Vec<_> = files.iter().map(|file| (file.offset, file.length)).collect();
            assert_eq!(places, [(0, Some(8000)), (8192, Some(8000))]);
            assert!(files.iter().all(|file| file.location == "m.onnx.data"));
            let again = Model::read_whole(&path).unwrap();
            assert!(again.to_bytes().unwrap() == model().to_bytes().unwrap());
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing else is left");
        }
    }

    #[test]
    fn a_model_without_large_weights_stays_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        model().write_external(&path, 9000).unwrap();
        assert!(fs::read(&path).unwrap() == model().to_bytes().unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_model_whose_weights_lie_elsewhere_is_not_written_without_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        model().write_external(&path, 1024).unwrap();
        let torn = Model::read(&path).unwrap();
        let refused = torn.write_external(folder.path().join("n.onnx"), 1024).unwrap_err();
        assert_eq!(refused.first_error().code, codes::ONNX_EXTERNAL_DATA);
    }

    #[test]
    fn where_the_weights_cannot_be_written_the_old_model_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        fs::write(&path, "old").unwrap();
        fs::create_dir(folder.path().join("m.onnx.data")).unwrap();
        let refused = model().write_external(&path, 1024).unwrap_err();
        assert_eq!(refused.first_error().code, codes::FILE_UNWRITABLE);
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_weight_that_says_where_it_lies_is_read_back_as_it_was() {
        let mut proto = model().into_proto();
        proto.graph.as_mut().unwrap().initializer[0].data_location = Some(0);
        let bytes = Model::checked(proto).unwrap().to_bytes().unwrap();
        let read = Model::from_bytes(bytes.into()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.onnx");
        read.write_external(&path, 1024).unwrap();
        let again = Model::read_whole(&path).unwrap();
        assert!(again.to_bytes().unwrap() == read.to_bytes().unwrap());
    }
}
