//! A proof as a page.

use veracity_diag::Diagnostic;
use veracity_report::html::{self, Drawing, DrawnBox, DrawnLine, DrawnText};
use veracity_results::{ErrorOverTime, Origin, Percentiles, Tolerance, Verdict};

use crate::proofs::{
    bad_port, clean, close, everything, far, good_port, node, noticed, proof, rollout, rollout_port,
};

const ATTACK: &str = "\"><script>alert('x')</script>\u{202e}";

fn page(found: &veracity_results::Proof) -> String {
    html::proof(found, None)
}

#[test]
fn the_answer_and_its_coverage_stand_at_the_top_in_one_sentence() {
    let nothing = proof(Vec::new(), veracity_results::RolloutProof::default());
    let mut unknown = clean();
    (unknown.verdict, unknown.coverage.not_comparable) = (Verdict::NotComparable, 1);
    for (found, class, sentence) in [
        (
            clean(),
            "proved",
            "Proved: all 4 checks of 2 nodes and 5 ticks of the whole are within their tolerance of \
             what the Python code computed, on the inputs that were tried.",
        ),
        (
            everything(),
            "disproved",
            "Disproved: 4 of 10 checks failed, 3 proved, 3 not comparable.",
        ),
        (
            unknown,
            "not_comparable",
            "Not comparable: 1 of 5 checks could not be made, 4 proved, and nothing is known to be \
             wrong.",
        ),
        (nothing, "not_comparable", "Not comparable: nothing was compared."),
    ] {
        let (word, rest) = sentence.split_once(':').unwrap();
        let expected =
            format!("<p class=\"verdict {class}\"><strong>{word}</strong><span>:{rest}</span></p>");
        let page = page(&found);
        assert!(
            page.contains(&expected),
            "{sentence}: {}",
            &page[page.find("<h1").unwrap()..][..400]
        );
    }
}

#[test]
fn what_tracing_noticed_has_a_section_and_stands_at_its_node() {
    let page = page(&noticed());
    for expected in [
        "on the inputs that were tried: 5 of 6 recorded passes were kept; 2 warnings.</span></p>",
        "<h2>What tracing noticed</h2>",
        "<code>VER0911</code>",
        "<code>me/walk.py:12</code>",
        "keep it a tensor",
        "5 of 6 recorded passes, 8 fresh inputs</span>",
        "<p><span class=\"conditional\">warning VER0911</span> me/walk.py:12: a value of `policy`",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    let section = &page[page.find("What tracing noticed</h2>").unwrap()..];
    assert!(section.find("VER0912").unwrap() < section.find("VER0911").unwrap(), "worst first");
}

#[test]
fn a_proof_without_findings_has_no_section_about_them() {
    assert!(!page(&clean()).contains("What tracing noticed"));
}

#[test]
fn a_run_that_only_repeats_is_not_called_more() {
    let mut found = clean();
    found.reference.origin = Origin::Runtime;
    let page = page(&found);
    assert!(page.contains("tolerance of an earlier run of the bundle"));
    assert!(page.contains("nothing about the Python code"));
    assert!(!page.contains("what the Python code computed"));
}

#[test]
fn everything_that_a_proof_says_is_in_the_page() {
    let page = page(&everything());
    for expected in [
        "Advice: look at the inputs of policy that nobody marked.",
        "<tr id=\"check-2\" data-verdict=\"disproved\">",
        "<a href=\"#node-2\"><code>policy/<wbr>action</code></a>",
        "no engine here runs pt2 models",
        "the same inputs gave values that differ by up to 1.5e0",
        "the code cannot be run again",
        "<dt>source</dt><dd>me/walk.py:7</dd>",
        "<dt>p99</dt><dd>0.0209</dd>",
        "[0, 7]: 1.0482 in the source, 1.0695 here",
        "it leaves the episode at tick 1 in policy/h",
        "first outside at tick 2",
        "always the same: nothing is known about other values",
        "ort 1.24.2 (cpu); torch 2.11.0 (cpu)",
        "veracity check walk/ --engine ort --tolerance atol=0.00001,rtol=0.001",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
}

#[test]
fn errors_are_spread_out_in_bars_and_percentiles() {
    let mut measured = far();
    measured.ulp_histogram = vec![5, 0, 7];
    measured.percentiles = Some(Percentiles { p50: 1e-6, p75: 0.5, p90: 0.5, p99: 0.5, p995: 0.5 });
    let nodes = vec![node("a", vec![bad_port("a/x", measured), good_port("a/y")])];
    let page = page(&proof(nodes, rollout(Vec::new())));
    assert!(page.contains("<title>5 at 0 ULP</title>"));
    assert!(page.contains("<title>7 at 2^1..2^2 ULP</title>"));
    assert!(!page.contains("at 1 ULP</title>"));
    assert!(page.contains("<dt>p50</dt><dd>1.00e-6</dd>"));
}

#[test]
fn a_column_in_which_nothing_stands_is_left_out() {
    let head = "<button type=\"button\">why</button>";
    assert!(page(&everything()).contains(head));
    assert!(!page(&clean()).contains(head), "nothing is wrong, so that there is nothing to say");
}

#[test]
fn outputs_that_are_equal_in_every_bit_take_a_line() {
    let mut equal = close();
    (equal.differing, equal.max_abs) = (0, 0.0);
    let mut port = good_port("a/x");
    port.samples.iter_mut().for_each(|sample| sample.measurement = Some(equal.clone()));
    let page = page(&proof(vec![node("a", vec![port])], rollout(Vec::new())));
    assert!(page.contains("1 output is equal in every bit on every sample."));
}

#[test]
fn a_long_episode_is_drawn_for_each_port_with_its_tolerance() {
    let page = page(&everything());
    assert_eq!(page.matches("aria-label=\"Largest error of ").count(), 2);
    assert_eq!(page.matches("<path class=\"tolerance\"").count(), 2);
    assert!(page.contains("<title>tick 1: 0.0213</title>"));
    assert!(page.contains("Without any error at every tick: 1 port."));
}

#[test]
fn a_proof_of_an_earlier_version_says_that_it_does_not_know_when() {
    let mut found = everything();
    found.rollout.ports.iter_mut().for_each(|port| port.over_time = ErrorOverTime::default());
    assert!(page(&found).contains("does not say when the errors of 3 ports were made"));
}

#[test]
fn the_commands_judge_by_the_same_tolerances() {
    let mut found = clean();
    let own = Tolerance::new(0.0, 0.5).unwrap();
    found.policy.ports.insert("policy/it's".into(), own);
    (found.policy.equal_nan, found.environment.threads) = (true, 4);
    found.subject.bundle = "my walk".into();
    found.environment.sessions[0].engine = "ort (python)".into();
    let page = page(&found);
    let expected = "veracity check 'my walk/' --engine ort --threads 4 --tolerance \
                    atol=0.00001,rtol=0.001 --tolerance 'policy/it'\\''s:atol=0,rtol=0.5' --equal-nan";
    assert!(page.contains(&expected.replace('\'', "&#39;")));
}

#[test]
fn a_drawing_leads_to_the_nodes() {
    let text = DrawnText { text: "encoder".into(), is_title: true, ..DrawnText::default() };
    let known = DrawnBox {
        node: "encoder".into(),
        verdict: Some(Verdict::Proved),
        texts: vec![text],
        ..DrawnBox::default()
    };
    let unknown = DrawnBox { node: "stranger".into(), ..DrawnBox::default() };
    let line = |delay| DrawnLine {
        points: vec![(1, 2), (3, 2)],
        delay,
        title: "a to b".into(),
        label: None,
    };
    let (boxes, lines) = (vec![known, unknown], vec![line(0), line(2)]);
    let drawing = Drawing { width: 100, height: 50, boxes, lines };
    let page = html::proof(&clean(), Some(&drawing));
    for expected in [
        "<a href=\"#node-1\" class=\"proved\" aria-label=\"encoder\">",
        "<a class=\"unknown\" aria-label=\"stranger\">",
        "<polyline class=\"edge\" points=\"1,2 3,2\"",
        "<polyline class=\"edge feedback\" points=\"1,2 3,2\"",
        "a to b, 2 ticks later",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(!html::proof(&clean(), None).contains("id=\"pipeline\""));
}

#[test]
fn no_text_of_a_proof_is_markup() {
    let mut found = everything();
    let attack = || ATTACK.to_owned();
    found.subject.bundle = attack();
    (found.advice, found.environment.system) = (vec![attack()], attack());
    (found.reference.made_with, found.veracity_version) = (attack(), attack());
    found.subject.files.insert(attack(), attack());
    for model in &mut found.subject.models {
        (model.path, model.sha256, model.backend) = (attack(), attack(), attack());
    }
    for session in &mut found.environment.sessions {
        (session.engine, session.engine_version, session.device) = (attack(), attack(), attack());
    }
    for node in &mut found.nodes {
        (node.node, node.fresh_note) = (attack(), Some(attack()));
        node.reasons.iter_mut().for_each(|reason| reason.message = attack());
        for port in &mut node.ports {
            port.port = attack();
            for sample in &mut port.samples {
                (sample.label, sample.reference, sample.candidate) = (attack(), attack(), attack());
                let code = veracity_diag::codes::UNSTABLE;
                sample.reasons = vec![Diagnostic::error(code, attack())];
            }
        }
    }
    for port in &mut found.rollout.ports {
        (port.port, port.source) = (attack(), attack());
    }
    if let Some(first) = &mut found.rollout.first_divergence {
        first.port = attack();
    }
    found.rollout.reasons = vec![Diagnostic::error(veracity_diag::codes::UNSTABLE, attack())];
    found.inputs.iter_mut().for_each(|input| input.port = attack());
    found.policy.ports.insert(attack(), Tolerance::EXACT);
    let text = DrawnText { text: attack(), ..DrawnText::default() };
    let one = DrawnBox { node: attack(), texts: vec![text], ..DrawnBox::default() };
    let line = DrawnLine { title: attack(), ..DrawnLine::default() };
    let drawing = Drawing { width: 1, height: 1, boxes: vec![one], lines: vec![line] };
    let page = html::proof(&found, Some(&drawing));
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("alert('x')") && !page.contains('\u{202e}'));
    assert!(page.matches("&lt;script&gt;").count() > 60);
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    let drawing = Drawing { boxes: vec![DrawnBox::default()], ..Drawing::default() };
    let page = html::proof(&everything(), Some(&drawing)).replace("url(#arrow)", "");
    for reference in ["src=", "http:", "https:", "@import", "url(", "fetch(", "<link"] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_hundred_nodes_with_long_episodes_are_less_than_two_megabytes() {
    let nodes = (0..120).map(|n| node(&format!("n{n}"), vec![good_port(&format!("n{n}/out"))]));
    let port = |n: usize| {
        let mut port = rollout_port(&format!("n{n}/out"), veracity_results::Role::Inner, None);
        port.over_time = ErrorOverTime::new(&(0..100_000));
        (0..256).for_each(|piece| port.over_time.add(piece, 1e-7));
        port
    };
    let found = proof(nodes.collect(), rollout((0..120).map(port).collect()));
    let page = page(&found);
    assert!(page.len() < 2_000_000, "{}", page.len());
}
