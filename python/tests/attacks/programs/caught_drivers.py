"""Drivers that go on with something else when a node raises, and drivers that stop."""

from __future__ import annotations

import contextlib

import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import either, fixed, normal, uniform
from attacks.registry import clean, hostile

_NEAR = {"policy/x": uniform(-1, 1, 1, 3)}
_FAR = {"policy/x": either(lambda t: t % 4 == 3, fixed([[9.0, 0.0, 0.0]]), uniform(-1, 1, 1, 3))}


def _step(gain: Tensor, x: Tensor, backend: str) -> Tensor:
    x = annotate.input_tensors("policy", {"x": x})
    if x.abs().max() > 5.0:
        raise ValueError("reading out of range")
    y = x * gain
    annotate.output_tensors("policy", {"y": y}, export_with=backend)
    return y


@hostile("C", passes=5, ticks=14, style="own", rec=_NEAR, fresh=_FAR, in_tests=True)
class DriverFallsBack:
    """The driver sends the last command again when the policy refuses a reading."""

    def __init__(self, backend: str) -> None:
        self.backend, self.gain, self.last = (
            backend,
            torch.tensor([1.0, 2.0, 3.0]),
            torch.zeros(1, 3),
        )

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        try:
            self.last = _step(self.gain, given["policy/x"], self.backend)
        except ValueError:
            pass
        return {"policy/y": self.last}


@hostile("C", passes=5, ticks=14, style="own", rec=_NEAR, fresh=_FAR)
class DriverSuppresses:
    """The same with `contextlib.suppress`, two functions farther out."""

    def __init__(self, backend: str) -> None:
        self.backend, self.gain, self.last = (
            backend,
            torch.tensor([1.0, 2.0, 3.0]),
            torch.zeros(1, 3),
        )

    def _run(self, x: Tensor) -> Tensor:
        return _step(self.gain, x, self.backend)

    def _send(self, x: Tensor) -> None:
        self.last = self._run(x)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        with contextlib.suppress(Exception):
            self._send(given["policy/x"])
        return {"policy/y": self.last}


@hostile("C", passes=5, ticks=14, style="own", rec=_NEAR, fresh=_FAR)
class MarksInsideOfTry:
    """Marks and fallback are in one function."""

    def __init__(self, backend: str) -> None:
        self.backend, self.last = backend, torch.zeros(1, 3)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        try:
            x = annotate.input_tensors("policy", {"x": given["policy/x"]})
            assert bool((x.abs() < 5.0).all()), "out of range"
            y = x.clamp(-1, 1) * 3
            annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        except AssertionError:
            y = self.last
        self.last = y
        return {"policy/y": y}


@hostile(
    "C",
    passes=5,
    ticks=14,
    style="own",
    rec={"policy/a": normal(1, 2, 2)},
    fresh={
        "policy/a": either(lambda t: t % 4 == 3, fixed([[[1.0, 2.0], [2.0, 4.0]]]), normal(1, 2, 2))
    },
    backends="jit",
)
class SingularAtTheDriver:
    """The solver raises for a singular matrix; the driver holds the last answer."""

    def __init__(self, backend: str) -> None:
        self.backend, self.last = backend, torch.zeros(1, 2)

    def _solve(self, a: Tensor) -> Tensor:
        a = annotate.input_tensors("policy", {"a": a})
        y = torch.linalg.solve(a, torch.ones(1, 2, 1)).squeeze(-1)
        annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        return y

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        try:
            self.last = self._solve(given["policy/a"])
        except RuntimeError:
            print("singular: command held")
        return {"policy/y": self.last}


@clean("C", passes=5, style="own", rec=_NEAR, in_tests=True)
class DriverStops:
    """Checks raise, and the driver cleans up and raises on."""

    def __init__(self, backend: str) -> None:
        self.backend, self.gain = backend, torch.tensor([1.0, 2.0, 3.0])

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        try:
            y = _step(self.gain, given["policy/x"], self.backend)
        except ValueError as error:
            print("stop")
            raise RuntimeError("policy stopped") from error
        finally:
            print("tick over")
        return {"policy/y": y}


@clean("C", passes=5, style="own", rec=_NEAR)
class DriverWaitsForKeys:
    """A driver that ends cleanly at Ctrl+C, and has a missing sensor as an exception of its own."""

    def __init__(self, backend: str) -> None:
        self.backend, self.model = backend, nn.Linear(3, 3)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        try:
            x = annotate.input_tensors("policy", {"x": given["policy/x"]})
            assert torch.isfinite(x).all()
            y = self.model(x)
            annotate.output_tensors("policy", {"y": y}, export_with=self.backend)
        except KeyboardInterrupt:
            print("bye")
        except (KeyError, FileNotFoundError, TimeoutError):
            print("no sensor")
        return {"policy/y": y}
