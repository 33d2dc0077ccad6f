//! Laws over random chains of what shapes are computed with: what is known about a value holds for
//! every size that a name may stand for, and folding changes no bit.

use proptest::prelude::*;
use veracity_onnx::{Dim, Graph, GraphBuilder, Model, Node};
use veracity_tensor::{DType, Shape, Tensor};
use veracity_transform::passes::{
    FoldConstants, FoldShapes, RemoveDeadCode, RemoveNoOps, ShareComputations, ShareConstants,
};
use veracity_transform::{Element, Facts, Pass};

use crate::support::{answers, run};

/// Sizes of `N` and `M`; the input has the shape `[N, 3, M]`.
const SIZES: [(usize, usize); 4] = [(2, 5), (1, 1), (3, 0), (0, 4)];

/// A chain that is being made: the nodes, and the values with their lengths (`None` for scalars).
struct Chain {
    builder: GraphBuilder,
    values: Vec<(String, Option<usize>)>,
    constants: usize,
}

impl Chain {
    fn new() -> Self {
        let dims = [Dim::from("N"), Dim::Fixed(3), Dim::from("M")];
        let builder = GraphBuilder::new("graph", 18).input("x", DType::F32, dims).node(Node::new(
            "Shape",
            ["x"],
            ["v0"],
        ));
        Self { builder, values: vec![("v0".to_owned(), Some(3))], constants: 0 }
    }

    fn constant(&mut self, elements: &[i64], scalar: bool) -> String {
        let name = format!("c{}", self.constants);
        self.constants += 1;
        let shape = if scalar { Shape::scalar() } else { Shape::from([elements.len()]) };
        let tensor = Tensor::from_slice(shape, elements).unwrap();
        self.builder = self.builder.clone().initializer(&name, &tensor);
        name
    }

    fn push(&mut self, node: Node, length: Option<usize>) {
        self.builder = self.builder.clone().node(node);
        self.values.push((format!("v{}", self.values.len()), length));
    }

    fn next(&self) -> String {
        format!("v{}", self.values.len())
    }

    /// Adds one step that is chosen by three numbers.
    fn step(&mut self, kind: u8, which: usize, number: i64) {
        let (value, length) = self.values[which % self.values.len()].clone();
        let next = self.next();
        match (kind % 10, length) {
            (0, Some(length)) if length > 0 => {
                let size = i64::try_from(length).unwrap();
                let index = self.constant(&[number.rem_euclid(2 * size) - size], number % 2 == 0);
                let result = if number % 2 == 0 { None } else { Some(1) };
                self.push(Node::new("Gather", [value, index], [next]), result);
            }
            (1, Some(length)) => {
                let size = i64::try_from(length).unwrap();
                let start = number.rem_euclid(size + 1);
                let (from, to) =
                    (self.constant(&[start], false), self.constant(&[i64::MAX], false));
                let left = usize::try_from(size - start).unwrap();
                self.push(Node::new("Slice", [value, from, to], [next]), Some(left));
            }
            (2, Some(length)) => {
                let mut lists = self.values.iter().rev().filter(|(_, other)| other.is_some());
                let (other, more) = lists.next().cloned().unwrap();
                let node = Node::new("Concat", [value, other], [next]).int("axis", 0);
                self.push(node, Some(length + more.unwrap()));
            }
            (3, None) => {
                let axes = self.constant(&[0], false);
                self.push(Node::new("Unsqueeze", [value, axes], [next]), Some(1));
            }
            (3, Some(1)) => self.push(Node::new("Squeeze", [value], [next]), None),
            (4, length) => {
                let op = ["Add", "Sub", "Mul", "Div", "Max", "Min"][which % 6];
                let nonzero = if number.rem_euclid(7) == 0 { 1 } else { number.rem_euclid(7) };
                let other = self.constant(&[nonzero * if number < 0 { -1 } else { 1 }], true);
                self.push(Node::new(op, [value, other], [next]), length);
            }
            (5, length) => {
                let op = ["Add", "Sub", "Mul", "Max"][which % 4];
                self.push(Node::new(op, [value.clone(), value], [next]), length);
            }
            (6, Some(_)) => {
                let node =
                    Node::new("ReduceProd", [value], [next]).int("keepdims", number.rem_euclid(2));
                self.push(node, if number % 2 == 0 { None } else { Some(1) });
            }
            (7, length) => {
                let minus = self.constant(&[-1], true);
                let flags = format!("{next}_flags");
                let equal = Node::new("Equal", [value.clone(), minus], [flags.clone()]);
                self.builder = self.builder.clone().node(equal);
                let one = self.constant(&[1], true);
                self.push(Node::new("Where", [flags, one, value], [next]), length);
            }
            (8, length) => {
                let narrow = format!("{next}_narrow");
                let cast = Node::new("Cast", [value], [narrow.clone()]).dtype("to", DType::I32);
                self.builder = self.builder.clone().node(cast);
                self.push(Node::new("Cast", [narrow], [next]).dtype("to", DType::I64), length);
            }
            _ => self.push(Node::new("Identity", [value], [next]), length),
        }
    }

    /// The model; every value is an output, or the last one alone.
    fn finish(self, all: bool) -> Model {
        let skipped = if all { 0 } else { self.values.len() - 1 };
        let mut builder = self.builder;
        for (name, length) in self.values.into_iter().skip(skipped) {
            builder = builder.output(name, DType::I64, length.map(Dim::Fixed));
        }
        builder.finish().unwrap()
    }
}

fn chain(steps: &[(u8, usize, i64)]) -> Chain {
    let mut chain = Chain::new();
    for &(kind, which, number) in steps {
        chain.step(kind, which, number);
    }
    chain
}

fn input(n: usize, m: usize) -> Vec<(String, Tensor)> {
    vec![("x".to_owned(), Tensor::zeros(DType::F32, Shape::from([n, 3, m])))]
}

fn steps() -> impl Strategy<Value = Vec<(u8, usize, i64)>> {
    prop::collection::vec((any::<u8>(), 0_usize..64, -20_i64..20), 1..14)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_known_holds_for_every_size(steps in steps()) {
        let model = chain(&steps).finish(true);
        let facts = Facts::of(&Graph::new(model.clone()).unwrap());
        for (n, m) in SIZES {
            for (name, tensor) in answers(&model, &input(n, m)) {
                let fact = facts.get(&name).unwrap();
                prop_assert_eq!(fact.shape().unwrap(), tensor.shape().dims(), "{}", name);
                let numbers = tensor.as_slice::<i64>().unwrap();
                for (element, &number) in fact.elements.iter().flatten().zip(numbers) {
                    let expected = match element {
                        Element::Known(known) => *known,
                        Element::Named(axis) if axis == "N" => i64::try_from(n).unwrap(),
                        Element::Named(_) => i64::try_from(m).unwrap(),
                        Element::Unknown => number,
                    };
                    prop_assert_eq!(expected, number, "{} of {:?}", &name, fact);
                }
            }
        }
    }

    #[test]
    fn folding_changes_no_bit(steps in steps()) {
        let model = chain(&steps).finish(false);
        let passes: Vec<Box<dyn Pass>> = vec![
            Box::new(RemoveNoOps),
            Box::new(FoldShapes),
            Box::new(FoldConstants::default()),
            Box::new(ShareConstants),
            Box::new(ShareComputations),
            Box::new(RemoveDeadCode),
        ];
        let done = run(passes, &model);
        prop_assert!(done.settled);
        let folded = done.graph.to_model().unwrap();
        for (n, m) in SIZES {
            let (one, two) = (answers(&model, &input(n, m)), answers(&folded, &input(n, m)));
            prop_assert_eq!(&one, &two);
        }
    }
}
