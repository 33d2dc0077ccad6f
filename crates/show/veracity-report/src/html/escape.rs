//! Text from files that are not trusted, made fit for a page.

use crate::plain::printable;

/// The text with everything that means something in HTML written out, in attributes too.
pub fn escape(text: &str) -> String {
    let text = printable(text);
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_is_markup() {
        for (text, safe) in [
            ("layer1.0", "layer1.0"),
            ("<script>a && 'b'</script>", "&lt;script&gt;a &amp;&amp; &#39;b&#39;&lt;/script&gt;"),
            ("\" onload=\"x", "&quot; onload=&quot;x"),
            ("a\u{202e}b\0", "a\\u{202e}b\\u{0}"),
        ] {
            assert_eq!(escape(text), safe);
        }
    }
}
