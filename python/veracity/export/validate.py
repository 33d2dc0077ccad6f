"""Checks exported models while they are made: every node, every sample, every output.

The model is loaded from the file that goes into the bundle and run on the device of the sample.
Each output goes, where it is, to a `ProofBuilder` in Rust, which compares number, shape and dtype
and then the values, and keeps nothing of them. What was found is read from the finished proof.

The first sample is run twice, through the model and through the recorded program: what disagrees
with itself is unstable, and nothing is held against it. Samples that take long to compute are run
once, and the proof says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from veracity import _native
from veracity.errors import Diagnostic, VeracityError
from veracity.export import devices
from veracity.export.adequacy import Faults
from veracity.export.batched import Many
from veracity.export.describe import as_json
from veracity.export.fresh import NAN_INPUT, NOT_FINITE, Fresh, Run, bytes_of, device_of
from veracity.export.loading import Run as ModelRun
from veracity.export.loading import elsewhere, engine_of, load
from veracity.export.log import ExportLog
from veracity.export.models import Exported, Made
from veracity.export.policy import Policy
from veracity.export.trial import Trial
from veracity.tracing.nodes import Node, Sample

FROZEN_HINT = (
    "the first sample passes and a later one fails: a value that changes may have been recorded "
    "as a constant; make it an input of the node"
)
#: Samples that take more are run once.
MAX_REPEATED_BYTES = 64 << 20
_CPU = torch.device("cpu")


@dataclass(frozen=True)
class _Labelled:
    """A sample with its place among those of its kind."""

    sample: Sample
    fresh: bool
    number: int

    def __str__(self) -> str:
        return f"{'fresh' if self.fresh else 'sample'} {self.number}"


class Prover:
    """Checks the models of one bundle.

    Attributes:
        builder: Collects what is found.
        sessions: What ran each node.
        device: What the bundle as a whole is to be run on.
        noticed: Why models differ, where it is known.
        policy: What counts as equal.
    """

    def __init__(self, policy: Policy, log: ExportLog) -> None:
        """Judge by this policy."""
        self.builder = _native.ProofBuilder(policy.json())
        self.sessions: list[dict[str, str]] = []
        self.device = "cpu"
        self.noticed: list[Diagnostic] = []
        self.policy, self._log = policy, log

    def leave_out(self, made: Made) -> None:
        """Note a node that has no model."""
        self.builder.declare(made.node.name, made.output_names())
        self._refuse(made.node, "VER1107", "the node has no model", disproved=False)

    def prove(
        self,
        made: Made,
        exported: Exported,
        fresh: Fresh,
        program: Run | None,
        faults: Faults | None = None,
        *,
        recorded: bool,
    ) -> None:
        """Run samples of a node through its model.

        Args:
            made: The node.
            exported: Its model.
            fresh: Its fresh inputs.
            program: Its recorded program, where that can be run.
            faults: What became of faults that were planted into it.
            recorded: Whether its recorded samples are to be run, too.
        """
        node = made.node
        self.builder.declare(node.name, exported.output_names)
        if node.seen:
            self.builder.passes(node.name, node.seen)
        twice = all(bytes_of(sample) <= MAX_REPEATED_BYTES for sample in node.samples[:1])
        notes = [fresh.note, None if twice else "run once: its samples are large"]
        if any(notes):
            self.builder.fresh_note(node.name, "; ".join(filter(None, notes)))
        if faults is not None:
            self.builder.adequacy(node.name, as_json(faults.data()))
        if fresh.unstable is not None:
            self.builder.unrepeatable(node.name, fresh.unstable)
        if fresh.wrong is not None:
            hint = "mend the code, and export it again"
            self._refuse(node, "VER1115", fresh.wrong, hint, disproved=True)
        samples = [
            _Labelled(one, False, n) for n, one in enumerate(node.samples if recorded else ())
        ]
        samples += [_Labelled(one, True, n) for n, one in enumerate(fresh.samples)]
        if not samples:
            self._refuse(node, "VER1105", "nothing was recorded", disproved=False)
            return
        model = _Model(made, exported)
        try:
            if twice:
                self._control_program(made, program, samples[0].sample)
            first = self._run_all(model, samples, twice)
            if first is not None:
                self._explain(model, samples)
            if first is not None and twice:
                self._control(made, first, lambda: model.run(samples[0].sample))
            if first is not None and fresh.many is not None and program is not None:
                self._try_many(model, fresh, program)
        finally:
            self._note_session(model)

    def _run_all(self, model: _Model, samples: list[_Labelled], twice: bool) -> list[str] | None:
        """Compare every sample; return fingerprints of the first outputs if all could be run."""
        first: list[str] | None = None
        for one in samples:
            try:
                results = model.run(one.sample)
            except VeracityError as refusal:
                found = refusal.diagnostics[0]
                disproved = found.code != "VER1006"
                self._refuse(
                    model.made.node, found.code, found.message, *found.hints, disproved=disproved
                )
                return None
            except Exception as error:  # any: what an engine raises is up to it
                text = (str(error).strip().splitlines() or [""])[0][:300]
                message = f"{one}: the model does not run: {type(error).__name__}: {text}"
                self._refuse(model.made.node, "VER1107", message, disproved=True)
                return None
            if not self._compare(model.made, one, results):
                return None
            first = first or [_native.fingerprint(result) for result in results if twice]
        return first

    def _try_many(self, model: _Model, fresh: Fresh, program: Run) -> None:
        """Run draws that are only counted; one that is wrong becomes a sample."""
        assert fresh.many is not None
        trial = Trial(model.made, model.run, fresh.many, program, self.policy.of(model.made))
        wrong = trial.run(at_once=model.is_ours_in_torch())
        self.builder.tried(model.made.node.name, trial.agreed)
        self.noticed += trial.told
        for sample in wrong:
            number = len(fresh.samples)
            fresh.samples.append(sample)
            self._run_all(model, [_Labelled(sample, True, number)], False)
        if not wrong and fresh.beyond is not None:
            self._try_beyond(model, fresh.beyond(), program)

    def _try_beyond(self, model: _Model, drawn: Iterator[tuple[str, Many]], program: Run) -> None:
        """Run draws from where nobody says that inputs are; what differs there is told."""
        for words, many in drawn:
            trial = Trial(model.made, model.run, many, program, self.policy.of(model.made))
            trial.tell_beyond(
                words, are_inputs=words not in NOT_FINITE, hides_nan=words == NAN_INPUT
            )
            self.noticed += [one for one in trial.told if one not in self.noticed]

    def _compare(self, made: Made, one: _Labelled, results: list[torch.Tensor]) -> bool:
        node, names = made.node, made.output_names()
        for port, name in zip(made.inputs, made.input_names(), strict=True):
            self.builder.input(node.name, name, one.sample.inputs[port.name])
        if len(results) != len(node.outputs):
            message = (
                f"{one}: the model has {len(results)} outputs and the node {len(node.outputs)}"
            )
            self._refuse(node, "VER1108", message, disproved=True)
            return False
        for port, name, result in zip(node.outputs, names, results, strict=True):
            reference = reference_of(node, one.sample, port.name)
            if reference is None:
                message = f"{one}: the output `{name}` was not recorded"
                self._refuse(node, "VER1105", message, disproved=False)
                continue
            self.builder.compare(
                node.name, name, one.fresh, one.number, reference.detach(), result.detach()
            )
        return True

    def _control_program(self, made: Made, program: Run | None, sample: Sample) -> None:
        if program is None:
            return

        def run() -> list[torch.Tensor]:
            found = program(sample.inputs)
            return [found[port.name] for port in made.node.outputs]

        try:
            first = [_native.fingerprint(value) for value in run()]
            # The recording was a run, too.
            if first != self._recorded(made.node, sample):
                self._control(made, first, run)
        except Exception as error:  # any: the samples were made by the code, not by the program
            self._log.note(f"{made.node.name}: the recorded program does not run: {error}")

    @staticmethod
    def _recorded(node: Node, sample: Sample) -> list[str | None]:
        recorded = [reference_of(node, sample, port.name) for port in node.outputs]
        return [None if value is None else _native.fingerprint(value) for value in recorded]

    def _control(self, made: Made, first: list[str], run: Any) -> None:
        """Run again what gave `first`, and note the outputs that differ.

        Both outputs are held only when they do.
        """
        again = run()
        changed = [
            number
            for number, (value, before) in enumerate(zip(again, first, strict=True))
            if _native.fingerprint(value) != before
        ]
        if not changed:
            return
        kept = [again[number] for number in changed]
        del again
        third = run()
        bounds = self.policy.of(made)
        for number, one in zip(changed, kept, strict=True):
            port, name = made.node.outputs[number], made.output_names()[number]
            bound = bounds[port.name]
            found = json.loads(
                _native.compare(
                    one.detach(),
                    third[number].detach(),
                    rtol=bound.rtol,
                    atol=bound.atol,
                    equal_nan=True,
                )
            )
            difference = float(found["measurement"]["max_abs"])
            self.builder.unstable(made.node.name, name, difference, not found["passed"])

    def _explain(self, model: _Model, samples: list[_Labelled]) -> None:
        """Look for the reason in the device, where a model was not run on that of its samples."""
        made = model.made
        if any(elsewhere(model.exported.backend, device) for device in model.devices()):
            plain = [one.sample for one in samples]
            found = devices.explanation(made, plain, model.run, self.policy.of(made))
            self.noticed += [] if found is None else [found]

    def _note_session(self, model: _Model) -> None:
        for device in model.devices():
            other = elsewhere(model.exported.backend, device)
            engine, version = engine_of(model.exported.backend)
            self.sessions.append(
                {
                    "node": model.made.node.name,
                    "engine": engine,
                    "engine_version": version,
                    "device": other or str(device),
                }
            )
            if device != _CPU:
                self.device = "auto"
            if other is not None:
                name = model.made.node.name
                self._log.note(f"{name}: recorded on {device}, checked on {other}: no provider")

    def _refuse(self, node: Node, code: str, message: str, *hints: str, disproved: bool) -> None:
        reason = {
            "code": code,
            "severity": "error" if disproved else "warning",
            "message": message,
            "place": _place(node.location),
            "hints": list(hints),
        }
        self.builder.refuse(node.name, disproved, as_json(reason))


class _Model:
    """A model file, loaded for each device that samples are on."""

    def __init__(self, made: Made, exported: Exported) -> None:
        self.made, self.exported = made, exported
        self._runs: dict[torch.device, ModelRun] = {}

    def run(self, sample: Sample) -> list[torch.Tensor]:
        device = device_of(sample)
        if device not in self._runs:
            one = self.exported
            # Models that were brought along may remember what they were given.
            ours = self.made.node.export_with is not None
            self._runs[device] = load(
                one.backend, one.path, device, one.input_names, one.output_names, keep=ours
            )
        return self._runs[device]([sample.inputs[port.name] for port in self.made.inputs])

    def is_ours_in_torch(self) -> bool:
        """Say whether torch may run many samples at once."""
        return self.made.node.export_with is not None and self.exported.backend in ("jit", "pt2")

    def devices(self) -> list[torch.device]:
        return list(self._runs)


def reference_of(node: Node, sample: Sample, port: str) -> torch.Tensor | None:
    """Return what an output is held against."""
    return sample.outputs.get(port, node.static_outputs.get(port))


def findings(proof: dict[str, Any], nodes: list[Node]) -> list[Diagnostic]:
    """Return what a proof, as JSON, says against the nodes and the whole, as findings."""
    places = {node.name: node.location for node in nodes}
    found: list[Diagnostic] = []
    for node in proof["nodes"]:
        location = places.get(node["node"], "")
        for reason in node.get("reasons", ()):
            if reason["code"] == "VER1115":
                continue  # tracing has told it
            message = f"{node['node']}: {reason['message']}"
            hints = tuple(reason.get("hints", ()))
            found.append(Diagnostic(reason["code"], reason["severity"], message, location, hints))
        for port in node["ports"]:
            found += _of_port(port, location, proof.get("advice", []))
    return found + _untried(proof, places) + _of_rollout(proof["rollout"])


def _untried(proof: dict[str, Any], places: dict[str, str]) -> list[Diagnostic]:
    """Return what could not be tried on this machine; only the proof knows it."""
    return [
        Diagnostic(
            one["code"],
            one["severity"],
            f"{one['place']['node']}: {one['message']}",
            places.get(one["place"]["node"], ""),
            tuple(one.get("hints", ())),
        )
        for one in proof.get("findings", ())
        if one["code"] == "VER1118"
    ]


def _of_rollout(rollout: dict[str, Any]) -> list[Diagnostic]:
    """A bundle that could not be run is not wrong; one without edges has nothing to run for."""
    verdict, reasons = rollout.get("verdict"), rollout.get("reasons", ())
    if verdict in (None, "proved"):
        return []
    if verdict == "conditional":
        # What it rests on in the nodes, tracing has told.
        reasons = [reason for reason in reasons if reason["code"] == "VER1117"]
    if verdict == "not_comparable":
        text = "; ".join(dict.fromkeys(reason["message"] for reason in reasons))
        message = f"the bundle was not run over time: {text}"
        return [Diagnostic("VER1110", "warning", message, "", ())]
    return [
        Diagnostic(
            reason["code"],
            reason["severity"],
            f"roll-out: {reason['message']}",
            "",
            tuple(reason.get("hints", ())),
        )
        for reason in reasons
    ]


def _of_port(port: dict[str, Any], location: str, advice: list[str]) -> list[Diagnostic]:
    if port["verdict"] != "disproved":
        return []
    failed = [sample for sample in port["samples"] if sample["verdict"] == "disproved"]
    if not failed:
        return []
    frozen = f"{port['port']}: {FROZEN_HINT}" in advice
    found = []
    for sample in failed:
        reasons = sample.get("reasons", ())
        hints = [hint for reason in reasons for hint in reason.get("hints", ())]
        hints += [FROZEN_HINT] if frozen and sample is failed[0] else []
        text = "; ".join(reason["message"] for reason in reasons)
        message = f"{port['port']} {sample['label']}: {text}"
        found.append(Diagnostic("VER1005", "error", message, location, tuple(hints)))
    return found


def _place(location: str) -> dict[str, Any]:
    file, _, line = location.rpartition(":")
    return {"file": file, "line": int(line)} if file and line.isdigit() else {}
