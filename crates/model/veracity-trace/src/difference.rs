//! How a later program of a node differs from its first one.
//!
//! Only what can be told without values: whether two constants that are different memory hold the
//! same numbers, and whether a difference changes any result, is found out by the front.

use std::collections::BTreeSet;

use crate::ids::SiteId;
use crate::slice::{Constant, Operand, Slice, Step};

/// A place where two programs differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Difference {
    /// The user's line in the later program; where that ends early, in the first one. `None` when
    /// there is no line: the programs have other ports.
    pub site: Option<SiteId>,
    /// What differs there.
    pub kind: DifferenceKind,
}

/// What differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DifferenceKind {
    /// One program is longer, or has other ports.
    Length,
    /// Something else is called. What follows was not compared.
    Op,
    /// An argument that is no tensor has another value.
    Literals,
    /// A tensor comes from elsewhere, or lies elsewhere in its memory.
    Wiring,
    /// A constant is other memory, or the same memory after a write: its values decide.
    Constant {
        /// Index among the constants of the first program.
        first: usize,
        /// Index among the constants of the later program.
        later: usize,
    },
}

/// Compares two programs of one node, in the order of the later one. The same difference is told
/// once for each place; a pair of constants once.
pub fn differences(first: &Slice, later: &Slice) -> Vec<Difference> {
    let mut comparison = Comparison { first, later, found: Vec::new(), constants: BTreeSet::new() };
    if comparison.steps() {
        comparison.ports();
    }
    comparison.found
}

struct Comparison<'a> {
    first: &'a Slice,
    later: &'a Slice,
    found: Vec<Difference>,
    /// Pairs that were told already.
    constants: BTreeSet<(usize, usize)>,
}

impl Comparison<'_> {
    fn tell(&mut self, site: Option<SiteId>, kind: DifferenceKind) {
        self.found.push(Difference { site, kind });
    }

    /// False when the programs part.
    fn steps(&mut self) -> bool {
        let (first, later) = (self.first, self.later);
        for (one, other) in first.steps.iter().zip(&later.steps) {
            if !self.step(one, other) {
                self.tell(Some(other.site()), DifferenceKind::Op);
                return false;
            }
        }
        let common = first.steps.len().min(later.steps.len());
        let rest = later.steps.get(common).or(first.steps.get(common));
        if let Some(step) = rest {
            self.tell(Some(step.site()), DifferenceKind::Length);
        }
        rest.is_none()
    }

    /// False when the two do not do the same thing.
    fn step(&mut self, first: &Step, later: &Step) -> bool {
        let site = later.site();
        match (first, later) {
            (
                Step::Call { op, literals, operands, .. },
                Step::Call { op: later_op, literals: later_literals, operands: others, .. },
            ) => {
                if op != later_op || operands.len() != others.len() {
                    return false;
                }
                if literals != later_literals {
                    self.tell(Some(site), DifferenceKind::Literals);
                }
                for (one, other) in operands.iter().zip(others) {
                    self.operand(*one, *other, site);
                }
                true
            }
            (
                Step::View { base, base_geometry, geometry, .. },
                Step::View { base: other, base_geometry: lies_in, geometry: lies, .. },
            ) => {
                self.operand(*base, *other, site);
                if (base_geometry, geometry) != (lies_in, lies) {
                    self.tell(Some(site), DifferenceKind::Wiring);
                }
                true
            }
            (Step::Copy { source, .. }, Step::Copy { source: other, .. }) => {
                self.operand(*source, *other, site);
                true
            }
            _ => false,
        }
    }

    fn operand(&mut self, first: Operand, later: Operand, site: SiteId) {
        match (first, later) {
            (Operand::Constant(one), Operand::Constant(other)) => self.constant(one, other, site),
            _ if first == later => {}
            _ => self.tell(Some(site), DifferenceKind::Wiring),
        }
    }

    fn constant(&mut self, first: usize, later: usize, site: SiteId) {
        let (one, other) = (&self.first.constants[first], &self.later.constants[later]);
        if !is_same(one, other) && self.constants.insert((first, later)) {
            self.tell(Some(site), DifferenceKind::Constant { first, later });
        }
    }

    fn ports(&mut self) {
        let (first, later) = (self.first, self.later);
        let ports = |slice: &Slice| -> (Vec<_>, Vec<_>) {
            let inputs = slice.inputs.iter().map(|input| input.port).collect();
            (inputs, slice.outputs.iter().map(|output| output.0).collect())
        };
        if ports(first) != ports(later) {
            return self.tell(None, DifferenceKind::Length);
        }
        for ((_, one), (_, other)) in first.outputs.iter().zip(&later.outputs) {
            match (*one, *other) {
                (Operand::Constant(one), Operand::Constant(other)) => {
                    self.constant(one, other, later.constants[other].site);
                }
                (one, other) if one == other => {}
                _ => self.tell(None, DifferenceKind::Wiring),
            }
        }
    }
}

/// Memory whose content nobody looks at is the same as any other of its shape.
fn is_same(first: &Constant, later: &Constant) -> bool {
    let identity = |constant: &Constant| (constant.storage, constant.count, constant.view);
    let extents = |constant: &Constant| {
        constant.geometry.as_ref().map(|lies| (lies.sizes.clone(), lies.element))
    };
    if !first.read && !later.read {
        return extents(first) == extents(later);
    }
    identity(first) == identity(later)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{EventId, OpId, PortId, StorageId};
    use crate::slice::InputUse;

    fn call(op: u32, literals: u64, operands: &[Operand]) -> Step {
        let (event, operands) = (EventId(0), operands.to_vec());
        Step::Call { event, op: OpId(op), site: SiteId(op), literals, operands }
    }

    fn constant(storage: u32, count: u32, read: bool) -> Constant {
        let (storage, site) = (StorageId(storage), SiteId(0));
        Constant { storage, count, view: None, geometry: None, written: false, read, site }
    }

    fn program(steps: &[Step], constants: &[Constant]) -> Slice {
        let output = Operand::Step { step: steps.len() - 1, output: 0 };
        Slice {
            inputs: vec![InputUse { port: PortId(0), written: false }],
            constants: constants.to_vec(),
            steps: steps.to_vec(),
            outputs: vec![(PortId(1), output)],
        }
    }

    #[test]
    fn every_kind_of_difference_is_told_where_it_is() {
        let (x, c) = (Operand::Input(0), Operand::Constant(0));
        let y = Operand::Step { step: 0, output: 0 };
        let steps = [call(1, 0, &[x, c]), call(2, 0, &[y, x])];
        let first = program(&steps, &[constant(7, 3, true)]);
        let changed = |index: usize, step: Step| {
            let mut steps = steps.to_vec();
            steps[index] = step;
            program(&steps, &[constant(7, 3, true)])
        };
        let told = |kind, site| vec![Difference { site: Some(SiteId(site)), kind }];
        let cases = [
            ("the same", first.clone(), vec![]),
            ("an argument", changed(0, call(1, 9, &[x, c])), told(DifferenceKind::Literals, 1)),
            ("an operation", changed(0, call(5, 0, &[x, c])), told(DifferenceKind::Op, 5)),
            ("an operand", changed(1, call(2, 0, &[x, x])), told(DifferenceKind::Wiring, 2)),
            ("shorter", program(&steps[..1], &first.constants), told(DifferenceKind::Length, 2)),
            (
                "other memory",
                program(&steps, &[constant(8, 3, true)]),
                told(DifferenceKind::Constant { first: 0, later: 0 }, 1),
            ),
            (
                "the memory after a write",
                program(&steps, &[constant(7, 4, true)]),
                told(DifferenceKind::Constant { first: 0, later: 0 }, 1),
            ),
        ];
        for (name, later, expected) in cases {
            assert_eq!(differences(&first, &later), expected, "{name}");
        }
    }

    #[test]
    fn memory_that_is_overwritten_before_it_is_read_never_differs() {
        let steps = [call(1, 0, &[Operand::Constant(0), Operand::Input(0)])];
        let first = program(&steps, &[constant(7, 3, false)]);
        assert_eq!(differences(&first, &program(&steps, &[constant(9, 0, false)])), vec![]);
        let read = program(&steps, &[constant(9, 0, true)]);
        assert_eq!(differences(&first, &read).len(), 1);
    }

    #[test]
    fn other_ports_are_a_difference_without_a_line() {
        let first = program(&[call(1, 0, &[Operand::Input(0)])], &[]);
        let mut later = first.clone();
        later.outputs.pop();
        let expected = vec![Difference { site: None, kind: DifferenceKind::Length }];
        assert_eq!(differences(&first, &later), expected);
    }
}
