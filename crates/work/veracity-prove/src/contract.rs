//! Whether ports still mean what they meant when their values were recorded.
//!
//! Values can be right and mean something else: a unit, a kind, the order of joints, a frequency. The
//! samples hold what was declared while recording, so that a description that was changed
//! afterwards is told.

use serde_json::{Map, Value, json};
use veracity_diag::{Diagnostic, Place, codes};
use veracity_results::Verdict;
use veracity_spec::{AxisNames, Bundle, Direction, PortSpec};

use crate::builder::Builder;
use crate::samples::Samples;

/// What is declared of a port beside its name, dtype and shape, which samples show themselves.
const DECLARED: [&str; 4] = ["kind", "element_names", "temporal_period_ms", "extra"];

/// Disproves the nodes whose ports are not declared as they were. Samples that do not say are not
/// held against anybody.
pub(crate) fn check(bundle: &Bundle, samples: &Samples, builder: &mut Builder) {
    for (node, found) in changed(bundle, samples) {
        builder.refuse_node(&node, Verdict::Disproved, found);
    }
}

/// What is declared otherwise than it was while recording, with its node.
pub(crate) fn changed(bundle: &Bundle, samples: &Samples) -> Vec<(String, Diagnostic)> {
    let Some(recorded) = samples.contract() else { return Vec::new() };
    let spec = bundle.spec();
    let frequency = json!(spec.configs.frequency);
    let mut all = Vec::new();
    for node in &spec.nodes {
        if !same(&recorded["frequency"], &frequency) {
            let message = said("the frequency of the pipeline", &recorded["frequency"], &frequency);
            all.push((node.name.clone(), otherwise(message)));
        }
        for (direction, side) in [(Direction::Input, "in"), (Direction::Output, "out")] {
            for port in node.ports(direction) {
                let key = format!("{}/{side}/{}", node.name, port.name);
                let Some(before) = recorded["ports"].get(&key) else { continue };
                for found in changes(port, before) {
                    let found = found.at(Place::port(&node.name, &port.name));
                    all.push((node.name.clone(), found));
                }
            }
        }
    }
    all
}

fn changes(port: &PortSpec, before: &Value) -> Vec<Diagnostic> {
    let Ok(mut now) = serde_json::to_value(port) else { return Vec::new() };
    now["element_names"] = port.element_names.as_deref().map_or(Value::Null, names);
    let is_changed = |key: &&&str| !same(&before[**key], &now[**key]);
    let tell = |key: &&str| {
        let what = format!("`{key}` of `{}`", port.name);
        otherwise(said(&what, &before[*key], &now[*key]))
    };
    DECLARED.iter().filter(is_changed).map(tell).collect()
}

/// Names along axes as the description has them.
fn names(axes: &[AxisNames]) -> Value {
    let name = |axis: &AxisNames| match axis {
        AxisNames::Unnamed => Value::Null,
        AxisNames::Temporal => json!("__temporal_axis__"),
        AxisNames::Named(names) => json!(names),
    };
    axes.iter().map(name).collect()
}

/// Equal up to how numbers are written; nothing is what was not said.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => same_maps(left, right),
        (Value::Object(map), Value::Null) | (Value::Null, Value::Object(map)) => map.is_empty(),
        (left, right) => left == right,
    }
}

fn same_maps(left: &Map<String, Value>, right: &Map<String, Value>) -> bool {
    let all_in = |one: &Map<String, Value>, other: &Map<String, Value>| {
        one.iter().all(|(key, value)| same(value, other.get(key).unwrap_or(&Value::Null)))
    };
    all_in(left, right) && all_in(right, left)
}

fn said(what: &str, before: &Value, now: &Value) -> String {
    format!("{what} was {before} while recording, and is {now}")
}

fn otherwise(message: String) -> Diagnostic {
    Diagnostic::error(codes::RECORDED_OTHERWISE, message)
        .hint("put the description back, or export again with what is meant")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_otherwise_and_means_the_same_is_the_same() {
        for (left, right, equal) in [
            (json!(1), json!(1.0), true),
            (json!(null), json!({}), true),
            (json!({"unit": "rad"}), json!({"unit": "rad", "note": null}), true),
            (json!({"unit": "rad"}), json!({"unit": "deg"}), false),
            (json!([["a", "b"]]), json!([["b", "a"]]), false),
            (json!("state/joint/position"), json!(null), false),
        ] {
            assert_eq!(same(&left, &right), equal, "{left} {right}");
            assert_eq!(same(&right, &left), equal, "{right} {left}");
        }
    }
}
