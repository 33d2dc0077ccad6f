"""States of modules: buffers, hooks, normalisers, optimisers, scripted code, episodes."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.nn.utils import parametrize

from attacks.draws import array, fixed, flags, integers, normal, row, uniform
from attacks.registry import hostile


@hostile("A", passes=4, rec={"x": normal(2, 3)}, style="module", backends="onnx")
class NsNormaliserUntil(nn.Module):
    """rsl_rl's EmpiricalNormalization: it stops to learn when the count is reached."""

    def __init__(self) -> None:
        super().__init__()
        self.until = 14
        self.register_buffer("mean", torch.zeros(1, 3))
        self.register_buffer("var", torch.ones(1, 3))
        self.count = 0

    def update(self, x: Tensor) -> None:
        if self.until is not None and self.count >= self.until:
            return
        self.count += x.shape[0]
        rate = x.shape[0] / 20.0
        delta = x.mean(0, keepdim=True) - self.mean
        self.mean += rate * delta
        self.var += rate * (x.var(0, keepdim=True, unbiased=False) - self.var)

    def forward(self, x: Tensor) -> Tensor:
        self.update(x)
        return (x - self.mean) / (self.var + 1e-2).sqrt()


@hostile("A", passes=4, rec={"x": normal(4, 3)}, style="module", backends="jit")
class NsNormaliserTensorCount(nn.Module):
    """The same with the count in a tensor, and torch.where in the place of the branch."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("count", torch.tensor(0))

    def forward(self, x: Tensor) -> Tensor:
        learn = self.count < 24
        self.count += x.shape[0]
        mean = self.mean + (x.mean(0) - self.mean) * x.shape[0] / self.count
        self.mean.copy_(torch.where(learn, mean, self.mean))
        return x - self.mean


class _MeanStd:
    """stable-baselines3's RunningMeanStd."""

    def __init__(self, size: int) -> None:
        self.mean = np.zeros(size, np.float64)
        self.var = np.ones(size, np.float64)
        self.count = 1e-4

    def update(self, arr: np.ndarray) -> None:
        mean, var, count = arr.mean(axis=0), arr.var(axis=0), arr.shape[0]
        delta, total = mean - self.mean, self.count + count
        m2 = self.var * self.count + var * count
        m2 = m2 + np.square(delta) * self.count * count / total
        self.mean, self.var = self.mean + delta * count / total, m2 / total
        self.count = total


@hostile(
    "A",
    passes=4,
    rec={"x": array(fixed(torch.zeros(2, 3)))},
    fresh={"x": array(normal(2, 3))},
    backends="jit",
)
class NsVecNormalize:
    """VecNormalize with the robot at rest: mean and variance do not show the count."""

    def __init__(self) -> None:
        self.rms = _MeanStd(3)

    def __call__(self, x: np.ndarray) -> Tensor:
        self.rms.update(x)
        scaled = (x - self.rms.mean) / np.sqrt(self.rms.var + 1e-8)
        return torch.from_numpy(np.clip(scaled, -10, 10).astype(np.float32))


@hostile("A", passes=3, rec={"x": normal(4, 3)}, style="module", backends="jit")
class NsBatchNormCumulative(nn.Module):
    """Batch normalisation in training with momentum None: the mean over all batches is Python's."""

    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(3, momentum=None).train()

    def forward(self, x: Tensor) -> Tensor:
        self.bn(x)
        return (x - self.bn.running_mean) * 2


@hostile("A", passes=4, rec={"x": normal(4, 3)}, style="module", backends="jit")
class NsEvalAfterWarmup(nn.Module):
    """A norm layer is switched to eval after six batches, inside of forward."""

    def __init__(self) -> None:
        super().__init__()
        self.bn = nn.BatchNorm1d(3).train()
        self.seen = 0

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        if self.seen == 7:
            self.bn.eval()
        return self.bn(x)


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="module", backends="pt2")
class NsHookExpires(nn.Module):
    """A forward hook perturbs the output for six calls, and then removes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.left = 6
        self.handle = self.net.register_forward_hook(self.perturb)

    def perturb(self, module: nn.Module, given: Any, out: Tensor) -> Tensor:
        self.left -= 1
        if self.left == 0:
            self.handle.remove()
        return out + 0.5

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="module", backends="onnx")
class NsPreHookArrives(nn.Module):
    """A pre-hook is registered by the code when a counter in a buffer reaches a value."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        if self.steps.item() == 7:
            self.net.register_forward_pre_hook(lambda module, given: (given[0] * 0.1,))
        return self.net(x)


class _Anneal(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def forward(self, weight: Tensor) -> Tensor:
        self.asked += 1
        return weight if self.asked <= 8 else weight * 0.5


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="module", backends="jit")
class NsParametrizedWeight(nn.Module):
    """A parametrization of a weight counts how often the weight was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        parametrize.register_parametrization(self.net, "weight", _Anneal())

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@hostile("A", passes=4, rec={"x": normal(1, 4)}, style="module", backends="jit")
class NsSpectralTraining(nn.Module):
    """Spectral normalisation in training: each pass moves its vectors by a power iteration."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.Linear(4, 4)
        nn.init.normal_(layer.weight)
        self.net = nn.utils.parametrizations.spectral_norm(layer).train()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@hostile(
    "A", passes=4, rec={"i": integers(0, 2, 1)}, fresh={"i": integers(0, 5, 1)}, backends="jit"
)
class NsEmbeddingMaxNorm:
    """An embedding with max_norm writes its own rows; the recorded ones are short enough."""

    def __init__(self) -> None:
        self.table = nn.Embedding(5, 3, max_norm=1.0)
        self.table.weight.data[:2] *= 0.01
        self.table.weight.data[2:] *= 9.0

    def __call__(self, i: Tensor) -> Tensor:
        before = self.table.weight.sum()
        return self.table(i) + before


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="module", backends="onnx")
class NsTargetNetwork(nn.Module):
    """A target network is loaded from the online one every sixth call."""

    def __init__(self) -> None:
        super().__init__()
        self.online = nn.Linear(3, 2)
        self.target = nn.Linear(3, 2)
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls % 6 == 0:
            self.target.load_state_dict(self.online.state_dict())
        return torch.minimum(self.online(x), self.target(x))


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="module", backends="jit")
class NsExpertTurn(nn.Module):
    """Which of two experts acts is a Python number that a counter moves."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(3, 2), nn.Linear(3, 2)])
        self.active, self.dwell = 0, 6

    def forward(self, x: Tensor) -> Tensor:
        self.dwell -= 1
        if self.dwell < 0:
            self.active, self.dwell = 1 - self.active, 6
        return self.experts[self.active](x)


@hostile("A", passes=4, rec={"g": normal(1, 3)}, backends="jit")
class NsAdamAsFilter:
    """An optimiser adapts a parameter from gradients that are given: Adam's moments are the state."""

    def __init__(self) -> None:
        self.theta = nn.Parameter(torch.zeros(1, 3))
        self.opt = torch.optim.Adam([self.theta], lr=0.1)

    def __call__(self, g: Tensor) -> Tensor:
        self.theta.grad = g.clone()
        self.opt.step()
        return self.theta.detach() + 0.1 * g


@hostile("A", passes=4, rec={"g": normal(1, 3)}, backends="jit")
class NsStepLr:
    """A learning rate falls after six steps of its scheduler; SGD with momentum adapts."""

    def __init__(self) -> None:
        self.theta = nn.Parameter(torch.zeros(1, 3))
        self.opt = torch.optim.SGD([self.theta], lr=0.1)
        self.plan = torch.optim.lr_scheduler.StepLR(self.opt, step_size=6, gamma=0.1)

    def __call__(self, g: Tensor) -> Tensor:
        self.theta.grad = g.clone()
        self.opt.step()
        self.plan.step()
        return self.theta.detach().clone()


@hostile(
    "A",
    passes=4,
    rec={"x": uniform(-0.5, 0.5, 1, 4)},
    fresh={"x": normal(1, 4, s=3.0)},
    backends="jit",
)
class NsAveragedModel:
    """A moving average of weights, updated only when an input is large."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.mean = torch.optim.swa_utils.AveragedModel(self.net)
        self.mean.update_parameters(self.net)

    def __call__(self, x: Tensor) -> Tensor:
        if bool((x.abs() > 2).any()):
            self.net.weight.data.mul_(0.5)
            self.mean.update_parameters(self.net)
        return self.mean(x)


class _Inside(nn.Module):
    """A counter in the attribute of a scripted module."""

    def __init__(self) -> None:
        super().__init__()
        self.n: int = 0

    def forward(self, x: Tensor) -> Tensor:
        self.n = self.n + 1
        if self.n > 6:
            x = x * -1.0
        return x


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsScriptedCounter:
    """A scripted module counts in an attribute of its own, where no Python is."""

    def __init__(self) -> None:
        self.inside = torch.jit.script(_Inside())

    def __call__(self, x: Tensor) -> Tensor:
        return self.inside(x) + 1


class _InsideList(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.past: list[Tensor] = [torch.zeros(1, 3)]

    def forward(self, x: Tensor) -> Tensor:
        old = self.past[max(0, len(self.past) - 6)]
        self.past.append(x)
        return x - old


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsScriptedHistory:
    """A scripted module keeps a list of past inputs, and gives the sixth last."""

    def __init__(self) -> None:
        self.inside = torch.jit.script(_InsideList())

    def __call__(self, x: Tensor) -> Tensor:
        return self.inside(x)


class _Clipped(torch.autograd.Function):
    """A function of its own with a class attribute that it counts in."""

    calls = 0

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        _Clipped.calls += 1
        return x.clamp(-1, 1) if _Clipped.calls <= 6 else x.clamp(-0.1, 0.1)


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsAutogradFunctionCount:
    """The count is an attribute of an autograd function's class, set back by the constructor."""

    def __init__(self) -> None:
        _Clipped.calls = 0

    def __call__(self, x: Tensor) -> Tensor:
        return _Clipped.apply(x)


@hostile(
    "A", passes=4, rec={"x": uniform(-1, 1, 1, 3)}, fresh={"x": normal(1, 3, s=4.0)}, backends="jit"
)
class NsObserverRange:
    """A quantisation observer widens its range; nothing beyond it arrived while recorded."""

    def __init__(self) -> None:
        self.observer = torch.ao.quantization.MinMaxObserver()
        self.observer(torch.tensor([[-1.0, 0.0, 1.0]]))

    def __call__(self, x: Tensor) -> Tensor:
        self.observer(x)
        low, high = self.observer.min_val, self.observer.max_val
        return (x - low) / (high - low)


@hostile(
    "A",
    passes=4,
    rec={"x": normal(2, 3), "done": fixed([False, False])},
    fresh={"x": normal(2, 3), "done": flags(0.25, 2)},
    style="module",
    backends="pt2",
)
class NsGruResetLoop(nn.Module):
    """A GRU whose rows are set back one by one in a Python loop over the dones."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.h = torch.zeros(2, 4)

    def forward(self, x: Tensor, done: Tensor) -> Tensor:
        for number, over in enumerate(done):
            if over:
                self.h[number].zero_()
        self.h = self.cell(x, self.h)
        return self.h.clone()


@hostile(
    "A",
    passes=4,
    rec={"x": normal(1, 3), "first": fixed([0.0])},
    fresh={"x": normal(1, 3), "first": row([1.0], [0.0], [0.0], [0.0], [0.0])},
    style="module",
    backends="onnx",
)
class NsLstmEpisodeStart(nn.Module):
    """sb3's recurrent policy: both states times one minus the start of an episode."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTMCell(3, 4)
        self.state: tuple[Tensor, Tensor] = (torch.ones(1, 4), torch.zeros(1, 4) - 0.5)

    def forward(self, x: Tensor, first: Tensor) -> Tensor:
        keep = (1.0 - first).view(-1, 1)
        self.state = self.lstm(x, tuple(part * keep for part in self.state))
        return self.state[0] * 1.0


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="module", backends="onnx")
class NsEpisodeOfSeven(nn.Module):
    """The code ends an episode after seven ticks by itself and sets its buffer back."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("acc", torch.zeros(1, 3))
        self.register_buffer("length", torch.zeros(1, dtype=torch.int32))

    def forward(self, x: Tensor) -> Tensor:
        self.acc += x
        self.length += 1
        out = self.acc.clone()
        over = self.length >= 7
        self.acc[over] = 0.0
        self.length[over] = 0
        return out


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="module", backends="pt2")
class NsBufferAgain(nn.Module):
    """A buffer is registered again under its name, and a second one is deleted when it is used up."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("prior", torch.ones(1, 3))
        self.n = 0

    def forward(self, x: Tensor) -> Tensor:
        y = x - self._buffers.get("prior", torch.zeros(1, 3))
        self.n += 1
        if self.n == 6:
            del self.prior
        return y


@hostile("A", passes=4, rec={"x": normal(1, 3)}, style="module", backends="jit")
class NsFunctionalWeights(nn.Module):
    """functional_call with a dict of weights that is exchanged after six ticks."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 2)
        first = {name: value.detach().clone() for name, value in self.net.named_parameters()}
        second = {name: value * -1 for name, value in first.items()}
        self.sets = [(6, first), (99, second)]

    def forward(self, x: Tensor) -> Tensor:
        left, weights = self.sets[0]
        self.sets[0] = (left - 1, weights)
        if left == 0:
            self.sets.pop(0)
        return torch.func.functional_call(self.net, weights, (x,))


@hostile(
    "A",
    passes=4,
    rec={"x": uniform(-0.3, 0.3, 1, 4)},
    fresh={"x": normal(1, 4, s=5.0)},
    style="module",
    backends="jit",
)
class NsDeadUnitRevived(nn.Module):
    """A bias is raised where a unit is dead, in place on the parameter; none is while recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 4)
        self.net.bias.data.fill_(1.0)
        self.net.weight.data.mul_(0.5)

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.net(x))
        self.net.bias.data.add_((y == 0).float().squeeze(0) * 0.2)
        return y


@hostile("A", passes=4, rec={"x": normal(1, 3)}, backends="jit")
class NsSnapshotRollback:
    """Every sixth tick the filter goes back to a snapshot of its whole dict, copied deeply."""

    def __init__(self) -> None:
        self.state = {"m": torch.zeros(1, 3), "v": torch.ones(1, 3)}
        self.snapshot = copy.deepcopy(self.state)
        self.k = 0

    def __call__(self, x: Tensor) -> Tensor:
        self.k += 1
        if self.k % 6 == 0:
            self.state = copy.deepcopy(self.snapshot)
        self.state["m"] = 0.8 * self.state["m"] + 0.2 * x
        self.state["v"] = self.state["v"] + x.square()
        return self.state["m"] / self.state["v"].sqrt()
