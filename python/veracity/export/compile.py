"""From a recording to a bundle: wire, export, check, write, run, tell.

The models are made in a folder of their own and checked there. The bundle is put together beside
its place, run over time as the recording was, and gets the proof of all this; then it takes its
place in one step. A failure on the way leaves what was there before. A bundle that does not pass
is written all the same, so that one can look at it, and then refused when `strict`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from veracity import _native
from veracity._places import user_line
from veracity.errors import Diagnostic, VeracityError, error_from_diagnostics, refuse
from veracity.export import adequacy, describe, evidence, fresh, loading, policy, trial, validate
from veracity.export.adequacy import Faults
from veracity.export.fresh import Fresh, Run
from veracity.export.log import FILE_NAME, ExportLog
from veracity.export.models import Made, describe_only, make_models
from veracity.export.policy import Asked, Policy
from veracity.export.transforming import transform_models
from veracity.export.validate import Prover
from veracity.export.wiring import Wiring, wire
from veracity.inference import site_packages
from veracity.parity import ParityResult
from veracity.progress import Progress
from veracity.proof import HOLDS, ProofResult
from veracity.semantics import GraphConfigs
from veracity.tracing.nodes import Node, Recording
from veracity.transform import Pipeline, TransformResult


class CompileResult(dict[str, bool]):
    """For each node whether its model computes what was recorded: right on everything compared.

    A node without model is `True`, as LEAPP has it, and one of the `diagnostics` says that it was
    not checked. A node whose verdict rests on assumptions is `True`, too: `verdict` and
    `assumptions` tell it apart.

    Attributes:
        diagnostics: Everything that was found while recording, exporting and checking.
        proof: What was proved, with numbers; `None` when nothing was recorded.
        drift: For each node what its operators bring in, when `drift=True`.
        transforms: For each node what was changed in its model, when `transform` was given.
    """

    def __init__(
        self,
        verdicts: dict[str, bool],
        diagnostics: list[Diagnostic],
        proof: ProofResult | None = None,
        drift: Mapping[str, ParityResult] | None = None,
        transforms: Mapping[str, TransformResult] | None = None,
    ) -> None:
        """Keep verdicts and findings."""
        super().__init__(verdicts)
        self.diagnostics = diagnostics
        self.proof = proof
        self.drift = dict(drift or {})
        self.transforms = dict(transforms or {})

    @property
    def verdict(self) -> str | None:
        """The verdict of the proof, `"proved"` or worse; `None` when nothing was recorded."""
        return None if self.proof is None else self.proof.verdict

    @property
    def assumptions(self) -> list[Diagnostic]:
        """What the verdict rests on; see `ProofResult.assumptions`."""
        return [] if self.proof is None else self.proof.assumptions


_NOTHING = Diagnostic(
    "VER0326",
    "warning",
    "nothing was recorded: the bundle is empty and cannot be run",
    "",
    ("annotate between start() and stop(), and run the annotated code there",),
)


@dataclass
class _Outcome:
    """What happened to a recording so far."""

    recording: Recording
    made: list[Made] = field(default_factory=list)
    wiring: Wiring = field(default_factory=lambda: Wiring([]))
    found: list[Diagnostic] = field(default_factory=list)
    noticed: list[Diagnostic] = field(default_factory=list)
    fresh: dict[str, Fresh] = field(default_factory=dict)
    prover: Prover | None = None
    proof: ProofResult | None = None
    told_by_proof: list[Diagnostic] = field(default_factory=list)
    drift: dict[str, ParityResult] = field(default_factory=dict)
    transforms: dict[str, TransformResult] = field(default_factory=dict)
    weighed: list[Diagnostic] = field(default_factory=list)
    faults: dict[str, Faults] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Seed of the fresh inputs."""
        return fresh.seed_of(self.recording.name)

    def noticed_for_proof(self) -> list[dict[str, Any]]:
        """Return what tracing noticed and samples cannot show, as proof and samples hold it."""
        corners = [one for one in self.explained() if one.code == trial.CORNER]
        return self._as_noticed([*self.noticed, *self.weighed, *corners])

    def explained(self) -> list[Diagnostic]:
        """Return why models differ here, which says nothing about the bundle elsewhere."""
        return [] if self.prover is None else self.prover.noticed

    def findings_of_proof(self) -> list[dict[str, Any]]:
        """Return what tracing noticed, and what this proof found out."""
        return self._as_noticed([*self.noticed, *self.weighed, *self.explained()])

    def _as_noticed(self, found: list[Diagnostic]) -> list[dict[str, Any]]:
        return describe.noticed(found, [node.name for node in self.recording.nodes])

    def failed(self) -> list[str]:
        """Return the nodes whose model is not right on everything that was compared."""
        if self.proof is None:
            return []
        has_model = {one.node.name for one in self.made if one.exported is not None}
        return [
            name
            for name, verdict in self.proof.nodes.items()
            if verdict not in HOLDS and name in has_model
        ]

    def off(self) -> list[str]:
        """Return the nodes of `failed` whose samples show it; of others tracing knows why."""
        if self.proof is None:
            return []
        agree = {
            node["node"]
            for node in self.proof.data["nodes"]
            if node["ports"]
            and all(s["verdict"] == "proved" for port in node["ports"] for s in port["samples"])
        }
        known = {name for name, drawn in self.fresh.items() if drawn.wrong} & agree
        return [name for name in self.failed() if name not in known]

    def results(self) -> dict[str, bool]:
        """Return the verdicts of the recorded nodes; generated ones only when they are wrong."""
        failed = self.failed()
        names = [node.name for node in self.recording.nodes]
        return {name: name not in failed for name in names} | dict.fromkeys(failed, False)


def compile_recording(
    recording: Recording,
    *,
    visualize: bool = True,
    verbose: bool | None = None,
    validate: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    tolerance: str | None = None,
    tolerances: Mapping[str, Mapping[str, float]] | None = None,
    fresh_inputs: bool = True,
    adequacy: bool = True,
    drift: bool = False,
    transform: Sequence[str] | str = (),
    strict: bool = True,
    graph_configs: GraphConfigs | None = None,
    dry_run: bool | None = None,
) -> CompileResult | bool:
    """Export every node of a recording and write the bundle.

    Args:
        recording: What a session saw.
        visualize: Draw the bundle, `<name>.svg` and `<name>.png` beside its description.
        verbose: Show details on the console; `None` keeps what the session was started with.
        validate: Check the models against the recorded values.
        rtol: Relative tolerance; by default 1e-3, finer where the scale of an output demands it.
        atol: Absolute tolerance; by default 1e-5, finer where the scale of an output demands it.
        equal_nan: Whether NaN equals NaN.
        tolerance: `"auto"` derives tolerances from the computation, in place of `rtol` and `atol`.
        tolerances: Tolerances of single outputs, `{"node/port": {"atol": ..., "rtol": ...}}`.
        fresh_inputs: Check on values that were not recorded, too; runs the nodes' code again.
        adequacy: Plant faults into copies of the nodes' programs, and say how many are found.
        drift: Compare each model with its recorded program, operator by operator, and keep the
            programs of ONNX models in the bundle.
        transform: Passes that change ONNX models before they are checked.
        strict: Refuse, after writing the bundle, when something is wrong.
        graph_configs: Settings of the pipeline as a whole.
        dry_run: Describe the nodes without exporting; `None` keeps what the session says.

    Returns:
        The verdict of each node, or `True` when nothing was checked on purpose.
    """
    if graph_configs is not None and not isinstance(graph_configs, GraphConfigs):
        kind = type(graph_configs).__name__
        message = f"`graph_configs` is a {kind}, not GraphConfigs"
        raise refuse("VER0902", message, location=user_line())
    asked = Asked(rtol, atol, equal_nan, tolerance, tolerances)
    policy.check_options(asked)
    if dry_run is not None:
        recording.dry_run = dry_run
    loud = recording.verbose if verbose is None else verbose
    with _collector_paused(), ExportLog(recording.folder, verbose=loud, append=True) as log:
        outcome = _Outcome(recording, found=list(recording.diagnostics))
        checks = validate and not recording.dry_run
        if recording.nodes:
            with tempfile.TemporaryDirectory(prefix="veracity-") as folder:
                _make(outcome, Path(folder), log)
                if transform and not recording.dry_run:
                    outcome.transforms = transform_models(
                        outcome.made, Pipeline(transform).passes, log
                    )
                with loading.keeping_models():
                    if checks:
                        _check(outcome, asked, log, fresh_inputs=fresh_inputs, faults=adequacy)
                    if drift and not recording.dry_run:
                        _look_inside(outcome, Path(folder), log)
                    _write(outcome, Path(folder), graph_configs, log)
        else:
            outcome.found.append(_NOTHING)
            _write_empty(recording)
        if visualize and recording.nodes:
            _draw(recording.folder, log)
        _write_page(outcome, log)
        _tell(outcome, log, strict=strict)
        if strict:
            _refuse_wrong(outcome)
    if not checks:
        return True
    return CompileResult(
        outcome.results(), outcome.found, outcome.proof, outcome.drift, outcome.transforms
    )


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep the garbage collector out: with torch loaded, each of its rounds takes milliseconds."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _make(outcome: _Outcome, folder: Path, log: ExportLog) -> None:
    recording = outcome.recording
    describe.check_extras(recording.nodes)
    outcome.found += describe.misfit_names(recording.nodes)
    outcome.noticed = list(outcome.found)
    wiring = wire(recording)
    if recording.dry_run:
        outcome.made = [describe_only(node) for node in wiring.nodes]
    else:
        progress = Progress(len(wiring.nodes))
        try:
            outcome.made = make_models(wiring.nodes, folder, log, progress)
        finally:
            progress.clear()
    dropped = {
        (one.node.name, port.name)
        for one in outcome.made
        for port in one.node.inputs
        if port not in one.inputs
    }
    for node, name in sorted(dropped):
        log.caution(f"{node}/{name} has no influence on the exported model and is left out")
    outcome.wiring = wiring.without_inputs(dropped)
    if not outcome.wiring.outputs():
        message = "the bundle has no outputs: every value of every node is only remembered"
        hint = "give what the pipeline is for to `annotate.output_tensors`"
        location = recording.nodes[0].location
        raise refuse("VER1124", message, location=location, hints=(hint,))


def _check(
    outcome: _Outcome, asked: Asked, log: ExportLog, *, fresh_inputs: bool, faults: bool
) -> None:
    rules = policy.resolve(asked, outcome.made, log)
    subjects = [
        _subject(one, rules, outcome, fresh_inputs=fresh_inputs, faults=faults)
        for one in outcome.made
        if one.exported is not None
    ]
    # Tolerances are fitted to what was drawn.
    prover = Prover(rules, log)
    waiting = {subject.made.node.name: subject for subject in subjects}
    for one in outcome.made:
        node = one.node
        subject = waiting.get(node.name)
        if one.exported is None or subject is None:
            prover.leave_out(one)
            # Nobody asked for a model, so that nothing is amiss; the proof counts it as unknown.
            message = f"node {node.name!r} has no model: nothing was checked"
            outcome.found.append(Diagnostic("VER1006", "note", message, node.location, ()))
            continue
        if subject.faults is not None:
            outcome.faults[node.name] = subject.faults
        prover.prove(
            one,
            one.exported,
            subject.fresh,
            subject.program,
            subject.faults,
            recorded=not subject.generated,
        )
    outcome.found += prover.noticed
    outcome.prover = prover


@dataclass
class _Subject:
    """A node that is to be proved, with what was drawn for it."""

    made: Made
    fresh: Fresh
    program: Run | None
    generated: bool
    faults: Faults | None = None


def _subject(
    one: Made, rules: Policy, outcome: _Outcome, *, fresh_inputs: bool, faults: bool
) -> _Subject:
    node = one.node
    generated = node.name in outcome.wiring.generated
    module = None if generated else fresh.program_module(one)
    program = None if module is None else fresh.runner_of(node, module)
    random = _draws_random_numbers(node, outcome.found)
    if generated:
        drawn = fresh.pass_through(node, outcome.seed)
    elif fresh_inputs:
        drawn = fresh.draw(
            node, program, outcome.seed, lambda drawn: rules.fit(one, drawn), random=random
        )
    else:
        rules.fit(one, {})
        drawn = Fresh(note="not tried: compile_graph(fresh_inputs=False)")
    if not generated:
        drawn.wrong = _wrong_while_recording(node, outcome)
        changed = drawn.finding(node)
        if drawn.changed is not None and changed is not None:
            drawn.wrong = drawn.wrong or _one_line(changed)
    outcome.fresh[node.name] = drawn
    subject = _Subject(one, drawn, program, generated)
    if not generated:
        frozen = drawn.finding(node)
        outcome.found += [] if frozen is None else [frozen]
        _weigh(subject, module, rules, outcome, faults=faults)
    return subject


def _weigh(
    subject: _Subject, module: Any, rules: Policy, outcome: _Outcome, *, faults: bool
) -> None:
    """Tell what the samples of a node cannot show."""
    one, node = subject.made, subject.made.node
    values = evidence.values_of(node, subject.fresh)
    told = policy.says_nothing(one, rules, values)
    if subject.fresh.many is not None:
        told += evidence.never_moves(node, module, values)
    small = not node.samples or fresh.bytes_of(node.samples[0]) <= fresh.MAX_BYTES
    if faults and small and module is not None and subject.fresh.unstable is None:
        subject.faults = adequacy.plant(node, module, subject.fresh, rules.of(one), outcome.seed)
        initial = {
            port: value
            for (name, port), value in outcome.wiring.initial.items()
            if name == node.name
        }
        if initial:
            subject.faults = subject.faults or Faults()
            adequacy.plant_in_states(node, initial, subject.faults)
        low = None if subject.faults is None else subject.faults.finding(node)
        told += [] if low is None else [low]
    outcome.weighed += told
    outcome.found += told


def _wrong_while_recording(node: Node, outcome: _Outcome) -> str | None:
    """Return the first error that tracing found about a node, or about no node in particular."""
    names = [other.name for other in outcome.recording.nodes]
    for found in outcome.recording.diagnostics:
        if found.severity != "error":
            continue
        about = describe.nodes_of(found, names)
        if not about or node.name in about:
            return _one_line(found)
    return None


def _one_line(found: Diagnostic) -> str:
    return f"{found.code} at {describe.short_place(found.location)}: {found.message}"


def _draws_random_numbers(node: Node, found: list[Diagnostic]) -> bool:
    return any(one.code == "VER0916" and f"`{node.name}`" in one.message for one in found)


def _look_inside(outcome: _Outcome, folder: Path, log: ExportLog) -> None:
    """Compare models with their recorded programs; what differs is told, and is no verdict."""
    from veracity.drift import node as inside  # it builds on this package

    for one in outcome.made:
        node = one.node
        if one.exported is None or node.name in outcome.wiring.generated:
            continue
        try:
            found = outcome.drift[node.name] = inside.parity_of_made(one)
            if one.exported.backend == "onnx":
                one.program = folder / f"{node.name}.program.pt2"
                inside.save_program(one, one.program)
        except VeracityError as refusal:
            first = refusal.diagnostics[0]
            message = f"`{node.name}` was not compared operator by operator: {first.message}"
            outcome.found.append(
                Diagnostic(first.code, "warning", message, node.location, first.hints)
            )
            continue
        log.note(str(found))
        if found.verdict != "proved":
            message = f"`{node.name}`: operator by operator it is {found.verdict}"
            message += f", first in '{found.origin.name}'" if found.origin else ""
            place = found.origin.source if found.origin and found.origin.source else node.location
            outcome.found.append(Diagnostic("VER1237", "warning", message, place, found.reasons))


def _write(outcome: _Outcome, work: Path, configs: GraphConfigs | None, log: ExportLog) -> None:
    recording = outcome.recording
    samples: Path | None = None
    initial: dict[str, torch.Tensor] = {}
    if not recording.dry_run:
        initial = describe.initial_values(outcome.made, outcome.wiring)
        values = describe.samples(outcome.made, outcome.wiring.generated, outcome.fresh)
        if values:
            samples = work / "samples.safetensors"
            metadata = describe.samples_metadata(
                outcome.made,
                outcome.seed,
                outcome.fresh,
                outcome.noticed_for_proof(),
                None if outcome.prover is None else outcome.prover.policy.json(),
            )
            metadata["contract"] = describe.contract(outcome.made, configs)
            found = {name: one.data() for name, one in outcome.faults.items()}
            metadata |= {"adequacy": describe.as_json(found)} if found else {}
            _native.write_samples(samples, values, metadata)
    draft = describe.as_json(describe.draft(outcome.made, outcome.wiring, configs, samples))
    strangers = _native.strangers(recording.folder)
    if strangers:
        log.note(f"the folder holds other files, which stay: {', '.join(strangers[:10])}")
        _write_beside(outcome, draft, initial)
        return
    log.release()
    try:
        _write_into(recording.folder, outcome, draft, initial)
    finally:
        log.restore()


def _write_into(
    folder: Path, outcome: _Outcome, draft: str, initial: dict[str, torch.Tensor]
) -> None:
    """Write the bundle; if it is to be proved, it is run over time first and holds its proof."""
    prover = outcome.prover
    if prover is None:
        _native.write_bundle(folder, draft, initial)
        return
    reference = {
        "origin": "python",
        "made_with": describe.made_with(),
        "seed": outcome.seed,
        "sources": describe.sources(outcome.made),
    }
    facts = {
        "reference": reference,
        "sessions": prover.sessions,
        "threads": torch.get_num_threads(),
        "findings": outcome.findings_of_proof(),
    }
    made = prover.builder.write_bundle(
        folder,
        draft,
        initial,
        facts_json=describe.as_json(facts),
        device=prover.device,
        site_packages=site_packages(),
    )
    folder = outcome.recording.folder
    outcome.proof = ProofResult(made.at(folder / f"{folder.name}.yaml"))


def _draw(folder: Path, log: ExportLog) -> None:
    """Put pictures beside the description; what keeps them from it is told and stops nothing."""
    try:
        drawn = _native.draw(folder / f"{folder.name}.yaml")
    except Exception as error:  # no picture is worth an export
        log.caution(f"no picture was drawn: {error}")
    else:
        log.note(f"drawn: {', '.join(path.name for path in drawn)}")


def _write_page(outcome: _Outcome, log: ExportLog) -> None:
    """Put `report.html` beside the bundle; what keeps it from there is told and stops nothing."""
    path = outcome.recording.folder / "report.html"
    try:
        if outcome.proof is not None:
            outcome.proof.to_html(path)
        else:
            # One that is there is about another bundle.
            path.unlink(missing_ok=True)
    except (OSError, VeracityError) as error:
        log.caution(f"report.html was not written: {error}")


def _write_empty(recording: Recording) -> None:
    made = recording.folder / f".{recording.name}.yaml"
    made.write_text(describe.empty_description(), encoding="utf-8")
    os.replace(made, recording.folder / f"{recording.folder.name}.yaml")


def _write_beside(outcome: _Outcome, draft: str, initial: dict[str, torch.Tensor]) -> None:
    """Write a bundle into a folder that holds other things.

    The folder cannot be swapped for a new one. The description goes first and comes last, so that
    a reader meanwhile finds no bundle rather than parts of two.
    """
    folder = outcome.recording.folder.resolve()
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}.veracity-", dir=folder.parent) as made:
        fresh = Path(made) / folder.name
        _write_into(fresh, outcome, draft, initial)
        description = f"{folder.name}.yaml"
        for old in (description, f"{folder.name}.svg", f"{folder.name}.png"):
            (folder / old).unlink(missing_ok=True)
        files = [path.relative_to(fresh) for path in fresh.rglob("*") if path.is_file()]
        for path in sorted(files, key=lambda path: str(path) == description):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            os.replace(fresh / path, folder / path)
        shutil.rmtree(fresh)


def _tell(outcome: _Outcome, log: ExportLog, *, strict: bool) -> None:
    """Note everything in the log; the console gets each finding once.

    The text of the proof has what tracing noticed, and the exception the errors.
    """
    noticed = [*outcome.noticed, *outcome.weighed, *outcome.explained()]
    for found in outcome.found:
        in_proof = outcome.proof is not None and found in noticed
        log.finding(found, told=in_proof or (strict and found.severity == "error"))
    if outcome.proof is not None:
        # The text says it in order; the findings are for those who read the result.
        data = outcome.proof.data
        told = validate.findings(data, outcome.recording.nodes)
        outcome.told_by_proof = [one for one in told if not _is_told(one, outcome)]
        outcome.found += outcome.told_by_proof
        failed = outcome.failed()
        for node in data["nodes"]:
            mark, word = ("FAIL", "failed") if node["node"] in failed else ("PASS", "passed")
            count = node["samples"] + node["fresh"]
            under = len(node.get("assumptions", ()))
            rest = f", under {_counted(under, 'assumption')}" if under else ""
            log.note(f"[{mark}] {node['node']} {word} validation ({count} examples){rest}")
    for line in _statistics(outcome):
        log.note(line)
    errors = any(one.severity == "error" for one in outcome.found)
    level = logging.ERROR if errors or outcome.failed() else logging.INFO
    if outcome.proof is not None:
        log.summary(f"proof of {outcome.recording.name}\n{outcome.proof}".rstrip(), level=level)
    log.summary(_summary(outcome, log), level=level)


def _is_told(found: Diagnostic, outcome: _Outcome) -> bool:
    """Say whether a finding of the proof was told before it was made, by its reason."""
    if found.code == "VER1109":
        node = next(one.node for one in outcome.made if one.node.location == found.location)
        return _draws_random_numbers(node, outcome.found)
    return found.code == "VER1107" and found.severity == "warning"


def _statistics(outcome: _Outcome) -> list[str]:
    wiring = outcome.wiring
    edges = wiring.data_flow + wiring.feedback_flow
    fed = {target for _, target in edges}
    inputs = [(one.node.name, port.name) for one in outcome.made for port in one.inputs]
    loose_in = sum(end not in fed for end in inputs)
    loose_out = len(wiring.outputs())
    return [
        f"Computation nodes: {len(outcome.made)} ({len(wiring.generated)} generated)",
        f"Dangling inputs: {loose_in}",
        f"Dangling outputs: {loose_out}",
        f"Internal connections: {len(edges)}",
        f"Total edges: {len(edges) + loose_in + loose_out}",
    ]


def _counted(count: int, name: str) -> str:
    return f"{count} {name}{'s' * (count != 1)}"


def _summary(outcome: _Outcome, log: ExportLog) -> str:
    recording = outcome.recording
    with_model = sum(one.exported is not None for one in outcome.made)
    nodes, models = _counted(len(outcome.made), "node"), _counted(with_model, "model")
    parts = [f"{recording.name}: {nodes}, {models} in {recording.folder}"]
    if outcome.proof is not None:
        parts.append(f"{with_model - len(outcome.failed())} of {models} passed validation")
    elif not recording.dry_run and with_model:
        parts.append("not validated")
    # What failed in a node, sample by sample, is one fact about a model, and is counted above.
    told = [one for one in outcome.told_by_proof if one.location]
    under = [] if outcome.proof is None else outcome.proof.assumptions
    if outcome.proof is not None and outcome.proof.verdict == "conditional":
        parts.append(f"conditional on {_counted(len(under), 'assumption')}")
    severities = [one.severity for one in outcome.found if one not in told]
    counts = {name: severities.count(name) for name in ("error", "warning")}
    parts += [_counted(count, name) for name, count in counts.items() if count]
    if outcome.found:
        parts.append(f"details in {log.path.parent / FILE_NAME}")
    return "; ".join(parts)


def _refuse_wrong(outcome: _Outcome) -> None:
    errors = [found for found in outcome.found if found.severity == "error"]
    failed = outcome.off()
    if failed:
        hints = dict.fromkeys(hint for found in errors for hint in found.hints)
        message = f"model validation failed for {len(failed)} node(s): {failed}"
        location = _location(outcome.recording.nodes, failed[0])
        listed = Diagnostic("VER1005", "error", message, location, tuple(hints))
        # A warning may be the reason: a random draw, a frozen value.
        warnings = [found for found in outcome.found if found.severity == "warning"]
        # The numbers stand in the text of the proof.
        causes = [found for found in errors if found not in outcome.told_by_proof]
        known = {hint for cause in causes for hint in cause.hints}
        shown = dataclasses.replace(
            listed, hints=tuple(hint for hint in hints if hint not in known)
        )
        text = "\n".join(str(found) for found in [shown, *causes])
        raise error_from_diagnostics([listed, *errors, *warnings], text)
    if errors:
        raise error_from_diagnostics(errors)


def _location(nodes: list[Node], name: str) -> str:
    return next((node.location for node in nodes if node.name == name), "")
