//! What all stages have in common: operator versions, functions, metadata.

use std::collections::{BTreeMap, HashSet};

use veracity_diag::{Place, Result};

use super::{Stage, unfusable};
use crate::build::{entry, opset_import};
use crate::generated::onnx::{
    FunctionProto, NodeProto, OperatorSetIdProto, StringStringEntryProto,
};
use crate::walk::{Parts, domain};

/// Operator versions that every stage agrees with.
pub(super) fn opsets(stages: &[Stage<'_>]) -> Result<Vec<OperatorSetIdProto>> {
    let mut versions: BTreeMap<&str, (i64, &str)> = BTreeMap::new();
    for stage in stages {
        for import in &stage.model.proto().opset_import {
            let (domain, version) = (domain(import.domain()), import.version());
            let (first, by) = *versions.entry(domain).or_insert((version, stage.name));
            if first != version {
                let of = if domain.is_empty() { "ONNX" } else { domain };
                let message =
                    format!("it uses version {version} of the {of} operators, {by:?} uses {first}");
                return Err(unfusable(message)
                    .at(Place::node(stage.name))
                    .hint("export all models with the same `opset_version`")
                    .into());
            }
        }
    }
    Ok(versions.into_iter().map(|(domain, (version, _))| opset_import(domain, version)).collect())
}

/// Domain, name and overload: what a node calls a function by.
type FunctionId<'a> = (&'a str, &'a str, &'a str);

fn id_of(function: &FunctionProto) -> FunctionId<'_> {
    (domain(function.domain()), function.name(), function.overload())
}

fn call_of(node: &NodeProto) -> FunctionId<'_> {
    (domain(node.domain()), node.op_type(), node.overload())
}

/// The functions of all stages. One that two stages define must be the same in both, and none may
/// take the place of an operator that another stage gets from the engine.
pub(super) fn functions(stages: &[Stage<'_>]) -> Result<Vec<FunctionProto>> {
    let mut merged: BTreeMap<FunctionId<'_>, (&FunctionProto, &str)> = BTreeMap::new();
    for stage in stages {
        for function in &stage.model.proto().functions {
            let (first, by) = *merged.entry(id_of(function)).or_insert((function, stage.name));
            if first != function {
                let message = format!("it defines {} otherwise than {by:?}", shown(function));
                return Err(unfusable(message).at(Place::node(stage.name)).into());
            }
        }
    }
    for stage in stages {
        let own: HashSet<_> = stage.model.proto().functions.iter().map(id_of).collect();
        let calls = Parts::of(stage.model.proto()).nodes.into_iter().map(call_of);
        let foreign = calls.filter(|call| !own.contains(call)).find_map(|call| merged.get(&call));
        if let Some((function, by)) = foreign {
            let message =
                format!("it takes {} from the engine, {by:?} defines its own", shown(function));
            return Err(unfusable(message).at(Place::node(stage.name)).into());
        }
    }
    Ok(merged.into_values().map(|(function, _)| function.clone()).collect())
}

fn shown(function: &FunctionProto) -> String {
    format!("the function {}::{}", function.domain(), function.name())
}

/// The metadata of all stages, keys with the stage in front.
pub(super) fn metadata(stages: &[Stage<'_>]) -> Vec<StringStringEntryProto> {
    let of_stage = |stage: &Stage<'_>| {
        let (name, entries) = (stage.name.to_owned(), stage.model.metadata());
        entries.into_iter().map(move |(key, value)| entry(format!("{name}/{key}"), value))
    };
    stages.iter().flat_map(of_stage).collect()
}
