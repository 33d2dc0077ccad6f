//! External data is read from beside the model file, and from nowhere else.

use std::path::Path;
use std::sync::Arc;

use veracity_diag::{Result, codes};
use veracity_engine::{
    Device, Engine, ModelBytes, ModelFormat, ModelSource, Port, Ports, Session, SessionOptions,
};
use veracity_engine_ort::{OrtEngine, Search};
use veracity_tensor::{DType, SharedTensor};

#[path = "support/library.rs"]
mod library;

/// Elements of the data. With a single one, the library refuses a model in memory by accident.
const LENGTH: u8 = 60;

/// One field of a protobuf message: text, bytes or a message.
fn field(number: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    let length = u8::try_from(content.len()).expect("messages here are short");
    assert!(length < 128, "longer lengths take two bytes");
    [&[number << 3 | 2, length], content].concat()
}

/// One field of a protobuf message: a small number.
fn number(number: u8, value: u8) -> Vec<u8> {
    vec![number << 3, value]
}

/// `y = x + w`, where `w` is the floats at the start of a file. Written by hand: our own builder makes no
/// models with external data.
fn model_with_data_in(file: &str) -> Vec<u8> {
    let entry = |key: &str, value: &str| field(13, [field(1, key), field(2, value)].concat());
    let weight = [
        number(1, LENGTH),
        number(2, 1),
        field(8, "w"),
        entry("location", file),
        entry("length", &(4 * LENGTH).to_string()),
        number(14, 1),
    ];
    let shape = field(2, field(1, number(1, LENGTH)));
    let value_type = field(2, field(1, [number(1, 1), shape].concat()));
    let node = [field(1, "x"), field(1, "w"), field(2, "y"), field(4, "Add")].concat();
    let value = |name: &str| [field(1, name), value_type.clone()].concat();
    let graph = [
        field(1, node),
        field(2, "g"),
        field(5, weight.concat()),
        field(11, value("x")),
        field(12, value("y")),
    ];
    [number(1, 8), field(7, graph.concat()), field(8, number(2, 18))].concat()
}

fn load(bytes: ModelBytes) -> Result<Session> {
    let port = |name: &str| vec![Port::new(name, DType::F32, [LENGTH.into()])];
    let ports = Ports { inputs: port("x"), outputs: port("y") };
    let options = SessionOptions { device: Device::Cpu, ..SessionOptions::default() };
    library::engine().load(&ModelSource { format: ModelFormat::Onnx, bytes }, &ports, &options)
}

#[test]
fn a_model_file_finds_its_data_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.onnx");
    std::fs::write(&path, model_with_data_in("w.bin")).unwrap();
    let data = 2.5_f32.to_le_bytes().repeat(LENGTH.into());
    std::fs::write(folder.path().join("w.bin"), &data).unwrap();
    let mut session = load(ModelBytes::File(path)).unwrap();
    let memory = || SharedTensor::zeros(DType::F32, [LENGTH.into()].into());
    let (zero, output) = (memory(), memory());
    let binding = session.bind(&[zero], std::slice::from_ref(&output)).unwrap();
    session.run(binding).unwrap();
    assert_eq!(bytes_of(&output), data);
}

#[expect(unsafe_code, reason = "no session runs while the test reads")]
fn bytes_of(tensor: &SharedTensor) -> Vec<u8> {
    // SAFETY: the only session has finished its run.
    unsafe { tensor.bytes() }.to_vec()
}

#[test]
fn a_model_in_memory_reads_no_file_of_the_working_directory() {
    let file = "Cargo.toml";
    assert!(Path::new(file).is_file(), "tests run in the folder of their crate");
    let bytes = ModelBytes::Memory(Arc::from(model_with_data_in(file)));
    let refusal = load(bytes).expect_err("the data is not part of the model");
    assert_eq!(refusal.first_error().code, codes::ENGINE_LOAD_FAILED, "{refusal}");
}
