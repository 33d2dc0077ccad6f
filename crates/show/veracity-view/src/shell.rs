//! The window around the pages.

use std::fmt::Write as _;

use crate::board::Shown;
use crate::content::Content;

const STYLE: &str = include_str!("shell.css");
const SCRIPT: &str = include_str!("shell.js");

/// The window. Its script asks for changes and loads pages again that have changed.
pub(crate) fn window(shown: &Shown, nonce: &str) -> String {
    let Content { title, frames, .. } = &shown.content;
    let pages = shown.page_versions.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let mut views = String::new();
    for (index, frame) in frames.iter().enumerate() {
        let label = escape(&frame.label);
        let _ = writeln!(views, "<iframe src=\"page/{index}\" title=\"{label}\"></iframe>");
    }
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style nonce=\"{nonce}\">\n{STYLE}</style>\n</head>\n\
         <body data-version=\"{}\" data-pages=\"{pages}\">\n<p id=\"lost\" role=\"alert\" hidden>\
         <code>veracity view</code> does not answer: what is shown may be old.</p>\n\
         <header id=\"above\" aria-live=\"polite\">\n{}</header>\n<main>\n{views}</main>\n\
         <script nonce=\"{nonce}\">\n{SCRIPT}</script>\n</body>\n</html>\n",
        escape(title),
        shown.version,
        above(&shown.content),
    )
}

/// What stands above the pages: names where there are several, notices, what differs.
pub(crate) fn above(content: &Content) -> String {
    let Content { frames, comparison, .. } = content;
    let mut html = String::new();
    if let Some(comparison) = comparison {
        let _ = writeln!(
            html,
            "<details open>\n<summary>What changed</summary>\n<div class=\"comparison\">\n\
             {comparison}</div>\n</details>"
        );
    }
    let is_needed = frames.len() > 1 || frames.iter().any(|frame| frame.notice.is_some());
    if !is_needed {
        return html;
    }
    html += "<div class=\"labels\">\n";
    for frame in frames {
        let _ = write!(html, "<div>\n<strong>{}</strong>\n", escape(&frame.label));
        if let Some(notice) = &frame.notice {
            let _ = writeln!(html, "<p class=\"notice\">{}</p>", escape(notice));
        }
        html += "</div>\n";
    }
    html + "</div>\n"
}

/// The text with everything that means something in HTML written out, in attributes too, and what
/// would turn it around taken out.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' => safe.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            _ if character.is_control() => safe.push('\u{fffd}'),
            _ => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Frame;

    #[test]
    fn nothing_in_a_label_or_notice_is_markup() {
        let frame = Frame {
            label: "<b>&\"'".to_owned(),
            notice: Some("</p><script>\u{202e}\0".to_owned()),
            ..Frame::default()
        };
        let html = above(&Content { frames: vec![frame], ..Content::default() });
        assert!(html.contains("&lt;b&gt;&amp;&quot;&#39;"), "{html}");
        assert!(html.contains("&lt;/p&gt;&lt;script&gt;\u{fffd}\u{fffd}"), "{html}");
    }

    #[test]
    fn a_page_alone_has_nothing_above_it() {
        let frame = Frame { label: "proof.json".to_owned(), ..Frame::default() };
        let alone = Content { frames: vec![frame.clone()], ..Content::default() };
        assert_eq!(above(&alone), "");
        let both = Content { frames: vec![frame.clone(), frame], ..Content::default() };
        assert_eq!(above(&both).matches("proof.json").count(), 2);
    }
}
