//! What every page has around its sections.

use std::fmt::Write as _;

use super::escape::escape;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str =
    concat!(include_str!("script.js"), include_str!("graph.js"), include_str!("chart.js"));

/// Hidden until the script is there that does something.
const THEME: &str = "<button type=\"button\" class=\"theme\" hidden>Light or dark</button>\n";

/// Nothing may be fetched, whatever stands in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// A page that grows section by section.
pub(super) struct Shell {
    title: String,
    head: String,
    navigation: String,
    sections: String,
}

impl Shell {
    /// A page with a title and what stands before its first section, which is HTML.
    pub(super) fn new(title: &str, head: &str) -> Self {
        let (navigation, sections) = (String::new(), String::new());
        Self { title: escape(title), head: head.to_owned(), navigation, sections }
    }

    /// Adds a section. Its content is HTML; one without content is left out.
    pub(super) fn section(&mut self, id: &str, title: &str, content: &str) {
        if content.is_empty() {
            return;
        }
        let title = escape(title);
        let _ = writeln!(self.navigation, "<a href=\"#{id}\">{title}</a>");
        let _ =
            writeln!(self.sections, "<section id=\"{id}\">\n<h2>{title}</h2>\n{content}</section>");
    }

    /// The whole file.
    pub(super) fn finish(self) -> String {
        let Self { title, head, navigation, sections } = self;
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
             http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>\n\
             {STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n{head}</header>\n<nav \
             aria-label=\"Sections\">\n{navigation}{THEME}</nav>\n<main>\n{sections}</main>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
        )
    }
}
