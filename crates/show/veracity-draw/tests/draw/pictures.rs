//! SVG.

use veracity_draw::{layout, svg};

use crate::pipelines::{node, one, pipeline, three, twelve};

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

/// `VERACITY_UPDATE_DOCS=1` writes it.
#[test]
fn the_picture_of_the_documentation_is_what_is_drawn() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/pipeline-picture.svg");
    let drawn = svg(&layout(&three()).unwrap());
    if std::env::var_os("VERACITY_UPDATE_DOCS").is_some() {
        std::fs::write(path, &drawn).unwrap();
    }
    assert!(std::fs::read_to_string(path).is_ok_and(|text| text == drawn), "{path} is stale");
}
