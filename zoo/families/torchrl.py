"""torchrl: actors that take and give TensorDicts, deterministic."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from attacks.draws import flags, integers, normal, row
from torch import Tensor, nn

from zoo.register import policy

NEEDS = ("torchrl", "tensordict")


def livened(net: nn.Module, gain: float = 1.8) -> nn.Module:
    """Make weights as large as training does, so that actions move."""
    with torch.no_grad():
        for weight in net.parameters():
            weight.mul_(gain if weight.dim() > 1 else 1.0)
    return net.eval()


def mlp(size: int, out: int, *cells: int, **options: Any) -> nn.Module:
    from torchrl.modules import MLP

    return livened(MLP(size, out, num_cells=list(cells or (32, 32)), **options))


@policy("torchrl", inputs={"obs": normal(1, 8)}, needs=NEEDS)
def torchrl_mlp():
    """A network between two keys of a TensorDict, and tanh with limits."""
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule, TensorDictSequential
    from torchrl.modules import TanhModule

    actor = TensorDictSequential(
        TensorDictModule(mlp(8, 3), in_keys=["observation"], out_keys=["action"]),
        TanhModule(in_keys=["action"], low=-0.5, high=1.5),
    )

    def step(obs: Tensor) -> Tensor:
        return actor(TensorDict({"observation": obs}, batch_size=[1]))["action"]

    return step


@policy("torchrl", inputs={"obs": normal(1, 8)}, context="inference", needs=NEEDS)
def torchrl_tanh_normal():
    """PPO's actor under `set_exploration_type(DETERMINISTIC)`."""
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule
    from torchrl.envs.utils import ExplorationType, set_exploration_type
    from torchrl.modules import NormalParamExtractor, ProbabilisticActor, TanhNormal

    net = nn.Sequential(mlp(8, 6, activation_class=nn.Tanh), NormalParamExtractor())
    actor = ProbabilisticActor(
        TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"]),
        in_keys=["loc", "scale"],
        distribution_class=TanhNormal,
        distribution_kwargs={"low": torch.tensor([-1.0, -2.0, 0.0]), "high": torch.ones(3)},
    ).eval()

    def step(obs: Tensor) -> Tensor:
        with set_exploration_type(ExplorationType.DETERMINISTIC):
            return actor(TensorDict({"observation": obs}, batch_size=[1])).get("action")

    return step


@policy("torchrl", inputs={"obs": normal(2, 8)}, style="method", needs=NEEDS, name="torchrl_mode")
class Mode:
    """An actor that takes keywords and gives a tuple, with its log-probability."""

    def __init__(self) -> None:
        from tensordict.nn import InteractionType, TensorDictModule
        from torchrl.modules import IndependentNormal, NormalParamExtractor, ProbabilisticActor

        net = nn.Sequential(mlp(8, 4), NormalParamExtractor("exp"))
        self.actor = ProbabilisticActor(
            TensorDictModule(net, in_keys=["observation"], out_keys=["loc", "scale"]),
            in_keys=["loc", "scale"],
            distribution_class=IndependentNormal,
            default_interaction_type=InteractionType.DETERMINISTIC,
            return_log_prob=True,
        ).eval()

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        _loc, _scale, action, log_prob = self.actor(observation=obs)
        return action, log_prob


@policy(
    "torchrl",
    inputs={
        "pixels": integers(0, 256, 1, 3, 24, 24, dtype=torch.uint8),
        "proprio": normal(1, 4),
    },
    needs=NEEDS,
)
def torchrl_pixels():
    """Modules in a row that write into one TensorDict with nested keys."""
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule, TensorDictSequential
    from torchrl.modules import ConvNet

    convs = ConvNet(3, num_cells=[8, 8], kernel_sizes=[5, 3], strides=2, squeeze_output=False)
    scaled = TensorDictModule(
        lambda pixels: pixels.float().div(127.5).sub(1.0), ["pixels"], [("hidden", "image")]
    )
    actor = TensorDictSequential(
        scaled,
        TensorDictModule(livened(convs, 2.5), [("hidden", "image")], [("hidden", "latent")]),
        TensorDictModule(mlp(132, 3, 32), [("hidden", "latent"), "proprio"], ["action"]),
    )

    def step(pixels: Tensor, proprio: Tensor) -> Tensor:
        batch = TensorDict({"pixels": pixels, "proprio": proprio}, batch_size=[1])
        return actor(batch).get("action")

    return step


@policy(
    "torchrl",
    inputs={"obs": normal(1, 6), "is_init": flags(0.15, 1, 1)},
    passes=8,
    needs=NEEDS,
    name="torchrl_lstm",
)
class Lstm:
    """An LSTM module: its states move from `next` to the root, and are zero where one begins."""

    def __init__(self) -> None:
        from tensordict import TensorDict
        from tensordict.nn import TensorDictModule, TensorDictSequential
        from torchrl.modules import LSTMModule

        lstm = LSTMModule(6, 16, in_key="observation", out_key="intermediate")
        head = TensorDictModule(mlp(16, 2, 16), in_keys=["intermediate"], out_keys=["action"])
        self.policy = TensorDictSequential(livened(lstm), head)
        states = {f"recurrent_state_{name}": torch.zeros(1, 1, 16) for name in "hc"}
        self.carried = TensorDict(states, batch_size=[1])

    def __call__(self, obs: Tensor, is_init: Tensor) -> Tensor:
        data = self.carried.clone(False).update({"observation": obs, "is_init": is_init})
        data = self.policy(data)
        self.carried = data["next"]
        return data["action"]


@policy(
    "torchrl",
    inputs={"obs": normal(2, 6)},
    passes=6,
    style="method",
    needs=NEEDS,
    name="torchrl_gru",
)
class Gru:
    """A GRU in plain Python, two layers, in a rollout that `step_mdp` carries on."""

    def __init__(self) -> None:
        from tensordict import TensorDict
        from tensordict.nn import TensorDictModule, TensorDictSequential
        from torchrl.modules import GRUModule

        gru = GRUModule(
            6, 16, num_layers=2, python_based=True, in_key="observation", out_key="hidden"
        )
        head = TensorDictModule(mlp(16, 2, 16), in_keys=["hidden"], out_keys=["action"])
        self.policy = TensorDictSequential(livened(gru), head)
        self.data = TensorDict({"recurrent_state": torch.zeros(2, 2, 16)}, batch_size=[2])

    def step(self, obs: Tensor) -> Tensor:
        from torchrl.envs.utils import step_mdp

        self.data.set("observation", obs)
        self.data.set("is_init", torch.zeros(2, 1, dtype=torch.bool))
        self.policy(self.data)
        action = self.data["action"]
        self.data = step_mdp(self.data)
        return action


MASKS = row([[True, True, False, True]], [[True, False, True, True]], [[False, True, True, True]])


@policy("torchrl", inputs={"obs": normal(1, 5), "mask": MASKS}, needs=NEEDS)
def torchrl_dqn():
    """The best action that is allowed, one-hot, with its value."""
    from tensordict import TensorDict
    from torchrl.data import OneHot
    from torchrl.modules import QValueActor

    q_actor = QValueActor(mlp(5, 4), spec=OneHot(4), action_mask_key="action_mask").eval()

    def step(obs: Tensor, mask: Tensor) -> dict[str, Tensor]:
        data = TensorDict({"observation": obs, "action_mask": mask}, batch_size=[1])
        action, _values, chosen = (q_actor(data)[key] for key in q_actor.out_keys)
        return {"action": action, "chosen": chosen}

    return step


@policy("torchrl", inputs={"obs": normal(1, 5)}, needs=NEEDS)
def torchrl_distributional():
    """A distribution over returns for every action (C51)."""
    from tensordict import TensorDict
    from torchrl.data import OneHot
    from torchrl.modules import DistributionalQValueActor

    support = torch.linspace(-5.0, 5.0, 11)
    net = mlp(5, (11, 3))
    q_actor = DistributionalQValueActor(net, support=support, spec=OneHot(3)).eval()

    def step(obs: Tensor) -> dict[str, Tensor]:
        data = q_actor(TensorDict({"observation": obs}, batch_size=[1]))
        values = (data["action_value"].exp() * support.unsqueeze(-1)).sum(dim=-2)
        return {"action": data["action"], "values": values}

    return step


@policy(
    "torchrl", inputs={"obs": normal(3, 8)}, style="method", needs=NEEDS, name="torchrl_operator"
)
class Operator:
    """A shared trunk with the heads of actor and critic."""

    def __init__(self) -> None:
        from tensordict.nn import TensorDictModule
        from torchrl.modules import ActorValueOperator, ValueOperator

        common = TensorDictModule(mlp(8, 16, 32), in_keys=["observation"], out_keys=["hidden"])
        actor = TensorDictModule(mlp(16, 2, 16), in_keys=["hidden"], out_keys=["action"])
        critic = ValueOperator(mlp(16, 1, 16), in_keys=["hidden"])
        self.operator = ActorValueOperator(common, actor, critic).eval()

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        from tensordict import TensorDict

        data = self.operator(TensorDict({"observation": obs}, batch_size=[3]))
        action, value = data["action"], data["state_value"]
        return action, value


@policy("torchrl", inputs={"obs": normal(1, 3, 5)}, needs=NEEDS)
def torchrl_multi_agent():
    """Three agents with a network each, which torchrl runs with `vmap`."""
    from tensordict import TensorDict
    from tensordict.nn import TensorDictModule
    from torchrl.modules import MultiAgentMLP

    net = MultiAgentMLP(5, 2, 3, centralized=False, share_params=False, num_cells=[16, 16])
    keys = {"in_keys": [("agents", "observation")], "out_keys": [("agents", "action")]}
    actor = TensorDictModule(livened(net, 1.5), **keys)

    def step(obs: Tensor) -> Tensor:
        agents = TensorDict({"observation": obs}, batch_size=[1, 3])
        return actor(TensorDict({"agents": agents}, batch_size=[1]))["agents", "action"].tanh()

    return step


@policy(
    "torchrl", inputs={"obs": normal(1, 6, s=2.0)}, passes=7, needs=NEEDS, name="torchrl_frames"
)
class Frames:
    """Transforms of observations, three frames of them, and a noisy network without its noise."""

    def __init__(self) -> None:
        from torchrl.envs.transforms import ClipTransform, Compose, ObservationNorm
        from torchrl.modules import NoisyLinear

        keys = {"in_keys": ["observation"], "out_keys": ["observation"]}
        self.transform = Compose(
            ObservationNorm(loc=0.3, scale=1.7, standard_normal=True, **keys),
            ClipTransform(low=-3.0, high=3.0, **keys),
        )
        self.net = mlp(18, 2, 32, layer_class=NoisyLinear)
        self.frames: deque[Tensor] = deque([torch.zeros(1, 6)] * 3, maxlen=3)

    def __call__(self, obs: Tensor) -> Tensor:
        from tensordict import TensorDict

        data = self.transform(TensorDict({"observation": obs}, batch_size=[1]))
        self.frames.append(data["observation"])
        return self.net(torch.cat(list(self.frames), dim=-1))
