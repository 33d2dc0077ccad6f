//! `divide-by-power-of-two`

use veracity_onnx::{GraphBuilder, Node};
use veracity_tensor::{DType, Tensor};
use veracity_transform::passes::DivideByPowerOfTwo;

use super::made::{Made, floats};
use crate::support::{holds, left_alone, lines};

fn divided(dtype: DType, dims: &[usize], divisors: &[f64]) -> Made {
    let mut made = Made::new(&[19, 2], vec![Node::new("Div", ["x", "d"], ["y"])], 2);
    made.dtype = dtype;
    made.with("d", floats(dtype, dims, divisors))
}

#[test]
fn powers_of_two_are_multiplied_to_the_same_bits() {
    let exponent = |exponent: i32| 2.0_f64.powi(exponent);
    for (dtype, least, most) in
        [(DType::F16, -14, 14), (DType::F32, -126, 126), (DType::F64, -1022, 1022)]
    {
        for divisor in [exponent(least), exponent(most), 1.0, -8.0, 0.25] {
            let graph = holds(&DivideByPowerOfTwo, &divided(dtype, &[], &[divisor]).model());
            assert_eq!(lines(&graph), ["y = Mul(x, d_reciprocal)"]);
            assert_eq!(graph.weight("d_reciprocal").unwrap().number(), Some(1.0 / divisor));
        }
    }
    let graph = holds(&DivideByPowerOfTwo, &divided(DType::F32, &[1, 2], &[2.0, -0.5]).model());
    let weight = graph.weight("d_reciprocal").unwrap();
    assert_eq!((weight.dims(), weight.floats().unwrap()), (vec![1, 2], vec![0.5, -2.0]));
}

#[test]
fn other_divisors_are_left_alone() {
    let tiny = 2.0_f64.powi(-149);
    for (dtype, divisors, reason) in [
        (DType::F32, [2.0, 3.0], "3 is not a power of two"),
        (DType::F32, [2.0, 0.0], "divides by 0"),
        (DType::F32, [2.0, -0.0], "divides by 0"),
        (DType::F32, [2.0, tiny], "not a normal number"),
        (DType::F32, [2.0, 2.0_f64.powi(127)], "not a normal number"),
        (DType::F16, [2.0, 2.0_f64.powi(15)], "not a normal number"),
        (DType::F32, [2.0, f64::INFINITY], "not a normal number"),
        (DType::F32, [2.0, f64::NAN], "not a power of two"),
    ] {
        left_alone(DivideByPowerOfTwo, &divided(dtype, &[2], &divisors).model(), reason);
    }
}

#[test]
fn what_is_no_division_by_a_float_constant_is_no_match() {
    let mut turned = divided(DType::F32, &[], &[2.0]);
    turned.nodes[0] = Node::new("Div", ["d", "x"], ["y"]);
    left_alone(DivideByPowerOfTwo, &turned.model(), "");
    let integers = GraphBuilder::new("graph", 18)
        .input("x", DType::I32, [3_usize])
        .initializer("d", &Tensor::from_slice([], &[2_i32]).unwrap())
        .node(Node::new("Div", ["x", "d"], ["y"]))
        .output("y", DType::I32, [3_usize])
        .finish()
        .unwrap();
    left_alone(DivideByPowerOfTwo, &integers, "");
    left_alone(DivideByPowerOfTwo, &divided(DType::F32, &[], &[2.0]).opset(6).model(), "opset 7");
}
