//! Everything that tract is known to compute correctly.
//!
//! Each line was compared with ONNX Runtime (dtypes, attributes, edge values). What is missing here
//! was found wrong, was not looked at, or is refused by tract itself. Found wrong, among others:
//! `Softplus` and `ReduceLogSumExp` (infinity from inputs around 100), `Celu` with an `alpha`,
//! squares of integers (computed as floats), `ReduceL2` of float16, recurrent operators that run backwards, clip or have other activations, `ConvTranspose` with an
//! `output_shape`, sums of 64-bit and of narrow integers, float64 `LayerNormalization`, `Selu` with
//! its own constants, and `Mod` of integers that come from shapes.

use Allowed::{Any, Int, One, Text};
use DType::{Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
use OnSizes::{Computed, Moved};
use Role::{Condition, Data, Integer, Other};
use veracity_tensor::DType;

use super::conditions as on;
use super::rule::{Allowed, Gives, OnSizes, Role, Rule, rule};

/// The rule for an operator.
pub(super) fn rule_of(op: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.ops.contains(&op))
}

/// Why an operator has no rule.
pub(super) fn reason_without_rule(op: &str) -> &'static str {
    let wrong = WRONG.iter().find(|(name, _)| *name == op);
    wrong.map_or("it is not supported", |(_, reason)| reason)
}

const ALL: &[DType] = &[F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64, Bool];
const NUMBERS: &[DType] = &[F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64];
const SIGNED: &[DType] = &[F16, F32, F64, I8, I16, I32, I64];
const ORDERED: &[DType] = &[F16, F32, F64, I8, I16, I32, I64, U8, U16];
const FLOATS: &[DType] = &[F16, F32, F64];
const SHORT_FLOATS: &[DType] = &[F16, F32];
const BOOL: &[Gives] = &[Gives::Plain(Bool)];
const POOLED: &[(&str, Allowed)] = &[
    ("auto_pad", Any),
    ("ceil_mode", Any),
    ("count_include_pad", Any),
    ("dilations", Any),
    ("kernel_shape", Any),
    ("pads", Any),
    ("storage_order", Int(0)),
    ("strides", Any),
];
const CONVOLVED: &[(&str, Allowed)] = &[
    ("auto_pad", Any),
    ("dilations", Any),
    ("group", Any),
    ("kernel_shape", Any),
    ("pads", Any),
    ("strides", Any),
];
// `SAME` paddings were not compared.
const DECONVOLVED: &[(&str, Allowed)] = &[
    ("auto_pad", Text(&["NOTSET"])),
    ("dilations", Any),
    ("group", Any),
    ("kernel_shape", Any),
    ("output_padding", Any),
    ("pads", Any),
    ("strides", Any),
];
const REDUCED: &[(&str, Allowed)] =
    &[("axes", Any), ("keepdims", Any), ("noop_with_empty_axes", Any)];
const RECURRENT: &[(&str, Allowed)] = &[
    ("direction", Text(&["forward"])),
    ("hidden_size", Any),
    ("input_forget", Int(0)),
    ("layout", Int(0)),
    ("linear_before_reset", Any),
];
const CELL: &[Role] = &[Data, Data, Data, Data, Other, Data, Data];

/// Operators that policies use and that are known to be computed wrongly.
static WRONG: &[(&str, &str)] = &[
    ("ReduceLogSumExp", "it gives infinity for inputs above 88"),
    ("Softplus", "it gives infinity for inputs above 88"),
];

static RULES: &[Rule] = &[
    // Arithmetic.
    rule(&["Add", "Sub", "Div"], &[Data, Data], NUMBERS).sizes(Computed),
    rule(&["Mul"], &[Data, Data], NUMBERS).sizes(Computed).when(on::product_is_no_square),
    rule(&["Max", "Min"], &[Data], NUMBERS).any_inputs().sizes(Computed),
    rule(&["Sum", "Mean"], &[Data], FLOATS).any_inputs(),
    rule(&["Mod"], &[Data, Data], &[F32, I8, I16, I32, I64, U8, U16, U32, U64])
        .with(&[("fmod", Any)])
        .when(on::float_remainder_is_fmod),
    rule(&["Pow"], &[Data, Other], FLOATS).when(on::exponent_fits),
    rule(&["Abs"], &[Data], NUMBERS),
    rule(&["Neg", "Sign"], &[Data], SIGNED),
    rule(&["Clip"], &[Data, Data, Data], NUMBERS).gaps(),
    rule(
        &[
            "Acos",
            "Asin",
            "Atan",
            "Ceil",
            "Cos",
            "Cosh",
            "Exp",
            "Floor",
            "Log",
            "Reciprocal",
            "Sin",
            "Sinh",
            "Sqrt",
            "Tan",
        ],
        &[Data],
        FLOATS,
    ),
    rule(&["Erf", "Round"], &[Data], SHORT_FLOATS),
    // Activations.
    rule(&["Mish", "Relu", "Softsign", "Tanh"], &[Data], FLOATS),
    rule(&["HardSwish", "Sigmoid"], &[Data], SHORT_FLOATS),
    rule(&["Celu"], &[Data], FLOATS).with(&[("alpha", One)]),
    rule(&["Elu", "ThresholdedRelu"], &[Data], FLOATS).with(&[("alpha", Any)]),
    rule(&["LeakyRelu"], &[Data], SHORT_FLOATS).with(&[("alpha", Any)]),
    rule(&["Selu"], &[Data], SHORT_FLOATS)
        .with(&[("alpha", Any), ("gamma", Any)])
        .when(on::selu_is_explicit),
    rule(&["HardSigmoid"], &[Data], FLOATS).with(&[("alpha", Any), ("beta", Any)]),
    rule(&["Gelu"], &[Data], SHORT_FLOATS).with(&[("approximate", Text(&["none", "tanh"]))]),
    rule(&["PRelu"], &[Data, Data], FLOATS),
    rule(&["LogSoftmax", "Softmax"], &[Data], FLOATS).with(&[("axis", Any)]),
    // Comparisons and logic.
    rule(&["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"], &[Data, Data], NUMBERS)
        .sizes(Computed)
        .gives(BOOL),
    rule(&["And", "Or", "Xor"], &[Data, Data], &[Bool]),
    rule(&["Not"], &[Data], &[Bool]),
    rule(&["IsNaN"], &[Data], &[F32]).gives(BOOL),
    rule(&["IsInf"], &[Data], &[F32])
        .gives(BOOL)
        .with(&[("detect_negative", Any), ("detect_positive", Any)]),
    rule(&["Where"], &[Condition, Data, Data], ALL).sizes(Computed),
    // Matrices.
    rule(&["MatMul"], &[Data, Data], FLOATS),
    rule(&["Gemm"], &[Data, Data, Data], &[F32]).with(&[
        ("alpha", Any),
        ("beta", Any),
        ("transA", Any),
        ("transB", Any),
    ]),
    rule(&["Einsum"], &[Data], FLOATS).any_inputs().with(&[("equation", Any)]),
    // Convolutions and pools.
    rule(&["Conv"], &[Data, Data, Data], &[F32, F64]).with(CONVOLVED),
    rule(&["ConvTranspose"], &[Data, Data, Data], &[F32]).with(DECONVOLVED),
    rule(&["AveragePool", "MaxPool"], &[Data], &[F32]).with(POOLED),
    rule(&["GlobalAveragePool"], &[Data], FLOATS),
    rule(&["GlobalMaxPool"], &[Data], &[F32]),
    // Normalisations. Only what inference needs: one output.
    rule(&["BatchNormalization"], &[Data, Data, Data, Data, Data], FLOATS).with(&[
        ("epsilon", Any),
        ("momentum", Any),
        ("training_mode", Int(0)),
    ]),
    rule(&["LayerNormalization"], &[Data, Data, Data], SHORT_FLOATS).with(&[
        ("axis", Any),
        ("epsilon", Any),
        ("stash_type", Int(1)),
    ]),
    rule(&["InstanceNormalization"], &[Data, Data, Data], &[F32]).with(&[("epsilon", Any)]),
    rule(&["GroupNormalization"], &[Data, Data, Data], &[F32]).with(&[
        ("epsilon", Any),
        ("num_groups", Any),
        ("stash_type", Int(1)),
    ]),
    rule(&["LpNormalization"], &[Data], &[F32]).with(&[("axis", Any), ("p", Any)]),
    // Reductions.
    rule(&["ReduceL1", "ReduceMean"], &[Data, Integer], FLOATS).with(REDUCED),
    // The squares of float16 are not kept in a wider type.
    rule(&["ReduceL2", "ReduceSumSquare"], &[Data, Integer], &[F32, F64]).with(REDUCED),
    rule(&["ReduceSum"], &[Data, Integer], &[F16, F32, F64, I32]).with(REDUCED),
    rule(&["ReduceProd"], &[Data, Integer], &[F16, F32, F64, I32, I64])
        .with(REDUCED)
        .sizes(Computed),
    rule(&["ReduceMax", "ReduceMin"], &[Data, Integer], ORDERED).with(REDUCED),
    rule(&["ArgMax", "ArgMin"], &[Data], ORDERED).gives(&[Gives::Plain(I64)]).with(&[
        ("axis", Any),
        ("keepdims", Any),
        ("select_last_index", Any),
    ]),
    rule(&["TopK"], &[Data, Integer], &[F16, F32, F64, I64])
        .gives(&[Gives::Data, Gives::Plain(I64)])
        .with(&[("axis", Any), ("largest", Any), ("sorted", Int(1))]),
    rule(&["CumSum"], &[Data, Integer], &[F16, F32, F64, I32, I64])
        .with(&[("exclusive", Any), ("reverse", Any)]),
    // Recurrent networks.
    rule(&["GRU", "RNN"], CELL, &[F32])
        .gaps()
        .with(RECURRENT)
        .gives(&[Gives::Data, Gives::Data])
        .when(on::sequences_are_whole),
    rule(&["LSTM"], CELL, &[F32])
        .gaps()
        .with(RECURRENT)
        .gives(&[Gives::Data, Gives::Data, Gives::Data])
        .when(on::lstm_is_fed),
    // Moving elements.
    rule(&["Identity"], &[Data], ALL).sizes(Moved),
    rule(&["Dropout"], &[Data, Other], FLOATS).with(&[("seed", Any)]),
    rule(&["Concat"], &[Data], ALL).any_inputs().sizes(Moved).with(&[("axis", Any)]),
    rule(&["Split"], &[Data, Integer], ALL)
        .any_outputs()
        .sizes(Moved)
        .with(&[("axis", Any), ("num_outputs", Any)]),
    rule(&["Slice"], &[Data, Integer, Integer, Integer, Integer], ALL).sizes(Moved),
    rule(&["Flatten"], &[Data], ALL).sizes(Moved).with(&[("axis", Any)]),
    rule(&["Reshape"], &[Data, Integer], ALL).sizes(Moved).with(&[("allowzero", Any)]),
    rule(&["Transpose"], &[Data], ALL).sizes(Moved).with(&[("perm", Any)]),
    rule(&["Expand", "Squeeze", "Tile", "Unsqueeze"], &[Data, Integer], ALL).sizes(Moved),
    rule(&["Gather", "GatherElements"], &[Data, Integer], ALL).sizes(Moved).with(&[("axis", Any)]),
    rule(&["GatherND"], &[Data, Integer], ALL).with(&[("batch_dims", Any)]),
    rule(&["ScatterElements"], &[Data, Integer, Data], ALL)
        .with(&[("axis", Any), ("reduction", Text(&["none"]))]),
    rule(&["ScatterND"], &[Data, Integer, Data], ALL).with(&[("reduction", Text(&["none"]))]),
    rule(&["Pad"], &[Data, Integer, Data, Integer], &[F32, F64, I64])
        .gaps()
        .with(&[("mode", Text(&["constant", "edge", "reflect"]))])
        .when(on::pads_add),
    rule(&["Trilu"], &[Data, Integer], &[F32, I64, Bool]).with(&[("upper", Any)]),
    // Making elements.
    rule(&["Cast"], &[Other], ALL).gives(&[Gives::Cast]).with(&[("saturate", Any), ("to", Any)]),
    rule(&["Constant"], &[], ALL).gives(&[Gives::Attribute]).with(&[
        ("value", Any),
        ("value_float", Any),
        ("value_floats", Any),
        ("value_int", Any),
        ("value_ints", Any),
    ]),
    rule(&["ConstantOfShape"], &[Integer], ALL)
        .gives(&[Gives::Attribute])
        .with(&[("value", Any)])
        .when(on::fill_is_given),
    rule(&["OneHot"], &[Integer, Integer, Data], &[F32, I64]).with(&[("axis", Any)]),
    rule(&["Range"], &[Data, Data, Data], &[I32, I64]).sizes(Computed),
    rule(&["Shape"], &[Other], ALL).gives(&[Gives::Sizes]).with(&[("end", Any), ("start", Any)]),
    rule(&["Size"], &[Other], ALL).gives(&[Gives::Sizes]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_has_one_rule() {
        let mut names: Vec<&str> = RULES.iter().flat_map(|rule| rule.ops).copied().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(WRONG.iter().all(|(op, _)| rule_of(op).is_none()));
    }

    #[test]
    fn a_rule_that_gives_its_data_has_data() {
        for rule in RULES.iter().filter(|rule| matches!(rule.outputs, [Gives::Data, ..])) {
            assert!(rule.inputs.contains(&Data), "{:?}", rule.ops);
        }
    }
}
