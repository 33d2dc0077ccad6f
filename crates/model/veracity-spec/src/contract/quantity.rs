//! Numbers that belong to joints: gains, defaults, scales and limits.

use std::fmt;

/// A kind of number that every joint has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Quantity(usize);

/// The name in a robot file, and the names that metadata uses.
const TABLE: [(&str, &[&str]); 9] = [
    ("stiffness", &["joint_stiffness"]),
    ("damping", &["joint_damping"]),
    ("default_position", &["default_joint_pos", "default_joint_positions"]),
    ("action_scale", &["action_scale"]),
    ("action_offset", &["action_offset"]),
    ("armature", &["joint_armature"]),
    ("friction", &["joint_friction"]),
    ("effort_limit", &["joint_effort_limit", "joint_effort_limits"]),
    ("velocity_limit", &["joint_velocity_limit", "joint_velocity_limits"]),
];

impl Quantity {
    /// Every quantity.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..TABLE.len()).map(Self)
    }

    /// Its name in a robot file.
    pub fn name(self) -> &'static str {
        TABLE[self.0].0
    }

    /// Whether a key of a port holds such numbers.
    pub(crate) fn is_key(key: &str) -> bool {
        Self::all()
            .any(|quantity| quantity.name() == key || quantity.keys().any(|other| other == key))
    }

    /// The keys that other formats use for it.
    pub(crate) fn keys(self) -> impl Iterator<Item = &'static str> {
        TABLE[self.0].1.iter().copied()
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number, and how far it may be from what was meant because of the way it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Number {
    /// What is written.
    pub value: f64,
    /// Half of the last written digit where exporters round, else 0.
    pub slack: f64,
}

impl Number {
    /// A number that means exactly what it says.
    pub fn exact(value: f64) -> Self {
        Self { value, slack: 0.0 }
    }

    /// A number in text that an exporter rounded, as mjlab does to three digits after the point.
    pub fn rounded(text: &str) -> Option<Self> {
        let text = text.trim();
        let value: f64 = text.parse().ok().filter(|value: &f64| value.is_finite())?;
        let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
        let slack = match mantissa.split_once('.') {
            // With an exponent the number was not written to a fixed number of digits.
            Some((_, digits)) if mantissa.len() == text.len() => {
                0.5 * 10_f64.powi(-i32::try_from(digits.len()).unwrap_or(i32::MAX))
            }
            _ => 0.0,
        };
        Some(Self { value, slack })
    }

    /// Whether two numbers may be the same, up to an error relative to the larger one.
    pub fn agrees(self, other: Self, rtol: f64) -> bool {
        let allowed = self.slack + other.slack + rtol * self.value.abs().max(other.value.abs());
        // A rounded number may lie on the edge of its slack; that edge is itself rounded.
        (self.value - other.value).abs() <= allowed * (1.0 + 1e-9)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rounded_number_is_known_to_half_of_its_last_digit() {
        for (text, expected) in [
            ("20.000", Some((20.0, 0.0005))),
            (" 0.5 ", Some((0.5, 0.05))),
            ("7", Some((7.0, 0.0))),
            ("1e-3", Some((1e-3, 0.0))),
            ("1.5e-3", Some((1.5e-3, 0.0))),
            ("nan", None),
            ("inf", None),
            ("hip", None),
            ("", None),
        ] {
            let found = Number::rounded(text).map(|number| (number.value, number.slack));
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn numbers_agree_within_what_rounding_and_tolerance_leave_open() {
        let rounded = |text| Number::rounded(text).unwrap();
        for (left, right, rtol, agrees) in [
            (Number::exact(20.0), Number::exact(20.0), 0.0, true),
            (Number::exact(20.0), Number::exact(20.1), 0.0, false),
            (Number::exact(20.0), Number::exact(20.1), 0.01, true),
            (rounded("0.123"), Number::exact(0.12345), 0.0, true),
            (rounded("0.123"), Number::exact(0.1235), 0.0, true),
            (rounded("0.123"), Number::exact(0.1236), 0.0, false),
            (rounded("0.123"), rounded("0.124"), 0.0, true),
            (Number::exact(0.0), Number::exact(1e-12), 1e-6, false),
        ] {
            assert_eq!(left.agrees(right, rtol), agrees, "{left:?} {right:?} {rtol}");
        }
    }
}
