//! Lists as other formats hold them: text with commas in between, or values of a bundle.

use veracity_diag::{Diagnostic, Place, codes};

use super::order::repeated;
use super::quantity::{Number, Quantity};
use super::{Joints, Stated};
use crate::Value;

/// An entry of a list.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Text, which may be a number that was rounded when it was written.
    Text(String),
    /// A number.
    Number(f64),
}

impl Item {
    fn number(&self) -> Option<Number> {
        match self {
            Self::Text(text) => Number::rounded(text),
            Self::Number(value) => value.is_finite().then(|| Number::exact(*value)),
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(_) => None,
        }
    }
}

/// `a,b,c`, or the same as a list with brackets and quotes.
pub(super) fn from_text(text: &str) -> Vec<Item> {
    let text = text.trim();
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let plain = |entry: &str| entry.trim().trim_matches(['"', '\'']).to_owned();
    if inner.trim().is_empty() {
        return Vec::new();
    }
    inner.split(',').map(|entry| Item::Text(plain(entry))).collect()
}

/// A list, or text as above, or a single number. `None` for anything else.
pub(super) fn from_value(value: &Value) -> Option<Vec<Item>> {
    match value {
        Value::Text(text) => Some(from_text(text)),
        Value::List(items) => items.iter().map(from_entry).collect(),
        _ => from_entry(value).map(|item| vec![item]),
    }
}

fn from_entry(value: &Value) -> Option<Item> {
    match value {
        Value::Text(text) => Some(Item::Text(text.clone())),
        _ => value.as_f64().map(Item::Number),
    }
}

/// Text only.
pub(super) fn texts(items: &[Item]) -> Option<Vec<String>> {
    items.iter().map(Item::text).collect()
}

/// Where the lists of one group come from.
pub(super) struct Lists<'l> {
    pub(super) subject: String,
    pub(super) place: Place,
    pub(super) find: &'l dyn Fn(&str) -> Option<Vec<Item>>,
}

impl Lists<'_> {
    /// Joints with what is said of them; `None` when there are none. What cannot be used is told
    /// and left out.
    pub(super) fn joints(&self, problems: &mut Vec<Diagnostic>) -> Option<Joints> {
        let names = self.names("joint_names", problems)?;
        let mut quantities = Vec::new();
        for quantity in Quantity::all() {
            let found = quantity.keys().find_map(|key| Some((key, (self.find)(key)?)));
            let Some((key, items)) = found else { continue };
            match numbers(&items, names.value.len()) {
                Ok(numbers) => {
                    quantities.push((quantity, Stated::new(numbers, self.place.clone())));
                }
                Err(why) => self.unusable(key, &why, problems),
            }
        }
        let subject = self.subject.clone();
        Some(Joints { subject, names, has_names: true, of_port: false, quantities })
    }

    /// A list of names of which none stands twice.
    pub(super) fn names(
        &self,
        key: &str,
        problems: &mut Vec<Diagnostic>,
    ) -> Option<Stated<Vec<String>>> {
        let items = (self.find)(key)?;
        let problem = match texts(&items) {
            None => "is not a list of names".to_owned(),
            Some(names) => match repeated(&names) {
                Some(name) => format!("names {name:?} twice"),
                None if names.is_empty() => return None,
                None => return Some(Stated::new(names, self.place.clone())),
            },
        };
        self.unusable(key, &problem, problems);
        None
    }

    fn unusable(&self, key: &str, why: &str, problems: &mut Vec<Diagnostic>) {
        let message = format!("`{key}` of {} {why}; it is not compared", self.subject);
        problems.push(Diagnostic::warning(codes::CONTRACT_INVALID, message).at(self.place.clone()));
    }
}

/// One number for each of `count` joints; a single one is for all of them.
pub(super) fn numbers(items: &[Item], count: usize) -> Result<Vec<Option<Number>>, String> {
    let numbers: Option<Vec<Number>> = items.iter().map(Item::number).collect();
    let numbers = numbers.ok_or("holds something that is not a number")?;
    match numbers.as_slice() {
        [one] => Ok(vec![Some(*one); count]),
        _ if numbers.len() == count => Ok(numbers.into_iter().map(Some).collect()),
        _ => Err(format!("has {} numbers for {count} joints", numbers.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_with_and_without_brackets() {
        let abc = ["a", "b", "c d"].map(|text| Item::Text(text.to_owned()));
        for text in ["a,b,c d", " a , b,c d ", "[a, b, c d]", "['a', \"b\", 'c d']"] {
            assert_eq!(from_text(text), abc, "{text:?}");
        }
        assert_eq!(from_text(""), []);
        assert_eq!(from_text("[]"), []);
    }

    #[test]
    fn one_number_is_for_all_joints_and_other_counts_are_refused() {
        let one = vec![Some(Number::exact(2.0)); 3];
        assert_eq!(numbers(&[Item::Number(2.0)], 3), Ok(one));
        assert!(numbers(&[Item::Number(2.0), Item::Number(1.0)], 3).is_err());
        assert!(numbers(&from_text("1.0,x,2.0"), 3).is_err());
    }
}
