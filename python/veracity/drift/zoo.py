"""Networks to try parity on, which need no download: torchvision's by name, and three small ones.

Without a file of weights the weights are drawn, so that the outputs depend on every one of them:
what torchvision leaves at zero or one (heads, biases, scales) is drawn too, because an export that
lost it would compute the same, and batch norm is calibrated, because an untrained one lets values
die out. The outputs are held to a usable range; a comparison of zeros proves nothing.
"""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from veracity._generators import generators_kept
from veracity.drift import tensor_files
from veracity.errors import refuse

#: What `build` gives: the module in eval mode, and its arguments.
Built = tuple[nn.Module, tuple[Any, ...]]
#: Largest output that is as good as zero.
_DEAD = 1e-3
#: Below this a parameter is taken for one that was set to about zero on purpose.
_ABOUT_ZERO = 0.1
_CALIBRATION_IMAGES = 4


def build(name: str, seed: int = 0, weights: str | os.PathLike[str] | None = None) -> Built:
    """Return a network in eval mode and arguments for it.

    Args:
        name: `"lstm"`, `"gru_policy"`, `"shared_transformer"`, or the name of any classification
            model of torchvision, `"resnet50"`.
        seed: Which weights and arguments to draw.
        weights: A `state_dict` to use, `.safetensors` or written by `torch.save`.
    """
    with generators_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchvision's about its own initialisation
        torch.manual_seed(seed)
        model, draw = _made(name)
        if weights is None:
            _draw_weights(model, draw)
        else:
            load(model, weights)
        model.eval()
        args = draw(1)
        check_outputs(model, args, name)
    return model, args


def names() -> list[str]:
    """Return every name that `build` takes, the small ones first."""
    return [*_SMALL, *_torchvision_names()]


def load(model: nn.Module, file: str | os.PathLike[str]) -> None:
    """Give a module the weights of a file; every name and shape must fit."""
    given, wanted = tensor_files.read(file), model.state_dict()
    for name, value in given.items():
        if name not in wanted:
            raise _misfit(file, f"the model has no '{name}'", nearest(name, wanted))
        if value.shape != wanted[name].shape:
            sizes = f"{list(value.shape)} in the file and {list(wanted[name].shape)} in the model"
            raise _misfit(file, f"'{name}' is {sizes}", "")
    missing = [name for name in wanted if name not in given]
    if missing:
        found = nearest(missing[0], given)
        raise _misfit(file, f"it lacks '{missing[0]}' and {len(missing) - 1} more", found)
    model.load_state_dict(given)


def check_outputs(model: nn.Module, args: tuple[Any, ...], name: str) -> None:
    """Refuse a module whose outputs say nothing about it."""
    with torch.no_grad():
        outputs = [each for each in tree_leaves(model(*args)) if isinstance(each, Tensor)]
    for number, output in enumerate(outputs):
        problem = _problem(output)
        if problem:
            raise refuse(
                "VER1232",
                f"output {number} of '{name}' {problem}: comparing it would prove nothing",
                hints=("give weights with `--weights`, or another seed",),
            )


def _problem(output: Tensor) -> str:
    if not output.is_floating_point():
        return ""
    if not output.isfinite().all():
        return "is not finite"
    if float(output.abs().max()) < _DEAD:
        return f"is about zero (at most {float(output.abs().max()):.1e})"
    if output.numel() > 1 and float(output.max() - output.min()) < _DEAD:
        return f"is constant at {float(output.flatten()[0]):.3g}"
    return ""


# Weights


def _draw_weights(model: nn.Module, draw: Callable[[int], tuple[Any, ...]]) -> None:
    with torch.no_grad():
        for parameter in model.parameters():
            _draw_constant(parameter)
        for module in model.modules():
            if isinstance(module, nn.Linear):
                # Heads are often drawn so narrow that nothing of the input arrives.
                nn.init.normal_(module.weight, std=module.in_features**-0.5)
    _calibrate(model, draw)


def _draw_constant(parameter: Tensor) -> None:
    """Draw what was filled with one number: biases, scales, heads at zero."""
    value = float(parameter.flatten()[0])
    if not bool((parameter == value).all()):
        return
    if abs(value) < _ABOUT_ZERO:
        parameter.normal_(std=0.1)
    else:
        parameter.uniform_(0.5 * value, 1.5 * value)


def _calibrate(model: nn.Module, draw: Callable[[int], tuple[Any, ...]]) -> None:
    """Let batch norm see some inputs. Nothing else is in training mode, so nothing is dropped."""
    norms = [each for each in model.modules() if isinstance(each, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    model.eval()
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.train().momentum = None  # the mean over all batches, that is over one
        norm.reset_running_stats()
    with torch.no_grad():
        model(*draw(_CALIBRATION_IMAGES))
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.eval().momentum = momentum


def _misfit(file: str | os.PathLike[str], message: str, close: str) -> Exception:
    hints = (f"the nearest name is '{close}'",) if close else ()
    return refuse("VER1231", f"the weights do not fit: {message}", location=str(file), hints=hints)


def nearest(name: str, others: Iterable[str]) -> str:
    """Return the name that was probably meant, or nothing."""
    return next(iter(difflib.get_close_matches(name, list(others), n=1, cutoff=0.4)), "")


# Networks


def _made(name: str) -> tuple[nn.Module, Callable[[int], tuple[Any, ...]]]:
    """Return a network, and how to draw arguments with so many rows."""
    if name in _SMALL:
        kind, draw = _SMALL[name]
        return kind(), draw
    known = _torchvision_names()
    if name not in known:
        close = nearest(name, [*_SMALL, *known])
        hint = f"the nearest name is '{close}'" if close else f"known: {', '.join(_SMALL)}"
        more = () if known else ("torchvision is not installed, which has most of the names",)
        raise refuse("VER1230", f"the zoo has no '{name}'", hints=(hint, *more))
    return _from_torchvision(name)


def _torchvision_names() -> list[str]:
    try:
        from torchvision import models
    except ImportError:
        return []
    return list(models.list_models(module=models))


def _from_torchvision(name: str) -> tuple[nn.Module, Callable[[int], tuple[Any, ...]]]:
    from torchvision import models

    model: nn.Module = models.get_model(name, weights=None)
    size = getattr(model, "image_size", None)  # transformers with one size
    if size is None:
        transforms = models.get_model_weights(name).DEFAULT.transforms()
        size = transforms.crop_size[0]
    return model, lambda rows: (torch.randn(rows, 3, int(size), int(size)),)


class Lstm(nn.Module):
    """Two layers of LSTM over a sequence, and a head on its last step."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.memory = nn.LSTM(16, 32, num_layers=2, batch_first=True)
        self.head = nn.Linear(32, 8)

    def forward(self, sequence: Tensor) -> Tensor:
        """Return what the head makes of the last step."""
        found, _ = self.memory(sequence)
        result: Tensor = self.head(found[:, -1])
        return result


class GruPolicy(nn.Module):
    """A recurrent policy: observation and state in, action and state out."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(24, 64), nn.ELU(), nn.LayerNorm(64))
        self.memory = nn.GRU(64, 64)
        self.actor = nn.Sequential(nn.Linear(64, 32), nn.ELU(), nn.Linear(32, 6), nn.Tanh())

    def forward(self, observation: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """Step once."""
        found, state = self.memory(self.encoder(observation)[None], state)
        return self.actor(found[0]), state


class SharedTransformer(nn.Module):
    """One encoder layer, called four times."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.table = nn.Embedding(100, 32)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return scores of every token."""
        found = self.table(tokens)
        for _ in range(4):
            found = self.layer(found)
        result: Tensor = self.head(found)
        return result


_SMALL: dict[str, tuple[Callable[[], nn.Module], Callable[[int], tuple[Any, ...]]]] = {
    "lstm": (Lstm, lambda rows: (torch.randn(rows, 12, 16),)),
    "gru_policy": (
        GruPolicy,
        lambda rows: (torch.randn(rows, 24), torch.randn(1, rows, 64).tanh()),
    ),
    "shared_transformer": (SharedTransformer, lambda rows: (torch.randint(100, (rows, 9)),)),
}
