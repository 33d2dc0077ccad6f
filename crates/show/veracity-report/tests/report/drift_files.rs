//! The files of a drift report: the view by layers, in the shape of per-layer parity reports.

use serde_json::{Value, json};
use veracity_report::drift::{files, layers, overlay};
use veracity_results::{DriftReport, DriftRow, Verdict};

use crate::drifts::{clean, figures, guilty, report, row, wrong};

fn file(report: &DriftReport, ending: &str) -> String {
    files(report).into_iter().find(|file| file.ending == ending).unwrap().text
}

fn parsed(report: &DriftReport, ending: &str) -> Value {
    serde_json::from_str(&file(report, ending)).unwrap()
}

fn names(report: &DriftReport) -> Vec<String> {
    layers(report).into_iter().map(|layer| layer.name).collect()
}

#[test]
fn a_layer_is_a_call_of_a_leaf_and_stands_for_its_last_value() {
    let gelu = |name: &str, op: &str, error| row(name, op, "act", error);
    let found = report(vec![
        gelu("div", "Div", 0.25),
        gelu("erf", "Erf", 0.0),
        gelu("mul", "Mul", 0.5),
        row("linear", "Gemm", "head", 0.0),
    ]);
    assert_eq!(names(&found), ["act", "head"]);
    let layers = layers(&found);
    assert_eq!(layers[0].row.name, "mul");
    assert_eq!(layers[0].values.len(), 3);
}

#[test]
fn every_call_of_a_shared_module_is_a_row_even_right_after_the_last() {
    assert_eq!(
        names(&clean()),
        ["stem.conv", "stem.act", "block.conv", "add", "stem.act#2", "head"]
    );
    let twice = report(vec![row("relu", "Relu", "act", 0.0), row("relu_1", "Relu", "act", 0.0)]);
    assert_eq!(names(&twice), ["act", "act#2"]);
}

#[test]
fn operators_of_no_leaf_and_final_outputs_are_rows_of_their_own() {
    let of_node = |name: &str| DriftRow { node: "node".into(), ..row(name, "LSTM", "lstm", 0.0) };
    let mut found = report(vec![
        of_node("getitem_1"),
        of_node("getitem_2"),
        row("getitem", "Reshape", "lstm", 0.0),
        row("softmax", "Softmax", "", 0.0),
    ]);
    assert_eq!(names(&found), ["lstm", "softmax"]);
    assert_eq!(layers(&found)[0].row.name, "getitem");
    found.graph.outputs = vec!["softmax".into(), "getitem_1".into()];
    assert_eq!(names(&found), ["getitem_1", "lstm", "softmax"]);
}

#[test]
fn the_report_says_what_a_leaf_is_where_rows_do_not() {
    let rows = vec![row("add", "Add", "block", 0.0), row("mul", "Mul", "block", 0.0)];
    let mut found = report(rows);
    assert_eq!(names(&found), ["block"]);
    found.graph.leaves = vec!["block.dropout".into()];
    assert_eq!(names(&found), ["add", "mul"]);
}

#[test]
fn a_value_that_is_called_like_a_module_is_told_apart() {
    let found = report(vec![row("norm", "Add", "", 0.0), row("norm_1", "Gemm", "norm", 0.0)]);
    assert_eq!(names(&found), ["value:norm", "norm"]);
}

#[test]
fn exceeding_is_strictly_above_the_tolerance_after_rounding() {
    for (error, exceeds) in [
        (1e-4, false),
        (1.000_000_000_000_04e-4, false),
        (1.000_000_000_001e-4, true),
        (0.0, false),
        (2e-4, true),
    ] {
        let found = parsed(&report(vec![row("a", "Relu", "a", error)]), ".json");
        assert_eq!(found["layers"][0]["exceeds_tol"], json!(exceeds), "{error}");
        assert_eq!(found["layers_exceeding"], json!(u8::from(exceeds)), "{error}");
    }
}

#[test]
fn the_first_violator_in_order_is_the_origin_not_the_worst() {
    let found = report(vec![
        row("z", "Relu", "z", 0.0),
        row("m", "Relu", "m", 0.001),
        row("a", "Relu", "a", 7.0),
    ]);
    let found = parsed(&found, ".json");
    assert_eq!(found["drift_origin"], json!("m"));
    let order: Vec<&Value> =
        found["layers"].as_array().unwrap().iter().map(|each| &each["layer"]).collect();
    assert_eq!(order, ["z", "m", "a"]);
    assert_eq!(parsed(&clean(), ".json")["drift_origin"], Value::Null);
}

#[test]
fn what_is_no_number_is_flagged_and_the_json_stays_legal() {
    let mut one_sided = row("a", "Relu", "a", 0.0);
    one_sided.accumulated.mismatching = 1;
    let other_shape = DriftRow {
        problem: Some("it is another shape".into()),
        verdict: Verdict::Disproved,
        ..row("a", "Relu", "a", 0.0)
    };
    let nan = DriftRow {
        problem: Some("the original has NaN here".into()),
        verdict: Verdict::NotComparable,
        ..row("a", "Relu", "a", 0.0)
    };
    for (row, text) in [(one_sided, "Infinity"), (other_shape, "Infinity"), (nan, "NaN")] {
        let found = parsed(&report(vec![row]), ".json");
        let layer = &found["layers"][0];
        assert_eq!((&layer["max_abs_diff"], &layer["mean_abs_diff"]), (&json!(text), &json!(text)));
        assert_eq!((&layer["exceeds_tol"], &found["drift_origin"]), (&json!(true), &json!("a")));
    }
}

#[test]
fn the_json_has_the_keys_in_order_and_an_integer_a_line() {
    let found = report(vec![row("fc", "Gemm", "fc", 9.536_743_164_062_5e-7)]);
    insta::assert_snapshot!(file(&found, ".json"), @r#"
    {
      "drift_origin": null,
      "layers": [
        {
          "exceeds_tol": false,
          "layer": "fc",
          "max_abs_diff": 9.536743164062e-07,
          "mean_abs_diff": 2.384185791016e-07,
          "shape": [
            1,
            8,
            4,
            4
          ]
        }
      ],
      "layers_exceeding": 0,
      "layers_total": 1,
      "model": "net",
      "tolerance": 0.0001
    }
    "#);
}

#[test]
fn the_clean_markdown_closes_with_a_sentence() {
    insta::assert_snapshot!(file(&clean(), ".md"), @"
    # Per-layer divergence: net

    Tolerance: 0.0001  ·  layers checked: 6  ·  layers exceeding: 0
    Drift origin: none

    | layer | shape | max_abs_diff | mean_abs_diff | exceeds_tol |
    |---|---|---:|---:|:-:|
    | `stem.conv` | (1,8,4,4) | 1.000e-06 | 2.500e-07 | — |
    | `stem.act` | (1,8,4,4) | 1.000e-06 | 2.500e-07 | — |
    | `block.conv` | (1,8,4,4) | 2.500e-06 | 6.250e-07 | — |
    | `add` | (1,8,4,4) | 3.000e-06 | 7.500e-07 | — |
    | `stem.act#2` | (1,8,4,4) | 3.000e-06 | 7.500e-07 | — |
    | `head` | (1,8,4,4) | 0.0 | 0.0 | — |

    No drift detected at tolerance 0.0001 across 6 layers.
    ");
}

#[test]
fn the_markdown_names_causes() {
    insta::assert_snapshot!(file(&wrong(), ".md"), @"
    # Per-layer divergence: net

    Tolerance: 0.0001  ·  layers checked: 6  ·  layers exceeding: 4
    Drift origin: block.conv

    | layer | shape | max_abs_diff | mean_abs_diff | exceeds_tol | cause |
    |---|---|---:|---:|:-:|---|
    | `stem.conv` | (1,8,4,4) | 1.000e-06 | 2.500e-07 | — | — |
    | `stem.act` | (1,8,4,4) | 1.000e-06 | 2.500e-07 | — | — |
    | `block.conv` | (1,8,4,4) | 5.000e-01 | 1.250e-01 | yes | `weight_bit_mismatch` |
    | `add` | (1,8,4,4) | 5.000e-01 | 1.250e-01 | yes | `propagated` |
    | `stem.act#2` | (1,8,4,4) | 2.500e-01 | 6.250e-02 | yes | `propagated` |
    | `head` | (1,8,4,4) | 1.250e-01 | 3.125e-02 | yes | `propagated` |

    ## Cause attribution

    - `block.conv` → **weight_bit_mismatch** (block.conv.weight differs by 5e-2)
    - `add` → **propagated** (right on right inputs; the first fault is conv2d_1)
    - `stem.act#2` → **propagated** (right on right inputs; the first fault is conv2d_1)
    - `head` → **propagated** (right on right inputs; the first fault is conv2d_1)
    ");
}

#[test]
fn nothing_compared_is_not_called_clean() {
    let page = file(&report(Vec::new()), ".md");
    assert!(page.contains("Nothing was compared.") && !page.contains("No drift"), "{page}");
}

#[test]
fn causes_are_those_of_exceeding_layers_and_never_in_the_main_file() {
    insta::assert_snapshot!(file(&wrong(), "_causes.json"), @r#"
    {
      "causes": [
        {
          "cause": "weight_bit_mismatch",
          "detail": "block.conv.weight differs by 5e-2",
          "layer": "block.conv"
        },
        {
          "cause": "propagated",
          "detail": "right on right inputs; the first fault is conv2d_1",
          "layer": "add"
        },
        {
          "cause": "propagated",
          "detail": "right on right inputs; the first fault is conv2d_1",
          "layer": "stem.act#2"
        },
        {
          "cause": "propagated",
          "detail": "right on right inputs; the first fault is conv2d_1",
          "layer": "head"
        }
      ],
      "model": "net",
      "tolerance": 0.0001
    }
    "#);
    assert!(!file(&wrong(), ".json").contains("cause"));
    assert_eq!(parsed(&clean(), "_causes.json")["causes"], json!([]));
    let below = report(vec![guilty(row("a", "Relu", "a", 1e-5), 1e-5)]);
    assert_eq!(parsed(&below, "_causes.json")["causes"], json!([]));
}

#[test]
fn the_layer_map_leads_from_layers_to_values() {
    let found = parsed(&clean(), "_layer_map.json");
    assert_eq!(found["layers"].as_array().unwrap().len(), 6);
    assert_eq!(found["values"]["stem.act#2"], json!("relu_1"));
    let facts = ["model", "opset_version", "input_name", "final_output"].map(|key| &found[key]);
    assert_eq!(facts, [&json!("net"), &json!(20), &json!("x"), &json!("linear")]);
    assert_eq!(found["all_outputs"][0], json!("linear"));
}

#[test]
fn the_same_report_gives_the_same_bytes_and_is_read_again() {
    assert_eq!(files(&wrong()), files(&wrong()));
    let again: DriftReport = serde_json::from_str(&file(&wrong(), "_drift.json")).unwrap();
    assert_eq!(again, wrong());
}

#[test]
fn nodes_are_coloured_by_the_part_of_the_budget_that_they_take() {
    let mut second = guilty(row("split_1", "Split", "s", 0.0), 3e-5);
    second.node = "node_split".into();
    let mut unnamed = row("add", "Add", "", 0.0);
    unnamed.node = String::new();
    let mut broken = guilty(row("exp", "Exp", "", 0.0), 0.0);
    broken.introduced.mismatching = 1;
    let half = DriftRow { introduced: figures(7.5e-6), ..row("relu", "Relu", "", 0.0) };
    let found = report(vec![row("split", "Split", "s", 0.0), second, half, unnamed, broken]);
    let data: Value = serde_json::from_str(&overlay(&found)).unwrap();
    let results = &data["results"];
    assert_eq!(results.as_object().unwrap().len(), 4);
    assert_eq!(results["node_split"]["value"], json!(2.0));
    assert_eq!(results["node_split"]["bgColor"], json!("#c62828"));
    assert_eq!(results["node_relu"], json!({"value": 0.5}));
    assert_eq!(results["add"], json!({"value": 0.0}));
    assert_eq!(results["node_exp"]["value"], json!(1e9));
    let limits = data["thresholds"].as_array().unwrap().iter().map(|each| &each["value"]);
    assert!(limits.map(|limit| limit.as_f64().unwrap()).is_sorted());
}
