//! What is inferred about values is what an engine makes of them.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

mod support;

#[path = "facts/chains.rs"]
mod chains;
#[path = "facts/computations.rs"]
mod computations;
#[path = "facts/layouts.rs"]
mod layouts;
#[path = "facts/random.rs"]
mod random;

use support::{Kind, answers};
use veracity_onnx::{Dim, Graph, GraphBuilder, Node};
use veracity_tensor::{DType, Shape, Tensor};
use veracity_transform::{Element, Fact, Facts};

/// What a table knows about one input.
#[derive(Clone)]
enum Given {
    /// An input of the model.
    Fed(DType, Vec<usize>),
    /// A constant of integers.
    Ints(Vec<i64>),
    /// A constant scalar.
    Scalar(i64),
    /// Constant numbers.
    Floats(Vec<usize>, Vec<f32>),
    /// Left out.
    Absent,
}

use Given::{Absent, Floats, Ints, Scalar};

fn f32(dims: &[usize]) -> Given {
    Given::Fed(DType::F32, dims.to_vec())
}

fn fed(dtype: DType, dims: &[usize]) -> Given {
    Given::Fed(dtype, dims.to_vec())
}

/// A model of one node, which gives what is asked for.
fn model(opset: i64, node: &Node, given: &[Given], named: bool) -> GraphBuilder {
    let mut builder = GraphBuilder::new("graph", opset);
    for (index, given) in given.iter().enumerate() {
        let name = format!("i{index}");
        builder = match given {
            Given::Fed(dtype, dims) => {
                let dim = |(axis, size): (usize, &usize)| {
                    if named { Dim::Named(format!("{name}_{axis}")) } else { Dim::Fixed(*size) }
                };
                let dims: Vec<Dim> = dims.iter().enumerate().map(dim).collect();
                builder.input(name, *dtype, dims)
            }
            Ints(all) => builder.initializer(name, &Tensor::from_slice([all.len()], all).unwrap()),
            Scalar(one) => {
                builder.initializer(name, &Tensor::from_slice([0_usize; 0], &[*one]).unwrap())
            }
            Floats(dims, all) => {
                let shape = Shape::new(dims.as_slice()).unwrap();
                builder.initializer(name, &Tensor::from_slice(shape, all).unwrap())
            }
            Absent => builder,
        };
    }
    builder.node(node.clone())
}

fn inferred(builder: GraphBuilder, node: &Node) -> Vec<Fact> {
    let graph = Graph::new(builder.finish().unwrap()).unwrap();
    let facts = Facts::of(&graph);
    node.outputs().iter().map(|name| facts.get(name).cloned().unwrap_or_default()).collect()
}

/// Runs a node and compares type, sizes and elements with what was inferred: with sizes that are
/// numbers all must be known, with names what is known must be right.
fn check(opset: i64, node: &Node, given: &[Given]) {
    let inputs: Vec<String> = (0..given.len())
        .map(
            |index| {
                if matches!(given[index], Absent) { String::new() } else { format!("i{index}") }
            },
        )
        .collect();
    let mut node = node.clone();
    for (index, name) in inputs.iter().enumerate() {
        node = node.with_input(index, name);
    }
    let facts = inferred(model(opset, &node, given, false), &node);
    let mut runnable = model(opset, &node, given, false);
    for (name, fact) in node.outputs().iter().zip(&facts) {
        let rank = fact.dims.as_ref().unwrap_or_else(|| panic!("no rank: {node:?}")).len();
        let dtype = fact.dtype.unwrap_or_else(|| panic!("no type: {node:?}"));
        runnable = runnable.output(name, dtype, vec![Dim::Unknown; rank]);
    }
    let runnable = runnable.finish().unwrap();
    let found = answers(&runnable, &support::inputs(&runnable, Kind::Normal));
    let named = inferred(model(opset, &node, given, true), &node);
    for (((name, tensor), fact), named) in found.iter().zip(&facts).zip(&named) {
        let what = format!("{name} of {} {opset}", node.op_type());
        assert_eq!(fact.dtype, Some(tensor.dtype()), "{what}");
        assert_eq!(fact.shape().as_deref(), Some(tensor.shape().dims()), "{what}");
        assert_eq!(named.dtype, Some(tensor.dtype()), "{what}");
        if let Some(dims) = &named.dims {
            assert_eq!(dims.len(), tensor.shape().rank(), "{what}");
            for (dim, &size) in dims.iter().zip(tensor.shape().dims()) {
                assert!(matches(dim, size, given), "{what}: {dims:?} is {:?}", tensor.shape());
            }
        }
        for fact in [fact, named] {
            let Some(elements) = &fact.elements else { continue };
            let numbers: Vec<i64> = match (tensor.as_slice::<i64>(), tensor.as_slice::<i32>()) {
                (Some(all), _) => all.to_vec(),
                (_, Some(all)) => all.iter().map(|&one| one.into()).collect(),
                _ => tensor.bytes().iter().map(|&one| one.into()).collect(),
            };
            assert_eq!(elements.len(), numbers.len(), "{what}");
            for (element, number) in elements.iter().zip(numbers) {
                let right = match element {
                    Element::Known(known) => *known == number,
                    Element::Named(name) => i64::try_from(size_of(name, given)) == Ok(number),
                    Element::Unknown => true,
                };
                assert!(right, "{what}: {elements:?}");
            }
        }
    }
}

fn matches(dim: &Dim, size: usize, given: &[Given]) -> bool {
    match dim {
        Dim::Fixed(fixed) => *fixed == size,
        Dim::Named(name) => size_of(name, given) == size,
        Dim::Unknown => true,
    }
}

/// The size that a name like `i0_2` stands for.
fn size_of(name: &str, given: &[Given]) -> usize {
    let (input, axis) = name[1..].split_once('_').unwrap();
    let Given::Fed(_, dims) = &given[input.parse::<usize>().unwrap()] else { panic!("{name}") };
    dims[axis.parse::<usize>().unwrap()]
}

fn op(name: &str) -> Node {
    Node::new(name, [""; 0], ["y"])
}

fn op_with(name: &str, outputs: &[&str]) -> Node {
    Node::new(name, [""; 0], outputs.iter().copied())
}
