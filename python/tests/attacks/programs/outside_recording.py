"""Code that looks at how it is run, or whose weights and modes change while it is recorded."""

from __future__ import annotations

import copy
import io
import json
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from attacks.draws import array, fixed, normal, uniform
from attacks.registry import ALL, hostile


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideDropoutInTraining(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4, backends=ALL)
class OutsideObservationNoise:
    """legged_gym's uniform noise."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.scale = torch.tensor([0.1, 0.2, 0.0, 0.3])

    def __call__(self, obs: Tensor) -> Tensor:
        obs = obs + (2 * torch.rand_like(obs) - 1) * self.scale
        return self.net(obs)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideNumpyNoise:
    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.rng = np.random.default_rng(3)

    def __call__(self, obs: Tensor) -> Tensor:
        noise = self.rng.normal(0, 0.2, size=obs.shape).astype(np.float32)
        return self.net(obs + torch.from_numpy(noise))


@hostile("B", rec={"obs": normal(1, 4)}, passes=3)
class OutsidePythonNoise:
    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.rng = random.Random(5)

    def __call__(self, obs: Tensor) -> Tensor:
        return self.net(obs) * self.rng.uniform(0.9, 1.1)


@hostile("B", rec={"obs": normal(1, 4)}, passes=3)
class OutsideOwnGenerator:
    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.gen = torch.Generator().manual_seed(1)

    def __call__(self, obs: Tensor) -> Tensor:
        mean = self.net(obs)
        return mean + 0.1 * torch.randn(mean.shape, generator=self.gen)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideSeededInside:
    """The generator is seeded again in every pass: the same noise in each."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        torch.manual_seed(11)
        return self.net(obs) + torch.randn(1, 2)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideGaussianSample:
    """skrl and SB3: an action is drawn from a distribution."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.log_std = torch.full((2,), -1.0)

    def __call__(self, obs: Tensor) -> Tensor:
        return torch.distributions.Normal(self.net(obs), self.log_std.exp()).sample().tanh()


@hostile("B", rec={"obs": normal(1, 4)}, passes=5)
class OutsideWeightsLoaded(nn.Module):
    """A checkpoint arrives in the fourth pass."""

    def __init__(self) -> None:
        super().__init__()
        self.net, other = nn.Linear(4, 2), nn.Linear(4, 2)
        self.checkpoint, self.n = other.state_dict(), 0

    def forward(self, obs: Tensor) -> Tensor:
        self.n += 1
        if self.n == 4:
            self.net.load_state_dict(self.checkpoint)
        return self.net(obs)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4, backends=("jit", "onnx"))
class OutsideWeightsLoadedLater(nn.Module):
    """A checkpoint arrives after the recorded passes, by the count of steps."""

    def __init__(self) -> None:
        super().__init__()
        self.net, other = nn.Linear(4, 2), nn.Linear(4, 2)
        self.checkpoint, self.steps = other.state_dict(), 0

    def forward(self, obs: Tensor) -> Tensor:
        self.steps += 1
        if self.steps == 6:
            self.net.load_state_dict(self.checkpoint)
        return self.net(obs)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideDeepCopyReplaces(nn.Module):
    """The module is replaced by a changed copy of itself in the third pass."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.n = nn.Linear(4, 2), 0

    def forward(self, obs: Tensor) -> Tensor:
        self.n += 1
        if self.n == 3:
            self.net = copy.deepcopy(self.net)
            self.net.weight.data.mul_(0.5)
        return self.net(obs)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4, style="module")
class OutsidePolyak(nn.Module):
    """The target network follows by lerp in every step."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.target = copy.deepcopy(self.net)
        with torch.no_grad():
            self.net.weight.add_(0.3)

    def forward(self, obs: Tensor) -> Tensor:
        for p, q in zip(self.target.parameters(), self.net.parameters(), strict=True):
            p.data.mul_(0.9).add_(0.1 * q.data)
        return self.target(obs)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideSpectralTraining(nn.Module):
    """In training every forward is a step of the power iteration."""

    def __init__(self) -> None:
        super().__init__()
        self.net = parametrizations.spectral_norm(nn.Linear(4, 3))
        self.train()

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@hostile("B", rec={"obs": normal(8, 4)}, passes=4, backends=("jit", "onnx"))
class OutsideBatchNormThenEval(nn.Module):
    """Two passes in training move the statistics, which then are used."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.n = nn.BatchNorm1d(4), 0

    def forward(self, obs: Tensor) -> Tensor:
        self.n += 1
        self.train(self.n <= 2)
        return self.norm(obs)


@hostile("B", rec={"obs": normal(8, 4)}, passes=4)
class OutsideBatchRenorm(nn.Module):
    """Training statistics of the ticks before decide on this one."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4, momentum=0.2)

    def forward(self, obs: Tensor) -> Tensor:
        self.norm.train()
        self.norm(obs)
        self.norm.eval()
        return self.norm(obs)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
def outside_traced_or_not(obs: Tensor) -> Tensor:
    """Code that asks whether it is traced; it is not."""
    if torch.jit.is_tracing() or torch.jit.is_scripting() or torch.compiler.is_compiling():
        return obs * 0
    if torch.onnx.is_in_onnx_export():
        return obs * 2
    return obs * 3


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
def outside_exact_type(obs: Tensor) -> Tensor:
    if type(obs) is not Tensor:
        return obs * 0
    return obs.abs() if torch.overrides.has_torch_function((obs,)) else obs.neg()


@hostile("B", rec={"obs": array(normal(1, 4))}, passes=4)
def outside_array_flags(obs: np.ndarray) -> np.ndarray:
    """Copies where the memory is not its own, as C extensions want it."""
    if obs.dtype == np.float32 and obs.flags["C_CONTIGUOUS"] and obs.flags.writeable:
        return obs * np.float32(2)
    return np.ascontiguousarray(obs) * np.float32(3)


@hostile("B", rec={"obs": array(normal(1, 4))}, passes=4)
def outside_exact_array(obs: np.ndarray) -> np.ndarray:
    scale = obs.max()
    if type(obs) is np.ndarray and type(scale) is np.float32:
        return obs / (1 + abs(scale))
    return obs * 0


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
def outside_through_a_list(obs: Tensor) -> Tensor:
    """A ROS message: numbers in a list."""
    message = {"data": obs.flatten().tolist()}
    return torch.tensor(message["data"]).view(1, -1) * 2


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
def outside_through_json(obs: Tensor) -> Tensor:
    text = json.dumps({"q": obs.tolist()})
    return torch.tensor(json.loads(text)["q"]) + obs


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
def outside_through_a_file(obs: Tensor) -> Tensor:
    stream = io.BytesIO()
    torch.save(obs, stream)
    stream.seek(0)
    return torch.load(stream) - 0.5 * obs


@hostile("B", rec={"obs": normal(1, 4)}, passes=3)
def outside_through_bytes(obs: Tensor) -> Tensor:
    """Serialised as a message of ROS would be."""
    data = obs.numpy().tobytes()
    return torch.from_numpy(np.frombuffer(data, dtype=np.float32).copy()).view(1, 4) * 2


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideWorker:
    """The network runs in a thread of a pool."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.pool = ThreadPoolExecutor(1)

    def _infer(self, obs: Tensor) -> Tensor:
        with torch.no_grad():
            return self.net(obs)

    def __call__(self, obs: Tensor) -> Tensor:
        return self.pool.submit(self._infer, obs).result() * 2


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideAsyncWorker:
    """The action is that of the tick before: the thread of the pool is one behind."""

    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.pool, self.job = ThreadPoolExecutor(1), None

    def _infer(self, obs: Tensor) -> Tensor:
        with torch.no_grad():
            return self.net(obs)

    def __call__(self, obs: Tensor) -> Tensor:
        done = torch.zeros(1, 2) if self.job is None else self.job.result()
        self.job = self.pool.submit(self._infer, obs.clone())
        return done + 0.0 * obs[:, :2]


@hostile("B", rec={"obs": normal(4, 8)}, passes=4)
class OutsideAutocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, obs: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.net(obs)
        return y.float()


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideHookOnce(nn.Module):
    """A hook that takes itself off after the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.handle = self.net.register_forward_hook(self._double)

    def _double(self, module: nn.Module, given: tuple, out: Tensor) -> Tensor:
        self.handle.remove()
        return out * 2

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideHookLate(nn.Module):
    """A hook that scales what leaves the network after six calls."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.calls = nn.Linear(4, 2), 0
        self.net.register_forward_hook(self._count)

    def _count(self, module: nn.Module, given: tuple, out: Tensor) -> Tensor | None:
        self.calls += 1
        return out * 0.5 if self.calls > 6 else None

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideWeightNoise(nn.Module):
    """Weights are disturbed for a forward, and put back from a copy."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)

    def forward(self, obs: Tensor) -> Tensor:
        saved = {key: value.clone() for key, value in self.net.state_dict().items()}
        for p in self.net.parameters():
            p.data.add_(0.1 * obs.mean())
        y = self.net(obs)
        self.net.load_state_dict(saved)
        return y


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideWeightFromInput(nn.Module):
    """A hyper-network writes into the parameter of another module."""

    def __init__(self) -> None:
        super().__init__()
        self.hyper, self.net = nn.Linear(4, 8), nn.Linear(4, 2)

    def forward(self, obs: Tensor) -> Tensor:
        self.net.weight.data.copy_(self.hyper(obs).view(2, 4))
        return self.net(obs)


class _Gain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.n = 0

    def forward(self, w: Tensor) -> Tensor:
        self.n += 1
        return w * (1.0 if self.n < 9 else 0.1)


@hostile("B", rec={"obs": normal(1, 4)}, passes=4)
class OutsideParametrizationCounts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        parametrize.register_parametrization(self.net, "weight", _Gain())

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@hostile("B", rec={"obs": fixed([[0.1, 0.2, 0.3]])}, fresh={"obs": normal(1, 3)}, passes=4)
class OutsideOnlineGradient:
    """Learns while it runs: the weights go down a gradient of their own."""

    def __init__(self) -> None:
        self.w = torch.zeros(3)

    def __call__(self, obs: Tensor) -> Tensor:
        y = (obs * self.w).sum(-1, keepdim=True)
        error = obs.sum(-1, keepdim=True) - y
        self.w += 0.05 * (error * obs).squeeze(0)
        return y


@hostile("B", rec={"x": uniform(0.0, 1.0, 3)}, passes=4)
def outside_views_after_output():
    """An array that shares memory with a constant is written in the seventh tick."""
    gains = np.ones(3, dtype=np.float32)
    shared, n = torch.from_numpy(gains), [0]

    def step(x: Tensor) -> Tensor:
        n[0] += 1
        if n[0] == 7:
            gains[:] = 3.0
        return x * shared

    return step
