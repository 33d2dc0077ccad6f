//! Hostile descriptions are refused at once, whatever they ask for.

mod common;

use std::time::{Duration, Instant};

use common::YAML;
use veracity_diag::codes;
use veracity_spec::Description;

/// Generous for a slow machine and an unoptimised build; every bomb here would take minutes or
/// all memory if it went off.
const LIMIT: Duration = Duration::from_secs(2);

#[test]
fn bombs_are_refused_at_once() {
    let aliases: String = (1..40)
        .map(|level| {
            format!("a{level}: &a{level} [{}]\n", vec![format!("*a{}", level - 1); 10].join(", "))
        })
        .collect();
    let text_bomb = format!("a: &a '{}'\nb: [{}]\n", "x".repeat(1 << 20), "*a, ".repeat(1000));
    let chain: String =
        (1..200).map(|level| format!("a{level}: &a{level} [*a{}]\n", level - 1)).collect();
    let base = YAML.as_bytes().to_vec();
    let padded = [base.clone(), b"# padding\n".repeat(2 << 20)].concat();
    let not_utf8 = [base, vec![0xff]].concat();
    for (name, yaml, code) in [
        ("alias bomb", format!("a0: &a0 [x, x]\n{aliases}").into_bytes(), codes::YAML_TOO_COMPLEX),
        ("alias bomb of text", text_bomb.into_bytes(), codes::YAML_TOO_COMPLEX),
        (
            "deep chain of aliases",
            format!("a0: &a0 [x]\n{chain}").into_bytes(),
            codes::YAML_TOO_COMPLEX,
        ),
        ("deep lists", b"[".repeat(100_000), codes::YAML_TOO_COMPLEX),
        ("deep mappings", b"{a: ".repeat(100_000), codes::YAML_TOO_COMPLEX),
        ("deep blocks", b"- ".repeat(100_000), codes::YAML_TOO_COMPLEX),
        ("many values", b"- x\n".repeat(300_000), codes::YAML_TOO_COMPLEX),
        ("large file", padded, codes::FILE_TOO_LARGE),
        ("not UTF-8", not_utf8, codes::YAML_NOT_UTF8),
    ] {
        let start = Instant::now();
        let refusal = Description::from_yaml("bomb.yaml", yaml).unwrap_err();
        assert_eq!(refusal.first_error().code, code, "{name}: {refusal}");
        assert!(start.elapsed() < LIMIT, "{name} took {:?}", start.elapsed());
    }
}

#[test]
fn many_nodes_and_edges_are_checked_in_linear_time() {
    let count = 5_000;
    let mut yaml = String::from("models:\n");
    for node in 0..count {
        yaml += &format!(
            "  n{node}: {{inputs: [{{name: x, dtype: int8, shape: []}}], outputs: [{{name: y, dtype: int8, shape: []}}], parameters: {{backend: null, model_path: null}}}}\n"
        );
    }
    yaml += "pipeline:\n  inputs: {}\n  outputs: {}\n  data_flow:\n";
    for node in 0..count {
        yaml += &format!("    n{node}/y: [n{}/x]\n", (node + 1) % count);
    }
    yaml += "system information: {leapp config version: '1.3'}\n";
    let start = Instant::now();
    let refusal = Description::from_yaml("ring.yaml", yaml.into_bytes()).unwrap_err();
    assert!(start.elapsed() < LIMIT, "took {:?}", start.elapsed());
    let finding = refusal.first_error();
    assert_eq!(finding.code, codes::FLOW_CYCLE, "{refusal}");
    assert!(
        finding.message.ends_with("n4999 → n0 → n1 → n2 → n3 → n4 → n5 → … → n4999")
            || finding.message.contains("→ … →"),
        "{finding}"
    );
}

#[test]
fn ports_may_not_ask_for_all_memory_together() {
    let ports: String = (0..20)
        .map(|n| format!("    - {{name: p{n}, dtype: uint8, shape: [400000000]}}\n"))
        .collect();
    let yaml = YAML.replacen("    - name: image\n", &format!("{ports}    - name: image\n"), 1);
    let refusal = Description::from_yaml("big.yaml", yaml.into_bytes()).unwrap_err();
    let large =
        refusal.diagnostics().iter().filter(|finding| finding.code == codes::SHAPE_TOO_LARGE);
    assert_eq!(large.count(), 1, "said once, at the port that is one too many");
}
