//! Where an operator comes from, as torch's exporter writes it into the metadata of a node.

use veracity_onnx::NodeFacts;

/// Where an operator comes from. Everything may be unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The node of the exported program that it was made for: `conv2d_3`.
    pub fx_node: String,
    /// The module, by its path from the root: `layer1.0.bn1`.
    pub module: String,
    /// Its class: `torch.nn.modules.batchnorm.BatchNorm2d`.
    pub class: String,
    /// What torch was asked for: `aten.conv2d.default`.
    pub target: String,
    /// The line of the user's code, `file:line`.
    pub source: String,
}

/// Reads what the exporter wrote about a node.
pub fn provenance(node: &NodeFacts) -> Provenance {
    let entry = |key: &str| {
        let found = node.metadata.iter().find(|(name, _)| name == key);
        found.map_or("", |(_, value)| value.as_str())
    };
    let scopes = items(entry("pkg.torch.onnx.name_scopes"));
    let classes = items(entry("pkg.torch.onnx.class_hierarchy"));
    let last = |list: &[String]| list.last().cloned().unwrap_or_default();
    let before_last = |list: &[String]| list.iter().rev().nth(1).cloned().unwrap_or_default();
    Provenance {
        fx_node: last(&scopes),
        module: before_last(&scopes),
        class: before_last(&classes),
        target: last(&classes),
        source: source_line(entry("pkg.torch.onnx.stack_trace")),
    }
}

/// The texts of a list as Python prints it. Names of modules hold no quotes.
fn items(list: &str) -> Vec<String> {
    let inside = list.trim().trim_start_matches('[').trim_end_matches(']');
    if inside.is_empty() {
        return Vec::new();
    }
    inside.split(", ").map(|item| item.trim_matches(['\'', '"']).to_owned()).collect()
}

/// The innermost frame of a stack trace of Python that is not torch's own, `file:line`.
pub fn source_line(trace: &str) -> String {
    let frames = trace.lines().filter_map(frame);
    let own = |(file, _): &(String, String)| file.contains("/torch/") || file.contains("\\torch\\");
    let frames: Vec<(String, String)> = frames.collect();
    let found = frames.iter().rev().find(|frame| !own(frame)).or(frames.last());
    found.map(|(file, line)| format!("{file}:{line}")).unwrap_or_default()
}

/// `File "net.py", line 12, in forward`
fn frame(line: &str) -> Option<(String, String)> {
    let rest = line.trim().strip_prefix("File \"")?;
    let (file, rest) = rest.split_once('"')?;
    let number: String =
        rest.strip_prefix(", line ")?.chars().take_while(char::is_ascii_digit).collect();
    Some((file.to_owned(), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(metadata: &[(&str, &str)]) -> NodeFacts {
        let metadata = metadata.iter().map(|(key, value)| ((*key).into(), (*value).into()));
        NodeFacts {
            name: String::new(),
            op_type: "Conv".into(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            metadata: metadata.collect(),
        }
    }

    #[test]
    fn the_exporters_notes_are_read() {
        let trace = "File \"/home/me/net.py\", line 12, in forward\n    return self.body(x)\n  \
                     File \"/env/torch/nn/modules/container.py\", line 253, in forward\n    input = \
                     module(input)\n  File \"/home/me/blocks.py\", line 40, in forward\n    x = \
                     self.bn(x)\n  File \"/env/torch/nn/modules/batchnorm.py\", line 193, in forward";
        let found = provenance(&node(&[
            ("pkg.torch.onnx.name_scopes", "['', 'layer1', 'layer1.0', 'bn_1']"),
            (
                "pkg.torch.onnx.class_hierarchy",
                "['net.Net', 'torch.nn.Sequential', 'torch.nn.BatchNorm2d', 'aten.batch_norm.default']",
            ),
            ("pkg.torch.onnx.stack_trace", trace),
        ]));
        let expected = Provenance {
            fx_node: "bn_1".into(),
            module: "layer1.0".into(),
            class: "torch.nn.BatchNorm2d".into(),
            target: "aten.batch_norm.default".into(),
            source: "/home/me/blocks.py:40".into(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_not_written_is_unknown() {
        assert_eq!(provenance(&node(&[])), Provenance::default());
        let only_torch = "File \"/env/torch/x.py\", line 3, in f";
        let found = provenance(&node(&[("pkg.torch.onnx.stack_trace", only_torch)]));
        assert_eq!(found.source, "/env/torch/x.py:3");
    }
}
