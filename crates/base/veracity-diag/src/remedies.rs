//! Why each kind of finding comes about, and what to do about it.
//!
//! Written for those who meet a code and do not know this code base. A message says what was found
//! at one place; this says what mostly is behind it. The files follow the hundreds of the codes.

mod files;
mod proving;
mod robots;
mod running;
mod tracing;
mod transforming;

use crate::Code;

/// Cause and cure of a kind of finding, in one or two sentences each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// What mostly is behind it.
    pub cause: &'static str,
    /// What to do.
    pub cure: &'static str,
}

impl Code {
    /// Why this kind of finding comes about, and what to do about it.
    pub fn remedy(self) -> Option<Remedy> {
        let mut all = ALL.iter().copied().flatten();
        all.find(|(code, _)| *code == self).map(|(_, remedy)| *remedy)
    }
}

const ALL: [&[(Code, Remedy)]; 6] =
    [files::ALL, running::ALL, tracing::ALL, proving::ALL, transforming::ALL, robots::ALL];

/// A table of codes, each with its cause and its cure.
macro_rules! remedies {
    ($($name:ident $cause:literal, $cure:literal;)*) => {
        pub(super) const ALL: &[(crate::Code, Remedy)] =
            &[$((crate::codes::$name, Remedy { cause: $cause, cure: $cure })),*];
    };
}
use remedies;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_cause_and_one_cure() {
        let told: Vec<Code> = ALL.iter().copied().flatten().map(|(code, _)| *code).collect();
        let known: Vec<Code> = Code::all().iter().map(|(code, _)| *code).collect();
        assert_eq!(told, known, "a code without its remedy, or in another order (`remedies/`)");
    }

    #[test]
    fn remedies_are_sentences() {
        for (code, Remedy { cause, cure }) in ALL.iter().copied().flatten() {
            for text in [cause, cure] {
                assert!(text.len() > 15 && text.ends_with('.'), "{code}: {text}");
                assert!(!text.contains("  "), "{code}: {text}");
            }
        }
    }
}
