//! Operators of policies, each held against what it means.

use std::f32::consts::{FRAC_1_SQRT_2, LN_2};
use std::slice::from_ref;

use veracity_onnx::Node;
use veracity_tensor::Tensor;

use crate::harness::{agree, booleans, floats, integers, one_node, run, tensor};

/// Runs one node and panics when the output is another.
fn expect(
    op: &str,
    inputs: &[Tensor],
    constants: &[Tensor],
    expected: &[Tensor],
    attributes: impl FnOnce(Node) -> Node,
) {
    let graph = one_node(op, inputs, constants, expected, attributes);
    let actual = run(graph, inputs, expected).unwrap_or_else(|refusal| panic!("{op}: {refusal}"));
    for (expected, actual) in expected.iter().zip(&actual) {
        let shown = |tensor: &Tensor| format!("{:?}", tensor.as_slice::<f32>());
        assert!(agree(expected, actual), "{op}: {} for {}", shown(actual), shown(expected));
    }
}

fn plain(node: Node) -> Node {
    node
}

type Unary = fn(f32) -> f32;
type Binary = fn(f32, f32) -> f32;

const X: [f32; 6] = [-3.0, -0.75, -0.1, 0.0, 0.6, 2.5];

#[test]
fn functions_of_one_number() {
    let sigmoid = |x: f32| 1.0 / (1.0 + (-x).exp());
    let functions: [(&str, Unary); 21] = [
        ("Abs", f32::abs),
        ("Atan", f32::atan),
        ("Ceil", f32::ceil),
        ("Cos", f32::cos),
        ("Cosh", f32::cosh),
        ("Elu", |x| if x < 0.0 { x.exp_m1() } else { x }),
        ("Exp", f32::exp),
        ("Floor", f32::floor),
        ("HardSigmoid", |x| (0.2 * x + 0.5).clamp(0.0, 1.0)),
        ("HardSwish", |x| x * (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        ("LeakyRelu", |x| if x < 0.0 { 0.01 * x } else { x }),
        ("Mish", |x| x * x.exp().ln_1p().tanh()),
        ("Neg", |x| -x),
        ("Relu", |x| x.max(0.0)),
        ("Round", f32::round_ties_even),
        ("Sign", |x| if x == 0.0 { 0.0 } else { x.signum() }),
        ("Sin", f32::sin),
        ("Sinh", f32::sinh),
        ("Softsign", |x| x / (1.0 + x.abs())),
        ("Tan", f32::tan),
        ("Tanh", f32::tanh),
    ];
    for (op, function) in functions {
        expect(op, &[floats(&X)], &[], &[floats(&X.map(function))], plain);
    }
    let selu = |x: f32| 2.0 * if x < 0.0 { 1.5 * x.exp_m1() } else { x };
    expect("Selu", &[floats(&X)], &[], &[floats(&X.map(selu))], |node| {
        node.float("alpha", 1.5).float("gamma", 2.0)
    });
    expect("Sigmoid", &[floats(&X)], &[], &[floats(&X.map(sigmoid))], plain);
    let positive = [0.25f32, 1.0, 9.0];
    expect("Sqrt", &[floats(&positive)], &[], &[floats(&[0.5, 1.0, 3.0])], plain);
    expect("Log", &[floats(&[0.5, 1.0])], &[], &[floats(&[-LN_2, 0.0])], plain);
    expect("Reciprocal", &[floats(&positive)], &[], &[floats(&[4.0, 1.0, 1.0 / 9.0])], plain);
    expect("Erf", &[floats(&[0.0, 0.5])], &[], &[floats(&[0.0, 0.520_499_9])], plain);
    // 0.5 x (1 + erf(x / √2)) at x = √2 / 2.
    let gelu = [0.5 * FRAC_1_SQRT_2 * (1.0 + 0.520_499_9)];
    expect("Gelu", &[floats(&[FRAC_1_SQRT_2])], &[], &[floats(&gelu)], plain);
}

#[test]
fn functions_of_two_numbers() {
    let (a, b) = ([7.0f32, -7.0, 2.0], [2.0f32, 2.0, -0.5]);
    let functions: [(&str, Binary); 7] = [
        ("Add", |a, b| a + b),
        ("Sub", |a, b| a - b),
        ("Mul", |a, b| a * b),
        ("Div", |a, b| a / b),
        ("Max", f32::max),
        ("Min", f32::min),
        ("Mean", f32::midpoint),
    ];
    for (op, function) in functions {
        let expected: Vec<f32> = a.iter().zip(b).map(|(&a, b)| function(a, b)).collect();
        expect(op, &[floats(&a), floats(&b)], &[], &[floats(&expected)], plain);
    }
    expect("Pow", &[floats(&a)], &[floats(&[2.0])], &[floats(&[49.0, 49.0, 4.0])], plain);
    expect("Mod", &[floats(&a), floats(&[3.0])], &[], &[floats(&[1.0, -1.0, 2.0])], |node| {
        node.int("fmod", 1)
    });
    let bounds = [tensor([], &[-1.0f32]), tensor([], &[1.5f32])];
    expect("Clip", &[floats(&a)], &bounds, &[floats(&[1.5, -1.0, 1.5])], plain);
    let big = 1i64 << 40;
    let (a, b) = (integers(&[-7, 7, big]), integers(&[2, -2, 3]));
    for (op, expected) in [
        ("Add", [-5, 5, big + 3]),
        ("Div", [-3, -3, big / 3]),
        ("Mod", [1, -1, big % 3]),
        ("Max", [2, 7, big]),
    ] {
        expect(op, &[a.clone(), b.clone()], &[], &[integers(&expected)], plain);
    }
    let product = integers(&[-14, -14, 3 * big]);
    expect("Mul", from_ref(&a), from_ref(&b), &[product], plain);
}

#[test]
fn comparisons_choices_and_logic() {
    let (a, b) = (floats(&[1.0, 2.0, 3.0]), floats(&[2.0, 2.0, 2.0]));
    let bits = |bits: [bool; 3]| booleans(&bits);
    for (op, expected) in [
        ("Less", [true, false, false]),
        ("LessOrEqual", [true, true, false]),
        ("Greater", [false, false, true]),
        ("GreaterOrEqual", [false, true, true]),
        ("Equal", [false, true, false]),
    ] {
        expect(op, &[a.clone(), b.clone()], &[], &[bits(expected)], plain);
    }
    let (p, q) = (bits([true, true, false]), bits([true, false, false]));
    for (op, expected) in
        [("And", [true, false, false]), ("Or", [true, true, false]), ("Xor", [false, true, false])]
    {
        expect(op, &[p.clone(), q.clone()], &[], &[bits(expected)], plain);
    }
    expect("Not", from_ref(&p), &[], &[bits([false, false, true])], plain);
    expect("Where", &[p, a, b], &[], &[floats(&[1.0, 2.0, 2.0])], plain);
}

#[test]
fn matrices() {
    let a = tensor([2, 2], &[1.0f32, 2.0, 3.0, 4.0]);
    let b = tensor([2, 2], &[5.0f32, 6.0, 7.0, 8.0]);
    let product = tensor([2, 2], &[19.0f32, 22.0, 43.0, 50.0]);
    expect("MatMul", &[a.clone(), b.clone()], &[], from_ref(&product), plain);
    expect("Einsum", &[a.clone(), b.clone()], &[], &[product], |node| {
        node.string("equation", "ij,jk->ik")
    });
    // Half of a bᵀ, with 2 and 4 added to the columns.
    let gemm = tensor([2, 2], &[8.5f32 + 2.0, 11.5 + 4.0, 19.5 + 2.0, 26.5 + 4.0]);
    expect("Gemm", &[a], &[b, floats(&[1.0, 2.0])], &[gemm], |node| {
        node.int("transB", 1).float("alpha", 0.5).float("beta", 2.0)
    });
}

#[test]
fn normalisations() {
    let row = tensor([1, 2], &[1.0f32, 3.0]);
    let soft = [1.0 / (1.0 + 2f32.exp()), 1.0 / (1.0 + (-2f32).exp())];
    expect("Softmax", from_ref(&row), &[], &[tensor([1, 2], &soft)], plain);
    expect("LogSoftmax", from_ref(&row), &[], &[tensor([1, 2], &soft.map(f32::ln))], plain);
    // Mean 2, variance 1, and an epsilon that makes the divisor 2.
    let (scale, bias) = (floats(&[1.0, 4.0]), floats(&[0.0, 10.0]));
    let normal = tensor([1, 2], &[-0.5f32, 12.0]);
    expect(
        "LayerNormalization",
        from_ref(&row),
        &[scale.clone(), bias.clone()],
        &[normal],
        |node| node.float("epsilon", 3.0),
    );
    let (mean, variance) = (floats(&[0.0, 1.0]), floats(&[1.0, 4.0]));
    let normal = tensor([1, 2], &[0.5f32, 10.0 + 8.0 / 7f32.sqrt()]);
    expect("BatchNormalization", &[row], &[scale, bias, mean, variance], &[normal], |node| {
        node.float("epsilon", 3.0)
    });
}

#[test]
fn reductions() {
    let x = tensor([2, 3], &[1.0f32, -2.0, 3.0, 4.0, 0.0, -6.0]);
    let axis = [integers(&[1])];
    for (op, expected) in [
        ("ReduceMax", [3.0f32, 4.0]),
        ("ReduceMin", [-2.0, -6.0]),
        ("ReduceSum", [2.0, -2.0]),
        ("ReduceMean", [2.0 / 3.0, -2.0 / 3.0]),
        ("ReduceProd", [-6.0, 0.0]),
        ("ReduceL1", [6.0, 10.0]),
        ("ReduceL2", [14f32.sqrt(), 52f32.sqrt()]),
        ("ReduceSumSquare", [14.0, 52.0]),
    ] {
        expect(op, from_ref(&x), &axis, &[floats(&expected)], |node| node.int("keepdims", 0));
    }
    let sums = tensor([2, 3], &[1.0f32, -1.0, 2.0, 4.0, 4.0, -2.0]);
    expect("CumSum", from_ref(&x), &[tensor([], &[1i64])], &[sums], plain);
    expect("ArgMax", from_ref(&x), &[], &[integers(&[2, 0])], |node| {
        node.int("axis", 1).int("keepdims", 0)
    });
    let best = [tensor([2, 1], &[3.0f32, 4.0]), tensor([2, 1], &[2i64, 0])];
    expect("TopK", &[x], &axis, &best, plain);
}

#[test]
fn elements_on_the_move() {
    let x = tensor([2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let one = [x.clone()];
    let turned = tensor([3, 2], &[1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0]);
    expect("Transpose", &one, &[], &[turned], plain);
    let six = floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    expect("Reshape", &one, &[integers(&[-1])], &[six], plain);
    let inner = tensor([2, 2], &[2.0f32, 3.0, 5.0, 6.0]);
    expect("Slice", &one, &[1, i64::MAX, 1].map(|n| integers(&[n])), &[inner], plain);
    let ends = tensor([2, 2], &[3.0f32, 1.0, 6.0, 4.0]);
    expect("Gather", &one, &[integers(&[-1, 0])], &[ends], |node| node.int("axis", 1));
    let halves = [tensor([1, 3], &[1.0f32, 2.0, 3.0]), tensor([1, 3], &[4.0f32, 5.0, 6.0])];
    expect("Concat", &halves, &[], &one, |node| node.int("axis", 0));
    expect("Split", &one, &[integers(&[1, 1])], &halves, plain);
    expect("Unsqueeze", &[floats(&[7.0])], &[integers(&[0])], &[tensor([1, 1], &[7f32])], plain);
    expect("Squeeze", &[tensor([1, 1], &[7f32])], &[integers(&[0])], &[floats(&[7.0])], plain);
    let twice = tensor([2, 2], &[1.0f32, 2.0, 1.0, 2.0]);
    expect("Expand", &[floats(&[1.0, 2.0])], &[integers(&[2, 2])], &[twice], plain);
    expect("Tile", &[floats(&[1.0])], &[integers(&[3])], &[floats(&[1.0; 3])], plain);
    let padded = floats(&[9.0, 1.0, 9.0, 9.0]);
    let pads = [integers(&[1, 2]), tensor([], &[9.0f32])];
    expect("Pad", &[floats(&[1.0])], &pads, &[padded], plain);
    let marked = tensor([2, 3], &[0.0f32, 1.0, 0.0, 1.0, 0.0, 0.0]);
    let classes = [tensor([], &[3i64]), floats(&[0.0, 1.0])];
    expect("OneHot", &[integers(&[1, 0])], &classes, &[marked], plain);
    expect("Cast", &[floats(&[1.9, -1.9])], &[], &[tensor([2], &[1i32, -1])], |n| n.int("to", 6));
    expect("Shape", &one, &[], &[integers(&[2, 3])], plain);
}

#[test]
fn convolutions_and_pools() {
    let image = tensor([1, 1, 2, 3], &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let kernel = tensor([1, 1, 2, 2], &[1.0f32, 0.0, 0.0, -1.0]);
    let edges = tensor([1, 1, 1, 2], &[-4.0f32, -4.0]);
    let square = |node: Node| node.ints("kernel_shape", [2, 2]);
    expect("Conv", from_ref(&image), &[kernel], &[edges], square);
    let largest = tensor([1, 1, 1, 2], &[5.0f32, 6.0]);
    expect("MaxPool", from_ref(&image), &[], &[largest], square);
    let means = tensor([1, 1, 1, 2], &[3.0f32, 4.0]);
    expect("AveragePool", from_ref(&image), &[], &[means], square);
    let mean = tensor([1, 1, 1, 1], &[3.5f32]);
    expect("GlobalAveragePool", &[image], &[], &[mean], plain);
}
