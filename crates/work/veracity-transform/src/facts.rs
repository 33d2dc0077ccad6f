//! What is known about the values of a graph before it runs: types, sizes, and the elements of small
//! integer tensors.
//!
//! What is inferred follows from the operators alone, so that a rewrite may rest on it. An operator
//! that is not known here gives values that nothing is known about: there are no guesses. What the
//! file declares about a value fills in what inference leaves open, and gives way where the two
//! contradict each other. A size may be a name: then it is any size, the same wherever the name
//! stands, zero included.

mod arithmetic;
mod call;
mod dims;
mod element;
mod elementwise;
mod infer;
mod linear;
mod make;
mod reduce;
mod select;
mod shapes;

mod windows;

use std::collections::HashMap;

use veracity_onnx::{Dim, Graph, ValueInfo, Weight};
use veracity_tensor::DType;

pub(crate) use dims::axis as normal_axis;
pub use element::Element;
pub(crate) use select::{even_parts, ranges};

/// Elements of longer tensors are not kept: shapes, axes and pads are short.
const MOST_ELEMENTS: usize = 64;

/// What is known about one value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fact {
    /// Type of the elements.
    pub dtype: Option<DType>,
    /// Sizes of the axes; `None` when not even their number is known.
    pub dims: Option<Vec<Dim>>,
    /// The elements of a short tensor of integers or bools (0 and 1), row-major.
    pub elements: Option<Vec<Element>>,
}

impl Fact {
    pub(crate) fn new(dtype: Option<DType>, dims: Option<Vec<Dim>>) -> Self {
        Self { dtype, dims, elements: None }
    }

    /// Sizes of the axes when all are numbers.
    pub fn shape(&self) -> Option<Vec<usize>> {
        dims::sizes(self.dims.as_deref()?)
    }

    /// The elements when all are numbers.
    pub fn ints(&self) -> Option<Vec<i64>> {
        self.elements.as_ref()?.iter().map(Element::number).collect()
    }

    /// Whether type and sizes are known, by number or by name.
    fn is_complete(&self) -> bool {
        let known = |dims: &Vec<Dim>| dims.iter().all(|dim| *dim != Dim::Unknown);
        self.dtype.is_some() && self.dims.as_ref().is_some_and(known)
    }

    /// Fills in what is open here and known there. Where they contradict each other, this one is
    /// believed.
    fn filled(mut self, other: Option<&Self>) -> Self {
        let Some(other) = other else { return self };
        self.dtype = self.dtype.or(other.dtype);
        match (&mut self.dims, &other.dims) {
            (Some(mine), Some(theirs)) if mine.len() == theirs.len() => {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    if *mine == Dim::Unknown {
                        mine.clone_from(theirs);
                    }
                }
            }
            (None, theirs) => self.dims.clone_from(theirs),
            _ => {}
        }
        self
    }

    fn of_weight(weight: &Weight) -> Self {
        let dims = weight.dims().into_iter().map(Dim::Fixed).collect();
        Self::new(weight.dtype(), Some(dims))
    }
}

impl From<ValueInfo> for Fact {
    fn from(info: ValueInfo) -> Self {
        Self::new(info.dtype, info.dims)
    }
}

/// What is known about all values of a graph.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    known: HashMap<String, Fact>,
    /// What the file says about values that nodes give.
    declared: HashMap<String, Fact>,
}

impl Facts {
    /// What follows from the graph and what it declares.
    pub fn of(graph: &Graph) -> Self {
        let by_name = |infos: Vec<ValueInfo>| {
            infos.into_iter().map(|info| (info.name.clone(), Fact::from(info)))
        };
        let mut facts = Self {
            known: by_name(graph.declared_inputs()).collect(),
            declared: by_name(graph.declared_values())
                .chain(by_name(graph.declared_outputs()))
                .collect(),
        };
        facts.update(graph);
        facts
    }

    /// Takes in what patches brought. Only nodes with outputs that are not known yet, or not in
    /// full, are looked at.
    pub fn update(&mut self, graph: &Graph) {
        // A name that is free again may be given to another value later.
        self.known.retain(|name, _| graph.is_taken(name));
        self.declared.retain(|name, _| graph.is_taken(name));
        for (name, weight) in graph.weights() {
            self.take_weight(graph, name, weight);
        }
        let opset = graph.opset("").unwrap_or(0);
        for (_, node) in graph.nodes() {
            let given = || node.outputs().iter().filter(|name| !name.is_empty());
            if given().all(|name| self.known.get(name).is_some_and(Fact::is_complete)) {
                continue;
            }
            let inferred = infer::infer(&call::Call::new(node, opset, graph, self));
            let unknown = std::iter::repeat_with(Fact::default);
            for (name, fact) in node.outputs().iter().zip(inferred.into_iter().chain(unknown)) {
                if !name.is_empty() {
                    let before = self.known.get(name);
                    let fact = fact.filled(self.declared.get(name)).filled(before);
                    self.known.insert(name.clone(), fact);
                }
            }
        }
    }

    /// What is known about a value.
    pub fn get(&self, name: &str) -> Option<&Fact> {
        self.known.get(name)
    }

    fn take_weight(&mut self, graph: &Graph, name: &str, weight: &Weight) {
        let fixed = graph.weight(name).is_some();
        let before = self.known.get(name);
        if before.is_none_or(|before| fixed && !before.is_complete()) {
            self.known.insert(name.to_owned(), Fact::of_weight(weight));
        }
        // What callers may replace is not known.
        let short = matches!(weight.dtype(), Some(DType::I64 | DType::I32))
            && weight.elements() <= MOST_ELEMENTS
            && fixed;
        if short
            && let Some(fact) = self.known.get_mut(name)
            && fact.ints().is_none()
        {
            fact.dims = Fact::of_weight(weight).dims;
            let all = weight.ints();
            fact.elements = all.map(|all| all.into_iter().map(Element::Known).collect());
        }
    }
}
