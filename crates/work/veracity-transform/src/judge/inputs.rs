//! What the whole model is run on. The same seed gives the same numbers everywhere.

use std::collections::BTreeMap;

use veracity_onnx::{Dim, Graph, ValueInfo};
use veracity_tensor::{DType, Shape, Tensor};

use super::random::Random;
use super::values::from_floats;

/// A kind of made-up inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputSet {
    /// Around 0, of both signs.
    Normal,
    /// Evenly from -1 to 1.
    Uniform,
    /// Of both signs, from 1e-3 to 1e3.
    Wide,
    /// All 0.
    Zeros,
    /// Zeros of both signs, numbers near the smallest, and ones.
    Edge,
}

impl InputSet {
    fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Uniform => "uniform",
            Self::Wide => "wide",
            Self::Zeros => "zeros",
            Self::Edge => "edge",
        }
    }
}

/// What the whole model is run on.
#[derive(Clone, Debug)]
pub struct Inputs {
    /// What random numbers are drawn from.
    pub seed: u64,
    /// Kinds of made-up inputs; the first one is run with each size.
    pub sets: Vec<InputSet>,
    /// Sizes that axes without a size take, one after the other.
    pub sizes: Vec<usize>,
    /// Sizes of axes that have a name.
    pub named: BTreeMap<String, usize>,
    /// Inputs that the user gave, by name; they are run first.
    pub recorded: Vec<BTreeMap<String, Tensor>>,
}

impl Default for Inputs {
    fn default() -> Self {
        Self {
            seed: 0,
            sets: vec![InputSet::Normal, InputSet::Wide, InputSet::Zeros],
            sizes: vec![3, 1],
            named: BTreeMap::new(),
            recorded: Vec::new(),
        }
    }
}

/// One set of inputs.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) name: String,
    pub(crate) values: BTreeMap<String, Tensor>,
    /// Whether windows are run on the values that these inputs lead to.
    pub(crate) is_local: bool,
}

impl Inputs {
    /// The sets for a model: those that were given, the first made-up kind in each size, then the
    /// others. Says why when there is none.
    pub(crate) fn of(&self, graph: &Graph) -> Result<Vec<Given>, String> {
        let fed: Vec<ValueInfo> = graph
            .declared_inputs()
            .into_iter()
            .filter(|info| graph.default_of(&info.name).is_none())
            .collect();
        let mut sets = Vec::new();
        for (index, values) in self.recorded.iter().enumerate() {
            let name = format!("recorded {index}");
            sets.push(Given { name, values: recorded(&fed, values)?, is_local: true });
        }
        let open = fed
            .iter()
            .flat_map(|info| info.dims.iter().flatten())
            .any(|dim| !matches!(dim, Dim::Fixed(_)));
        let first = *self.sizes.first().unwrap_or(&1);
        let sizes: &[usize] =
            if open { &self.sizes } else { &self.sizes[..self.sizes.len().min(1)] };
        for (index, &kind) in self.sets.iter().enumerate() {
            for &size in sizes.iter().take(if index == 0 { sizes.len() } else { 1 }) {
                let name = if open && size != first {
                    format!("{}, open axes of size {size}", kind.name())
                } else {
                    kind.name().to_owned()
                };
                let values = fed
                    .iter()
                    .map(|info| Ok((info.name.clone(), self.made(info, kind, size)?)))
                    .collect::<Result<_, String>>()?;
                let is_local = index == 0 && (self.recorded.is_empty() || size != first);
                sets.push(Given { name, values, is_local });
            }
        }
        if sets.is_empty() { Err("no inputs were asked for".to_owned()) } else { Ok(sets) }
    }

    fn made(&self, info: &ValueInfo, kind: InputSet, size: usize) -> Result<Tensor, String> {
        let cannot = || format!("no values can be made up for the input {:?}, {info}", info.name);
        let (Some(dtype), Some(dims)) = (info.dtype, &info.dims) else { return Err(cannot()) };
        let sizes: Vec<usize> = dims
            .iter()
            .map(|dim| match dim {
                Dim::Fixed(fixed) => *fixed,
                Dim::Named(name) => self.named.get(name).copied().unwrap_or(size),
                Dim::Unknown => size,
            })
            .collect();
        let shape = Shape::new(sizes).ok_or_else(cannot)?;
        let mut random = Random::new(self.seed, &format!("{}/{}", kind.name(), info.name));
        Ok(made_up(dtype, &shape, kind, &mut random))
    }
}

fn recorded(
    fed: &[ValueInfo],
    values: &BTreeMap<String, Tensor>,
) -> Result<BTreeMap<String, Tensor>, String> {
    let found = fed.iter().map(|info| match values.get(&info.name) {
        Some(tensor) => Ok((info.name.clone(), tensor.clone())),
        None => Err(format!("the recorded inputs have no {:?}", info.name)),
    });
    found.collect()
}

fn made_up(dtype: DType, shape: &Shape, kind: InputSet, random: &mut Random) -> Tensor {
    const EDGES: [f64; 8] = [0.0, -0.0, 1.0, -1.0, 1e-38, -1e-38, 1e-3, -1e-3];
    let draw = |at: usize| match kind {
        InputSet::Normal => random.normal(),
        InputSet::Uniform => random.unit() * 2.0 - 1.0,
        InputSet::Wide => random.wide(-10, if dtype == DType::F16 { 3 } else { 10 }),
        InputSet::Zeros => 0.0,
        InputSet::Edge => EDGES[at % EDGES.len()],
    };
    from_floats(dtype, shape, draw).unwrap_or_else(|| whole_numbers(dtype, shape, kind, random))
}

/// Integers are often indices: 0 and 1 are valid nearly everywhere.
fn whole_numbers(dtype: DType, shape: &Shape, kind: InputSet, random: &mut Random) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, shape.clone());
    if kind != InputSet::Zeros {
        let size = dtype.size();
        for element in tensor.bytes_mut().chunks_exact_mut(size) {
            element[0] = (random.bits() & 1) as u8;
        }
    }
    tensor
}
