"""Changes ONNX models, proves each change, and undoes it.

    from veracity import transform

    result = transform.Pipeline().run("model.onnx")
    result.verdict                    # "proved"
    result.save("small.onnx")         # with the log of every rewrite beside it
    result.why_not("BatchNormalization_12")

Everything is done by the native part; torch is not needed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from veracity import _native
from veracity.inference import site_packages

#: Columns of the text that `str()` gives.
_WIDTH = 80


@dataclass(frozen=True)
class PassFacts:
    """A pass that can be chosen.

    Attributes:
        name: Its name.
        version: Goes up when it proposes something else for the same graph.
        klass: What it promises: `"exact-bits"`, `"exact-real"`, `"approximate"` or
            `"changes-computation"`.
        default: Whether it is one of the standard passes.
        about: What it does.
        signature: SHA-256 over name, version and typed parameters.
    """

    name: str
    version: int
    klass: str
    default: bool
    about: str
    signature: str


@dataclass(frozen=True)
class Rewrite:
    """One change of a graph.

    Attributes:
        id: Its number, from 0.
        pass_: The pass that proposed it.
        klass: What the pass promises.
        index: Its number within its pass.
        reason: Why it is right.
        removed: Nodes that went, by name or first output.
        added: Nodes that came.
        changed: Nodes that stayed and changed.
        values: Values that are others now, or gone (`None`).
        verdict: `"proved"`, `"disproved"` or `"not_comparable"`; `None` when it was not checked
            alone.
        max_abs: Largest error that was seen, if it was checked alone.
        problem: Why it is not proved.
    """

    id: int
    pass_: str
    klass: str
    index: int
    reason: str
    removed: tuple[str, ...]
    added: tuple[str, ...]
    changed: tuple[str, ...]
    values: Mapping[str, str | None]
    verdict: str | None = None
    max_abs: float | None = None
    problem: str | None = None


class TransformResult:
    """A model that was changed, with everything that is known about the change."""

    def __init__(self, native: Any, name: str) -> None:
        """Keep what the native part made."""
        self._native = native
        self._name = name

    @property
    def model(self) -> bytes:
        """The new model, as the bytes of its file."""
        return cast("bytes", self._native.model())

    @cached_property
    def log(self) -> dict[str, Any]:
        """The log: every rewrite, what was taken back and what was left alone."""
        return cast("dict[str, Any]", json.loads(self._native.log_json()))

    @cached_property
    def checks(self) -> dict[str, Any] | None:
        """What checking showed; `None` when nothing was checked."""
        found = self._native.checks_json()
        return None if found is None else cast("dict[str, Any]", json.loads(found))

    @property
    def verdict(self) -> str:
        """`"proved"`, `"disproved"`, `"not_comparable"`, or `"not_checked"`."""
        return "not_checked" if self.checks is None else str(self.checks["verdict"])

    @property
    def nodes_before(self) -> int:
        """Nodes of the original."""
        return int(self.log["nodes_before"])

    @property
    def nodes_after(self) -> int:
        """Nodes of the new model."""
        return int(self.log["nodes_after"])

    @cached_property
    def rewrites(self) -> tuple[Rewrite, ...]:
        """Every change that stayed, in order."""
        checks = {
            one["id"]: one for one in (self.checks or {"rewrites": ()})["rewrites"] if one["kept"]
        }
        return tuple(_rewrite(record, checks.get(record["id"])) for record in self.log["records"])

    @property
    def rejected(self) -> tuple[dict[str, Any], ...]:
        """Changes that were judged wrong and taken back, with the reason."""
        return tuple(self.log.get("rejected", ()))

    @property
    def declined(self) -> tuple[dict[str, Any], ...]:
        """Matches that passes left alone, with the precondition that does not hold."""
        return tuple(self.log.get("declined", ()))

    def transformed_nodes(self, pass_: str | None = None) -> list[str]:
        """Return the nodes of the result that a pass made or changed, or all passes."""
        touched = json.loads(self._native.transformed_nodes(pass_))
        names = (name for one in touched for name in (*one["added"], *one["changed"]))
        return list(dict.fromkeys(names))

    def map_value(self, value: str) -> str | None:
        """Return what a value of the original is called now; `None` when it is gone."""
        return cast("str | None", json.loads(self._native.map_value(value)).get("now"))

    def explain(self, node: str) -> dict[str, Any]:
        """Say which nodes of the original a node comes from, and why."""
        return cast("dict[str, Any]", json.loads(self._native.explain(node)))

    def why_not(self, node: str) -> list[str]:
        """Say why passes left a node of the original alone."""
        found = json.loads(self._native.why_not(node))
        return [f"{one['pass']}: {one['reason']}" for one in found]

    def reverse(self) -> bytes:
        """Return the original, byte for byte, found from the log and the result alone."""
        return cast("bytes", self._native.reverse())

    def save(self, path: str | os.PathLike[str], *, log: bool = True) -> None:
        """Write the model; beside it the log, and what is needed to undo the change."""
        self._native.write(Path(path), log)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Write one page with everything, which needs no network; return its path."""
        self._native.write_page(self._name, Path(path))
        return Path(path)

    def to_markdown(self) -> str:
        """Return the result as a page."""
        return cast("str", self._native.markdown(self._name))

    def __str__(self) -> str:
        """Return one screen of text."""
        return cast("str", self._native.text(self._name, _WIDTH)).rstrip()

    def __repr__(self) -> str:
        """Return the result in a line."""
        nodes = f"{self.nodes_before} -> {self.nodes_after} nodes"
        return f"TransformResult({self._name!r}, {nodes}, {self.verdict})"


class Pipeline:
    """Passes in the order in which they run, again and again until none finds anything."""

    def __init__(self, passes: Sequence[str] | str = ("default",)) -> None:
        """Choose passes.

        Args:
            passes: Names; `"default"` stands for the standard ones, `"-name"` takes one out. A
                text is a list with commas.
        """
        names = passes.split(",") if isinstance(passes, str) else passes
        self.passes = tuple(name.strip() for name in names)

    def run(
        self,
        model: Any,
        *,
        validate: str = "local",
        inputs: Mapping[str, Any] | Iterable[Mapping[str, Any]] = (),
        seed: int = 0,
        dims: Mapping[str, int] | None = None,
        on_fail: str = "rollback",
        provenance: bool = True,
        engine: str = "auto",
        threads: int = 1,
    ) -> TransformResult:
        """Change a model. The one that was given stays as it is.

        Args:
            model: A path, the bytes of a file, or an `onnx.ModelProto`.
            validate: `"local"` checks each rewrite alone and the whole at the end, `"pass"` the
                whole after each pass, `"final"` only at the end, `"off"` nothing.
            inputs: Tensors or arrays to check on, by the names of the inputs; several sets as a
                list. Made-up ones are used as well.
            seed: What made-up inputs are drawn from.
            dims: Sizes of named axes of made-up inputs.
            on_fail: What becomes of a wrong rewrite: `"rollback"`, `"raise"` or `"keep"`.
            provenance: Whether nodes of the result say where they come from.
            engine: What runs the models: `"auto"`, `"ort"` or `"embedded"`.
            threads: Threads inside of one operator.

        Returns:
            The new model, and everything that is known about the change.
        """
        native = _native.transform(
            _source(model),
            passes=list(self.passes),
            validate=validate,
            on_fail=on_fail,
            inputs=_sets(inputs),
            seed=seed,
            dims=dict(dims or {}),
            provenance=provenance,
            engine=engine,
            threads=threads,
            site_packages=site_packages(),
        )
        return TransformResult(native, _name(model))


@dataclass(frozen=True)
class ModelDiff:
    """How two models differ in their structure. `str()` is a screen of text; false when equal.

    Attributes:
        data: Everything that was found.
    """

    data: dict[str, Any]
    _text: str

    def __str__(self) -> str:
        """Return one screen of text."""
        return self._text.rstrip()

    def __bool__(self) -> bool:
        """Say whether anything differs."""
        counts = ("schema_version", "nodes_before", "nodes_after", "nodes_same")
        return any(value for key, value in self.data.items() if key not in counts)


@dataclass(frozen=True)
class Culprit:
    """The rewrite that makes a model wrong.

    Attributes:
        pass_: The pass.
        index: Its number within its pass.
        value: The first value of the node that it is about.
        why: Why the pass held it to be right.
        reason: What is wrong.
        others: Rewrites before it that it needs to be wrong.
        models: Models that were run to find it.
    """

    pass_: str
    index: int
    value: str
    why: str
    reason: str
    others: tuple[str, ...]
    models: int


def bisect(
    model: Any,
    pipeline: Pipeline | None = None,
    *,
    inputs: Mapping[str, Any] | Iterable[Mapping[str, Any]] = (),
    seed: int = 0,
    dims: Mapping[str, int] | None = None,
    repro: str | os.PathLike[str] | None = None,
    engine: str = "auto",
    threads: int = 1,
) -> Culprit | None:
    """Find the rewrite that makes the outputs of a model wrong; `None` when they agree.

    Args:
        model: A path, the bytes of a file, or an `onnx.ModelProto`.
        pipeline: The passes; the standard ones by default.
        inputs: As for `Pipeline.run`.
        seed: As for `Pipeline.run`.
        dims: As for `Pipeline.run`.
        repro: A folder for the fault alone: two models and the inputs that show it.
        engine: What runs the models.
        threads: Threads inside of one operator.
    """
    found = _native.transform_bisect(
        _source(model),
        passes=list((pipeline or Pipeline()).passes),
        repro=None if repro is None else Path(repro),
        inputs=_sets(inputs),
        seed=seed,
        dims=dict(dims or {}),
        engine=engine,
        threads=threads,
        site_packages=site_packages(),
    )
    if found is None:
        return None
    data = json.loads(found)
    return Culprit(
        pass_=data["pass"],
        index=data["index"],
        value=data["value"],
        why=data["why"],
        reason=data["reason"],
        others=tuple(data["others"]),
        models=data["models"],
    )


def passes() -> tuple[PassFacts, ...]:
    """Return every pass there is, the standard ones first and in their order."""
    return tuple(
        PassFacts(klass=one.pop("class"), **one) for one in json.loads(_native.transform_passes())
    )


def diff(before: Any, after: Any) -> ModelDiff:
    """Compare the structure of two models, whoever made them."""
    data, text = _native.transform_diff(_source(before), _source(after), _WIDTH)
    return ModelDiff(json.loads(data), text)


def reverse(path: str | os.PathLike[str]) -> bytes:
    """Return the original of a model that `TransformResult.save` wrote, byte for byte."""
    return _native.transform_reverse(Path(path))


def _sets(inputs: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [dict(one) for one in ([inputs] if isinstance(inputs, Mapping) else inputs)]


def _source(model: Any) -> bytes | Path:
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString"):
        return cast("bytes", model.SerializeToString())
    return Path(model)


def _name(model: Any) -> str:
    return os.fspath(model) if isinstance(model, (str, os.PathLike)) else "model"


def _rewrite(record: dict[str, Any], check: dict[str, Any] | None) -> Rewrite:
    def names(key: str) -> tuple[str, ...]:
        nodes = record.get(key, ())
        return tuple(node["name"] or next(iter(node["outputs"]), "") for node in nodes)

    return Rewrite(
        id=record["id"],
        pass_=record["pass"],
        klass=record["class"],
        index=record["index"],
        reason=record["reason"],
        removed=names("removed"),
        added=names("added"),
        changed=names("changed"),
        values=record.get("values", {}),
        verdict=None if check is None else check["verdict"],
        max_abs=None if check is None else float(check["max_abs"]),
        problem=None if check is None else check.get("reason"),
    )
