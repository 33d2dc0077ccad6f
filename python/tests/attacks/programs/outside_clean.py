"""Code without memory: observations, heads, post-processing, NumPy, odd but harmless habits."""

from __future__ import annotations

import copy
import functools
import logging
import math
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from attacks.draws import array, double, flags, integers, normal, uniform
from attacks.registry import ALL, clean

_log = logging.getLogger(__name__)


@torch.jit.script
def _rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    w, xyz = q[:, 3:4], q[:, :3]
    t = torch.cross(xyz, v, dim=-1) * 2.0
    return v - w * t + torch.cross(xyz, t, dim=-1)


@clean("H", rec={"quat": normal(2, 4), "vel": normal(2, 3)}, backends=ALL)
def outside_projected_gravity(quat: Tensor, vel: Tensor) -> dict:
    """Isaac Gym's scripted helper on a normalised quaternion."""
    quat = F.normalize(quat + 0.1, dim=-1)
    gravity = torch.tensor([[0.0, 0.0, -1.0]]).repeat(2, 1)
    return {"gravity": _rotate_inverse(quat, gravity), "vel": _rotate_inverse(quat, vel)}


@clean("H", rec={"policy": normal(1, 4), "critic": normal(1, 6)}, passes=3)
class OutsideActorCritic(nn.Module):
    """rsl_rl's act_inference, with an encoder for privileged observations."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(6, 4), nn.ELU())
        self.actor = nn.Sequential(nn.Linear(8, 16), nn.ELU(), nn.Linear(16, 3))
        self.std = nn.Parameter(torch.ones(3))

    def forward(self, policy: Tensor, critic: Tensor) -> Tensor:
        latent = self.encoder(critic)
        return self.actor(torch.cat([policy, latent], dim=-1))


@clean("H", rec={"obs": normal(1, 4)}, backends=("jit", "onnx"))
class OutsideDistributionMode(nn.Module):
    """SB3's deterministic action of a squashed Gaussian, scaled to the action space."""

    def __init__(self) -> None:
        super().__init__()
        self.mu, self.log_std = nn.Linear(4, 2), nn.Parameter(torch.zeros(2))
        self.low, self.high = np.array([-1.0, -2.0], np.float32), np.array([1.0, 2.0], np.float32)

    def forward(self, obs: Tensor) -> Tensor:
        dist = torch.distributions.Normal(self.mu(obs), self.log_std.exp(), validate_args=False)
        scaled = torch.tanh(dist.mean)
        low, high = torch.as_tensor(self.low), torch.as_tensor(self.high)
        return low + 0.5 * (scaled + 1.0) * (high - low)


@clean("H", rec={"obs": array(normal(1, 4))}, passes=4)
class OutsideVecNormalizeFrozen:
    """SB3's VecNormalize with training off, then a clip in NumPy."""

    def __init__(self) -> None:
        self.mean, self.var = np.array([0.1, 0.2, 0.3, 0.4]), np.array([1.0, 2.0, 0.5, 1.5])

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        scaled = (obs - self.mean) / np.sqrt(self.var + 1e-8)
        return np.clip(scaled, -10.0, 10.0).astype(np.float32)


@clean("H", rec={"scan": array(uniform(0.1, 10.0, 36))})
def outside_lidar_sectors(scan: np.ndarray) -> np.ndarray:
    """Nearest return in each of six sectors, as inverse distance."""
    clipped = np.clip(np.nan_to_num(scan, nan=10.0), 0.1, 10.0)
    nearest = clipped.reshape(6, 6).min(axis=1)
    return (1.0 / nearest).astype(np.float32)


@clean("H", rec={"a": array(normal(3)), "b": array(normal(3))}, backends=("jit", "onnx"))
def outside_numpy_geometry(a: np.ndarray, b: np.ndarray) -> dict:
    cross = np.cross(a, b)
    angle = np.arctan2(np.linalg.norm(cross), np.dot(a, b))
    return {"axis": cross / (np.linalg.norm(cross) + 1e-6), "angle": np.stack([angle, angle * 2])}


@clean("H", rec={"q": array(normal(6))})
def outside_numpy_kinematics(q: np.ndarray) -> np.ndarray:
    """Forward kinematics of a chain, with homogeneous matrices in NumPy."""
    pose = np.eye(4, dtype=np.float32)
    for angle, length in zip(q, (0.1, 0.2, 0.3, 0.2, 0.1, 0.05), strict=True):
        c, s = np.cos(angle), np.sin(angle)
        link = np.eye(4, dtype=np.float32)
        link[0, 0], link[0, 1], link[1, 0], link[1, 1] = c, -s, s, c
        link[0, 3] = length
        pose = pose @ link
    return pose[:3, 3]


@clean(
    "H", rec={"image": integers(0, 256, 1, 16, 16, 3, dtype=torch.uint8)}, backends=("jit", "onnx")
)
class OutsideCamera(nn.Module):
    """A camera's picture: to float, to channels first, normalised, encoded."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
            nn.Linear(16, 3),
        )
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1))

    def forward(self, image: Tensor) -> Tensor:
        x = image.permute(0, 3, 1, 2).float() / 255.0
        return self.net((x - self.mean) / self.std)


@clean("H", rec={"obs": normal(2, 4)}, passes=3)
class OutsideWeightNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = parametrizations.weight_norm(nn.Linear(4, 3))
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("H", rec={"obs": normal(2, 4)}, passes=4, backends=ALL)
class OutsideSpectralEval(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(parametrizations.spectral_norm(nn.Linear(4, 5)), nn.Tanh())
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("H", rec={"obs": normal(2, 4)}, passes=3)
class OutsideOldSpectralEval(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.utils.spectral_norm(nn.Linear(4, 5))
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("H", rec={"obs": normal(8, 4)}, passes=3)
class OutsideBatchStatistics(nn.Module):
    """Batch normalisation left in training: the output is about this batch alone."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)

    def forward(self, obs: Tensor) -> Tensor:
        return self.norm(obs)


@clean("B", rec={"obs": normal(1, 4)}, passes=3)
class OutsideInferenceInside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 2))

    @torch.inference_mode()
    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("B", rec={"obs": normal(1, 4)}, passes=4, context="grad")
class OutsideGradientsOn(nn.Module):
    """Nobody turned gradients off."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 8), nn.Mish(), nn.Linear(8, 2))

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("B", rec={"obs": normal(1, 4)}, passes=3)
def outside_compiled():
    """A function that was given to torch.compile."""
    net = nn.Linear(4, 2)

    @torch.compile(backend="eager")
    def step(obs: Tensor) -> Tensor:
        return torch.tanh(net(obs)) * 2

    return step


@clean("B", rec={"obs": normal(3, 4)}, passes=3)
def outside_vmap():
    w = torch.randn(4, 2)
    return lambda obs: torch.func.vmap(lambda row: torch.tanh(row @ w))(obs)


@clean("B", rec={"obs": normal(3, 4)}, passes=3)
class OutsideFunctionalCall:
    def __init__(self) -> None:
        self.net = nn.Linear(4, 2)
        self.params = {k: v.detach() * 0.5 for k, v in self.net.named_parameters()}

    def __call__(self, obs: Tensor) -> Tensor:
        return torch.func.functional_call(self.net, self.params, (obs,))


@clean("B", rec={"obs": normal(3, 4)}, passes=4)
class OutsideEnsemble:
    """Copies of one network, each disturbed once, and their mean and spread."""

    def __init__(self) -> None:
        base = nn.Linear(4, 2)
        self.members = [copy.deepcopy(base) for _ in range(3)]
        with torch.no_grad():
            for i, member in enumerate(self.members):
                member.weight.add_(0.1 * i)

    def __call__(self, obs: Tensor) -> dict:
        votes = torch.stack([m(obs) for m in self.members])
        return {"mean": votes.mean(0), "spread": votes.std(0)}


@clean("B", rec={"obs": normal(1, 4)}, passes=3)
class OutsideScaledByHook(nn.Module):
    """A hook scales what leaves a layer, a pre-hook what goes in."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.net.register_forward_hook(lambda m, given, out: out * 0.5)
        self.net.register_forward_pre_hook(lambda m, given: (given[0].clamp(-2, 2),))

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@clean("H", rec={"x": normal(1, 4)}, backends=ALL)
def outside_input_clamped(x: Tensor) -> Tensor:
    """The input is clamped and scaled in place."""
    x.clamp_(-1.0, 1.0).mul_(2.0)
    x[:, 0] = 0.0
    return x + 1


@clean("H", rec={"x": normal(2, 6)})
def outside_late_view(x: Tensor) -> dict:
    """A view is taken, then what it looks at is written."""
    legs, arms = x[:, :3], x[:, 3:]
    x.mul_(2.0)
    arms.sub_(legs)
    return {"legs": legs, "arms": arms, "all": x}


@clean("G", rec={"x": normal(1, 3)})
def outside_echo(x: Tensor) -> dict:
    """What goes in is given out as it is, and once more."""
    return {"x_out": x, "again": x, "head": x[:, :1]}


@clean("G", rec={"x": normal(1, 4)}, backends=ALL)
def outside_same_twice(x: Tensor) -> dict:
    y = torch.tanh(x)
    return {"target": y, "log": y, "legs": y[:, :2], "flat": y.view(-1)}


@clean("G", rec={"x": normal(2, 4)})
def outside_nested_outputs(x: Tensor) -> dict:
    left, right = x.chunk(2, dim=-1)
    return {"arms": {"left": left * 2, "right": [right, right + 1]}, "pair": (x.sum(), x.mean(0))}


@clean("G", rec={"obs": normal(1, 3)}, backends=("jit", "onnx"))
class OutsideGainsToo(nn.Module):
    """Gains that never change are given out beside the targets."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.kp = nn.Linear(3, 2), torch.full((1, 2), 20.0)

    def forward(self, obs: Tensor) -> dict:
        return {"target": self.net(obs), "kp": self.kp, "kd": torch.full((1, 2), 0.5)}


@clean("G", rec={"x": normal(3, 4)})
def outside_odd_layouts(x: Tensor) -> dict:
    return {"t": x.t(), "wide": x[:1].expand(2, 4), "every": x[:, ::2], "flipped": x.flip(1)}


@clean("G", rec={"obs": normal(1, 5)}, backends=ALL)
class OutsideDiscrete(nn.Module):
    """A discrete head: index, whether it is sure, and the logits in double."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(5, 3)

    def forward(self, obs: Tensor) -> dict:
        logits = self.net(obs)
        best = logits.argmax(-1)
        return {
            "action": best,
            "sure": logits.softmax(-1).max(-1).values > 0.5,
            "q": logits.double(),
        }


@clean("H", rec={"heights": normal(1, 1, 8, 8), "at": uniform(-0.3, 0.3, 1, 5, 2)})
def outside_height_samples(heights: Tensor, at: Tensor) -> Tensor:
    """Heights at points around the robot, by bilinear interpolation."""
    grid = at.clamp(-0.9, 0.9).unsqueeze(1)
    return F.grid_sample(heights, grid, align_corners=False, padding_mode="border").flatten()


@clean("H", rec={"tokens": normal(2, 5, 8), "padded": flags(0.2, 2, 5)}, passes=3)
class OutsideAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.eval()

    def forward(self, tokens: Tensor, padded: Tensor) -> Tensor:
        padded = padded.clone()
        padded[:, 0] = False
        return self.encoder(tokens, src_key_padding_mask=padded)[:, 0]


@clean("H", rec={"q": normal(1, 3), "dq": normal(1, 3)})
def outside_substeps(q: Tensor, dq: Tensor) -> dict:
    """legged_gym's decimation: four substeps of a spring inside of a tick."""
    target = torch.tanh(q) * 0.5
    for _ in range(4):
        torque = torch.clip(20.0 * (target - q) - 0.5 * dq, -30.0, 30.0)
        dq = dq + 0.005 * torque
        q = q + 0.005 * dq
    return {"q": q, "dq": dq, "torque": torque}


@clean("H", rec={"A": normal(3, 3), "b": normal(3)})
def outside_least_squares(A: Tensor, b: Tensor) -> Tensor:  # noqa: N803
    """Damped least squares for inverse kinematics."""
    jjt = A @ A.T + 0.5 * torch.eye(3)
    return A.T @ torch.linalg.solve(jjt, b)


@clean("H", rec={"x": normal(4)}, passes=3)
class OutsideRiccati:
    """The gain of an LQR, by a recursion over constants, in every tick anew."""

    def __init__(self) -> None:
        self.A = torch.tensor([[1.0, 0.1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0.1], [0, 0, 0, 1]])
        self.B = torch.tensor([[0.0, 0], [0.1, 0], [0, 0], [0, 0.1]])

    def __call__(self, x: Tensor) -> Tensor:
        P = torch.eye(4)
        for _ in range(5):
            S = torch.eye(2) + self.B.T @ P @ self.B
            K = torch.linalg.solve(S, self.B.T @ P @ self.A)
            P = torch.eye(4) + self.A.T @ P @ (self.A - self.B @ K)
        return -(K @ x)


class _Terms:
    """Isaac Lab's observation manager: terms by name, with scale and clip."""

    def __init__(self) -> None:
        self.terms = OrderedDict(
            base=(lambda env: env["vel"], {"scale": 2.0, "clip": None}),
            command=(lambda env: env["cmd"], {"scale": (2.0, 2.0, 0.25), "clip": (-1.0, 1.0)}),
            height=(lambda env: env["vel"][:, 2:] * 5, {"scale": None, "clip": (-1.0, 1.0)}),
        )

    def compute(self, env: dict[str, Any]) -> Tensor:
        parts = []
        for function, cfg in self.terms.values():
            value = function(env).clone()
            if cfg["clip"]:
                value = value.clip_(*cfg["clip"])
            if cfg["scale"] is not None:
                value = value.mul_(torch.tensor(cfg["scale"]))
            parts.append(value)
        return torch.cat(parts, dim=-1)


@clean("H", rec={"vel": normal(2, 3), "cmd": normal(2, 3)}, passes=5, backends=ALL)
def outside_observation_manager():
    manager = _Terms()
    return lambda vel, cmd: manager.compute({"vel": vel, "cmd": cmd})


@clean("H", rec={"obs": normal(1, 3)}, passes=4)
class OutsideMetrics(nn.Module):
    """Logs its norm, keeps the highest for a report, and counts its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self.calls, self.highest = nn.Linear(3, 2), 0, 0.0
        self.extras: dict[str, float] = {}

    def forward(self, obs: Tensor) -> Tensor:
        action = self.net(obs)
        self.calls += 1
        self.extras["norm"] = action.norm().item()
        self.highest = max(self.highest, self.extras["norm"])
        if self.calls % 2 == 0:
            _log.info("step %d: norm %.3f", self.calls, self.extras["norm"])
        return action


@clean("H", rec={"obs": normal(1, 3)}, passes=4)
class OutsideCachedConstants:
    """Constants that the first tick makes and all later ones use."""

    @functools.cached_property
    def basis(self) -> Tensor:
        return torch.stack([torch.linspace(0, 1, 3) ** k for k in range(3)])

    @staticmethod
    @functools.lru_cache
    def window(n: int) -> Tensor:
        return torch.hann_window(n + 2)[1:-1]

    def __call__(self, obs: Tensor) -> Tensor:
        return (obs * self.window(3)) @ self.basis


@clean("H", rec={"obs": normal(1, 3)}, passes=4, style="method")
class OutsideKeywordNode:
    """A method as the node, which calls a function with keywords and a config."""

    def __init__(self) -> None:
        self.cfg = {"scale": 0.25, "offset": torch.tensor([0.1, 0.2, 0.3]), "clip": True}

    @staticmethod
    def _process(action: Tensor, *, scale: float, offset: Tensor, clip: bool = False) -> Tensor:
        action = action.clamp(-1, 1) if clip else action
        return action * scale + offset

    def step(self, obs: Tensor) -> Tensor:
        target = self._process(obs, **self.cfg)
        return target


@clean("H", rec={"x": double(normal(1, 4))}, backends=("jit", "pt2"))
def outside_spectrum(x: Tensor) -> Tensor:
    return torch.fft.rfft(x).abs()


@clean("H", rec={"points": normal(12, 3), "count": integers(3, 12, 1)})
def outside_masked_centroid(points: Tensor, count: Tensor) -> Tensor:
    """The mean of the first `count` points, with a mask instead of a slice."""
    mask = (torch.arange(12) < count).float().unsqueeze(-1)
    return (points * mask).sum(0) / mask.sum()


@clean("H", rec={"q": normal(1, 4), "mode": integers(0, 3, 1)})
class OutsideModes(nn.Module):
    """One head for each mode, picked by a gather."""

    def __init__(self) -> None:
        super().__init__()
        self.heads = nn.ModuleList(nn.Linear(4, 2) for _ in range(3))

    def forward(self, q: Tensor, mode: Tensor) -> Tensor:
        every = torch.stack([head(q) for head in self.heads], dim=1)
        return every.gather(1, mode.view(1, 1, 1).expand(1, 1, 2)).squeeze(1)


@clean("H", rec={"yaw": uniform(-4.0, 4.0, 3)})
def outside_wrap_to_pi(yaw: Tensor) -> Tensor:
    """Isaac Lab's wrap, with its corner at pi."""
    wrapped = (yaw + math.pi) % (2 * math.pi)
    return torch.where((wrapped == 0) & (yaw > 0), math.pi, wrapped - math.pi)
