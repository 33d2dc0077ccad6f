//! Runs a program on memory and tells the tape, as a front would.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use veracity_trace::{
    Birth, Call, Closed, EventId, ExecutionId, NodeId, OpId, PortId, SiteId, StorageId, Tape,
    ViewId,
};

use crate::tensor::{Tensor, anywhere, geometry, inside, is_injective, positions};

/// One instruction, in whatever way the machine reads it.
pub(crate) type Code = [u8; 8];
pub(crate) const NODES: usize = 2;
/// The values at the ports of a node.
pub(crate) type Values = BTreeMap<PortId, Vec<u64>>;

/// Which programs are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Two nodes in each other's way, inputs on top of each other.
    Wild,
    /// One node, whose inputs are whole storages that it did not use before.
    Tame,
}

/// What a call computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// A new tensor from all reads.
    Pure(u64),
    /// Two tensors on one new storage.
    Pair(u64),
    /// Another look at the first read, as logical indices.
    Look([u8; 2]),
    /// Mixes the other reads into the first: into all elements, or every second.
    Mix(u64, bool),
    /// Replaces the first read by a mix of the others.
    Replace(u64),
    /// Replaces the first read by the second.
    Copy,
    /// The first read, as memory of its own or not: which one is not known in general.
    Layout,
}

/// What the front keeps of a call.
#[derive(Debug, Clone)]
pub(crate) struct Payload {
    pub(crate) op: Op,
    /// Positions of each output in the storage that it shares with another, for new ones.
    pub(crate) outputs: Vec<Tensor>,
    pub(crate) reads: Vec<Tensor>,
}

/// What the front keeps.
#[derive(Default)]
pub(crate) struct Front {
    pub(crate) tape: Tape,
    storages: Vec<StorageId>,
    pub(crate) payloads: HashMap<EventId, Payload>,
    /// Storages that are kept alive for their content at a write count.
    pub(crate) kept: HashSet<(StorageId, u32)>,
    snapshots: HashMap<(StorageId, u32), Vec<u64>>,
    closed: HashMap<usize, Closed>,
}

#[derive(Default)]
struct Node {
    execution: Option<ExecutionId>,
    is_closed: bool,
    ports: u32,
}

pub(crate) struct Machine {
    flavour: Flavour,
    memory: Vec<Vec<u64>>,
    pool: Vec<Tensor>,
    nodes: [Node; NODES],
    /// For each storage the nodes whose inputs reach it.
    reach: Vec<[bool; NODES]>,
    /// Storages that were used by a call or a mark.
    used: HashSet<usize>,
    front: Option<Front>,
    /// The node whose inputs get other values.
    changed: Option<usize>,
    /// What the tape was asked when it was there: the answers shape the program.
    answers: VecDeque<bool>,
    pub(crate) inputs: [Values; NODES],
    pub(crate) outputs: [Values; NODES],
    /// What was done, for people.
    pub(crate) log: Vec<String>,
}

/// Stirs a number.
pub(crate) fn mix(state: u64, value: u64) -> u64 {
    (state ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
}

/// What an op computes for the element at an index. It depends on every element of every read, as a
/// running sum or a softmax does.
pub(crate) fn element(literal: u64, reads: &[Vec<u64>], index: usize) -> u64 {
    reads.iter().fold(literal, |state, read| {
        let all = read.iter().fold(state, |digest, value| mix(digest, *value));
        mix(all, read[index % read.len()])
    })
}

/// Whether a mix changes the element at an index.
pub(crate) fn is_mixed(index: usize, all: bool) -> bool {
    all || index.is_multiple_of(2)
}

impl Machine {
    /// Runs a program and records it.
    pub(crate) fn record(program: &[Code], flavour: Flavour) -> Self {
        Self::run(program, flavour, Some(Front::default()), None)
    }

    /// Runs a program again with other inputs of a node.
    pub(crate) fn rerun(program: &[Code], recorded: &Self, node: usize) -> Self {
        Self::run(program, recorded.flavour, None, Some((node, recorded.answers.clone())))
    }

    fn run(
        program: &[Code],
        flavour: Flavour,
        front: Option<Front>,
        again: Option<(usize, VecDeque<bool>)>,
    ) -> Self {
        let mut machine = Self {
            flavour,
            memory: Vec::new(),
            reach: Vec::new(),
            pool: Vec::new(),
            nodes: Default::default(),
            used: HashSet::new(),
            front,
            changed: again.as_ref().map(|(node, _)| *node),
            answers: again.map(|(_, answers)| answers).unwrap_or_default(),
            inputs: Default::default(),
            outputs: Default::default(),
            log: Vec::new(),
        };
        for len in [6, 8, 5, 9] {
            let storage = machine.allocate(len, Birth::Before);
            machine.pool.push(Tensor { storage, geometry: geometry(0, &[(len, 1)]) });
        }
        machine.node(0, [0; 8]);
        for code in program {
            machine.step(*code);
            machine.check_origins();
        }
        for node in 0..NODES {
            machine.close(node);
        }
        machine.check_origins();
        machine
    }

    pub(crate) fn closed(&self, node: usize) -> Option<&Closed> {
        self.front.as_ref()?.closed.get(&node)
    }

    pub(crate) fn front(&self) -> &Front {
        self.front.as_ref().expect("this machine records")
    }

    /// The content of a storage at a write count, as the front can give it.
    pub(crate) fn constant(&self, storage: StorageId, count: u32) -> Vec<u64> {
        let front = self.front();
        assert!(
            front.kept.contains(&(storage, count)),
            "the front was not told to keep a constant"
        );
        if let Some(snapshot) = front.snapshots.get(&(storage, count)) {
            return snapshot.clone();
        }
        let current = front.tape.write_count(storage);
        assert_eq!(current, count, "a constant was lost by a write without a snapshot");
        let index =
            front.storages.iter().position(|known| *known == storage).expect("a known storage");
        self.memory[index].clone()
    }

    fn allocate(&mut self, len: usize, birth: Birth) -> usize {
        let storage = self.memory.len();
        self.memory.push((0..len).map(|index| mix(storage as u64, index as u64)).collect());
        self.reach.push([false; NODES]);
        if let Some(front) = &mut self.front {
            let id = front.tape.storage(birth);
            front.storages.push(id);
        }
        storage
    }

    fn read(&self, tensor: &Tensor) -> Vec<u64> {
        let memory = &self.memory[tensor.storage];
        positions(&tensor.geometry).iter().map(|position| memory[*position]).collect()
    }

    fn write(&mut self, tensor: &Tensor, values: &[u64]) {
        let memory = &mut self.memory[tensor.storage];
        for (position, value) in positions(&tensor.geometry).iter().zip(values) {
            memory[*position] = *value;
        }
    }

    fn view(&mut self, tensor: &Tensor) -> Option<ViewId> {
        let front = self.front.as_mut()?;
        Some(front.tape.view(front.storages[tensor.storage], &tensor.geometry))
    }

    /// A tensor of the pool, or one through an alias that nobody saw being made.
    fn pick(&self, choice: u8, alias: [u8; 3]) -> Tensor {
        // The youngest are the most interesting ones.
        let back = usize::from(choice % 64) % self.pool.len();
        let known = &self.pool[self.pool.len() - 1 - back];
        if choice < 192 {
            return known.clone();
        }
        let geometry = anywhere(self.memory[known.storage].len(), alias);
        Tensor { storage: known.storage, geometry }
    }

    fn step(&mut self, code: Code) {
        let [kind, first, second, a, b, c, d, literal] = code;
        let (one, two) = (self.pick(first, [a, b, c]), self.pick(second, [d, b, a]));
        let literal = u64::from(literal);
        match kind % 32 {
            // A failing program shrinks to these.
            0 => {}
            1..=5 => self.call(Op::Pure(literal), &[one, two], &[]),
            // Nobody gets to see the whole storage of a pair, so an alias to it is refused.
            7 if self.flavour == Flavour::Wild => self.call(Op::Pair(literal), &[one, two], &[]),
            6 | 7 => self.call(Op::Pure(literal), &[one], &[]),
            8..=10 => self.call(Op::Look([a, b]), &[one], &[]),
            11 => self.call(Op::Look([a, b]), &[one, two], &[]),
            12..=15 => self.call(Op::Mix(literal, c % 2 == 0), &[one, two], &[0]),
            16 => self.call(Op::Replace(literal), &[one, two], &[0]),
            17 | 18 => self.call(Op::Copy, &[one, two], &[0]),
            19 | 20 => self.call(Op::Layout, &[one], &[]),
            21 => self.pool.push(Tensor {
                geometry: anywhere(self.memory[one.storage].len(), [d, c, b]),
                ..one
            }),
            _ => self.node(kind % 32 - 22, code),
        }
    }

    fn call(&mut self, op: Op, reads: &[Tensor], writes: &[usize]) {
        if writes.iter().any(|index| !is_injective(&reads[*index].geometry)) {
            return;
        }
        let views: Vec<ViewId> = reads.iter().filter_map(|read| self.view(read)).collect();
        let counts = self.prepare(&views, writes);
        let outputs = self.execute(op, reads);
        self.log.push(format!("{op:?}{reads:?} -> {outputs:?}"));
        self.used.extend(reads.iter().chain(&outputs).map(|tensor| tensor.storage));
        for node in 0..NODES {
            let reached = reads.iter().any(|read| self.reach[read.storage][node]);
            for tensor in writes.iter().map(|index| &reads[*index]).chain(&outputs) {
                self.reach[tensor.storage][node] |= reached;
            }
        }
        let shown: Vec<ViewId> = outputs.iter().filter_map(|output| self.view(output)).collect();
        let payload = Payload { op, outputs: outputs.clone(), reads: reads.to_vec() };
        self.pool.extend(outputs);
        let Some(front) = &mut self.front else { return };
        let overwrites = matches!(op, Op::Replace(_) | Op::Copy);
        let copies = matches!(op, Op::Layout).then_some(0).or((op == Op::Copy).then_some(1));
        let recorded = front.tape.call(&Call {
            op: OpId(0),
            site: SiteId(u32::try_from(front.payloads.len()).expect("few calls")),
            literals: 0,
            reads: &views,
            writes,
            outputs: &shown,
            ragged: false,
            identity: copies,
            part: None,
            overwrites,
            may_alias: op == Op::Layout,
            blind: false,
        });
        front.kept.extend(recorded.constants.iter().map(|index| counts[*index]));
        if let Some(event) = recorded.event {
            front.payloads.insert(event, payload);
        }
    }

    /// Takes the snapshots that the tape asks for.
    fn prepare(&mut self, views: &[ViewId], writes: &[usize]) -> Vec<(StorageId, u32)> {
        let Some(front) = &mut self.front else { return Vec::new() };
        let counted = |view: &ViewId| {
            let (storage, _) = front.tape.geometry(*view);
            (storage, front.tape.write_count(storage))
        };
        let counts: Vec<(StorageId, u32)> = views.iter().map(counted).collect();
        for index in writes {
            if front.tape.must_snapshot(views[*index], views) {
                let storage = front.storages.iter().position(|known| *known == counts[*index].0);
                let content = self.memory[storage.expect("a known storage")].clone();
                front.snapshots.insert(counts[*index], content);
            }
        }
        counts
    }

    /// Computes; gives the tensors that the call gives back.
    fn execute(&mut self, op: Op, reads: &[Tensor]) -> Vec<Tensor> {
        let values: Vec<Vec<u64>> = reads.iter().map(|read| self.read(read)).collect();
        let count = values[0].len();
        match op {
            Op::Pure(literal) => {
                let result = (0..count).map(|index| element(literal, &values, index)).collect();
                vec![self.fresh(result)]
            }
            Op::Pair(literal) => {
                let result = (0..2 * count).map(|index| element(literal, &values, index)).collect();
                let Tensor { storage, .. } = self.fresh(result);
                let half = |offset| Tensor { storage, geometry: geometry(offset, &[(count, 1)]) };
                vec![half(0), half(count)]
            }
            Op::Look(choice) => {
                let geometry = inside(&reads[0].geometry, choice);
                vec![Tensor { storage: reads[0].storage, geometry }]
            }
            Op::Mix(literal, all) => {
                let old = values[0].clone();
                let change = |index| element(literal, &values, index);
                let new: Vec<u64> = (0..count)
                    .map(|index| if is_mixed(index, all) { change(index) } else { old[index] })
                    .collect();
                self.write(&reads[0], &new);
                // As with `x[i] = y`, nothing comes back from some.
                if all { vec![reads[0].clone()] } else { Vec::new() }
            }
            Op::Replace(literal) => {
                let new: Vec<u64> =
                    (0..count).map(|index| element(literal, &values[1..], index)).collect();
                self.write(&reads[0], &new);
                Vec::new()
            }
            Op::Copy => {
                let new: Vec<u64> =
                    (0..count).map(|index| values[1][index % values[1].len()]).collect();
                self.write(&reads[0], &new);
                vec![reads[0].clone()]
            }
            Op::Layout if reads[0].geometry.offset.is_multiple_of(2) => vec![reads[0].clone()],
            Op::Layout => {
                let mut copy = self.fresh(values[0].clone());
                copy.geometry = compact(&reads[0]);
                vec![copy]
            }
        }
    }

    fn fresh(&mut self, values: Vec<u64>) -> Tensor {
        let storage = self.allocate(values.len(), Birth::Seen);
        let geometry = geometry(0, &[(values.len(), 1)]);
        self.memory[storage] = values;
        Tensor { storage, geometry }
    }

    /// Opens, marks, closes.
    fn node(&mut self, kind: u8, code: Code) {
        let [_, first, second, a, b, c, d, _] = code;
        let node = match self.flavour {
            Flavour::Wild => usize::from(d % 4 == 3),
            Flavour::Tame => 0,
        };
        let tensor = self.pick(first, [a, b, c]);
        match kind {
            0..=3 => self.mark_input(node, tensor),
            4..=8 => self.mark_output(node, &tensor),
            _ if second % 4 == 0 => self.close(node),
            _ => {}
        }
    }

    fn execution(&mut self, node: usize) -> Option<ExecutionId> {
        if self.nodes[node].execution.is_none() {
            let id = NodeId(u32::try_from(node).expect("few nodes"));
            let opened = self.front.as_mut().map(|front| front.tape.open(id, false));
            self.nodes[node].execution = Some(opened.unwrap_or(ExecutionId(0)));
        }
        self.nodes[node].execution.filter(|_| !self.nodes[node].is_closed)
    }

    fn next_port(&mut self, node: usize) -> PortId {
        self.nodes[node].ports += 1;
        PortId(self.nodes[node].ports)
    }

    fn mark_input(&mut self, node: usize, mut tensor: Tensor) {
        if self.flavour == Flavour::Tame {
            if !self.used.insert(tensor.storage) {
                return;
            }
            tensor.geometry = geometry(0, &[(self.memory[tensor.storage].len(), 1)]);
        }
        let Some(execution) = self.execution(node) else { return };
        let (port, view) = (self.next_port(node), self.view(&tensor));
        // Memory that somebody follows is no longer the test's to change.
        let free = !self.is_traced(&tensor);
        self.reach[tensor.storage][node] = true;
        if self.changed == Some(node) && free {
            let other: Vec<u64> =
                self.read(&tensor).iter().map(|value| mix(*value, 0xABCD)).collect();
            self.write(&tensor, &other);
        }
        if let (Some(front), Some(view)) = (&mut self.front, view) {
            front.tape.mark_input(execution, port, view);
        }
        self.log.push(format!("input {node}.{} = {tensor:?}", port.0));
        let value = self.read(&tensor);
        self.inputs[node].insert(port, value);
        self.pool.push(tensor);
    }

    /// Whether an open execution follows a tensor.
    fn is_traced(&mut self, tensor: &Tensor) -> bool {
        let Some(view) = self.view(tensor) else {
            return self.answers.pop_front().expect("the same questions as before");
        };
        let answer = self.front().tape.is_traced(view);
        self.answers.push_back(answer);
        answer
    }

    fn mark_output(&mut self, node: usize, tensor: &Tensor) {
        if !self.reach[tensor.storage][node] {
            return;
        }
        let Some(execution) = self.execution(node) else { return };
        let (port, view) = (self.next_port(node), self.view(tensor));
        self.log.push(format!("output {node}.{} = {tensor:?}", port.0));
        let value = self.read(tensor);
        self.outputs[node].insert(port, value);
        if let (Some(front), Some(view)) = (&mut self.front, view) {
            front.tape.mark_output(execution, port, view, SiteId(0));
        }
    }

    fn close(&mut self, node: usize) {
        let Some(execution) = self.nodes[node].execution else { return };
        if self.nodes[node].is_closed || self.outputs[node].is_empty() {
            return;
        }
        self.nodes[node].is_closed = true;
        if let Some(front) = &mut self.front {
            let closed = front.tape.close(execution);
            self.log.push(format!("closed {node}: {:?} {:?}", closed.problems, closed.slice));
            front.closed.insert(node, closed);
        }
    }

    /// A tensor that is said to be an output has its value.
    fn check_origins(&mut self) {
        for tensor in self.pool.clone() {
            let Some(view) = self.view(&tensor) else { return };
            let Some(origin) = self.front().tape.origin(view) else { continue };
            let published = &self.outputs[origin.node.index()][&origin.port];
            assert_eq!(&self.read(&tensor), published, "origin of {tensor:?}");
        }
    }
}

/// The geometry of a copy without gaps.
fn compact(tensor: &Tensor) -> veracity_trace::Geometry {
    let mut geometry = tensor.geometry.clone();
    geometry.offset = 0;
    let mut stride = 1;
    for (size, place) in geometry.sizes.iter().zip(&mut geometry.strides).rev() {
        *place = stride;
        stride *= i64::try_from(*size).expect("small tensors");
    }
    geometry
}
