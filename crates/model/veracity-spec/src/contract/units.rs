//! Units: spellings of the same unit, and factors between units of the same thing.

use std::f64::consts::PI;

/// What two units have in common.
#[derive(Debug, PartialEq)]
pub(super) enum Kinship {
    /// Two spellings of one unit.
    Same,
    /// The same thing in other steps: values in `from` times this are values in `to`.
    Factor(f64),
    /// Different things.
    Different,
    /// At least one of them is not known here.
    Unknown,
}

struct Unit {
    /// Units of one thing can be turned into each other.
    thing: &'static str,
    /// How many of the thing's first unit one of these is.
    size: f64,
    spellings: &'static [&'static str],
}

const fn unit(thing: &'static str, size: f64, spellings: &'static [&'static str]) -> Unit {
    Unit { thing, size, spellings }
}

/// Spellings in lower case without spaces; `·`, `*` and `.` between units are dropped.
const UNITS: [Unit; 30] = [
    unit("angle", 1.0, &["rad", "radian", "radians"]),
    unit("angle", 1e-3, &["mrad"]),
    unit("angle", PI / 180.0, &["deg", "degree", "degrees", "°"]),
    unit("angle", 2.0 * PI, &["rev", "turn", "turns", "revolutions"]),
    unit("angular velocity", 1.0, &["rad/s", "rads^-1", "rad/sec", "radians/s"]),
    unit("angular velocity", PI / 180.0, &["deg/s", "°/s", "degs^-1", "deg/sec", "degrees/s"]),
    unit("angular velocity", PI / 30.0, &["rpm", "rev/min"]),
    unit("angular velocity", 2.0 * PI, &["rev/s", "turn/s", "turns/s"]),
    unit("angular acceleration", 1.0, &["rad/s^2", "rad/s2", "rad/s²", "rads^-2"]),
    unit("angular acceleration", PI / 180.0, &["deg/s^2", "deg/s2", "deg/s²", "°/s²"]),
    unit("length", 1.0, &["m", "meter", "meters", "metre", "metres"]),
    unit("length", 1e-2, &["cm"]),
    unit("length", 1e-3, &["mm"]),
    unit("velocity", 1.0, &["m/s", "ms^-1", "m/sec"]),
    unit("velocity", 1e-2, &["cm/s"]),
    unit("velocity", 1e-3, &["mm/s"]),
    unit("velocity", 1.0 / 3.6, &["km/h", "kmh"]),
    unit("acceleration", 1.0, &["m/s^2", "m/s2", "m/s²", "ms^-2"]),
    unit("acceleration", 9.806_65, &["g", "g0"]),
    unit("force", 1.0, &["n", "newton", "newtons"]),
    unit("force", 1e3, &["kn"]),
    unit("torque", 1.0, &["nm", "newtonmeter", "newtonmeters"]),
    unit("torque", 1e-3, &["mnm"]),
    unit("time", 1.0, &["s", "sec", "second", "seconds"]),
    unit("time", 1e-3, &["ms", "millisecond", "milliseconds"]),
    unit("time", 1e-6, &["us", "µs", "microsecond", "microseconds"]),
    unit("share", 1.0, &["1", "unitless", "dimensionless", "normalized", "normalised", "none"]),
    unit("share", 1e-2, &["%", "percent"]),
    unit("current", 1.0, &["a", "ampere", "amperes"]),
    unit("current", 1e-3, &["ma"]),
];

/// Compares two units as they are written.
pub(super) fn kinship(from: &str, to: &str) -> Kinship {
    let (from_text, to_text) = (plain(from), plain(to));
    if from_text == to_text {
        return Kinship::Same;
    }
    let (Some(from), Some(to)) = (find(&from_text), find(&to_text)) else {
        return Kinship::Unknown;
    };
    if from.thing != to.thing {
        Kinship::Different
    } else if from.size.total_cmp(&to.size).is_eq() {
        Kinship::Same
    } else {
        Kinship::Factor(from.size / to.size)
    }
}

fn find(text: &str) -> Option<&'static Unit> {
    UNITS.iter().find(|unit| unit.spellings.contains(&text))
}

fn plain(text: &str) -> String {
    let kept = text.chars().filter(|character| !matches!(character, ' ' | '·' | '*' | '.' | '⋅'));
    kept.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_and_factors_are_told_from_other_things() {
        for (from, to, expected) in [
            ("rad", "rad", Kinship::Same),
            ("rad", "Radians", Kinship::Same),
            ("N·m", "N m", Kinship::Same),
            ("furlong", "furlong", Kinship::Same),
            ("deg", "rad", Kinship::Factor(PI / 180.0)),
            ("rad", "deg", Kinship::Factor(180.0 / PI)),
            ("mm", "m", Kinship::Factor(1e-3)),
            ("rpm", "rad/s", Kinship::Factor(PI / 30.0)),
            ("rad", "m", Kinship::Different),
            ("rad", "rad/s", Kinship::Different),
            ("furlong", "m", Kinship::Unknown),
        ] {
            let found = kinship(from, to);
            match (&found, &expected) {
                (Kinship::Factor(found), Kinship::Factor(wanted)) => {
                    assert!((found / wanted - 1.0).abs() < 1e-12, "{from} {to}: {found}");
                }
                _ => assert_eq!(found, expected, "{from} {to}"),
            }
        }
    }

    #[test]
    fn a_spelling_stands_once_and_is_found() {
        let mut all: Vec<&str> = UNITS.iter().flat_map(|unit| unit.spellings).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(all.iter().all(|text| plain(text) == *text), "a spelling that is never met");
    }
}
