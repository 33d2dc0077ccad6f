//! The functions of a model, put in the place of nodes that call them.

use std::collections::{BTreeSet, HashMap};

use veracity_diag::{Code, Diagnostic, Refusal, Result, codes};

use crate::Node;
use crate::edit::Graph;
use crate::edit::branch::identity;
use crate::edit::splice::{Fresh, Splice};
use crate::generated::onnx::{AttributeProto, FunctionProto, ModelProto, NodeProto};
use crate::walk::domain;

/// Nodes that one call may become when all that it calls is put in place as well.
const MOST_NODES: usize = 1_000_000;

/// The functions of a model, by what nodes call them.
pub struct Functions<'g> {
    graph: &'g Graph,
    index: HashMap<Key<'g>, usize>,
    /// Nodes that a function becomes, or why it cannot be put in place, by number.
    sizes: Vec<std::result::Result<usize, Refusal>>,
}

/// Domain, name and overload.
type Key<'g> = (&'g str, &'g str, &'g str);

impl Graph {
    /// The functions of the model.
    pub fn functions(&self) -> Functions<'_> {
        let all = &self.shell.functions;
        let keys = all.iter().map(|one| (domain(one.domain()), one.name(), one.overload()));
        let index = keys.enumerate().map(|(number, key)| (key, number)).collect();
        let mut functions = Functions { graph: self, index, sizes: Vec::new() };
        functions.sizes = functions.measure();
        functions
    }

    /// Names the operator sets that came with nodes of functions.
    pub(super) fn import_from_functions(&self, proto: &mut ModelProto) {
        if proto.functions.is_empty() {
            return;
        }
        let main = proto.graph.iter().flat_map(|main| &main.node);
        let used: BTreeSet<String> = domains(main).into_iter().map(str::to_owned).collect();
        for name in used {
            let imports = &mut proto.opset_import;
            let known = imports.iter().any(|one| domain(one.domain()) == name);
            if let Some(version) = self.opset(&name).filter(|_| !known) {
                imports.push(crate::build::opset_import(&name, version));
            }
        }
    }
}

impl Functions<'_> {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Whether a node calls one of them, itself or in a body.
    pub fn are_called_by(&self, node: &Node) -> bool {
        !self.is_empty() && !self.callees(std::slice::from_ref(node.proto())).is_empty()
    }

    /// What stands in the place of a node that calls a function, or whose bodies do; `None` for all
    /// other nodes. New values get names from `fresh`; functions that the function calls are called
    /// by the new nodes. Refused when the call does not fit the function, when functions call each
    /// other in a circle, and when the function needs other versions of operators than the model has.
    pub fn inlined(
        &self,
        node: &Node,
        fresh: &mut dyn FnMut(&str) -> String,
    ) -> Result<Option<Vec<Node>>> {
        if !self.are_called_by(node) {
            return Ok(None);
        }
        let mut nodes = Vec::new();
        self.put(node.proto(), fresh, &mut nodes)?;
        Ok(Some(nodes.into_iter().map(Node::from).collect()))
    }

    fn put(
        &self,
        node: &NodeProto,
        fresh: &mut Fresh<'_>,
        nodes: &mut Vec<NodeProto>,
    ) -> Result<()> {
        if let Some(number) = self.called(node) {
            return self.call(node, number, fresh, nodes);
        }
        let mut node = node.clone();
        for attribute in &mut node.attribute {
            for body in attribute.g.iter_mut().chain(&mut attribute.graphs) {
                let mut inner = Vec::with_capacity(body.node.len());
                for node in &body.node {
                    self.put(node, fresh, &mut inner)?;
                }
                body.node = inner;
            }
        }
        nodes.push(node);
        Ok(())
    }

    /// Adds the nodes of one call.
    fn call(
        &self,
        node: &NodeProto,
        number: usize,
        fresh: &mut Fresh<'_>,
        nodes: &mut Vec<NodeProto>,
    ) -> Result<()> {
        self.sizes[number].as_ref().map_err(Clone::clone)?;
        let function = &self.graph.shell.functions[number];
        self.check_versions(function)?;
        let misfit = |what: String| {
            let message = format!("{:?} cannot be put in place: {what}", function.name());
            refused(codes::FUNCTION_MISFIT, message)
        };
        spliced(function, node, fresh).map(|made| nodes.extend(made)).map_err(misfit)
    }

    /// The versions that the nodes of a function were written for must be those of the model.
    fn check_versions(&self, function: &FunctionProto) -> Result<()> {
        let used = domains(&function.node);
        for import in &function.opset_import {
            let name = domain(import.domain());
            let here = self.graph.opset(name).unwrap_or(0);
            if used.contains(name) && here != import.version() {
                let message = format!(
                    "the function {:?} uses version {} of the operators {name:?}, the model {here}",
                    function.name(),
                    import.version(),
                );
                return Err(refused(codes::FUNCTION_VERSIONS, message));
            }
        }
        Ok(())
    }

    fn called(&self, node: &NodeProto) -> Option<usize> {
        let key = (domain(node.domain()), node.op_type(), node.overload());
        self.index.get(&key).copied()
    }

    /// The functions that nodes call, once for each call, bodies included.
    fn callees(&self, nodes: &[NodeProto]) -> Vec<usize> {
        let mut found = Vec::new();
        walk(nodes, &mut |node| found.extend(self.called(node)));
        found
    }

    /// How large each function becomes. Callees are measured first; a function that is met again
    /// before it is done calls itself, directly or not. A list, not recursion: calls may nest as
    /// deep as the file is long.
    fn measure(&self) -> Vec<std::result::Result<usize, Refusal>> {
        let all = &self.graph.shell.functions;
        let calls: Vec<Vec<usize>> = all.iter().map(|one| self.callees(&one.node)).collect();
        let mut sizes: Vec<Option<std::result::Result<usize, Refusal>>> = vec![None; all.len()];
        let mut open = vec![false; all.len()];
        let mut waiting: Vec<usize> = (0..all.len()).rev().collect();
        while let Some(&number) = waiting.last() {
            if sizes[number].is_some() {
                waiting.pop();
                continue;
            }
            let missing = calls[number].iter().copied().find(|&callee| sizes[callee].is_none());
            match missing {
                Some(callee) if open[callee] || callee == number => {
                    let message =
                        format!("the function {:?} ends up in itself", all[callee].name());
                    sizes[callee] = Some(Err(refused(codes::FUNCTION_RECURSIVE, message)));
                }
                Some(callee) => {
                    open[number] = true;
                    waiting.push(callee);
                }
                None => {
                    let callees = calls[number].iter().filter_map(|&callee| sizes[callee].clone());
                    sizes[number] = Some(size(&all[number], callees));
                    open[number] = false;
                    waiting.pop();
                }
            }
        }
        sizes.into_iter().map(|size| size.unwrap_or(Ok(0))).collect()
    }
}

/// The nodes of a function and of all that it calls.
fn size(
    function: &FunctionProto,
    callees: impl Iterator<Item = std::result::Result<usize, Refusal>>,
) -> std::result::Result<usize, Refusal> {
    let mut nodes = 0_usize;
    walk(&function.node, &mut |_| nodes += 1);
    let mut sum = nodes;
    for callee in callees {
        sum = sum.saturating_add(callee?);
    }
    match sum {
        sum if sum > MOST_NODES => {
            let message = format!("{:?} would become {sum} nodes", function.name());
            Err(refused(codes::FUNCTION_MISFIT, message))
        }
        sum => Ok(sum),
    }
}

/// The nodes of a function under the names of one call.
fn spliced(
    function: &FunctionProto,
    call: &NodeProto,
    fresh: &mut Fresh<'_>,
) -> std::result::Result<Vec<NodeProto>, String> {
    if call.input.len() > function.input.len() || call.output.len() > function.output.len() {
        return Err("the call has more inputs or outputs than the function".to_owned());
    }
    let given = call.input.iter().cloned().chain(std::iter::repeat(String::new()));
    let inputs: HashMap<String, String> = function.input.iter().cloned().zip(given).collect();
    let first = call.output.iter().find(|name| !name.is_empty());
    let prefix = first.ok_or("the call gives nothing")?.clone();
    let mut fresh = |name: &str| fresh(&format!("{prefix}/{name}"));
    let mut handed_on: Vec<(&str, &str)> = Vec::new();
    let mut taken = BTreeSet::new();
    let mut splice = Splice::function(&prefix, inputs, attributes(function, call)?, &mut fresh);
    for (name, called) in function.output.iter().zip(&call.output) {
        if called.is_empty() {
            continue;
        }
        if function.input.contains(name) || !taken.insert(name) {
            handed_on.push((name, called));
        } else {
            splice.expect(name, called);
        }
    }
    let nodes = function.node.iter().map(|node| splice.node(node));
    let mut nodes = nodes.collect::<std::result::Result<Vec<NodeProto>, String>>()?;
    for (name, called) in handed_on {
        let from = splice.name(name)?;
        if from.is_empty() {
            return Err(format!("{called:?} is an input that is left out"));
        }
        nodes.push(identity(from, called));
    }
    Ok(nodes)
}

/// What each attribute of a function is in one call: given, a default, or left out.
fn attributes(
    function: &FunctionProto,
    call: &NodeProto,
) -> std::result::Result<HashMap<String, Option<AttributeProto>>, String> {
    let mut known: HashMap<String, Option<AttributeProto>> =
        function.attribute.iter().map(|name| (name.clone(), None)).collect();
    for default in &function.attribute_proto {
        known.insert(default.name().to_owned(), Some(default.clone()));
    }
    for given in &call.attribute {
        match known.get_mut(given.name()) {
            Some(slot) => *slot = Some(given.clone()),
            None => return Err(format!("it has no attribute {:?}", given.name())),
        }
    }
    Ok(known)
}

/// The domains that nodes use, in bodies as well.
fn domains<'n>(nodes: impl IntoIterator<Item = &'n NodeProto>) -> BTreeSet<&'n str> {
    let mut used = BTreeSet::new();
    walk(nodes, &mut |node| {
        used.insert(domain(node.domain()));
    });
    used
}

/// Looks at nodes and at those of their bodies.
fn walk<'n>(nodes: impl IntoIterator<Item = &'n NodeProto>, look: &mut impl FnMut(&'n NodeProto)) {
    let mut waiting: Vec<&NodeProto> = nodes.into_iter().collect();
    while let Some(node) = waiting.pop() {
        look(node);
        for attribute in &node.attribute {
            let bodies = attribute.g.iter().chain(&attribute.graphs);
            waiting.extend(bodies.flat_map(|body| &body.node));
        }
    }
}

fn refused(code: Code, message: String) -> Refusal {
    Diagnostic::error(code, message).into()
}
