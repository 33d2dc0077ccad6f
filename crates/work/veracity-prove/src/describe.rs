//! A bundle as plain data for those who look at it: pictures and pages are made of it.

use veracity_results::{Pipeline, PipelineEdge, PipelineNode, PipelinePort, PortName};
use veracity_spec::{Bundle, Edge, Node, PortRef, PortSpec};

use crate::subject::bundle_name;

/// What a bundle says, for those who look at it.
pub fn describe(bundle: &Bundle) -> Pipeline {
    let spec = bundle.spec();
    let flow = |edges: &[Edge], delay: u32| -> Vec<PipelineEdge> {
        let edge = |edge: &Edge| PipelineEdge {
            source: name_of(&edge.source),
            target: name_of(&edge.target),
            delay,
        };
        edges.iter().map(edge).collect()
    };
    let mut edges = flow(&spec.data_flow, 0);
    edges.extend(flow(&spec.feedback_flow, 1));
    Pipeline {
        name: bundle_name(bundle),
        rate_hz: spec.configs.frequency,
        nodes: spec.nodes.iter().map(node).collect(),
        edges,
        inputs: spec.pipeline_inputs.iter().map(name_of).collect(),
        outputs: spec.pipeline_outputs.iter().map(name_of).collect(),
    }
}

fn name_of(port: &PortRef) -> PortName {
    PortName::new(&port.node, &port.port)
}

fn node(node: &Node) -> PipelineNode {
    PipelineNode {
        name: node.name.clone(),
        format: node.model.as_ref().map(|model| model.backend.name().to_owned()),
        inputs: node.inputs.iter().map(port).collect(),
        outputs: node.outputs.iter().map(port).collect(),
        verdict: None,
    }
}

fn port(port: &PortSpec) -> PipelinePort {
    let unit = ["unit", "units"].into_iter().find_map(|key| port.extra.get(key)?.as_text());
    PipelinePort {
        name: port.name.clone(),
        dtype: port.dtype.to_string(),
        shape: port.shape.dims().iter().map(|size| *size as u64).collect(),
        kind: port.kind.clone(),
        unit: unit.map(str::to_owned),
    }
}
