//! Files of a format, which must be readable for good: what holds for every format.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::schema;

/// A place in a file, a key there, and what to put in its place; `None` takes it away.
pub(crate) type Damage = (&'static str, &'static str, Option<Value>);

/// A format: its files by version, oldest first, and its schema.
pub(crate) struct Format {
    pub(crate) golden: &'static [(&'static str, &'static str)],
    pub(crate) schema: &'static str,
}

impl Format {
    /// Every golden file.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.golden.iter().map(|(version, text)| (*version, serde_json::from_str(text).unwrap()))
    }

    /// The oldest golden file.
    pub(crate) fn first(&self) -> Value {
        self.files().next().unwrap().1
    }

    /// Every file is read and written again without a loss.
    pub(crate) fn is_read<T: DeserializeOwned + Serialize>(&self) {
        for (version, value) in self.files() {
            let read: T = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(value["schema_version"], version);
            assert_eq!(serde_json::to_value(&read).unwrap(), value);
        }
    }

    /// Every file fits the schema, and there is one of the version that is written.
    pub(crate) fn fits_its_schema(&self, written: &str) {
        let schema: Value = serde_json::from_str(self.schema).unwrap();
        for (version, value) in self.files() {
            assert_eq!(schema::problems(&schema, &value), Vec::<String>::new(), "{version}");
        }
        assert_eq!(self.golden.last().unwrap().0, written);
    }

    /// What the schema refuses is refused by the reader, too.
    pub(crate) fn refuses<T: DeserializeOwned>(&self, damages: &[Damage]) {
        let schema: Value = serde_json::from_str(self.schema).unwrap();
        for (pointer, key, replacement) in damages {
            let mut broken = self.first();
            let holder = broken.pointer_mut(pointer).unwrap().as_object_mut().unwrap();
            assert!(holder.contains_key(*key), "{pointer}/{key}");
            match replacement {
                Some(value) => holder.insert((*key).to_owned(), value.clone()),
                None => holder.remove(*key),
            };
            assert_ne!(schema::problems(&schema, &broken), Vec::<String>::new(), "{pointer}/{key}");
            assert!(serde_json::from_value::<T>(broken).is_err(), "{pointer}/{key}");
        }
    }
}
