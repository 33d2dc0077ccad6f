//! A transformation as a page.

use veracity_report::html::{
    self, Drawing, DrawnBox, DrawnLine, DrawnText, Rewritten, Window, Windows,
};
use veracity_results::{RewriteChecks, RewriteLog, RewriteRecord};

use crate::proofs::clean;
use crate::rewrites::{checks, log};

const ATTACK: &str = "\"><script>alert('x')</script>\u{202e}";

/// The log of the files that must stay readable, with everything in it.
fn golden() -> RewriteLog {
    let text = include_str!("../../../../base/veracity-results/tests/golden/rewrites-1.0.json");
    serde_json::from_str(text).unwrap()
}

/// What went and what came, without pictures.
fn windows(log: &RewriteLog) -> Windows {
    let window = |record: &RewriteRecord| {
        let (before, after) = (record.removed.clone(), record.added.clone());
        Window { before, after, shapes: (None, None) }
    };
    Windows { shapes: Vec::new(), rewrites: log.records.iter().map(window).collect() }
}

fn page(log: &RewriteLog, checks: Option<&RewriteChecks>) -> String {
    html::rewrites(&Rewritten { name: "net.onnx", log, checks, windows: &windows(log) })
}

#[test]
fn the_answer_and_its_coverage_stand_at_the_top_in_one_sentence() {
    let unchanged =
        RewriteLog { records: Vec::new(), rejected: Vec::new(), nodes_after: 3, ..log() };
    for (log, checks, class, sentence) in [
        (
            log(),
            Some(checks("proved")),
            "proved",
            "proved: 1 of 1 rewrite proved, 1 taken back, on the inputs that were tried; 3 nodes became 2 \
             in 1 round; checked on ort 1.31.1 (local).",
        ),
        (
            log(),
            Some(checks("not_comparable")),
            "not_comparable",
            "not comparable: 0 of 1 rewrite proved, 1 not comparable, 1 taken back, on the inputs that were \
             tried; 3 nodes became 2 in 1 round; checked on ort 1.31.1 (local).",
        ),
        (
            log(),
            None,
            "not_comparable",
            "Not checked: nothing is known about 1 rewrite; 3 nodes became 2 in 1 round.",
        ),
        (unchanged, None, "proved", "Unchanged: its 3 nodes stay as they are."),
    ] {
        let (word, rest) = sentence.split_once(':').unwrap();
        let expected =
            format!("<p class=\"verdict {class}\"><strong>{word}</strong><span>:{rest}</span></p>");
        let page = page(&log, checks.as_ref());
        let start = page.find("<h1").unwrap();
        assert!(page.contains(&expected), "{sentence}: {}", &page[start..][..400]);
    }
}

#[test]
fn everything_that_a_log_says_is_in_the_page() {
    let page = page(&golden(), Some(&checks("proved")));
    for expected in [
        "<code>m = <b>Mul</b>(a, w)</code> <span class=\"quiet\">mul</span>",
        "<code>m = <b>com.example::Scale</b>(a, v)</code>",
        "<li>inputs: <code>x, a</code> became <code>x, b</code></li>",
        "<li>attribute axis: nothing became <code>1</code></li>",
        "<p>all of it is constant</p>",
        "fold-constants version 2, exact-real",
        "v (float32[2]) from w",
        "w is gone; z is a",
        "off by 2",
        "its input is not constant",
        "<dt>decided by</dt><dd>same bits</dd>",
        "veracity transform ORIGINAL.onnx -o net.onnx --passes fold-constants --validate local --seed 0",
        "veracity audit net.onnx --original ORIGINAL.onnx",
        "veracity reverse net.onnx -o ORIGINAL.onnx",
        "fold-constants max-bytes=1048576",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(!page.contains("CgFhCgF2"), "what only machines read is not shown");
}

#[test]
fn a_rewrite_that_was_not_checked_alone_is_not_called_proved() {
    let page = page(&golden(), None);
    assert!(page.contains("data-verdict=\"unknown\""));
    assert!(page.contains("<span class=\"unknown\">not checked</span>"));
}

#[test]
fn rewrites_of_the_same_shape_share_a_picture() {
    let text = DrawnText { text: "1 Conv".into(), is_title: true, ..DrawnText::default() };
    let shape = Drawing {
        width: 90,
        height: 40,
        boxes: vec![DrawnBox { texts: vec![text], ..DrawnBox::default() }],
        lines: vec![DrawnLine { points: vec![(0, 1), (2, 3)], ..DrawnLine::default() }],
    };
    let mut log = golden();
    log.records.push(log.records[0].clone());
    let mut windows = Windows { shapes: vec![shape], ..windows(&log) };
    windows.rewrites[0].shapes = (Some(0), None);
    windows.rewrites[1].shapes = (Some(0), Some(0));
    let page =
        html::rewrites(&Rewritten { name: "net", log: &log, checks: None, windows: &windows });
    assert_eq!(page.matches("<symbol").count(), 1);
    assert_eq!(page.matches("<use href=\"#shape-1\"/>").count(), 3);
    assert!(page.contains("role=\"img\" aria-label=\"Mul\""));
}

#[test]
fn a_bundle_shows_its_proof_and_the_changes_of_each_model() {
    let (log, checks, windows) = (golden(), checks("proved"), Windows::default());
    let node = |name| Rewritten { name, log: &log, checks: Some(&checks), windows: &windows };
    let page = html::rewritten_bundle(&clean(), None, &[node("policy"), node("observer")]);
    assert!(
        page.contains("<h2>Changes of policy</h2>")
            && page.contains("<h2>Changes of observer</h2>")
    );
    assert!(page.contains("<strong>Proved</strong><span>: all 4 checks"));
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let mut different = ids.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(ids.len(), different.len(), "an id stands for one thing: {ids:?}");
}

#[test]
fn no_text_of_a_log_is_markup() {
    let text = serde_json::to_string(&golden()).unwrap();
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    poison(&mut value);
    let log: RewriteLog = serde_json::from_value(value).unwrap();
    let page = html::rewrites(&Rewritten {
        name: ATTACK,
        log: &log,
        checks: None,
        windows: &windows(&log),
    });
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("alert('x')") && !page.contains('\u{202e}'));
    assert!(page.matches("&lt;script&gt;").count() > 20);
}

/// Puts an attack before every text. Kinds of parameters are words of ours.
fn poison(value: &mut serde_json::Value) {
    use serde_json::Value;
    match value {
        Value::String(text) => *text = format!("{ATTACK}{text}"),
        Value::Array(all) => all.iter_mut().for_each(poison),
        Value::Object(all) => {
            all.iter_mut().filter(|(name, _)| *name != "type").for_each(|(_, one)| poison(one));
        }
        _ => {}
    }
}
