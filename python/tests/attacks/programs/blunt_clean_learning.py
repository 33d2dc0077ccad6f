"""Clean code as people write it: learned policies, encoders and world models as they are deployed."""

from __future__ import annotations

import collections
import contextlib
import copy
import functools
import io
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from veracity import annotate

from attacks.draws import array, double, flags, integers, normal, uniform
from attacks.registry import clean

logger = logging.getLogger(__name__)


# Policies as the RL libraries write them.


def get_activation(act_name: str) -> nn.Module:
    if act_name == "elu":
        return nn.ELU()
    elif act_name == "selu":
        return nn.SELU()
    elif act_name == "relu":
        return nn.ReLU()
    elif act_name == "lrelu":
        return nn.LeakyReLU()
    elif act_name == "tanh":
        return nn.Tanh()
    raise ValueError(f"invalid activation function {act_name}")


class _EmpiricalNormalization(nn.Module):
    def __init__(self, shape: int, eps: float = 1e-2) -> None:
        super().__init__()
        self.eps = eps
        self.register_buffer("_mean", torch.randn(shape).unsqueeze(0) * 0.3)
        self.register_buffer("_var", torch.rand(shape).unsqueeze(0) + 0.5)
        self.register_buffer("_std", torch.sqrt(self._var))
        self.register_buffer("count", torch.tensor(1000, dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.update(x)
        return (x - self._mean) / (self._std + self.eps)

    def update(self, x: Tensor) -> None:
        self.count += x.shape[0]
        rate = x.shape[0] / self.count
        self._mean += rate * (x.mean(dim=0, keepdim=True) - self._mean)


class _ActorCritic(nn.Module):
    is_recurrent = False

    def __init__(
        self,
        num_obs: int,
        num_actions: int,
        actor_hidden_dims: tuple[int, ...] = (32, 16),
        activation: str = "elu",
        init_noise_std: float = 1.0,
        **kwargs: Any,
    ) -> None:
        if kwargs:
            print(f"ActorCritic.__init__ got unexpected arguments: {list(kwargs)}")
        super().__init__()
        layers: list[nn.Module] = []
        layers.append(nn.Linear(num_obs, actor_hidden_dims[0]))
        layers.append(get_activation(activation))
        for i in range(len(actor_hidden_dims)):
            if i == len(actor_hidden_dims) - 1:
                layers.append(nn.Linear(actor_hidden_dims[i], num_actions))
            else:
                layers.append(nn.Linear(actor_hidden_dims[i], actor_hidden_dims[i + 1]))
                layers.append(get_activation(activation))
        self.actor = nn.Sequential(*layers)
        self.std = nn.Parameter(init_noise_std * torch.ones(num_actions))

    def act_inference(self, observations: Tensor) -> Tensor:
        return self.actor(observations)


class _OnPolicyRunner:
    """Only the part of the runner that a deployment needs."""

    def __init__(self, cfg: dict[str, Any], num_obs: int, num_actions: int) -> None:
        self.cfg, self.policy_cfg = cfg, cfg["policy"]
        self.actor_critic = _ActorCritic(num_obs, num_actions, **self.policy_cfg)
        self.obs_normalizer: nn.Module = (
            _EmpiricalNormalization(num_obs) if cfg["empirical_normalization"] else nn.Identity()
        )

    def eval_mode(self) -> None:
        self.actor_critic.eval()
        self.obs_normalizer.eval()

    def get_inference_policy(self) -> Callable[[Tensor], Tensor]:
        self.eval_mode()
        policy = self.actor_critic.act_inference
        if self.cfg["empirical_normalization"]:
            policy = lambda x: self.actor_critic.act_inference(self.obs_normalizer(x))  # noqa: E731
        return policy


@clean(
    "A",
    style="own",
    rec={
        "policy/base_ang_vel": normal(1, 3),
        "policy/projected_gravity": normal(1, 3, s=0.2),
        "policy/commands": uniform(-1, 1, 1, 3),
        "policy/dof_pos": normal(1, 12, s=0.3),
        "policy/dof_vel": normal(1, 12),
    },
    passes=4,
    backends="jit",
)
class BkRslRlPlay:
    """A locomotion policy from an rsl_rl runner, with the last action in its observation."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        cfg = {"policy": {"activation": "elu"}, "empirical_normalization": True}
        self.policy = _OnPolicyRunner(cfg, 45, 12).get_inference_policy()
        self.default_dof_pos = torch.tensor([[0.1, 0.8, -1.5, -0.1, 0.8, -1.5] * 2])
        self.commands_scale = torch.tensor([2.0, 2.0, 0.25])
        self.actions = torch.zeros(1, 12)
        self.clip_actions, self.action_scale = 100.0, 0.25

    def compute_observations(self, ang_vel, gravity, commands, dof_pos, dof_vel) -> Tensor:
        return torch.cat(
            (
                ang_vel * 0.25,
                gravity,
                commands * self.commands_scale,
                (dof_pos - self.default_dof_pos) * 1.0,
                dof_vel * 0.05,
                self.actions,
            ),
            dim=-1,
        )

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        named = {key.split("/")[1]: value for key, value in given.items()}
        tensors = annotate.input_tensors("policy", named)
        obs = torch.clip(self.compute_observations(*tensors), -100.0, 100.0)
        actions = self.policy(obs.detach())
        self.actions = torch.clip(actions, -self.clip_actions, self.clip_actions)
        targets = self.actions * self.action_scale + self.default_dof_pos
        annotate.output_tensors("policy", {"targets": targets}, export_with=self.backend)
        return {"policy/targets": targets}


@torch.jit.script
def quat_rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    shape = q.shape
    q_w = q[:, -1]
    q_vec = q[:, :3]
    a = v * (2.0 * q_w**2 - 1.0).unsqueeze(-1)
    b = torch.cross(q_vec, v, dim=-1) * q_w.unsqueeze(-1) * 2.0
    c = q_vec * torch.bmm(q_vec.view(shape[0], 1, 3), v.view(shape[0], 3, 1)).squeeze(-1) * 2.0
    return a - b + c


@torch.jit.script
def normalize(x: Tensor, eps: float = 1e-9) -> Tensor:
    return x / x.norm(p=2, dim=-1).clamp(min=eps, max=1e9).unsqueeze(-1)


class _Scales:
    lin_vel = 2.0
    ang_vel = 0.25
    dof_pos = 1.0


class _LeggedCfg:
    class init_state:  # noqa: N801
        pos = [0.0, 0.0, 0.42]

    class normalization:  # noqa: N801
        obs_scales = _Scales
        clip_observations = 18.0


@clean("B", rec={"quat": normal(2, 4), "lin_vel": normal(2, 3), "q": normal(2, 6)}, backends="jit")
class BkLeggedGymObservation:
    """Observations in the base frame, through the scripted quaternion helpers of Isaac Gym."""

    def __init__(self) -> None:
        self.cfg = _LeggedCfg()
        self.obs_scales = self.cfg.normalization.obs_scales
        self.gravity_vec = torch.tensor([0.0, 0.0, -1.0]).repeat((2, 1))
        self.net = nn.Sequential(nn.Linear(12, 24), nn.ELU(), nn.Linear(24, 6)).eval()

    def __call__(self, quat: Tensor, lin_vel: Tensor, q: Tensor) -> dict[str, Tensor]:
        quat = normalize(quat)
        base_lin_vel = quat_rotate_inverse(quat, lin_vel)
        gravity = quat_rotate_inverse(quat, self.gravity_vec)
        obs = torch.cat(
            (
                base_lin_vel * self.obs_scales.lin_vel,
                gravity,
                q * self.obs_scales.dof_pos,
            ),
            dim=-1,
        )
        clip = self.cfg.normalization.clip_observations
        return {"actions": self.net(torch.clip(obs, -clip, clip))}


class _Memory(nn.Module):
    def __init__(self, input_size: int, type: str = "lstm", hidden_size: int = 16) -> None:
        super().__init__()
        rnn_cls = nn.GRU if type.lower() == "gru" else nn.LSTM
        self.rnn = rnn_cls(input_size=input_size, hidden_size=hidden_size, num_layers=1)
        self.hidden_states = None

    def forward(self, input: Tensor) -> Tensor:
        out, self.hidden_states = self.rnn(input.unsqueeze(0), self.hidden_states)
        return out

    def reset(self, dones: Tensor | None = None) -> None:
        for hidden_state in self.hidden_states or ():
            hidden_state[..., dones, :] = 0.0


@clean("A", rec={"obs": normal(1, 10)}, passes=4, backends=("jit", "onnx"))
class BkRslRlRecurrent:
    """An LSTM actor whose memory starts as None, as rsl_rl has it."""

    def __init__(self) -> None:
        self.memory_a = _Memory(10, type="lstm").eval()
        self.actor = nn.Sequential(nn.Linear(16, 16), nn.ELU(), nn.Linear(16, 4)).eval()

    def act_inference(self, observations: Tensor) -> Tensor:
        input_a = self.memory_a(observations)
        return self.actor(input_a.squeeze(0))

    def __call__(self, obs: Tensor) -> Tensor:
        return self.act_inference(obs)


class _Model(nn.Module):
    """The base of a model: a role, inputs as a dict, outputs as a triple."""

    def __init__(self, observation_space: int, action_space: int, device: str = "cpu") -> None:
        super().__init__()
        self.device = torch.device(device)
        self.num_observations, self.num_actions = observation_space, action_space

    def set_mode(self, mode: str) -> None:
        if mode == "train":
            self.train(True)
        elif mode == "eval":
            self.train(False)
        else:
            raise ValueError("Invalid mode. Use 'train' for training or 'eval' for evaluation")


class _GaussianMixin:
    def __init__(self, clip_log_std: bool = True, low: float = -20, high: float = 2) -> None:
        self._g_clip_log_std, self._g_low, self._g_high = clip_log_std, low, high

    def act(self, inputs: dict[str, Tensor], role: str = "") -> tuple[Tensor, Tensor, dict]:
        mean_actions, log_std, outputs = self.compute(inputs, role)
        if self._g_clip_log_std:
            log_std = torch.clamp(log_std, self._g_low, self._g_high)
        outputs["mean_actions"] = mean_actions
        return mean_actions, log_std, outputs


class _RunningStandardScaler(nn.Module):
    def __init__(self, size: int, epsilon: float = 1e-8, clip_threshold: float = 5.0) -> None:
        super().__init__()
        self.epsilon, self.clip_threshold = epsilon, clip_threshold
        self.register_buffer("running_mean", torch.randn(size, dtype=torch.float64) * 0.2)
        self.register_buffer("running_variance", torch.rand(size, dtype=torch.float64) + 0.5)

    def forward(self, x: Tensor, train: bool = False, no_grad: bool = True) -> Tensor:
        with torch.no_grad() if no_grad else contextlib.nullcontext():
            return torch.clamp(
                (x - self.running_mean.float())
                / (torch.sqrt(self.running_variance.float()) + self.epsilon),
                min=-self.clip_threshold,
                max=self.clip_threshold,
            )


class _Shared(_GaussianMixin, _Model):
    def __init__(self, observation_space: int, action_space: int) -> None:
        _Model.__init__(self, observation_space, action_space)
        _GaussianMixin.__init__(self, clip_log_std=True)
        self.net = nn.Sequential(nn.Linear(observation_space, 24), nn.ELU(), nn.Linear(24, 16))
        self.mean_layer = nn.Linear(16, action_space)
        self.value_layer = nn.Linear(16, 1)
        self.log_std_parameter = nn.Parameter(torch.zeros(action_space))
        self._shared_output = None

    def compute(self, inputs: dict[str, Tensor], role: str) -> tuple[Tensor, Tensor, dict]:
        if role == "policy":
            self._shared_output = self.net(inputs["states"])
            return self.mean_layer(self._shared_output), self.log_std_parameter, {}
        shared = self.net(inputs["states"]) if self._shared_output is None else self._shared_output
        self._shared_output = None
        return self.value_layer(shared), self.log_std_parameter, {}


@clean("B", rec={"states": normal(1, 9)}, passes=3, backends=("onnx", "jit"))
class BkSkrlSharedModel:
    """A shared skrl model: the value role takes what the policy role left, and clears it."""

    def __init__(self) -> None:
        self.models = {"policy": _Shared(9, 3)}
        self.models["value"] = self.models["policy"]
        for model in self.models.values():
            model.set_mode("eval")
        self._state_preprocessor = _RunningStandardScaler(9)

    def __call__(self, states: Tensor) -> dict[str, Tensor]:
        inputs = {"states": self._state_preprocessor(states)}
        actions, _, outputs = self.models["policy"].act(inputs, role="policy")
        values, _, _ = self.models["value"].act(inputs, role="value")
        return {"actions": outputs.get("mean_actions", actions), "values": values}


class _VecNormalize:
    """Frozen statistics in NumPy, as Stable-Baselines keeps them."""

    def __init__(self, size: int, clip_obs: float = 10.0, epsilon: float = 1e-8) -> None:
        rng = np.random.default_rng(3)
        self.obs_rms = SimpleNamespace(mean=rng.normal(size=size), var=rng.uniform(0.5, 2.0, size))
        self.clip_obs, self.epsilon, self.training, self.norm_obs = clip_obs, epsilon, False, True

    def normalize_obs(self, obs: np.ndarray) -> np.ndarray:
        if not self.norm_obs:
            return obs
        scaled = (obs - self.obs_rms.mean) / np.sqrt(self.obs_rms.var + self.epsilon)
        return np.clip(scaled, -self.clip_obs, self.clip_obs).astype(np.float32)


class _Sb3Policy(nn.Module):
    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        super().__init__()
        self.low, self.high = low, high
        self.mlp_extractor = nn.Sequential(
            nn.Linear(7, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh()
        )
        self.action_net = nn.Linear(32, 3)

    def obs_to_tensor(self, observation: np.ndarray) -> tuple[Tensor, bool]:
        vectorized = observation.ndim == 2
        if not vectorized:
            observation = observation.reshape((-1, 7))
        return torch.as_tensor(observation), vectorized

    def predict(self, observation: np.ndarray, deterministic: bool = False) -> tuple[Any, None]:
        self.train(False)
        obs_tensor, vectorized = self.obs_to_tensor(observation)
        with torch.no_grad():
            actions = self.action_net(self.mlp_extractor(obs_tensor))
        actions = actions.cpu().numpy().reshape((-1, 3))
        actions = np.clip(actions, self.low, self.high)
        if not vectorized:
            actions = actions.squeeze(axis=0)
        return actions, None


@clean("B", rec={"obs": array(normal(7))}, passes=4, backends="jit")
class BkSb3Predict:
    """A Stable-Baselines policy: NumPy in, NumPy out, the statistics of VecNormalize frozen."""

    def __init__(self) -> None:
        self.env = _VecNormalize(7)
        low = np.full(3, -1.0, dtype=np.float32)
        self.model = _Sb3Policy(low, -low)

    def __call__(self, obs: np.ndarray) -> dict[str, Any]:
        obs = self.env.normalize_obs(obs)
        action, _states = self.model.predict(obs, deterministic=True)
        return {"action": action}


def rescale_actions(low: Tensor, high: Tensor, action: Tensor) -> Tensor:
    d = (high - low) / 2.0
    m = (high + low) / 2.0
    return action * d + m


class _RunningMeanStd(nn.Module):
    def __init__(self, insize: tuple[int, ...], epsilon: float = 1e-05, norm_only: bool = False):
        super().__init__()
        self.insize, self.epsilon, self.norm_only = insize, epsilon, norm_only
        self.axis = [0]
        self.register_buffer("running_mean", torch.randn(insize, dtype=torch.float64) * 0.1)
        self.register_buffer("running_var", torch.ones(insize, dtype=torch.float64) * 1.7)
        self.register_buffer("count", torch.ones((), dtype=torch.float64))

    def forward(self, input: Tensor, denorm: bool = False) -> Tensor:
        if self.training:
            mean, var = input.mean(self.axis), input.var(self.axis)
            self.running_mean, self.running_var = mean.double(), var.double()
        current_mean, current_var = self.running_mean, self.running_var
        if denorm:
            y = torch.clamp(input, min=-5.0, max=5.0)
            return torch.sqrt(current_var.float() + self.epsilon) * y + current_mean.float()
        y = (input - current_mean.float()) / torch.sqrt(current_var.float() + self.epsilon)
        return torch.clamp(y, min=-5.0, max=5.0)


class _A2CNetwork(nn.Module):
    def __init__(self, params: dict[str, Any], **kwargs: Any) -> None:
        super().__init__()
        self.is_continuous = "continuous" in params["space"]
        units = params["mlp"]["units"]
        sizes = [kwargs["input_shape"][0], *units]
        self.actor_mlp = nn.Sequential()
        for number, (i, o) in enumerate(zip(sizes[:-1], sizes[1:])):
            self.actor_mlp.add_module(f"dense{number}", nn.Linear(i, o))
            self.actor_mlp.add_module(f"act{number}", get_activation(params["mlp"]["activation"]))
        self.mu = nn.Linear(units[-1], kwargs["actions_num"])
        self.value = nn.Linear(units[-1], 1)
        self.sigma = nn.Parameter(torch.zeros(kwargs["actions_num"]), requires_grad=True)
        self.mu_act = nn.Identity()
        self.sigma_act = nn.Identity()
        for m in self.modules():
            if isinstance(m, nn.Linear) and getattr(m, "bias", None) is not None:
                torch.nn.init.zeros_(m.bias)

    def forward(self, obs_dict: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor, Any]:
        obs = obs_dict["obs"]
        states = obs_dict.get("rnn_states", None)
        out = obs.flatten(1) if obs.dim() > 2 else obs
        out = self.actor_mlp(out)
        value = self.value(out)
        mu = self.mu_act(self.mu(out))
        return mu, mu * 0 + self.sigma_act(self.sigma), value, states


@clean("B", rec={"obs": normal(1, 8)}, passes=3, backends=("pt2", "onnx"))
class BkRlGamesPlayer:
    """The player of rl_games: a normalised observation, the mean action, rescaled to its limits."""

    def __init__(self) -> None:
        params = {
            "space": {"continuous": {"fixed_sigma": True}},
            "mlp": {"units": [24, 16], "activation": "elu"},
        }
        self.a2c_network = _A2CNetwork(params, input_shape=(8,), actions_num=4).eval()
        self.running_mean_std = _RunningMeanStd((8,)).eval()
        self.value_mean_std = _RunningMeanStd((1,)).eval()
        self.actions_low = torch.tensor([-1.0, -0.5, -0.5, -2.0])
        self.actions_high = torch.tensor([1.0, 0.5, 0.7, 2.0])
        self.is_rnn, self.has_batch_dimension, self.states = False, True, None

    def get_action(self, obs: Tensor, is_deterministic: bool = False) -> tuple[Tensor, Tensor]:
        if self.has_batch_dimension is False:
            obs = obs.unsqueeze(0)
        input_dict = {
            "is_train": False,
            "prev_actions": None,
            "obs": self.running_mean_std(obs),
            "rnn_states": self.states,
        }
        with torch.no_grad():
            mu, _, value, self.states = self.a2c_network(input_dict)
        current_action = mu if is_deterministic else mu
        clamped = torch.clamp(current_action, -1.0, 1.0)
        value = self.value_mean_std(value, denorm=True)
        return rescale_actions(self.actions_low, self.actions_high, clamped), value

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        action, value = self.get_action(obs, is_deterministic=True)
        return {"action": action, "value": value}


# Imitation, action chunks, diffusion.


class _ActDecoder(nn.Module):
    def __init__(self, d: int = 16, chunk: int = 6, act: int = 4) -> None:
        super().__init__()
        self.proj = nn.Linear(8, d)
        self.query_embed = nn.Embedding(chunk, d)
        layer = nn.TransformerDecoderLayer(d, 2, 32, dropout=0.1, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2)
        self.action_head = nn.Linear(d, act)

    def forward(self, qpos: Tensor) -> Tensor:
        memory = self.proj(qpos).unsqueeze(1)
        query = self.query_embed.weight.unsqueeze(0).expand(qpos.size(0), -1, -1)
        return self.action_head(self.decoder(query, memory))


@clean("A", rec={"qpos": normal(1, 8)}, passes=6, backends=("onnx", "jit"))
class BkActTemporalEnsemble:
    """ACT with temporal ensembling: the chunks that are still valid, averaged with fixed weights."""

    def __init__(self, chunk: int = 6, k: float = 0.01) -> None:
        self.policy = _ActDecoder(chunk=chunk).eval()
        self.chunk = chunk
        weights = torch.exp(-k * torch.arange(chunk, dtype=torch.float32))
        self.weights = weights.view(chunk, 1, 1)
        self.sums = torch.zeros(1, chunk, 4)
        self.norms = torch.zeros(1, chunk, 1)

    def __call__(self, qpos: Tensor) -> Tensor:
        chunk = self.policy(qpos)
        assert chunk.shape == (1, self.chunk, 4), chunk.shape
        self.sums = self.sums * 0.9 + chunk
        self.norms = self.norms * 0.9 + 1.0
        averaged = self.sums / self.norms
        action = averaged[:, 0]
        pad = torch.zeros(1, 1, 4)
        self.sums = torch.cat([self.sums[:, 1:], pad], dim=1)
        self.norms = torch.cat([self.norms[:, 1:], pad[..., :1]], dim=1)
        return action


class _SinusoidalPosEmb(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, x: Tensor) -> Tensor:
        half_dim = self.dim // 2
        emb = math.log(10000) / (half_dim - 1)
        emb = torch.exp(torch.arange(half_dim) * -emb)
        emb = x[:, None] * emb[None, :]
        return torch.cat((emb.sin(), emb.cos()), dim=-1)


class _DdimScheduler:
    """Fixed betas and a fixed list of steps."""

    def __init__(self, num_train_timesteps: int = 100, num_inference_steps: int = 5) -> None:
        betas = torch.linspace(1e-4, 0.02, num_train_timesteps)
        self.alphas_cumprod = torch.cumprod(1.0 - betas, dim=0)
        self.step_ratio = num_train_timesteps // num_inference_steps
        self.timesteps = list(range(0, num_train_timesteps, self.step_ratio))[::-1]
        self.final_alpha_cumprod = torch.tensor(1.0)

    def step(self, eps: Tensor, t: int, sample: Tensor) -> SimpleNamespace:
        prev = t - self.step_ratio
        alpha = self.alphas_cumprod[t]
        alpha_prev = self.alphas_cumprod[prev] if prev >= 0 else self.final_alpha_cumprod
        x0 = ((sample - (1 - alpha) ** 0.5 * eps) / alpha**0.5).clamp(-1, 1)
        return SimpleNamespace(prev_sample=alpha_prev**0.5 * x0 + (1 - alpha_prev) ** 0.5 * eps)


@clean("D", rec={"obs": normal(1, 6)}, passes=3, backends=("jit", "onnx"))
class BkDiffusionPolicy:
    """A diffusion policy: five DDIM steps from a noise that was drawn once."""

    def __init__(self) -> None:
        self.scheduler = _DdimScheduler()
        self.step_encoder = nn.Sequential(_SinusoidalPosEmb(8), nn.Linear(8, 16), nn.Mish())
        self.model = nn.Sequential(nn.Linear(8 * 2 + 16 + 6, 48), nn.Mish(), nn.Linear(48, 16))
        self.step_encoder.eval(), self.model.eval()
        self.init_noise = torch.randn((1, 8, 2), generator=torch.Generator().manual_seed(42))

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        naction = self.init_noise
        for k in self.scheduler.timesteps:
            t = torch.full((1,), k, dtype=torch.long)
            cond = torch.cat([naction.flatten(1), self.step_encoder(t), obs], dim=-1)
            noise_pred = self.model(cond).reshape(1, 8, 2)
            naction = self.scheduler.step(noise_pred, k, naction).prev_sample
        return {"action": naction[:, 1:5], "prediction": naction}


class _Rnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleDict()
        self.nets["encoder"] = nn.ModuleDict(
            {"eef_pos": nn.Linear(3, 8), "gripper": nn.Linear(2, 4), "object": nn.Linear(5, 8)}
        )
        self.nets["rnn"] = nn.LSTM(20, 16, num_layers=2, batch_first=True)
        self.nets["decoder"] = nn.Linear(16, 5)

    def get_rnn_init_state(self, batch_size: int, device: torch.device) -> tuple[Tensor, Tensor]:
        shape = (2, batch_size, 16)
        return torch.zeros(shape).to(device), torch.zeros(shape).to(device)

    def forward_step(self, obs: dict[str, Tensor], state: Any) -> tuple[Tensor, Any]:
        feats = [F.relu(net(obs[key])) for key, net in self.nets["encoder"].items()]
        out, state = self.nets["rnn"](torch.cat(feats, -1)[:, None], state)
        return torch.tanh(self.nets["decoder"](out[:, 0])), state


@clean(
    "A",
    style="own",
    rec={
        "bc/eef_pos": normal(1, 3),
        "bc/gripper": normal(1, 2),
        "bc/object": normal(1, 5),
    },
    passes=4,
    backends=("jit", "pt2"),
)
class BkRobomimicRollout:
    """A BC-RNN roll-out: the hidden state is reset once, before the first observation."""

    def __init__(self, backend: str) -> None:
        self.backend, self.net = backend, _Rnn().eval().requires_grad_(False)
        self._rnn_hidden_state: Any = None
        self._rnn_counter = 0
        self.start_episode()

    def start_episode(self) -> None:
        self._rnn_hidden_state = self.net.get_rnn_init_state(1, torch.device("cpu"))

    def get_action(self, obs_dict: dict[str, Tensor]) -> Tensor:
        assert not self.net.training
        action, self._rnn_hidden_state = self.net.forward_step(obs_dict, self._rnn_hidden_state)
        self._rnn_counter += 1
        return action

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = {key.removeprefix("bc/"): value for key, value in given.items()}
        obs = dict(zip(obs, annotate.input_tensors("bc", obs)))
        action = self.get_action(obs)
        action = torch.cat([action[:, :4] * 0.05, action[:, 4:].sign()], dim=-1)
        annotate.output_tensors("bc", {"action": action}, export_with=self.backend)
        logger.debug("step %d of the roll-out", self._rnn_counter)
        return {"bc/action": action}


@clean("B", rec={"x": normal(1, 6)}, passes=3, backends=("jit", "onnx"))
class BkMixtureDensityHead:
    """A mixture density head: the mean of the most likely mode, by argmax and gather."""

    def __init__(self, modes: int = 4, act: int = 3) -> None:
        self.modes, self.act = modes, act
        self.trunk = nn.Sequential(nn.Linear(6, 32), nn.ReLU())
        self.mean, self.scale = nn.Linear(32, modes * act), nn.Linear(32, modes * act)
        self.logits = nn.Linear(32, modes)

    def __call__(self, x: Tensor) -> dict[str, Tensor]:
        h = self.trunk(x)
        means = torch.tanh(self.mean(h).view(-1, self.modes, self.act))
        scales = F.softplus(self.scale(h)).view(-1, self.modes, self.act) + 1e-4
        best = self.logits(h).argmax(dim=-1)
        index = best[:, None, None].expand(-1, 1, self.act)
        return {
            "action": means.gather(1, index).squeeze(1),
            "std": scales.gather(1, index).squeeze(1),
            "mode": best,
        }


class _ResidualVq(nn.Module):
    def __init__(self, dim: int = 6, codes: int = 8, layers: int = 2) -> None:
        super().__init__()
        self.codebooks = nn.ParameterList(torch.randn(codes, dim) for _ in range(layers))

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        quantized, residual, indices = torch.zeros_like(z), z, []
        for codebook in self.codebooks:
            index = torch.cdist(residual, codebook).argmin(dim=-1)
            code = F.embedding(index, codebook)
            quantized = quantized + code
            residual = residual - code
            indices.append(index)
        return quantized, torch.stack(indices, dim=-1)


@clean("B", rec={"state": normal(2, 5)}, passes=4, backends=("jit", "onnx"))
class BkResidualVq:
    """A behaviour transformer's tokens: a residual quantiser with two codebooks."""

    def __init__(self) -> None:
        self.encoder, self.vq = nn.Linear(5, 6), _ResidualVq()
        self.decoder = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 4))
        for part in (self.encoder, self.vq, self.decoder):
            part.eval()

    def __call__(self, state: Tensor) -> tuple[Tensor, Tensor]:
        quantized, tokens = self.vq(self.encoder(state))
        return self.decoder(quantized), tokens


# Experts, ensembles, conditioning.


@clean("B", rec={"obs": normal(1, 12)}, passes=3, backends=("onnx", "pt2"))
class BkDenseExperts:
    """A mixture of experts in dense form: every expert computes, the gate weights them."""

    def __init__(self, experts: int = 5, dim: int = 12, hidden: int = 16, out: int = 4) -> None:
        self.gate = nn.Sequential(nn.Linear(dim, 16), nn.ELU(), nn.Linear(16, experts)).eval()
        self.w1 = torch.randn(experts, dim, hidden) / math.sqrt(dim)
        self.b1 = torch.zeros(experts, hidden)
        self.w2 = torch.randn(experts, hidden, out) / math.sqrt(hidden)
        self.b2 = torch.zeros(experts, out)

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        weights = torch.softmax(self.gate(obs), dim=-1)
        h = F.elu(torch.einsum("bi,eio->beo", obs, self.w1) + self.b1)
        y = torch.einsum("beh,eho->beo", h, self.w2) + self.b2
        return {"action": torch.einsum("be,beo->bo", weights, y), "weights": weights}


@clean("B", style="module", rec={"x": normal(3, 8)}, passes=3, backends=("jit", "onnx"))
class BkTopTwoExperts(nn.Module):
    """The two best experts by top-k; the others get the weight zero."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(8, 4, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 8)) for _ in range(4)
        )
        self.norm = nn.LayerNorm(8)
        self.eval()

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        top, index = torch.topk(self.router(x), k=2, dim=-1)
        gates = torch.zeros(x.shape[0], 4).scatter(1, index, F.softmax(top, dim=-1))
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            out = out + gates[:, number : number + 1] * expert(x)
        return {"y": self.norm(x + out), "chosen": index}


class _Member(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 24), nn.SiLU(), nn.Linear(24, 3))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@clean("B", rec={"x": normal(1, 6)}, passes=4, backends=("jit", "onnx"))
class BkEnsembleSlowsDown:
    """Five members; where they disagree the mean action is made smaller."""

    def __init__(self) -> None:
        self.members = nn.ModuleList(_Member() for _ in range(5)).eval()
        for p in self.members.parameters():
            p.requires_grad = False

    def __call__(self, x: Tensor) -> dict[str, Tensor]:
        predictions = torch.stack([member(x) for member in self.members])
        mean, std = predictions.mean(dim=0), predictions.std(dim=0)
        caution = torch.exp(-3.0 * std.mean(dim=-1, keepdim=True))
        return {"action": mean * caution, "disagreement": std}


@clean("B", rec={"x": normal(2, 6)}, passes=3, backends="jit")
class BkStackedEnsemble:
    """The same ensemble with torch.func: parameters stacked, one vmap over the members."""

    def __init__(self) -> None:
        members = [_Member() for _ in range(4)]
        self.params, self.buffers = torch.func.stack_module_state(members)
        self.base = copy.deepcopy(members[0]).to("meta")

    def _call(self, params: dict, buffers: dict, x: Tensor) -> Tensor:
        return torch.func.functional_call(self.base, (params, buffers), (x,))

    def __call__(self, x: Tensor) -> Tensor:
        out = torch.func.vmap(self._call, in_dims=(0, 0, None))(self.params, self.buffers, x)
        return out.median(dim=0).values


class _FilmBlock(nn.Module):
    def __init__(self, channels: int, cond: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm = nn.BatchNorm2d(channels)
        self.film = nn.Linear(cond, 2 * channels)

    def forward(self, x: Tensor, cond: Tensor) -> Tensor:
        gamma, beta = self.film(cond).chunk(2, dim=-1)
        h = self.norm(self.conv2(F.relu(self.conv1(x), inplace=True)))
        h = (1 + gamma[..., None, None]) * h + beta[..., None, None]
        return F.relu(x + h)


@clean(
    "D",
    style="module",
    rec={"image": uniform(0, 1, 1, 3, 16, 16), "goal": normal(1, 5)},
    passes=3,
    backends=("onnx", "pt2"),
)
class BkFilmEncoder(nn.Module):
    """A small ResNet conditioned on a goal by FiLM, its batch norms frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 5, stride=2, padding=2)
        self.blocks = nn.ModuleList([_FilmBlock(8, 5) for _ in range(2)])
        self.pool, self.head = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 3)
        self.register_buffer("mean", torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1))
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
        self.eval()

    def forward(self, image: Tensor, goal: Tensor) -> Tensor:
        x = self.stem((image - self.mean) / self.std)
        for block in self.blocks:
            x = block(x, goal)
        return self.head(self.pool(x).flatten(1))


@clean("B", rec={"context": normal(1, 4), "x": normal(1, 6)}, passes=3, backends=("jit", "onnx"))
class BkHyperNetwork:
    """A hyper-network writes the weights of the policy's last layer."""

    def __init__(self) -> None:
        self.hyper = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 6 * 3 + 3)).eval()

    def __call__(self, context: Tensor, x: Tensor) -> Tensor:
        weight, bias = self.hyper(context).split([18, 3], dim=-1)
        return torch.baddbmm(bias.unsqueeze(1), x.unsqueeze(1), weight.view(-1, 6, 3)).squeeze(1)


# Perception.


@clean("D", rec={"cloud": normal(1, 48, 3)}, passes=3, backends=("pt2", "jit"))
class BkPointNet:
    """A PointNet grasp head with a learned frame and a global maximum."""

    def __init__(self) -> None:
        mlp = functools.partial(nn.Conv1d, kernel_size=1)
        self.tnet = nn.Sequential(mlp(3, 16), nn.BatchNorm1d(16), nn.ReLU())
        self.tnet_out = nn.Linear(16, 9)
        self.feat = nn.Sequential(mlp(3, 32), nn.BatchNorm1d(32), nn.ReLU(), mlp(32, 32))
        self.head = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 7))
        for module in (self.tnet, self.tnet_out, self.feat, self.head):
            module.eval()
        self.identity = torch.eye(3).reshape(1, 9)

    def __call__(self, cloud: Tensor) -> dict[str, Tensor]:
        centred = cloud - cloud.mean(dim=1, keepdim=True)
        x = centred.transpose(1, 2)
        t = self.tnet_out(self.tnet(x).max(dim=2)[0]) + self.identity
        x = torch.bmm(t.view(-1, 3, 3), x)
        features = self.feat(x)
        pooled = torch.cat([features.amax(dim=2), features.mean(dim=2)], dim=-1)
        pose = self.head(pooled)
        quat = F.normalize(pose[:, 3:], dim=-1)
        return {"position": pose[:, :3] + cloud.mean(dim=1), "quat": quat}


class _Attention(nn.Module):
    def __init__(self, dim: int, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.scale = heads, (dim // heads) ** -0.5
        self.qkv, self.proj = nn.Linear(dim, dim * 3, bias=False), nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        B, N, C = x.shape  # noqa: N806
        qkv = self.qkv(x).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = (q @ k.transpose(-2, -1)) * self.scale
        if mask is not None:
            attn = attn.masked_fill(mask, float("-inf"))
        return self.proj((attn.softmax(dim=-1) @ v).transpose(1, 2).reshape(B, N, C))


class _VitBlock(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.norm1, self.attn, self.norm2 = nn.LayerNorm(dim), _Attention(dim), nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.attn(self.norm1(x), mask)
        return x + self.mlp(self.norm2(x))


def _images(tick: int, gen: torch.Generator) -> Tensor:
    return torch.randint(0, 256, (1, 16, 16, 3), generator=gen).to(torch.uint8)


@clean("D", rec={"rgb": _images}, passes=3, backends=("onnx", "jit"))
class BkTinyVit:
    """A vision transformer on camera bytes: patches, a class token, two blocks."""

    def __init__(self, patch: int = 4, dim: int = 16) -> None:
        self.patch_embed = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.pos_embed = nn.Parameter(torch.randn(1, 17, dim) * 0.02)
        self.blocks = nn.Sequential(*[_VitBlock(dim) for _ in range(2)]).eval()
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, 6)

    def __call__(self, rgb: Tensor) -> Tensor:
        x = rgb.permute(0, 3, 1, 2).float().div(255.0).sub(0.5).mul(2.0)
        x = self.patch_embed(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


class _SpatialSoftmax(nn.Module):
    def __init__(self, h: int, w: int) -> None:
        super().__init__()
        ys, xs = torch.meshgrid(torch.linspace(-1, 1, h), torch.linspace(-1, 1, w), indexing="ij")
        self.register_buffer("pos", torch.stack([xs, ys], -1).reshape(-1, 2), persistent=False)
        self.temperature = nn.Parameter(torch.ones(1))

    def forward(self, feature: Tensor) -> Tensor:
        n, c = feature.shape[:2]
        attention = F.softmax(feature.reshape(n * c, -1) / self.temperature, dim=-1)
        return (attention @ self.pos).reshape(n, c * 2)


@clean(
    "D",
    rec={"image": _images, "proprio": normal(1, 4)},
    passes=3,
    backends=("jit", "onnx"),
)
class BkSpatialSoftmaxServo:
    """Keypoints by spatial softmax, with the joints, to a twist."""

    def __init__(self) -> None:
        self.convs = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 6, 3, padding=1)
        ).eval()
        self.softargmax = _SpatialSoftmax(8, 8).eval()
        self.head = nn.Sequential(nn.Linear(12 + 4, 32), nn.ReLU(), nn.Linear(32, 6)).eval()

    def __call__(self, image: Tensor, proprio: Tensor) -> dict[str, Tensor]:
        x = image.movedim(-1, 1).to(torch.float32) / 255
        keypoints = self.softargmax(self.convs(x))
        twist = self.head(torch.hstack((keypoints, proprio)))
        return {"twist": twist.tanh() * 0.1, "keypoints": keypoints}


class _DoubleConv(nn.Sequential):
    def __init__(self, cin: int, cout: int) -> None:
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False),
            nn.GroupNorm(2, cout),
            nn.LeakyReLU(0.1, inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1),
            nn.LeakyReLU(0.1, inplace=True),
        )


@clean("D", style="module", rec={"depth": uniform(0.2, 4, 1, 1, 16, 16)}, passes=3, backends="onnx")
class BkUnetTraversable(nn.Module):
    """A U-Net from depth to a traversability map; invalid pixels are masked."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.mid = (
            _DoubleConv(2, 8),
            _DoubleConv(8, 12),
            _DoubleConv(12, 16),
        )
        self.up2, self.up1 = _DoubleConv(16 + 12, 12), _DoubleConv(12 + 8, 8)
        self.pool, self.out = nn.MaxPool2d(2), nn.Conv2d(8, 1, 1)
        self.eval()

    def forward(self, depth: Tensor) -> dict[str, Tensor]:
        valid = (depth > 0.3) & (depth < 3.5)
        x = torch.cat([torch.where(valid, depth, torch.zeros_like(depth)), valid.float()], dim=1)
        a = self.down1(x)
        b = self.down2(self.pool(a))
        c = self.mid(self.pool(b))
        up = F.interpolate(c, scale_factor=2, mode="nearest")
        d = self.up2(torch.cat([up, b], dim=1))
        up = F.interpolate(d, size=a.shape[-2:], mode="bilinear", align_corners=False)
        score = torch.sigmoid(self.out(self.up1(torch.cat([up, a], dim=1))))
        return {"score": score * valid, "share": valid.float().mean(dim=(1, 2, 3))}


@clean("D", rec={"features": normal(1, 8, 6, 6)}, passes=3, backends=("jit", "onnx"))
class BkCentreDetector:
    """A centre-point detector: peaks by max-pooling, the five best, their boxes decoded."""

    def __init__(self) -> None:
        self.heat, self.size = nn.Conv2d(8, 1, 1), nn.Conv2d(8, 2, 1)
        self.offset = nn.Conv2d(8, 2, 1)
        self.stride, self.k = 4, 5

    def __call__(self, features: Tensor) -> dict[str, Tensor]:
        heat = self.heat(features).sigmoid()
        keep = (F.max_pool2d(heat, 3, stride=1, padding=1) == heat).float()
        scores, index = torch.topk((heat * keep + heat * 1e-3).flatten(1), self.k)
        ys, xs = torch.div(index, 6, rounding_mode="floor"), index % 6

        def picked(field: Tensor) -> Tensor:
            return field.flatten(2).gather(2, index.unsqueeze(1).expand(-1, 2, -1)).transpose(1, 2)

        wh, offset = F.softplus(picked(self.size(features))), picked(self.offset(features)).tanh()
        centres = (torch.stack([xs, ys], dim=-1) + 0.5 + offset) * self.stride
        return {"boxes": torch.cat([centres - wh / 2, centres + wh / 2], dim=-1), "scores": scores}


# Sequence models with memory in tensors.


@clean(
    "A",
    style="own",
    rec={"tf/obs": normal(1, 6)},
    passes=12,
    backends=("jit", "onnx"),
)
class BkHistoryTransformer:
    """A causal transformer over the last eight observations, in a buffer that rolls."""

    def __init__(self, backend: str, horizon: int = 8) -> None:
        self.backend, self.horizon = backend, horizon
        self.embed, self.head = nn.Linear(6, 16), nn.Linear(16, 4)
        self.pos = nn.Parameter(torch.randn(1, horizon, 16) * 0.02)
        self.blocks = nn.ModuleList(_VitBlock(16) for _ in range(2)).eval()
        self.history = torch.zeros(1, horizon, 6)
        self.times: collections.deque[float] = collections.deque(maxlen=100)

    @functools.cached_property
    def causal_mask(self) -> Tensor:
        return torch.triu(torch.ones(self.horizon, self.horizon, dtype=torch.bool), diagonal=1)

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        start = time.perf_counter()
        obs = annotate.input_tensors("tf", {"obs": given["tf/obs"]})
        self.history = torch.roll(self.history, shifts=-1, dims=1)
        self.history[:, -1] = obs
        x = self.embed(self.history) + self.pos
        for block in self.blocks:
            x = block(x, self.causal_mask)
        action = self.head(x[:, -1])
        annotate.output_tensors("tf", {"action": action}, export_with=self.backend)
        self.times.append(time.perf_counter() - start)
        if len(self.times) % 4 == 0:
            print(f"mean step time: {1e3 * sum(self.times) / len(self.times):.2f} ms")
        return {"tf/action": action}


@clean("A", rec={"token": normal(1, 8)}, passes=6, backends=("jit", "onnx"))
class BkKeyValueCache:
    """Attention with a cache of keys and values that slides, and a mask of what is filled."""

    def __init__(self, length: int = 4, dim: int = 8) -> None:
        self.q, self.k, self.v, self.o = (nn.Linear(dim, dim) for _ in range(4))
        self.keys, self.values = torch.zeros(1, length, dim), torch.zeros(1, length, dim)
        self.filled = torch.zeros(1, length, dtype=torch.bool)
        self.scale = 1 / math.sqrt(dim)

    def __call__(self, token: Tensor) -> Tensor:
        query = self.q(token)
        self.keys = torch.cat([self.keys[:, 1:], self.k(token).unsqueeze(1)], dim=1)
        self.values = torch.cat([self.values[:, 1:], self.v(token).unsqueeze(1)], dim=1)
        self.filled = torch.cat([self.filled[:, 1:], torch.ones(1, 1, dtype=torch.bool)], dim=1)
        scores = torch.einsum("bd,btd->bt", query, self.keys) * self.scale
        scores = scores.masked_fill(~self.filled, -1e9)
        return token + self.o(torch.einsum("bt,btd->bd", scores.softmax(-1), self.values))


class _LayerNormGRUCell(nn.Module):
    def __init__(self, size_in: int, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(size_in + size, 3 * size, bias=False)
        self.norm = nn.LayerNorm(3 * size, eps=1e-3)

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        reset, cand, update = self.norm(self.linear(torch.cat([h, x], -1))).chunk(3, -1)
        cand = torch.tanh(torch.sigmoid(reset) * cand)
        update = torch.sigmoid(update - 1)
        return update * cand + (1 - update) * h


@dataclass
class _RssmState:
    deter: Tensor
    stoch: Tensor
    action: Tensor

    @classmethod
    def zeros(cls, batch: int = 1) -> _RssmState:
        return cls(torch.zeros(batch, 12), torch.zeros(batch, 3, 4), torch.zeros(batch, 2))


@clean("A", style="method", rec={"obs": normal(1, 7)}, passes=4, backends=("jit", "onnx"))
class BkDreamerPlayer:
    """A Dreamer player in its greedy mode: latents one-hot by argmax, state in a dataclass."""

    def __init__(self) -> None:
        self.encoder = nn.Sequential(nn.Linear(7, 16), nn.SiLU()).eval()
        self.cell = _LayerNormGRUCell(12 + 2, 12).eval()
        self.posterior = nn.Linear(12 + 16, 12).eval()
        self.actor = nn.Sequential(nn.Linear(24, 16), nn.SiLU(), nn.Linear(16, 2)).eval()
        self.state = _RssmState.zeros()

    def step(self, obs: Tensor) -> dict[str, Tensor]:
        s = self.state
        deter = self.cell(torch.cat([s.stoch.flatten(1), s.action], -1), s.deter)
        logits = self.posterior(torch.cat([deter, self.encoder(obs)], -1)).view(-1, 3, 4)
        stoch = F.one_hot(logits.argmax(-1), 4).float()
        action = torch.tanh(self.actor(torch.cat([deter, stoch.flatten(1)], -1)))
        self.state = _RssmState(deter, stoch, action)
        return {"action": action}


class _CausalConv(nn.Module):
    def __init__(self, cin: int, cout: int, dilation: int) -> None:
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.utils.parametrizations.weight_norm(
            nn.Conv1d(cin, cout, 3, dilation=dilation)
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.conv(F.pad(x, (self.pad, 0))))


@clean("A", rec={"imu": normal(1, 6)}, passes=12, backends=("jit", "onnx"))
class BkTcnOdometry:
    """A temporal convolution with weight norm over a deque of inertial samples."""

    def __init__(self, window: int = 8) -> None:
        self.window = collections.deque([torch.zeros(1, 6)] * window, maxlen=window)
        self.net = nn.Sequential(_CausalConv(6, 12, 1), _CausalConv(12, 12, 2)).eval()
        self.head = nn.Linear(12, 3).eval()

    def __call__(self, imu: Tensor) -> Tensor:
        self.window.append(imu)
        x = torch.stack(list(self.window), dim=-1)
        return self.head(self.net(x)[..., -1])


@clean("A", rec={"u": normal(1, 6)}, passes=4, backends=("jit", "pt2"))
class BkSelectiveStateSpace:
    """One step of a selective state space model, with its convolution window and its state."""

    def __init__(self, d: int = 6, n: int = 4) -> None:
        self.in_proj, self.x_proj = nn.Linear(d, 2 * d), nn.Linear(d, 2 * n + 1)
        self.conv = torch.randn(d, 3) * 0.3
        self.a_log = torch.log(torch.arange(1, n + 1).float()).repeat(d, 1)
        self.skip, self.out_proj = torch.ones(d), nn.Linear(d, d)
        self.conv_state, self.ssm_state = torch.zeros(1, d, 3), torch.zeros(1, d, n)

    def __call__(self, u: Tensor) -> Tensor:
        x, z = self.in_proj(u).chunk(2, dim=-1)
        self.conv_state.copy_(torch.roll(self.conv_state, shifts=-1, dims=-1))
        self.conv_state[:, :, -1] = x
        x = F.silu((self.conv_state * self.conv).sum(-1))
        dt, b, c = torch.split(self.x_proj(x), [1, 4, 4], dim=-1)
        dt = F.softplus(dt).expand(-1, 6)
        da = torch.exp(torch.einsum("bd,dn->bdn", dt, -torch.exp(self.a_log)))
        db = torch.einsum("bd,bn->bdn", dt, b)
        self.ssm_state.copy_(self.ssm_state * da + x.unsqueeze(-1) * db)
        y = torch.einsum("bdn,bn->bd", self.ssm_state, c) + self.skip * x
        return self.out_proj(y * F.silu(z))


# Pipelines of learned nodes.


class _AdaptationModule(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(5, 8, 3), nn.ELU(), nn.Flatten(), nn.Linear(32, 4))

    def forward(self, history: Tensor) -> Tensor:
        return self.conv(history.permute(0, 2, 1))


class _Phase2Deployer:
    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.adaptation, self.policy = _AdaptationModule(), nn.Linear(5 + 4, 3)
        self.load_state_dict(self._checkpoint())
        self.obs_history_buf = torch.zeros(1, 6, 5)

    def _checkpoint(self) -> io.BytesIO:
        stream = io.BytesIO()
        torch.save(
            {
                "model_state_dict": {
                    **{f"module.adapt.{k}": v for k, v in self.adaptation.state_dict().items()},
                    **{f"module.actor.{k}": v for k, v in self.policy.state_dict().items()},
                },
                "iter": 4000,
                "infos": None,
            },
            stream,
        )
        stream.seek(0)
        return stream

    def load_state_dict(self, stream: io.BytesIO) -> None:
        loaded = torch.load(stream, map_location="cpu")
        weights = {k.removeprefix("module."): v for k, v in loaded["model_state_dict"].items()}
        for name, module in (("adapt", self.adaptation), ("actor", self.policy)):
            own = {k[len(name) + 1 :]: v for k, v in weights.items() if k.startswith(name)}
            missing = module.load_state_dict(own, strict=True)
            logger.info("loaded %s at iteration %d: %s", name, loaded["iter"], missing)
            module.eval()
            for p in module.parameters():
                p.requires_grad_(False)


@clean("G", style="own", rec={"adapt/obs": normal(1, 5)}, passes=4, backends=("jit", "onnx"))
class BkRapidMotorAdaptation(_Phase2Deployer):
    """RMA: an adaptation node over a history, then a policy node that gets its latent."""

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("adapt", {"obs": given["adapt/obs"]})
        self.obs_history_buf = torch.cat([self.obs_history_buf[:, 1:], obs.unsqueeze(1)], dim=1)
        latent = self.adaptation(self.obs_history_buf)
        out = {"latent": latent, "current": obs * 1.0}
        annotate.output_tensors("adapt", out, export_with=self.backend)

        got = {"latent": out["latent"], "current": out["current"]}
        latent, current = annotate.input_tensors("policy", got)
        action = torch.tanh(self.policy(torch.cat([current, latent], dim=-1)))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        return {"policy/action": action}


REGISTRY: dict[str, type[nn.Module]] = {}


def register_module(name: str) -> Callable[[type[nn.Module]], type[nn.Module]]:
    def add(cls: type[nn.Module]) -> type[nn.Module]:
        REGISTRY[name] = cls
        return cls

    return add


@register_module("mlp")
class _MlpTorso(nn.Module):
    def __init__(self, dim: int, width: int, depth: int = 2) -> None:
        super().__init__()
        dims = [dim] + [width] * depth
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(dims, dims[1:]))

    def forward(self, x: Tensor) -> Tensor:
        return functools.reduce(lambda h, layer: F.gelu(layer(h)), self.layers, x)


@register_module("gated")
class _GatedTorso(nn.Module):
    def __init__(self, dim: int, width: int) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(dim, width), nn.Linear(dim, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.up(x) * torch.sigmoid(self.gate(x))


class _Config(dict):
    """Keys as attributes, as OmegaConf has them."""

    def __getattr__(self, key: str) -> Any:
        try:
            value = self[key]
        except KeyError as error:
            raise AttributeError(key) from error
        return _Config(value) if isinstance(value, dict) else value


@clean("B", rec={"obs": normal(1, 6)}, passes=3, backends=("jit", "onnx", "pt2"))
def BkModulesFromConfig() -> Callable[[Tensor], dict[str, Tensor]]:  # noqa: N802
    """Torsos that a config names, built by a registry, and a closure that runs them."""
    cfg = _Config(
        model={
            "torsos": [
                {"type": "mlp", "args": {"width": 16, "depth": 2}},
                {"type": "gated", "args": {"width": 16}},
            ],
            "head": {"limits": [-1.0, 1.0]},
        }
    )
    torsos = [REGISTRY[t["type"]](6, **t["args"]).eval() for t in cfg.model.torsos]
    head = nn.Linear(16 * len(torsos), 2)
    low, high = cfg.model.head.limits

    def policy(obs: Tensor) -> dict[str, Tensor]:
        features = torch.cat([torso(obs) for torso in torsos], dim=-1)
        return {"action": head(features).clamp(low, high)}

    return policy


@clean("B", rec={"obs": normal(1, 6)}, passes=3, backends=("jit", "onnx"))
class BkSacActor:
    """A SAC actor through torch.distributions, greedy, with the log-density of what it chose."""

    LOG_STD_MIN, LOG_STD_MAX = -5, 2

    def __init__(self) -> None:
        self.net = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 6)).eval()
        self.register = {"action_scale": torch.tensor(0.8), "action_bias": torch.tensor(0.1)}

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        mean, log_std = self.net(obs).chunk(2, dim=-1)
        log_std = torch.tanh(log_std)
        log_std = self.LOG_STD_MIN + 0.5 * (self.LOG_STD_MAX - self.LOG_STD_MIN) * (log_std + 1)
        normal_ = torch.distributions.Normal(mean, log_std.exp())
        x_t = normal_.mean
        y_t = torch.tanh(x_t)
        action = y_t * self.register["action_scale"] + self.register["action_bias"]
        log_prob = normal_.log_prob(x_t)
        log_prob = log_prob - torch.log(self.register["action_scale"] * (1 - y_t.pow(2)) + 1e-6)
        return {"action": action, "log_prob": log_prob.sum(-1, keepdim=True)}


@clean("B", rec={"joints": normal(1, 7, 3)}, passes=3, backends=("jit", "onnx"))
class BkBodyGraph:
    """Message passing over the kinematic tree, edges as index tensors."""

    EDGES = ((0, 1), (1, 2), (0, 3), (3, 4), (0, 5), (5, 6))

    def __init__(self) -> None:
        both = [*self.EDGES, *((b, a) for a, b in self.EDGES)]
        self.src, self.dst = torch.tensor(both).t().contiguous()
        self.embed = nn.Linear(3, 12)
        self.message = nn.Sequential(nn.Linear(24, 12), nn.ReLU())
        self.update, self.readout = nn.GRUCell(12, 12), nn.Linear(12, 1)

    def __call__(self, joints: Tensor) -> Tensor:
        h = self.embed(joints.squeeze(0))
        for _ in range(3):
            m = self.message(torch.cat([h[self.src], h[self.dst]], dim=-1))
            total = torch.zeros_like(h).index_add(0, self.dst, m)
            h = self.update(total, h)
        return self.readout(h).t()


@clean("B", rec={"patches": normal(1, 10, 8)}, passes=3, backends=("jit", "onnx"))
class BkSlotAttention:
    """Slot attention, three rounds, from slots that were learned."""

    def __init__(self, slots: int = 3, dim: int = 8) -> None:
        self.slots_mu = nn.Parameter(torch.randn(1, slots, dim))
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim, bias=False) for _ in range(3))
        self.gru, self.norm_in, self.norm = (
            nn.GRUCell(dim, dim),
            nn.LayerNorm(dim),
            nn.LayerNorm(dim),
        )
        self.iters, self.eps, self.scale = 3, 1e-8, dim**-0.5

    def __call__(self, patches: Tensor) -> dict[str, Tensor]:
        inputs = self.norm_in(patches)
        k, v = self.to_k(inputs), self.to_v(inputs)
        slots = self.slots_mu.expand(patches.shape[0], -1, -1)
        for _ in range(self.iters):
            dots = torch.einsum("bid,bjd->bij", self.to_q(self.norm(slots)), k) * self.scale
            attn = dots.softmax(dim=1) + self.eps
            updates = torch.einsum("bjd,bij->bid", v, attn / attn.sum(dim=-1, keepdim=True))
            slots = self.gru(updates.reshape(-1, 8), slots.reshape(-1, 8)).reshape(1, -1, 8)
        return {"slots": slots, "attention": attn}


@clean(
    "B",
    rec={"vision": normal(1, 5, 12), "proprio": normal(1, 6), "valid": flags(0.8, 1, 5)},
    passes=3,
    backends=("jit", "onnx"),
)
class BkLanguageConditioned:
    """Cross-attention from a cached instruction to the camera tokens, invalid tokens masked."""

    VOCABULARY = {"pick": 0, "up": 1, "the": 2, "red": 3, "cube": 4}

    def __init__(self) -> None:
        self.words = nn.Embedding(len(self.VOCABULARY), 12)
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True).eval()
        self.head = nn.Sequential(nn.Linear(12 + 6, 24), nn.GELU(), nn.Linear(24, 7)).eval()
        self._cache: dict[str, Tensor] = {}

    def encode(self, instruction: str) -> Tensor:
        if instruction not in self._cache:
            ids = torch.tensor([[self.VOCABULARY[word] for word in instruction.split()]])
            self._cache[instruction] = self.words(ids)
        return self._cache[instruction]

    def __call__(self, vision: Tensor, proprio: Tensor, valid: Tensor) -> Tensor:
        query = self.encode("pick up the red cube")
        valid = torch.cat([torch.ones(1, 1, dtype=torch.bool), valid[:, 1:]], dim=1)
        out, _ = self.attention(query, vision, vision, key_padding_mask=~valid, need_weights=False)
        return self.head(torch.cat([out.mean(dim=1), proprio], dim=-1))


class _SummaryWriter:
    """Like TensorBoard's, in memory."""

    def __init__(self) -> None:
        self.scalars: dict[str, list[tuple[int, float]]] = collections.defaultdict(list)

    def add_scalar(self, tag: str, value: Any, step: int) -> None:
        self.scalars[tag].append((step, float(value)))


@contextlib.contextmanager
def _timed(name: str, into: dict[str, list[float]]) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        into.setdefault(name, []).append(time.monotonic() - began)


@dataclass
class _DeployConfig:
    obs_dim: int = 8
    act_dim: int = 3
    hidden: tuple[int, ...] = (24, 24)
    log_every: int = 2
    scales: dict[str, float] = field(default_factory=lambda: {"pos": 1.0, "vel": 0.1})

    def __post_init__(self) -> None:
        if self.obs_dim <= 0:
            raise ValueError("obs_dim has to be positive")


@clean("H", style="own", rec={"actor/obs": normal(1, 8)}, passes=6, backends=("jit", "onnx"))
class BkMonitoredActor:
    """An actor with a writer, timers, a warning and checks that raise."""

    def __init__(self, backend: str) -> None:
        self.backend, self.cfg = backend, _DeployConfig()
        sizes = (self.cfg.obs_dim, *self.cfg.hidden)
        layers = [x for a, b in zip(sizes, sizes[1:]) for x in (nn.Linear(a, b), nn.Tanh())]
        self.actor = nn.Sequential(*layers, nn.Linear(sizes[-1], self.cfg.act_dim)).eval()
        self.writer, self.timers, self.step = _SummaryWriter(), {}, 0
        self.scale = torch.tensor([self.cfg.scales["pos"]] * 4 + [self.cfg.scales["vel"]] * 4)
        logger.info("config: %s", asdict(self.cfg))

    def __call__(self, given: dict[str, Any]) -> dict[str, Any]:
        obs = annotate.input_tensors("actor", {"obs": given["actor/obs"]})
        if obs.shape[-1] != self.cfg.obs_dim:
            raise ValueError(f"expected {self.cfg.obs_dim} observations, got {obs.shape[-1]}")
        with _timed("forward", self.timers):
            action = self.actor(obs * self.scale)
        if torch.isnan(action).any():
            raise RuntimeError("the policy gave NaN")
        annotate.output_tensors("actor", {"action": action}, export_with=self.backend)
        if self.step % self.cfg.log_every == 0:
            self.writer.add_scalar("action/mean", action.mean().item(), self.step)
            self.writer.add_scalar("action/max", action.abs().max(), self.step)
        if self.timers["forward"][-1] > 0.5:
            warnings.warn("the policy is slow", RuntimeWarning, stacklevel=2)
        self.step += 1
        return {"actor/action": action}


@clean("D", rec={"pose": double(normal(1, 3))}, passes=3, backends=("jit", "pt2"))
class BkNeuralField:
    """A signed distance field with Fourier features in float64, queried on a ring around a pose."""

    def __init__(self) -> None:
        self.bands = 2.0 ** torch.arange(3, dtype=torch.float64)
        angle = torch.linspace(0, 2 * math.pi, 9, dtype=torch.float64)[:-1]
        self.ring = 0.3 * torch.stack([angle.cos(), angle.sin(), torch.zeros_like(angle)], -1)
        self.net = nn.Sequential(nn.Linear(18, 24), nn.Softplus(beta=10), nn.Linear(24, 1)).double()

    def encode(self, p: Tensor) -> Tensor:
        scaled = (p[..., None] * self.bands).flatten(-2)
        return torch.cat([scaled.sin(), scaled.cos()], dim=-1)

    def __call__(self, pose: Tensor) -> dict[str, Tensor]:
        points = torch.tanh(pose)[:, None] + self.ring
        distance = self.net(self.encode(points)).squeeze(-1)
        nearest, where = distance.min(dim=-1)
        return {"clearance": nearest, "direction": self.ring[where]}


@clean("A", style="method", rec={"obs": normal(1, 5), "kind": integers(0, 3, 1)}, backends="jit")
class BkMultiTaskHeads:
    """One trunk with a GRU cell, a head for each task, chosen by a one-hot product."""

    def __init__(self) -> None:
        self.cell = nn.GRUCell(5, 12)
        self.heads = nn.ModuleDict({name: nn.Linear(12, 2) for name in ("walk", "trot", "turn")})
        self.cell.eval(), self.heads.eval()
        self.h = torch.zeros(1, 12)

    def step(self, obs: Tensor, kind: Tensor) -> Tensor:
        self.h = self.cell(obs, self.h)
        every = torch.stack([head(self.h) for head in self.heads.values()], dim=1)
        action = (every * F.one_hot(kind, 3).unsqueeze(-1)).sum(dim=1)
        return action
