//! Which findings are assumptions: doubts that comparing values cannot settle.
//!
//! A warning of such a code leaves a verdict *conditional*: everything that was compared is right,
//! and something that was not looked at could still be wrong. Its hint says what would settle it.

use crate::{Code, Diagnostic, Severity};

/// Numbers rather than names: parts of this table are given out before they are told.
const ASSUMPTIONS: &[u16] = &[
    // Tracing: what the recorder froze, missed or could not see.
    911, 912, 913, 914, 915, 916, 917, 918, 919, 923, 924, 927, 928, 930, 931, 932, 933, 934, 935,
    940, // Exporting: what was not checked.
    1006,
    // Proving: what disagrees with itself, where and how it was run, how much samples would find.
    1109, 1117, 1118, 1126, 1127, 1128,
];

impl Code {
    /// Whether a warning of this kind is an open assumption of a verdict.
    pub fn is_assumption(self) -> bool {
        ASSUMPTIONS.contains(&self.number())
    }
}

impl Diagnostic {
    /// Whether this is a doubt that a verdict rests on. Errors are no doubts, and notes raise none.
    pub fn is_assumption(&self) -> bool {
        self.severity == Severity::Warning && self.code.is_assumption()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codes;

    #[test]
    fn only_warnings_of_the_table_are_assumptions() {
        for (found, is_assumption) in [
            (Diagnostic::warning(codes::FROZEN_VALUE, "a branch"), true),
            (Diagnostic::note(codes::FROZEN_VALUE, "only logged"), false),
            (Diagnostic::error(codes::FROZEN_VALUE, "wrong"), false),
            (Diagnostic::warning(codes::ELEMENT_NAMES_MISMATCH, "names"), false),
        ] {
            assert_eq!(found.is_assumption(), is_assumption, "{found}");
        }
    }

    #[test]
    fn the_table_is_ascending() {
        assert!(ASSUMPTIONS.is_sorted());
    }
}
