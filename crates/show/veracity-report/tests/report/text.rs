//! A proof as text.

use veracity_diag::{Diagnostic, codes};
use veracity_report::{TextOptions, Tone, proof_text};
use veracity_results::{
    ErrorOverTime, Measurement, NonFinite, Origin, Proof, Role, RolloutPort, RolloutProof,
    SampleProof, Tolerance, TolerancePolicy, Verdict,
};

use crate::proofs::{
    bad_port, clean, close, everything, far, good_port, node, not_finite, noticed, port, proof,
    refused_node, rollout, rollout_port, sample,
};

fn text(proof: &Proof) -> String {
    proof_text(proof, &TextOptions { width: 80, ..TextOptions::default() })
}

/// A node with one wrong output, and nothing over time.
fn wrong(port: veracity_results::PortProof) -> Proof {
    proof(vec![node("policy", vec![port])], rollout(Vec::new()))
}

fn not_run() -> RolloutProof {
    let reason = Diagnostic::warning(codes::ROLLOUT_NOT_RUN, "the recorded passes have a gap");
    RolloutProof { reasons: vec![reason], ..RolloutProof::default() }
}

#[test]
fn a_clean_proof_is_short() {
    insta::assert_snapshot!(text(&clean()), @"
    encoder: 5 samples, 8 fresh inputs, largest error 1.192e-7
    policy: 5 samples, 8 fresh inputs, largest error 1.192e-7
    roll-out: 5 ticks, 10 steps, 2 resets, 2 ports, largest error 1.192e-7
    ran on: ort 1.24.2 (cpu); 1 thread; linux x86_64
    judged by: rtol 0.001, atol 1e-5
    4 proved, 0 disproved, 0 not comparable
    ");
}

#[test]
fn what_tracing_noticed_stands_before_the_answer_the_worst_first() {
    insta::assert_snapshot!(text(&noticed()), @"
    encoder: 5 samples, 8 fresh inputs, largest error 1.192e-7
    policy: 5 of 6 recorded passes, 8 fresh inputs, largest error 1.192e-7
    roll-out: 5 ticks, 10 steps, 2 resets, 2 ports, largest error 1.192e-7
    error[VER0912] at me/walk.py:9: a tensor changes from pass to pass
    warning[VER0911] at me/walk.py:12: a value of `policy` left for Python as a
        truth value: what Python made of it is fixed
    warning[VER0917]: one value is read on several passes
    ran on: ort 1.24.2 (cpu); 1 thread; linux x86_64
    judged by: rtol 0.001, atol 1e-5
    4 proved, 0 disproved, 0 not comparable, 2 warnings
    ");
}

#[test]
fn the_reason_of_a_node_is_told_with_the_node_and_not_again() {
    let mut found = noticed();
    let message = "VER0912 at me/walk.py:9: a tensor changes from pass to pass";
    found.nodes[1].reasons = vec![Diagnostic::error(codes::RECORDED_WRONG, message)];
    found.nodes[1].verdict = Verdict::Disproved;
    found.nodes[1].ports = vec![bad_port("policy/action", far())];
    let shown = text(&found);
    assert_eq!(shown.matches("VER0912").count(), 1, "{shown}");
    assert!(shown.contains("\n  cause     VER0912 at me/walk.py:9"), "{shown}");
}

#[test]
fn another_number_of_outputs_is_told_once_with_both_numbers() {
    let message = "the model gives 3 outputs on sample 0, the node has 2";
    let reason = Diagnostic::error(codes::OUTPUT_COUNT_DIFFERS, message)
        .hint("look at the export backend and at the declared outputs");
    let nodes = vec![refused_node("policy", Verdict::Disproved, reason)];
    insta::assert_snapshot!(text(&proof(nodes, not_run())), @"
    policy: disproved
      the model gives 3 outputs on sample 0, the node has 2
      hint      look at the export backend and at the declared outputs
    roll-out: not run: the recorded passes have a gap
    ran on: ort 1.24.2 (cpu); 1 thread; linux x86_64
    judged by: rtol 0.001, atol 1e-5
    0 proved, 2 disproved, 0 not comparable
    ");
}

#[test]
fn nan_and_infinities_are_counted_on_both_sides() {
    insta::assert_snapshot!(text(&wrong(bad_port("policy/action", not_finite()))), @"
    policy/action sample 0: disproved (rtol 0.001, atol 1e-5)
      source    float32[1, 12], from -1.5 to 2.25
      exported  float32[1, 12], from -1.5 to 2.25
      NaN/Inf   in exported only, of 12 elements
                exported: 1 NaN (8.333 %), 2 Inf (16.667 %)
                source: 0 NaN (0.000 %), 0 Inf (0.000 %)
                3 without an equal, first at [0, 2]
      error     max 1.192e-7, mean 2.000e-8, rms 4.000e-8
                max relative 1.100e-7, max ULP 1
      outside   0 of 12
      worst     at [0, 7]: source 1, exported 1.0000001
    roll-out: not run
    ran on: ort 1.24.2 (cpu); 1 thread; linux x86_64
    judged by: rtol 0.001, atol 1e-5
    0 proved, 1 disproved, 0 not comparable
    ");
}

#[test]
fn nan_of_the_source_is_said_to_be_its_own() {
    let non_finite = NonFinite { reference_nan: 2, mismatching: 2, ..NonFinite::default() };
    let measured = Measurement { non_finite, compared: 10, differing: 0, ..close() };
    let shown = text(&wrong(bad_port("policy/action", measured)));
    assert!(shown.contains("in source only, of 12 elements"), "{shown}");
    let non_finite =
        NonFinite { reference_nan: 2, candidate_nan: 2, matching_nan: 2, ..NonFinite::default() };
    let measured = Measurement { non_finite, compared: 10, differing: 0, ..close() };
    let shown = text(&wrong(bad_port("policy/action", measured)));
    assert!(shown.contains("on both sides"), "{shown}");
    assert!(shown.contains("all in the same places"), "{shown}");
}

#[test]
fn numbers_outside_of_the_tolerance_are_shown_with_all_that_was_measured() {
    let mut samples = vec![sample("sample 0", Verdict::Proved, close())];
    for number in 1..4 {
        let measured = Measurement { max_abs: f64::from(number), ..far() };
        samples.push(sample(&format!("sample {number}"), Verdict::Disproved, measured));
    }
    let fresh = (0..4).map(|number| sample(&format!("fresh {number}"), Verdict::Disproved, far()));
    samples.extend(fresh);
    insta::assert_snapshot!(text(&wrong(port("policy/action", samples))), @"
    policy/action sample 3: disproved (rtol 0.001, atol 1e-5)
      source    float32[1, 12], from -1.5 to 2.25
      exported  float32[1, 12], from -1.5 to 2.2713
      error     max 3, mean 0.0018, rms 0.0062
                p50 0.000001, p75 0.001, p90 0.012, p99 0.0209, p99.5 0.0211
                max relative 0.0203, max ULP 178956
      outside   4 of 12
      worst     at [0, 7]: source 1.0482, exported 1.0695
      passes    with atol 0.0203 at rtol 0.001
      also      sample 1, sample 2, fresh 0, fresh 1 and 2 more
    roll-out: not run
    ran on: ort 1.24.2 (cpu); 1 thread; linux x86_64
    judged by: rtol 0.001, atol 1e-5
    0 proved, 1 disproved, 0 not comparable
    ");
}

#[test]
fn integers_are_counted_not_measured() {
    let measured = Measurement { differing: 3, outside: 3, tolerance: Tolerance::EXACT, ..far() };
    let mut wrong_port = bad_port("policy/token", measured);
    for sample in &mut wrong_port.samples {
        (sample.reference, sample.candidate) = ("int64[1, 12]".into(), "int64[1, 12]".into());
    }
    insta::assert_snapshot!(text(&wrong(wrong_port)), @"
    policy/token sample 0: disproved (must be equal)
      source    int64[1, 12], from -1.5 to 2.25
      exported  int64[1, 12], from -1.5 to 2.2713
      differing 3 of 12
      worst     at [0, 7]: source 1.0482, exported 1.0695
    roll-out: not run
    ran on: ort 1.24.2 (cpu); 1 thread; linux x86_64
    judged by: rtol 0.001, atol 1e-5
    0 proved, 1 disproved, 0 not comparable
    ");
}

#[test]
fn another_shape_or_dtype_is_told_with_both() {
    let reason = Diagnostic::error(
        codes::COMPARE_SHAPE_DIFFERS,
        "the reference has shape [1, 12], the candidate [12, 1]",
    );
    let reason = reason.hint("the values are right with the axes in the order [1, 0]");
    let shaped = SampleProof {
        candidate: "float32[12, 1]".into(),
        measurement: None,
        reasons: vec![reason],
        ..sample("sample 0", Verdict::Disproved, close())
    };
    insta::assert_snapshot!(text(&wrong(port("policy/action", vec![shaped]))), @"
    policy/action sample 0: disproved (rtol 0.001, atol 1e-5)
      source    float32[1, 12]
      exported  float32[12, 1]
      reason    the reference has shape [1, 12], the candidate [12, 1]
      hint      the values are right with the axes in the order [1, 0]
    roll-out: not run
    ran on: ort 1.24.2 (cpu); 1 thread; linux x86_64
    judged by: rtol 0.001, atol 1e-5
    0 proved, 1 disproved, 0 not comparable
    ");
}

#[test]
fn a_bundle_that_leaves_its_episode_names_tick_port_and_role() {
    let ports = vec![
        rollout_port("policy/action", Role::Output, Some(3)),
        rollout_port("policy/h", Role::Feedback, Some(2)),
        rollout_port("encoder/z", Role::Edge, None),
    ];
    let nodes = vec![node("policy", vec![good_port("policy/action")])];
    insta::assert_snapshot!(text(&proof(nodes, rollout(ports))), @"
    roll-out: disproved, 5 ticks, 10 steps, 2 resets
      first leaves the recorded episode at tick 2, in policy/h (feedback)
      policy/h (feedback) from tick 2: 4 of 12 outside, largest error 0.0213, passes
        with atol 0.0203
      policy/action (output) from tick 3: 4 of 12 outside, largest error 0.0213,
        passes with atol 0.0203
    error over time: ▁ is 1.000e-7, █ is 0.0213, · is none
      policy/action  ▁▁▁██
      policy/h       ▁▁███
    policy: 5 samples, 8 fresh inputs, largest error 1.192e-7
    ran on: ort 1.24.2 (cpu); 1 thread; linux x86_64
    judged by: rtol 0.001, atol 1e-5
    2 proved, 2 disproved, 0 not comparable
    ");
}

#[test]
fn a_proof_with_everything_fits_a_screen() {
    let shown = text(&everything());
    insta::assert_snapshot!(shown, @"
    policy/value sample 0: disproved (rtol 0.001, atol 1e-5)
      source    float32[1, 12], from -1.5 to 2.25
      exported  float32[1, 12], from -1.5 to 2.25
      NaN/Inf   in exported only, of 12 elements
                exported: 1 NaN (8.333 %), 2 Inf (16.667 %)
                source: 0 NaN (0.000 %), 0 Inf (0.000 %)
                3 without an equal, first at [0, 2]
      error     max 1.192e-7, mean 2.000e-8, rms 4.000e-8
                max relative 1.100e-7, max ULP 1
      outside   0 of 12
      worst     at [0, 7]: source 1, exported 1.0000001
    policy/action sample 0: disproved (rtol 0.001, atol 1e-5)
      source    float32[1, 12], from -1.5 to 2.25
      exported  float32[1, 12], from -1.5 to 2.2713
      error     max 0.0213, mean 0.0018, rms 0.0062
                p50 0.000001, p75 0.001, p90 0.012, p99 0.0209, p99.5 0.0211
                max relative 0.0203, max ULP 178956
      outside   4 of 12
      worst     at [0, 7]: source 1.0482, exported 1.0695
      passes    with atol 0.0203 at rtol 0.001
    roll-out: disproved, 5 ticks, 10 steps, 2 resets
      first leaves the recorded episode at tick 1, in policy/h (feedback)
      policy/h (feedback) from tick 1: 4 of 12 outside, largest error 0.0213, passes
        with atol 0.0203
      policy/action (output) from tick 2: 4 of 12 outside, largest error 0.0213,
        passes with atol 0.0203
    error over time: ▁ is 1.000e-7, █ is 0.0213, · is none
      policy/action  ▁▁███
      policy/h       ▁████
    encoder: 5 samples, 8 fresh inputs, largest error 1.192e-7
    vision: not comparable: no engine here runs pt2 models
    head/noise: unstable: the same inputs gave values that differ by up to 1.5e0
    head/logits: unstable: the same inputs gave different values, all within the
        tolerance
    always the same: encoder/mode, encoder/gain, head/mask and 1 more: nothing is
        known about other values
    fresh inputs: head: the code cannot be run again
    advice: look at the inputs of policy that nobody marked
    ran on: ort 1.24.2 (cpu) for encoder, policy, vision; torch 2.11.0 (cpu) for
        head; 1 thread; linux x86_64
    judged by: rtol 0.001, atol 1e-5
    3 proved, 4 disproved, 3 not comparable (no engine here runs pt2 models; the same inputs gave values that differ by up to 1.5e0)
    ");
    assert!(shown.lines().count() <= 50, "{shown}");
}

#[test]
fn what_is_said_of_a_whole_is_not_lost_behind_its_parts() {
    let mut stopped = node("policy", vec![good_port("policy/action")]);
    stopped.verdict = Verdict::Disproved;
    stopped.reasons =
        vec![Diagnostic::error(codes::OUTPUT_COUNT_DIFFERS, "3 outputs on sample 5, not 1")];
    let mut found = rollout(vec![rollout_port("policy/action", Role::Output, None)]);
    found.verdict = Some(Verdict::Disproved);
    found.reasons = vec![Diagnostic::error(codes::STEP_FAILED, "step 3 failed")];
    let shown = text(&proof(vec![stopped], found));
    assert!(shown.contains("policy: disproved\n  3 outputs on sample 5, not 1\n"), "{shown}");
    assert!(shown.contains("2 resets\n  step 3 failed\n"), "{shown}");
}

#[test]
fn a_roll_out_that_holds_says_what_it_did_not_check() {
    let mut found = clean();
    let message = "begins at tick 1: initial values were not checked";
    found.rollout.reasons = vec![Diagnostic::warning(codes::ROLLOUT_NOT_RUN, message)];
    let line = "largest error 1.192e-7; begins\n    at tick 1: initial values were not checked\n";
    assert!(text(&found).contains(line), "{}", text(&found));
}

#[test]
fn what_does_not_fit_is_counted() {
    let ports = (0..30).map(|number| {
        let measured = Measurement { max_abs: f64::from(number), ..far() };
        bad_port(&format!("policy/out{number}"), measured)
    });
    let shown = text(&proof(vec![node("policy", ports.collect())], not_run()));
    let first: Vec<&str> = shown.lines().filter(|line| line.starts_with("policy/out")).collect();
    assert_eq!(first.len(), 12, "{shown}");
    assert!(first[0].starts_with("policy/out29 ") && first[11].starts_with("policy/out18 "));
    assert!(shown.contains("\n… and 18 more disproved; all in proof.json\n"), "{shown}");
}

#[test]
fn agreement_with_itself_is_not_taken_for_a_proof_of_the_code() {
    let mut own = clean();
    own.reference.origin = Origin::Runtime;
    assert!(text(&own).contains("nothing about the Python code"), "{}", text(&own));
    assert!(!text(&clean()).contains("Python code"));
}

#[test]
fn silence_is_not_called_a_proof() {
    let samples = Diagnostic::error(codes::SAMPLES_MISSING, "the bundle has no recorded values");
    let empty = refused_node("policy", Verdict::NotComparable, samples);
    for (nodes, last) in [
        (
            vec![empty],
            "0 proved, 0 disproved, 2 not comparable (the bundle has no recorded values)",
        ),
        (vec![], "0 proved, 0 disproved, 0 not comparable (the recorded passes have a gap)"),
        (
            vec![node("policy", vec![port("policy/action", vec![])])],
            "0 proved, 0 disproved, 1 not comparable (there was nothing to compare it with)",
        ),
    ] {
        let shown = text(&proof(nodes, not_run()));
        assert_eq!(shown.lines().last(), Some(last));
    }
}

#[test]
fn the_last_line_names_each_reason_once_and_only_a_few() {
    let refused = |number: usize| {
        let reason = Diagnostic::error(codes::NODE_NOT_RUN, format!("reason {}", number / 2));
        refused_node(&format!("n{number}"), Verdict::NotComparable, reason)
    };
    let shown = text(&proof((0..10).map(refused).collect(), not_run()));
    let last = "0 proved, 0 disproved, 20 not comparable (reason 0; reason 1; reason 2; 2 more)";
    assert_eq!(shown.lines().last(), Some(last));
}

#[test]
fn the_policy_is_stated_as_it_was_given() {
    let mut found = clean();
    for (policy, line) in [
        (TolerancePolicy::new(Tolerance::EXACT), "judged by: rtol 0, atol 0"),
        (
            TolerancePolicy {
                equal_nan: true,
                ..TolerancePolicy::new(Tolerance::new(1e-5, 0.5).unwrap())
            },
            "judged by: rtol 0.5, atol 1e-5; NaN equals NaN",
        ),
    ] {
        found.policy = policy;
        assert!(text(&found).contains(&format!("\n{line}\n")), "{}", text(&found));
    }
}

#[test]
fn colours_are_the_callers_and_change_no_line() {
    let paint = |tone: Tone, text: &str| format!("<{tone:?}>{text}</>");
    let options = TextOptions { width: 80, paint, ..TextOptions::default() };
    let mut painted = proof_text(&everything(), &options);
    assert!(painted.contains("<Bad>"), "{painted}");
    for tag in ["<Bad>", "<Good>", "<Doubt>", "<Heading>", "</>"] {
        painted = painted.replace(tag, "");
    }
    assert_eq!(painted, text(&everything()));
}

#[test]
fn lines_keep_to_the_width_apart_from_the_last() {
    for width in [60, 80, 120] {
        let shown = proof_text(&everything(), &TextOptions { width, ..TextOptions::default() });
        let lines: Vec<&str> = shown.lines().collect();
        let (_, wrapped) = lines.split_last().unwrap();
        assert!(wrapped.iter().all(|line| line.chars().count() <= width), "{shown}");
    }
}

#[test]
fn names_from_files_cannot_act_on_the_terminal() {
    let mut evil = everything();
    evil.nodes[1].ports[0].port = "policy/\u{1b}[2Jaction".into();
    evil.nodes[0].node = "enc\noder".into();
    evil.advice = vec!["\u{202e}".into()];
    let unsafe_left = |c: char| c != '\n' && veracity_report::plain::is_unsafe(c);
    let shown = text(&evil);
    assert!(!shown.chars().any(unsafe_left), "{shown:?}");
    assert!(shown.contains("enc\\u{a}oder"), "{shown}");
}

#[test]
fn errors_over_time_are_bars_of_the_worst_sources() {
    let over_time =
        |errors: &[f64]| ErrorOverTime { first_tick: 0, ticks_each: 1, max_abs: errors.to_vec() };
    let at = |name: &str, role, source: &str, errors: &[f64]| RolloutPort {
        source: source.to_owned(),
        over_time: over_time(errors),
        ..rollout_port(name, role, None)
    };
    let ports = vec![
        at("encoder/z", Role::Inner, "encoder/z", &[0.0, 1e-9, 1e-6, 1e-2]),
        at("policy/z", Role::Edge, "encoder/z", &[0.0, 1e-9, 1e-6, 1e-2]),
        at("policy/action", Role::Output, "policy/action", &[1e-9, 0.0, f64::NAN, 1e-6]),
        at("policy/exact", Role::Output, "policy/exact", &[0.0; 4]),
    ];
    let shown =
        text(&proof(vec![node("policy", vec![good_port("policy/action")])], rollout(ports)));
    let bars: Vec<&str> = shown.lines().skip_while(|line| !line.contains("over time")).collect();
    assert_eq!(
        bars[..3],
        [
            "error over time: ▁ is 1.000e-9, █ is 0.01, · is none",
            "  encoder/z      ·▁▄█",
            "  policy/action  ▁·!▄",
        ],
        "{shown}"
    );
    assert!(!bars[3].contains("exact"), "{shown}");
}
