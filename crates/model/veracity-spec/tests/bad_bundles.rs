//! Every way in which a description can be wrong is refused with its code at its place.

mod common;

use common::{YAML, rendered, split_mark};
use veracity_diag::{Code, Diagnostic, Severity, codes};
use veracity_spec::Description;

fn findings(yaml: &str) -> Vec<Diagnostic> {
    match Description::from_yaml("pick.yaml", yaml.as_bytes().to_vec()) {
        Ok(description) => description.warnings,
        Err(refusal) => refusal.into_diagnostics(),
    }
}

#[test]
fn the_bundle_that_the_cases_spoil_is_sound() {
    assert_eq!(rendered(&findings(YAML)), "");
}

/// What a case changes: each text is replaced by the other, once. `¦` marks where the finding must
/// be; without it the finding has no position.
type Edits = &'static [(&'static str, &'static str)];

struct Case(&'static str, Code, Edits);

fn check(cases: &[Case], severity: Severity) {
    for Case(name, code, edits) in cases {
        let mut yaml = YAML.to_owned();
        for (from, to) in *edits {
            assert!(yaml.contains(from), "{name}: {from:?} is not in the text");
            yaml = yaml.replacen(from, to, 1);
        }
        let (yaml, position) = split_mark(&yaml);
        let found = findings(&yaml);
        let hit = found.iter().any(|finding| {
            finding.code == *code
                && finding.severity == severity
                && finding.place.line.zip(finding.place.column) == position
                && finding.place.file.as_deref() == Some("pick.yaml")
        });
        assert!(hit, "{name}: wanted {code} at {position:?}, found\n{}", rendered(&found));
        // One cause, one finding: a case is about a single mistake.
        let errors = found.iter().filter(|finding| finding.severity == Severity::Error).count();
        let wanted = usize::from(severity == Severity::Error);
        assert_eq!(errors, wanted, "{name}: more than was asked for\n{}", rendered(&found));
    }
}

#[test]
fn broken_yaml() {
    use codes::*;
    check(
        &[
            Case(
                "bad syntax",
                YAML_SYNTAX,
                &[
                    ("[1, 6]\n", "[1, 6\n"),
                    ("type: tensor\n      kind", "type¦: tensor\n      kind"),
                ],
            ),
            Case(
                "tab as indent",
                YAML_SYNTAX,
                &[("    inputs:\n    - name: image", "\t¦inputs:\n    - name: image")],
            ),
            Case(
                "duplicate key",
                YAML_DUPLICATE_KEY,
                &[("      type: tensor\n", "      type: tensor\n      ¦dtype: int8\n")],
            ),
            Case(
                "duplicate node",
                YAML_DUPLICATE_KEY,
                &[("\npipeline:", "  ¦encoder: {}\n\npipeline:")],
            ),
            Case("unknown anchor", YAML_UNKNOWN_ANCHOR, &[("shape: [1, 6]", "shape: ¦*none")]),
            Case(
                "two documents",
                YAML_NOT_ONE_DOCUMENT,
                &[("\nsystem information:", "\n¦---\nsystem information:")],
            ),
            Case(
                "python object",
                YAML_UNSUPPORTED,
                &[("frequency: 50", "frequency: 50\n    extra: ¦!!python/tuple [1]")],
            ),
            Case("custom scalar tag", YAML_UNSUPPORTED, &[("frequency: 50", "frequency: ¦!hz 50")]),
            Case(
                "merge key",
                YAML_UNSUPPORTED,
                &[("frequency: 50", "frequency: 50\n    ¦<<: {a: 1}")],
            ),
            Case(
                "list as key",
                YAML_UNSUPPORTED,
                &[("frequency: 50", "frequency: 50\n    ¦[a]: 1")],
            ),
            Case(
                "value inside itself",
                YAML_UNSUPPORTED,
                &[("frequency: 50", "frequency: 50\n    loop: &l [¦*l]")],
            ),
            Case(
                "huge number",
                YAML_WRONG_KIND,
                &[(
                    "frequency: 50",
                    "frequency: 50\n    seed: ¦999999999999999999999999999999999999999999",
                )],
            ),
        ],
        Severity::Error,
    );
}

#[test]
fn missing_and_misplaced_keys() {
    use codes::*;
    check(
        &[
            Case("no models", YAML_MISSING_KEY, &[("models:", "¦modles:")]),
            Case(
                "no pipeline",
                YAML_MISSING_KEY,
                &[("models:", "¦models:"), ("pipeline:", "piepline:")],
            ),
            Case(
                "no system information",
                YAML_MISSING_KEY,
                &[("models:", "¦models:"), ("system information:", "system:")],
            ),
            Case(
                "no inputs",
                YAML_MISSING_KEY,
                &[("  encoder:\n    inputs:", "  ¦encoder:\n    input:")],
            ),
            Case(
                "no parameters",
                YAML_MISSING_KEY,
                &[("  encoder:\n", "  ¦encoder:\n"), ("    parameters:", "    params:")],
            ),
            Case("no port name", YAML_MISSING_KEY, &[("- name: image", "- ¦title: image")]),
            Case(
                "no dtype",
                YAML_MISSING_KEY,
                &[("- name: image\n      dtype", "- ¦name: image\n      type_")],
            ),
            Case(
                "no shape",
                YAML_MISSING_KEY,
                &[("- name: image", "- ¦name: image"), ("      shape: [1, 6]\n", "")],
            ),
            Case(
                "no backend",
                YAML_MISSING_KEY,
                &[("  encoder:\n", "  ¦encoder:\n"), ("      backend: onnx\n", "")],
            ),
            Case(
                "no model path",
                YAML_MISSING_KEY,
                &[("  encoder:\n", "  ¦encoder:\n"), ("      model_path: encoder.onnx\n", "")],
            ),
            Case(
                "no md5",
                YAML_MISSING_KEY,
                &[
                    ("  encoder:\n", "  ¦encoder:\n"),
                    ("      md5sum: 0123456789abcdef0123456789abcdef\n", ""),
                ],
            ),
            Case(
                "no sha256",
                YAML_MISSING_KEY,
                &[("  encoder:\n", "  ¦encoder:\n"), ("      sha256sum:", "      sha256:")],
            ),
            Case(
                "no pipeline outputs",
                YAML_MISSING_KEY,
                &[("  configs:", "  ¦configs:"), ("  outputs:\n    policy: [action]\n", "")],
            ),
            Case(
                "no pipeline inputs",
                YAML_MISSING_KEY,
                &[("  configs:", "  ¦configs:"), ("  inputs:\n    encoder: [image]\n", "")],
            ),
            Case(
                "models is a list",
                YAML_WRONG_KIND,
                &[("models:\n  encoder:", "models:\n  ¦- a\nold:\n  encoder:")],
            ),
            Case(
                "pipeline is text",
                YAML_WRONG_KIND,
                &[("pipeline:\n", "pipeline: ¦none\nold:\n")],
            ),
            Case("node is nothing", YAML_WRONG_KIND, &[("\npipeline:", "  idle¦:\n\npipeline:")]),
            Case(
                "ports are a mapping",
                YAML_WRONG_KIND,
                &[(
                    "    outputs:\n    - name: code\n",
                    "    outputs: ¦{}\n    old:\n    - name: code\n",
                )],
            ),
            Case("port name is a number", YAML_WRONG_KIND, &[("- name: image", "- name: ¦12")]),
            Case("port name is a bool", YAML_WRONG_KIND, &[("- name: image", "- name: ¦on")]),
            Case(
                "node name is a number",
                YAML_WRONG_KIND,
                &[("\npipeline:", "  ¦7: {inputs: [], outputs: [], parameters: {}}\n\npipeline:")],
            ),
            Case("targets are text", YAML_WRONG_KIND, &[("[policy/code]", "¦policy/code")]),
            Case("kind is a list", YAML_WRONG_KIND, &[("state/body/pose", "¦[a]")]),
            Case("frequency is text", YAML_WRONG_KIND, &[("frequency: 50", "frequency: ¦fast")]),
        ],
        Severity::Error,
    );
}

#[test]
fn versions() {
    use codes::*;
    check(
        &[
            Case(
                "no version",
                VERSION_MISSING,
                &[("  leapp config version: '1.3'\n  os", "  ¦os")],
            ),
            Case("another major", VERSION_UNSUPPORTED, &[("'1.3'", "¦'2.0'")]),
            Case("not a version", VERSION_UNSUPPORTED, &[("'1.3'", "¦latest")]),
            Case(
                "another schema",
                VERSION_UNSUPPORTED,
                &[(
                    "\nsystem information:",
                    "veracity: {schema: ¦'2.0', files: {}}\nsystem information:",
                )],
            ),
        ],
        Severity::Error,
    );
    check(
        &[
            Case("a later minor", VERSION_UNSUPPORTED, &[("'1.3'", "¦'1.4'")]),
            Case(
                "a later schema",
                VERSION_UNSUPPORTED,
                &[(
                    "\nsystem information:",
                    "veracity: {schema: ¦'1.1', files: {}}\nsystem information:",
                )],
            ),
        ],
        Severity::Warning,
    );
}

#[test]
fn bad_nodes_and_ports() {
    use codes::*;
    check(
        &[
            Case(
                "no nodes",
                BUNDLE_EMPTY,
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
                NODE_NAME_INVALID,
                &[(
                    "\npipeline:",
                    "  ¦a/b: {inputs: [], outputs: [], parameters: {backend: null, model_path: null}}\n\npipeline:",
                )],
            ),
            Case(
                "empty node name",
                NODE_NAME_INVALID,
                &[(
                    "\npipeline:",
                    "  ¦'': {inputs: [], outputs: [], parameters: {backend: null, model_path: null}}\n\npipeline:",
                )],
            ),
            Case(
                "control character in a port name",
                NODE_NAME_INVALID,
                &[("- name: image", "- name: ¦\"im\\eage\""), ("[image]", "[\"im\\eage\"]")],
            ),
            Case(
                "two inputs of one name",
                DUPLICATE_PORT,
                &[(
                    "    outputs:\n    - name: code",
                    "    - name: ¦image\n      dtype: int8\n      shape: []\n    outputs:\n    - name: code",
                )],
            ),
            Case("unknown dtype", DTYPE_UNKNOWN, &[("dtype: float32", "dtype: ¦flaot32")]),
            Case("complex dtype", DTYPE_UNKNOWN, &[("dtype: float32", "dtype: ¦complex64")]),
            Case("negative size", SHAPE_INVALID, &[("[1, 6]", "[1, ¦-6]")]),
            Case("symbolic size", SHAPE_INVALID, &[("[1, 6]", "[¦batch, 6]")]),
            Case("fractional size", SHAPE_INVALID, &[("[1, 6]", "[1, ¦6.0]")]),
            Case("shape is a number", SHAPE_INVALID, &[("[1, 6]", "¦6")]),
            Case("shape is bad text", SHAPE_INVALID, &[("[1, 6]", "¦'[1, six]'")]),
            Case("one gigabyte", SHAPE_TOO_LARGE, &[("[1, 6]", "¦[1000000000]")]),
            Case("overflowing shape", SHAPE_TOO_LARGE, &[("[1, 6]", "¦[4611686018427387904, 8]")]),
            Case(
                "number beyond 64 bits",
                SHAPE_TOO_LARGE,
                &[("[1, 6]", "¦[99999999999999999999999]")],
            ),
            Case("empty but huge", SHAPE_TOO_LARGE, &[("[1, 6]", "¦[0, 4611686018427387904]")]),
            Case(
                "temporal period of nothing",
                FREQUENCY_INVALID,
                &[("kind: state", "temporal_period_ms: ¦0\n      kind: state")],
            ),
            Case("frequency of nothing", FREQUENCY_INVALID, &[("frequency: 50", "frequency: ¦0")]),
            Case("infinite frequency", FREQUENCY_INVALID, &[("frequency: 50", "frequency: ¦.inf")]),
        ],
        Severity::Error,
    );
    check(
        &[
            Case(
                "too few element names",
                ELEMENT_NAMES_MISMATCH,
                &[("[[x, 'y', z, qx, qy, qz]]", "¦[[x]]")],
            ),
            Case(
                "names for too many axes",
                ELEMENT_NAMES_MISMATCH,
                &[("[[x, 'y', z, qx, qy, qz]]", "¦[null, null, null]")],
            ),
            Case(
                "element names that are numbers",
                ELEMENT_NAMES_MISMATCH,
                &[("[[x, 'y', z, qx, qy, qz]]", "¦[[1, 2, 3, 4, 5, 6]]")],
            ),
            Case("not a tensor", YAML_WRONG_KIND, &[("type: tensor", "type: ¦scalar")]),
            Case(
                "no initial values",
                INITIAL_VALUE_MISSING,
                &[
                    ("  initial_values: start.safetensors\n", ""),
                    ("[encoder/memory_in]", "[¦encoder/memory_in]"),
                ],
            ),
        ],
        Severity::Warning,
    );
}

#[test]
fn bad_models_and_paths() {
    use codes::*;
    check(
        &[
            Case("unknown backend", BACKEND_UNKNOWN, &[("backend: onnx", "backend: ¦onxn")]),
            Case(
                "backend of another runtime",
                BACKEND_UNKNOWN,
                &[("backend: onnx", "backend: ¦trt")],
            ),
            Case("model without backend", BACKEND_UNKNOWN, &[("backend: onnx", "backend: ¦null")]),
            Case(
                "backend without model",
                MODEL_ABSENT,
                &[("model_path: encoder.onnx", "model_path: ¦null")],
            ),
            Case("path that leaves", PATH_LEAVES_BUNDLE, &[("encoder.onnx", "¦../encoder.onnx")]),
            Case("path with a detour", PATH_LEAVES_BUNDLE, &[("encoder.onnx", "¦a/../../x.onnx")]),
            Case("path with backslashes", PATH_LEAVES_BUNDLE, &[("encoder.onnx", "¦..\\x.onnx")]),
            Case("absolute path", PATH_ABSOLUTE, &[("encoder.onnx", "¦/etc/passwd")]),
            Case("drive letter", PATH_ABSOLUTE, &[("encoder.onnx", "¦C:/x.onnx")]),
            Case("NUL in a path", PATH_LEAVES_BUNDLE, &[("encoder.onnx", "¦\"a\\0b\"")]),
            Case("path of a folder", PATH_NOT_A_FILE, &[("encoder.onnx", "¦models/")]),
            Case(
                "initial values elsewhere",
                PATH_LEAVES_BUNDLE,
                &[("start.safetensors", "¦../start.safetensors")],
            ),
            Case(
                "hash too short",
                HASH_MALFORMED,
                &[("md5sum: 0123456789abcdef0123456789abcdef", "md5sum: ¦0123")],
            ),
            Case(
                "hash is nothing",
                HASH_MALFORMED,
                &[(
                    "sha256sum: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                    "sha256sum: ¦null",
                )],
            ),
            Case(
                "listed file elsewhere",
                PATH_LEAVES_BUNDLE,
                &[(
                    "\nsystem information:",
                    "veracity: {schema: '1.0', files: {¦../x: {size: 1, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}}}\nsystem information:",
                )],
            ),
            Case(
                "listed size is text",
                YAML_WRONG_KIND,
                &[(
                    "\nsystem information:",
                    "veracity: {schema: '1.0', files: {x: {size: ¦big, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}}}\nsystem information:",
                )],
            ),
            Case(
                "one file listed twice",
                YAML_DUPLICATE_KEY,
                &[(
                    "\nsystem information:",
                    "veracity: {schema: '1.0', files: {x: {size: 1, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}, ¦./x: {size: 1, sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef}}}\nsystem information:",
                )],
            ),
        ],
        Severity::Error,
    );
}

#[test]
fn bad_wiring() {
    use codes::*;
    check(
        &[
            Case("edge end without a slash", EDGE_MALFORMED, &[("[policy/code]", "[¦policy]")]),
            Case(
                "edge end with two slashes",
                EDGE_MALFORMED,
                &[("encoder/code:", "¦encoder/code/0:")],
            ),
            Case(
                "unknown source node",
                EDGE_UNKNOWN_END,
                &[("    encoder/code:", "    ¦encodr/code:")],
            ),
            Case(
                "unknown source port",
                EDGE_UNKNOWN_END,
                &[("    encoder/code:", "    ¦encoder/cod:")],
            ),
            Case(
                "source is an input",
                EDGE_UNKNOWN_END,
                &[("    encoder/code:", "    ¦encoder/image:")],
            ),
            Case("unknown target port", EDGE_UNKNOWN_END, &[("[policy/code]", "[¦policy/cde]")]),
            Case("target is an output", EDGE_UNKNOWN_END, &[("[policy/code]", "[¦policy/action]")]),
            Case(
                "shapes differ",
                EDGE_MISMATCH,
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
                EDGE_MISMATCH,
                &[
                    ("- name: code\n      dtype: float32", "- name: code\n      dtype: float64"),
                    ("[policy/code]", "[¦policy/code]"),
                ],
            ),
            Case(
                "fed twice by one source",
                EDGE_TWICE,
                &[("[policy/code]", "[policy/code, ¦policy/code]")],
            ),
            Case(
                "fed by data and feedback",
                EDGE_TWICE,
                &[(
                    "[encoder/memory_in]",
                    "[encoder/memory_in]\n    encoder/code: [¦encoder/memory_in]",
                )],
            ),
            Case(
                "circle",
                FLOW_CYCLE,
                &[(
                    "  feedback_flow:\n    policy/memory: [encoder/memory_in]\n",
                    "    policy/memory: [¦encoder/memory_in]\n",
                )],
            ),
            Case(
                "node feeds itself",
                FLOW_CYCLE,
                &[
                    ("[policy/code]", "[policy/code, ¦encoder/memory_in]"),
                    ("    policy/memory: [encoder/memory_in]", "    {}"),
                    ("[action]", "[action, memory]"),
                ],
            ),
            Case(
                "backwards",
                FLOW_ORDER,
                &[
                    ("    encoder/code: [policy/code]\n  feedback_flow:\n", ""),
                    (
                        "    policy/memory: [encoder/memory_in]",
                        "    policy/memory: [¦encoder/memory_in]",
                    ),
                    ("encoder: [image]", "encoder: [image]\n    policy: [code]"),
                    ("policy: [action]", "policy: [action]\n    encoder: [code]"),
                ],
            ),
            Case(
                "feedback forwards",
                FEEDBACK_FORWARD,
                &[
                    ("  data_flow:\n    encoder/code: [policy/code]\n", ""),
                    (
                        "[encoder/memory_in]\n",
                        "[encoder/memory_in]\n    encoder/code: [¦policy/code]\n",
                    ),
                ],
            ),
            Case(
                "unknown pipeline node",
                PIPELINE_PORT_UNKNOWN,
                &[("    encoder: [image]", "    encode: [¦image]")],
            ),
            Case("unknown pipeline input", PIPELINE_PORT_UNKNOWN, &[("[image]", "[¦imgae]")]),
            Case(
                "pipeline output is an input",
                PIPELINE_PORT_UNKNOWN,
                &[("[action]", "[action, ¦code]")],
            ),
            Case("pipeline input listed twice", DUPLICATE_PORT, &[("[image]", "[image, ¦image]")]),
            Case(
                "pipeline output listed twice",
                DUPLICATE_PORT,
                &[("[action]", "[action, ¦action]")],
            ),
            Case(
                "pipeline input that is fed",
                PIPELINE_INPUT_ALSO_FED,
                &[("encoder: [image]", "encoder: [image]\n    policy: [¦code]")],
            ),
            Case(
                "input without a source",
                INPUT_UNFED,
                &[("- name: image", "- name: ¦image"), ("    encoder: [image]", "    {}")],
            ),
            Case(
                "output without a use",
                OUTPUT_UNROUTED,
                &[("- name: action", "- name: ¦action"), ("    policy: [action]", "    {}")],
            ),
        ],
        Severity::Error,
    );
}

#[test]
fn positions_count_characters() {
    let wide = YAML
        .replace("os: Debian GNU/Linux 12", "os: Debian\n  größe: 1 # Ωμέγα 𝄞")
        .replace("models:\n", "# 𝄞𝄞 Größe\r\nmodels: # é\r\n");
    let (yaml, position) = split_mark(&wide.replacen("[1, 6]", "['é𝄞', ¦-6]", 1));
    let found = findings(&yaml);
    assert_eq!(found.len(), 2, "{}", rendered(&found));
    assert_eq!(found[1].place.line.zip(found[1].place.column), position);
    let snippet = found[1].place.snippet.as_ref().unwrap();
    assert_eq!(snippet.text, "      shape: ['é𝄞', -6]");
    assert_eq!((snippet.start, snippet.length), (20, 2));
}

#[test]
fn positions_survive_directives_and_byte_order_marks() {
    let yaml = format!("\u{feff}%FÖÖ bär\n---\n{}", YAML.replacen("[1, 6]", "[1, ¦-6]", 1));
    let (yaml, position) = split_mark(&yaml);
    let found = findings(&yaml);
    assert_eq!(found[0].place.line.zip(found[0].place.column), position, "{}", rendered(&found));
    assert_eq!(found[0].place.snippet.as_ref().unwrap().start, 17);
}

#[test]
fn an_empty_file_is_not_a_document() {
    for yaml in ["", "# nothing\n"] {
        let found = findings(yaml);
        assert_eq!(found[0].code, codes::YAML_NOT_ONE_DOCUMENT, "{yaml:?}");
        assert_eq!(found[0].place.line, None);
    }
    assert_eq!(findings("- a\n")[0].code, codes::YAML_WRONG_KIND);
}

#[test]
fn the_list_of_problems_has_an_end() {
    let ports: String =
        (0..500).map(|n| format!("    - {{name: p{n}, dtype: x, shape: []}}\n")).collect();
    let yaml = YAML.replacen("    - name: image\n", &format!("{ports}    - name: image\n"), 1);
    let found = findings(&yaml);
    assert_eq!(found.len(), 201);
    assert_eq!(found[200].code, codes::YAML_TOO_MANY_PROBLEMS);
    assert_eq!(found[200].message, "800 more problems are not listed");
}

#[test]
fn all_problems_of_a_file_are_shown_at_once() {
    let yaml = YAML
        .replacen("dtype: float32", "dtype: flaot32", 1)
        .replacen("[1, 6]", "[1, -6]", 1)
        .replacen("encoder.onnx", "../encoder.onnx", 1)
        .replacen("backend: jit", "backend: jti", 1)
        .replacen("[policy/code]", "[policy/cdoe]", 1)
        .replacen("frequency: 50", "frequency: -1", 1)
        .replacen("leapp config version: '1.3'", "leapp config version: '1.7'", 1);
    insta::assert_snapshot!(rendered(&findings(&yaml)), @r#"
    pick.yaml:5:14: error[VER0305]: dtype "flaot32" is not known
      |       dtype: flaot32
      |              ^^^^^^^
      hint: did you mean `float32`?
    pick.yaml:6:18: error[VER0306]: a size cannot be -6
      |       shape: [1, -6]
      |                  ^^
      hint: shapes are fixed at export, such as `[1, 48]`; `[]` is a scalar
    pick.yaml:20:19: error[VER0201]: path "../encoder.onnx" leads out of the bundle
      |       model_path: ../encoder.onnx
      |                   ^^^^^^^^^^^^^^^
      hint: copy the file into the bundle (LEAPP: `copy_original_model=True`)
    pick.yaml:45:16: error[VER0308]: backend "jti" is not one of jit, onnx, pt2
      |       backend: jti
      |                ^^^
      hint: did you mean `jit`?
    pick.yaml:49:16: error[VER0324]: `frequency` must be more than 0, not -1
      |     frequency: -1
      |                ^^
    pick.yaml:51:20 (policy/cdoe): error[VER0311]: node "policy" has no input "cdoe"
      |     encoder/code: [policy/cdoe]
      |                    ^^^^^^^^^^^
      hint: did you mean `code`?
    pick.yaml:61:25: warning[VER0302]: format version 1.7 is not known; 1.1 to 1.3 are
      |   leapp config version: '1.7'
      |                         ^^^^^
      hint: it is read as 1.3; what is new in it is not checked
    "#);
}
