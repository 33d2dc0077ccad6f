//! Protobuf messages of ONNX, written by the crate in `generate/` from `proto/onnx.proto`.

#[expect(
    clippy::enum_variant_names,
    clippy::pedantic,
    unreachable_pub,
    reason = "generated: the whole format is here, and the proto file is its documentation"
)]
#[rustfmt::skip]
pub(crate) mod onnx;
