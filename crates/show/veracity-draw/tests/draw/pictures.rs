//! SVG and PNG.

use veracity_draw::{layout, svg};

use crate::pipelines::{chain, fan, mesh, node, one, pipeline, three, twelve};

#[test]
fn shortened_names_are_there_in_full_to_be_hovered_over() {
    let text = svg(&layout(&twelve()).unwrap());
    let name = "gait_network_with_a_name_that_is_far_too_long_for_any_box";
    assert!(text.contains(&format!("<title>{name}</title>gait_")), "{name}");
    assert!(!text.contains(&format!("{name}</text>")));
}

#[test]
fn feedback_is_dashed_and_says_its_delay() {
    let text = svg(&layout(&three()).unwrap());
    assert!(text.contains(".feedback .line{stroke-dasharray:"));
    assert_eq!(text.matches("<g class=\"feedback\"><title>").count(), 2);
    for label in ["1 tick</text>", "2 ticks</text>"] {
        assert!(text.contains(label), "{label}");
    }
}

#[test]
fn names_cannot_break_the_page() {
    let evil = "</text><script>\u{1}&\"";
    let made = pipeline(evil, vec![node(evil, &["<a>"], &["\u{0}\n"])], &[]);
    let text = svg(&layout(&made).unwrap());
    assert!(!text.contains("<script>") && !text.contains("<a>"));
    assert!(text.chars().all(|letter| letter == '\n' || !letter.is_control()));
    assert!(text.contains("&lt;/text&gt;&lt;script&gt;"));
}

#[test]
fn pages_bring_their_font_and_know_the_dark() {
    let text = svg(&layout(&one()).unwrap());
    assert_eq!(text.matches("@font-face{font-family:Inter;").count(), 2);
    assert!(text.contains("@media (prefers-color-scheme:dark)"));
    assert!(
        !text.contains("http://") || text.matches("http://").count() == 1,
        "only the namespace"
    );
}

/// Also writes the pictures into the folder that `VERACITY_PICTURES` names, for those who want to
/// look at them.
#[cfg(feature = "png")]
#[test]
fn pixels_are_twice_the_units_and_the_same_every_time() {
    for (name, pipeline) in [
        ("one", one()),
        ("three", three()),
        ("twelve", twelve()),
        ("chain", chain(120)),
        ("fan", fan(118)),
        ("mesh", mesh(6, 20)),
    ] {
        let layout = layout(&pipeline).unwrap();
        let png = veracity_draw::png(&layout).unwrap();
        let number = |at: usize| i32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        if layout.width * layout.height < 10_000_000 {
            assert_eq!((number(16), number(20)), (2 * layout.width, 2 * layout.height), "{name}");
        }
        if let Some(folder) = std::env::var_os("VERACITY_PICTURES") {
            let base = std::path::Path::new(&folder).join(name);
            std::fs::write(base.with_extension("png"), &png).unwrap();
            std::fs::write(base.with_extension("svg"), svg(&layout)).unwrap();
        }
    }
    let layout = layout(&three()).unwrap();
    assert_eq!(veracity_draw::png(&layout).unwrap(), veracity_draw::png(&layout).unwrap());
}
