//! A proof as Markdown.

use veracity_report::markdown::proof as markdown;
use veracity_results::{Origin, Verdict};

use crate::proofs::{clean, everything, node, noticed, proof, rollout};

#[test]
fn a_proof_has_a_title_the_answer_and_a_row_for_each_verdict() {
    let text = markdown(&clean());
    assert!(text.starts_with("# Proof: "), "{text}");
    assert!(text.contains("**proved**: 4 proved, 0 disproved, 0 not comparable"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, clean().rows().len(), "{text}");
}

#[test]
fn the_worst_comes_first_and_says_why() {
    let found = everything();
    let text = markdown(&found);
    let verdicts: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split(" | ").nth(2).unwrap())
        .collect();
    let rank = |verdict: &&str| match *verdict {
        "not comparable" => 2,
        "disproved" => 1,
        "proved" => 0,
        other => panic!("{other}"),
    };
    let worst = |verdict: Verdict| match verdict {
        Verdict::Proved | Verdict::Conditional => 0,
        Verdict::Disproved => 1,
        Verdict::NotComparable => 2,
    };
    assert!(verdicts.len() > 3, "{text}");
    // In the order in which verdicts are worse than each other.
    let mut order: Vec<Verdict> = found.rows().iter().map(|row| row.verdict).collect();
    order.sort();
    order.reverse();
    let expected: Vec<i32> = order.into_iter().map(worst).collect();
    assert_eq!(verdicts.iter().map(rank).collect::<Vec<_>>(), expected, "{text}");
}

#[test]
fn what_tracing_noticed_is_listed() {
    let text = markdown(&noticed());
    for expected in [
        "4 proved, 0 disproved, 0 not comparable, 2 warnings",
        "- `policy`: 5 of 6 recorded passes were kept",
        "- warning VER0911 at `me/walk.py:12`: a value of ",
        "- error VER0912 at `me/walk.py:9`: a tensor changes",
        "- warning VER0917: one value is read",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}

#[test]
fn what_says_nothing_about_the_code_says_so() {
    let mut found = clean();
    assert!(!markdown(&found).contains("nothing about the Python code"));
    found.reference.origin = Origin::Runtime;
    assert!(markdown(&found).contains("nothing about the Python code"));
}

#[test]
fn nothing_compared_is_said() {
    let empty = proof(vec![node("policy", Vec::new())], rollout(Vec::new()));
    let text = markdown(&empty);
    assert!(!text.contains("**disproved**"), "{text}");
    assert!(text.contains("0 proved"), "{text}");
}
