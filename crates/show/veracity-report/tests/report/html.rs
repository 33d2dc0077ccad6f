//! A drift report as a page.

use veracity_report::html;

use crate::drifts::{clean, guilty, report, row, wrong};

#[test]
fn everything_that_a_report_says_is_in_the_page() {
    let page = html::drift(&wrong());
    for expected in [
        "<strong>disproved</strong><span>: 1 of 6 values off by more than the budget.</span>",
        "<a href=\"#row-3\"><code>conv2d_1</code></a> (Conv) in <code>block.conv</code>",
        "Cause: weight_bit_mismatch: block.conv.weight differs by 5e-2",
        "export: 6 of 8 values compared, 1 part of compared ones, 1 not mapped",
        "reason: one output too many",
        "note: float64 is not known everywhere",
        "<tr id=\"row-3\" data-verdict=\"disproved\">",
        "it feeds no compared value",
        "part of linear",
        "folded into relu",
        "no output depends on it",
        "<dd>ort 1.31.1</dd>",
        "<pre><code>veracity parity zoo:net</code></pre>",
        "<td title=\"/home/me/net.py:12\"><code>me/net.py:12</code></td>",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert!(html::drift(&clean()).contains("class=\"verdict proved\""));
    assert!(html::drift(&report(Vec::new())).contains("nothing was compared"));
}

#[test]
fn nothing_is_fetched_from_anywhere() {
    let page = html::drift(&wrong());
    for reference in ["src=", "http:", "https:", "@import", "url(", "fetch(", "<link"] {
        assert!(!page.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn no_text_of_a_report_is_markup() {
    let attack = "\"><script>alert('x')</script>\u{202e}";
    let mut found = wrong();
    for row in &mut found.rows {
        for text in [&mut row.name, &mut row.op_type, &mut row.module, &mut row.source] {
            *text = format!("{attack}{text}");
        }
        (row.dtype, row.problem) = (attack.into(), Some(attack.into()));
        if let Some(cause) = &mut row.cause {
            (cause.detail, cause.ruled_out) = (attack.into(), vec![attack.into()]);
        }
    }
    found.origin = Some(found.rows[2].name.clone());
    found.drift_origin = Some(attack.into());
    for text in [&mut found.model, &mut found.reference, &mut found.candidate] {
        *text = attack.into();
    }
    let session = &mut found.session;
    for text in [&mut session.engine, &mut session.engine_version, &mut session.device] {
        *text = attack.into();
    }
    (found.graph.inputs, found.graph.outputs) = (vec![attack.into()], vec![attack.into()]);
    found.notes = vec![attack.into()];
    found.reasons[0].message = attack.into();
    for value in &mut found.unmapped {
        (value.name, value.op_type) = (attack.into(), attack.into());
        value.part_of = value.part_of.as_ref().map(|_| attack.into());
        value.reason = value.reason.as_ref().map(|_| attack.into());
    }
    for value in &mut found.program {
        (value.name, value.target, value.reason) = (attack.into(), attack.into(), attack.into());
        value.into = vec![attack.into()];
    }
    found.schema_version = attack.into();
    let page = html::drift(&found);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("alert('x')") && !page.contains('\u{202e}'));
    assert!(page.matches("&lt;script&gt;").count() > 40);
}

#[test]
fn five_hundred_rows_are_less_than_two_megabytes() {
    let name = |index: usize| format!("scaled_dot_product_attention_{index}");
    let module = |index: usize| format!("encoder.layers.encoder_layer_{index}.self_attention");
    let mut rows: Vec<_> =
        (0..500).map(|index| row(&name(index), "MatMul", &module(index), 1e-6)).collect();
    rows[250] = guilty(rows[250].clone(), 1.0);
    let page = html::drift(&report(rows));
    assert!(page.len() < 2_000_000, "{}", page.len());
    assert_eq!(page.matches("<tr id=\"row-").count(), 500);
    assert_eq!(page.matches("<circle").count(), 1000);
}

#[test]
fn modules_are_unfolded_down_to_what_is_wrong_and_only_there() {
    let rows = vec![
        row("a", "Add", "left.inner.one", 0.0),
        guilty(row("b", "Add", "right.inner.two", 0.0), 1.0),
        row("c", "Add", "", 0.0),
    ];
    let page = html::drift(&report(rows));
    assert_eq!(page.matches("<details>").count(), 2);
    assert_eq!(page.matches("<details open>").count(), 2);
    assert_eq!(page.matches("</details>").count(), 4);
    assert!(page.contains("(no module)"));
}

#[test]
fn paths_of_modules_may_be_of_any_depth() {
    let deep = vec!["m"; 10_000].join(".");
    let page = html::drift(&report(vec![row("a", "Add", &deep, 0.0)]));
    assert_eq!(page.matches("<details").count(), 31);
    assert_eq!(page.matches("</details>").count(), 31);
}
