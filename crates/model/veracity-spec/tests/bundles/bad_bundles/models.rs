//! Models, paths and hashes that cannot be.

use veracity_diag::{Severity, codes};

use super::{Case, check};

const REFUSED: &[Case] = &[
    Case("unknown backend", codes::BACKEND_UNKNOWN, &[("backend: onnx", "backend: ¦onxn")]),
    Case(
        "backend of another runtime",
        codes::BACKEND_UNKNOWN,
        &[("backend: onnx", "backend: ¦trt")],
    ),
    Case("model without backend", codes::BACKEND_UNKNOWN, &[("backend: onnx", "backend: ¦null")]),
    Case(
        "backend without model",
        codes::MODEL_ABSENT,
        &[("model_path: encoder.onnx", "model_path: ¦null")],
    ),
    Case("path that leaves", codes::PATH_LEAVES_BUNDLE, &[("encoder.onnx", "¦../encoder.onnx")]),
    Case("path with a detour", codes::PATH_LEAVES_BUNDLE, &[("encoder.onnx", "¦a/../../x.onnx")]),
    Case("path with backslashes", codes::PATH_LEAVES_BUNDLE, &[("encoder.onnx", "¦..\\x.onnx")]),
    Case("absolute path", codes::PATH_ABSOLUTE, &[("encoder.onnx", "¦/etc/passwd")]),
    Case("drive letter", codes::PATH_ABSOLUTE, &[("encoder.onnx", "¦C:/x.onnx")]),
    Case("NUL in a path", codes::PATH_LEAVES_BUNDLE, &[("encoder.onnx", "¦\"a\\0b\"")]),
    Case("path of a folder", codes::PATH_NOT_A_FILE, &[("encoder.onnx", "¦models/")]),
    Case(
        "initial values elsewhere",
        codes::PATH_LEAVES_BUNDLE,
        &[("start.safetensors", "¦../start.safetensors")],
    ),
    Case(
        "hash too short",
        codes::HASH_MALFORMED,
        &[("md5sum: 0123456789abcdef0123456789abcdef", "md5sum: ¦0123")],
    ),
    Case(
        "hash is nothing",
        codes::HASH_MALFORMED,
        &[(
            "sha256sum: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "sha256sum: ¦null",
        )],
    ),
    Case(
        "listed file elsewhere",
        codes::PATH_LEAVES_BUNDLE,
        &[(
            "\nsystem information:",
            "veracity: {schema: '1.0', files: {¦../x: {size: 1, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}}}\nsystem information:",
        )],
    ),
    Case(
        "listed size is text",
        codes::YAML_WRONG_KIND,
        &[(
            "\nsystem information:",
            "veracity: {schema: '1.0', files: {x: {size: ¦big, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}}}\nsystem information:",
        )],
    ),
    Case(
        "one file listed twice",
        codes::YAML_DUPLICATE_KEY,
        &[(
            "\nsystem information:",
            "veracity: {schema: '1.0', files: {x: {size: 1, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}, ¦./x: {size: 1, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}}}\nsystem information:",
        )],
    ),
];

#[test]
fn bad_models_and_paths() {
    check(REFUSED, Severity::Error);
}
