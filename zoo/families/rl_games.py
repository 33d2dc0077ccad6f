"""rl_games: networks from descriptions as in its YAML files, and what its players do with them."""

from __future__ import annotations

import contextlib
import io
from typing import Any

import torch
from attacks.draws import flags, normal, row, uniform
from torch import Tensor

from zoo.register import policy

NEEDS = ("rl_games",)
CONTINUOUS = {
    "continuous": {
        "mu_activation": "None",
        "sigma_activation": "None",
        "mu_init": {"name": "default"},
        "sigma_init": {"name": "const_initializer", "val": -0.5},
        "fixed_sigma": True,
    }
}
DISCRETE: dict[str, Any] = {"discrete": {}}
MLP = {"units": [32, 16], "activation": "elu", "initializer": {"name": "default"}}


def build(
    shape: tuple[int, ...],
    actions: int,
    *,
    model: str = "continuous_a2c_logstd",
    network: str = "actor_critic",
    space: dict[str, Any] = CONTINUOUS,
    config: dict[str, Any] | None = None,
    **parts: Any,
) -> Any:
    """Build a model with statistics of its inputs and values."""
    from rl_games.algos_torch.model_builder import ModelBuilder

    described = {"name": network, "separate": False, "space": space, "mlp": MLP} | parts
    with contextlib.redirect_stdout(io.StringIO()):
        builder = ModelBuilder().load({"model": {"name": model}, "network": described})
        options = {"normalize_input": True, "normalize_value": True, "num_seqs": 1}
        made = builder.build(
            {"actions_num": actions, "input_shape": shape} | options | (config or {})
        )
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(1.8 if weight.dim() > 1 else 1.0)
        made.train()
        for _ in range(5):
            made.norm_obs(torch.rand(64, *shape) * 4.0 - 1.0)
            if made.normalize_value:
                made.value_mean_std(3.0 * torch.randn(64, 1) + 1.0)
    return made.eval()


def rescaled(low: Tensor, high: Tensor, action: Tensor) -> Tensor:
    return action * (high - low) / 2.0 + (high + low) / 2.0


@policy("rl_games", inputs={"obs": normal(1, 10)}, needs=NEEDS)
def rl_games_mlp():
    """As its notebook exports it: the normaliser, the network without the distribution, limits."""
    model = build((10,), 4)
    low, high = torch.tensor([-1.0, -2.0, 0.0, 0.5]), torch.tensor([1.0, 0.0, 3.0, 0.6])

    def step(obs: Tensor) -> Tensor:
        inputs = {"obs": model.norm_obs(obs)}
        mu, _logstd, _value, _states = model.a2c_network(inputs)
        return rescaled(low, high, torch.clamp(mu, -1.0, 1.0))

    return step


@policy("rl_games", inputs={"obs": normal(10)}, needs=NEEDS, name="rl_games_player")
class Player:
    """A player for one environment: the model also draws an action, which is not taken."""

    has_batch_dimension = False
    clip_actions = True

    def __init__(self) -> None:
        self.model = build((10,), 3)
        self.actions_low, self.actions_high = torch.full((3,), -0.5), torch.full((3,), 1.5)
        self.states: Any = None

    def get_action(self, obs: Tensor, is_deterministic: bool = False) -> Tensor:
        if not self.has_batch_dimension:
            obs = obs.unsqueeze(0)
        inputs = {
            "is_train": False,
            "prev_actions": None,
            "obs": obs,
            "rnn_states": self.states,
        }
        with torch.no_grad():
            results = self.model(inputs)
        self.states = results["rnn_states"]
        action = results["mus"] if is_deterministic else results["actions"]
        if not self.has_batch_dimension:
            action = torch.squeeze(action.detach())
        if self.clip_actions:
            action = torch.clamp(action, -1.0, 1.0)
            return rescaled(self.actions_low, self.actions_high, action)
        return action

    def __call__(self, obs: Tensor) -> Tensor:
        return self.get_action(obs, is_deterministic=True)


@policy("rl_games", inputs={"obs": normal(1, 8)}, passes=6, needs=NEEDS, name="rl_games_lstm")
class LstmAfterMlp:
    """An LSTM after the MLP, which also sees what the MLP saw."""

    def __init__(self) -> None:
        rnn = {"name": "lstm", "units": 16, "layers": 1, "concat_input": True}
        self.model = build((8,), 3, rnn=rnn)
        self.states = self.model.get_default_rnn_state()

    def __call__(self, obs: Tensor) -> Tensor:
        inputs = {"obs": self.model.norm_obs(obs), "rnn_states": self.states}
        mu, _, _, self.states = self.model.a2c_network(inputs)
        return torch.tanh(mu)


@policy(
    "rl_games",
    inputs={"obs": normal(2, 8), "dones": flags(0.1, 2)},
    passes=6,
    style="method",
    needs=NEEDS,
    name="rl_games_lstm_before_mlp",
)
class LstmBeforeMlp:
    """An LSTM before the MLP, with layer norm; environments that are done lose their states."""

    def __init__(self) -> None:
        rnn = {"name": "lstm", "units": 16, "layers": 1, "before_mlp": True}
        rnn |= {"layer_norm": True, "concat_output": True}
        self.model = build((8,), 3, rnn=rnn, config={"num_seqs": 2})
        self.states = self.model.get_default_rnn_state()

    def step(self, obs: Tensor, dones: Tensor) -> tuple[Tensor, Tensor]:
        for state in self.states:
            state[:, dones, :] = state[:, dones, :] * 0.0
        inputs = {"obs": self.model.norm_obs(obs), "rnn_states": self.states}
        mu, _, value, self.states = self.model.a2c_network(inputs)
        value = self.model.denorm_value(value)
        return mu, value


@policy("rl_games", inputs={"obs": normal(1, 8)}, passes=6, needs=NEEDS)
def rl_games_gru_separate():
    """A GRU for the actor and one for the critic; the states stand in a dictionary."""
    rnn = {"name": "gru", "units": 16, "layers": 1}
    model = build((8,), 3, rnn=rnn, separate=True)
    memory = {"states": model.get_default_rnn_state()}

    def step(obs: Tensor) -> dict[str, Tensor]:
        inputs = {"is_train": False, "obs": obs, "rnn_states": memory["states"]}
        results = model(inputs)
        memory["states"] = results["rnn_states"]
        return {"actions": results["mus"], "values": results["values"]}

    return step


@policy(
    "rl_games",
    inputs={
        "image": uniform(0, 1, 1, 24, 24, 3),
        "mask": row(
            [[True, True, False, True]], [[False, True, True, True]], [[True, False, True, True]]
        ),
    },
    needs=NEEDS,
)
def rl_games_cnn_masked():
    """Images with channels last, batch norm, and discrete actions of which some are forbidden."""
    from rl_games.common.extensions.distributions import CategoricalMasked

    convs = [
        {"filters": 8, "kernel_size": 5, "strides": 2, "padding": 0},
        {"filters": 8, "kernel_size": 3, "strides": 2, "padding": 1},
    ]
    cnn = {"type": "conv2d", "activation": "relu", "initializer": {"name": "default"}}
    model = build(
        (24, 24, 3),
        4,
        model="discrete_a2c",
        space=DISCRETE,
        cnn=cnn | {"convs": convs},
        normalization="batch_norm",
        config={"normalize_value": False},
    )

    def step(image: Tensor, mask: Tensor) -> dict[str, Tensor]:
        logits, _value, _states = model.a2c_network({"obs": model.norm_obs(image)})
        distribution = CategoricalMasked(logits=logits, masks=mask)
        action = torch.argmax(distribution.logits, dim=-1)
        return {"action": action, "probs": distribution.probs}

    return step


@policy("rl_games", inputs={"image": uniform(0, 1, 1, 2, 24, 24)}, needs=NEEDS)
def rl_games_spatial_softargmax():
    """Keypoints of a depth image and a mask, and tanh on the mean."""
    convs = [
        {"filters": 8, "kernel_size": 5, "strides": 2, "padding": 2},
        {"filters": 8, "kernel_size": 3, "strides": 1, "padding": 1},
    ]
    cnn = {"type": "conv2d_spatial_softargmax", "activation": "relu", "permute_input": False}
    cnn |= {"initializer": {"name": "orthogonal_initializer", "gain": 3.0}, "convs": convs}
    tanh = {"continuous": CONTINUOUS["continuous"] | {"mu_activation": "tanh"}}
    model = build((2, 24, 24), 3, cnn=cnn, space=tanh)

    def step(image: Tensor) -> Tensor:
        return 3.0 * model.a2c_network({"obs": model.norm_obs(image)})[0]

    return step


@policy(
    "rl_games",
    inputs={"image": uniform(0, 1, 1, 16, 16, 1), "reward": normal(1)},
    passes=6,
    needs=NEEDS,
    name="rl_games_resnet_lstm",
)
class ResnetLstm:
    """IMPALA's residual net; the LSTM also sees the reward and the last action."""

    def __init__(self) -> None:
        cnn = {"conv_depths": [4, 8], "initializer": {"name": "default"}}
        rnn = {"name": "lstm", "units": 16, "layers": 1}
        options = {"require_rewards": True, "require_last_actions": True, "rnn": rnn, "cnn": cnn}
        off = {"normalize_input": False, "normalize_value": False}
        network = "resnet_actor_critic"
        self.model = build((16, 16, 1), 3, network=network, config=off, **options)
        self.states = self.model.get_default_rnn_state()
        self.last_action = torch.zeros(1, 3)

    def __call__(self, image: Tensor, reward: Tensor) -> Tensor:
        obs = {"observation": image, "reward": reward, "last_action": self.last_action}
        mu, _, _, self.states = self.model.a2c_network({"obs": obs, "rnn_states": self.states})
        self.last_action = torch.clamp(mu, -1.0, 1.0)
        return self.last_action * 0.5


@policy("rl_games", inputs={"obs": normal(2, 9)}, style="method", needs=NEEDS, name="rl_games_sac")
class Sac:
    """The mean of a squashed normal, within limits, and what both critics say of it."""

    def __init__(self) -> None:
        self.model = build(
            (9,),
            2,
            model="soft_actor_critic",
            network="soft_actor_critic",
            separate=True,
            log_std_bounds=[-5, 2],
            config={"obs_dim": 9, "action_dim": 2, "normalize_value": False},
        )
        self.action_range = [-0.7, 0.9]

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        obs = self.model.norm_obs(obs)
        distribution = self.model.actor(obs)
        actions = distribution.mean.clamp(*self.action_range)
        value = torch.min(*self.model.critic(obs, actions))
        return actions, value


@policy("rl_games", inputs={"obs": normal(1, 10)}, passes=6, needs=NEEDS, name="rl_games_d2rl")
class D2rl:
    """D2RL, whose layers all see the input, with an action of which a part remains each tick."""

    def __init__(self) -> None:
        self.model = build((10,), 4, mlp=MLP | {"d2rl": True, "units": [24, 24, 24]})
        self.smoothed = torch.zeros(4)

    def __call__(self, obs: Tensor) -> Tensor:
        mu = self.model.a2c_network({"obs": self.model.norm_obs(obs)})[0]
        self.smoothed.mul_(0.7).add_(0.3 * mu.squeeze(0).clamp(-1.0, 1.0))
        return self.smoothed.clone()
