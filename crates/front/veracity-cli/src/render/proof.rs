//! A proof, in the colours of this tool.

use veracity::report::{TextOptions, Tone, proof_text};
use veracity::results::Proof;

use super::style::{self, paint};

/// The proof as text, one screen of it.
pub(crate) fn render(proof: &Proof, width: usize) -> String {
    proof_text(proof, &TextOptions { width, paint: painted, ..TextOptions::default() })
}

/// Text in the colour of its tone.
pub(crate) fn painted(tone: Tone, text: &str) -> String {
    let color = match tone {
        Tone::Bad => style::ERROR,
        Tone::Doubt => style::WARNING,
        Tone::Good => style::GOOD,
        Tone::Heading => style::HEADING,
    };
    paint(color, text)
}
