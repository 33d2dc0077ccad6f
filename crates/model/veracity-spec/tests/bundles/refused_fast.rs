//! Hostile descriptions are refused at once, whatever they ask for.

use std::time::{Duration, Instant};

use veracity_diag::{Refusal, codes};
use veracity_spec::Description;

use crate::common::{YAML, pieces};

/// Generous for a slow machine and an unoptimised build; every bomb here would take minutes or
/// all memory if it went off.
const LIMIT: Duration = Duration::from_secs(2);

fn refused_fast(name: &str, yaml: impl Into<Vec<u8>>) -> Refusal {
    let start = Instant::now();
    let refusal = Description::from_yaml("bomb.yaml", yaml.into()).unwrap_err();
    assert!(start.elapsed() < LIMIT, "{name} took {:?}", start.elapsed());
    refusal
}

#[test]
fn bombs_are_refused_at_once() {
    let tenfold = |level: usize| vec![format!("*a{level}"); 10].join(", ");
    let aliases = pieces(40, |level| format!("a{}: &a{0} [{}]\n", level + 1, tenfold(level)));
    let chain = pieces(200, |level| format!("a{}: &a{0} [*a{level}]\n", level + 1));
    let text = format!("a: &a '{}'\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(1000));
    for (name, yaml, code) in [
        ("alias bomb", format!("a0: &a0 [x, x]\n{aliases}"), codes::YAML_TOO_COMPLEX),
        ("chain of aliases", format!("a0: &a0 [x]\n{chain}"), codes::YAML_TOO_COMPLEX),
        ("alias bomb of text", text, codes::YAML_TOO_COMPLEX),
        ("deep lists", "[".repeat(100_000), codes::YAML_TOO_COMPLEX),
        ("deep mappings", "{a: ".repeat(100_000), codes::YAML_TOO_COMPLEX),
        ("deep blocks", "- ".repeat(100_000), codes::YAML_TOO_COMPLEX),
        ("many values", "- x\n".repeat(300_000), codes::YAML_TOO_COMPLEX),
        ("one long line", "x".repeat(15 << 20), codes::YAML_WRONG_KIND),
        ("large file", YAML.repeat(20_000), codes::FILE_TOO_LARGE),
    ] {
        let refusal = refused_fast(name, yaml);
        assert_eq!(refusal.first_error().code, code, "{name}: {refusal}");
    }
    let not_utf8 = [YAML.as_bytes(), &[0xff]].concat();
    assert_eq!(refused_fast("not UTF-8", not_utf8).first_error().code, codes::YAML_NOT_UTF8);
}

/// Nodes with one input and one output each, and this in `data_flow`.
fn many_nodes(count: usize, data_flow: &str) -> String {
    let node = |n: usize| {
        format!(
            "  n{n}:
    inputs: [{{name: x, dtype: int8, shape: []}}]
    outputs: [{{name: y, dtype: int8, shape: []}}]
    parameters: {{backend: null, model_path: null}}
"
        )
    };
    let models = pieces(count, node);
    format!(
        "models:\n{models}pipeline:\n  inputs: {{}}\n  outputs: {{n0: [y]}}\n  data_flow:\n{data_flow}\
         system information: {{leapp config version: '1.3'}}\n"
    )
}

#[test]
fn many_nodes_and_edges_are_checked_in_linear_time() {
    let count = 5_000;
    let ring = pieces(count, |n| format!("    n{n}/y: [n{}/x]\n", (n + 1) % count));
    let refusal = refused_fast("ring", many_nodes(count, &ring));
    let finding = refusal.first_error();
    assert_eq!(finding.code, codes::FLOW_CYCLE, "{refusal}");
    assert!(finding.message.contains("n4999 → n0 → n1"), "{finding}");
    assert!(finding.message.ends_with("→ … → n4999"), "{finding}");

    let lost = pieces(count, |n| format!("    n{n}/z: [m{n}/x]\n"));
    let refusal = refused_fast("unknown ends", many_nodes(count, &lost));
    assert_eq!(refusal.first_error().code, codes::EDGE_UNKNOWN_END);
}

#[test]
fn ports_may_not_ask_for_all_memory_together() {
    let ports = pieces(20, |n| format!("    - {{name: p{n}, dtype: uint8, shape: [400000000]}}\n"));
    let yaml = YAML.replacen("    - name: image\n", &(ports + "    - name: image\n"), 1);
    let refusal = refused_fast("big ports", yaml);
    let large =
        refusal.diagnostics().iter().filter(|finding| finding.code == codes::SHAPE_TOO_LARGE);
    assert_eq!(large.count(), 1, "said once, at the port that is one too many");
}
