//! Jobs that run one side on several sets of values: put into one model that is run once a row.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use veracity_onnx::Node;
use veracity_tensor::Tensor;

use super::constants::Constants;
use super::merged::{Merged, made_name};
use super::run::{Failure, Job, Values};
use super::window::Side;

/// Jobs in columns of the same length. Those of a column run the same side and are given values of
/// the same types and shapes; those of a row are run at once.
pub(super) struct Columns<'j, 'w> {
    jobs: &'j [Job<'w>],
    /// Jobs by their place among all.
    by_side: Vec<Vec<usize>>,
    /// The sets of values that columns are given, row by row; each sequence once.
    sequences: Vec<Vec<usize>>,
    values: HashMap<usize, &'w Values>,
}

impl<'j, 'w> Columns<'j, 'w> {
    /// Puts jobs into columns, those of the same length together.
    pub(super) fn of(jobs: &'j [Job<'w>]) -> Vec<Self> {
        let values: HashMap<usize, &'w Values> = jobs.iter().map(|job| job.values).collect();
        let mut by_length: BTreeMap<usize, Vec<Vec<usize>>> = BTreeMap::new();
        for column in columns(jobs) {
            by_length.entry(column.len()).or_default().push(column);
        }
        let of_length = |columns: Vec<Vec<usize>>| {
            let mut sequences: Vec<Vec<usize>> =
                columns.iter().map(|column| sets_of(jobs, column)).collect();
            sequences.sort_unstable();
            sequences.dedup();
            Self { jobs, by_side: columns, sequences, values: values.clone() }
        };
        by_length.into_values().map(of_length).collect()
    }

    /// How often the model is run.
    pub(super) fn rows(&self) -> usize {
        self.by_side.first().map_or(0, Vec::len)
    }

    /// The jobs, column by column.
    pub(super) fn order(&self) -> impl Iterator<Item = usize> {
        self.by_side.iter().flatten().copied()
    }

    /// The model, with the values of the first row.
    pub(super) fn merged(&self, constants: &mut Constants) -> Result<Merged<'w>, Failure> {
        let mut merged = Merged::default();
        for (number, column) in self.by_side.iter().enumerate() {
            let sets = sets_of(self.jobs, column);
            let set = self.sequences.binary_search(&sets).ok().ok_or_else(Failure::lost)?;
            let mut wanted: Vec<&str> =
                column.iter().flat_map(|at| self.jobs[*at].wanted).copied().collect();
            wanted.sort_unstable();
            wanted.dedup();
            let Job { side, values: (_, values), .. } = self.jobs[column[0]];
            merged.add(number, side, &wanted, (set, values), constants)?;
        }
        Ok(merged)
    }

    /// What a row is given; `None` when a value is not there.
    pub(super) fn inputs<'v>(
        &self,
        merged: &'v Merged<'w>,
        row: usize,
    ) -> Option<Vec<(&'v str, &'v Tensor)>>
    where
        'w: 'v,
    {
        merged.inputs_of(|set| self.values.get(&self.sequences[set][row]).copied())
    }

    /// What a row is asked for, column by column.
    pub(super) fn outputs(&self, row: usize) -> Vec<String> {
        let jobs = self.by_side.iter().map(|column| &self.jobs[column[row]]);
        let names = jobs
            .enumerate()
            .flat_map(|(number, job)| job.wanted.iter().map(move |name| made_name(number, name)));
        names.collect()
    }

    /// What the rows gave, job by job in their [order](Self::order); `None` when something is no
    /// tensor.
    pub(super) fn by_job(&self, rows: Vec<Vec<Option<Tensor>>>) -> Option<Vec<Vec<Tensor>>> {
        let mut rows: Vec<_> = rows.into_iter().map(Vec::into_iter).collect();
        let mut found = Vec::new();
        for column in &self.by_side {
            for (at, row) in column.iter().zip(&mut rows) {
                let wanted = self.jobs[*at].wanted.iter();
                found.push(wanted.map(|_| row.next()?).collect::<Option<_>>()?);
            }
        }
        Some(found)
    }
}

fn columns(jobs: &[Job<'_>]) -> Vec<Vec<usize>> {
    let mut columns: Vec<Vec<usize>> = Vec::new();
    let mut of_side: HashMap<*const Side, Vec<usize>> = HashMap::new();
    for (at, job) in jobs.iter().enumerate() {
        let known = of_side.entry(std::ptr::from_ref(job.side)).or_default();
        let same = known.iter().find(|column| is_shaped_like(job, &jobs[columns[**column][0]]));
        if let Some(column) = same {
            columns[*column].push(at);
        } else {
            known.push(columns.len());
            columns.push(vec![at]);
        }
    }
    columns
}

fn sets_of(jobs: &[Job<'_>], column: &[usize]) -> Vec<usize> {
    column.iter().map(|at| jobs[*at].values.0).collect()
}

/// Whether two jobs of one side are given values of the same types and shapes.
fn is_shaped_like(one: &Job<'_>, other: &Job<'_>) -> bool {
    let kind = |tensor: &Arc<Tensor>| (tensor.dtype(), tensor.shape().clone());
    let kind_in = |job: &Job<'_>, name: &str| job.values.1.get(name).map(kind);
    let mut reads = one.side.nodes.iter().flat_map(Node::reads);
    reads.all(|name| kind_in(one, &name) == kind_in(other, &name))
}

#[cfg(test)]
mod tests {
    use veracity_onnx::{Graph, GraphBuilder};
    use veracity_tensor::{DType, Shape};

    use super::*;

    #[test]
    fn one_side_on_values_of_one_shape_is_one_column() {
        let graph = GraphBuilder::new("g", 20)
            .input("x", DType::F32, [2_usize])
            .node(Node::new("Relu", ["x"], ["y"]))
            .output("y", DType::F32, [2_usize])
            .finish()
            .unwrap();
        let graph = Graph::new(graph).unwrap();
        let (one, two) = (Side::whole(&graph), Side::whole(&graph));
        let given = |size: usize| {
            let tensor = Arc::new(Tensor::zeros(DType::F32, Shape::from([size])));
            Values::from([("x".to_owned(), tensor)])
        };
        let sets = [given(2), given(2), given(3)];
        let job = |side, set: usize| Job { side, wanted: &["y"], values: (set, &sets[set]) };
        let jobs = [job(&one, 0), job(&two, 0), job(&one, 1), job(&one, 2), job(&two, 1)];
        let found: Vec<(usize, Vec<usize>)> =
            Columns::of(&jobs).iter().map(|all| (all.rows(), all.order().collect())).collect();
        assert_eq!(found, [(1, vec![3]), (2, vec![0, 2, 1, 4])]);
    }
}
