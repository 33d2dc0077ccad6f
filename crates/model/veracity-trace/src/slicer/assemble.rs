//! Puts the steps of a program down, in order.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{Root, Sliced, Slicer, Source, Use};
use crate::execution::{Event, Time};
use crate::ids::{EventId, SiteId, StorageId, ViewId};
use crate::report::Problem;
use crate::slice::{Constant, InputUse, Operand, Slice, Step};

impl Slicer<'_> {
    /// Puts the program together.
    pub(super) fn assemble(mut self) -> Sliced {
        let mut events: Vec<EventId> = self.needed.iter().copied().collect();
        events.sort_unstable();
        self.check_overlaps(&events);
        self.check_outputs(&events);
        let used_marks = self.used_marks();
        let slice = Assembly::new(&self, &events, &used_marks).run(&events);
        let mut told = HashSet::new();
        let problems = self.problems.iter().map(|(_, problem)| *problem);
        let problems = problems.filter(|problem| told.insert(*problem)).collect();
        Sliced { slice, problems, used_marks }
    }

    fn all_uses(&self) -> impl Iterator<Item = &Use> {
        // The order does not show: every user of this collects into a set.
        self.uses.values().flatten().chain(&self.output_uses)
    }

    fn used_marks(&self) -> BTreeSet<usize> {
        let mark = |used: &Use| match used.source {
            Source::Mark(mark) => Some(mark),
            Source::Output(..) | Source::Constant(..) => None,
        };
        self.all_uses().filter_map(mark).collect()
    }

    /// Every output must depend on an input.
    fn check_outputs(&mut self, events: &[EventId]) {
        let mut reached = Reached::default();
        for id in events {
            let event = self.event(*id);
            let uses = &self.uses[id];
            if uses.iter().any(|used| used.looked_at && reached.includes(used)) {
                reached.events.insert(*id);
                reached.roots.extend(event.writes.iter().map(|index| uses[*index].root));
            }
        }
        for (output, used) in self.execution.outputs.iter().zip(&self.output_uses) {
            if !reached.includes(used) {
                let problem = Problem::OutputUntraced { port: output.port };
                self.problems.insert((output.time, problem));
            }
        }
    }

    /// For each root the time of its last write.
    fn last_writes(&self, events: &[EventId]) -> HashMap<Root, Time> {
        let mut last = HashMap::new();
        for id in events {
            let event = self.event(*id);
            for index in &event.writes {
                last.insert(self.uses[id][*index].root, event.time);
            }
        }
        last
    }
}

/// What depends on inputs.
#[derive(Default)]
struct Reached {
    roots: HashSet<Root>,
    events: HashSet<EventId>,
}

impl Reached {
    fn includes(&self, used: &Use) -> bool {
        let root = match used.root {
            Root::Mark(_) => true,
            Root::Made(maker, _) => self.events.contains(&maker),
            Root::Base(..) => false,
        };
        let source =
            matches!(used.source, Source::Output(event, _) if self.events.contains(&event));
        root || source || self.roots.contains(&used.root)
    }
}

/// The state of the second pass.
struct Assembly<'a> {
    slicer: &'a Slicer<'a>,
    slice: Slice,
    last_writes: HashMap<Root, Time>,
    /// Storages that are written, and seen through several views or through one that shows a place
    /// twice.
    flat: HashSet<(StorageId, u32)>,
    inputs: HashMap<usize, usize>,
    constants: HashMap<(StorageId, u32, Option<ViewId>), usize>,
    outputs: HashMap<(EventId, usize), Operand>,
    views: HashMap<(Operand, ViewId), Operand>,
}

impl<'a> Assembly<'a> {
    fn new(slicer: &'a Slicer<'a>, events: &[EventId], used_marks: &BTreeSet<usize>) -> Self {
        let last_writes = slicer.last_writes(events);
        let mut seen_through: HashMap<(StorageId, u32), HashSet<ViewId>> = HashMap::new();
        for used in slicer.all_uses() {
            if let Source::Constant(storage, count) = used.source {
                seen_through.entry((storage, count)).or_default().insert(used.view);
            }
        }
        let flat = |(key, views): (&(StorageId, u32), &HashSet<ViewId>)| {
            let written = last_writes.contains_key(&Root::Base(key.0, key.1));
            let folded =
                |view: &ViewId| slicer.tape.memory.view(*view).geometry.may_overlap_itself();
            (written && (views.len() > 1 || views.iter().any(folded))).then_some(*key)
        };
        let flat = seen_through.iter().filter_map(flat).collect();
        let input = |mark: &usize| InputUse {
            port: slicer.execution.marks[*mark].port,
            written: last_writes.contains_key(&Root::Mark(*mark)),
        };
        let slice = Slice { inputs: used_marks.iter().map(input).collect(), ..Slice::default() };
        Self {
            slicer,
            slice,
            flat,
            inputs: used_marks.iter().enumerate().map(|(index, mark)| (*mark, index)).collect(),
            constants: HashMap::new(),
            outputs: HashMap::new(),
            views: HashMap::new(),
            last_writes,
        }
    }

    fn run(mut self, events: &[EventId]) -> Slice {
        let mut events = events.iter().map(|id| (*id, self.slicer.event(*id))).peekable();
        let marks = self.slicer.execution.outputs.iter().zip(&self.slicer.output_uses);
        for (output, used) in marks {
            while let Some((id, event)) = events.next_if(|(_, event)| event.time < output.time) {
                self.call(id, event);
            }
            let mut operand = self.operand(used, output.site);
            if self.is_written_after(used.root, output.time) {
                operand = self.push(Step::Copy { source: operand, site: output.site });
            }
            self.slice.outputs.push((output.port, operand));
        }
        for (id, event) in events {
            self.call(id, event);
        }
        self.slice
    }

    fn push(&mut self, step: Step) -> Operand {
        self.slice.steps.push(step);
        Operand::Step { step: self.slice.steps.len() - 1, output: 0 }
    }

    fn is_written_after(&self, root: Root, time: Time) -> bool {
        self.last_writes.get(&root).is_some_and(|last| *last > time)
    }

    fn call(&mut self, id: EventId, event: &Event) {
        let slicer = self.slicer;
        let uses = &slicer.uses[&id];
        let operands = uses.iter().map(|used| self.operand(used, event.site)).collect();
        let (op, site, literals) = (event.op, event.site, event.literals);
        self.push(Step::Call { event: id, op, site, literals, operands });
        let step = self.slice.steps.len() - 1;
        for (output, view) in event.outputs.iter().enumerate() {
            let mut operand = Operand::Step { step, output };
            if event.may_alias && self.must_not_alias(id, event, *view) {
                operand = self.push(Step::Copy { source: operand, site });
            }
            self.outputs.insert((id, output), operand);
        }
    }

    /// Whether a result that was memory of its own must stay so: with another layout the same call
    /// may give back memory of its argument, and a later write would show on both.
    fn must_not_alias(&self, id: EventId, event: &Event, output: ViewId) -> bool {
        let storage = self.slicer.tape.memory.storage_of(output);
        if event.reads_on(storage).next().is_some() {
            return false;
        }
        let made = Root::Made(id, storage);
        let mut roots = self.slicer.uses[&id].iter().map(|used| used.root).chain([made]);
        roots.any(|root| self.is_written_after(root, event.time))
    }

    fn operand(&mut self, used: &Use, site: SiteId) -> Operand {
        let slicer = self.slicer;
        let (base, base_view) = match used.source {
            Source::Mark(mark) => {
                (Operand::Input(self.inputs[&mark]), Some(slicer.execution.marks[mark].view))
            }
            Source::Output(event, output) => {
                let view = slicer.event(event).outputs[output];
                (self.outputs[&(event, output)], Some(view))
            }
            Source::Constant(storage, count) => {
                let view = (!self.flat.contains(&(storage, count))).then_some(used.view);
                (self.constant(storage, count, view, site), view)
            }
        };
        if base_view == Some(used.view) {
            return base;
        }
        self.view(base, base_view, used.view, site)
    }

    fn view(
        &mut self,
        base: Operand,
        base_view: Option<ViewId>,
        view: ViewId,
        site: SiteId,
    ) -> Operand {
        if let Some(known) = self.views.get(&(base, view)) {
            return *known;
        }
        let memory = &self.slicer.tape.memory;
        let base_geometry = base_view.map(|view| Box::new(memory.view(view).geometry.clone()));
        let geometry = Box::new(memory.view(view).geometry.clone());
        let made = self.push(Step::View { base, base_view, base_geometry, view, geometry, site });
        self.views.insert((base, view), made);
        made
    }

    fn constant(
        &mut self,
        storage: StorageId,
        count: u32,
        view: Option<ViewId>,
        site: SiteId,
    ) -> Operand {
        let root = Root::Base(storage, count);
        let memory = &self.slicer.tape.memory;
        let index = *self.constants.entry((storage, count, view)).or_insert_with(|| {
            self.slice.constants.push(Constant {
                storage,
                count,
                view,
                geometry: view.map(|view| memory.view(view).geometry.clone()),
                written: self.last_writes.contains_key(&root),
                read: self.slicer.looked_at.contains(&root),
                site,
            });
            self.slice.constants.len() - 1
        });
        Operand::Constant(index)
    }
}
