//! Compares two of anything that is an ONNX model: two files, two engines, two levels of
//! optimisation, two types.
//!
//! [`drift_models`] reads both sides, makes the inputs and compares operator by operator. A level
//! of optimisation is looked at as the graph that the engine itself makes at that level: it is
//! written by the engine, read again and run as it stands, so that looking at its values does not
//! change what is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use veracity_diag::{Diagnostic, Place, Refusal, Reporter, Result, codes, nearest};
pub use veracity_drift::Pursuit;
pub use veracity_drift::{Allowance, Rule, Rules, read_report, worse_than};
use veracity_drift::{DriftOptions, Inputs, Screening, Side, Suspicion, domain, pair, screen};
use veracity_engine::{
    Engine, ModelBytes, ModelFormat, ModelSource, OptimizationLevel, SessionOptions,
};
use veracity_onnx::{Dim, Model, ValueInfo};
use veracity_results::{Cause, CauseKind, DriftReport, Verdict};
use veracity_runtime::{EngineProvider, mock_tensor};
use veracity_tensor::{Shape, Tensor, file};

/// Most elements of an input that is made up: a size that was mistyped must not eat the memory.
const MAX_DRAWN_ELEMENTS: usize = 1 << 28;

/// One side of a comparison.
#[derive(Clone, Copy)]
pub struct ModelChoice<'a> {
    /// The ONNX file; its weights may lie beside it.
    pub path: &'a Path,
    /// Where its engine comes from.
    pub engines: &'a dyn EngineProvider,
    /// The level at which the engine optimises it.
    pub level: OptimizationLevel,
}

/// What both models are given.
#[derive(Clone, Debug)]
pub enum Feed {
    /// Tensors of a file, by the names of the reference's inputs.
    File(PathBuf),
    /// Made-up values.
    Drawn {
        /// They depend on this number alone.
        seed: u64,
        /// Sizes of axes that have a name; 1 for the others.
        dims: BTreeMap<String, usize>,
    },
}

/// Compares two models, operator by operator. What is said about them in `options` is replaced.
/// Where the sides run on two engines, the reference's is the other one that `pursuit` tries.
pub fn drift_models(
    reference: &ModelChoice<'_>,
    candidate: &ModelChoice<'_>,
    feed: &Feed,
    options: &DriftOptions,
    pursuit: &Pursuit<'_>,
) -> Result<DriftReport> {
    let there = Opened::new(reference, &options.session)?;
    let here = Opened::new(candidate, &options.session)?;
    let (mut sets, note) = inputs(&there.model, &here.model, feed)?;
    let options = DriftOptions {
        model: file_name(candidate.path),
        reference: there.said(reference),
        candidate: here.said(candidate),
        ..options.clone()
    };
    let one_engine = there.engine.name() == here.engine.name();
    let second = if one_engine { pursuit.second } else { Some(there.engine.as_ref()) };
    let pursuit = Pursuit { second, ..*pursuit };
    let sides = [&there, &here].map(|opened| opened.side(&options.session));
    let (screened, found) = screened(&sides, feed);
    sets.extend(found);
    let mut report = on_sets(&sides, &sets, &options, &pursuit)?;
    let same = is_same(reference, candidate) && one_engine;
    let repeated = "both sides are the same file on the same engine at the same level: this only \
                    says that it repeats itself";
    let repeated = same.then(|| repeated.to_owned());
    let notes = repeated.into_iter().chain(note).chain(screened).chain(here.survivors(candidate));
    report.notes.splice(0..0, notes);
    say_layouts(&mut report);
    let rewritten =
        is_same_file(reference, candidate) && reference.level == OptimizationLevel::None;
    for cause in report.rows.iter_mut().filter_map(|row| row.cause.as_mut()) {
        if rewritten && candidate.level != OptimizationLevel::None {
            blame_optimisation(cause, candidate.level);
        }
        if !one_engine && cause.kind == CauseKind::OpImplementation {
            cause.detail += "; the reference was computed by that engine, so this does not say which \
                             of the two is right";
        }
    }
    Ok(report)
}

/// What differs from the same file without optimisation was made by the optimisation.
fn blame_optimisation(cause: &mut Cause, level: OptimizationLevel) {
    let kinds =
        [CauseKind::OperatorMismatch, CauseKind::AttributeMismatch, CauseKind::WeightBitMismatch];
    if kinds.contains(&cause.kind) {
        cause.kind = CauseKind::Fusion;
        cause.detail = format!("made at optimisation level {level}: {}", cause.detail);
    }
}

/// Whether two choices differ in nothing but, perhaps, their engines.
fn is_same(left: &ModelChoice<'_>, right: &ModelChoice<'_>) -> bool {
    is_same_file(left, right) && left.level == right.level
}

fn is_same_file(left: &ModelChoice<'_>, right: &ModelChoice<'_>) -> bool {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    real(left.path) == real(right.path)
}

/// A model that was read, and the graph that is run.
struct Opened {
    model: Model,
    run: Model,
    engine: Arc<dyn Engine>,
    place: Place,
}

impl Opened {
    fn new(choice: &ModelChoice<'_>, session: &SessionOptions) -> Result<Self> {
        let model = Model::read_whole(choice.path)?.in_order();
        let engine = choice.engines.engine_for(ModelFormat::Onnx)?;
        let run = match choice.level {
            OptimizationLevel::None => model.clone(),
            level => optimized(&model, engine.as_ref(), session, level)
                .map_err(|refusal| refusal.within(&place(choice.path)))?,
        };
        Ok(Self { model, run, engine, place: place(choice.path) })
    }

    fn side<'s>(&'s self, session: &'s SessionOptions) -> Side<'s> {
        Side { model: &self.run, engine: self.engine.as_ref(), session, place: &self.place }
    }

    /// `a.onnx on ort 1.31.1, optimised at level extended`
    fn said(&self, choice: &ModelChoice<'_>) -> String {
        let (name, engine) = (file_name(choice.path), &self.engine);
        let said = format!("{name} on {} {}", engine.name(), engine.version());
        match choice.level {
            OptimizationLevel::None => said,
            level => format!("{said}, optimised at level {level}"),
        }
    }

    /// How many values are left of a graph that was optimised.
    fn survivors(&self, choice: &ModelChoice<'_>) -> Option<String> {
        let level = Some(choice.level).filter(|&level| level != OptimizationLevel::None)?;
        let values = |model: &Model| -> BTreeSet<String> {
            let nodes = model.nodes().into_iter().filter(|node| node.op_type != "Constant");
            nodes.flat_map(|node| node.outputs).filter(|name| !name.is_empty()).collect()
        };
        let (before, after) = (values(&self.model), values(&self.run));
        let (left, all, new) =
            (before.intersection(&after).count(), before.len(), after.difference(&before).count());
        Some(format!(
            "optimised at level {level}, {left} of {all} values are left by their names, {new} are new"
        ))
    }
}

/// The graph that an engine makes of a model.
fn optimized(
    model: &Model,
    engine: &dyn Engine,
    session: &SessionOptions,
    level: OptimizationLevel,
) -> Result<Model> {
    let bytes = ModelBytes::Memory(Arc::from(model.to_bytes()?));
    let source = ModelSource { format: ModelFormat::Onnx, bytes };
    let options = SessionOptions { optimization: level, ..session.clone() };
    Ok(Model::from_bytes(engine.optimized(&source, &options, &[])?.into())?.in_order())
}

/// Says of values in a layout of the engine's own why nothing can be held against them.
fn say_layouts(report: &mut DriftReport) {
    for value in &mut report.unmapped {
        if value.op_type.starts_with("com.microsoft.nchwc::") && value.reason.is_none() {
            let reason = "its channels are in blocks, a layout of ONNX Runtime's own";
            value.reason = Some(reason.to_owned());
        }
    }
}

/// Compares on the first set; on the others until one shows a fault, which is then told. What cannot
/// be run or compared on those says nothing: they are made up.
fn on_sets(
    sides: &[Side<'_>; 2],
    sets: &[Set],
    options: &DriftOptions,
    pursuit: &Pursuit<'_>,
) -> Result<DriftReport> {
    let mut report = pair(&sides[0], &sides[1], &sets[0].inputs, options, pursuit)?;
    for set in &sets[1..] {
        if report.verdict == Verdict::Disproved {
            break;
        }
        match pair(&sides[0], &sides[1], &set.inputs, options, pursuit) {
            Ok(mut found) if found.verdict == Verdict::Disproved => {
                found.notes.insert(0, format!("found on made-up inputs: {}", set.said));
                report = found;
            }
            Ok(_) => {}
            Err(_) => {
                report.notes.push(format!("could not be run on made-up inputs: {}", set.said));
            }
        }
    }
    Ok(report)
}

/// Made-up inputs on which the models part as a whole. Values of a file are all that is asked about.
/// How many were tried is not said: that depends on the machine.
fn screened(sides: &[Side<'_>; 2], feed: &Feed) -> (Option<String>, Vec<Set>) {
    let Feed::Drawn { seed, dims } = feed else { return (None, Vec::new()) };
    let Screening { tried, found } = screen(&sides[0], &sides[1], dims, *seed);
    let note = "the outputs alone were compared on further made-up inputs of many kinds".to_owned();
    let sets = found.into_iter().map(|Suspicion { inputs, said }| Set { inputs, said });
    (Some(note).filter(|_| tried > 0), sets.collect())
}

/// Inputs, and what is said about them.
struct Set {
    inputs: Inputs,
    said: String,
}

fn inputs(model: &Model, other: &Model, feed: &Feed) -> Result<(Vec<Set>, Option<String>)> {
    match feed {
        Feed::File(path) => {
            let inputs = read_inputs(model, path)?;
            Ok((vec![Set { inputs, said: String::new() }], None))
        }
        Feed::Drawn { seed, dims } => drawn(model, other, *seed, dims),
    }
}

/// Tensors for the inputs of a model, from a file. Refused when they do not fit them.
pub fn read_inputs(model: &Model, path: &Path) -> Result<BTreeMap<String, Tensor>> {
    from_file(model, path).map_err(|refusal| refusal.within(&place(path)))
}

/// Tensors of a file. A file of one nameless tensor is for a model of one input.
fn from_file(model: &Model, path: &Path) -> Result<Inputs> {
    let infos = model.inputs();
    let mut tensors: Inputs = file::read(path)?.into_iter().collect();
    let is_npy = path.extension().is_some_and(|ending| ending == "npy");
    if let ([info], true) = (&infos[..], is_npy)
        && let Some((_, tensor)) = tensors.pop_first()
    {
        tensors.insert(info.name.clone(), tensor);
    }
    let mut reporter = Reporter::new();
    for name in tensors.keys().filter(|name| !infos.iter().any(|info| info.name == **name)) {
        let found = Diagnostic::error(codes::INPUT_UNKNOWN, format!("no input is called {name:?}"));
        let names: Vec<&str> = infos.iter().map(|info| info.name.as_str()).collect();
        reporter.report(match nearest(name, names.iter().copied()) {
            Some(meant) => found.hint(format!("did you mean {meant:?}?")),
            None => found.hint(format!("the inputs are {}", names.join(", "))),
        });
    }
    for info in &infos {
        reporter.absorb(check(info, tensors.get(&info.name)));
    }
    reporter.finish()?;
    Ok(tensors)
}

fn check(info: &ValueInfo, tensor: Option<&Tensor>) -> Result<()> {
    let name = &info.name;
    let refuse = |code, message: String| -> Result<()> {
        Err(Refusal::from(Diagnostic::error(code, message)))
    };
    let Some(tensor) = tensor else {
        return refuse(codes::INPUT_MISSING, format!("input {name:?}, {info}, was not given"));
    };
    let (dims, is) = (tensor.shape().dims(), tensor.dtype());
    if info.dtype.is_some_and(|dtype| dtype != is) {
        return refuse(codes::INPUT_DTYPE, format!("input {name:?} is {info}, got {is}"));
    }
    let fits = info.dims.as_ref().is_none_or(|declared| {
        declared.len() == dims.len() && declared.iter().zip(dims).all(|(dim, &is)| dim.admits(is))
    });
    if fits {
        return Ok(());
    }
    refuse(codes::INPUT_SHAPE, format!("input {name:?} is {info}, got shape {}", tensor.shape()))
}

/// Made-up values for every input, and what is to be known about them.
fn drawn(
    model: &Model,
    other: &Model,
    seed: u64,
    sizes: &BTreeMap<String, usize>,
) -> Result<(Vec<Set>, Option<String>)> {
    let infos = model.inputs();
    let named: BTreeSet<&str> = infos
        .iter()
        .flat_map(|info| info.dims.iter().flatten())
        .filter_map(|dim| match dim {
            Dim::Named(name) => Some(name.as_str()),
            _ => None,
        })
        .collect();
    if let Some(unknown) = sizes.keys().find(|name| !named.contains(name.as_str())) {
        return Err(unknown_dim(unknown, &named));
    }
    let ranges = domain::ranges(model);
    let mut sets: Vec<Set> = Vec::new();
    for (number, &width) in widths(model, other).iter().enumerate() {
        let mut inputs = Inputs::new();
        for (index, info) in infos.iter().enumerate() {
            let seed = seed.wrapping_mul(0x1_0000).wrapping_add((number * 0x100 + index) as u64);
            let range = ranges.get(&info.name).copied();
            inputs.insert(info.name.clone(), draw(info, range, width, seed, sizes)?);
        }
        let said = format!("floats of width {width}, indices over their range, masks both ways");
        sets.push(Set { inputs, said });
    }
    let sizes: Vec<String> = named
        .iter()
        .map(|name| format!("{name} = {}", sizes.get(*name).copied().unwrap_or(1)))
        .collect();
    let sizes = if sizes.is_empty() { String::new() } else { format!("; {}", sizes.join(", ")) };
    let more = if sets.len() > 1 { " and wider" } else { "" };
    let note = format!(
        "inputs were drawn with seed {seed}: floats from a normal distribution{more}, indices over \
         their whole range, bools 0 and 1{sizes}"
    );
    Ok((sets, Some(note).filter(|_| !infos.is_empty())))
}

/// Widths of the floats of each set; the last reaches every corner of the graph. Where nothing clips, rounds or chooses and no input is an index or
/// a mask, one set shows what others would; in half precision and int8 wide ones overflow.
fn widths(model: &Model, other: &Model) -> Vec<f64> {
    let is_whole = |info: &ValueInfo| info.dtype.is_some_and(|dtype| !dtype.is_float());
    let has_more = domain::has_corners(model)
        || domain::has_corners(other)
        || model.inputs().iter().any(is_whole);
    match (has_more, domain::is_narrow(model) || domain::is_narrow(other)) {
        (false, _) => vec![1.0],
        (true, true) => vec![1.0, 1.0],
        (true, false) => {
            let reach = domain::reach(model).max(domain::reach(other));
            vec![1.0, 8.0, (2.0 * reach).max(64.0)]
        }
    }
}

fn draw(
    info: &ValueInfo,
    range: Option<(i64, i64)>,
    width: f64,
    seed: u64,
    sizes: &BTreeMap<String, usize>,
) -> Result<Tensor> {
    let size = |dim: &Dim| match dim {
        Dim::Fixed(size) => *size,
        Dim::Named(name) => sizes.get(name).copied().unwrap_or(1),
        Dim::Unknown => 1,
    };
    let dims = info.dims.as_ref().map(|dims| dims.iter().map(size).collect::<Vec<usize>>());
    if let (Some(dtype), Some(shape)) = (info.dtype, dims.and_then(Shape::new))
        && shape.elements() <= MAX_DRAWN_ELEMENTS
    {
        // The first set is that of every other command that makes up floats.
        return Ok(if dtype.is_float() && width <= 1.0 {
            mock_tensor(dtype, &shape, seed)
        } else {
            domain::draw(dtype, &shape, range, width, seed)
        });
    }
    let message = format!("values for input {:?}, {info}, cannot be made up", info.name);
    let found = Diagnostic::error(codes::INPUT_MISSING, message);
    Err(found.hint("give them with `--inputs FILE`").into())
}

fn unknown_dim(unknown: &str, named: &BTreeSet<&str>) -> Refusal {
    let message = format!("no axis of an input is called {unknown:?}");
    let found = Diagnostic::error(codes::DIM_UNKNOWN, message);
    let all: Vec<&str> = named.iter().copied().collect();
    match nearest(unknown, all.iter().copied()) {
        Some(meant) => found.hint(format!("did you mean {meant:?}?")).into(),
        None if all.is_empty() => found.hint("every axis has a fixed size").into(),
        None => found.hint(format!("the names are {}", all.join(", "))).into(),
    }
}

fn place(path: &Path) -> Place {
    Place::file(path.display().to_string())
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_optimised_graph_has_of_its_own_is_the_optimisations_doing() {
        for (kind, expected) in [
            (CauseKind::OperatorMismatch, CauseKind::Fusion),
            (CauseKind::WeightBitMismatch, CauseKind::Fusion),
            (CauseKind::AttributeMismatch, CauseKind::Fusion),
            (CauseKind::OpImplementation, CauseKind::OpImplementation),
            (CauseKind::Unknown, CauseKind::Unknown),
        ] {
            let mut cause = Cause { kind, detail: "seen".to_owned(), ruled_out: Vec::new() };
            blame_optimisation(&mut cause, OptimizationLevel::Extended);
            assert_eq!(cause.kind, expected);
            assert!(cause.detail.ends_with("seen"));
        }
    }
}
