"""Policies, recurrent nets, normalisers, images and what stands around them, all of it clean."""

from __future__ import annotations

import abc
import copy
import functools
import io
import json
import logging
import math
import os
import random
import sys
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Independent, Normal
from veracity import annotate

from attacks.draws import array, by_tick, flags, integers, normal, uniform
from attacks.registry import clean

log = logging.getLogger(__name__)


def set_seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


def get_activation(name: str) -> nn.Module:
    return {"elu": nn.ELU, "relu": nn.ReLU, "tanh": nn.Tanh, "silu": nn.SiLU}[name]()


def make_mlp(sizes: list[int], activation: str = "elu") -> nn.Sequential:
    layers: list[nn.Module] = []
    for fan_in, fan_out in zip(sizes[:-2], sizes[1:-1]):
        layers += [nn.Linear(fan_in, fan_out), get_activation(activation)]
    return nn.Sequential(*layers, nn.Linear(sizes[-2], sizes[-1]))


# --- rsl_rl ---------------------------------------------------------------------------------------


class FcEmpiricalNormalization(nn.Module):
    """rsl_rl's normaliser."""

    def __init__(self, shape: int, eps: float = 1e-2, until: int | None = None) -> None:
        super().__init__()
        self.eps, self.until = eps, until
        self.register_buffer("_mean", torch.zeros(shape).unsqueeze(0))
        self.register_buffer("_var", torch.ones(shape).unsqueeze(0))
        self.register_buffer("_std", torch.ones(shape).unsqueeze(0))
        self.register_buffer("count", torch.tensor(0, dtype=torch.long))

    @property
    def mean(self) -> Tensor:
        return self._mean.squeeze(0).clone()

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.update(x)
        return (x - self._mean) / (self._std + self.eps)

    @torch.jit.unused
    def update(self, x: Tensor) -> None:
        if self.until is not None and self.count >= self.until:
            return
        self.count += x.shape[0]
        rate = x.shape[0] / self.count
        delta = x.mean(0, keepdim=True) - self._mean
        self._mean += rate * delta
        self._var += rate * (x.var(0, unbiased=False, keepdim=True) - self._var)
        self._std = torch.sqrt(self._var)


class FcActorCritic(nn.Module):
    """rsl_rl's actor and critic with a distribution."""

    def __init__(self, num_obs: int, num_actions: int) -> None:
        super().__init__()
        self.actor = make_mlp([num_obs, 64, 32, num_actions])
        self.critic = make_mlp([num_obs, 64, 1])
        self.std = nn.Parameter(0.8 * torch.ones(num_actions))
        self.distribution: Normal | None = None
        Normal.set_default_validate_args(False)

    def update_distribution(self, obs: Tensor) -> None:
        mean = self.actor(obs)
        self.distribution = Normal(mean, self.std.expand_as(mean))

    @property
    def action_mean(self) -> Tensor:
        return self.distribution.mean

    def act_inference(self, obs: Tensor) -> Tensor:
        return self.actor(obs)

    def evaluate(self, obs: Tensor) -> Tensor:
        return self.critic(obs)


@clean("H", passes=3, rec={"obs": normal(4, 24)}, backends=("jit", "onnx"))
class FcRslRlInference:
    """`get_inference_policy` with a normaliser that was trained before, in eval mode."""

    def __init__(self) -> None:
        set_seed(1)
        self.normalizer = FcEmpiricalNormalization(24)
        for _ in range(20):
            self.normalizer(torch.randn(32, 24) * 2.0 + 0.5)
        self.policy = FcActorCritic(24, 6)
        self.policy.eval()
        self.normalizer.eval()

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        obs = self.normalizer(obs)
        self.policy.update_distribution(obs)
        return {"actions": self.policy.action_mean, "values": self.policy.evaluate(obs)}


class FcTorchVecEnv:
    """A vectorised reach task in torch."""

    def __init__(self, num_envs: int) -> None:
        self.num_envs = num_envs
        self.generator = torch.Generator().manual_seed(8)
        self.reset()

    def reset(self) -> Tensor:
        self.pos = torch.zeros(self.num_envs, 3)
        self.goal = torch.rand(self.num_envs, 3, generator=self.generator) - 0.5
        self.length = torch.zeros(self.num_envs, dtype=torch.long)
        return self.observe()

    def observe(self) -> Tensor:
        return torch.cat([self.pos, self.goal, self.goal - self.pos], dim=-1)

    def step(self, actions: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        self.pos = self.pos + 0.05 * actions.clamp(-1, 1)
        distance = (self.goal - self.pos).norm(dim=-1)
        self.length += 1
        dones = (distance < 0.02) | (self.length > 100)
        self.pos[dones] = 0.0
        return self.observe(), -distance, dones, {"time_outs": self.length > 100}


@clean(
    "H",
    style="own",
    passes=6,
    rec={"unused/seed": normal(1)},
    fresh={"policy/obs": normal(2, 9)},
    backends=("jit", "pt2"),
)
class FcOwnRslRlPlay:
    """play.py: a vectorised environment in torch, rewards and lengths in lists, resets at start."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(2)
        self.backend = backend
        self.env = FcTorchVecEnv(num_envs=2)
        self.model = FcActorCritic(9, 3).eval()
        self.obs = self.env.reset()
        self.rewards: list[float] = []
        self.lengths = deque(maxlen=100)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        with torch.inference_mode():
            obs = given.get("policy/obs", self.obs)
            obs = annotate.input_tensors("policy", {"obs": obs})
            actions = self.model.act_inference(obs)
            annotate.output_tensors("policy", {"actions": actions}, export_with=self.backend)
            self.obs, reward, dones, infos = self.env.step(actions)
        self.rewards.append(reward.mean().item())
        if dones.any():
            self.lengths.extend(self.env.length[dones].tolist())
        log.info("reward %.3f, time-outs %d", self.rewards[-1], infos["time_outs"].sum().item())
        return {"policy/actions": actions}


class FcMemory(nn.Module):
    """rsl_rl's memory: the hidden state starts as None."""

    def __init__(self, input_size: int, kind: str = "lstm", hidden_size: int = 16) -> None:
        super().__init__()
        cls = nn.GRU if kind == "gru" else nn.LSTM
        self.rnn = cls(input_size=input_size, hidden_size=hidden_size, num_layers=1)
        self.hidden_states = None

    def forward(self, x: Tensor) -> Tensor:
        out, self.hidden_states = self.rnn(x.unsqueeze(0), self.hidden_states)
        return out

    def reset(self) -> None:
        self.hidden_states = None


@clean("A", passes=5, rec={"obs": normal(1, 8)}, backends=("jit", "onnx"))
class FcRslRlRecurrentLstm:
    """ActorCriticRecurrent whose hidden state starts as zeros of the first reset."""

    def __init__(self) -> None:
        set_seed(3)
        self.memory = FcMemory(8, "lstm")
        self.memory.hidden_states = (torch.zeros(1, 1, 16), torch.zeros(1, 1, 16))
        self.actor = make_mlp([16, 32, 4]).eval()

    def __call__(self, obs: Tensor) -> Tensor:
        return self.actor(self.memory(obs).squeeze(0))


@clean("H", style="own", passes=5, rec={"policy/obs": normal(1, 8)}, backends="jit")
class FcOwnGruNoneStart:
    """The same with a GRU and `None` at the start, reset before the loop."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(4)
        self.backend = backend
        self.memory = FcMemory(8, "gru").eval()
        self.actor = make_mlp([16, 32, 4]).eval()
        self.memory.reset()

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("policy", {"obs": given["policy/obs"]})
        action = self.actor(self.memory(obs).squeeze(0))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


# --- skrl, Stable-Baselines3, rl_games ------------------------------------------------------------


class FcGaussianMixin:
    """skrl's mixin."""

    def __init__(self, clip_actions: bool = True, min_log_std: float = -20.0) -> None:
        self._clip = clip_actions
        self._min_log_std, self._max_log_std = min_log_std, 2.0
        self._low, self._high = torch.tensor([-1.0] * 3), torch.tensor([1.0] * 3)

    def act(self, inputs: Mapping[str, Tensor], role: str = "") -> tuple[Tensor, dict[str, Any]]:
        mean, log_std, outputs = self.compute(inputs, role)
        log_std = torch.clamp(log_std, self._min_log_std, self._max_log_std)
        distribution = Independent(Normal(mean, log_std.exp()), 1)
        actions = distribution.mean
        if self._clip:
            actions = torch.clamp(actions, min=self._low, max=self._high)
        outputs["mean_actions"] = mean
        outputs["log_prob"] = distribution.log_prob(actions)
        return actions, outputs


class FcSkrlPolicy(FcGaussianMixin, nn.Module):
    def __init__(self) -> None:
        nn.Module.__init__(self)
        FcGaussianMixin.__init__(self)
        self.net = make_mlp([10, 32, 3], "elu")
        self.log_std_parameter = nn.Parameter(torch.full((3,), -0.5))

    def compute(self, inputs: Mapping[str, Tensor], role: str) -> tuple[Tensor, Tensor, dict]:
        return self.net(inputs["states"]), self.log_std_parameter, {}


class FcRunningStandardScaler(nn.Module):
    """skrl's preprocessor."""

    def __init__(self, size: int, epsilon: float = 1e-8, clip: float = 5.0) -> None:
        super().__init__()
        self.epsilon, self.clip_threshold = epsilon, clip
        self.register_buffer("running_mean", torch.linspace(-0.2, 0.2, size, dtype=torch.float64))
        self.register_buffer("running_variance", torch.ones(size, dtype=torch.float64) * 1.5)

    def forward(self, x: Tensor, train: bool = False, inverse: bool = False) -> Tensor:
        mean, std = self.running_mean.float(), torch.sqrt(self.running_variance.float())
        if inverse:
            return std * torch.clamp(x, -self.clip_threshold, self.clip_threshold) + mean
        return torch.clamp((x - mean) / (std + self.epsilon), -5.0, 5.0)


@clean("H", style="own", passes=3, rec={"agent/states": normal(2, 10)}, backends="jit")
class FcOwnSkrlAgent:
    """skrl's evaluation: the scaler, `act` with its log-probability, and tracked data."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(5)
        self.backend = backend
        self.models = {"policy": FcSkrlPolicy()}
        self.scaler = FcRunningStandardScaler(10)
        self.tracking: dict[str, list[float]] = {}
        for model in self.models.values():
            model.eval()

    def track_data(self, tag: str, value: float) -> None:
        self.tracking.setdefault(tag, []).append(value)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        with torch.no_grad():
            states = annotate.input_tensors("agent", {"states": given["agent/states"]})
            actions, outputs = self.models["policy"].act({"states": self.scaler(states)}, "policy")
            annotate.output_tensors("agent", {"actions": actions}, export_with=self.backend)
        self.track_data("Policy / Standard deviation", outputs["mean_actions"].std().item())
        self.track_data("Policy / Log prob", outputs["log_prob"].mean().item())
        return {"agent/actions": actions}


class FcSb3Policy(nn.Module):
    """The parts of an SB3 actor-critic policy."""

    def __init__(self, obs_dim: int, act_dim: int) -> None:
        super().__init__()
        self.features_extractor = nn.Flatten()
        self.policy_net = nn.Sequential(
            nn.Linear(obs_dim, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh()
        )
        self.action_net = nn.Linear(32, act_dim)
        self.apply(functools.partial(self.init_weights, gain=math.sqrt(2)))
        self.low = np.array([-2.0, -1.0], dtype=np.float32)
        self.high = np.array([2.0, 1.0], dtype=np.float32)

    @staticmethod
    def init_weights(module: nn.Module, gain: float = 1.0) -> None:
        if isinstance(module, (nn.Linear, nn.Conv2d)):
            nn.init.orthogonal_(module.weight, gain=gain)
            module.bias.data.fill_(0.01)

    def obs_to_tensor(self, observation: np.ndarray) -> tuple[Tensor, bool]:
        vectorized = observation.ndim == 2
        observation = observation.reshape((-1, 6))
        return torch.as_tensor(observation, dtype=torch.float32), vectorized

    def predict(self, observation: np.ndarray) -> np.ndarray:
        self.train(False)
        obs, vectorized = self.obs_to_tensor(observation)
        with torch.no_grad():
            actions = self.action_net(self.policy_net(self.features_extractor(obs)))
        actions = actions.cpu().numpy().reshape((-1, 2))
        actions = np.clip(actions, self.low, self.high)
        return actions if vectorized else actions.squeeze(axis=0)


@clean(
    "H",
    style="own",
    passes=4,
    rec={"sb3/observation": array(normal(6))},
    backends=("jit", "onnx"),
)
class FcOwnSb3Predict:
    """`model.predict(obs, deterministic=True)` behind VecNormalize, NumPy in and NumPy out."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(6)
        self.backend = backend
        self.policy = FcSb3Policy(6, 2)
        rng = np.random.default_rng(0)
        data = rng.normal(0.3, 1.7, size=(500, 6))
        self.mean, self.var = data.mean(axis=0), data.var(axis=0)
        self.clip_obs, self.epsilon = 10.0, 1e-8
        self.episode_rewards: list[float] = []

    def normalize_obs(self, obs: np.ndarray) -> np.ndarray:
        scaled = (obs - self.mean) / np.sqrt(self.var + self.epsilon)
        return np.clip(scaled, -self.clip_obs, self.clip_obs).astype(np.float32)

    def __call__(self, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        observation = annotate.input_tensors("sb3", {"observation": given["sb3/observation"]})
        action = self.policy.predict(self.normalize_obs(observation))
        annotate.output_tensors("sb3", {"action": action}, export_with=self.backend)
        self.episode_rewards.append(-float(np.square(action).sum()))
        return {"sb3/action": action}


class FcRunningMeanStd(nn.Module):
    """rl_games' normaliser with float64 statistics."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.linspace(-1, 1, size, dtype=torch.float64))
        self.register_buffer("running_var", torch.linspace(0.5, 2, size, dtype=torch.float64))

    def forward(self, x: Tensor, denorm: bool = False) -> Tensor:
        mean, var = self.running_mean, self.running_var
        if denorm:
            y = torch.clamp(x, min=-5.0, max=5.0)
            return torch.sqrt(var.float() + 1e-5) * y + mean.float()
        y = (x - mean.float()) / torch.sqrt(var.float() + 1e-5)
        return torch.clamp(y, min=-5.0, max=5.0)


@clean("H", style="own", passes=5, rec={"player/obs": normal(3, 12)}, backends="jit")
class FcOwnRlGamesPlayer:
    """PpoPlayerContinuous with an LSTM: `self.states` is a list, actions are rescaled."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(7)
        self.backend = backend
        self.norm = FcRunningMeanStd(12).eval()
        self.rnn = nn.LSTM(12, 20, batch_first=True).eval()
        self.mu = nn.Linear(20, 5).eval()
        self.actions_low, self.actions_high = -0.8 * torch.ones(5), 1.2 * torch.ones(5)
        self.states = self.init_rnn()

    def init_rnn(self) -> list[Tensor]:
        return [torch.zeros(1, 3, 20), torch.zeros(1, 3, 20)]

    @staticmethod
    def rescale_actions(low: Tensor, high: Tensor, action: Tensor) -> Tensor:
        return action * (high - low) / 2.0 + (high + low) / 2.0

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("player", {"obs": given["player/obs"]})
        input_dict = {"is_train": False, "obs": self.norm(obs), "rnn_states": self.states}
        with torch.no_grad():
            out, states = self.rnn(input_dict["obs"].unsqueeze(1), tuple(input_dict["rnn_states"]))
            mu = self.mu(out.squeeze(1))
        self.states = [s.detach() for s in states]
        current = torch.clamp(mu, -1.0, 1.0)
        action = self.rescale_actions(self.actions_low, self.actions_high, current)
        annotate.output_tensors("player", {"action": action}, export_with=self.backend)
        return {"player/action": action}


# --- LeRobot, robomimic, diffusion ----------------------------------------------------------------


class FcNormalizationMode(str, Enum):
    MIN_MAX = "MIN_MAX"
    MEAN_STD = "MEAN_STD"
    IDENTITY = "IDENTITY"


FC_STATS = {
    "observation.state": {"mean": [0.1, -0.2, 0.3, 0.0, 0.5, 0.2], "std": [1.0, 0.5, 2.0, 1, 1, 3]},
    "observation.environment_state": {"min": [-1.0, -1.0, 0.0], "max": [1.0, 1.0, 0.8]},
    "action": {"mean": [0.0, 0.1, 0.0, -0.4], "std": [0.4, 0.4, 0.3, 1.0]},
}


class FcNormalize(nn.Module):
    """LeRobot's normalisation by key; statistics are buffers, infinities are refused."""

    def __init__(self, modes: dict[str, FcNormalizationMode], stats: Mapping[str, Any]) -> None:
        super().__init__()
        self.modes = modes
        for key, values in stats.items():
            buffer = nn.ParameterDict(
                {k: nn.Parameter(torch.tensor(v), requires_grad=False) for k, v in values.items()}
            )
            setattr(self, "buffer_" + key.replace(".", "_"), buffer)

    @torch.no_grad()
    def forward(self, batch: dict[str, Tensor], inverse: bool = False) -> dict[str, Tensor]:
        batch = dict(batch)
        for key, mode in self.modes.items():
            if key not in batch or mode is FcNormalizationMode.IDENTITY:
                continue
            buffer = getattr(self, "buffer_" + key.replace(".", "_"))
            if mode is FcNormalizationMode.MEAN_STD:
                mean, std = buffer["mean"], buffer["std"]
                assert not torch.isinf(mean).any(), "no statistics"
                value = batch[key]
                batch[key] = value * std + mean if inverse else (value - mean) / (std + 1e-8)
            elif mode is FcNormalizationMode.MIN_MAX:
                low, high = buffer["min"], buffer["max"]
                batch[key] = (batch[key] - low) / (high - low + 1e-8) * 2 - 1
            else:
                raise ValueError(mode)
        return batch


@clean(
    "H",
    style="own",
    passes=4,
    rec={"act/state": normal(1, 6), "act/env": normal(1, 3)},
    backends="jit",
)
class FcOwnLeRobotNormalized:
    """`select_action` of a policy between Normalize and Unnormalize, with keys by the data set."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(8)
        self.backend = backend
        modes = {
            "observation.state": FcNormalizationMode.MEAN_STD,
            "observation.environment_state": FcNormalizationMode.MIN_MAX,
        }
        self.normalize_inputs = FcNormalize(modes, FC_STATS)
        self.unnormalize = FcNormalize({"action": FcNormalizationMode.MEAN_STD}, FC_STATS)
        self.model = make_mlp([9, 48, 4], "relu").eval()

    @torch.no_grad()
    def select_action(self, batch: dict[str, Tensor]) -> Tensor:
        batch = self.normalize_inputs(batch)
        features = torch.cat([v for k, v in batch.items() if k.startswith("observation.")], dim=-1)
        action = self.model(features)
        return self.unnormalize({"action": action}, inverse=True)["action"]

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        state, env = annotate.input_tensors(
            "act", {"state": given["act/state"], "env": given["act/env"]}
        )
        batch = {"observation.state": state, "observation.environment_state": env}
        action = self.select_action(batch)
        annotate.output_tensors("act", {"action": action}, export_with=self.backend)
        return {"act/action": action}


@clean("A", passes=5, rec={"obs": normal(1, 7)}, backends=("jit", "onnx"))
class FcActTemporalEnsemble:
    """ACT's temporal ensembling: running means of overlapping chunks, their counts in tensors."""

    def __init__(self, chunk: int = 5, coeff: float = 0.01) -> None:
        set_seed(9)
        self.net = make_mlp([7, 32, chunk * 2], "relu").eval()
        self.chunk = chunk
        self.weights = torch.exp(-coeff * torch.arange(chunk, dtype=torch.float32))
        self.cumulative = torch.cumsum(self.weights, dim=0)
        self.ensembled = torch.zeros(1, chunk, 2)
        self.count = torch.zeros(chunk, 1, dtype=torch.long)

    def __call__(self, obs: Tensor) -> Tensor:
        actions = self.net(obs).view(1, self.chunk, 2)
        new = self.weights[self.count.clamp(max=self.chunk - 1)]
        old = torch.where(self.count > 0, self.cumulative[(self.count - 1).clamp(min=0)], 0.0)
        mixed = (self.ensembled * old + actions * new) / (old + new)
        count = (self.count + 1).clamp(max=self.chunk - 1)
        action = mixed[:, 0]
        self.ensembled = torch.cat([mixed[:, 1:], torch.zeros(1, 1, 2)], dim=1)
        self.count = torch.cat([count[1:], torch.zeros_like(count[:1])])
        return action


@clean("H", style="own", passes=6, rec={"chunked/obs": normal(1, 6)}, backends=("jit", "onnx"))
class FcOwnActionChunk:
    """A chunk of four actions is kept in a tensor; a new one replaces it when it is used up."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(10)
        self.backend, self.horizon = backend, 4
        self.net = make_mlp([6, 32, 4 * 3], "silu").eval()
        self.chunk = torch.zeros(1, 4, 3)
        self.cursor = torch.zeros(1, dtype=torch.int64)

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("chunked", {"obs": given["chunked/obs"]})
        fresh = self.net(obs).view(1, self.horizon, 3)
        self.chunk = torch.where((self.cursor == 0).view(1, 1, 1), fresh, self.chunk)
        action = self.chunk.index_select(1, self.cursor).squeeze(1)
        self.cursor = (self.cursor + 1) % self.horizon
        annotate.output_tensors("chunked", {"action": action}, export_with=self.backend)
        return {"chunked/action": action}


class FcObsEncoder(nn.Module):
    """robomimic's group encoder: one net by modality, concatenated in the order of the keys."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.shapes = OrderedDict(sorted(shapes.items()))
        self.nets = nn.ModuleDict({k: nn.Linear(math.prod(s), 8) for k, s in self.shapes.items()})

    def forward(self, obs: Mapping[str, Tensor]) -> Tensor:
        assert set(self.shapes).issubset(obs), f"{sorted(self.shapes)} are not all in {list(obs)}"
        feats = []
        for key, shape in self.shapes.items():
            x = obs[key]
            if tuple(x.shape[1:]) != shape:
                raise ValueError(f"{key}: {tuple(x.shape)}")
            feats.append(F.relu(self.nets[key](x.flatten(start_dim=1))))
        return torch.cat(feats, dim=-1)

    def output_shape(self) -> list[int]:
        return [8 * len(self.shapes)]


@clean(
    "H",
    style="own",
    passes=5,
    rec={
        "bc_rnn/robot0_eef_pos": normal(1, 3),
        "bc_rnn/robot0_eef_quat": normal(1, 4),
        "bc_rnn/object": normal(1, 2, 5),
    },
    backends="jit",
)
class FcOwnRobomimicBcRnn:
    """BC-RNN-GMM at roll-out: the mode of the most likely component, low noise."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(11)
        self.backend, self.modes = backend, 3
        shapes = {"robot0_eef_pos": (3,), "robot0_eef_quat": (4,), "object": (2, 5)}
        self.encoder = FcObsEncoder(shapes)
        self.rnn = nn.LSTM(self.encoder.output_shape()[0], 16, batch_first=True)
        self.means, self.logits = nn.Linear(16, self.modes * 4), nn.Linear(16, self.modes)
        self.state = (torch.zeros(1, 1, 16), torch.zeros(1, 1, 16))
        self.steps = 0

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        keys = ("robot0_eef_pos", "robot0_eef_quat", "object")
        values = annotate.input_tensors("bc_rnn", {k: given[f"bc_rnn/{k}"] for k in keys})
        obs = dict(zip(keys, values))
        out, self.state = self.rnn(self.encoder(obs).unsqueeze(1), self.state)
        out = out[:, 0]
        means = torch.tanh(self.means(out)).view(-1, self.modes, 4)
        best = self.logits(out).argmax(dim=-1)
        action = means.gather(1, best.view(-1, 1, 1).expand(-1, 1, 4)).squeeze(1)
        annotate.output_tensors("bc_rnn", {"action": action}, export_with=self.backend)
        self.steps += 1
        log.debug("step %d: component %d", self.steps, best.item())
        return {"bc_rnn/action": action}


class FcSinusoidalPosEmb(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        half = self.dim // 2
        freq = torch.exp(torch.arange(half, device=x.device) * -(math.log(10000) / (half - 1)))
        emb = x[:, None].float() * freq[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


@clean("H", passes=3, rec={"obs": normal(1, 10)}, backends=("jit", "pt2"))
class FcDiffusionPolicyDdim:
    """A diffusion policy with six DDIM steps from a fixed latent."""

    def __init__(self) -> None:
        set_seed(12)
        self.embed = FcSinusoidalPosEmb(16)
        self.net = make_mlp([10 + 16 + 8 * 2, 64, 64, 16], "silu").eval()
        betas = torch.linspace(1e-3, 0.2, 30)
        self.alphas = torch.cumprod(1.0 - betas, dim=0)
        self.timesteps = list(range(29, -1, -5))
        self.latent = torch.randn(1, 8, 2)

    def __call__(self, obs: Tensor) -> Tensor:
        sample = self.latent
        for t, previous in zip(self.timesteps, [*self.timesteps[1:], -1]):
            emb = self.embed(torch.tensor([t]))
            eps = self.net(torch.cat([obs, emb, sample.flatten(1)], dim=-1)).view_as(sample)
            alpha = self.alphas[t]
            alpha_next = self.alphas[previous] if previous >= 0 else torch.tensor(1.0)
            x0 = ((sample - (1 - alpha).sqrt() * eps) / alpha.sqrt()).clamp(-1, 1)
            sample = alpha_next.sqrt() * x0 + (1 - alpha_next).sqrt() * eps
        return sample[:, :4]


@clean("H", style="own", passes=4, rec={"flow/obs": normal(2, 5)}, backends="pt2")
class FcOwnFlowMatching:
    """Flow matching by Euler steps with a progress bar and timings of every step."""

    def __init__(self, backend: str = "pt2", steps: int = 4) -> None:
        set_seed(13)
        self.backend, self.steps = backend, steps
        self.field = make_mlp([5 + 3 + 1, 32, 3], "tanh").eval()
        self.timings: list[float] = []

    def progress(self, iterable: range) -> Iterator[int]:
        for i, item in enumerate(iterable):
            print(f"\r{i + 1}/{len(iterable)}", end="", file=sys.stderr)
            yield item

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("flow", {"obs": given["flow/obs"]})
        x = torch.zeros(2, 3)
        dt = 1.0 / self.steps
        for k in self.progress(range(self.steps)):
            start = time.monotonic()
            t = torch.full((2, 1), k * dt)
            x = x + dt * self.field(torch.cat([obs, x, t], dim=-1))
            self.timings.append(time.monotonic() - start)
        annotate.output_tensors("flow", {"action": x}, export_with=self.backend)
        print(f"\n{1e3 * sum(self.timings) / len(self.timings):.3f} ms a step")
        return {"flow/action": x}


# --- Attention and memory -------------------------------------------------------------------------


class FcBlock(nn.Module):
    """A pre-norm block of a small transformer."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.heads = heads

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(self.ln1(x)).chunk(3, dim=-1)
        q, k, v = (u.view(b, t, self.heads, c // self.heads).transpose(1, 2) for u in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
        x = x + self.proj((weights @ v).transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.ln2(x))


@clean("A", passes=6, rec={"obs": normal(1, 5)}, backends=("jit", "onnx"))
class FcTransformerContext:
    """A causal transformer over a context of four observations that is a state."""

    def __init__(self, context: int = 4, dim: int = 16) -> None:
        set_seed(14)
        self.embed, self.head = nn.Linear(5, dim), nn.Linear(dim, 2)
        self.blocks = nn.ModuleList([FcBlock(dim, 2) for _ in range(2)]).eval()
        self.position = nn.Parameter(0.02 * torch.randn(1, context, dim))
        self.mask = torch.ones(context, context).tril().bool()
        self.context = torch.zeros(1, context, 5)

    def __call__(self, obs: Tensor) -> Tensor:
        self.context = torch.cat([self.context[:, 1:], obs.unsqueeze(1)], dim=1)
        x = self.embed(self.context) + self.position
        for block in self.blocks:
            x = block(x, self.mask)
        return self.head(x[:, -1])


@clean(
    "H",
    style="own",
    passes=3,
    rec={"fusion/tokens": normal(1, 6, 12), "fusion/valid": flags(0.8, 1, 6)},
    backends=("jit", "onnx"),
)
class FcOwnCrossAttention:
    """nn.MultiheadAttention over tokens; those that are missing get a large negative bias."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(15)
        self.backend = backend
        self.query = nn.Parameter(torch.randn(1, 2, 12))
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True).eval()
        self.head = nn.Linear(24, 4).eval()
        log.info("%d parameters", sum(p.numel() for p in self.attention.parameters()))

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        tokens, valid = annotate.input_tensors(
            "fusion", {"tokens": given["fusion/tokens"], "valid": given["fusion/valid"]}
        )
        bias = torch.zeros(1, 6).masked_fill(~valid, -1e4)
        bias = bias[:, None, :].expand(-1, 2, -1).repeat_interleave(3, dim=0)
        pooled, weights = self.attention(self.query, tokens, tokens, attn_mask=bias)
        action = self.head(pooled.flatten(1))
        annotate.output_tensors("fusion", {"action": action}, export_with=self.backend)
        entropy = -(weights * weights.clamp_min(1e-9).log()).sum(-1).mean()
        log.debug("attention entropy %.3f", entropy.item())
        return {"fusion/action": action}


@clean("A", passes=5, style="module", rec={"u": normal(2, 4)}, backends=("jit", "pt2"))
class FcDiagonalSsm(nn.Module):
    """A diagonal state-space layer whose hidden state is a buffer."""

    def __init__(self, n: int = 8) -> None:
        super().__init__()
        torch.manual_seed(16)
        self.log_a = nn.Parameter(torch.linspace(-3.0, 0.0, n).repeat(4, 1))
        self.b, self.c = nn.Parameter(torch.randn(4, n)), nn.Parameter(torch.randn(4, n))
        self.d = nn.Parameter(torch.ones(4))
        self.log_dt = nn.Parameter(torch.full((4, 1), -2.0))
        self.register_buffer("h", torch.zeros(2, 4, n))

    def forward(self, u: Tensor) -> Tensor:
        dt = self.log_dt.exp()
        a = torch.exp(-self.log_a.exp() * dt)
        self.h = a * self.h + dt * self.b * u.unsqueeze(-1)
        return F.gelu(torch.einsum("bcn,cn->bc", self.h, self.c) + self.d * u)


class FcRssmState(NamedTuple):
    deter: Tensor
    stoch: Tensor

    @property
    def feature(self) -> Tensor:
        return torch.cat([self.deter, self.stoch], dim=-1)


@clean("H", style="own", passes=5, rec={"world/obs": normal(1, 6)}, backends="jit")
class FcOwnWorldModel:
    """Dreamer's RSSM with the mean of its posterior; state and last action are kept."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(17)
        self.backend = backend
        self.cell = nn.GRUCell(4 + 2, 12).eval()
        self.posterior = make_mlp([12 + 6, 16, 8], "elu").eval()
        self.prior = make_mlp([12, 16, 8], "elu").eval()
        self.actor = make_mlp([16, 16, 2], "elu").eval()
        self.state = FcRssmState(torch.zeros(1, 12), torch.zeros(1, 4))
        self.action = torch.zeros(1, 2)
        self.kls: list[float] = []

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("world", {"obs": given["world/obs"]})
        deter = self.cell(torch.cat([self.state.stoch, self.action], dim=-1), self.state.deter)
        mean, std = self.posterior(torch.cat([deter, obs], dim=-1)).chunk(2, dim=-1)
        self.state = FcRssmState(deter, mean)
        self.action = torch.tanh(self.actor(self.state.feature))
        annotate.output_tensors("world", {"action": self.action}, export_with=self.backend)
        prior_mean, prior_std = self.prior(deter).chunk(2, dim=-1)
        kl = torch.distributions.kl_divergence(
            Normal(mean, F.softplus(std) + 0.1), Normal(prior_mean, F.softplus(prior_std) + 0.1)
        )
        self.kls.append(kl.sum().item())
        return {"world/action": self.action}


# --- Images ---------------------------------------------------------------------------------------


class FcImpalaBlock(nn.Module):
    def __init__(self, c: int) -> None:
        super().__init__()
        self.conv0, self.conv1 = nn.Conv2d(c, c, 3, padding=1), nn.Conv2d(c, c, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv1(F.relu(self.conv0(F.relu(x))))


@clean(
    "H",
    passes=3,
    rec={"rgb": integers(0, 256, 1, 20, 20, 3, dtype=torch.uint8), "proprio": normal(1, 4)},
    backends=("jit", "onnx"),
)
class FcImageUint8Policy:
    """A camera image in bytes, channels last, is scaled and normalised for a residual CNN."""

    def __init__(self) -> None:
        set_seed(18)
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.block, self.pool = FcImpalaBlock(8).eval(), nn.MaxPool2d(2)
        self.head = make_mlp([8 * 25 + 4, 32, 3], "relu").eval()

    def preprocess(self, rgb: Tensor) -> Tensor:
        assert rgb.dtype == torch.uint8, rgb.dtype
        return (rgb.permute(0, 3, 1, 2).float().div(255.0) - self.mean) / self.std

    def __call__(self, rgb: Tensor, proprio: Tensor) -> Tensor:
        x = self.pool(self.block(self.stem(self.preprocess(rgb))))
        return self.head(torch.cat([x.flatten(1), proprio], dim=-1)).tanh()


@clean(
    "H", passes=3, style="method", rec={"image": uniform(0.0, 1.0, 2, 3, 16, 16)}, backends="onnx"
)
class FcSpatialSoftmax:
    """robomimic's key points: expected image coordinates under a softmax."""

    def __init__(self) -> None:
        set_seed(19)
        self.conv = nn.Sequential(
            nn.Conv2d(3, 6, 5, padding=2), nn.GroupNorm(2, 6), nn.ReLU()
        ).eval()
        y, x = np.meshgrid(np.linspace(-1, 1, 16), np.linspace(-1, 1, 16), indexing="ij")
        self.pos_x = torch.from_numpy(x.reshape(1, -1)).float()
        self.pos_y = torch.from_numpy(y.reshape(1, -1)).float()

    def step(self, image: Tensor) -> Tensor:
        feature = self.conv(image)
        attention = F.softmax(feature.reshape(-1, 16 * 16) / 0.7, dim=-1)
        expected_x = (self.pos_x * attention).sum(dim=1, keepdim=True)
        expected_y = (self.pos_y * attention).sum(dim=1, keepdim=True)
        keypoints = torch.cat([expected_x, expected_y], 1).view(-1, 6, 2)
        return keypoints


@clean(
    "H",
    style="own",
    passes=6,
    rec={"pixels/frame": integers(0, 256, 1, 1, 12, 12, dtype=torch.uint8)},
    backends="jit",
)
class FcOwnFrameStack:
    """Three grey frames stacked in bytes; Q values, their argmax, and a histogram of actions."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(20)
        self.backend = backend
        self.frames = torch.zeros(1, 3, 12, 12, dtype=torch.uint8)
        self.net = nn.Sequential(
            nn.Conv2d(3, 8, 4, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(200, 5)
        ).eval()
        self.histogram = np.zeros(5, dtype=np.int64)

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        frame = annotate.input_tensors("pixels", {"frame": given["pixels/frame"]})
        self.frames = torch.cat((self.frames[:, 1:], frame), dim=1)
        q = self.net(self.frames.to(torch.float32) / 255.0)
        action = q.argmax(dim=1)
        annotate.output_tensors("pixels", {"q": q, "action": action}, export_with=self.backend)
        self.histogram[action.item()] += 1
        return {"pixels/q": q, "pixels/action": action}


@clean(
    "H",
    style="own",
    passes=4,
    rec={"depth/image": array(uniform(0.1, 6.0, 16, 24))},
    backends=("jit", "onnx"),
)
class FcOwnDepthNumpy:
    """A depth image: holes and clipping in NumPy, cropping, then a CNN with average pooling."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(21)
        self.backend, self.near, self.far = backend, 0.3, 3.0
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.ELU(),
            nn.AdaptiveAvgPool2d((2, 2)),
            nn.Flatten(),
            nn.Linear(16, 3),
        ).eval()

    def process(self, depth: np.ndarray) -> np.ndarray:
        depth = depth[2:-2, 4:-4]
        depth = np.where(depth > 5.0, self.far, depth)
        depth = np.clip(depth, self.near, self.far)
        return (depth - self.near) / (self.far - self.near) - 0.5

    def __call__(self, given: dict[str, np.ndarray]) -> dict[str, Tensor]:
        depth = annotate.input_tensors("depth", {"image": given["depth/image"]})
        if depth.shape != (16, 24):
            raise ValueError(f"unexpected resolution {depth.shape}")
        image = torch.from_numpy(self.process(depth)[None, None]).to(torch.float32)
        with torch.no_grad():
            twist = self.cnn(image)
        annotate.output_tensors("depth", {"twist": twist}, export_with=self.backend)
        return {"depth/twist": twist}


@clean("H", passes=3, rec={"points": normal(2, 20, 3)}, backends=("jit", "pt2"))
class FcPointNet:
    """A small PointNet: centred points, shared layers, maximum over the points."""

    def __init__(self) -> None:
        set_seed(22)
        self.local = nn.Sequential(
            nn.Linear(3, 16), nn.LayerNorm(16), nn.ReLU(), nn.Linear(16, 24)
        ).eval()
        self.head = nn.Linear(24 + 3, 7).eval()

    def __call__(self, points: Tensor) -> dict[str, Tensor]:
        centre = points.mean(dim=1, keepdim=True)
        radius = (points - centre).norm(dim=-1).amax(dim=1)
        feature = self.local((points - centre) / radius[:, None, None]).max(dim=1).values
        pose = self.head(torch.cat([feature, centre.squeeze(1)], dim=-1))
        return {"position": pose[:, :3], "quat": F.normalize(pose[:, 3:], dim=-1)}


# --- Legged robots: adaptation, managers ----------------------------------------------------------


@clean("A", passes=6, rec={"obs": normal(1, 6), "command": normal(1, 3)}, backends=("jit", "onnx"))
class FcRmaAdaptation:
    """RMA: a 1-D convolution over the history gives the latent of the environment."""

    def __init__(self, length: int = 8) -> None:
        set_seed(23)
        self.history = torch.zeros(1, length, 6 + 2)
        self.encoder = nn.Sequential(
            nn.Conv1d(8, 16, 4, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4)
        ).eval()
        self.actor = make_mlp([6 + 3 + 4, 32, 2]).eval()
        self.last_action = torch.zeros(1, 2)

    def __call__(self, obs: Tensor, command: Tensor) -> dict[str, Tensor]:
        entry = torch.cat([obs, self.last_action], dim=-1)
        self.history = torch.cat([self.history[:, 1:], entry.unsqueeze(1)], dim=1)
        latent = self.encoder(self.history.transpose(1, 2))
        self.last_action = self.actor(torch.cat([obs, command, latent], dim=-1)).clamp(-3.0, 3.0)
        return {"action": self.last_action, "latent": latent}


@dataclass
class FcObsTerm:
    func: Callable[..., Tensor]
    scale: float | tuple[float, ...] = 1.0
    clip: tuple[float, float] | None = None
    params: dict[str, Any] = field(default_factory=dict)


class FcRobotData:
    """What a scene holds of a robot."""

    def __init__(self, joint_pos: Tensor, joint_vel: Tensor, root_quat: Tensor) -> None:
        self.joint_pos, self.joint_vel, self.root_quat = joint_pos, joint_vel, root_quat

    @property
    def projected_gravity_b(self) -> Tensor:
        q = F.normalize(self.root_quat, dim=-1)
        g = torch.tensor([[0.0, 0.0, -1.0]]).expand(q.shape[0], -1)
        t = 2.0 * torch.cross(-q[:, 1:], g, dim=-1)
        return g + q[:, :1] * t + torch.cross(-q[:, 1:], t, dim=-1)


def joint_pos_rel(data: FcRobotData, default: Tensor) -> Tensor:
    return data.joint_pos - default


def last_action(data: FcRobotData, manager: FcOwnIsaacManagers) -> Tensor:
    return manager.action


@clean(
    "H",
    style="own",
    passes=5,
    rec={
        "robot/joint_pos": normal(2, 4),
        "robot/joint_vel": normal(2, 4),
        "robot/root_quat": normal(2, 4),
    },
    backends=("jit", "pt2"),
)
class FcOwnIsaacManagers:
    """Isaac Lab's managers: terms with scale and clip, an action term, the last action as a term."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(24)
        self.backend = backend
        self.default = torch.tensor([[0.1, -0.1, 0.8, -1.5]])
        self.action = torch.zeros(2, 4)
        self.terms = {
            "gravity": FcObsTerm(lambda data: data.projected_gravity_b),
            "joint_pos": FcObsTerm(
                joint_pos_rel, clip=(-3.0, 3.0), params={"default": self.default}
            ),
            "joint_vel": FcObsTerm(lambda data: data.joint_vel, scale=(0.05, 0.05, 0.1, 0.1)),
            "actions": FcObsTerm(last_action, params={"manager": self}),
        }
        self.policy = make_mlp([15, 32, 4]).eval()

    def compute_group(self, data: FcRobotData) -> Tensor:
        obs = []
        for term in self.terms.values():
            value = term.func(data, **term.params).clone()
            if term.clip:
                value = value.clip_(min=term.clip[0], max=term.clip[1])
            value = value.mul_(torch.tensor(term.scale))
            obs.append(value)
        return torch.cat(obs, dim=-1)

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        names = ("joint_pos", "joint_vel", "root_quat")
        values = annotate.input_tensors("robot", {n: given[f"robot/{n}"] for n in names})
        self.action = self.policy(self.compute_group(FcRobotData(*values)))
        target = self.default + 0.5 * self.action
        annotate.output_tensors("robot", {"target": target}, export_with=self.backend)
        return {"robot/target": target}


@clean("A", passes=4, rec={"obs": normal(8, 5)}, backends="jit")
class FcOnlineWelford:
    """A normaliser that goes on learning: count, mean and M2 are tensors of the node."""

    def __init__(self) -> None:
        self.count = torch.tensor(1e-4)
        self.mean, self.m2 = torch.zeros(5), torch.ones(5) * 1e-4

    def update(self, batch: Tensor) -> None:
        n = batch.shape[0]
        batch_mean = batch.mean(0)
        delta = batch_mean - self.mean
        total = self.count + n
        m2 = (batch - batch_mean).square().sum(0)
        self.m2 = self.m2 + m2 + delta.square() * self.count * n / total
        self.mean = self.mean + delta * n / total
        self.count = total

    def __call__(self, obs: Tensor) -> Tensor:
        self.update(obs)
        return ((obs - self.mean) / torch.sqrt(self.m2 / self.count + 1e-6)).clamp(-5, 5)


@clean(
    "H",
    style="own",
    passes=4,
    rec={"estimator/history": normal(1, 3, 8), "actor/command": normal(1, 3)},
    backends=("jit", "onnx"),
)
class FcOwnHimTwoNodes:
    """HIMLoco: an estimator of velocity and latent in one node, the actor in the next."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(25)
        self.backend = backend
        self.encoder = make_mlp([24, 32, 3 + 8]).eval()
        self.actor = make_mlp([3 + 8 + 3, 32, 6]).eval()

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        history = annotate.input_tensors("estimator", {"history": given["estimator/history"]})
        parts = self.encoder(history.reshape(1, -1))
        vel, latent = parts[..., :3], F.normalize(parts[..., 3:], dim=-1, p=2)
        annotate.output_tensors(
            "estimator", {"vel": vel, "latent": latent}, export_with=self.backend
        )
        with np.printoptions(precision=3, suppress=True):
            print("estimated velocity:", vel[0].numpy())
        vel, latent, command = annotate.input_tensors(
            "actor", {"vel": vel, "latent": latent, "command": given["actor/command"]}
        )
        action = self.actor(torch.cat([vel, latent, command], dim=-1))
        annotate.output_tensors("actor", {"action": action}, export_with=self.backend)
        return {"actor/action": action}


# --- Software around policies ---------------------------------------------------------------------


class FcTensorDict(Mapping[str, Tensor]):
    """A small TensorDict: nested by dots, moved together."""

    def __init__(self, source: Mapping[str, Tensor], batch_size: list[int]) -> None:
        self._data = dict(source)
        self.batch_size = torch.Size(batch_size)
        for key, value in self._data.items():
            if value.shape[: len(batch_size)] != self.batch_size:
                raise RuntimeError(f"batch dimension mismatch at {key}")

    def __getitem__(self, key: str) -> Tensor:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def apply(self, function: Callable[[Tensor], Tensor]) -> FcTensorDict:
        return FcTensorDict({k: function(v) for k, v in self.items()}, list(self.batch_size))

    def to(self, *args: Any) -> FcTensorDict:
        return self.apply(lambda value: value.to(*args))


@clean(
    "H",
    style="own",
    passes=3,
    rec={"td3/position": normal(2, 3), "td3/touch": flags(0.5, 2, 4)},
    backends="jit",
)
class FcOwnTensorDictActor:
    """A TD3 actor on a TensorDict-like batch, with twin critics that are only logged."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(26)
        self.backend, self.device = backend, torch.device("cpu")
        self.actor = make_mlp([7, 32, 2], "relu").to(self.device).eval()
        self.critics = nn.ModuleList(make_mlp([9, 32, 1], "relu") for _ in range(2)).eval()
        self.target = copy.deepcopy(self.actor).requires_grad_(False)
        self.q_values: list[float] = []

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        position, touch = annotate.input_tensors(
            "td3", {"position": given["td3/position"], "touch": given["td3/touch"]}
        )
        td = (
            FcTensorDict({"position": position, "touch": touch}, [2])
            .to(self.device)
            .to(torch.float32)
        )
        features = torch.cat([td[key] for key in sorted(td)], dim=-1)
        action = torch.tanh(self.actor(features))
        annotate.output_tensors("td3", {"action": action}, export_with=self.backend)
        q1, q2 = (critic(torch.cat([features, action], dim=-1)) for critic in self.critics)
        self.q_values.append(torch.min(q1, q2).mean().item())
        return {"td3/action": action}


FC_POLICIES: dict[str, type[nn.Module]] = {}


def fc_register(name: str) -> Callable[[type[nn.Module]], type[nn.Module]]:
    def wrap(cls: type[nn.Module]) -> type[nn.Module]:
        FC_POLICIES[name] = cls
        return cls

    return wrap


@fc_register("mlp")
class FcMlpPolicy(nn.Module):
    def __init__(self, obs_dim: int, act_dim: int, hidden: list[int], activation: str) -> None:
        super().__init__()
        self.net = make_mlp([obs_dim, *hidden, act_dim], activation)

    def forward(self, obs: Tensor) -> Tensor:
        return self.net(obs)


@fc_register("moe")
class FcMoePolicy(nn.Module):
    """A mixture of experts with a soft gate."""

    def __init__(self, obs_dim: int, act_dim: int, hidden: list[int], activation: str) -> None:
        super().__init__()
        self.gate = nn.Linear(obs_dim, 3)
        self.experts = nn.ModuleList(
            FcMlpPolicy(obs_dim, act_dim, hidden, activation) for _ in range(3)
        )

    def forward(self, obs: Tensor) -> Tensor:
        weights = self.gate(obs).softmax(dim=-1)
        outputs = torch.stack([expert(obs) for expert in self.experts], dim=-2)
        return torch.einsum("be,bea->ba", weights, outputs)


FC_CONFIG = '{"policy": {"name": "moe", "hidden": [24, 24], "activation": "silu"}, "seed": 27}'


@clean("H", style="own", passes=3, rec={"policy/obs": normal(3, 9)}, backends=("jit", "onnx"))
class FcOwnConfigRegistry:
    """A policy by name from a JSON config, its weights through a checkpoint in memory."""

    def __init__(self, backend: str = "jit") -> None:
        cfg = json.loads(FC_CONFIG)
        set_seed(int(os.environ.get("FC_SEED", cfg["seed"])))
        name = cfg["policy"].pop("name")
        trained = FC_POLICIES[name](9, 4, **cfg["policy"])
        stream = io.BytesIO()
        torch.save({"model": trained.state_dict(), "iter": 1500}, stream)
        stream.seek(0)
        loaded = torch.load(stream, map_location="cpu", weights_only=True)
        self.policy = FC_POLICIES[name](9, 4, **cfg["policy"])
        missing = self.policy.load_state_dict(loaded["model"], strict=True)
        log.info("iteration %d, %s", loaded["iter"], missing)
        self.policy.eval()
        self.backend = backend

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("policy", {"obs": given["policy/obs"]})
        with torch.inference_mode():
            action = self.policy(obs)
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


class FcBaseAgent(abc.ABC):
    """What every agent of a code base has."""

    def __init__(self, device: str = "cpu", dtype: torch.dtype = torch.float32) -> None:
        self._device, self._dtype = torch.device(device), dtype
        self.global_step = 0

    @abc.abstractmethod
    def _act(self, obs: Tensor) -> Tensor: ...

    @property
    def tensor_args(self) -> dict[str, Any]:
        return {"device": self._device, "dtype": self._dtype}

    def act(self, obs: Tensor) -> Tensor:
        if not isinstance(obs, torch.Tensor):
            raise TypeError(type(obs))
        action = self._act(obs.to(**self.tensor_args))
        self.global_step += 1
        return action.detach().cpu()


class FcSacAgent(FcBaseAgent):
    LOG_STD_MIN, LOG_STD_MAX = -5.0, 2.0

    def __init__(self) -> None:
        super().__init__()
        self.net = make_mlp([6, 32, 6], "relu").eval()
        self.action_scale = torch.tensor([1.0, 0.5, 0.2], **self.tensor_args)
        self.action_bias = torch.tensor([0.0, 0.1, 0.0], **self.tensor_args)
        self.log_stds: list[np.ndarray] = []

    def _act(self, obs: Tensor) -> Tensor:
        mean, log_std = self.net(obs).chunk(2, dim=-1)
        log_std = torch.tanh(log_std)
        log_std = self.LOG_STD_MIN + 0.5 * (self.LOG_STD_MAX - self.LOG_STD_MIN) * (log_std + 1)
        self.log_stds.append(log_std.detach().numpy())
        return torch.tanh(mean) * self.action_scale + self.action_bias


@clean("H", style="own", passes=5, rec={"sac/obs": normal(1, 6)}, backends="jit")
class FcOwnSacAgentBase:
    """CleanRL's SAC behind an abstract agent with device helpers and a step count for the log."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(28)
        self.backend, self.agent = backend, FcSacAgent()

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("sac", {"obs": given["sac/obs"]})
        action = self.agent.act(obs)
        annotate.output_tensors("sac", {"action": action}, export_with=self.backend)
        if self.agent.global_step % 2 == 0:
            log.info("step %d, |a| %.3f", self.agent.global_step, action.abs().mean())
        return {"sac/action": action}


@clean(
    "H",
    style="own",
    passes=4,
    rec={"policy/obs": normal(1, 6)},
    backends="jit",
)
class FcOwnMethodNode:
    """A method of the deploying class is the node by `annotate.method`; rewards stay outside."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(29)
        self.net = make_mlp([6 + 2, 24, 2]).eval()
        self.previous = torch.zeros(1, 2)
        self.returns: dict[str, float] = {"smooth": 0.0, "effort": 0.0}

        @annotate.method(node_name="policy", export_with=backend)
        @torch.no_grad()
        def infer(obs: Tensor) -> Tensor:
            action = self.net(torch.cat([obs, self.previous], dim=-1))
            self.previous = action
            return action

        self.infer = infer

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        before = self.previous
        action = self.infer(given["policy/obs"])
        self.returns["smooth"] -= (action - before).square().sum().item()
        self.returns["effort"] -= action.square().sum().item()
        return {"policy/action": action}


@contextmanager
def fc_timed(name: str, sink: dict[str, list[float]]) -> Iterator[None]:
    start = time.perf_counter()
    try:
        yield
    finally:
        sink.setdefault(name, []).append(time.perf_counter() - start)


@clean("H", style="own", passes=4, rec={"ensemble/obs": normal(3, 7)}, backends=("jit", "onnx"))
class FcOwnEnsembleUncertainty:
    """Five critics with batched weights by einsum, a pessimistic value, and a timer."""

    def __init__(self, backend: str = "jit", members: int = 5) -> None:
        set_seed(30)
        self.backend = backend
        self.w1, self.b1 = torch.randn(members, 7, 16) / 2.6, torch.zeros(members, 1, 16)
        self.w2, self.b2 = torch.randn(members, 16, 1) / 4.0, torch.zeros(members, 1, 1)
        self.times: dict[str, list[float]] = {}

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        with fc_timed("ensemble", self.times):
            obs = annotate.input_tensors("ensemble", {"obs": given["ensemble/obs"]})
            hidden = F.mish(torch.einsum("bi,eih->ebh", obs, self.w1) + self.b1)
            values = (torch.baddbmm(self.b2, hidden, self.w2)).squeeze(-1)
            mean, std = values.mean(0), values.std(0)
            out = {"value": mean - 0.5 * std, "uncertainty": std}
            annotate.output_tensors("ensemble", out, export_with=self.backend)
        median = float(np.median(self.times["ensemble"]))
        print(f"{1e6 * median:.0f} us")
        return {f"ensemble/{key}": value for key, value in out.items()}


@clean("H", passes=3, rec={"nodes": normal(2, 5, 4)}, backends=("jit", "pt2"))
class FcBodyGraphNet:
    """Message passing on the graph of a body, with degrees by scatter."""

    EDGES = ((0, 1), (1, 2), (0, 3), (3, 4))

    def __init__(self) -> None:
        set_seed(31)
        pairs = [*self.EDGES, *((b, a) for a, b in self.EDGES)]
        self.source, self.sink = torch.tensor(pairs).unbind(-1)
        self.message, self.update = nn.Linear(8, 12).eval(), nn.GRUCell(12, 4).eval()
        self.head = nn.Linear(4, 1).eval()
        degree = torch.zeros(5).scatter_add_(0, self.sink, torch.ones(len(pairs)))
        self.norm = degree.reciprocal().view(1, 5, 1)

    def __call__(self, nodes: Tensor) -> Tensor:
        for _ in range(2):
            pair = torch.cat([nodes[:, self.source], nodes[:, self.sink]], dim=-1)
            sent = F.relu(self.message(pair))
            inbox = torch.zeros(2, 5, 12).index_add(1, self.sink, sent) * self.norm
            nodes = self.update(inbox.reshape(-1, 12), nodes.reshape(-1, 4)).view(2, 5, 4)
        return self.head(nodes).squeeze(-1)


@clean(
    "H",
    style="own",
    passes=5,
    rec={"amp/state": normal(2, 5)},
    backends="jit",
)
class FcOwnAmpStyleReward:
    """AMP: the discriminator's style reward of the last transition is logged beside the policy."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(32)
        self.backend = backend
        self.policy, self.disc = make_mlp([5, 24, 3]).eval(), make_mlp([10, 24, 1], "relu").eval()
        self.last_state: Tensor | None = None
        self.style: list[float] = []

    def style_reward(self, state: Tensor) -> float:
        if self.last_state is None:
            return 0.0
        logit = self.disc(torch.cat([self.last_state, state], dim=-1))
        return torch.clamp(1 - 0.25 * (logit - 1).square(), min=0).mean().item()

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        state = annotate.input_tensors("amp", {"state": given["amp/state"]})
        action = self.policy(state).clamp(-1.0, 1.0)
        annotate.output_tensors("amp", {"action": action}, export_with=self.backend)
        self.style.append(self.style_reward(state))
        self.last_state = state.clone()
        if len(self.style) >= 3:
            log.info("style: %.3f +- %.3f", np.mean(self.style), np.std(self.style))
        return {"amp/action": action}


@clean(
    "H",
    style="own",
    passes=4,
    rec={"smooth/obs": normal(1, 4), "smooth/reset": by_tick(lambda t: [t % 5 == 4])},
    fresh={"smooth/reset": by_tick(lambda t: [t % 4 == 3])},
    backends=("jit", "onnx"),
)
class FcOwnMaskedReset:
    """A GRU whose hidden state is zeroed by a flag that comes in, with torch.where."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(33)
        self.backend = backend
        self.cell, self.head = nn.GRUCell(4, 10).eval(), nn.Linear(10, 2).eval()
        self.hidden, self.ema = torch.zeros(1, 10), torch.zeros(1, 2)
        self.resets = 0

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs, reset = annotate.input_tensors(
            "smooth", {"obs": given["smooth/obs"], "reset": given["smooth/reset"]}
        )
        keep = (~reset).float().unsqueeze(-1)
        self.hidden = self.cell(obs, self.hidden * keep)
        raw = self.head(self.hidden)
        self.ema = torch.where(reset.unsqueeze(-1), raw, 0.7 * self.ema + 0.3 * raw)
        annotate.output_tensors("smooth", {"action": self.ema}, export_with=self.backend)
        if reset.any():
            self.resets += 1
            log.info("episode %d", self.resets)
        return {"smooth/action": self.ema}


@clean(
    "H",
    passes=3,
    style="method",
    rec={"height": normal(1, 11, 7), "proprio": normal(1, 9)},
    backends="jit",
)
class FcHeightScanTeacher:
    """A teacher with a height scan that is clipped, interpolated and encoded."""

    def __init__(self) -> None:
        set_seed(34)
        self.scan = nn.Sequential(nn.Flatten(), nn.Linear(24, 16), nn.LeakyReLU(0.01)).eval()
        self.actor = make_mlp([25, 32, 4]).eval()

    def step(self, height: Tensor, proprio: Tensor) -> Tensor:
        clipped = torch.clip(height - 0.5, -1.0, 1.0) * 5.0
        small = F.interpolate(
            clipped.unsqueeze(1), size=(6, 4), mode="bilinear", align_corners=True
        )
        action = self.actor(torch.cat([self.scan(small), proprio], dim=-1))
        return action


@clean("A", passes=6, rec={"obs": normal(2, 4)}, backends=("jit", "onnx"))
class FcCircularBufferPointer:
    """Isaac Lab's circular buffer of four with its pointer in a tensor, read oldest first."""

    def __init__(self, max_len: int = 4) -> None:
        set_seed(35)
        self.max_len = max_len
        self.buffer = torch.zeros(max_len, 2, 4)
        self.pointer = torch.tensor([-1])
        self.head = nn.Linear(16, 3).eval()

    def append(self, data: Tensor) -> None:
        if data.shape != self.buffer.shape[1:]:
            raise ValueError(f"wanted {tuple(self.buffer.shape[1:])}, got {tuple(data.shape)}")
        self.pointer = (self.pointer + 1) % self.max_len
        self.buffer.index_copy_(0, self.pointer, data.unsqueeze(0))

    @property
    def ordered(self) -> Tensor:
        index = (self.pointer + 1 + torch.arange(self.max_len)) % self.max_len
        return self.buffer[index].transpose(0, 1)

    def __call__(self, obs: Tensor) -> Tensor:
        self.append(obs)
        return self.head(self.ordered.flatten(1)).tanh()


@clean("H", style="own", passes=4, rec={"net/obs": normal(4, 6)}, backends="jit")
class FcOwnForwardHooks:
    """Forward hooks keep the norms of activations for a dashboard; a dead unit is warned about."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(36)
        self.backend = backend
        self.net = make_mlp([6, 32, 16, 2], "relu").eval()
        self.norms: dict[str, list[float]] = {}
        for name, module in self.net.named_modules():
            if isinstance(module, nn.ReLU):
                module.register_forward_hook(functools.partial(self.keep, name))

    def keep(self, name: str, module: nn.Module, args: Any, output: Tensor) -> None:
        self.norms.setdefault(name, []).append(output.norm(dim=-1).mean().item())
        dead = (output == 0).all(dim=0).float().mean().item()
        if dead > 0.9:
            log.warning("%s: %.0f %% of the units are dead", name, 100 * dead)

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("net", {"obs": given["net/obs"]})
        action = self.net(obs)
        annotate.output_tensors("net", {"action": action}, export_with=self.backend)
        return {"net/action": action}


@clean("A", passes=5, style="method", rec={"obs": normal(1, 5)}, backends=("jit", "pt2"))
class FcStackedLstmCells:
    """Two LSTM cells with layer norms, their states in a list of pairs."""

    def __init__(self) -> None:
        set_seed(37)
        self.cells = nn.ModuleList([nn.LSTMCell(5, 12), nn.LSTMCell(12, 12)]).eval()
        self.norms = nn.ModuleList([nn.LayerNorm(12), nn.LayerNorm(12)]).eval()
        self.head = nn.Linear(12, 2)
        self.states = [(torch.zeros(1, 12), torch.zeros(1, 12)) for _ in self.cells]

    def step(self, obs: Tensor) -> Tensor:
        x = obs
        for i, (cell, norm) in enumerate(zip(self.cells, self.norms)):
            h, c = cell(x, self.states[i])
            self.states[i] = (h, c)
            x = norm(h) + x if x.shape == h.shape else norm(h)
        action = self.head(x)
        return action


@clean("H", style="own", passes=4, rec={"vae/obs": normal(2, 12)}, backends=("jit", "onnx"))
class FcOwnVaeLatentPolicy:
    """A VAE encodes by its mean; KL and reconstruction are checked, logged and kept in JSON."""

    def __init__(self, backend: str = "jit") -> None:
        set_seed(38)
        self.backend = backend
        self.encoder, self.decoder = make_mlp([12, 24, 8]).eval(), make_mlp([4, 24, 12]).eval()
        self.policy = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)).eval()
        self.lines: list[str] = []

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        obs = annotate.input_tensors("vae", {"obs": given["vae/obs"]})
        mu, logvar = torch.split(self.encoder(obs), 4, dim=-1)
        action = self.policy(mu).sigmoid()
        annotate.output_tensors("vae", {"action": action, "latent": mu}, export_with=self.backend)
        kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp(), dim=-1)
        mse = F.mse_loss(self.decoder(mu), obs)
        assert bool((kl >= -1e-5).all()), f"negative KL: {kl}"
        self.lines.append(json.dumps({"kl": kl.mean().item(), "mse": float(mse)}))
        return {"vae/action": action, "vae/latent": mu}


@clean(
    "H",
    style="own",
    passes=6,
    rec={"env/push": normal(3, s=0.1)},
    fresh={"policy/height": normal(3, 2), "policy/phase": uniform(0.0, 1.0, 3, 1)},
    backends="jit",
)
class FcOwnHopperNumpyEnv:
    """Three hoppers simulated in NumPy with an early end in the log, for a policy in torch."""

    def __init__(self, backend: str = "jit", max_steps: int = 100) -> None:
        set_seed(39)
        self.backend, self.max_steps = backend, max_steps
        self.net = make_mlp([3, 16, 1], "tanh").eval()
        self.z, self.vz = np.full(3, 1.0), np.zeros(3)
        self.step_count, self.done = 0, False

    def observe(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        if "policy/height" in given:
            return {k: given[f"policy/{k}"] for k in ("height", "phase")}
        phase = np.full((3, 1), (self.step_count * 0.05) % 1.0, dtype=np.float32)
        height = np.stack([self.z, self.vz], axis=-1).astype(np.float32)
        return {"height": torch.as_tensor(height), "phase": torch.as_tensor(phase)}

    def simulate(self, thrust: np.ndarray, push: np.ndarray) -> None:
        self.vz += 0.02 * (10.0 * thrust - 9.81) + push
        self.z += 0.02 * self.vz
        grounded = self.z < 0.0
        self.z[grounded], self.vz[grounded] = 0.0, -0.5 * self.vz[grounded]
        self.step_count += 1
        if self.step_count >= self.max_steps or (self.z > 3.0).any():
            self.done = True
            log.info("episode ends after %d steps", self.step_count)

    @torch.no_grad()
    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        height, phase = annotate.input_tensors("policy", self.observe(given))
        thrust = F.softplus(self.net(torch.cat([height, torch.cos(2 * math.pi * phase)], dim=-1)))
        annotate.output_tensors("policy", {"thrust": thrust}, export_with=self.backend)
        self.simulate(thrust.squeeze(-1).numpy(), given["env/push"].numpy())
        return {"policy/thrust": thrust}
