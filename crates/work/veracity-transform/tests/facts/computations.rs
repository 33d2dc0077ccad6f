//! Operators that compute: their types and sizes.

use veracity_tensor::DType;

use crate::Given::{Floats, Ints, Scalar};
use crate::{check, f32, fed, op, op_with};

#[test]
fn elementwise_operators() {
    let unary = [
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Celu",
        "Clip",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "HardSigmoid",
        "HardSwish",
        "Identity",
        "LeakyRelu",
        "Log",
        "LogSoftmax",
        "Mish",
        "Neg",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Shrink",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softmax",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
        "Hardmax",
        "IsInf",
        "IsNaN",
        "Gelu",
        "LpNormalization",
        "MeanVarianceNormalization",
        "Trilu",
    ];
    for name in unary {
        let dims: &[usize] =
            if name == "MeanVarianceNormalization" { &[2, 3, 4, 5] } else { &[2, 3] };
        check(20, &op(name), &[f32(dims)]);
    }
    check(18, &op("Not"), &[fed(DType::Bool, &[3])]);
    check(18, &op("BitwiseNot"), &[fed(DType::I32, &[3])]);
    check(18, &op("CumSum"), &[f32(&[2, 3]), Scalar(1)]);
    check(18, &op("PRelu"), &[f32(&[2, 3]), f32(&[3])]);
    check(18, &op("Bernoulli"), &[Floats(vec![2], vec![0.5, 0.25])]);
    check(18, &op_with("Dropout", &["y", "mask"]), &[f32(&[2, 3])]);
    for to in [DType::F32, DType::F64, DType::F16, DType::I64, DType::I32, DType::Bool, DType::U8] {
        check(18, &op("Cast").dtype("to", to), &[f32(&[2, 3])]);
        check(18, &op("CastLike"), &[f32(&[2, 3]), fed(DType::I64, &[5])]);
    }
}

#[test]
fn operands_are_stretched() {
    let pairs: [(&[usize], &[usize]); 7] = [
        (&[2, 3], &[2, 3]),
        (&[2, 3], &[3]),
        (&[2, 1], &[1, 5]),
        (&[], &[4]),
        (&[0, 3], &[1, 3]),
        (&[1], &[0]),
        (&[4, 1, 2], &[3, 1]),
    ];
    for (one, two) in pairs {
        for name in ["Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mean", "Sum"] {
            check(18, &op(name), &[f32(one), f32(two)]);
        }
        for name in ["Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual"] {
            check(18, &op(name), &[f32(one), f32(two)]);
        }
        for name in ["And", "Or", "Xor"] {
            check(18, &op(name), &[fed(DType::Bool, one), fed(DType::Bool, two)]);
        }
        for name in ["BitwiseAnd", "BitwiseOr", "BitwiseXor"] {
            check(18, &op(name), &[fed(DType::I32, one), fed(DType::I32, two)]);
        }
        check(18, &op("Where"), &[fed(DType::Bool, &[1]), f32(one), f32(two)]);
        check(18, &op("Mod").int("fmod", 1), &[f32(one), f32(two)]);
    }
    check(18, &op("Max"), &[f32(&[2, 1]), f32(&[3]), f32(&[1])]);
    check(18, &op("Pow"), &[f32(&[2]), fed(DType::I64, &[2])]);
}

#[test]
fn products_of_matrices() {
    let pairs: [(&[usize], &[usize]); 7] = [
        (&[2, 3], &[3, 4]),
        (&[5, 2, 3], &[3, 4]),
        (&[5, 1, 2, 3], &[6, 3, 4]),
        (&[3], &[3]),
        (&[3], &[3, 4]),
        (&[2, 3], &[3]),
        (&[5, 2, 3], &[3]),
    ];
    for (one, two) in pairs {
        check(18, &op("MatMul"), &[f32(one), f32(two)]);
    }
    check(18, &op("MatMulInteger"), &[fed(DType::U8, &[2, 3]), fed(DType::U8, &[3, 4])]);
    check(18, &op("Gemm"), &[f32(&[2, 3]), f32(&[3, 4])]);
    check(18, &op("Gemm").int("transA", 1), &[f32(&[3, 2]), f32(&[3, 4]), f32(&[4])]);
    check(18, &op("Gemm").int("transB", 1), &[f32(&[2, 3]), f32(&[4, 3]), f32(&[2, 1])]);
    for equation in ["bij,bjk->bik", "bij, bjk -> ikb", "bij,bjk", "bij,bjk->"] {
        let node = op("Einsum").string("equation", equation);
        check(18, &node, &[f32(&[2, 3, 4]), f32(&[2, 4, 5])]);
    }
    for (direction, count) in [("forward", 1), ("bidirectional", 2)] {
        for (name, gates) in [("LSTM", 4), ("GRU", 3), ("RNN", 1)] {
            let outputs: &[&str] = if name == "LSTM" { &["y", "h", "c"] } else { &["y", "h"] };
            let node = op_with(name, outputs).int("hidden_size", 5).string("direction", direction);
            let weights = [f32(&[count, gates * 5, 3]), f32(&[count, gates * 5, 5])];
            check(18, &node, &[f32(&[7, 2, 3]), weights[0].clone(), weights[1].clone()]);
        }
    }
}

#[test]
fn windows() {
    for opset in [11, 18] {
        let image = || f32(&[1, 4, 9, 10]);
        let conv = || op("Conv");
        check(opset, &conv(), &[image(), f32(&[6, 4, 3, 2])]);
        check(opset, &conv().ints("strides", [2, 3]), &[image(), f32(&[6, 4, 3, 2])]);
        check(opset, &conv().ints("pads", [1, 0, 2, 3]), &[image(), f32(&[6, 4, 3, 2])]);
        check(opset, &conv().ints("pads", [1, 1, 1, 1]), &[image(), f32(&[6, 4, 3, 3])]);
        check(opset, &conv().ints("dilations", [2, 2]), &[image(), f32(&[6, 4, 3, 2])]);
        check(opset, &conv().int("group", 2), &[image(), f32(&[6, 2, 3, 2]), f32(&[6])]);
        for auto in ["SAME_UPPER", "SAME_LOWER", "VALID"] {
            let node = conv().string("auto_pad", auto).ints("strides", [2, 1]);
            check(opset, &node, &[image(), f32(&[6, 4, 3, 2])]);
        }
        check(opset, &conv(), &[f32(&[1, 4, 9]), f32(&[6, 4, 3])]);
        for name in ["AveragePool", "MaxPool", "LpPool"] {
            let pool = || op(name).ints("kernel_shape", [3, 2]);
            check(opset, &pool(), &[image()]);
            check(opset, &pool().ints("strides", [2, 3]).ints("pads", [1, 0, 1, 1]), &[image()]);
            check(
                opset,
                &pool().string("auto_pad", "SAME_UPPER").ints("strides", [2, 2]),
                &[image()],
            );
        }
        let pool = op_with("MaxPool", &["y", "indices"]).ints("kernel_shape", [3, 3]);
        check(opset, &pool.ints("strides", [3, 3]).int("ceil_mode", 0), &[image()]);
        for name in ["GlobalAveragePool", "GlobalMaxPool"] {
            check(opset, &op(name), &[image()]);
        }
        let up = || op("ConvTranspose");
        check(opset, &up(), &[image(), f32(&[4, 6, 3, 2])]);
        let node =
            up().ints("strides", [2, 3]).ints("pads", [1, 0, 1, 1]).ints("output_padding", [1, 0]);
        check(opset, &node, &[image(), f32(&[4, 6, 3, 2])]);
        check(
            opset,
            &up().int("group", 2).ints("dilations", [2, 1]),
            &[image(), f32(&[4, 3, 3, 2])],
        );
        let scales = Floats(vec![4], vec![1.0, 1.0, 2.0, 0.5]);
        check(opset, &op("Resize"), &[image(), Floats(vec![0], vec![]), scales]);
        let empty = || Floats(vec![0], vec![]);
        check(opset, &op("Resize"), &[image(), empty(), empty(), Ints(vec![1, 4, 5, 6])]);
    }
    check(18, &op("GridSample"), &[f32(&[2, 3, 4, 5]), f32(&[2, 6, 7, 2])]);
}

#[test]
fn scaled_values_keep_their_sizes() {
    let image = || f32(&[2, 4, 3, 3]);
    let four = vec![f32(&[4]); 4];
    check(18, &op("BatchNormalization"), &[&[image()], &four[..]].concat());
    check(18, &op("InstanceNormalization"), &[&[image()], &four[..2]].concat());
    let groups = op("GroupNormalization").int("num_groups", 2);
    check(18, &groups, &[image(), f32(&[2]), f32(&[2])]);
    check(18, &op("LayerNormalization"), &[f32(&[2, 3, 4]), f32(&[4]), f32(&[4])]);
    check(18, &op("LayerNormalization").int("axis", 1), &[f32(&[2, 3, 4]), f32(&[3, 4])]);
    check(18, &op("LRN").int("size", 3), &[image()]);
}

#[test]
fn reductions() {
    let names = [
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    ];
    for name in names {
        for keep in [0, 1] {
            let node = || op(name).int("keepdims", keep);
            let given = || f32(&[2, 3, 4]);
            check(18, &node(), &[given()]);
            check(18, &node().int("noop_with_empty_axes", 1), &[given()]);
            check(18, &node(), &[given(), Ints(vec![-1, 0])]);
            check(18, &node(), &[given(), Ints(vec![])]);
            let old = if name == "ReduceSum" { 11 } else { 17 };
            check(old, &node(), &[given()]);
            check(old, &node().ints("axes", [1, -1]), &[given()]);
        }
    }
    for name in ["ArgMax", "ArgMin"] {
        check(18, &op(name), &[f32(&[2, 3])]);
        check(18, &op(name).int("axis", -1).int("keepdims", 0), &[f32(&[2, 3])]);
    }
    check(18, &op_with("TopK", &["values", "indices"]), &[f32(&[2, 5]), Ints(vec![3])]);
    let along = op_with("TopK", &["values", "indices"]).int("axis", 0);
    check(18, &along, &[f32(&[5, 2]), Ints(vec![3])]);
}
