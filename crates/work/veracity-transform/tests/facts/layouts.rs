//! Operators that move elements and make tensors: their types, sizes and elements.

use veracity_tensor::{DType, Tensor};

use crate::Given::{Absent, Floats, Ints, Scalar};
use crate::{check, f32, fed, op, op_with};

#[test]
fn other_shapes() {
    let given = || f32(&[2, 3, 4]);
    for shape in [&[6, 4][..], &[0, -1], &[-1], &[2, 0, 2, -1], &[24, 1], &[0, 0, 0], &[-1, 3, 4]] {
        check(18, &op("Reshape"), &[given(), Ints(shape.to_vec())]);
    }
    check(18, &op("Reshape").int("allowzero", 1), &[f32(&[0, 3]), Ints(vec![3, 0])]);
    check(18, &op("Reshape"), &[f32(&[0, 3]), Ints(vec![0, 3, 1])]);
    check(18, &op("Reshape"), &[f32(&[1]), Ints(vec![])]);
    for axis in [0, 1, 2, 3, -1, -3] {
        check(18, &op("Flatten").int("axis", axis), &[given()]);
    }
    check(18, &op("Flatten"), &[f32(&[2, 0, 4])]);
    check(18, &op("Transpose"), &[given()]);
    check(18, &op("Transpose").ints("perm", [2, 0, 1]), &[given()]);
    check(18, &op("Expand"), &[f32(&[3, 1]), Ints(vec![2, 1, 6])]);
    check(18, &op("Expand"), &[f32(&[3, 4]), Ints(vec![1])]);
    check(18, &op("Expand"), &[f32(&[1]), Ints(vec![0, 2])]);
    check(18, &op("Squeeze"), &[f32(&[1, 2, 1]), Ints(vec![-1])]);
    check(18, &op("Squeeze"), &[f32(&[1, 2, 1])]);
    check(11, &op("Squeeze").ints("axes", [0, 2]), &[f32(&[1, 2, 1])]);
    check(18, &op("Unsqueeze"), &[f32(&[2, 3]), Ints(vec![-1, 0])]);
    check(18, &op("Unsqueeze"), &[f32(&[2, 3]), Ints(vec![3, 1])]);
    check(11, &op("Unsqueeze").ints("axes", [1]), &[f32(&[2, 3])]);
    check(18, &op("DepthToSpace").int("blocksize", 2), &[f32(&[1, 8, 2, 3])]);
    check(18, &op("SpaceToDepth").int("blocksize", 2), &[f32(&[1, 2, 4, 6])]);
}

#[test]
fn elements_taken_out_and_put_together() {
    let given = || f32(&[5, 4]);
    let ranges: [(i64, i64, i64); 14] = [
        (0, 3, 1),
        (1, i64::MAX, 1),
        (-2, i64::MAX, 1),
        (0, -1, 2),
        (4, 1, -1),
        (-1, i64::MIN, -2),
        (3, 3, 1),
        (4, 2, 1),
        (9, 12, 1),
        (-9, 2, 1),
        (9, -9, -1),
        (0, i64::MAX, 1),
        (1, 4, 2),
        (2, 0, -1),
    ];
    for (start, end, step) in ranges {
        let list = |one: i64| Ints(vec![one]);
        let inputs = [given(), list(start), list(end), list(0), list(step)];
        check(18, &op("Slice"), &inputs);
        check(18, &op("Slice"), &[f32(&[0, 4]), list(start), list(end), list(-2), list(step)]);
        check(
            18,
            &op("Slice"),
            &[Ints(vec![7, 8, 9]), list(start), list(end), list(0), list(step)],
        );
    }
    check(18, &op("Slice"), &[given(), Ints(vec![1, 0]), Ints(vec![3, 2])]);
    check(9, &op("Slice").ints("starts", [1]).ints("ends", [9]).ints("axes", [1]), &[given()]);
    for axis in [0, 1, -1] {
        check(18, &op("Gather").int("axis", axis), &[given(), Ints(vec![1, -1, 0])]);
        check(18, &op("Gather").int("axis", axis), &[given(), Scalar(1)]);
        check(18, &op("Concat").int("axis", axis), &[f32(&[3, 3]), f32(&[3, 3])]);
    }
    check(18, &op("Gather"), &[Ints(vec![7, 8, 9]), Ints(vec![-1, 0])]);
    check(18, &op("Gather"), &[Ints(vec![7, 8, 9]), Scalar(-2)]);
    check(18, &op("Concat").int("axis", 0), &[Ints(vec![1, 2]), Ints(vec![3])]);
    check(18, &op("Concat").int("axis", 1), &[f32(&[2, 0]), f32(&[2, 3])]);
    check(18, &op("GatherElements"), &[given(), fed(DType::I64, &[2, 0])]);
    check(18, &op("GatherND"), &[given(), fed(DType::I64, &[0, 2])]);
    check(18, &op("GatherND"), &[given(), fed(DType::I64, &[3, 0, 1])]);
    check(18, &op("ScatterElements"), &[given(), fed(DType::I64, &[0, 4]), f32(&[0, 4])]);
    check(18, &op("ScatterND"), &[given(), fed(DType::I64, &[0, 1]), f32(&[0, 4])]);
    check(18, &op("Tile"), &[given(), Ints(vec![2, 3])]);
    check(18, &op("Tile"), &[given(), Ints(vec![0, 1])]);
    check(18, &op("Pad"), &[given(), Ints(vec![1, 0, 2, -1])]);
    check(18, &op("Pad"), &[given(), Ints(vec![1, 2]), Absent, Ints(vec![-1])]);
    check(10, &op("Pad").ints("pads", [0, 1, 0, 1]), &[given()]);
    let parts = || op_with("Split", &["a", "b"]);
    check(18, &parts().int("num_outputs", 2), &[given()]);
    check(18, &parts().int("axis", 1), &[given(), Ints(vec![1, 3])]);
    check(13, &parts().int("axis", 1), &[given()]);
    check(11, &parts().ints("split", [4, 1]), &[given()]);
}

#[test]
fn tensors_made_of_sizes() {
    check(18, &op("Shape"), &[f32(&[2, 3, 4])]);
    check(18, &op("Shape").int("start", 1), &[f32(&[2, 3, 4])]);
    check(18, &op("Shape").int("start", -1).int("end", 9), &[f32(&[2, 3, 4])]);
    check(18, &op("Shape").int("start", 2).int("end", 1), &[f32(&[2, 3, 4])]);
    check(18, &op("Size"), &[f32(&[2, 3])]);
    check(18, &op("Size"), &[f32(&[1, 3])]);
    check(18, &op("ConstantOfShape"), &[Ints(vec![2, 3])]);
    let value = Tensor::from_slice([1], &[7_i64]).unwrap();
    check(18, &op("ConstantOfShape").tensor("value", &value), &[Ints(vec![4])]);
    check(18, &op("ConstantOfShape").tensor("value", &value), &[Ints(vec![])]);
    for (start, limit, delta) in [(0, 5, 1), (5, 0, -2), (3, 3, 1), (0, 5, -1), (-7, 8, 4)] {
        check(18, &op("Range"), &[Scalar(start), Scalar(limit), Scalar(delta)]);
    }
    check(18, &op("EyeLike"), &[f32(&[2, 3])]);
    check(18, &op("EyeLike").dtype("dtype", DType::I64), &[f32(&[2, 3])]);
    check(18, &op("RandomNormal").ints("shape", [2, 3]), &[]);
    check(18, &op("RandomUniformLike").dtype("dtype", DType::F64), &[f32(&[2])]);
    let values = Floats(vec![2], vec![0.0, 1.0]);
    check(18, &op("OneHot"), &[fed(DType::I64, &[2, 3]), Ints(vec![5]), values.clone()]);
    check(18, &op("OneHot").int("axis", 1), &[fed(DType::I64, &[2, 3]), Ints(vec![5]), values]);
    check(18, &op("Constant").ints("value_ints", [1, 2, 3]), &[]);
    check(18, &op("Constant").float("value_float", 1.0), &[]);
}

#[test]
fn arithmetic_of_sizes() {
    for name in ["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min", "Equal"] {
        for (one, two) in
            [(vec![7, -7, 9], vec![2, 2, -3]), (vec![-7], vec![3, -3, 1]), (vec![], vec![3])]
        {
            check(18, &op(name), &[Ints(one.clone()), Ints(two.clone())]);
            check(18, &op(name), &[Ints(one), Scalar(5)]);
        }
    }
    check(18, &op("ReduceProd"), &[Ints(vec![2, -3, 4])]);
    check(18, &op("ReduceProd").int("keepdims", 0), &[Ints(vec![])]);
    check(18, &op("Cast").dtype("to", DType::I32), &[Ints(vec![2, -3])]);
    check(18, &op("Reshape"), &[Ints(vec![1, 2, 3, 4]), Ints(vec![2, 2])]);
    check(18, &op("Transpose"), &[Ints(vec![1, 2, 3, 4])]);
    check(18, &op("Expand"), &[Ints(vec![7]), Ints(vec![3])]);
    check(18, &op("Expand"), &[Ints(vec![7, 8]), Ints(vec![1])]);
}
