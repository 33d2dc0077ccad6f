//! Runs a slice on its own.
//!
//! Harsher than any exporter: memory that the slice did not declare as written is read-only, content
//! that it declared as not read is garbage, outputs are looked at after the last step, and whatever
//! may share memory with its argument does.

use std::collections::HashMap;

use veracity_trace::{Geometry, Operand, PortId, Slice, Step};

use crate::machine::{Machine, Op, Payload, Values, element, is_mixed};
use crate::tensor::positions;

struct Buffer {
    content: Vec<u64>,
    writable: bool,
}

/// A tensor: a buffer, and where each of its elements lies in it.
#[derive(Clone)]
struct Shown {
    buffer: usize,
    places: Vec<usize>,
}

struct Replay<'a> {
    machine: &'a Machine,
    buffers: Vec<Buffer>,
    inputs: Vec<Shown>,
    constants: Vec<Shown>,
    results: Vec<Vec<Shown>>,
}

/// The outputs of a slice for these inputs.
pub(crate) fn run(machine: &Machine, slice: &Slice, inputs: &Values) -> Values {
    let mut replay = Replay {
        machine,
        buffers: Vec::new(),
        inputs: Vec::new(),
        constants: Vec::new(),
        results: Vec::new(),
    };
    for input in &slice.inputs {
        let shown = replay.add(inputs[&input.port].clone(), input.written);
        replay.inputs.push(shown);
    }
    for constant in &slice.constants {
        let storage = machine.constant(constant.storage, constant.count);
        let mut content = match &constant.geometry {
            Some(geometry) => positions(geometry).iter().map(|place| storage[*place]).collect(),
            None => storage,
        };
        if !constant.read {
            content.fill(0xDEAD);
        }
        let shown = replay.add(content, constant.written);
        replay.constants.push(shown);
    }
    for step in &slice.steps {
        let result = replay.step(step);
        replay.results.push(result);
    }
    let output = |(port, operand): &(PortId, Operand)| (*port, replay.read(&replay.get(*operand)));
    slice.outputs.iter().map(output).collect()
}

impl Replay<'_> {
    fn add(&mut self, content: Vec<u64>, writable: bool) -> Shown {
        let places = (0..content.len()).collect();
        self.buffers.push(Buffer { content, writable });
        Shown { buffer: self.buffers.len() - 1, places }
    }

    fn get(&self, operand: Operand) -> Shown {
        match operand {
            Operand::Input(index) => self.inputs[index].clone(),
            Operand::Constant(index) => self.constants[index].clone(),
            Operand::Step { step, output } => self.results[step][output].clone(),
        }
    }

    fn read(&self, shown: &Shown) -> Vec<u64> {
        let content = &self.buffers[shown.buffer].content;
        shown.places.iter().map(|place| content[*place]).collect()
    }

    fn write(&mut self, shown: &Shown, values: &[u64]) {
        let buffer = &mut self.buffers[shown.buffer];
        assert!(buffer.writable, "a step writes into memory that is not declared as written");
        for (place, value) in shown.places.iter().zip(values) {
            buffer.content[*place] = *value;
        }
    }

    fn step(&mut self, step: &Step) -> Vec<Shown> {
        match step {
            Step::Call { event, operands, .. } => {
                let payload = &self.machine.front().payloads[event];
                let reads: Vec<Shown> = operands.iter().map(|operand| self.get(*operand)).collect();
                self.call(payload, &reads)
            }
            Step::View { base, base_geometry, geometry, .. } => {
                let base = self.get(*base);
                vec![view(&base, base_geometry.as_deref(), geometry)]
            }
            Step::Copy { source, .. } => {
                let values = self.read(&self.get(*source));
                vec![self.add(values, true)]
            }
        }
    }

    fn call(&mut self, payload: &Payload, reads: &[Shown]) -> Vec<Shown> {
        let values: Vec<Vec<u64>> = reads.iter().map(|read| self.read(read)).collect();
        let count = values[0].len();
        match payload.op {
            Op::Pure(literal) => {
                let result = (0..count).map(|index| element(literal, &values, index)).collect();
                vec![self.add(result, true)]
            }
            Op::Pair(literal) => {
                let result = (0..2 * count).map(|index| element(literal, &values, index)).collect();
                let whole = self.add(result, true);
                let half = |places: &[usize]| Shown { places: places.to_vec(), ..whole.clone() };
                vec![half(&whole.places[..count]), half(&whole.places[count..])]
            }
            Op::Look(_) => {
                let (base, shown) = (&payload.reads[0].geometry, &payload.outputs[0].geometry);
                vec![view(&reads[0], Some(base), shown)]
            }
            Op::Mix(literal, all) => {
                let change = |index| element(literal, &values, index);
                let old = &values[0];
                let new: Vec<u64> = (0..count)
                    .map(|index| if is_mixed(index, all) { change(index) } else { old[index] })
                    .collect();
                self.write(&reads[0], &new);
                vec![reads[0].clone()]
            }
            Op::Replace(literal) => {
                let new: Vec<u64> =
                    (0..count).map(|index| element(literal, &values[1..], index)).collect();
                self.write(&reads[0], &new);
                vec![reads[0].clone()]
            }
            Op::Copy => {
                let new: Vec<u64> =
                    (0..count).map(|index| values[1][index % values[1].len()]).collect();
                self.write(&reads[0], &new);
                vec![reads[0].clone()]
            }
            Op::Layout => vec![reads[0].clone()],
        }
    }
}

/// The tensor of a geometry, on the memory of another. Fails when that does not contain it.
fn view(base: &Shown, base_geometry: Option<&Geometry>, wanted: &Geometry) -> Shown {
    let place_of: HashMap<usize, usize> = match base_geometry {
        Some(geometry) => positions(geometry).into_iter().zip(base.places.clone()).collect(),
        None => base.places.iter().map(|place| (*place, *place)).collect(),
    };
    let places = positions(wanted).iter().map(|position| place_of[position]).collect();
    Shown { places, ..base.clone() }
}
