//! Inputs and outputs that the caller has in another order than the bundle.
//!
//! The caller's values lie in memory of their own. Before the first stage of a step inputs are copied
//! from there into the order of the bundle, after the last one outputs into the order of the
//! caller. All memory is made once.

use veracity_spec::{Direction, ReorderMap};

use crate::plan::{InputId, OutputId, Plan, PlannedPort};

/// Everything that is reordered.
#[derive(Debug, Default)]
pub(crate) struct Reordered {
    inputs: Vec<(InputId, Given)>,
    outputs: Vec<(OutputId, Given)>,
}

/// A value in the caller's order.
#[derive(Debug)]
pub(crate) struct Given {
    bytes: Vec<u8>,
    element_bytes: usize,
    /// Which element each one of the result is taken from.
    take: Vec<usize>,
}

impl Reordered {
    /// Memory and orders for a map that was checked against the bundle.
    pub(crate) fn new(map: &ReorderMap, plan: &Plan) -> Self {
        let given = |port: &PlannedPort, direction| Given::new(map, port, direction);
        let inputs = plan.inputs.iter().enumerate();
        let outputs = plan.outputs.iter().map(|value| &plan.values[value.0].port).enumerate();
        Self {
            inputs: inputs
                .filter_map(|(id, port)| Some((InputId(id), given(port, Direction::Input)?)))
                .collect(),
            outputs: outputs
                .filter_map(|(id, port)| Some((OutputId(id), given(port, Direction::Output)?)))
                .collect(),
        }
    }

    pub(crate) fn input_mut(&mut self, input: InputId) -> Option<&mut [u8]> {
        let mut inputs = self.inputs.iter_mut();
        inputs.find(|(id, _)| *id == input).map(|(_, given)| given.bytes.as_mut_slice())
    }

    pub(crate) fn output(&self, output: OutputId) -> Option<&[u8]> {
        let mut outputs = self.outputs.iter();
        outputs.find(|(id, _)| *id == output).map(|(_, given)| given.bytes.as_slice())
    }

    pub(crate) fn inputs(&self) -> impl Iterator<Item = (InputId, &Given)> {
        self.inputs.iter().map(|(id, given)| (*id, given))
    }

    pub(crate) fn outputs_mut(&mut self) -> impl Iterator<Item = (OutputId, &mut Given)> {
        self.outputs.iter_mut().map(|(id, given)| (*id, given))
    }
}

impl Given {
    /// `None` for a port that the map does not name.
    fn new(map: &ReorderMap, port: &PlannedPort, direction: Direction) -> Option<Self> {
        let is_it = |entry: &&veracity_spec::Reorder| {
            entry.direction == direction && entry.port == port.key
        };
        let mut entries = map.entries.iter().filter(is_it).peekable();
        entries.peek()?;
        let elements = port.shape.elements();
        let mut take: Vec<usize> = (0..elements).collect();
        for entry in entries {
            let (size, inner) = match entry.axis {
                None => (elements, 1),
                Some(axis) => {
                    let dims = port.shape.dims();
                    (dims[axis], dims[axis + 1..].iter().product())
                }
            };
            // Orders along different axes do not get into each other's way.
            let moved = |element: usize| {
                let (within, position) = (element % inner, element / inner % size);
                let before = element - within - position * inner;
                take[before + entry.take[position] * inner + within]
            };
            take = (0..elements).map(moved).collect();
        }
        let element_bytes = port.dtype.size();
        Some(Self { bytes: vec![0; elements * element_bytes], element_bytes, take })
    }

    /// Copies the caller's value into the order of the bundle.
    pub(crate) fn put_into(&self, target: &mut [u8]) {
        gather(target, &self.bytes, &self.take, self.element_bytes);
    }

    /// Copies the bundle's value into the order of the caller.
    pub(crate) fn take_from(&mut self, source: &[u8]) {
        gather(&mut self.bytes, source, &self.take, self.element_bytes);
    }
}

fn gather(target: &mut [u8], source: &[u8], take: &[usize], element_bytes: usize) {
    for (element, &from) in target.chunks_exact_mut(element_bytes).zip(take) {
        element.copy_from_slice(&source[from * element_bytes..][..element_bytes]);
    }
}
