//! A proof for build servers.

use veracity_report::junit;
use veracity_results::RolloutProof;

use crate::proofs::{clean, everything};

#[test]
fn a_clean_proof_has_successes_only() {
    insta::assert_snapshot!(junit(&clean()), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="walk" tests="4" skipped="0" failures="0" errors="0">
        <testsuite name="encoder" tests="1" skipped="0" errors="0" failures="0">
            <testcase name="encoder/z" classname="encoder"/>
        </testsuite>
        <testsuite name="policy" tests="1" skipped="0" errors="0" failures="0">
            <testcase name="policy/action" classname="policy"/>
        </testsuite>
        <testsuite name="rollout" tests="2" skipped="0" errors="0" failures="0">
            <testcase name="policy/action" classname="rollout"/>
            <testcase name="policy/h" classname="rollout"/>
        </testsuite>
    </testsuites>
    "#);
}

#[test]
fn failures_carry_their_text_and_what_is_unknown_is_skipped_with_the_reason() {
    insta::assert_snapshot!(junit(&everything()), @r#"
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="walk" tests="10" skipped="4" failures="4" errors="0">
        <testsuite name="encoder" tests="1" skipped="0" errors="0" failures="0">
            <testcase name="encoder/z" classname="encoder"/>
        </testsuite>
        <testsuite name="policy" tests="2" skipped="0" errors="0" failures="2">
            <testcase name="policy/action" classname="policy">
                <failure message="policy/action sample 0: disproved (rtol 0.001, atol 1e-5)" type="disproved">policy/action sample 0: disproved (rtol 0.001, atol 1e-5)
      source    float32[1, 12], from -1.5 to 2.25
      exported  float32[1, 12], from -1.5 to 2.2713
      error     max 0.0213, mean 0.0018, rms 0.0062
                p50 0.000001, p75 0.001, p90 0.012, p99 0.0209, p99.5 0.0211
                max relative 0.0203, max ULP 178956
      outside   4 of 12
      worst     at [0, 7]: source 1.0482, exported 1.0695
      passes    with atol 0.0203 at rtol 0.001
    </failure>
            </testcase>
            <testcase name="policy/value" classname="policy">
                <failure message="policy/value sample 0: disproved (rtol 0.001, atol 1e-5)" type="disproved">policy/value sample 0: disproved (rtol 0.001, atol 1e-5)
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
    </failure>
            </testcase>
        </testsuite>
        <testsuite name="vision" tests="2" skipped="2" errors="0" failures="0">
            <testcase name="vision/action" classname="vision">
                <skipped message="no engine here runs pt2 models"/>
            </testcase>
            <testcase name="vision/value" classname="vision">
                <skipped message="no engine here runs pt2 models"/>
            </testcase>
        </testsuite>
        <testsuite name="head" tests="2" skipped="2" errors="0" failures="0">
            <testcase name="head/noise" classname="head">
                <skipped message="unstable: the same inputs gave values that differ by up to 1.5e0"/>
            </testcase>
            <testcase name="head/logits" classname="head">
                <skipped message="unstable: the same inputs gave different values, all within the tolerance"/>
            </testcase>
        </testsuite>
        <testsuite name="rollout" tests="3" skipped="0" errors="0" failures="2">
            <testcase name="policy/action" classname="rollout">
                <failure message="policy/action (output) from tick 2: 4 of 12 outside, largest error 0.0213, passes with atol 0.0203" type="disproved">policy/action (output) from tick 2: 4 of 12 outside, largest error 0.0213, passes with atol 0.0203
    </failure>
            </testcase>
            <testcase name="policy/h" classname="rollout">
                <failure message="policy/h (feedback) from tick 1: 4 of 12 outside, largest error 0.0213, passes with atol 0.0203" type="disproved">policy/h (feedback) from tick 1: 4 of 12 outside, largest error 0.0213, passes with atol 0.0203
    </failure>
            </testcase>
            <testcase name="encoder/z" classname="rollout"/>
        </testsuite>
    </testsuites>
    "#);
}

#[test]
fn a_roll_out_that_was_not_run_is_skipped() {
    let mut found = clean();
    found.rollout = RolloutProof::default();
    let xml = junit(&found);
    assert!(xml.contains("<testsuite name=\"rollout\" tests=\"1\" skipped=\"1\""), "{xml}");
}

#[test]
fn odd_names_make_no_odd_xml() {
    let mut odd = clean();
    odd.nodes[0].node = "<&\"'>]]>".into();
    odd.nodes[0].ports[0].port = "关节/\u{0}\u{1b}[31m\u{fffe}".into();
    let xml = junit(&odd);
    assert!(xml.contains("name=\"&lt;&amp;&quot;&apos;&gt;]]&gt;\""), "{xml}");
    assert!(!xml.chars().any(|c| c != '\n' && (c.is_control() || c == '\u{fffe}')), "{xml:?}");
    assert!(xml.contains("关节/"), "{xml}");
}

#[test]
fn the_same_proof_gives_the_same_bytes() {
    assert_eq!(junit(&everything()), junit(&everything()));
    assert!(!junit(&everything()).contains("time"), "{}", junit(&everything()));
}
