//! Reads the values of options. What comes out of here is not checked again.

use std::num::NonZeroUsize;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use veracity::results::Tolerance;
use veracity::{Device, EngineChoice, SessionOptions};

/// How fast to step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    /// So many steps per second, within [`Rate::RANGE`].
    Hertz(f64),
    /// As the bundle says.
    Bundle,
}

impl Rate {
    /// Rates that can be kept: a step every 17 minutes is no loop, and a step within less than a
    /// microsecond is out of reach of any clock.
    pub(crate) const RANGE: std::ops::RangeInclusive<f64> = 1e-3..=1e6;
}

pub(super) fn rate(text: &str) -> Result<Rate, String> {
    if text == "bundle" {
        return Ok(Rate::Bundle);
    }
    let range = Rate::RANGE;
    match text.parse::<f64>() {
        Ok(hertz) if range.contains(&hertz) => Ok(Rate::Hertz(hertz)),
        Ok(_) => Err(format!("must be between {} and {}", range.start(), range.end())),
        Err(_) => Err("neither a number nor `bundle`".to_owned()),
    }
}

pub(super) fn engine() -> impl TypedValueParser<Value = EngineChoice> {
    let names = PossibleValuesParser::new(EngineChoice::NAMES.map(|(name, _)| name));
    names.map(|name| EngineChoice::from_name(&name).expect("only these names are let through"))
}

pub(super) fn device(text: &str) -> Result<Device, String> {
    Device::from_name(text).ok_or_else(|| "none of `auto`, `cpu`, `cuda`, `cuda:N`".to_owned())
}

pub(super) fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let threads = text.parse::<NonZeroUsize>().ok();
    threads
        .filter(|threads| threads.get() <= SessionOptions::MAX_THREADS)
        .ok_or_else(|| format!("must be between 1 and {}", SessionOptions::MAX_THREADS))
}

pub(super) fn tolerance_part(text: &str) -> Result<f64, String> {
    let part = text.parse::<f64>().ok();
    part.filter(|&part| Tolerance::new(part, part).is_ok())
        .ok_or_else(|| "must be a finite number of at least 0".to_owned())
}
