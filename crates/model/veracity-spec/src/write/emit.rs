//! A [`Spec`] as YAML, in the layout of LEAPP 1.3 followed by the block `veracity:`.

use crate::write::quote::scalar;
use crate::{AxisNames, Edge, Map, Node, PortRef, PortSpec, Spec, Value, VeracityBlock};

impl Spec {
    /// The text of the YAML file. The same spec gives the same bytes.
    pub fn to_yaml(&self) -> String {
        yaml_from_spec(self)
    }
}

fn yaml_from_spec(spec: &Spec) -> String {
    let mut out = Lines::default();
    out.open(0, "models", spec.nodes.is_empty());
    for node in &spec.nodes {
        write_node(&mut out, node);
    }
    out.blank();
    write_pipeline(&mut out, spec);
    out.blank();
    write_system(&mut out, spec);
    if !spec.extra.is_empty() {
        out.blank();
        out.extra(0, &spec.extra);
    }
    if let Some(block) = &spec.veracity {
        out.blank();
        write_veracity(&mut out, block);
    }
    out.0
}

/// Lines of block-style YAML, two spaces a level.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, depth: usize, text: &str) {
        self.0.push_str(&"  ".repeat(depth));
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }

    /// A key whose mapping follows, one level deeper.
    fn open(&mut self, depth: usize, key: &str, empty: bool) {
        let suffix = if empty { ": {}" } else { ":" };
        self.line(depth, &format!("{}{suffix}", scalar(key)));
    }

    /// A key with a value that is already YAML.
    fn pair(&mut self, depth: usize, key: &str, value: &str) {
        self.line(depth, &format!("{}: {value}", scalar(key)));
    }

    fn extra(&mut self, depth: usize, map: &Map) {
        for (key, value) in map.iter() {
            self.pair(depth, key, &flow(value));
        }
    }
}

fn write_node(out: &mut Lines, node: &Node) {
    out.open(1, &node.name, false);
    write_ports(out, "inputs", &node.inputs);
    write_ports(out, "outputs", &node.outputs);
    out.open(2, "parameters", false);
    let null = || "null".to_owned();
    let model = node.model.as_ref();
    out.pair(3, "model_path", &model.map_or_else(null, |model| scalar(model.path.as_str())));
    out.pair(3, "md5sum", &model.map_or_else(null, |model| scalar(&model.md5.to_string())));
    out.pair(3, "sha256sum", &model.map_or_else(null, |model| scalar(&model.sha256.to_string())));
    out.pair(3, "backend", model.map_or("null", |model| model.backend.name()));
    out.extra(3, &node.parameters);
    out.extra(2, &node.extra);
}

fn write_ports(out: &mut Lines, key: &str, ports: &[PortSpec]) {
    if ports.is_empty() {
        return out.line(2, &format!("{key}: []"));
    }
    out.line(2, &format!("{key}:"));
    for port in ports {
        out.line(2, &format!("- name: {}", scalar(&port.name)));
        out.pair(3, "dtype", port.dtype.name());
        out.pair(3, "shape", &port.shape.to_string());
        if port.extra.get("type").is_none() {
            out.pair(3, "type", "tensor");
        }
        if let Some(kind) = &port.kind {
            out.pair(3, "kind", &scalar(kind));
        }
        if let Some(axes) = &port.element_names {
            out.pair(3, "element_names", &list(axes.iter().map(axis_names)));
        }
        if let Some(period) = port.temporal_period_ms {
            out.pair(3, "temporal_period_ms", &number(period));
        }
        out.extra(3, &port.extra);
    }
}

fn axis_names(axis: &AxisNames) -> String {
    match axis {
        AxisNames::Unnamed => "null".to_owned(),
        AxisNames::Temporal => AxisNames::TEMPORAL.to_owned(),
        AxisNames::Named(names) => list(names.iter().map(|name| scalar(name))),
    }
}

fn write_pipeline(out: &mut Lines, spec: &Spec) {
    out.open(0, "pipeline", false);
    if !spec.configs.is_empty() {
        out.open(1, "configs", false);
        if let Some(frequency) = spec.configs.frequency {
            out.pair(2, "frequency", &number(frequency));
        }
        out.extra(2, &spec.configs.extra);
    }
    write_flow(out, "data_flow", &spec.data_flow);
    write_flow(out, "feedback_flow", &spec.feedback_flow);
    if let Some(path) = &spec.initial_values {
        out.pair(1, "initial_values", &scalar(path.as_str()));
    }
    write_port_refs(out, "inputs", &spec.pipeline_inputs);
    write_port_refs(out, "outputs", &spec.pipeline_outputs);
    out.extra(1, &spec.pipeline_extra);
}

fn write_flow(out: &mut Lines, key: &str, edges: &[Edge]) {
    let pairs =
        edges.iter().map(|edge| (edge.source.to_string(), scalar(&edge.target.to_string())));
    write_groups(out, key, pairs);
}

fn write_port_refs(out: &mut Lines, key: &str, ports: &[PortRef]) {
    write_groups(out, key, ports.iter().map(|port| (port.node.clone(), scalar(&port.port))));
}

/// `{key: {name: [value, …]}}`, names in the order of their first value.
fn write_groups(out: &mut Lines, key: &str, pairs: impl Iterator<Item = (String, String)>) {
    let mut order: Vec<(String, Vec<String>)> = Vec::new();
    let mut positions = std::collections::HashMap::new();
    for (name, value) in pairs {
        let position = *positions.entry(name.clone()).or_insert_with(|| {
            order.push((name, Vec::new()));
            order.len() - 1
        });
        order[position].1.push(value);
    }
    out.open(1, key, order.is_empty());
    for (name, values) in order {
        out.pair(2, &name, &list(values));
    }
}

fn write_system(out: &mut Lines, spec: &Spec) {
    const VERSION: &str = "leapp config version";
    out.open(0, "system information", false);
    let version = scalar(&spec.version.to_string());
    let mut written = false;
    for (key, value) in spec.system.iter() {
        if !written && key > VERSION {
            out.pair(1, VERSION, &version);
            written = true;
        }
        out.pair(1, key, &flow(value));
    }
    if !written {
        out.pair(1, VERSION, &version);
    }
}

fn write_veracity(out: &mut Lines, block: &VeracityBlock) {
    out.open(0, "veracity", false);
    out.pair(1, "schema", &scalar(&block.schema.to_string()));
    out.open(1, "files", block.files.is_empty());
    for (path, record) in &block.files {
        let sha256 = scalar(&record.sha256.to_string());
        let value = format!("{{size: {}, sha256: {sha256}}}", record.size);
        out.pair(2, path.as_str(), &value);
    }
    for (key, path) in [("samples", &block.samples), ("proof", &block.proof)] {
        if let Some(path) = path {
            out.pair(1, key, &scalar(path.as_str()));
        }
    }
    if let Some(signature) = &block.signature {
        out.pair(1, "signature", &flow(signature));
    }
    out.extra(1, &block.extra);
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => float(*value),
        Value::Text(text) => scalar(text),
        Value::List(items) => list(items.iter().map(flow)),
        Value::Map(map) => {
            let pairs: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{}: {}", scalar(key), flow(value)))
                .collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

fn list(items: impl IntoIterator<Item = String>) -> String {
    format!("[{}]", items.into_iter().collect::<Vec<_>>().join(", "))
}

/// A number for which it does not matter whether it has a point.
fn number(value: f64) -> String {
    // Beyond 2^53 a float is no longer a count of anything.
    if value.fract() == 0.0 && value.abs() < 9e15 { format!("{value:.0}") } else { float(value) }
}

/// A float that YAML 1.1 readers take for a float: it needs a point, and a sign in the exponent.
fn float(value: f64) -> String {
    if value.is_nan() {
        return ".nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = format!("{value:?}");
    let Some((mantissa, exponent)) = text.split_once('e') else {
        return text;
    };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with('-') { "" } else { "+" };
    format!("{mantissa}{point}e{sign}{exponent}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_keep_their_value_and_their_kind() {
        for (value, expected) in [
            (1e-5, "1.0e-5"),
            (1.5e300, "1.5e+300"),
            (50.0, "50.0"),
            (-0.1, "-0.1"),
            (f64::NAN, ".nan"),
            (f64::NEG_INFINITY, "-.inf"),
        ] {
            assert_eq!(float(value), expected);
        }
        assert_eq!(number(50.0), "50");
        assert_eq!(number(33.3), "33.3");
    }
}
