"""Policies as rsl_rl, stable-baselines3, skrl and rl_games write them (evaluation only)."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal

from attacks.draws import array, flags, integers, normal, uniform
from attacks.registry import ALL, clean

log = logging.getLogger("cc.policies")


def resolve_nn_activation(name: str) -> nn.Module:
    table = {
        "elu": nn.ELU,
        "selu": nn.SELU,
        "relu": nn.ReLU,
        "lrelu": nn.LeakyReLU,
        "tanh": nn.Tanh,
    }
    if name not in table:
        raise ValueError(f"Invalid activation function '{name}'.")
    return table[name]()


def mlp(sizes: list[int], activation: str, last: str | None = None) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i, (a, b) in enumerate(zip(sizes[:-1], sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            layers.append(resolve_nn_activation(activation))
    if last is not None:
        layers.append(resolve_nn_activation(last))
    return nn.Sequential(*layers)


class EmpiricalNormalization(nn.Module):
    """rsl_rl's normaliser."""

    def __init__(self, shape: int, eps: float = 1e-2, until: int | None = None) -> None:
        super().__init__()
        self.eps, self.until = eps, until
        self.register_buffer("_mean", torch.zeros(shape).unsqueeze(0))
        self.register_buffer("_var", torch.ones(shape).unsqueeze(0))
        self.register_buffer("_std", torch.ones(shape).unsqueeze(0))
        self.register_buffer("count", torch.tensor(0, dtype=torch.long))

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
        self._mean += rate * (x.mean(0, keepdim=True) - self._mean)
        self._std = torch.sqrt(self._var)


@clean("H", style="module", rec={"obs": normal(1, 6)}, backends=ALL)
class CcRslActorCritic(nn.Module):
    """rsl_rl ActorCritic.act_inference behind a frozen empirical normaliser."""

    is_recurrent = False

    def __init__(
        self, num_obs=6, num_actions=3, hidden=(16, 12), activation="elu", **kwargs
    ) -> None:
        if kwargs:
            print("ActorCritic.__init__ got unexpected arguments:", list(kwargs))
        super().__init__()
        self.normalizer = EmpiricalNormalization(num_obs)
        self.actor = mlp([num_obs, *hidden, num_actions], activation)
        self.critic = mlp([num_obs, *hidden, 1], activation)
        self.std = nn.Parameter(torch.ones(num_actions))
        self.distribution = None
        Normal.set_default_validate_args(False)
        self.normalizer._mean += 0.3
        self.normalizer._std *= 1.7
        self.eval()

    def act_inference(self, observations: Tensor) -> Tensor:
        return self.actor(self.normalizer(observations))

    def forward(self, obs: Tensor) -> Tensor:
        return self.act_inference(obs)


@clean("H", rec={"obs": normal(1, 5)}, style="module", backends=("jit", "onnx"), passes=4)
class CcRslRecurrentMemory(nn.Module):
    """rsl_rl's Memory: hidden states None at first, kept between inference calls."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(input_size=5, hidden_size=8, num_layers=1)
        self.actor = mlp([8, 8, 2], "elu")
        self.hidden_states = None
        self.eval()

    def forward(self, obs: Tensor) -> Tensor:
        out, self.hidden_states = self.rnn(obs.unsqueeze(0), self.hidden_states)
        return self.actor(out.squeeze(0))


@clean("H", rec={"obs": normal(1, 5)}, backends="pt2", passes=5)
class CcRslLstmMemory(nn.Module):
    """rsl_rl's LSTM memory with a tuple state made of zeros by a reset."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(5, 6)
        self.head = nn.Linear(6, 2)
        self.eval()
        self.reset(1)

    def reset(self, num_envs: int) -> None:
        self.hidden = (torch.zeros(1, num_envs, 6), torch.zeros(1, num_envs, 6))

    def forward(self, obs: Tensor) -> Tensor:
        out, hidden = self.rnn(obs[None], self.hidden)
        self.hidden = tuple(h.detach() for h in hidden)
        return self.head(out[0])


@clean("H", rec={"policy": normal(1, 4), "terrain": normal(1, 6)}, backends="jit")
class CcRslObsGroups(nn.Module):
    """Observation groups put together by a config of names, as in newer rsl_rl."""

    obs_groups = {"policy": ["policy", "terrain"], "critic": ["policy", "terrain"]}

    def __init__(self) -> None:
        super().__init__()
        self.actor = mlp([10, 12, 3], "elu")
        self.norm = EmpiricalNormalization(10)
        self.eval()

    def get_actor_obs(self, obs: dict[str, Tensor]) -> Tensor:
        return torch.cat([obs[g] for g in self.obs_groups["policy"]], dim=-1)

    def forward(self, policy: Tensor, terrain: Tensor) -> dict:
        obs = self.get_actor_obs({"policy": policy, "terrain": terrain})
        return {"actions": self.actor(self.norm(obs))}


@clean("H", style="module", rec={"obs": normal(2, 4)}, backends="onnx")
class CcStudentTeacher(nn.Module):
    """Distillation: the student acts, the teacher is there for the loss that is only reported."""

    def __init__(self) -> None:
        super().__init__()
        self.student, self.teacher = mlp([4, 8, 2], "elu"), mlp([4, 8, 2], "elu")
        self.loaded_teacher = True
        self.teacher.eval()
        self.last_loss = float("nan")

    def forward(self, obs: Tensor) -> Tensor:
        action = self.student(obs)
        if self.loaded_teacher:
            with torch.no_grad():
                target = self.teacher(obs)
            self.last_loss = F.mse_loss(action, target).item()
        return action


@clean("H", rec={"obs": normal(1, 4)}, style="method", backends="jit")
class CcSb3DiagGaussian:
    """SB3's DiagGaussianDistribution, deterministic prediction clipped to the box."""

    def __init__(self) -> None:
        self.policy_net, self.action_net = mlp([4, 16, 16], "tanh", "tanh"), nn.Linear(16, 2)
        self.log_std = nn.Parameter(torch.ones(2) * -0.5)
        self.low, self.high = torch.tensor([-1.0, -0.5]), torch.tensor([1.0, 0.5])

    def proba_distribution(self, mean_actions: Tensor, log_std: Tensor) -> Normal:
        action_std = torch.ones_like(mean_actions) * log_std.exp()
        return Normal(mean_actions, action_std, validate_args=False)

    def step(self, obs: Tensor) -> Tensor:
        dist = self.proba_distribution(self.action_net(self.policy_net(obs)), self.log_std)
        mode = dist.mean
        action = torch.max(torch.min(mode, self.high), self.low)
        return action


@clean("H", style="module", rec={"obs": normal(1, 4)}, backends=("jit", "pt2"))
class CcSb3Squashed(nn.Module):
    """SAC's actor: mean, clamped log-std, tanh, log-probability of the mean action."""

    LOG_STD_MIN, LOG_STD_MAX = -20, 2

    def __init__(self) -> None:
        super().__init__()
        self.latent_pi = mlp([4, 16, 16], "relu", "relu")
        self.mu, self.log_std = nn.Linear(16, 2), nn.Linear(16, 2)
        self.epsilon = 1e-6

    def forward(self, obs: Tensor) -> dict:
        latent = self.latent_pi(obs)
        mean, log_std = (
            self.mu(latent),
            torch.clamp(self.log_std(latent), self.LOG_STD_MIN, self.LOG_STD_MAX),
        )
        dist = Normal(mean, log_std.exp(), validate_args=False)
        gaussian = dist.mean
        squashed = torch.tanh(gaussian)
        log_prob = dist.log_prob(gaussian).sum(dim=-1)
        log_prob = log_prob - torch.sum(torch.log(1 - squashed**2 + self.epsilon), dim=1)
        return {"action": squashed, "log_prob": log_prob, "entropy": dist.entropy().sum(-1)}


@clean("H", rec={"obs": normal(2, 4)}, backends=("jit", "onnx"))
class CcSb3Categorical(nn.Module):
    """A categorical policy: mode and its probabilities, with Python around it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp([4, 8, 3], "tanh")

    def forward(self, obs: Tensor) -> dict:
        dist = Categorical(logits=self.net(obs), validate_args=False)
        action = torch.argmax(dist.probs, dim=1)
        return {"action": action, "probs": dist.probs, "entropy": dist.entropy()}


@clean("H", rec={"obs": normal(1, 4), "allowed": flags(0.7, 1, 5)}, backends="onnx", passes=3)
class CcMaskableCategorical(nn.Module):
    """sb3-contrib's masked logits: forbidden actions get a huge negative number."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(4, 5)
        self.HUGE_NEG = -1e8

    def forward(self, obs: Tensor, allowed: Tensor) -> Tensor:
        logits = self.net(obs)
        masks = allowed.reshape(logits.shape)
        masked = torch.where(masks, logits, torch.full_like(logits, self.HUGE_NEG))
        return F.softmax(masked, dim=-1).clamp_min(1e-12)


@clean("H", style="module", rec={"obs": normal(1, 6)}, backends="jit")
class CcMultiDiscrete(nn.Module):
    """One categorical for each dimension, by a split of the logits."""

    def __init__(self) -> None:
        super().__init__()
        self.action_dims = [2, 3, 4]
        self.net = nn.Linear(6, sum(self.action_dims))

    def forward(self, obs: Tensor) -> Tensor:
        dists = [
            Categorical(logits=s, validate_args=False)
            for s in self.net(obs).split(self.action_dims, 1)
        ]
        return torch.stack([torch.argmax(d.probs, dim=1) for d in dists], dim=1)


@clean("H", rec={"obs": normal(1, 4)}, backends="jit", context="inference")
class CcSkrlGaussianMixin:
    """skrl: a model from a mixin and a base, `act` with an inputs dict and a role."""

    def __init__(self) -> None:
        class Model(nn.Module):
            def __init__(self, clip_actions: bool) -> None:
                super().__init__()
                self._c = {"policy": clip_actions}

        class GaussianMixin:
            def act(self, inputs, role=""):
                mean, log_std, outputs = self.compute(inputs, role)
                if self._c.get(role, False):
                    mean = torch.clamp(mean, -1.0, 1.0)
                outputs["mean_actions"] = mean
                outputs["std"] = log_std.clamp(-20, 2).exp().expand_as(mean)
                return mean, outputs

        class Policy(GaussianMixin, Model):
            def __init__(self) -> None:
                Model.__init__(self, True)
                self.net = mlp([4, 8, 2], "elu")
                self.log_std_parameter = nn.Parameter(torch.zeros(2))

            def compute(self, inputs, role):
                return self.net(inputs["states"]), self.log_std_parameter, {}

        self.policy = Policy().eval()

    def __call__(self, obs: Tensor) -> dict:
        actions, outputs = self.policy.act({"states": obs}, role="policy")
        return {"actions": actions, "std": outputs["std"]}


@clean("H", rec={"obs": normal(2, 5)}, backends=("onnx", "pt2"))
class CcSkrlShared(nn.Module):
    """skrl's shared trunk: the policy stores the trunk's output, the value takes and clears it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp([5, 12, 8], "elu", "elu")
        self.mean_layer, self.value_layer = nn.Linear(8, 3), nn.Linear(8, 1)
        self._shared_output = None

    def compute(self, obs: Tensor, role: str) -> Tensor:
        if role == "policy":
            self._shared_output = self.net(obs)
            return self.mean_layer(self._shared_output)
        shared = self.net(obs) if self._shared_output is None else self._shared_output
        self._shared_output = None
        return self.value_layer(shared)

    def forward(self, obs: Tensor) -> dict:
        return {"mean": self.compute(obs, "policy"), "value": self.compute(obs, "value")}


@clean("H", rec={"obs": normal(1, 6)}, backends="jit", style="module")
class CcRlGamesA2C(nn.Module):
    """rl_games: running mean and std in double, value denormalised, mus clamped."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.linspace(-0.5, 0.5, 6, dtype=torch.float64))
        self.register_buffer("running_var", torch.linspace(0.5, 2.0, 6, dtype=torch.float64))
        self.register_buffer("value_mean", torch.full((1,), 3.0, dtype=torch.float64))
        self.register_buffer("value_var", torch.full((1,), 4.0, dtype=torch.float64))
        self.mlp, self.mu, self.value = (
            mlp([6, 16, 8], "elu", "elu"),
            nn.Linear(8, 2),
            nn.Linear(8, 1),
        )
        self.sigma = nn.Parameter(torch.zeros(2))
        self.eval()

    def norm_obs(self, x: Tensor) -> Tensor:
        y = (x - self.running_mean.float()) / torch.sqrt(self.running_var.float() + 1e-5)
        return torch.clamp(y, min=-5.0, max=5.0)

    def unnorm_value(self, v: Tensor) -> Tensor:
        y = torch.clamp(v, min=-5.0, max=5.0)
        return torch.sqrt(self.value_var.float() + 1e-5) * y + self.value_mean.float()

    def forward(self, obs: Tensor) -> dict:
        with torch.no_grad():
            a = self.mlp(self.norm_obs(obs))
            mu, sigma = self.mu(a), self.mu(a) * 0.0 + self.sigma
            return {
                "mus": mu.clamp(-1.0, 1.0),
                "sigmas": torch.exp(sigma),
                "values": self.unnorm_value(self.value(a)),
            }


@clean("H", rec={"obs": normal(1, 6)}, backends="jit")
class CcRlGamesRescale:
    """rl_games' player: rescale_actions from [-1, 1] to the limits of an action space."""

    def __init__(self) -> None:
        self.net = mlp([6, 8, 3], "elu", "tanh")
        self.actions_low = torch.from_numpy(np.array([-1.0, -2.0, 0.0], dtype=np.float32).copy())
        self.actions_high = torch.from_numpy(np.array([1.0, 2.0, 3.0], dtype=np.float32).copy())
        self.clip_actions = True

    @staticmethod
    def rescale_actions(low: Tensor, high: Tensor, action: Tensor) -> Tensor:
        d = (high - low) / 2.0
        m = (high + low) / 2.0
        return action * d + m

    def __call__(self, obs: Tensor) -> Tensor:
        current = torch.squeeze(self.net(obs).detach())
        if self.clip_actions:
            return self.rescale_actions(
                self.actions_low, self.actions_high, torch.clamp(current, -1.0, 1.0)
            )
        return current


@clean("H", rec={"obs": array(normal(4))}, backends=("jit", "onnx"))
class CcSb3Predict:
    """SB3's predict: NumPy in, a batch added, unscaled with NumPy, the batch removed."""

    def __init__(self) -> None:
        self.actor = mlp([4, 8, 2], "relu")
        self.low, self.high = np.float32([-2, -1]), np.float32([2, 3])

    def obs_to_tensor(self, observation: np.ndarray) -> tuple[Tensor, bool]:
        vectorized = observation.ndim > 1
        observation = observation.reshape((-1, 4))
        return torch.as_tensor(observation), vectorized

    def unscale_action(self, scaled: np.ndarray) -> np.ndarray:
        return self.low + (0.5 * (scaled + 1.0) * (self.high - self.low))

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        tensor, vectorized = self.obs_to_tensor(obs)
        with torch.no_grad():
            actions = torch.tanh(self.actor(tensor))
        actions = self.unscale_action(actions.cpu().numpy().reshape((-1, 2)))
        return actions if vectorized else actions.squeeze(axis=0)


@clean("H", style="module", rec={"obs": normal(1, 6)}, backends="pt2")
class CcTwinCritics(nn.Module):
    """TD3's twin critics of the actor's action and the smaller value of the two."""

    def __init__(self) -> None:
        super().__init__()
        self.actor = mlp([6, 8, 2], "relu", "tanh")
        self.q_networks: list[nn.Module] = []
        for idx in range(2):
            q_net = mlp([8, 12, 1], "relu")
            self.add_module(f"qf{idx}", q_net)
            self.q_networks.append(q_net)

    def forward(self, obs: Tensor) -> dict:
        action = self.actor(obs)
        qvalue_input = torch.cat([obs, action], dim=1)
        q = torch.cat(tuple(net(qvalue_input) for net in self.q_networks), dim=1)
        return {"action": action, "q_min": torch.min(q, dim=1, keepdim=True)[0]}


@clean("H", rec={"obs": normal(1, 5)}, backends="onnx")
class CcQuantileCritic(nn.Module):
    """TQC: sorted quantiles, the top ones dropped, the mean of the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(mlp([5, 8, 7], "relu") for _ in range(2))
        self.top_quantiles_to_drop_per_net = 2

    def forward(self, obs: Tensor) -> Tensor:
        quantiles = torch.stack([n(obs) for n in self.nets], dim=1)
        ordered, _ = torch.sort(quantiles.reshape(obs.shape[0], -1))
        n_target = 14 - self.top_quantiles_to_drop_per_net * len(self.nets)
        return ordered[:, :n_target].mean(-1, keepdim=True)


@clean("H", rec={"obs": normal(1, 5)}, backends="jit")
class CcDistributionalValue(nn.Module):
    """C51: the support as a buffer, the expected value by a product with softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("support", torch.linspace(-10.0, 10.0, 21))
        self.advantage, self.value = nn.Linear(5, 3 * 21), nn.Linear(5, 21)

    def forward(self, obs: Tensor) -> dict:
        adv, val = self.advantage(obs).view(-1, 3, 21), self.value(obs).view(-1, 1, 21)
        probs = (val + adv - adv.mean(1, keepdim=True)).softmax(dim=-1)
        q = (probs * self.support).sum(-1)
        return {"q": q, "action": q.argmax(dim=1)}


@clean(
    "H",
    rec={"obs": normal(1, 4), "command": normal(1, 3)},
    backends="jit",
    style="method",
    passes=5,
)
class CcHistoryEncoder:
    """HIM / RMA: a rolled history on self, an encoder over it, normalised latent to the actor."""

    def __init__(self) -> None:
        self.history = torch.zeros(1, 5, 4)
        self.encoder, self.actor = mlp([20, 16, 7], "elu"), mlp([4 + 3 + 3 + 4, 16, 2], "elu")

    def step(self, obs: Tensor, command: Tensor) -> tuple[Tensor, Tensor]:
        self.history = torch.cat((self.history[:, 1:], obs.unsqueeze(1)), dim=1)
        parts = self.encoder(self.history.flatten(1))
        vel, latent = parts[..., :3], parts[..., 3:]
        latent = F.normalize(latent, dim=-1, p=2)
        action = self.actor(torch.cat((obs, command, vel, latent), dim=-1))
        return action, vel


@clean("H", rec={"obs": normal(1, 6), "skill": integers(0, 4, 1)}, backends=ALL, passes=3)
class CcSkillPolicy(nn.Module):
    """A policy with an embedding of the skill and FiLM modulation."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(4, 5)
        self.film, self.trunk, self.head = nn.Linear(5, 16), nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, obs: Tensor, skill: Tensor) -> Tensor:
        gamma, beta = self.film(self.embed(skill)).chunk(2, dim=-1)
        return self.head(F.elu((1 + gamma) * self.trunk(obs) + beta))


@dataclass
class PolicyCfg:
    """A configuration like Isaac Lab's RslRlPpoActorCriticCfg."""

    hidden_dims: list[int] = field(default_factory=lambda: [12, 8])
    activation: str = "elu"
    init_noise_std: float = 1.0
    clip: float | None = 3.0
    scale: float = 0.25


@clean("H", rec={"obs": normal(1, 6)}, backends="onnx", style="method")
class CcDataclassPolicy:
    """A policy made from a dataclass, with options that are looked at in every step."""

    def __init__(self) -> None:
        self.cfg = PolicyCfg()
        self.net = mlp([6, *self.cfg.hidden_dims, 3], self.cfg.activation)
        self.default_joint_pos = torch.tensor([0.0, 0.8, -1.5])

    def step(self, obs: Tensor) -> Tensor:
        actions = self.net(obs)
        if self.cfg.clip is not None:
            actions = torch.clip(actions, -self.cfg.clip, self.cfg.clip)
        targets = actions * self.cfg.scale + self.default_joint_pos
        return targets


@clean("H", rec={"obs": normal(1, 4)}, backends="jit", context="grad", passes=3)
class CcIndependentNormal(nn.Module):
    """A Gaussian with softplus deviation, wrapped in Independent, its mean and log-density at zero."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp([4, 8, 4], "tanh")

    def forward(self, obs: Tensor) -> dict:
        mean, raw = self.net(obs).chunk(2, -1)
        std = F.softplus(raw) + 1e-3
        dist = Independent(Normal(mean, std, validate_args=False), 1, validate_args=False)
        return {
            "mean": dist.mean,
            "log_prob": dist.log_prob(torch.zeros_like(mean)),
            "var": dist.variance,
        }


@clean("H", rec={"obs": uniform(-1.0, 1.0, 1, 3)}, backends="jit", passes=3)
class CcBetaPolicy(nn.Module):
    """A Beta policy's mean, scaled to the limits."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(3, 4)

    def forward(self, obs: Tensor) -> Tensor:
        alpha, beta = (F.softplus(self.net(obs)) + 1.0).chunk(2, dim=-1)
        dist = torch.distributions.Beta(alpha, beta, validate_args=False)
        return dist.mean * 2.0 * math.pi - math.pi
