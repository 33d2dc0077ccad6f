//! What is checked, and what becomes of what is wrong.

use std::num::NonZeroUsize;

use super::Inputs;

/// What is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validation {
    /// Each rewrite alone, and the whole model at the end.
    #[default]
    Local,
    /// The whole model after each pass that changed something.
    Pass,
    /// The whole model at the end.
    Final,
    /// Nothing.
    Off,
}

impl Validation {
    /// Every kind with its name.
    pub const NAMES: [(&'static str, Self); 4] =
        [("local", Self::Local), ("pass", Self::Pass), ("final", Self::Final), ("off", Self::Off)];

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("off", |(name, _)| name)
    }
}

/// What becomes of a rewrite that is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFail {
    /// It is taken back: alone when it was checked alone, with its pass when passes were checked,
    /// with all others when only the end was.
    #[default]
    Rollback,
    /// Nothing is written; the refusal says what is wrong.
    Raise,
    /// It stays, and the report says that it is wrong.
    Keep,
}

impl OnFail {
    /// Every kind with its name.
    pub const NAMES: [(&'static str, Self); 3] =
        [("rollback", Self::Rollback), ("raise", Self::Raise), ("keep", Self::Keep)];

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }
}

/// What becomes of a rewrite that could not be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unchecked {
    /// It stays; the verdict over all is then not "proved".
    #[default]
    Keep,
    /// It is taken back.
    Reject,
}

/// How rewrites are checked.
#[derive(Clone, Debug)]
pub struct CheckOptions {
    /// What is checked.
    pub validation: Validation,
    /// What becomes of what is wrong.
    pub on_fail: OnFail,
    /// What becomes of what could not be checked.
    pub unchecked: Unchecked,
    /// What the model is run on.
    pub inputs: Inputs,
    /// Most that an approximate pass may be off, relative to the largest value.
    pub approximate_limit: f64,
    /// Threads inside of one operator.
    pub threads: NonZeroUsize,
    /// Bytes of values that are held at once, about.
    pub memory: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self {
            validation: Validation::default(),
            on_fail: OnFail::default(),
            unchecked: Unchecked::default(),
            inputs: Inputs::default(),
            approximate_limit: 1e-3,
            threads: NonZeroUsize::MIN,
            memory: 1 << 30,
        }
    }
}
