//! Which value of one model stands for which value of another.
//!
//! Values belong together by name: exporters, quantisers and optimisers keep the names of what they
//! do not touch. Outputs belong together by position where their names differ. Behind a quantiser
//! the dequantised value stands for the one that was quantised, and a dequantised weight for the
//! weight of the other model.

use std::collections::{BTreeMap, BTreeSet};

use veracity_onnx::{Model, NodeFacts};
use veracity_tensor::Tensor;

use crate::provenance::provenance;
use crate::quantised::{hidden, is_dequantize, is_quantize};
use crate::rules::{Allowance, Operator, Rules};

/// One value of the candidate and what it is held against.
#[derive(Clone, Debug)]
pub(crate) struct Pairing {
    /// The value of the candidate.
    pub(crate) name: String,
    /// The node that gives it.
    pub(crate) node: usize,
    /// Where the reference has its counterpart.
    pub(crate) source: Source,
}

/// Where the reference has a value.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A node gives it.
    Value(String),
    /// It is an input.
    Input(String),
    /// It is a constant.
    Constant(String, Tensor),
}

impl Source {
    /// Its name in the reference.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Value(name) | Self::Input(name) | Self::Constant(name, _) => name,
        }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// In the order in which the candidate computes the values.
    pub(crate) pairings: Vec<Pairing>,
    /// Values that have a counterpart and are left out, with the reason.
    pub(crate) left_out: BTreeMap<String, String>,
    /// Positions of the rules that left values out.
    pub(crate) rules: Vec<usize>,
}

/// Pairs the values of two models.
pub(crate) fn find(
    reference: &Model,
    candidate: &Model,
    nodes: &[NodeFacts],
    rules: &Rules,
) -> Found {
    let there = There::new(reference, candidate);
    let hidden = hidden(candidate, nodes);
    let producers = producers(nodes);
    let mut found = Found::default();
    for (index, node) in nodes.iter().enumerate() {
        let module = provenance(node).module;
        for name in node.outputs.iter().filter(|name| !name.is_empty()) {
            // What a constant is shows in whoever reads it.
            if node.op_type == "Constant" {
                continue;
            }
            let behind = || there.dequantised(node, &producers, nodes);
            let source = there.counterpart(name);
            let source = source.or_else(|| is_dequantize(node).then(behind).flatten());
            let Some(source) = source else { continue };
            let operator = Operator { name, op_type: &node.op_type, module: &module };
            if let Some((rule, Allowance::Skip)) = rules.first_for(operator) {
                found.rules.push(rule);
                let reason = format!("rule {} leaves it out", rule + 1);
                found.left_out.insert(name.clone(), reason);
            } else if hidden.contains(name) {
                let reason = "only a quantiser reads it: it is compared behind that";
                found.left_out.insert(name.clone(), reason.to_owned());
            } else {
                found.pairings.push(Pairing { name: name.clone(), node: index, source });
            }
        }
    }
    found
}

/// Positions of the nodes that give values.
pub(crate) fn producers(nodes: &[NodeFacts]) -> BTreeMap<&str, usize> {
    let outputs = nodes
        .iter()
        .enumerate()
        .flat_map(|(index, node)| node.outputs.iter().map(move |output| (output.as_str(), index)));
    outputs.collect()
}

/// The other model.
struct There<'m> {
    model: &'m Model,
    computed: BTreeSet<String>,
    inputs: BTreeSet<String>,
    /// Outputs by the name that they have in the candidate, where the names differ.
    outputs: BTreeMap<String, String>,
}

impl<'m> There<'m> {
    fn new(model: &'m Model, candidate: &Model) -> Self {
        let computed: BTreeSet<String> =
            model.nodes().into_iter().flat_map(|node| node.outputs).collect();
        let outputs = candidate.outputs().into_iter().zip(model.outputs());
        let outputs = outputs
            .filter(|(here, there)| {
                !computed.contains(&here.name) && computed.contains(&there.name)
            })
            .map(|(here, there)| (here.name, there.name))
            .collect();
        let inputs = model.inputs().into_iter().map(|info| info.name).collect();
        Self { model, computed, inputs, outputs }
    }

    /// What the other model has for this name.
    fn counterpart(&self, name: &str) -> Option<Source> {
        if self.computed.contains(name) {
            return Some(Source::Value(name.to_owned()));
        }
        let there = self.outputs.get(name).map(|there| Source::Value(there.clone()));
        there.or_else(|| self.constant(name))
    }

    fn constant(&self, name: &str) -> Option<Source> {
        self.model.constant(name).map(|tensor| Source::Constant(name.to_owned(), tensor))
    }

    /// What the other model has for a dequantised value: the value that was quantised, or the
    /// weight, by the names that ONNX Runtime's quantiser gives.
    fn dequantised(
        &self,
        node: &NodeFacts,
        producers: &BTreeMap<&str, usize>,
        nodes: &[NodeFacts],
    ) -> Option<Source> {
        let (quantised, output) = (node.inputs.first()?, node.outputs.first()?);
        if let Some(&index) = producers.get(quantised.as_str()) {
            let before = nodes[index].inputs.first().filter(|_| is_quantize(&nodes[index]));
            return match before {
                Some(name) if self.inputs.contains(name) => Some(Source::Input(name.clone())),
                Some(name) => self.counterpart(name),
                None => None,
            };
        }
        let names = [
            quantised.strip_suffix("_quantized"),
            output.strip_suffix("_DequantizeLinear_Output"),
            output.strip_suffix("_dequantized"),
        ];
        names.into_iter().flatten().find_map(|name| self.constant(name))
    }
}
