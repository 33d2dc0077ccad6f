//! Parts of a draft that have no fixed form.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use veracity_spec::{AxisNames, Map, Value};

/// Keys that are carried into the bundle as they are, in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra(pub Map);

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Any::deserialize(deserializer)?.0 {
            Value::Map(map) => Ok(Self(map)),
            Value::Null => Ok(Self::default()),
            _ => Err(serde::de::Error::custom("expected keys with values")),
        }
    }
}

/// Any value.
struct Any(Value);

impl<'de> Deserialize<'de> for Any {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyVisitor).map(Self)
    }
}

struct AnyVisitor;

impl<'de> Visitor<'de> for AnyVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that YAML can hold")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Int(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Any(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, Any(value))) = pairs.next_entry::<String, _>()? {
            map.insert(key, value);
        }
        Ok(Value::Map(map))
    }
}

/// What stands for a temporal axis, as in the file.
const TEMPORAL: &str = "__temporal_axis__";

/// Reads names along the axes.
pub(super) fn axes<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<AxisNames>>, D::Error> {
    let list = match Any::deserialize(deserializer)?.0 {
        Value::Null => return Ok(None),
        Value::List(list) => list,
        _ => return Err(serde::de::Error::custom("element names are a list")),
    };
    let axes: Option<Vec<AxisNames>> = list.into_iter().map(axis).collect();
    axes.map(Some).ok_or_else(|| {
        let message = format!("an axis has a list of names, null or {TEMPORAL:?}");
        serde::de::Error::custom(message)
    })
}

fn axis(value: Value) -> Option<AxisNames> {
    let name = |name: Value| match name {
        Value::Text(text) => Some(text),
        _ => None,
    };
    match value {
        Value::Null => Some(AxisNames::Unnamed),
        Value::Text(text) => (text == TEMPORAL).then_some(AxisNames::Temporal),
        Value::List(names) => {
            names.into_iter().map(name).collect::<Option<_>>().map(AxisNames::Named)
        }
        _ => None,
    }
}
