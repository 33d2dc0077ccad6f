//! The part of JSON Schema that the committed schema uses. A keyword that is not known here is a
//! problem, not ignored.

use serde_json::{Map, Value};

/// Keywords that say nothing about what fits.
const SILENT: [&str; 6] = ["$schema", "title", "description", "default", "format", "$defs"];

/// Every place at which `value` does not fit `schema`.
pub(crate) fn problems(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    Checker { root: schema }.check(schema, value, "", &mut found);
    found
}

struct Checker<'s> {
    root: &'s Value,
}

impl Checker<'_> {
    fn check(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        for (keyword, rule) in schema.as_object().unwrap() {
            let problem = match keyword.as_str() {
                word if SILENT.contains(&word) => continue,
                "$ref" => {
                    let target = rule.as_str().unwrap().trim_start_matches('#');
                    self.check(self.root.pointer(target).unwrap(), value, at, found);
                    continue;
                }
                "properties" => {
                    self.check_properties(rule.as_object().unwrap(), value, at, found);
                    continue;
                }
                "additionalProperties" | "items" => {
                    self.check_parts(schema, rule, value, at, found);
                    continue;
                }
                "prefixItems" => {
                    for (index, rule) in rule.as_array().unwrap().iter().enumerate() {
                        if let Some(part) = value.get(index) {
                            self.check(rule, part, &format!("{at}/{index}"), found);
                        }
                    }
                    continue;
                }
                "type" => !has_type(rule, value),
                "const" => rule != value,
                "required" => {
                    let names = rule.as_array().unwrap();
                    value.is_object()
                        && names.iter().any(|n| value.get(n.as_str().unwrap()).is_none())
                }
                "minimum" => value.as_f64().is_some_and(|number| number < rule.as_f64().unwrap()),
                "minItems" => {
                    value.as_array().is_some_and(|a| (a.len() as u64) < rule.as_u64().unwrap())
                }
                "maxItems" => {
                    value.as_array().is_some_and(|a| (a.len() as u64) > rule.as_u64().unwrap())
                }
                "oneOf" => self.fitting(rule, value) != 1,
                "anyOf" => self.fitting(rule, value) == 0,
                unknown => panic!("the schema uses {unknown}, which this does not know"),
            };
            if problem {
                found.push(format!("{at}: {keyword} {rule}"));
            }
        }
    }

    fn check_properties(
        &self,
        rules: &Map<String, Value>,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) {
        for (name, rule) in rules {
            if let Some(part) = value.get(name) {
                self.check(rule, part, &format!("{at}/{name}"), found);
            }
        }
    }

    /// Values of a mapping that have no rule of their own, or elements of a list.
    fn check_parts(
        &self,
        schema: &Value,
        rule: &Value,
        value: &Value,
        at: &str,
        found: &mut Vec<String>,
    ) {
        if let Some(map) = value.as_object() {
            for (name, part) in
                map.iter().filter(|(name, _)| schema["properties"].get(name).is_none())
            {
                self.check(rule, part, &format!("{at}/{name}"), found);
            }
        }
        for (index, part) in value.as_array().into_iter().flatten().enumerate() {
            self.check(rule, part, &format!("{at}/{index}"), found);
        }
    }

    fn fitting(&self, rules: &Value, value: &Value) -> usize {
        let fits = |rule: &&Value| {
            let mut found = Vec::new();
            self.check(rule, value, "", &mut found);
            found.is_empty()
        };
        rules.as_array().unwrap().iter().filter(fits).count()
    }
}

fn has_type(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        unknown => panic!("{unknown} is no type"),
    };
    match rule {
        Value::String(name) => is(name),
        names => names.as_array().unwrap().iter().any(|name| is(name.as_str().unwrap())),
    }
}
