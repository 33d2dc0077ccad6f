//! Text that is not the YAML that bundles are written in.

use veracity_diag::{Severity, codes};

use super::{Case, check};

const REFUSED: &[Case] = &[
    Case(
        "bad syntax",
        codes::YAML_SYNTAX,
        &[("[1, 6]\n", "[1, 6\n"), ("type: tensor\n      kind", "type¦: tensor\n      kind")],
    ),
    Case(
        "tab as indent",
        codes::YAML_SYNTAX,
        &[("    inputs:\n    - name: image", "\t¦inputs:\n    - name: image")],
    ),
    Case(
        "duplicate key",
        codes::YAML_DUPLICATE_KEY,
        &[("      type: tensor\n", "      type: tensor\n      ¦dtype: int8\n")],
    ),
    Case(
        "duplicate node",
        codes::YAML_DUPLICATE_KEY,
        &[("\npipeline:", "  ¦encoder: {}\n\npipeline:")],
    ),
    Case("unknown anchor", codes::YAML_UNKNOWN_ANCHOR, &[("shape: [1, 6]", "shape: ¦*none")]),
    Case(
        "two documents",
        codes::YAML_NOT_ONE_DOCUMENT,
        &[("\nsystem information:", "\n¦---\nsystem information:")],
    ),
    Case(
        "python object",
        codes::YAML_UNSUPPORTED,
        &[("frequency: 50", "frequency: 50\n    extra: ¦!!python/tuple [1]")],
    ),
    Case("custom scalar tag", codes::YAML_UNSUPPORTED, &[("frequency: 50", "frequency: ¦!hz 50")]),
    Case(
        "merge key",
        codes::YAML_UNSUPPORTED,
        &[("frequency: 50", "frequency: 50\n    ¦<<: {a: 1}")],
    ),
    Case(
        "list as key",
        codes::YAML_UNSUPPORTED,
        &[("frequency: 50", "frequency: 50\n    ¦[a]: 1")],
    ),
    Case(
        "value inside itself",
        codes::YAML_UNSUPPORTED,
        &[("frequency: 50", "frequency: 50\n    loop: &l [¦*l]")],
    ),
    Case(
        "huge number",
        codes::YAML_WRONG_KIND,
        &[(
            "frequency: 50",
            "frequency: 50\n    seed: ¦999999999999999999999999999999999999999999",
        )],
    ),
];

#[test]
fn broken_yaml() {
    check(REFUSED, Severity::Error);
}
