//! A drift report for people, as text and as Markdown.

use unicode_width::UnicodeWidthStr;
use veracity_report::{TextOptions, drift};
use veracity_results::{DriftReport, ErrorFigures, Verdict};

use crate::drifts::{clean, guilty, report, row, wrong};

fn text(report: &DriftReport) -> String {
    drift::text(report, &TextOptions { width: 80, ..TextOptions::default() })
}

#[test]
fn a_clean_report_says_so_in_its_first_line() {
    insta::assert_snapshot!(text(&clean()), @"
    net: proved on ort 1.31.1 (cpu)
    compared: the export with torch 2.11.0
    export: 6 of 6 values compared, 0 part of compared ones, 0 not mapped

    introduced budget     accumulated   operator  value     module
    0          1.50e-5    1.00e-6       Conv      conv2d    stem.conv
    0          1.50e-5    1.00e-6       Relu      relu      stem.act
    0          1.50e-5    2.50e-6       Conv      conv2d_1  block.conv
    0          1.50e-5    3.00e-6       Add       add       block
    0          1.50e-5    3.00e-6       Relu      relu_1    stem.act
    0          1.50e-5    0             Gemm      linear    head

    error over depth: ▁ is 1.00e-6, █ is 3.00e-6, · is none
    introduced  ······
    accumulated ▁▁▇██·

    by module, largest error introduced and accumulated
    stem                             0          3.00e-6    3 rows
      conv                           0          1.00e-6    1 row
      act                            0          3.00e-6    2 rows
    block                            0          3.00e-6    2 rows
      conv                           0          2.50e-6    1 row
    head                             0          0          1 row
    6 proved, 0 disproved, 0 not comparable
    ");
}

#[test]
fn the_origin_comes_with_module_source_and_cause() {
    insta::assert_snapshot!(text(&wrong()), @"
    net: disproved on ort 1.31.1 (cpu)
    compared: the export with torch 2.11.0
    export: 6 of 8 values compared, 1 part of compared ones, 1 not mapped
    original: 1 of 4 tensors proved, 1 folded into proved (50 %), 1 not mapped
    reason: one output too many
    origin: conv2d_1 (Conv) in block.conv at /home/me/net.py:12
        introduces 5.00e-1, 3.3e4 times its budget of 1.50e-5
        against float64: original 2.00e-7, export 5.00e-1
        cause: weight_bit_mismatch: block.conv.weight differs by 5e-2 (ruled out:
          layout, threads)

    introduced budget     accumulated   operator  value     module
    5.00e-1    1.50e-5    5.00e-1     ✗ Conv      conv2d_1  block.conv
    0          1.50e-5    1.00e-6       Conv      conv2d    stem.conv
    0          1.50e-5    1.00e-6       Relu      relu      stem.act
    0          1.50e-5    5.00e-1       Add       add       block
    0          1.50e-5    2.50e-1       Relu      relu_1    stem.act
    0          1.50e-5    1.25e-1       Gemm      linear    head

    error over depth: ▁ is 1.00e-6, █ is 5.00e-1, · is none
    introduced  ··█···
    accumulated ▁▁███▇

    by module, largest error introduced and accumulated
    stem                             0          2.50e-1    3 rows
      conv                           0          1.00e-6    1 row
      act                            0          2.50e-1    2 rows
    block                            5.00e-1    5.00e-1    2 rows, 1 disproved
      conv                           5.00e-1    5.00e-1    1 row, 1 disproved
    head                             0          1.25e-1    1 row

    not mapped: val_9 (Shape): it feeds no compared value
    not mapped: sym_size (aten.sym_size.default): no output depends on it
    note: float64 is not known everywhere
    5 proved, 1 disproved, 0 not comparable
    ");
}

#[test]
fn nothing_compared_is_no_agreement() {
    insta::assert_snapshot!(text(&report(Vec::new())), @"
    net: not comparable on ort 1.31.1 (cpu)
    compared: the export with torch 2.11.0
    export: 0 of 0 values compared, 0 part of compared ones, 0 not mapped
    0 proved, 0 disproved, 0 not comparable
    ");
}

#[test]
fn a_long_report_is_a_screen_of_eighty_columns() {
    let name = |index: usize| format!("a_rather_long_name_of_a_value_{index}");
    let module = |index: usize| format!("encoder.layers.encoder_layer_{index}.self_attention.ln");
    let rows = (0..500).map(|index| row(&name(index), "LayerNormalization", &module(index), 1e-6));
    let mut rows: Vec<_> = rows.collect();
    rows[77] = guilty(rows[77].clone(), 1.0);
    let shown = text(&report(rows));
    assert!(shown.lines().count() <= 40, "{shown}");
    let widest = shown.lines().map(UnicodeWidthStr::width).max().unwrap();
    assert!(widest <= 80, "{widest}\n{shown}");
    assert!(shown.contains("… and 494 more that are better"), "{shown}");
}

#[test]
fn a_nan_that_only_one_side_has_is_the_worst_of_all() {
    let mut found = clean();
    found.rows[1].introduced = ErrorFigures { max_abs: 0.0, mean_abs: 0.0, mismatching: 2 };
    found.rows[1].verdict = Verdict::Disproved;
    let shown = text(&found);
    let worst = shown.lines().find(|line| line.contains('✗')).unwrap();
    assert!(worst.starts_with("inf") && worst.contains("relu"), "{shown}");
    assert!(shown.contains("introduced  ·!"), "{shown}");
}

#[test]
fn nothing_in_a_report_acts_on_the_terminal() {
    let mut found = wrong();
    found.model = "\u{1b}[31mnet\n".into();
    found.rows[2].name = "\u{1b}[2Jconv".into();
    found.rows[2].module = "a\rb".into();
    found.origin = Some("\u{1b}[2Jconv".into());
    let shown = text(&found);
    assert!(!shown.contains(['\u{1b}', '\r']), "{shown}");
    assert!(!drift::markdown(&found).contains(['\u{1b}', '\r']));
}

#[test]
fn markdown_has_the_verdict_the_origin_and_the_sums() {
    insta::assert_snapshot!(drift::markdown(&wrong()), @r#"
    # Drift: net

    **disproved: 1 of 6 values off by more than the budget**

    - the export compared with torch 2.11.0
    - engine: ort 1.31.1 (cpu)
    - export: 6 of 8 values compared, 1 part of compared ones, 1 not mapped
    - original: 1 of 4 tensors proved, 1 folded into proved (50 %), 1 not mapped
    - reason: one output too many
    - note: float64 is not known everywhere

    ## Origin

    `conv2d_1` (Conv), float32\[1, 8, 4, 4]

    - module: `block.conv`
    - source: `/home/me/net.py:12`
    - introduces 5.000e-01; its budget is 1.500e-05
    - cause: weight_bit_mismatch: block.conv.weight differs by 5e-2 (ruled out: layout, threads)

    ## Worst operators

    | value | operator | module | introduced | budget | accumulated | verdict |
    |---|---|---|---:|---:|---:|---|
    | `conv2d_1` | `Conv` | `block.conv` | 5.000e-01 | 1.500e-05 | 5.000e-01 | disproved |
    | `conv2d` | `Conv` | `stem.conv` | 0 | 1.500e-05 | 1.000e-06 | proved |
    | `relu` | `Relu` | `stem.act` | 0 | 1.500e-05 | 1.000e-06 | proved |
    | `add` | `Add` | `block` | 0 | 1.500e-05 | 5.000e-01 | proved |
    | `relu_1` | `Relu` | `stem.act` | 0 | 1.500e-05 | 2.500e-01 | proved |
    | `linear` | `Gemm` | `head` | 0 | 1.500e-05 | 1.250e-01 | proved |

    ## By module

    | | rows | disproved | introduced | accumulated |
    |---|---:|---:|---:|---:|
    | `block.conv` | 1 | 1 | 5.000e-01 | 5.000e-01 |
    | `stem.conv` | 1 | 0 | 0 | 1.000e-06 |
    | `stem.act` | 2 | 0 | 0 | 2.500e-01 |
    | `block` | 1 | 0 | 0 | 5.000e-01 |
    | `head` | 1 | 0 | 0 | 1.250e-01 |

    ## By operator

    | | rows | disproved | introduced | accumulated |
    |---|---:|---:|---:|---:|
    | `Conv` | 2 | 1 | 5.000e-01 | 5.000e-01 |
    | `Relu` | 2 | 0 | 0 | 2.500e-01 |
    | `Add` | 1 | 0 | 0 | 5.000e-01 |
    | `Gemm` | 1 | 0 | 0 | 1.250e-01 |

    ## Not mapped

    - `val_9` (Shape): it feeds no compared value
    - `sym_size` (aten.sym_size.default): no output depends on it
    "#);
}

#[test]
fn names_do_not_break_out_of_a_table() {
    let mut found = clean();
    found.rows[0].name = "a|b`c".into();
    found.model = "<img src=x> [a](b)".into();
    let shown = drift::markdown(&found);
    assert!(shown.contains("| `a\\|b'c` |"), "{shown}");
    assert!(shown.starts_with("# Drift: &lt;img src=x> \\[a](b)\n"), "{shown}");
}
