//! What computes one value, with everything that it reads, so that it can be changed and run.

use std::collections::{BTreeMap, BTreeSet};

use veracity_diag::{Diagnostic, Result, codes};
use veracity_engine::{Engine, SessionOptions};
use veracity_onnx::{Model, NodeFacts, PROBED_AXES};
use veracity_tensor::{DType, Shape, SharedTensor, Tensor};

use crate::causes::Side;
use crate::run::run_once;
use crate::values::{Values, held, view};
use crate::wide::float32;

/// The operators behind one value, and what they read.
#[derive(Clone)]
pub(crate) struct Slice {
    pub(crate) model: Model,
    pub(crate) output: String,
    pub(crate) values: Values,
    /// Inputs that are weights.
    weights: BTreeSet<String>,
}

/// Where a value of a slice comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// It is a constant.
    Constant,
    /// It is an input that the original computed, or that the model was given.
    Given,
    /// A node gives it: the positions of the node and of its output.
    Computed(usize, usize),
}

impl Slice {
    /// What computes `name` in a model from given values.
    pub(crate) fn of(side: &Side<'_>, name: &str, given: &Values) -> Result<Self> {
        let value = |read: &str| given.get(read).or_else(|| side.inputs.get(read));
        let kind = |read: &str| value(read).map(|value| (value.dtype(), value.shape().clone()));
        let model = side.model.slice(name, &kind)?;
        let inputs = model.inputs().into_iter().map(|input| input.name);
        let values: Values =
            inputs.filter_map(|name| Some((name.clone(), value(&name)?.clone()))).collect();
        let weights = values.keys().filter(|name| side.weights.contains(*name)).cloned().collect();
        Ok(Self { model, output: name.to_owned(), values, weights })
    }

    /// The same operators in another form, which reads the same.
    pub(crate) fn with_model(&self, model: Model) -> Self {
        Self { model, ..self.clone() }
    }

    /// Names of its constants, in the order in which they are read.
    pub(crate) fn constants(&self) -> Vec<String> {
        let known: BTreeSet<String> =
            self.model.constant_names().into_iter().chain(self.weights.iter().cloned()).collect();
        let mut found: Vec<String> = Vec::new();
        for name in self.model.nodes().into_iter().flat_map(|node| node.inputs) {
            if known.contains(&name) && !found.contains(&name) {
                found.push(name);
            }
        }
        found
    }

    /// A constant.
    pub(crate) fn constant(&self, name: &str) -> Option<Tensor> {
        if self.weights.contains(name) {
            return view(self.values.get(name)?).ok().map(|weight| weight.to_tensor());
        }
        self.model.constant(name)
    }

    /// The slice with a constant in the place of a value.
    pub(crate) fn with_constant(&self, name: &str, tensor: &Tensor) -> Self {
        let mut changed = self.clone();
        let like = self.values.get(name).filter(|_| self.weights.contains(name));
        if like.is_some_and(|like| (like.dtype(), like.shape()) == (tensor.dtype(), tensor.shape()))
        {
            changed.values.insert(name.to_owned(), held(&tensor.view()));
            return changed;
        }
        changed.values.remove(name);
        changed.weights.remove(name);
        changed.model = self.model.with_constant(name, tensor);
        changed
    }

    /// The slice with its weights inside of the model.
    pub(crate) fn closed(&self) -> Self {
        let weights: Vec<&String> = self.weights.iter().collect();
        weights.into_iter().fold(self.clone(), |mut slice, name| {
            if let Some(tensor) = self.constant(name) {
                slice.values.remove(name);
                slice.weights.remove(name);
                slice.model = slice.model.with_constant(name, &tensor);
            }
            slice
        })
    }

    /// The slice in float32, where it is in half precision or takes detours over integers.
    pub(crate) fn widened(&self) -> Self {
        let widen = |(name, value): (&String, &SharedTensor)| {
            let wide = view(value).ok().and_then(|narrow| float32(&narrow));
            (name.clone(), wide.map_or_else(|| value.clone(), |wide| held(&wide.view())))
        };
        let values = self.values.iter().map(widen).collect();
        Self { values, ..self.with_model(self.model.widened()) }
    }

    /// What computes a value inside of it, if the model says what that is.
    pub(crate) fn before(&self, name: &str) -> Option<Self> {
        let kind =
            |read: &str| self.values.get(read).map(|value| (value.dtype(), value.shape().clone()));
        let model = self.model.slice(name, &kind).ok()?;
        Some(Self { output: name.to_owned(), ..self.with_model(model) })
    }

    /// Where each value comes from.
    pub(crate) fn sources(&self) -> BTreeMap<String, Source> {
        let given = self.values.keys().map(|name| (name.clone(), Source::Given));
        let mut sources: BTreeMap<String, Source> = given.collect();
        for (node, facts) in self.model.nodes().iter().enumerate() {
            for (output, name) in facts.outputs.iter().enumerate() {
                sources.insert(name.clone(), Source::Computed(node, output));
            }
        }
        sources.extend(self.constants().into_iter().map(|name| (name, Source::Constant)));
        sources
    }

    /// Its operators; constants are none.
    pub(crate) fn operators(&self) -> Vec<NodeFacts> {
        let constants: BTreeSet<String> = self.constants().into_iter().collect();
        let mut nodes = self.model.nodes();
        nodes.retain(|node| !node.outputs.iter().any(|output| constants.contains(output)));
        nodes
    }

    /// Type of the elements that it gives, as the model says.
    pub(crate) fn dtype(&self) -> Option<DType> {
        self.model.outputs().first().and_then(|output| output.dtype)
    }

    /// Runs it. Refused when it gives another shape.
    pub(crate) fn run(
        &self,
        engine: &dyn Engine,
        session: &SessionOptions,
        shape: &Shape,
    ) -> Result<SharedTensor> {
        let dtype = self.dtype().ok_or_else(|| {
            let message = format!("the type of {:?} is not known", self.output);
            Diagnostic::error(codes::DTYPE_UNSUPPORTED, message)
        })?;
        let like = SharedTensor::zeros(dtype, shape.clone());
        self.run_model(&self.model, engine, session, (&self.output, &like))
    }

    /// The shape that it gives when it is run, whatever the model says about it.
    pub(crate) fn actual_shape(
        &self,
        engine: &dyn Engine,
        session: &SessionOptions,
    ) -> Result<Shape> {
        let probe = self.model.shape_probe(&self.output);
        let like = SharedTensor::zeros(DType::I64, [PROBED_AXES].into());
        let output = probe.outputs().first().map(|output| output.name.clone()).unwrap_or_default();
        let found = self.run_model(&probe, engine, session, (&output, &like))?;
        let sizes = view(&found)?.to_tensor();
        let sizes = sizes.as_slice::<i64>().unwrap_or_default();
        let dims: Vec<usize> = sizes.iter().filter_map(|&size| size.try_into().ok()).collect();
        Shape::new(dims).ok_or_else(|| {
            let message = format!("{:?} is too large", self.output);
            Diagnostic::error(codes::ENGINE_OUTPUT_MISMATCH, message).into()
        })
    }

    fn run_model(
        &self,
        model: &Model,
        engine: &dyn Engine,
        session: &SessionOptions,
        (output, like): (&str, &SharedTensor),
    ) -> Result<SharedTensor> {
        let given = |name: &str| self.values.get(name).cloned();
        let mut found = run_once(engine, model, &given, &[(output, like)], session)?;
        Ok(found.remove(0))
    }
}
