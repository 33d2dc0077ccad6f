//! Connections that make no sense.

use veracity_diag::{Severity, codes};

use super::{Case, check};

const REFUSED: &[Case] = &[
    Case("edge end without a slash", codes::EDGE_MALFORMED, &[("[policy/code]", "[¦policy]")]),
    Case(
        "edge end with two slashes",
        codes::EDGE_MALFORMED,
        &[("encoder/code:", "¦encoder/code/0:")],
    ),
    Case(
        "unknown source node",
        codes::EDGE_UNKNOWN_END,
        &[("    encoder/code:", "    ¦encodr/code:")],
    ),
    Case(
        "unknown source port",
        codes::EDGE_UNKNOWN_END,
        &[("    encoder/code:", "    ¦encoder/cod:")],
    ),
    Case(
        "source is an input",
        codes::EDGE_UNKNOWN_END,
        &[("    encoder/code:", "    ¦encoder/image:")],
    ),
    Case("unknown target port", codes::EDGE_UNKNOWN_END, &[("[policy/code]", "[¦policy/cde]")]),
    Case("target is an output", codes::EDGE_UNKNOWN_END, &[("[policy/code]", "[¦policy/action]")]),
    Case(
        "shapes differ",
        codes::EDGE_MISMATCH,
        &[
            (
                "- name: code\n      dtype: float32\n      shape: [1, 4]",
                "- name: code\n      dtype: float32\n      shape: [4]",
            ),
            ("[policy/code]", "[¦policy/code]"),
        ],
    ),
    Case(
        "dtypes differ",
        codes::EDGE_MISMATCH,
        &[
            ("- name: code\n      dtype: float32", "- name: code\n      dtype: float64"),
            ("[policy/code]", "[¦policy/code]"),
        ],
    ),
    Case(
        "fed twice by one source",
        codes::EDGE_TWICE,
        &[("[policy/code]", "[policy/code, ¦policy/code]")],
    ),
    Case(
        "fed by data and feedback",
        codes::EDGE_TWICE,
        &[("[encoder/memory_in]", "[encoder/memory_in]\n    encoder/code: [¦encoder/memory_in]")],
    ),
    Case(
        "circle",
        codes::FLOW_CYCLE,
        &[(
            "  feedback_flow:\n    policy/memory: [encoder/memory_in]\n",
            "    policy/memory: [¦encoder/memory_in]\n",
        )],
    ),
    Case(
        "node feeds itself",
        codes::FLOW_CYCLE,
        &[
            ("[policy/code]", "[policy/code, ¦encoder/memory_in]"),
            ("    policy/memory: [encoder/memory_in]", "    {}"),
            ("[action]", "[action, memory]"),
        ],
    ),
    Case(
        "backwards",
        codes::FLOW_ORDER,
        &[
            ("    encoder/code: [policy/code]\n  feedback_flow:\n", ""),
            ("    policy/memory: [encoder/memory_in]", "    policy/memory: [¦encoder/memory_in]"),
            ("encoder: [image]", "encoder: [image]\n    policy: [code]"),
            ("policy: [action]", "policy: [action]\n    encoder: [code]"),
        ],
    ),
    Case(
        "feedback forwards",
        codes::FEEDBACK_FORWARD,
        &[
            ("  data_flow:\n    encoder/code: [policy/code]\n", ""),
            ("[encoder/memory_in]\n", "[encoder/memory_in]\n    encoder/code: [¦policy/code]\n"),
        ],
    ),
    Case(
        "unknown pipeline node",
        codes::PIPELINE_PORT_UNKNOWN,
        &[("    encoder: [image]", "    encode: [¦image]")],
    ),
    Case("unknown pipeline input", codes::PIPELINE_PORT_UNKNOWN, &[("[image]", "[¦imgae]")]),
    Case(
        "pipeline output is an input",
        codes::PIPELINE_PORT_UNKNOWN,
        &[("[action]", "[action, ¦code]")],
    ),
    Case("pipeline input listed twice", codes::DUPLICATE_PORT, &[("[image]", "[image, ¦image]")]),
    Case(
        "pipeline output listed twice",
        codes::DUPLICATE_PORT,
        &[("[action]", "[action, ¦action]")],
    ),
    Case(
        "pipeline input that is fed",
        codes::PIPELINE_INPUT_ALSO_FED,
        &[("encoder: [image]", "encoder: [image]\n    policy: [¦code]")],
    ),
    Case(
        "input without a source",
        codes::INPUT_UNFED,
        &[("- name: image", "- name: ¦image"), ("    encoder: [image]", "    {}")],
    ),
    Case(
        "output without a use",
        codes::OUTPUT_UNROUTED,
        &[("- name: action", "- name: ¦action"), ("    policy: [action]", "    {}")],
    ),
    Case(
        "no outputs",
        codes::OUTPUTS_MISSING,
        &[
            (
                "    - name: action\n      dtype: float32\n      shape: [1, 2]\n      type: tensor\n",
                "",
            ),
            ("    policy: [action]", "    {}"),
            ("    policy/memory:", "    ¦policy/memory:"),
        ],
    ),
];

#[test]
fn bad_wiring() {
    check(REFUSED, Severity::Error);
}
