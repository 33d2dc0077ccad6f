//! The arguments of a call: which tensors they hold, and the rest as it was before the call.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PySlice, PyString, PyTuple};

/// How deep containers in arguments may nest.
const MAX_DEPTH: usize = 12;

/// An argument, with its tensors replaced by their numbers.
#[derive(Debug)]
pub(super) enum Argument {
    /// Position among the tensors of the call.
    Tensor(usize),
    /// Anything without tensors.
    Literal(Py<PyAny>),
    List(Vec<Argument>),
    /// The class, when it is not a plain tuple.
    Tuple(Option<Py<PyAny>>, Vec<Argument>),
    Dict(Vec<(Py<PyAny>, Argument)>),
}

/// Where in a call a tensor stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Position(usize),
    Keyword(String),
}

/// The tensor classes of torch.
pub(super) struct TensorTypes {
    pub(super) tensor: Py<PyAny>,
}

impl TensorTypes {
    #[inline]
    pub(super) fn is_tensor(&self, value: &Bound<'_, PyAny>) -> bool {
        let py = value.py();
        value.get_type().as_ptr() == self.tensor.as_ptr()
            || value.is_instance(self.tensor.bind(py)).unwrap_or(false)
    }
}

/// A call taken apart.
pub(super) struct Arguments<'py> {
    pub(super) tensors: Vec<Bound<'py, PyAny>>,
    pub(super) roots: Vec<Root>,
    /// Tensors that stand where Python wants an integer, such as the bound of a slice.
    pub(super) indices: Vec<Bound<'py, PyAny>>,
    pub(super) positional: Vec<Argument>,
    pub(super) keywords: Vec<(Py<PyAny>, Argument)>,
    /// Hash of everything that is not a tensor.
    pub(super) literals: u64,
}

struct Walk<'py, 'a> {
    types: &'a TensorTypes,
    tensors: Vec<Bound<'py, PyAny>>,
    roots: Vec<Root>,
    indices: Vec<Bound<'py, PyAny>>,
    root: Root,
    hasher: DefaultHasher,
}

impl<'py> Arguments<'py> {
    pub(super) fn take_apart(
        types: &TensorTypes,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Self> {
        let mut walk = Walk {
            types,
            tensors: Vec::with_capacity(4),
            roots: Vec::with_capacity(4),
            indices: Vec::new(),
            root: Root::Position(0),
            hasher: DefaultHasher::new(),
        };
        let mut positional = Vec::with_capacity(args.len());
        for (position, value) in args.iter().enumerate() {
            walk.root = Root::Position(position);
            positional.push(walk.visit(value, 0)?);
        }
        let mut keywords = Vec::new();
        if let Some(kwargs) = kwargs {
            for (key, value) in kwargs {
                let name: String = key.extract()?;
                name.hash(&mut walk.hasher);
                walk.root = Root::Keyword(name);
                keywords.push((key.unbind(), walk.visit(value, 0)?));
            }
        }
        Ok(Self {
            tensors: walk.tensors,
            roots: walk.roots,
            indices: walk.indices,
            positional,
            keywords,
            literals: walk.hasher.finish(),
        })
    }
}

impl<'py> Walk<'py, '_> {
    fn visit(&mut self, value: Bound<'py, PyAny>, depth: usize) -> PyResult<Argument> {
        if self.types.is_tensor(&value) {
            self.tensors.push(value);
            self.roots.push(self.root.clone());
            return Ok(Argument::Tensor(self.tensors.len() - 1));
        }
        if depth < MAX_DEPTH {
            if let Ok(tuple) = value.cast::<PyTuple>() {
                return self.visit_tuple(tuple, depth);
            }
            if let Ok(list) = value.cast::<PyList>() {
                let items = list.iter().map(|item| self.visit(item, depth + 1));
                return Ok(Argument::List(items.collect::<PyResult<_>>()?));
            }
            if let Ok(dict) = value.cast::<PyDict>() {
                let items = dict.iter().map(|(key, item)| {
                    self.hash_literal(&key);
                    Ok((key.unbind(), self.visit(item, depth + 1)?))
                });
                return Ok(Argument::Dict(items.collect::<PyResult<_>>()?));
            }
            if value.is_instance_of::<PySlice>() {
                return self.visit_slice(&value);
            }
        }
        self.hash_literal(&value);
        Ok(Argument::Literal(value.unbind()))
    }

    fn visit_tuple(&mut self, tuple: &Bound<'py, PyTuple>, depth: usize) -> PyResult<Argument> {
        let before = self.tensors.len();
        let items: Vec<Argument> =
            tuple.iter().map(|item| self.visit(item, depth + 1)).collect::<PyResult<_>>()?;
        let nested = items.iter().any(|item| !matches!(item, Argument::Literal(_)));
        if self.tensors.len() == before && !nested {
            return Ok(Argument::Literal(tuple.clone().into_any().unbind()));
        }
        let class = tuple.get_type();
        let class = (!tuple.is_exact_instance_of::<PyTuple>()).then(|| class.into_any().unbind());
        Ok(Argument::Tuple(class, items))
    }

    /// Bounds of a slice are integers to torch: a tensor there leaves for Python unseen.
    fn visit_slice(&mut self, value: &Bound<'py, PyAny>) -> PyResult<Argument> {
        let py = value.py();
        let mut bounds = Vec::with_capacity(3);
        for name in ["start", "stop", "step"] {
            let bound = value.getattr(name)?;
            if self.types.is_tensor(&bound) {
                let number = bound.call_method0(pyo3::intern!(py, "__int__"))?;
                self.indices.push(bound);
                bounds.push(number);
            } else {
                bounds.push(bound);
            }
        }
        for bound in &bounds {
            self.hash_literal(bound);
        }
        let class = py.get_type::<PySlice>();
        Ok(Argument::Literal(class.call1(PyTuple::new(py, bounds)?)?.unbind()))
    }

    fn hash_literal(&mut self, value: &Bound<'py, PyAny>) {
        match value.hash() {
            Ok(hash) => hash.hash(&mut self.hasher),
            Err(_) => (value.get_type().as_ptr() as usize).hash(&mut self.hasher),
        }
    }
}

impl Argument {
    /// The argument as Python sees it, with `refs` in place of its tensors.
    pub(super) fn to_python<'py>(
        &self,
        py: Python<'py>,
        refs: &[Bound<'py, PyAny>],
    ) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            Self::Tensor(index) => refs[*index].clone(),
            Self::Literal(value) => value.bind(py).clone(),
            Self::List(items) => PyList::new(py, items_to_python(items, py, refs)?)?.into_any(),
            Self::Tuple(class, items) => {
                let items = items_to_python(items, py, refs)?;
                match class {
                    None => PyTuple::new(py, items)?.into_any(),
                    Some(class) => rebuild_tuple(class.bind(py), items)?,
                }
            }
            Self::Dict(items) => {
                let dict = PyDict::new(py);
                for (key, item) in items {
                    dict.set_item(key, item.to_python(py, refs)?)?;
                }
                dict.into_any()
            }
        })
    }
}

fn items_to_python<'py>(
    items: &[Argument],
    py: Python<'py>,
    refs: &[Bound<'py, PyAny>],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    items.iter().map(|item| item.to_python(py, refs)).collect()
}

/// Named tuples take their fields one by one; other subclasses come back as plain tuples.
fn rebuild_tuple<'py>(
    class: &Bound<'py, PyAny>,
    items: Vec<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = class.py();
    let items = PyTuple::new(py, items)?;
    if class.hasattr("_fields")? { class.call1(items) } else { Ok(items.into_any()) }
}

/// A step of the way to a tensor within a result.
#[derive(Clone, Debug)]
pub(super) enum PathPart {
    Index(usize),
    Key(String),
}

/// The tensors of a result, each with the way to it.
pub(super) fn tensors_of_result<'py>(
    types: &TensorTypes,
    result: &Bound<'py, PyAny>,
) -> PyResult<Vec<(Vec<PathPart>, Bound<'py, PyAny>)>> {
    let mut found = Vec::with_capacity(1);
    visit_result(types, result, &mut Vec::new(), &mut found)?;
    Ok(found)
}

fn visit_result<'py>(
    types: &TensorTypes,
    value: &Bound<'py, PyAny>,
    path: &mut Vec<PathPart>,
    found: &mut Vec<(Vec<PathPart>, Bound<'py, PyAny>)>,
) -> PyResult<()> {
    if types.is_tensor(value) {
        found.push((path.clone(), value.clone()));
    } else if path.len() >= MAX_DEPTH || value.is_none() {
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        for (index, item) in tuple.iter().enumerate() {
            path.push(PathPart::Index(index));
            visit_result(types, &item, path, found)?;
            path.pop();
        }
    } else if let Ok(list) = value.cast::<PyList>() {
        for (index, item) in list.iter().enumerate() {
            path.push(PathPart::Index(index));
            visit_result(types, &item, path, found)?;
            path.pop();
        }
    } else if let Ok(dict) = value.cast::<PyDict>() {
        for (key, item) in dict {
            if let Ok(key) = key.cast::<PyString>() {
                path.push(PathPart::Key(key.to_string()));
                visit_result(types, &item, path, found)?;
                path.pop();
            }
        }
    }
    Ok(())
}
