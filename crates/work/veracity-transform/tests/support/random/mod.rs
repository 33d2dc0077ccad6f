//! Random graphs that are valid: every value has a known shape, every operator is used as its
//! version allows, and the patterns that the passes look for stand at random places.
//!
//! The same seed gives the same graph. Values are kept in a pool; each [`patterns`] entry takes
//! some, adds a few nodes and puts its result back, so that values are read several times.

mod convolutions;
mod formulas;
mod layouts;
mod numbers;
mod plain;

use veracity_onnx::{Dim, Function, GraphBuilder, Model, Node, Weight};
use veracity_tensor::{DType, Shape, Tensor};

/// Size of the first axis of all inputs, whether the model names it or not.
const BATCH: usize = 2;

/// A stream of numbers: xorshift with a multiplication.
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    /// A number below the limit.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next()).unwrap() % limit
    }

    /// Whether one in so many came up.
    pub(crate) fn one_in(&mut self, many: usize) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn choose<'c, T>(&mut self, from: &'c [T]) -> &'c T {
        &from[self.below(from.len())]
    }

    /// Between -1 and 1.
    pub(crate) fn number(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() & 0xff_ffff).unwrap()) / f64::from(1 << 23) - 1.0
    }
}

/// A value of the model's float type.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) dims: Vec<usize>,
}

/// A graph that is being made.
pub(crate) struct Made {
    pub(crate) rng: Rng,
    pub(crate) opset: i64,
    pub(crate) float: DType,
    nodes: Vec<Node>,
    weights: Vec<(String, Tensor)>,
    values: Vec<Value>,
    functions: Vec<Function>,
    count: usize,
    flag: bool,
}

/// Takes values from the pool and puts one back; `false` when no value fits.
type Pattern = fn(&mut Made) -> bool;

/// Every pattern with its name.
fn patterns() -> Vec<(&'static str, Pattern)> {
    let all: [&[(&str, Pattern)]; 5] = [
        plain::PATTERNS,
        layouts::PATTERNS,
        convolutions::PATTERNS,
        formulas::PATTERNS,
        numbers::PATTERNS,
    ];
    all.concat()
}

/// The model of a seed, with the names of the patterns in it.
pub(crate) fn model(seed: u64) -> (Model, Vec<&'static str>) {
    let mut rng = Rng::new(seed);
    let opset = *rng.choose(&[13, 17, 18, 20, 23, 23]);
    let float = if rng.one_in(8) { DType::F16 } else { DType::F32 };
    let named = rng.one_in(3);
    let values = vec![
        Value { name: "image".to_owned(), dims: vec![BATCH, 4, 5, 5] },
        Value { name: "rows".to_owned(), dims: vec![BATCH, 6] },
        Value { name: "words".to_owned(), dims: vec![BATCH, 3, 8] },
    ];
    let mut made = Made {
        rng,
        opset,
        float,
        nodes: Vec::new(),
        weights: Vec::new(),
        values,
        functions: Vec::new(),
        count: 0,
        flag: false,
    };
    let wanted = 5 + made.rng.below(36);
    let patterns = patterns();
    let mut used = Vec::new();
    while made.nodes.len() < wanted {
        let (name, pattern) = *made.rng.choose(&patterns);
        if pattern(&mut made) {
            used.push(name);
        }
    }
    (made.finish(named), used)
}

impl Made {
    fn finish(mut self, named: bool) -> Model {
        let mut graph = GraphBuilder::new("random", self.opset);
        let read: Vec<String> = self.nodes.iter().flat_map(Node::reads).collect();
        let inputs = self.values[..3].iter().filter(|value| read.contains(&value.name));
        for value in inputs {
            let mut dims: Vec<Dim> = value.dims.iter().map(|&size| Dim::Fixed(size)).collect();
            if named {
                dims[0] = Dim::from("batch");
            }
            graph = graph.input(&value.name, self.float, dims);
        }
        if self.flag {
            graph = graph.input("flag", DType::Bool, [0_usize; 0]);
        }
        for (name, tensor) in &self.weights {
            graph = graph.initializer(name, tensor);
        }
        let computed = self.values.split_off(3);
        let unread = computed.iter().filter(|value| !read.contains(&value.name));
        let mut outputs: Vec<&Value> = unread.rev().take(4).collect();
        if outputs.is_empty() || self.rng.one_in(3) {
            let extra = self.rng.choose(&computed);
            outputs.retain(|output| output.name != extra.name);
            outputs.push(extra);
        }
        for output in outputs {
            let size = |&size: &usize| if named { Dim::Unknown } else { Dim::Fixed(size) };
            let dims: Vec<Dim> = output.dims.iter().map(size).collect();
            graph = graph.output(&output.name, self.float, dims);
        }
        graph = self.functions.into_iter().fold(graph, GraphBuilder::function);
        self.nodes.into_iter().fold(graph, GraphBuilder::node).finish().unwrap()
    }

    /// A name that nothing has.
    pub(crate) fn name(&mut self) -> String {
        self.count += 1;
        format!("v{}", self.count)
    }

    /// A value for which this holds, the younger ones more often.
    pub(crate) fn pick(&mut self, fits: impl Fn(&[usize]) -> bool) -> Option<Value> {
        let fitting: Vec<&Value> = self.values.iter().filter(|value| fits(&value.dims)).collect();
        if fitting.is_empty() {
            return None;
        }
        let (one, two) = (self.rng.below(fitting.len()), self.rng.below(fitting.len()));
        Some(fitting[one.max(two)].clone())
    }

    /// Adds a node with one output.
    pub(crate) fn op(&mut self, op_type: &str, inputs: &[&str]) -> String {
        self.op_with(op_type, inputs, |node| node)
    }

    /// Adds a node with one output and attributes.
    pub(crate) fn op_with(
        &mut self,
        op_type: &str,
        inputs: &[&str],
        attributes: impl FnOnce(Node) -> Node,
    ) -> String {
        let name = self.name();
        self.nodes.push(attributes(Node::new(op_type, inputs.to_vec(), [name.as_str()])));
        name
    }

    pub(crate) fn push(&mut self, node: Node) {
        self.nodes.push(node);
    }

    /// Puts a value into the pool.
    pub(crate) fn give(&mut self, name: String, dims: &[usize]) -> bool {
        self.values.push(Value { name, dims: dims.to_vec() });
        true
    }

    /// A weight of the model's float type, sometimes one that is there already. Sometimes a node
    /// gives it.
    pub(crate) fn weight(&mut self, dims: &[usize], elements: impl Fn(&mut Rng) -> f64) -> String {
        let count: usize = dims.iter().product();
        let elements: Vec<f64> = (0..count).map(|_| elements(&mut self.rng)).collect();
        let tensor = Weight::from_floats(self.float, dims, &elements).unwrap().tensor().unwrap();
        self.constant(tensor)
    }

    /// A weight with numbers between -1 and 1, shared with others of that shape one time in four.
    pub(crate) fn matrix(&mut self, dims: &[usize]) -> String {
        let alike: Vec<&String> = self
            .weights
            .iter()
            .filter(|(_, old)| old.shape().dims() == dims && old.dtype() == self.float)
            .map(|(name, _)| name)
            .collect();
        if !alike.is_empty() && self.rng.one_in(4) {
            return (*self.rng.choose(&alike)).clone();
        }
        self.weight(dims, Rng::number)
    }

    /// A number without axes.
    pub(crate) fn number(&mut self, number: f64) -> String {
        self.weight(&[], |_| number)
    }

    /// Integers, for shapes and axes.
    pub(crate) fn ints(&mut self, elements: &[i64]) -> String {
        self.constant(Tensor::from_slice([elements.len()], elements).unwrap())
    }

    /// An integer without axes.
    pub(crate) fn int(&mut self, element: i64) -> String {
        self.constant(Tensor::from_slice([], &[element]).unwrap())
    }

    pub(crate) fn truth(&mut self, condition: bool) -> String {
        let shape = Shape::new([0; 0]).unwrap();
        self.constant(Tensor::from_bytes(DType::Bool, shape, &[u8::from(condition)]).unwrap())
    }

    fn constant(&mut self, tensor: Tensor) -> String {
        let name = self.name();
        if self.rng.one_in(5) {
            self.nodes
                .push(Node::new("Constant", [""; 0], [name.as_str()]).tensor("value", &tensor));
        } else {
            self.weights.push((name.clone(), tensor));
        }
        name
    }

    /// The condition that comes from outside.
    pub(crate) fn flag(&mut self) -> &'static str {
        self.flag = true;
        "flag"
    }

    /// Declares a function once.
    pub(crate) fn function(&mut self, name: &str, make: impl FnOnce() -> Function) {
        let calls = |node: &Node| node.op_type() == name;
        if !self.nodes.iter().any(calls) {
            self.functions.push(make());
        }
    }

    /// A reduction over some axes, as the opset writes it.
    pub(crate) fn reduce(
        &mut self,
        op_type: &str,
        value: &str,
        axes: &[i64],
        keep: bool,
    ) -> String {
        let attributes = |node: Node| node.int("keepdims", i64::from(keep));
        let since = if op_type == "ReduceSum" { 13 } else { 18 };
        if self.opset >= since {
            let axes = self.ints(axes);
            return self.op_with(op_type, &[value, &axes], attributes);
        }
        self.op_with(op_type, &[value], |node| attributes(node).ints("axes", axes))
    }
}

/// Number code of a type in ONNX.
pub(crate) fn code(dtype: DType) -> i64 {
    match dtype {
        DType::F16 => 10,
        DType::I64 => 7,
        _ => 1,
    }
}

/// A size as ONNX writes it.
pub(crate) fn signed(size: usize) -> i64 {
    i64::try_from(size).unwrap()
}
