//! Which rule tells what an operator gives.

use veracity_tensor::DType;

use super::call::Call;
use super::{Fact, elementwise, linear, make, reduce, select, shapes, windows};

/// What a node gives, output by output, as far as it is known. A rule that does not hold for an
/// operator version says nothing.
pub(super) fn infer(call: &Call<'_>) -> Vec<Fact> {
    if !call.node.op_domain().is_empty() {
        return Vec::new();
    }
    let op = call.node.op_type();
    match op {
        "Cast" => elementwise::cast(call),
        "CastLike" => elementwise::cast_like(call),
        "Constant" => make::constant(call),
        "Identity" => elementwise::same(call),
        "Dropout" => elementwise::dropout(call),
        "IsInf" | "IsNaN" | "Not" => elementwise::first_as(call, DType::Bool),
        "Add" | "Sub" | "Mul" | "Div" | "Mod" | "BitwiseAnd" | "BitwiseOr" | "BitwiseXor" => {
            elementwise::binary(call, op)
        }
        "Pow" | "BitShift" => elementwise::binary_like_first(call),
        "Equal" | "Greater" | "GreaterOrEqual" | "Less" | "LessOrEqual" | "And" | "Or" | "Xor" => {
            elementwise::predicate(call, op)
        }
        "Max" | "Min" | "Mean" | "Sum" => elementwise::variadic(call, op),
        "Where" => elementwise::choice(call),
        "QuantizeLinear" => elementwise::quantize(call),
        "DequantizeLinear" => elementwise::dequantize(call),
        _ if is_like_first(op) => elementwise::like_first(call),
        _ => of_layout(call, op).unwrap_or_else(|| of_computation(call, op)),
    }
}

/// Operators that move elements around and make new ones.
fn of_layout(call: &Call<'_>, op: &str) -> Option<Vec<Fact>> {
    let rule = match op {
        "Concat" => select::concat,
        "ConstantOfShape" => make::constant_of_shape,
        "DepthToSpace" => shapes::depth_to_space,
        "Expand" => shapes::expand,
        "EyeLike" => make::eye_like,
        "Flatten" => shapes::flatten,
        "Gather" => select::gather,
        "GatherElements" => select::gather_elements,
        "GatherND" => select::gather_nd,
        "NonZero" => make::non_zero,
        "OneHot" => make::one_hot,
        "Pad" => select::pad,
        "RandomNormal" | "RandomUniform" => make::random,
        "RandomNormalLike" | "RandomUniformLike" => make::random_like,
        "Range" => make::range,
        "Reshape" => shapes::reshape,
        "Shape" => make::shape,
        "Size" => make::size,
        "Slice" => select::slice,
        "SpaceToDepth" => shapes::space_to_depth,
        "Split" => select::split,
        "Squeeze" => shapes::squeeze,
        "Tile" => select::tile,
        "Transpose" => shapes::transpose,
        "Unsqueeze" => shapes::unsqueeze,
        _ => return None,
    };
    Some(rule(call))
}

/// Operators that bring elements together.
fn of_computation(call: &Call<'_>, op: &str) -> Vec<Fact> {
    match op {
        "ArgMax" | "ArgMin" => reduce::index_of(call),
        "AveragePool" | "LpPool" | "MaxPool" => windows::pool(call),
        "BatchNormalization" => reduce::batch_norm(call),
        "Conv" => windows::conv(call, None),
        "ConvInteger" => windows::conv(call, Some(DType::I32)),
        "ConvTranspose" => windows::conv_transpose(call),
        "Einsum" => linear::einsum(call),
        "GRU" | "LSTM" | "RNN" => linear::recurrent(call),
        "Gemm" => linear::gemm(call),
        "GlobalAveragePool" | "GlobalLpPool" | "GlobalMaxPool" => windows::global(call),
        "GridSample" => windows::grid_sample(call),
        "LayerNormalization" => reduce::layer_norm(call),
        "MatMul" => linear::matmul(call, None),
        "MatMulInteger" => linear::matmul(call, Some(DType::I32)),
        "ReduceL1" | "ReduceL2" | "ReduceLogSum" | "ReduceLogSumExp" | "ReduceMax"
        | "ReduceMean" | "ReduceMin" | "ReduceProd" | "ReduceSum" | "ReduceSumSquare" => {
            reduce::reduce(call, op)
        }
        "Resize" => windows::resize(call),
        "TopK" => reduce::top_k(call),
        _ => Vec::new(),
    }
}

/// Operators whose one output has the type and the sizes of their first input.
fn is_like_first(op: &str) -> bool {
    matches!(
        op,
        "Abs"
            | "Acos"
            | "Acosh"
            | "Asin"
            | "Asinh"
            | "Atan"
            | "Atanh"
            | "Bernoulli"
            | "BitwiseNot"
            | "Ceil"
            | "Celu"
            | "Clip"
            | "Cos"
            | "Cosh"
            | "CumSum"
            | "Elu"
            | "Erf"
            | "Exp"
            | "Floor"
            | "Gelu"
            | "GroupNormalization"
            | "HardSigmoid"
            | "HardSwish"
            | "Hardmax"
            | "InstanceNormalization"
            | "LRN"
            | "LeakyRelu"
            | "Log"
            | "LogSoftmax"
            | "LpNormalization"
            | "MeanVarianceNormalization"
            | "Mish"
            | "Neg"
            | "PRelu"
            | "RMSNormalization"
            | "Reciprocal"
            | "Relu"
            | "ReverseSequence"
            | "Round"
            | "Scatter"
            | "ScatterElements"
            | "ScatterND"
            | "Selu"
            | "Shrink"
            | "Sigmoid"
            | "Sign"
            | "Sin"
            | "Sinh"
            | "Softmax"
            | "Softplus"
            | "Softsign"
            | "Sqrt"
            | "Swish"
            | "Tan"
            | "Tanh"
            | "ThresholdedRelu"
            | "Trilu"
    )
}
