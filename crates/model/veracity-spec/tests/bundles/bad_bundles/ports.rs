//! Nodes and ports that cannot be.

use veracity_diag::{Severity, codes};

use super::{Case, check};

const REFUSED: &[Case] = &[
    Case(
        "no nodes",
        codes::BUNDLE_EMPTY,
        &[
            ("models:\n", "models: ¦{}\nold:\n"),
            ("    encoder/code: [policy/code]", "    {}"),
            ("    policy/memory: [encoder/memory_in]", "    {}"),
            ("    encoder: [image]", "    {}"),
            ("    policy: [action]", "    {}"),
        ],
    ),
    Case(
        "slash in a node name",
        codes::NODE_NAME_INVALID,
        &[(
            "\npipeline:",
            "  ¦a/b: {inputs: [], outputs: [], parameters: {backend: null, model_path: null}}\n\npipeline:",
        )],
    ),
    Case(
        "empty node name",
        codes::NODE_NAME_INVALID,
        &[(
            "\npipeline:",
            "  ¦'': {inputs: [], outputs: [], parameters: {backend: null, model_path: null}}\n\npipeline:",
        )],
    ),
    Case(
        "control character in a port name",
        codes::NODE_NAME_INVALID,
        &[("- name: image", "- name: ¦\"im\\eage\""), ("[image]", "[\"im\\eage\"]")],
    ),
    Case(
        "two inputs of one name",
        codes::DUPLICATE_PORT,
        &[(
            "    outputs:\n    - name: code",
            "    - name: ¦image\n      dtype: int8\n      shape: []\n    outputs:\n    - name: code",
        )],
    ),
    Case("unknown dtype", codes::DTYPE_UNKNOWN, &[("dtype: float32", "dtype: ¦flaot32")]),
    Case("complex dtype", codes::DTYPE_UNKNOWN, &[("dtype: float32", "dtype: ¦complex64")]),
    Case("negative size", codes::SHAPE_INVALID, &[("[1, 6]", "[1, ¦-6]")]),
    Case("symbolic size", codes::SHAPE_INVALID, &[("[1, 6]", "[¦batch, 6]")]),
    Case("fractional size", codes::SHAPE_INVALID, &[("[1, 6]", "[1, ¦6.0]")]),
    Case("shape is a number", codes::SHAPE_INVALID, &[("[1, 6]", "¦6")]),
    Case("shape is bad text", codes::SHAPE_INVALID, &[("[1, 6]", "¦'[1, six]'")]),
    Case("one gigabyte", codes::SHAPE_TOO_LARGE, &[("[1, 6]", "¦[1000000000]")]),
    Case("overflowing shape", codes::SHAPE_TOO_LARGE, &[("[1, 6]", "¦[4611686018427387904, 8]")]),
    Case(
        "number beyond 64 bits",
        codes::SHAPE_TOO_LARGE,
        &[("[1, 6]", "¦[99999999999999999999999]")],
    ),
    Case("empty but huge", codes::SHAPE_TOO_LARGE, &[("[1, 6]", "¦[0, 4611686018427387904]")]),
    Case(
        "temporal period of nothing",
        codes::FREQUENCY_INVALID,
        &[("kind: state", "temporal_period_ms: ¦0\n      kind: state")],
    ),
    Case("frequency of nothing", codes::FREQUENCY_INVALID, &[("frequency: 50", "frequency: ¦0")]),
    Case("infinite frequency", codes::FREQUENCY_INVALID, &[("frequency: 50", "frequency: ¦.inf")]),
];

const DOUBTFUL: &[Case] = &[
    Case(
        "too few element names",
        codes::ELEMENT_NAMES_MISMATCH,
        &[("[[x, 'y', z, qx, qy, qz]]", "¦[[x]]")],
    ),
    Case(
        "names for too many axes",
        codes::ELEMENT_NAMES_MISMATCH,
        &[("[[x, 'y', z, qx, qy, qz]]", "¦[null, null, null]")],
    ),
    Case(
        "element names that are numbers",
        codes::ELEMENT_NAMES_MISMATCH,
        &[("[[x, 'y', z, qx, qy, qz]]", "¦[[1, 2, 3, 4, 5, 6]]")],
    ),
    Case("not a tensor", codes::YAML_WRONG_KIND, &[("type: tensor", "type: ¦scalar")]),
    Case(
        "no initial values",
        codes::INITIAL_VALUE_MISSING,
        &[
            ("  initial_values: start.safetensors\n", ""),
            ("[encoder/memory_in]", "[¦encoder/memory_in]"),
        ],
    ),
];

#[test]
fn bad_nodes_and_ports() {
    check(REFUSED, Severity::Error);
    check(DOUBTFUL, Severity::Warning);
}
