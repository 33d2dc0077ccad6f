//! How a command ends.

use std::io;

use veracity::Refusal;
use veracity::results::Verdict;

/// The answer of a command that could give one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Everything that was asked for holds, or was done.
    Proved,
    /// Something that was asked for does not hold.
    Disproved,
    /// Nothing was found wrong, but something could not be checked.
    Inconclusive,
}

impl From<Verdict> for Outcome {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Proved => Self::Proved,
            Verdict::Disproved => Self::Disproved,
            Verdict::Conditional | Verdict::NotComparable => Self::Inconclusive,
        }
    }
}

/// Why a command gave no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was given cannot be worked with.
    Refused(Refusal),
    /// The answer could not be written.
    Output(io::Error),
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
