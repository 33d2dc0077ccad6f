//! Which names can be used.

/// Longest node or port name, in characters. YAML keys end at 1024, and an edge holds two names.
pub(crate) const MAX_NAME: usize = 256;

/// Why a node or port may not have this name.
pub(crate) fn unusable_because(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        Some("is empty")
    } else if name.contains('/') {
        Some("has a `/`, which separates node and port in edges")
    } else if name.chars().any(char::is_control) {
        Some("has a control character")
    } else if name.chars().count() > MAX_NAME {
        Some("is longer than 256 characters")
    } else if name == "==out==" {
        Some("is what LEAPP's runtime calls its output buffer")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_break_edges_or_terminals_are_not_usable() {
        for name in ["", "a/b", "a\nb", "a\u{1b}", "==out==", &"x".repeat(257)] {
            assert!(unusable_because(name).is_some(), "{name:?}");
        }
        for name in ["a", "größe", "a b", "a.b", "0", "class"] {
            assert!(unusable_because(name).is_none(), "{name:?}");
        }
    }
}
