//! Every way in which a description can be wrong is refused with its code at its place.

mod keys;
mod models;
mod ports;
mod wiring;
mod yaml;

use crate::common::{YAML, pieces, rendered, split_mark};
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
    let ports = pieces(500, |n| format!("    - {{name: p{n}, dtype: x, shape: []}}\n"));
    let yaml = YAML.replacen("    - name: image\n", &(ports + "    - name: image\n"), 1);
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
