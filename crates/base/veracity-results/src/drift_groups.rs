//! A drift report summed up: by module, by source line, by operator, and what was looked at.

use std::collections::HashMap;

use crate::{DriftElement, DriftReport, DriftRow, ErrorFigures, ProgramStatus, Verdict};

/// Levels of modules that are told apart: paths come from files, and every level is a group.
const MAX_DEPTH: usize = 32;

impl ErrorFigures {
    /// The largest error; infinite where one side has a NaN or an infinity that the other has not.
    pub fn largest(&self) -> f64 {
        if self.mismatching > 0 || self.max_abs.is_nan() { f64::INFINITY } else { self.max_abs }
    }
}

/// The part of its budget by which the error of most elements may point one way.
const ONE_WAY: f64 = 0.125;

impl DriftElement {
    /// Its error as a part of its budget.
    pub fn strain(&self) -> f64 {
        let error = (self.candidate - self.reference).abs();
        if error > 0.0 { error / self.budget } else { 0.0 }
    }
}

impl DriftRow {
    /// Introduced error as a part of the budget, at the element that takes the most of its own: above
    /// 1 is too much. So is error that points one way by an eighth of the budget: roundings do not.
    /// Infinite where the numbers do not decide.
    pub fn strain(&self) -> f64 {
        let error = self.introduced.largest();
        match &self.element {
            _ if self.problem.is_some() || error.is_infinite() => f64::INFINITY,
            Some(element) => element.strain().max(self.bias.abs() / ONE_WAY),
            None if error > 0.0 => error / self.budget,
            None => 0.0,
        }
    }
}

/// Rows with something in common.
#[derive(Clone, Debug, PartialEq)]
pub struct DriftGroup<'r> {
    /// What they have in common; empty for what is not known.
    pub name: &'r str,
    /// How many.
    pub rows: usize,
    /// How many of them are disproved.
    pub disproved: usize,
    /// How many of them are not comparable.
    pub not_comparable: usize,
    /// The largest introduced error.
    pub introduced: f64,
    /// The largest accumulated error.
    pub accumulated: f64,
    /// The largest part of a budget that one of them takes.
    pub strain: f64,
}

/// A module with everything inside of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModuleGroup<'r> {
    /// How many modules are around it.
    pub depth: usize,
    /// Its rows and those of the modules inside of it.
    pub group: DriftGroup<'r>,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriftCounts {
    /// Rows that are proved.
    pub proved: usize,
    /// Rows that are disproved.
    pub disproved: usize,
    /// Rows that are not comparable.
    pub not_comparable: usize,
    /// Values of the export that are computed for a compared one.
    pub parts: usize,
    /// Values of the export that were not looked at.
    pub not_mapped: usize,
    /// Tensors of the original's program.
    pub program: usize,
    /// Those that are proved themselves.
    pub program_proved: usize,
    /// Those that went into proved values only.
    pub program_folded: usize,
    /// Those that nothing compared depends on.
    pub program_not_mapped: usize,
}

impl DriftCounts {
    /// Values of the export.
    pub fn values(&self) -> usize {
        self.compared() + self.parts + self.not_mapped
    }

    /// Values of the export with a row.
    pub fn compared(&self) -> usize {
        self.proved + self.disproved + self.not_comparable
    }
}

impl DriftReport {
    /// Sums up by the path of the module, in the order in which they are first seen.
    pub fn by_module(&self) -> Vec<DriftGroup<'_>> {
        grouped(self.rows.iter().map(|row| (row.module.as_str(), row)))
    }

    /// Sums up by the line of the original.
    pub fn by_source(&self) -> Vec<DriftGroup<'_>> {
        grouped(self.rows.iter().map(|row| (row.source.as_str(), row)))
    }

    /// Sums up by the operator of the export.
    pub fn by_op_type(&self) -> Vec<DriftGroup<'_>> {
        grouped(self.rows.iter().map(|row| (row.op_type.as_str(), row)))
    }

    /// Modules with everything inside of them, each before what is inside of it.
    pub fn module_tree(&self) -> Vec<ModuleGroup<'_>> {
        let inside = self.rows.iter().flat_map(|row| around(&row.module).map(move |at| (at, row)));
        let mut groups = grouped(inside);
        // Modules stay together although values of the ones around them may come in between.
        let seen: HashMap<&str, usize> =
            groups.iter().enumerate().map(|(index, group)| (group.name, index)).collect();
        let order = |name: &str| -> Vec<usize> { around(name).map(|at| seen[at]).collect() };
        groups.sort_by_cached_key(|group| order(group.name));
        let depth = |name: &str| name.matches('.').count();
        groups.into_iter().map(|group| ModuleGroup { depth: depth(group.name), group }).collect()
    }

    /// What was looked at.
    pub fn counts(&self) -> DriftCounts {
        let rows = |verdict| self.rows.iter().filter(|row| row.verdict == verdict).count();
        let program = |status| self.program.iter().filter(|value| value.status == status).count();
        let verdicts: HashMap<&str, Verdict> =
            self.rows.iter().map(|row| (row.name.as_str(), row.verdict)).collect();
        let proved = |name: &String| verdicts.get(name.as_str()) == Some(&Verdict::Proved);
        let folded = self
            .program
            .iter()
            .filter(|value| value.status == ProgramStatus::Folded && value.into.iter().all(proved));
        let parts = self.unmapped.iter().filter(|value| value.part_of.is_some()).count();
        DriftCounts {
            proved: rows(Verdict::Proved),
            disproved: rows(Verdict::Disproved),
            not_comparable: rows(Verdict::NotComparable),
            parts,
            not_mapped: self.unmapped.len() - parts,
            program: self.program.len(),
            program_proved: program(ProgramStatus::Proved),
            program_folded: folded.count(),
            program_not_mapped: program(ProgramStatus::NotMapped),
        }
    }
}

/// A module's path and the paths of those around it, outermost first. What belongs to no module is
/// in the one without a path; what is too deep is in the deepest that is told apart.
fn around(path: &str) -> impl Iterator<Item = &str> {
    let dots = path.match_indices('.').map(|(at, _)| &path[..at]);
    dots.chain(std::iter::once(path)).take(MAX_DEPTH)
}

fn grouped<'r>(rows: impl Iterator<Item = (&'r str, &'r DriftRow)>) -> Vec<DriftGroup<'r>> {
    let mut groups: Vec<DriftGroup<'r>> = Vec::new();
    let mut index: HashMap<&str, usize> = HashMap::new();
    for (name, row) in rows {
        let at = *index.entry(name).or_insert_with(|| {
            groups.push(DriftGroup::empty(name));
            groups.len() - 1
        });
        groups[at].add(row);
    }
    groups
}

impl<'r> DriftGroup<'r> {
    fn empty(name: &'r str) -> Self {
        let [introduced, accumulated, strain] = [0.0; 3];
        let [rows, disproved, not_comparable] = [0; 3];
        Self { name, rows, disproved, not_comparable, introduced, accumulated, strain }
    }

    fn add(&mut self, row: &DriftRow) {
        self.rows += 1;
        self.disproved += usize::from(row.verdict == Verdict::Disproved);
        self.not_comparable += usize::from(row.verdict == Verdict::NotComparable);
        self.introduced = self.introduced.max(row.introduced.largest());
        self.accumulated = self.accumulated.max(row.accumulated.largest());
        self.strain = self.strain.max(row.strain());
    }
}
