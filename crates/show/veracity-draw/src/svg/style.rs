//! Colours and letters.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::Reader;
use crate::font::{REGULAR_WOFF2, SEMI_BOLD_WOFF2};

/// What does not depend on the page.
const SHAPES: &str = "\
text{font-family:Inter,system-ui,sans-serif;font-weight:400;white-space:pre}
.name{font-weight:600}
.box{stroke-width:1}
.line{fill:none;stroke-width:1.5;stroke-linejoin:round}
.feedback .line{stroke-dasharray:6 4}
.port{stroke-width:1.5}
.mark{fill:none;stroke-width:1.5;stroke-linecap:round;stroke-linejoin:round}
";

/// The colours of a page.
struct Colours {
    paper: &'static str,
    text: &'static str,
    quiet: &'static str,
    fill: &'static str,
    header: &'static str,
    border: &'static str,
    data: &'static str,
    feedback: &'static str,
    input: &'static str,
    output: &'static str,
    proved: &'static str,
    disproved: &'static str,
    open: &'static str,
}

const LIGHT: Colours = Colours {
    paper: "#ffffff",
    text: "#1b2530",
    quiet: "#5f6b78",
    fill: "#ffffff",
    header: "#eef2f6",
    border: "#bcc7d2",
    data: "#5a7590",
    feedback: "#b4501f",
    input: "#1f7a74",
    output: "#6b4fa8",
    proved: "#2c7a45",
    disproved: "#bf352a",
    open: "#8f6400",
};

const DARK: Colours = Colours {
    paper: "#14181d",
    text: "#e5eaef",
    quiet: "#9aa7b4",
    fill: "#1b2128",
    header: "#252d36",
    border: "#46525f",
    data: "#86a5c4",
    feedback: "#ee8f5c",
    input: "#5cc2ba",
    output: "#b79ff0",
    proved: "#5cbf7c",
    disproved: "#f0776c",
    open: "#d9a93f",
};

/// The whole style sheet.
pub(super) fn style(reader: Reader) -> String {
    let light = colours(&LIGHT);
    match reader {
        Reader::Page => {
            let dark = colours(&DARK);
            let fonts = fonts();
            format!("{fonts}{SHAPES}{light}@media (prefers-color-scheme:dark){{\n{dark}}}\n")
        }
        #[cfg(feature = "png")]
        Reader::Painter => format!("{SHAPES}{light}"),
    }
}

fn fonts() -> String {
    let face = |weight: u32, font: &[u8]| {
        format!(
            "@font-face{{font-family:Inter;font-weight:{weight};src:url(data:font/woff2;base64,{}) \
             format(\"woff2\")}}\n",
            STANDARD.encode(font)
        )
    };
    face(400, REGULAR_WOFF2) + &face(600, SEMI_BOLD_WOFF2)
}

fn colours(colours: &Colours) -> String {
    let Colours { paper, text, quiet, fill, header, border, .. } = colours;
    let mut sheet = format!(
        ".paper{{fill:{paper}}}\ntext{{fill:{text}}}\n.quiet{{fill:{quiet}}}\n\
         .box{{fill:{fill};stroke:{border}}}\n.header{{fill:{header}}}\n\
         .port{{fill:{fill};stroke:{quiet}}}\n.mark{{stroke:{fill}}}\n\
         .tag rect{{fill:{paper}}}\n.tag text{{fill:{}}}\n",
        colours.feedback
    );
    for (class, colour) in [
        ("data", colours.data),
        ("feedback", colours.feedback),
        ("input", colours.input),
        ("output", colours.output),
    ] {
        let _ =
            writeln!(sheet, ".{class} .line{{stroke:{colour}}}\n.{class} .head{{fill:{colour}}}");
    }
    for (class, colour) in [
        ("proved", colours.proved),
        ("conditional", colours.open),
        ("disproved", colours.disproved),
        ("open", colours.open),
    ] {
        let _ = writeln!(sheet, ".{class} circle{{fill:{colour}}}");
    }
    sheet
}
