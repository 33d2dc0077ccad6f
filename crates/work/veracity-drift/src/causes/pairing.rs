//! Which part of the export's slice is which part of the original's: by position, whatever the
//! parts are called.

use std::collections::{BTreeMap, BTreeSet};

use veracity_onnx::NodeFacts;

use crate::causes::slice::{Slice, Source};

/// Parts that stand in the same place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs {
    /// Nodes with the same operator, by their positions.
    pub(crate) nodes: Vec<(usize, usize)>,
    /// Constants.
    pub(crate) constants: Vec<Held>,
    /// Values that one side holds and the other computes from constants.
    pub(crate) folded: Vec<Held>,
    /// Whether operators and what they read agree throughout.
    pub(crate) alike: bool,
}

/// Two values that stand in the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Name in the export.
    pub(crate) export: String,
    /// Name in the original.
    pub(crate) original: String,
    /// The operator that reads it.
    pub(crate) op_type: String,
    /// Position among the inputs of the operator.
    pub(crate) position: usize,
}

/// Walks both slices back from their outputs. `names` are those of the export's values in the
/// original, where they differ.
pub(crate) fn pair(
    export: &Slice,
    original: &Slice,
    names: Option<&BTreeMap<String, String>>,
) -> Pairs {
    let mut walk = Walk {
        export: Reader::new(export),
        original: Reader::new(original),
        names,
        seen: BTreeSet::new(),
        pairs: Pairs { alike: true, ..Pairs::default() },
    };
    let mut waiting = vec![Held {
        export: export.output.clone(),
        original: original.output.clone(),
        op_type: String::new(),
        position: 0,
    }];
    while let Some(next) = waiting.pop() {
        if walk.seen.insert((next.export.clone(), next.original.clone())) {
            // The first input is looked at first.
            waiting.extend(walk.visit(next).into_iter().rev());
        }
    }
    walk.pairs
}

/// A slice, ready to be looked up in.
struct Reader {
    nodes: Vec<NodeFacts>,
    sources: BTreeMap<String, Source>,
}

impl Reader {
    fn new(slice: &Slice) -> Self {
        Self { nodes: slice.model.nodes(), sources: slice.sources() }
    }

    fn source(&self, name: &str) -> Option<Source> {
        self.sources.get(name).copied()
    }

    /// Whether a value depends on constants only.
    fn is_fixed(&self, name: &str) -> bool {
        match self.source(name) {
            Some(Source::Computed(node, _)) => {
                self.nodes[node].inputs.iter().all(|input| self.is_fixed(input))
            }
            Some(Source::Constant) => true,
            Some(Source::Given) => false,
            None => name.is_empty(),
        }
    }
}

struct Walk<'a> {
    export: Reader,
    original: Reader,
    names: Option<&'a BTreeMap<String, String>>,
    seen: BTreeSet<(String, String)>,
    pairs: Pairs,
}

impl Walk<'_> {
    /// Notes a pair of values; gives the pairs behind it.
    fn visit(&mut self, at: Held) -> Vec<Held> {
        let sources = (self.export.source(&at.export), self.original.source(&at.original));
        match sources {
            (Some(Source::Constant), Some(Source::Constant)) => self.pairs.constants.push(at),
            (Some(Source::Given), Some(Source::Given)) => {
                let name = self.names.and_then(|names| names.get(&at.export)).unwrap_or(&at.export);
                self.pairs.alike &= *name == at.original;
            }
            (Some(Source::Computed(ours, _)), Some(Source::Computed(theirs, _)))
                if self.same_operator(sources) =>
            {
                return self.inputs(ours, theirs);
            }
            (None, None) => {}
            _ => {
                self.pairs.alike = false;
                let either = [sources.0, sources.1].contains(&Some(Source::Constant));
                let fixed =
                    self.export.is_fixed(&at.export) && self.original.is_fixed(&at.original);
                if either && fixed {
                    self.pairs.folded.push(at);
                }
            }
        }
        Vec::new()
    }

    fn same_operator(&self, sources: (Option<Source>, Option<Source>)) -> bool {
        let (
            Some(Source::Computed(ours, our_output)),
            Some(Source::Computed(theirs, their_output)),
        ) = sources
        else {
            return false;
        };
        let (ours, theirs) = (&self.export.nodes[ours], &self.original.nodes[theirs]);
        ours.op_type == theirs.op_type && our_output == their_output
    }

    /// The inputs of two nodes with the same operator.
    fn inputs(&mut self, ours: usize, theirs: usize) -> Vec<Held> {
        if !self.pairs.nodes.contains(&(ours, theirs)) {
            self.pairs.nodes.push((ours, theirs));
        }
        let (ours, theirs) = (&self.export.nodes[ours], &self.original.nodes[theirs]);
        // Inputs that are left out at the end may be written or not.
        let count = |node: &NodeFacts| {
            node.inputs.iter().rposition(|input| !input.is_empty()).map_or(0, |last| last + 1)
        };
        self.pairs.alike &= count(ours) == count(theirs);
        let both = ours.inputs.iter().zip(&theirs.inputs).enumerate();
        both.map(|(position, (export, original))| Held {
            export: export.clone(),
            original: original.clone(),
            op_type: ours.op_type.clone(),
            position,
        })
        .collect()
    }
}
