//! Keys that are missing, values of the wrong kind, versions that are not known.

use veracity_diag::{Severity, codes};

use super::{Case, check};

const REFUSED: &[Case] = &[
    Case("no models", codes::YAML_MISSING_KEY, &[("models:", "¦modles:")]),
    Case(
        "no pipeline",
        codes::YAML_MISSING_KEY,
        &[("models:", "¦models:"), ("pipeline:", "piepline:")],
    ),
    Case(
        "no system information",
        codes::YAML_MISSING_KEY,
        &[("models:", "¦models:"), ("system information:", "system:")],
    ),
    Case(
        "no inputs",
        codes::YAML_MISSING_KEY,
        &[("  encoder:\n    inputs:", "  ¦encoder:\n    input:")],
    ),
    Case(
        "no parameters",
        codes::YAML_MISSING_KEY,
        &[("  encoder:\n", "  ¦encoder:\n"), ("    parameters:", "    params:")],
    ),
    Case("no port name", codes::YAML_MISSING_KEY, &[("- name: image", "- ¦title: image")]),
    Case(
        "no dtype",
        codes::YAML_MISSING_KEY,
        &[("- name: image\n      dtype", "- ¦name: image\n      type_")],
    ),
    Case(
        "no shape",
        codes::YAML_MISSING_KEY,
        &[("- name: image", "- ¦name: image"), ("      shape: [1, 6]\n", "")],
    ),
    Case(
        "no backend",
        codes::YAML_MISSING_KEY,
        &[("  encoder:\n", "  ¦encoder:\n"), ("      backend: onnx\n", "")],
    ),
    Case(
        "no model path",
        codes::YAML_MISSING_KEY,
        &[("  encoder:\n", "  ¦encoder:\n"), ("      model_path: encoder.onnx\n", "")],
    ),
    Case(
        "no md5",
        codes::YAML_MISSING_KEY,
        &[
            ("  encoder:\n", "  ¦encoder:\n"),
            ("      md5sum: 0123456789abcdef0123456789abcdef\n", ""),
        ],
    ),
    Case(
        "no sha256",
        codes::YAML_MISSING_KEY,
        &[("  encoder:\n", "  ¦encoder:\n"), ("      sha256sum:", "      sha256:")],
    ),
    Case(
        "no pipeline outputs",
        codes::YAML_MISSING_KEY,
        &[("  configs:", "  ¦configs:"), ("  outputs:\n    policy: [action]\n", "")],
    ),
    Case(
        "no pipeline inputs",
        codes::YAML_MISSING_KEY,
        &[("  configs:", "  ¦configs:"), ("  inputs:\n    encoder: [image]\n", "")],
    ),
    Case(
        "models is a list",
        codes::YAML_WRONG_KIND,
        &[("models:\n  encoder:", "models:\n  ¦- a\nold:\n  encoder:")],
    ),
    Case("pipeline is text", codes::YAML_WRONG_KIND, &[("pipeline:\n", "pipeline: ¦none\nold:\n")]),
    Case("node is nothing", codes::YAML_WRONG_KIND, &[("\npipeline:", "  idle¦:\n\npipeline:")]),
    Case(
        "ports are a mapping",
        codes::YAML_WRONG_KIND,
        &[("    outputs:\n    - name: code\n", "    outputs: ¦{}\n    old:\n    - name: code\n")],
    ),
    Case("port name is a number", codes::YAML_WRONG_KIND, &[("- name: image", "- name: ¦12")]),
    Case("port name is a bool", codes::YAML_WRONG_KIND, &[("- name: image", "- name: ¦on")]),
    Case(
        "node name is a number",
        codes::YAML_WRONG_KIND,
        &[("\npipeline:", "  ¦7: {inputs: [], outputs: [], parameters: {}}\n\npipeline:")],
    ),
    Case("targets are text", codes::YAML_WRONG_KIND, &[("[policy/code]", "¦policy/code")]),
    Case("kind is a list", codes::YAML_WRONG_KIND, &[("state/body/pose", "¦[a]")]),
    Case("frequency is text", codes::YAML_WRONG_KIND, &[("frequency: 50", "frequency: ¦fast")]),
];

const REFUSED_VERSIONS: &[Case] = &[
    Case("no version", codes::VERSION_MISSING, &[("  leapp config version: '1.3'\n  os", "  ¦os")]),
    Case("another major", codes::VERSION_UNSUPPORTED, &[("'1.3'", "¦'2.0'")]),
    Case("not a version", codes::VERSION_UNSUPPORTED, &[("'1.3'", "¦latest")]),
    Case(
        "another schema",
        codes::VERSION_UNSUPPORTED,
        &[("\nsystem information:", "veracity: {schema: ¦'2.0', files: {}}\nsystem information:")],
    ),
];

const DOUBTFUL: &[Case] = &[
    Case("a later minor", codes::VERSION_UNSUPPORTED, &[("'1.3'", "¦'1.4'")]),
    Case(
        "a later schema",
        codes::VERSION_UNSUPPORTED,
        &[("\nsystem information:", "veracity: {schema: ¦'1.1', files: {}}\nsystem information:")],
    ),
];

#[test]
fn missing_and_misplaced_keys() {
    check(REFUSED, Severity::Error);
}

#[test]
fn versions() {
    check(REFUSED_VERSIONS, Severity::Error);
    check(DOUBTFUL, Severity::Warning);
}
