//! Looks at constants and attributes of a graph and puts others in their place.
//!
//! A constant is an initializer or what a `Constant` node gives. Only the main graph is looked at.

use std::collections::BTreeMap;

use veracity_tensor::{DType, Shape, Tensor};

use crate::build::tensor_proto;
use crate::generated::onnx::tensor_proto::DataLocation;
use crate::generated::onnx::{AttributeProto, GraphProto, NodeProto, TensorProto};
use crate::value::from_onnx;
use crate::{Model, Node};

/// Elements of a tensor that are shown as text.
const SHOWN_ELEMENTS: usize = 8;

/// An attribute of a node. Two are equal when they say the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute(Box<AttributeProto>);

impl Attribute {
    /// Its value, for people.
    pub fn text(&self) -> String {
        let one: &AttributeProto = &self.0;
        let texts = |all: &[Vec<u8>]| {
            all.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect::<Vec<_>>()
        };
        match one {
            AttributeProto { i: Some(value), .. } => value.to_string(),
            AttributeProto { f: Some(value), .. } => format!("{value:?}"),
            AttributeProto { s: Some(value), .. } => String::from_utf8_lossy(value).into_owned(),
            AttributeProto { t: Some(value), .. } => {
                decoded(value).map_or_else(|| "a tensor".to_owned(), |tensor| tensor_text(&tensor))
            }
            AttributeProto { g: Some(_), .. } => "a graph".to_owned(),
            _ if !one.floats.is_empty() => format!("{:?}", one.floats),
            _ if !one.strings.is_empty() => format!("{:?}", texts(&one.strings)),
            _ => format!("{:?}", one.ints),
        }
    }
}

/// A tensor for people: its elements, when they are few, else dtype and shape.
pub fn tensor_text(tensor: &Tensor) -> String {
    let shown =
        if tensor.shape().elements() <= SHOWN_ELEMENTS { elements_text(tensor) } else { None };
    shown.unwrap_or_else(|| format!("{} {}", tensor.dtype(), tensor.shape()))
}

fn elements_text(tensor: &Tensor) -> Option<String> {
    fn list<E: std::fmt::Debug>(elements: &[E], scalar: bool) -> String {
        match elements {
            [one] if scalar => format!("{one:?}"),
            all => format!("{all:?}"),
        }
    }
    let scalar = tensor.shape().rank() == 0;
    match tensor.dtype() {
        DType::I64 => tensor.as_slice::<i64>().map(|all| list(all, scalar)),
        DType::I32 => tensor.as_slice::<i32>().map(|all| list(all, scalar)),
        DType::F32 => tensor.as_slice::<f32>().map(|all| list(all, scalar)),
        DType::F64 => tensor.as_slice::<f64>().map(|all| list(all, scalar)),
        _ => None,
    }
}

impl Model {
    /// Names of the constants of the main graph, in the order in which they stand.
    pub fn constant_names(&self) -> Vec<String> {
        let held = self.graph().initializer.iter().map(|tensor| tensor.name().to_owned());
        let computed = self.graph().node.iter().filter(|node| is_constant(node));
        held.chain(computed.flat_map(|node| node.output.iter().cloned())).collect()
    }

    /// A constant of the main graph; `None` when there is none of that name, when its elements lie
    /// in another file, and when they are of a type that tensors here do not have.
    pub fn constant(&self, name: &str) -> Option<Tensor> {
        let graph = self.graph();
        if let Some(held) = graph.initializer.iter().find(|tensor| tensor.name() == name) {
            return decoded(held);
        }
        let nodes = graph.node.iter().filter(|node| is_constant(node));
        let node =
            nodes.into_iter().find(|node| node.output.iter().any(|output| output == name))?;
        node.attribute.first().and_then(constant_value)
    }

    /// The model with a constant in the place of a value: of a constant, of an input, or of what a
    /// node gives.
    #[must_use]
    pub fn with_constant(&self, name: &str, tensor: &Tensor) -> Self {
        self.changed(|graph| {
            graph.node.retain(|node| node.output.len() != 1 || node.output[0] != name);
            for output in graph.node.iter_mut().flat_map(|node| &mut node.output) {
                if output == name {
                    output.push_str(":own");
                }
            }
            graph.input.retain(|input| input.name() != name);
            graph.initializer.retain(|held| held.name() != name);
            graph.initializer.push(tensor_proto(Some(name.to_owned()), tensor));
        })
    }

    /// The model with other elements in some of its constants; names that are none are ignored.
    #[must_use]
    pub fn with_constants(&self, changed: &BTreeMap<String, Tensor>) -> Self {
        let known: Vec<&String> = changed.keys().filter(|name| self.is_constant(name)).collect();
        self.changed(|graph| {
            let is_changed = |name: &str| known.iter().any(|known| *known == name);
            graph
                .node
                .retain(|node| !(is_constant(node) && node.output.iter().any(|o| is_changed(o))));
            graph.initializer.retain(|held| !is_changed(held.name()));
            for name in &known {
                graph.initializer.push(tensor_proto(Some((*name).clone()), &changed[*name]));
            }
        })
    }

    /// The model with a number added to some values, each by its name: as it is, or times another
    /// value. Readers see the sum.
    #[must_use]
    pub fn with_added(&self, values: &BTreeMap<String, Option<String>>, number: f32) -> Self {
        let plain = |op_type: &str, inputs: [String; 2], output: String| NodeProto {
            op_type: Some(op_type.to_owned()),
            input: inputs.to_vec(),
            output: vec![output],
            ..NodeProto::default()
        };
        self.changed(|graph| {
            let constant = "veracity:added".to_owned();
            let held = Tensor::from_slice(Shape::scalar(), &[number]);
            graph
                .initializer
                .extend(held.ok().map(|held| tensor_proto(Some(constant.clone()), &held)));
            let mut nodes = Vec::new();
            for mut node in std::mem::take(&mut graph.node) {
                let mut further = Vec::new();
                for output in &mut node.output {
                    let Some(factor) = values.get(output.as_str()) else { continue };
                    let [exact, cast, scaled] =
                        ["exact", "cast", "scaled"].map(|part| format!("{output}:{part}"));
                    further.push(plain(
                        "CastLike",
                        [constant.clone(), exact.clone()],
                        cast.clone(),
                    ));
                    let added = match factor {
                        None => cast,
                        Some(factor) => {
                            further.push(plain("Mul", [factor.clone(), cast], scaled.clone()));
                            scaled
                        }
                    };
                    further.push(plain("Add", [exact.clone(), added], output.clone()));
                    *output = exact;
                }
                nodes.push(node);
                nodes.append(&mut further);
            }
            graph.node = nodes;
        })
    }

    fn is_constant(&self, name: &str) -> bool {
        let graph = self.graph();
        graph.initializer.iter().any(|held| held.name() == name)
            || graph
                .node
                .iter()
                .any(|node| is_constant(node) && node.output.iter().any(|o| o == name))
    }

    /// The attributes of the node at this position in [`Model::nodes`], by name.
    pub fn attributes(&self, node: usize) -> BTreeMap<String, Attribute> {
        self.graph().node.get(node).map(attributes).unwrap_or_default()
    }

    /// The model with another attribute at a node, or without it.
    #[must_use]
    pub fn with_attribute(&self, node: usize, name: &str, value: Option<&Attribute>) -> Self {
        self.changed(|graph| {
            if let Some(node) = graph.node.get_mut(node) {
                node.attribute.retain(|attribute| attribute.name() != name);
                node.attribute.extend(value.map(|value| (*value.0).clone()));
            }
        })
    }
}

impl Node {
    /// The attributes, by name.
    pub fn attributes(&self) -> BTreeMap<String, Attribute> {
        attributes(self.proto())
    }
}

fn attributes(node: &NodeProto) -> BTreeMap<String, Attribute> {
    let plain = |one: &AttributeProto| {
        let plain = AttributeProto { doc_string: None, ..one.clone() };
        (one.name().to_owned(), Attribute(Box::new(plain)))
    };
    node.attribute.iter().map(plain).collect()
}

/// Whether a node gives a constant.
pub(crate) fn is_constant(node: &NodeProto) -> bool {
    node.op_type() == "Constant" && crate::walk::domain(node.domain()).is_empty()
}

pub(crate) fn constant_value(attribute: &AttributeProto) -> Option<Tensor> {
    let numbers = attribute.floats.as_slice();
    match attribute.name() {
        "value" => decoded(attribute.t.as_ref()?),
        "value_float" => Tensor::from_slice(Shape::scalar(), &[attribute.f?]).ok(),
        "value_int" => Tensor::from_slice(Shape::scalar(), &[attribute.i?]).ok(),
        "value_floats" => Tensor::from_slice([numbers.len()], numbers).ok(),
        "value_ints" => Tensor::from_slice([attribute.ints.len()], &attribute.ints).ok(),
        _ => None,
    }
}

/// The elements of a tensor, wherever in the message they stand.
pub(crate) fn decoded(tensor: &TensorProto) -> Option<Tensor> {
    if tensor.data_location == Some(DataLocation::External.into()) {
        return None;
    }
    let dtype = from_onnx(tensor.data_type())?;
    let dims: Option<Vec<usize>> = tensor.dims.iter().map(|&dim| dim.try_into().ok()).collect();
    let shape = Shape::new(dims?)?;
    if let Some(raw) = &tensor.raw_data {
        return Tensor::from_bytes(dtype, shape, raw).ok();
    }
    Tensor::from_bytes(dtype, shape, &typed_bytes(tensor, dtype)).ok()
}

/// Bytes of elements that stand in a list of their own kind; narrow integers and half precision
/// stand in 32-bit integers, by their bits.
fn typed_bytes(tensor: &TensorProto, dtype: DType) -> Vec<u8> {
    fn bytes<const N: usize>(all: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
        all.flatten().collect()
    }
    match dtype {
        DType::F32 => bytes(tensor.float_data.iter().map(|value| value.to_le_bytes())),
        DType::F64 => bytes(tensor.double_data.iter().map(|value| value.to_le_bytes())),
        DType::I64 => bytes(tensor.int64_data.iter().map(|value| value.to_le_bytes())),
        DType::U64 => bytes(tensor.uint64_data.iter().map(|value| value.to_le_bytes())),
        DType::U32 => {
            let words = tensor.uint64_data.iter().map(|value| value.to_le_bytes());
            words.flat_map(|word| word[..4].to_vec()).collect()
        }
        narrow => {
            let words = tensor.int32_data.iter().map(|value| value.to_le_bytes());
            words.flat_map(|word| word[..narrow.size()].to_vec()).collect()
        }
    }
}

/// The tensors of a graph that hold its constants.
pub(crate) fn constants_of(graph: &mut GraphProto) -> impl Iterator<Item = &mut TensorProto> {
    let nodes = graph.node.iter_mut().filter(|node| is_constant(node));
    let values = nodes.flat_map(|node| node.attribute.iter_mut().filter_map(|one| one.t.as_mut()));
    graph.initializer.iter_mut().chain(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphBuilder, Node};

    fn model() -> Model {
        let weight = Tensor::from_slice([2], &[1.0_f32, 2.0]).unwrap();
        GraphBuilder::new("graph", 20)
            .input("x", DType::F32, [2_usize])
            .initializer("w", &weight)
            .node(Node::new("Constant", [""; 0], ["c"]).ints("value_ints", [3, 4]))
            .node(Node::new("Constant", [""; 0], ["f"]).float("value_float", 0.5))
            .node(Node::new("LeakyRelu", ["x"], ["a"]).float("alpha", 0.01))
            .node(Node::new("Mul", ["a", "w"], ["y"]))
            .output("y", DType::F32, [2_usize])
            .finish()
            .unwrap()
    }

    #[test]
    fn constants_are_read_wherever_they_stand() {
        let model = model();
        assert_eq!(model.constant_names(), ["w", "c", "f"]);
        let shown = |name: &str| model.constant(name).map(|tensor| tensor_text(&tensor));
        assert_eq!(shown("w").as_deref(), Some("[1.0, 2.0]"));
        assert_eq!(shown("c").as_deref(), Some("[3, 4]"));
        assert_eq!(shown("f").as_deref(), Some("0.5"));
        assert_eq!(shown("a"), None);
    }

    #[test]
    fn elements_in_lists_of_their_own_kind_are_read() {
        let of = |dtype: DType, tensor: TensorProto| {
            let data_type = Some(crate::value::to_onnx(dtype));
            decoded(&TensorProto { dims: vec![2], data_type, ..tensor }).unwrap()
        };
        let floats = TensorProto { float_data: vec![1.5, -2.0], ..TensorProto::default() };
        assert_eq!(of(DType::F32, floats).as_slice::<f32>(), Some(&[1.5, -2.0][..]));
        let ints = || TensorProto { int32_data: vec![1, 255], ..TensorProto::default() };
        assert_eq!(of(DType::U8, ints()).bytes(), [1, 255]);
        assert_eq!(of(DType::F16, ints()).bytes(), [1, 0, 255, 0]);
        let wide = TensorProto { uint64_data: vec![7, 1 << 31], ..TensorProto::default() };
        assert_eq!(of(DType::U32, wide).as_slice::<u32>(), Some(&[7, 1 << 31][..]));
        let short = TensorProto { data_type: Some(1), dims: vec![2], ..TensorProto::default() };
        assert_eq!(decoded(&short), None, "elements are missing");
    }

    #[test]
    fn a_constant_takes_the_place_of_a_constant_an_input_or_a_node() {
        let other = Tensor::from_slice([2], &[5.0_f32, 6.0]).unwrap();
        for name in ["w", "c", "x", "a"] {
            let changed = model().with_constant(name, &other);
            assert_eq!(changed.constant(name), Some(other.clone()), "{name}");
            let given = changed.nodes().iter().any(|node| node.outputs == [name]);
            let fed = changed.inputs().iter().any(|input| input.name == name);
            assert!(!given && !fed, "{name}");
        }
    }

    #[test]
    fn attributes_are_shown_exchanged_and_left_out() {
        let model = model();
        let alpha = model.attributes(2)["alpha"].clone();
        assert_eq!(alpha.text(), "0.01");
        let without = model.with_attribute(2, "alpha", None);
        assert!(without.attributes(2).is_empty());
        assert_eq!(without.with_attribute(2, "alpha", Some(&alpha)).attributes(2)["alpha"], alpha);
        assert!(model.attributes(99).is_empty());
    }
}
