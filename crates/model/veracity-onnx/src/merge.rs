//! Joins models into one, so that one session runs what took several.
//!
//! The merged model computes what the stages computed one after the other. Nothing is rewritten:
//! names get the stage in front, and a connected input is replaced by the value that feeds it.

mod plan;
mod rename;
mod shared;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use veracity_diag::{Diagnostic, Result, codes};

use self::plan::Plan;
use self::rename::Renamer;
use crate::build::model_proto;
use crate::generated::onnx::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use crate::model::initializer_names;
use crate::{Model, Node};

/// A port of a stage: the name of the stage, the name of its input or output.
pub type PortRef<'a> = (&'a str, &'a str);

/// A model under the name that its values get in front.
#[derive(Clone, Copy, Debug)]
pub struct Stage<'a> {
    /// Not empty, and without `/`.
    pub name: &'a str,
    /// The model.
    pub model: &'a Model,
}

/// A connection from an output of one stage to an input of a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge<'a> {
    /// Where the value comes from.
    pub from: PortRef<'a>,
    /// Where it goes.
    pub to: PortRef<'a>,
}

/// First format version in which an initializer need not be an input too.
const IR_VERSION_FREE_INITIALIZERS: i64 = 4;

/// Joins models into one.
///
/// Stages run in the order given. An output may feed several inputs and be exposed as well. Inputs
/// that no edge feeds become inputs of the merged model, in the order of the stages; `outputs`
/// become its outputs, in the order given. All of them are called `stage/port`.
///
/// Refused when an edge does not fit, when the operator versions or functions of the stages
/// contradict each other, and when a stage keeps weights in other files: a merged model has no
/// folder.
pub fn merge(stages: &[Stage<'_>], edges: &[Edge<'_>], outputs: &[PortRef<'_>]) -> Result<Model> {
    let plan = Plan::new(stages, edges, outputs)?;
    let opset_import = shared::opsets(stages)?;
    let functions = shared::functions(stages)?;
    let mut merged = GraphProto { name: Some("merged".to_owned()), ..GraphProto::default() };
    let mut renamers: Vec<Renamer> = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let aliases = plan
            .feeds(index)
            .map(|(input, producer, output)| (input.to_owned(), renamers[producer].name(output)));
        let mut renamer = Renamer::new(stage.name, aliases.collect());
        append(&mut merged, stage.model, &mut renamer);
        renamers.push(renamer);
    }
    for &(index, output) in plan.outputs() {
        expose(&mut merged, stages[index], &renamers[index], output);
    }
    keep_value_info_unique(&mut merged);
    let ir_versions = stages.iter().map(|stage| stage.model.ir_version());
    let ir_version = ir_versions.fold(IR_VERSION_FREE_INITIALIZERS, i64::max);
    let metadata_props = shared::metadata(stages);
    let proto = model_proto(merged, ir_version);
    Model::checked(ModelProto { opset_import, functions, metadata_props, ..proto })
        .map_err(|problem| unfusable(problem).into())
}

/// Adds the renamed parts of a stage.
fn append(merged: &mut GraphProto, model: &Model, renamer: &mut Renamer) {
    let mut graph = model.graph().clone();
    let initialized: HashSet<String> = initializer_names(&graph).map(ToOwned::to_owned).collect();
    // What is known about a connected input is known about the value that feeds it.
    let is_own = |info: &ValueInfoProto| !renamer.is_alias(info.name());
    graph.value_info.retain(is_own);
    graph.quantization_annotation.retain(|note| !renamer.is_alias(note.tensor_name()));
    graph.input.retain(|info| is_own(info) && !initialized.contains(info.name()));
    let inputs: HashSet<String> = graph.input.iter().map(|info| info.name().to_owned()).collect();
    let computed = |info: &ValueInfoProto| is_own(info) && !inputs.contains(info.name());
    let outputs: Vec<_> = graph.output.drain(..).filter(computed).collect();
    graph.value_info.extend(outputs);
    renamer.body(&mut graph);
    merged.node.append(&mut graph.node);
    merged.initializer.append(&mut graph.initializer);
    merged.sparse_initializer.append(&mut graph.sparse_initializer);
    merged.input.append(&mut graph.input);
    merged.value_info.append(&mut graph.value_info);
    merged.quantization_annotation.append(&mut graph.quantization_annotation);
}

/// Makes an output of a stage an output of the merged model.
fn expose(merged: &mut GraphProto, stage: Stage<'_>, renamer: &Renamer, output: &str) {
    let mut outputs = stage.model.graph().output.iter();
    let mut info = outputs.find(|info| info.name() == output).cloned().unwrap_or_default();
    let value = renamer.name(output);
    renamer.value_info(&mut info);
    let exposed = renamer.own_name(output);
    if value != exposed {
        // The stage hands a connected input on: the value belongs to another stage.
        let copy = Node::new("Identity", [value.as_str()], [exposed.as_str()]);
        merged.node.push(NodeProto::from(copy.named(format!("{exposed} (handed on)"))));
    }
    info.name = Some(exposed);
    merged.output.push(info);
}

/// A value is described once: an output of the merged model by its output entry.
fn keep_value_info_unique(graph: &mut GraphProto) {
    let mut seen: HashSet<String> =
        graph.output.iter().map(|info| info.name().to_owned()).collect();
    graph.value_info.retain(|info| seen.insert(info.name().to_owned()));
}

fn unfusable(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::ONNX_UNFUSABLE, message)
}
