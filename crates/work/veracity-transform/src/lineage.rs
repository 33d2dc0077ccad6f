//! Which nodes of the original each node comes from, through all rewrites.

use std::collections::{BTreeMap, BTreeSet};

use veracity_results::{RewriteLog, RewriteRecord};

/// Where a node or a weight comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Nodes of the original, by id.
    pub(crate) from: BTreeSet<u32>,
    /// Rewrites that made or changed it.
    pub(crate) rewrites: BTreeSet<usize>,
}

impl Origin {
    fn absorb(&mut self, other: &Self) {
        self.from.extend(&other.from);
        self.rewrites.extend(&other.rewrites);
    }
}

/// Where everything comes from that a rewrite made, changed, or let stand for something else.
#[derive(Debug)]
pub(crate) struct Lineage {
    nodes: BTreeMap<u32, Origin>,
    weights: BTreeMap<String, Origin>,
    originals: u32,
}

impl Lineage {
    pub(crate) fn of(log: &RewriteLog) -> Self {
        let originals = u32::try_from(log.nodes_before).unwrap_or(u32::MAX);
        let mut all = Self { nodes: BTreeMap::new(), weights: BTreeMap::new(), originals };
        for record in &log.records {
            all.follow(record);
        }
        all
    }

    /// Where a node comes from that some rewrite concerns.
    pub(crate) fn node(&self, id: u32) -> Option<&Origin> {
        self.nodes.get(&id)
    }

    /// Where a weight comes from that some rewrite made.
    pub(crate) fn weight(&self, name: &str) -> Option<&Origin> {
        self.weights.get(name)
    }

    fn follow(&mut self, record: &RewriteRecord) {
        let mut merged = Origin::default();
        let removed = record.removed.iter().map(|node| (node.id, &node.inputs));
        let changed = record.changed.iter().map(|node| (node.id, &node.inputs));
        for (id, inputs) in removed.chain(changed) {
            merged.absorb(&self.origin(id));
            for weight in inputs.iter().filter_map(|name| self.weights.get(name)) {
                merged.absorb(weight);
            }
        }
        merged.rewrites.insert(record.id);
        let made = record.added.iter().map(|node| node.id);
        for id in made.chain(record.changed.iter().map(|node| node.id)) {
            self.nodes.insert(id, merged.clone());
        }
        for id in &record.standing {
            let mut origin = self.origin(*id);
            origin.absorb(&merged);
            self.nodes.insert(*id, origin);
        }
        for id in &record.rerouted {
            let mut origin = self.origin(*id);
            origin.rewrites.insert(record.id);
            self.nodes.insert(*id, origin);
        }
        for dropped in &record.dropped {
            self.weights.remove(&dropped.name);
        }
        for new in &record.weights {
            self.weights.insert(new.weight.name.clone(), merged.clone());
        }
    }

    fn origin(&self, id: u32) -> Origin {
        let untouched = || Origin {
            from: if id < self.originals { [id].into() } else { BTreeSet::new() },
            rewrites: BTreeSet::new(),
        };
        self.nodes.get(&id).cloned().unwrap_or_else(untouched)
    }
}
