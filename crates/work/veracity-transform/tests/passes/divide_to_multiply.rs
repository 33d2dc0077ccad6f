//! `divide-to-multiply`

use veracity_onnx::Node;
use veracity_tensor::DType;
use veracity_transform::passes::{self, DivideToMultiply};
use veracity_transform::{Class, Pass as _};

use super::made::{Made, floats};
use crate::support::{holds, left_alone, lines};

fn divided(dtype: DType, divisor: f64) -> Made {
    let mut made = Made::new(&[19, 2], vec![Node::new("Div", ["x", "d"], ["y"])], 2);
    made.dtype = dtype;
    made.with("d", floats(dtype, &[1], &[divisor]))
}

#[test]
fn a_constant_divisor_becomes_its_rounded_reciprocal() {
    for dtype in [DType::F16, DType::F32, DType::F64] {
        let graph = holds(&DivideToMultiply, &divided(dtype, 3.0).model());
        assert_eq!(lines(&graph), ["y = Mul(x, d_reciprocal)"]);
        let expected = floats(dtype, &[1], &[1.0 / 3.0]);
        assert_eq!(graph.weight("d_reciprocal").unwrap().tensor().unwrap(), expected);
    }
}

#[test]
fn divisors_without_a_normal_reciprocal_are_left_alone() {
    left_alone(DivideToMultiply, &divided(DType::F32, 0.0).model(), "divides by 0");
    for divisor in [3e38, 1e-39, f64::INFINITY, f64::NAN] {
        left_alone(DivideToMultiply, &divided(DType::F32, divisor).model(), "not a normal number");
    }
    left_alone(DivideToMultiply, &divided(DType::F16, 60000.0).model(), "not a normal number");
}

#[test]
fn it_must_be_asked_for() {
    assert_eq!(DivideToMultiply.class(), Class::Approximate);
    let name = DivideToMultiply.name();
    assert!(passes::standard().iter().all(|pass| pass.name() != name));
    assert!(passes::all().iter().any(|pass| pass.name() == name));
}
