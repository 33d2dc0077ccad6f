//! What single operators may introduce, when one budget for all of them does not do.
//!
//! A file of rules is JSON: `{"rules": [{"op": "Softmax", "budget": 256}, ...]}`. The first rule
//! whose patterns all match an operator holds for it. What is not understood is refused: a slip in
//! a file of tolerances must not make a test weaker.

use std::path::Path;

use serde::Deserialize;
use veracity_diag::{Diagnostic, Place, Refusal, Result, codes};

/// Most bytes of a file of rules; it is written by hand.
const MAX_BYTES: u64 = 16 << 20;

/// Rules by value, operator and module, the first that matches first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules(Vec<Rule>);

/// What holds for the operators that all given patterns match. `*` stands for any text, `?` for
/// one character.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Pattern of the name of the value.
    pub name: Option<String>,
    /// Pattern of the operator, `domain::Operator` outside of the default domain.
    pub op: Option<String>,
    /// Pattern of the path of the module.
    pub module: Option<String>,
    /// What the operator may introduce.
    pub allowance: Allowance,
}

/// What an operator may introduce.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Allowance {
    /// Units in the last place of its largest value.
    Units(f64),
    /// This much, whatever its values are.
    Absolute(f64),
    /// It is not looked at, and the graph is not cut there.
    Skip,
}

/// What the patterns are held against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operator<'a> {
    pub(crate) name: &'a str,
    pub(crate) op_type: &'a str,
    pub(crate) module: &'a str,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rules: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    op: Option<String>,
    module: Option<String>,
    budget: Option<f64>,
    atol: Option<f64>,
    skip: Option<bool>,
}

impl Rules {
    /// These rules, in this order.
    pub fn new(rules: impl Into<Vec<Rule>>) -> Self {
        Self(rules.into())
    }

    /// Reads a file of rules.
    pub fn read(path: &Path) -> Result<Self> {
        let place = Place::file(path.display().to_string());
        let text = crate::file::read_text(path, MAX_BYTES)?;
        Self::from_json(&text).map_err(|refusal| refusal.within(&place))
    }

    /// Reads rules from the text of such a file.
    pub fn from_json(text: &str) -> Result<Self> {
        let file: File = serde_json::from_str(text).map_err(|error| {
            let place = crate::file::position(&error);
            unreadable(format!("these are no tolerances: {error}")).at(place)
        })?;
        let rules = file.rules.into_iter().enumerate();
        rules.map(|(index, rule)| rule.checked(index)).collect::<Result<_>>().map(Self)
    }

    /// The position and the allowance of the first rule that matches.
    pub(crate) fn first_for(&self, operator: Operator<'_>) -> Option<(usize, Allowance)> {
        let mut rules = self.0.iter().enumerate();
        rules.find(|(_, rule)| rule.matches(operator)).map(|(index, rule)| (index, rule.allowance))
    }

    /// What to say about the rules that were not needed.
    pub(crate) fn unused(&self, used: &[usize]) -> Vec<String> {
        let rules = self.0.iter().enumerate().filter(|(index, _)| !used.contains(index));
        rules
            .map(|(index, rule)| {
                format!("rule {} ({}) holds for no value that was found", index + 1, rule.text())
            })
            .collect()
    }
}

impl Rule {
    fn matches(&self, operator: Operator<'_>) -> bool {
        let fits = |pattern: &Option<String>, text: &str| {
            pattern.as_ref().is_none_or(|pattern| matches(pattern, text))
        };
        fits(&self.name, operator.name)
            && fits(&self.op, operator.op_type)
            && fits(&self.module, operator.module)
    }

    fn text(&self) -> String {
        let part = |key: &str, pattern: &Option<String>| {
            pattern.as_ref().map(|pattern| format!("{key} {pattern:?}"))
        };
        let parts = [part("name", &self.name), part("op", &self.op), part("module", &self.module)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "for every value".to_owned() } else { parts.join(", ") }
    }
}

impl Written {
    fn checked(self, index: usize) -> Result<Rule> {
        let refuse = |what: &str| Err(unreadable(format!("rule {}: {what}", index + 1)).into());
        let usable = |value: f64| value.is_finite() && value >= 0.0;
        let allowance = match (self.budget, self.atol, self.skip) {
            (Some(units), None, None) if usable(units) => Allowance::Units(units),
            (None, Some(atol), None) if usable(atol) => Allowance::Absolute(atol),
            (None, None, Some(true)) => Allowance::Skip,
            (None, None, Some(false)) => return refuse("`skip` is true or left out"),
            (Some(_), None, None) | (None, Some(_), None) => {
                return refuse("a number must be finite and at least 0");
            }
            _ => return refuse("give one of `budget`, `atol` and `skip`"),
        };
        Ok(Rule { name: self.name, op: self.op, module: self.module, allowance })
    }
}

fn unreadable(message: String) -> Diagnostic {
    Diagnostic::error(codes::TOLERANCES_UNREADABLE, message)
        .hint("a rule is {\"op\": \"Softmax\", \"budget\": 256}, in a list called `rules`")
}

/// Whether a pattern with `*` and `?` matches a whole text. Linear in both: a failed attempt goes
/// back to the last `*` only.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut position) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while position < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, position));
                at += 1;
            }
            Some(&wanted) if wanted == '?' || wanted == text[position] => {
                at += 1;
                position += 1;
            }
            _ => match star {
                Some((start, taken)) => {
                    star = Some((start, taken + 1));
                    (at, position) = (start + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|&rest| rest == '*')
}

impl From<Vec<Rule>> for Rules {
    fn from(rules: Vec<Rule>) -> Self {
        Self(rules)
    }
}

/// For callers that hold text and not a file.
impl std::str::FromStr for Rules {
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Self> {
        Self::from_json(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("relu", "relu", true),
            ("relu", "relu_1", false),
            ("relu*", "relu_1", true),
            ("*relu", "a.relu", true),
            ("layer?.*.bn*", "layer1.0.bn2", true),
            ("layer?.*.bn*", "layer10.0.conv", false),
            ("*", "", true),
            ("", "", true),
            ("?", "", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
            ("**", "x", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        let slow = "a*".repeat(40) + "b";
        assert!(!matches(&slow, &"a".repeat(4000)));
    }

    #[test]
    fn the_first_rule_that_matches_holds() {
        let rules = Rules::from_json(
            r#"{"rules": [
                {"name": "linear*", "op": "Gemm", "budget": 8},
                {"op": "Gemm", "atol": 1e-3},
                {"module": "head.*", "skip": true},
                {"budget": 64}
            ]}"#,
        );
        let rules = rules.unwrap();
        for (name, op_type, module, expected) in [
            ("linear_1", "Gemm", "", (0, Allowance::Units(8.0))),
            ("linear_1", "MatMul", "", (3, Allowance::Units(64.0))),
            ("x", "Gemm", "head.0", (1, Allowance::Absolute(1e-3))),
            ("x", "Relu", "head.0", (2, Allowance::Skip)),
        ] {
            let found = rules.first_for(Operator { name, op_type, module });
            assert_eq!(found, Some(expected), "{name} {op_type} {module}");
        }
        assert_eq!(
            rules.unused(&[0, 2, 3]),
            [r#"rule 2 (op "Gemm") holds for no value that was found"#]
        );
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (text, part) in [
            ("", "no tolerances"),
            ("[]", "no tolerances"),
            (r#"{"rules": [{"ops": "Gemm", "budget": 1}]}"#, "unknown field `ops`"),
            (r#"{"rules": [], "version": 1}"#, "unknown field `version`"),
            (r#"{"rules": [{"op": "Gemm"}]}"#, "rule 1: give one of"),
            (r#"{"rules": [{"budget": 1, "atol": 1}]}"#, "rule 1: give one of"),
            (r#"{"rules": [{"budget": 1}, {"budget": -1}]}"#, "rule 2: a number"),
            (r#"{"rules": [{"skip": false}]}"#, "`skip` is true or left out"),
        ] {
            let refused = Rules::from_json(text).unwrap_err();
            let first = refused.first_error();
            assert_eq!(first.code, codes::TOLERANCES_UNREADABLE, "{text}");
            assert!(first.message.contains(part), "{text}: {}", first.message);
        }
    }
}
