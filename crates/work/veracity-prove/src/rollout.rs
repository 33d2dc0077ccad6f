//! The whole bundle over time: the recorded episode through the runtime, tick by tick.
//!
//! Every value that was recorded is compared at every tick, at the borders of all nodes: that shows
//! wrong wiring, wrong delays, wrong initial values and a wrong order, which no node alone can show.
//! The bundle runs on its own outputs, so that errors add up as they will on a robot. Where there is
//! state, the beginning is run again at the end, twice: after a reset from the last tick and after
//! one from the first.

use std::ops::Range;

use veracity_compare::{MeasureOptions, measure, merge};
use veracity_diag::progress::Stage;
use veracity_diag::{Diagnostic, Place, Result, codes};
use veracity_results::{
    Basis, Divergence, ErrorOverTime, Measurement, Role, RolloutPort, RolloutProof, Tolerance,
    TolerancePart, TolerancePolicy, Verdict,
};
use veracity_runtime::{EngineProvider, InputId, RunOptions, Runner, Target, Watch};
use veracity_spec::{Bundle, Direction, PortRef, PortSpec, Spec};
use veracity_tensor::{Shape, TensorView};

use crate::episode::Episode;
use crate::judged::tolerance_of;
use crate::parts::measure_parts;
use crate::samples::Samples;

/// Bytes of outputs that are kept before they are compared: comparing many ticks at once costs
/// little more than copying them.
const CHUNK_BYTES: usize = 8 << 20;
/// Ticks that are compared at once.
const CHUNK_TICKS: usize = 1024;
/// Ticks of the beginning that are run again after a reset.
const REPEATED: usize = 16;
/// How far derived tolerances are stretched, at most, for errors that add up over time.
const MAX_STRETCH: usize = 100;

/// Runs the recorded episode through the bundle. What cannot be run is said, not refused.
pub fn roll_out(
    bundle: &Bundle,
    samples: &Samples,
    engines: &dyn EngineProvider,
    options: &RunOptions,
    policy: &TolerancePolicy,
) -> RolloutProof {
    let spec = bundle.spec();
    if spec.data_flow.is_empty() && spec.feedback_flow.is_empty() {
        let message = "nothing flows between nodes or ticks: each node alone is the whole";
        return not_run(None, vec![Diagnostic::warning(codes::ROLLOUT_NOT_RUN, message)]);
    }
    let not_comparable = |reasons| not_run(Some(Verdict::NotComparable), reasons);
    let episode = match Episode::new(bundle, samples) {
        Ok(episode) => episode,
        Err(reason) => return not_comparable(vec![*reason]),
    };
    let runner = match Runner::load(bundle, engines, options) {
        Ok(runner) => runner,
        Err(refusal) => return not_comparable(refusal.into_diagnostics()),
    };
    let mut rollout = Rollout::new(spec, &episode, runner, policy);
    let stopped = rollout.run().err().map(veracity_diag::Refusal::into_diagnostics);
    rollout.finish(stopped.unwrap_or_default())
}

/// The ticks that are run, each time from a reset on. Where there is state that a reset could put
/// back, the first tick and the beginning are run again.
pub(crate) fn runs(spec: &Spec, ticks: Range<usize>) -> Vec<Range<usize>> {
    if spec.feedback_flow.is_empty() {
        return vec![ticks];
    }
    let (start, end) = (ticks.start, ticks.end);
    vec![ticks, start..start + 1, start..end.min(start + REPEATED)]
}

fn not_run(verdict: Option<Verdict>, reasons: Vec<Diagnostic>) -> RolloutProof {
    RolloutProof { verdict, reasons, ..RolloutProof::default() }
}

/// The tolerance of a port over time. One that somebody gave holds as it is; one that was derived
/// from the rounding of a single step is stretched, because roundings add up.
pub(crate) fn over_time(policy: &TolerancePolicy, one_step: Tolerance, ticks: usize) -> Tolerance {
    if policy.basis == Basis::Given {
        return one_step;
    }
    let widest = (policy.basis == Basis::Scaled).then_some(policy.default);
    #[expect(clippy::cast_precision_loss, reason = "at most MAX_STRETCH")]
    let stretch = ticks.clamp(1, MAX_STRETCH) as f64;
    let (atol, rtol) = (one_step.atol() * stretch, one_step.rtol() * stretch);
    // Tolerances that were made finer than the defaults become no wider than these.
    let stretched = match widest {
        Some(widest) => Tolerance::new(
            atol.min(widest.atol().max(one_step.atol())),
            rtol.min(widest.rtol().max(one_step.rtol())),
        ),
        None => Tolerance::new(atol, rtol),
    };
    stretched.unwrap_or(one_step)
}

/// The tolerances of runs of elements of a port, over time.
pub(crate) fn parts_over_time(
    policy: &TolerancePolicy,
    port: &str,
    ticks: usize,
) -> Vec<TolerancePart> {
    let stretched = |part: &TolerancePart| TolerancePart {
        tolerance: over_time(policy, part.tolerance, ticks),
        ..*part
    };
    policy.parts_of(port).iter().map(stretched).collect()
}

/// One port that is compared at every tick.
struct Observed<'s> {
    port: PortRef,
    spec: &'s PortSpec,
    direction: Direction,
    role: Role,
    source: PortRef,
    tolerance: Tolerance,
    /// The tolerances of runs of its elements, where it has some.
    parts: Vec<TolerancePart>,
    watch: Watch,
    /// What the ticks of the running chunk gave.
    candidates: Vec<u8>,
    total: Option<Measurement>,
    first_divergence: Option<usize>,
    over_time: ErrorOverTime,
}

struct Rollout<'s> {
    spec: &'s Spec,
    episode: &'s Episode<'s>,
    runner: Runner,
    equal_nan: bool,
    observed: Vec<Observed<'s>>,
    /// The tick that the running chunk began with, and how many it holds.
    chunk: (usize, usize),
    chunk_ticks: usize,
    steps: usize,
    resets: usize,
}

impl<'s> Rollout<'s> {
    fn new(
        spec: &'s Spec,
        episode: &'s Episode<'s>,
        runner: Runner,
        policy: &TolerancePolicy,
    ) -> Self {
        let observed = observed(spec, episode, &runner, policy);
        let len = |one: &Observed<'_>| one.spec.shape.elements() * one.spec.dtype.size();
        let bytes_per_tick = observed.iter().map(len).sum::<usize>().max(1);
        Self {
            spec,
            episode,
            runner,
            equal_nan: policy.equal_nan,
            observed,
            chunk: (0, 0),
            chunk_ticks: (CHUNK_BYTES / bytes_per_tick).clamp(1, CHUNK_TICKS),
            steps: 0,
            resets: 0,
        }
    }

    fn run(&mut self) -> Result<()> {
        let runs = runs(self.spec, self.episode.ticks());
        let mut stage = Stage::new("ticks", runs.iter().map(Range::len).sum());
        runs.into_iter().try_for_each(|ticks| self.run_ticks(ticks, &mut stage))
    }

    /// Runs ticks from a reset on.
    fn run_ticks(&mut self, ticks: Range<usize>, stage: &mut Stage) -> Result<()> {
        self.runner.reset();
        self.resets += usize::from(self.steps > 0);
        if !self.episode.begins_at_the_start() {
            self.take_recorded_states(ticks.start)?;
        }
        self.chunk = (ticks.start, 0);
        for tick in ticks {
            self.set_back(tick)?;
            self.step(tick)
                .map_err(|refusal| refusal.within(&Place::node(format!("tick {tick}"))))?;
            if self.chunk.1 == self.chunk_ticks {
                self.compare_chunk()?;
            }
            stage.advance(1);
        }
        self.compare_chunk()
    }

    /// An episode that begins later begins with what was recorded there.
    fn take_recorded_states(&mut self, tick: usize) -> Result<()> {
        for edge in &self.spec.feedback_flow {
            self.write_recorded_state(&edge.target, tick)?;
        }
        Ok(())
    }

    fn write_recorded_state(&mut self, target: &PortRef, tick: usize) -> Result<()> {
        let Some(value) = self.episode.value(target, Direction::Input, tick) else { return Ok(()) };
        match self.runner.find_target(&target.to_string())? {
            Target::State(state) => self.runner.write_state(state, &value),
            Target::Input(_) => Ok(()),
        }
    }

    /// Does what the code did when it began anew in the middle of the recording.
    fn set_back(&mut self, tick: usize) -> Result<()> {
        let set_back = self.episode.set_back(tick);
        if set_back.is_empty() {
            return Ok(());
        }
        self.resets += 1;
        if set_back.len() == self.spec.feedback_flow.len() {
            self.runner.reset();
            return Ok(());
        }
        set_back.into_iter().try_for_each(|target| self.write_recorded_state(target, tick))
    }

    fn step(&mut self, tick: usize) -> Result<()> {
        for index in 0..self.runner.inputs().len() {
            let key = self.runner.inputs()[index].key.clone();
            let value = self.episode.value(&key, Direction::Input, tick);
            let value = value.expect("the episode has every input on every tick");
            let bytes = value.contiguous_bytes().unwrap_or_default();
            let dims = value.shape().dims();
            let input = InputId(index);
            self.runner.write_input(input, value.dtype(), dims, bytes)?;
        }
        self.runner.step()?;
        self.steps += 1;
        for one in &mut self.observed {
            one.candidates.extend_from_slice(self.runner.watched(one.watch)?);
        }
        self.chunk.1 += 1;
        Ok(())
    }

    fn compare_chunk(&mut self) -> Result<()> {
        let (start, count) = self.chunk;
        for one in &mut self.observed {
            one.compare(self.episode, start, count, self.equal_nan)?;
            one.candidates.clear();
        }
        self.chunk = (start + count, 0);
        Ok(())
    }

    fn finish(self, stopped: Vec<Diagnostic>) -> RolloutProof {
        let order = |port: &PortRef| self.spec.nodes.iter().position(|node| node.name == port.node);
        let first = self
            .observed
            .iter()
            .filter_map(|one| Some((one.first_divergence?, one)))
            .min_by_key(|(tick, one)| {
                (*tick, order(&one.port), one.direction == Direction::Output, one.port.clone())
            })
            .map(|(tick, one)| Divergence { tick, port: one.port.to_string(), role: one.role });
        let mut reasons = stopped;
        let failed = !reasons.is_empty();
        if let Some(first) = &first {
            reasons.push(diverges(first));
        }
        if !self.episode.begins_at_the_start() {
            let start = self.episode.ticks().start;
            let message = format!("begins at tick {start}: initial values were not checked");
            let hint = "record every node from the first step on";
            reasons.push(Diagnostic::warning(codes::START_UNCHECKED, message).hint(hint));
        }
        let equal_nan = self.equal_nan;
        let ports: Vec<RolloutPort> =
            self.observed.into_iter().filter_map(|one| one.finish(equal_nan)).collect();
        let worst = ports.iter().map(|port| port.verdict).max();
        let verdict =
            if failed { Verdict::Disproved } else { worst.unwrap_or(Verdict::NotComparable) };
        RolloutProof {
            verdict: Some(verdict),
            ticks: self.episode.ticks().len(),
            steps: self.steps,
            resets: self.resets,
            ports,
            first_divergence: first,
            reasons,
        }
    }
}

fn diverges(first: &Divergence) -> Diagnostic {
    let Divergence { tick, port, role } = first;
    let what = match role {
        Role::Output | Role::Inner => "the output",
        Role::Feedback => "the state that is read at",
        Role::Edge => "the value that is read at",
    };
    let message = format!("{what} `{port}` leaves the recorded episode at tick {tick}");
    let place = port.split_once('/').map_or_else(Place::default, |(n, p)| Place::port(n, p));
    Diagnostic::error(codes::ROLLOUT_DIVERGES, message).at(place)
}

/// Every port that was recorded and that the caller does not write.
fn observed<'s>(
    spec: &'s Spec,
    episode: &Episode<'s>,
    runner: &Runner,
    policy: &TolerancePolicy,
) -> Vec<Observed<'s>> {
    let ticks = episode.ticks();
    let mut observed = Vec::new();
    for node in &spec.nodes {
        for direction in [Direction::Input, Direction::Output] {
            for port_spec in node.ports(direction) {
                let port = PortRef::new(&node.name, &port_spec.name);
                let Some((role, source)) = role(spec, &port, direction) else { continue };
                let recorded = episode.value(&port, direction, ticks.start).is_some();
                let watch = runner.watch(&port.node, &port.port, direction);
                let (true, Some(watch)) = (recorded, watch) else { continue };
                let parts = parts_over_time(policy, &source.to_string(), ticks.len());
                let one_step = tolerance_of(policy, &source.to_string(), port_spec.dtype);
                observed.push(Observed {
                    port,
                    spec: port_spec,
                    direction,
                    role,
                    source,
                    tolerance: over_time(policy, one_step, ticks.len()),
                    parts,
                    watch,
                    candidates: Vec::new(),
                    total: None,
                    first_divergence: None,
                    over_time: ErrorOverTime::new(&ticks),
                });
            }
        }
    }
    observed
}

/// What a port is over time, and the output whose tolerance holds for it. `None` for inputs that
/// the caller writes.
pub(crate) fn role(spec: &Spec, port: &PortRef, direction: Direction) -> Option<(Role, PortRef)> {
    if direction == Direction::Output {
        let is_output = spec.pipeline_outputs.contains(port);
        return Some((if is_output { Role::Output } else { Role::Inner }, port.clone()));
    }
    let fed = |edges: &[veracity_spec::Edge], role: Role| {
        let edge = edges.iter().find(|edge| edge.target == *port)?;
        Some((role, edge.source.clone()))
    };
    fed(&spec.feedback_flow, Role::Feedback).or_else(|| fed(&spec.data_flow, Role::Edge))
}

impl Observed<'_> {
    fn compare(
        &mut self,
        episode: &Episode<'_>,
        start: usize,
        count: usize,
        equal_nan: bool,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let references = self.references(episode, start, count);
        let ticks = start..start + count;
        let mut measured = self.measure(&references, start, ticks.clone())?;
        if let Some(worst) = &mut measured.worst {
            worst.index[0] += start;
        }
        if let Some(index) = &mut measured.non_finite.first_mismatch {
            index[0] += start;
        }
        if self.first_divergence.is_none() && fails(&measured, equal_nan) {
            for tick in ticks.clone() {
                if fails(&self.measure(&references, start, tick..tick + 1)?, equal_nan) {
                    self.first_divergence = Some(tick);
                    break;
                }
            }
        }
        let is_equal = largest(&measured) == 0.0;
        for (piece, part) in self.over_time.cut(&ticks) {
            let error =
                if is_equal { 0.0 } else { largest(&self.measure(&references, start, part)?) };
            self.over_time.add(piece, error);
        }
        match &mut self.total {
            Some(total) => merge(total, &measured),
            None => self.total = Some(measured),
        }
        Ok(())
    }

    /// How far some ticks of a chunk, which begins at `start`, are from what was recorded.
    fn measure(&self, references: &[u8], start: usize, ticks: Range<usize>) -> Result<Measurement> {
        let PortSpec { dtype, shape, .. } = self.spec;
        let len = shape.elements() * dtype.size();
        let bytes = (ticks.start - start) * len..(ticks.end - start) * len;
        let dims = [&[ticks.len()], shape.dims()].concat();
        let shape = Shape::new(dims).expect("both tensors are in memory");
        let reference = TensorView::new(*dtype, &shape, &references[bytes.clone()])?;
        let candidate = TensorView::new(*dtype, &shape, &self.candidates[bytes])?;
        let options = MeasureOptions::new(self.tolerance).with_threads(1);
        let mut measured = measure(&reference, &candidate, &options)?;
        if !self.parts.is_empty()
            && measured.outside == 0
            && let Some(outside) = measure_parts(&reference, &candidate, &self.parts)?
        {
            outside.write_into(&mut measured);
        }
        Ok(measured)
    }

    /// The recorded values of a chunk, one after the other.
    fn references(&self, episode: &Episode<'_>, start: usize, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.candidates.len());
        for tick in start..start + count {
            let value = episode.value(&self.port, self.direction, tick);
            let value = value.expect("what was recorded on the first tick was recorded on all");
            bytes.extend_from_slice(value.contiguous_bytes().unwrap_or_default());
        }
        bytes
    }

    fn finish(self, equal_nan: bool) -> Option<RolloutPort> {
        let measurement = self.total?;
        let failed = fails(&measurement, equal_nan);
        Some(RolloutPort {
            port: self.port.to_string(),
            role: self.role,
            source: self.source.to_string(),
            verdict: if failed { Verdict::Disproved } else { Verdict::Proved },
            tolerance: self.tolerance,
            measurement,
            first_divergence: self.first_divergence,
            over_time: self.over_time,
        })
    }
}

/// The largest error, infinite where a value is finite on one side only.
fn largest(measured: &Measurement) -> f64 {
    if measured.non_finite.mismatching > 0 { f64::INFINITY } else { measured.max_abs }
}

fn fails(measured: &Measurement, equal_nan: bool) -> bool {
    let judged = veracity_compare::judge(measured, measured.tolerance, equal_nan);
    judged != veracity_compare::Judgement::Proved
}
