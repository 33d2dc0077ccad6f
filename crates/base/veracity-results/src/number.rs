//! float64 in JSON, which has no infinities: they are written as text.

use serde::{Deserialize, Deserializer, Serializer};

/// How a number stands in JSON.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Number {
    /// Most of them.
    Finite(f64),
    /// `inf`, `-inf` or `NaN`.
    Text(String),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { serializer.serialize_f64(*value) } else { serializer.collect_str(value) }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    match Number::deserialize(deserializer)? {
        Number::Finite(value) => Ok(value),
        Number::Text(text) => text.parse().map_err(serde::de::Error::custom),
    }
}

/// The same for a number that may be absent.
pub(crate) mod optional {
    use serde::{Deserialize as _, Deserializer, Serializer};

    use super::Number;

    #[expect(clippy::ref_option, reason = "the signature that serde asks for")]
    pub(crate) fn serialize<S: Serializer>(
        value: &Option<f64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => super::serialize(value, serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<f64>, D::Error> {
        match Option::<Number>::deserialize(deserializer)? {
            None => Ok(None),
            Some(Number::Finite(value)) => Ok(Some(value)),
            Some(Number::Text(text)) => text.parse().map(Some).map_err(serde::de::Error::custom),
        }
    }
}

/// Many of them.
pub(crate) mod list {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct One(#[serde(with = "super")] f64);

    pub(crate) fn serialize<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(values.iter().map(|value| One(*value)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<f64>, D::Error> {
        Ok(Vec::<One>::deserialize(from)?.into_iter().map(|one| one.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Holder(#[serde(with = "super")] f64);

    #[test]
    fn every_number_survives_json() {
        for value in [0.0, -1.5e-300, f64::MAX, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            let json = serde_json::to_string(&Holder(value)).unwrap();
            let read: Holder = serde_json::from_str(&json).unwrap();
            assert!(
                read.0.to_bits() == value.to_bits() || value.is_nan() && read.0.is_nan(),
                "{json}"
            );
        }
    }
}
