//! Writes `src/generated/onnx.rs` anew from `proto/onnx.proto`.

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let proto = root.join("proto");
    let messages = protox::compile([proto.join("onnx.proto")], [&proto])?;
    prost_build::Config::new()
        // Weights stay where they are: a slice of the file's mapping instead of a copy.
        .bytes([".onnx.TensorProto.raw_data"])
        .disable_comments(["."])
        .out_dir(root.join("src/generated"))
        .compile_fds(messages)?;
    Ok(())
}
