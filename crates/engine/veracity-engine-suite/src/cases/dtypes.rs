//! Every dtype goes in and comes out, and arithmetic happens in it.

use half::f16;
use veracity_engine::Engine;
use veracity_onnx::Node;
use veracity_tensor::{DType, Element, Tensor};

use crate::Case;
use crate::trial::Trial;
use crate::values::{bools, tensor};

pub(super) const CASES: &[Case] = &[
    Case { id: "identity_float16", run: |engine| identity(engine, DType::F16) },
    Case { id: "identity_bfloat16", run: |engine| identity(engine, DType::BF16) },
    Case { id: "identity_float32", run: |engine| identity(engine, DType::F32) },
    Case { id: "identity_float64", run: |engine| identity(engine, DType::F64) },
    Case { id: "identity_int8", run: |engine| identity(engine, DType::I8) },
    Case { id: "identity_int16", run: |engine| identity(engine, DType::I16) },
    Case { id: "identity_int32", run: |engine| identity(engine, DType::I32) },
    Case { id: "identity_int64", run: |engine| identity(engine, DType::I64) },
    Case { id: "identity_uint8", run: |engine| identity(engine, DType::U8) },
    Case { id: "identity_uint16", run: |engine| identity(engine, DType::U16) },
    Case { id: "identity_uint32", run: |engine| identity(engine, DType::U32) },
    Case { id: "identity_uint64", run: |engine| identity(engine, DType::U64) },
    Case { id: "identity_bool", run: |engine| identity(engine, DType::Bool) },
    Case { id: "add_float16", run: add_float16 },
    Case { id: "add_float32", run: add_float32 },
    Case { id: "add_float64_keeps_all_digits", run: add_float64 },
    Case { id: "add_int32", run: add_int32 },
    Case { id: "add_int64_beyond_float64", run: add_int64 },
    Case { id: "and_bool", run: and_bool },
    Case { id: "cast_float_to_int_truncates", run: cast_to_int },
    Case { id: "cast_int64_to_float32", run: cast_to_float },
    Case { id: "cast_float_to_bool", run: cast_to_bool },
];

/// Any bits must come out as they went in; for bool only 0 and 1 are bits.
fn identity(engine: &dyn Engine, dtype: DType) -> Result<(), String> {
    let bytes: Vec<u8> = (0_u8..)
        .map(|index| if dtype == DType::Bool { index % 2 } else { index.wrapping_mul(37) })
        .take(6 * dtype.size())
        .collect();
    let x = Tensor::from_bytes(dtype, [2, 3].into(), &bytes).expect("six elements");
    Trial::new(&[("x", &x)], &[("y", &x)]).node(Node::new("Identity", ["x"], ["y"])).check(engine)
}

fn add<E: Element>(engine: &dyn Engine, a: [E; 3], b: [E; 3], sum: [E; 3]) -> Result<(), String> {
    let [a, b, sum] = [a, b, sum].map(|elements| tensor([3], &elements));
    Trial::new(&[("a", &a), ("b", &b)], &[("sum", &sum)])
        .node(Node::new("Add", ["a", "b"], ["sum"]))
        .check(engine)
}

fn add_float16(engine: &dyn Engine) -> Result<(), String> {
    // 2048 + 1.5 is not a float16: the sum rounds to the even neighbour of 2049.5.
    let [a, b] = [[1.5, -0.25, 2048.0], [2.25, 0.5, 1.5]].map(|x| x.map(f16::from_f32));
    add(engine, a, b, [3.75, 0.25, 2050.0].map(f16::from_f32))
}

fn add_float32(engine: &dyn Engine) -> Result<(), String> {
    let (a, b) = ([1.1_f32, -3.0, 1e30], [2.2_f32, 0.125, 1e20]);
    add(engine, a, b, [a[0] + b[0], a[1] + b[1], a[2] + b[2]])
}

fn add_float64(engine: &dyn Engine) -> Result<(), String> {
    let (a, b) = ([1.0_f64, -3.0, 1e300], [1e-15_f64, 0.1, 1e290]);
    add(engine, a, b, [a[0] + b[0], a[1] + b[1], a[2] + b[2]])
}

fn add_int32(engine: &dyn Engine) -> Result<(), String> {
    // 2^24 + 1 is the first integer that is no float32.
    add(engine, [16_777_216, -5, i32::MAX - 1], [1, 3, 1], [16_777_217, -2, i32::MAX])
}

fn add_int64(engine: &dyn Engine) -> Result<(), String> {
    let (large, huge) = (1_i64 << 40, 1_i64 << 53);
    add(engine, [large, -large, huge], [3, -5, 1], [large + 3, -large - 5, huge + 1])
}

fn and_bool(engine: &dyn Engine) -> Result<(), String> {
    let a = bools([4], &[true, true, false, false]);
    let b = bools([4], &[true, false, true, false]);
    let both = bools([4], &[true, false, false, false]);
    Trial::new(&[("a", &a), ("b", &b)], &[("both", &both)])
        .node(Node::new("And", ["a", "b"], ["both"]))
        .check(engine)
}

fn cast(engine: &dyn Engine, from: &Tensor, to: &Tensor, onnx_type: i64) -> Result<(), String> {
    Trial::new(&[("x", from)], &[("y", to)])
        .node(Node::new("Cast", ["x"], ["y"]).int("to", onnx_type))
        .check(engine)
}

fn cast_to_int(engine: &dyn Engine) -> Result<(), String> {
    let x = tensor([4], &[1.9_f32, -1.9, 0.5, -0.5]);
    cast(engine, &x, &tensor([4], &[1_i32, -1, 0, 0]), 6)
}

fn cast_to_float(engine: &dyn Engine) -> Result<(), String> {
    let x = tensor([3], &[-7_i64, 1 << 40, 16_777_217]);
    cast(engine, &x, &tensor([3], &[-7.0_f32, 1_099_511_627_776.0, 16_777_216.0]), 1)
}

fn cast_to_bool(engine: &dyn Engine) -> Result<(), String> {
    let x = tensor([4], &[0.0_f32, -0.0, 0.25, -3.0]);
    cast(engine, &x, &bools([4], &[false, false, true, true]), 9)
}
