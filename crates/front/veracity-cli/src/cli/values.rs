//! Reads the values of options. What comes out of here is not checked again.

use std::num::NonZeroUsize;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use veracity::results::Tolerance;
use veracity::transform::{OnFail, Validation};
use veracity::{Device, EngineChoice, OptimizationLevel, SessionOptions};

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

pub(super) fn level() -> impl TypedValueParser<Value = OptimizationLevel> {
    let names = PossibleValuesParser::new(OptimizationLevel::NAMES.map(|(name, _)| name));
    names.map(|name| OptimizationLevel::from_name(&name).expect("only these names are let through"))
}

/// What is checked of a transformation.
pub(super) fn validation() -> impl TypedValueParser<Value = Validation> {
    let names = PossibleValuesParser::new(Validation::NAMES.map(|(name, _)| name));
    names.map(|name| Validation::from_name(&name).expect("only these names are let through"))
}

/// What becomes of a wrong rewrite.
pub(super) fn on_fail() -> impl TypedValueParser<Value = OnFail> {
    let names = PossibleValuesParser::new(OnFail::NAMES.map(|(name, _)| name));
    names.map(|name| OnFail::from_name(&name).expect("only these names are let through"))
}

/// A size in bytes: `1048576`, `512MB`, `2GiB`. Powers of 1024, as memory is sold.
pub(super) fn memory(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|character: char| !character.is_ascii_digit());
    let shift = match text[digits.len()..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        _ => return Err("give a number of bytes, or a size like `512MB` or `2GB`".to_owned()),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|count| count.checked_mul(1 << shift));
    bytes.filter(|&bytes| bytes > 0).ok_or_else(|| "must be at least 1 byte".to_owned())
}

/// Name and size of an axis.
pub(super) fn dim(text: &str) -> Result<(String, usize), String> {
    let (name, size) = text.rsplit_once('=').unwrap_or_default();
    match size.parse() {
        Ok(size) if !name.is_empty() => Ok((name.to_owned(), size)),
        _ => Err("give the name of an axis and its size: `batch=4`".to_owned()),
    }
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

/// One `--tolerance`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToleranceSpec {
    /// Those that were derived while exporting.
    Auto,
    /// For every port that has none of its own.
    Default(Tolerance),
    /// For one port, `node/port`.
    Port(String, Tolerance),
}

pub(super) fn tolerance_spec(text: &str) -> Result<ToleranceSpec, String> {
    if text == "auto" {
        return Ok(ToleranceSpec::Auto);
    }
    // A name may hold a colon, a tolerance does not.
    match text.rsplit_once(':') {
        None => tolerance(text).map(ToleranceSpec::Default),
        Some((port, text)) if is_port(port) => {
            Ok(ToleranceSpec::Port(port.to_owned(), tolerance(text)?))
        }
        Some((port, _)) => Err(format!("`{port}` is not written `node/port`")),
    }
}

/// One tolerance, for every port.
pub(super) fn ceiling(text: &str) -> Result<Tolerance, String> {
    tolerance(text)
}

fn is_port(text: &str) -> bool {
    text.split_once('/').is_some_and(|(node, port)| !node.is_empty() && !port.is_empty())
}

/// Both parts, in any order. Neither has a default: who gives one part has not thought of the
/// other.
fn tolerance(text: &str) -> Result<Tolerance, String> {
    let (mut atol, mut rtol) = (None, None);
    for part in text.split(',') {
        let (name, slot, value) = match part.split_once('=') {
            Some(("atol", value)) => ("atol", &mut atol, value),
            Some(("rtol", value)) => ("rtol", &mut rtol, value),
            _ => return Err(format!("`{part}`: give `auto`, or both parts as `atol=A,rtol=R`")),
        };
        if slot.replace(tolerance_part(value)?).is_some() {
            return Err(format!("`{name}` stands twice"));
        }
    }
    let atol = atol.ok_or("`atol` is missing: give both parts as `atol=A,rtol=R`")?;
    let rtol = rtol.ok_or("`rtol` is missing: give both parts as `atol=A,rtol=R`")?;
    Tolerance::new(atol, rtol).map_err(|refusal| refusal.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_with_or_without_a_unit() {
        for (text, bytes) in
            [("1", 1), ("512MB", 512 << 20), ("2g", 2 << 30), ("3 KiB", 3 << 10), ("7b", 7)]
        {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        for text in ["", "MB", "0", "1TB", "1.5GB", "-1", "99999999999999999999"] {
            assert!(memory(text).is_err(), "{text}");
        }
        assert_eq!(dim("batch=4"), Ok(("batch".to_owned(), 4)));
        assert_eq!(dim("a=b=2"), Ok(("a=b".to_owned(), 2)));
        assert!(dim("=2").is_err());
    }

    #[test]
    fn tolerances_are_for_everything_or_for_a_port() {
        let both = |atol, rtol| Tolerance::new(atol, rtol).unwrap();
        for (text, expected) in [
            ("auto", ToleranceSpec::Auto),
            ("atol=1e-5,rtol=0.5", ToleranceSpec::Default(both(1e-5, 0.5))),
            ("rtol=0,atol=2", ToleranceSpec::Default(both(2.0, 0.0))),
            ("a/b:atol=1,rtol=0", ToleranceSpec::Port("a/b".into(), both(1.0, 0.0))),
            ("a:x/b:c:atol=1,rtol=0", ToleranceSpec::Port("a:x/b:c".into(), both(1.0, 0.0))),
        ] {
            assert_eq!(tolerance_spec(text).unwrap(), expected, "{text}");
        }
    }
}
