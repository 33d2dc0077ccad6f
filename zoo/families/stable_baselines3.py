"""Stable-Baselines3 and sb3-contrib: policies, deterministic, and the wrappers around them."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import torch
from attacks.draws import array, flags, integers, normal, row, uniform
from torch import Tensor, nn

from zoo.register import policy

NEEDS = ("stable_baselines3",)
CONTRIB = ("stable_baselines3", "sb3_contrib")
#: One image as cameras give it.
IMAGE = integers(0, 256, 1, 1, 36, 36, dtype=torch.uint8)


def rate(progress: float) -> float:
    """The schedule of the learning rate, which every policy asks for."""
    return 3e-4 * progress


def box(low: Any, high: Any, *shape: int) -> Any:
    from gymnasium.spaces import Box

    return Box(np.full(shape, low, np.float32), np.full(shape, high, np.float32), dtype=np.float32)


def images(channels: int = 1, size: int = 36) -> Any:
    from gymnasium.spaces import Box

    return Box(0, 255, (channels, size, size), np.uint8)


def trained(made: Any, gain: float = 60.0) -> Any:
    """Make up for the small last layer that PPO begins with."""
    with torch.no_grad():
        made.action_net.weight.mul_(gain)
        made.action_net.bias.normal_(0.0, 0.1)
    made.set_training_mode(False)
    return made


def livened(net: Any, gain: float = 2.0) -> Any:
    """Make weights as large as training does, so that results move."""
    with torch.no_grad():
        for weight in net.parameters():
            weight.mul_(gain if weight.dim() > 1 else 1.0)
    net.set_training_mode(False)
    return net


@policy("stable_baselines3", inputs={"obs": normal(1, 8)}, needs=NEEDS)
def sb3_ppo_mlp():
    """The mode of the distribution, clipped to the action space as `predict` does."""
    from stable_baselines3.common.policies import ActorCriticPolicy

    space = box(-1.0, 0.5, 3)
    actor = trained(ActorCriticPolicy(box(-np.inf, np.inf, 8), space, rate, net_arch=[32, 32]))
    low, high = torch.from_numpy(space.low), torch.from_numpy(space.high)

    def step(obs: Tensor) -> Tensor:
        return torch.clamp(actor._predict(obs, deterministic=True), low, high)

    return step


@policy(
    "stable_baselines3",
    inputs={"obs": normal(2, 8)},
    style="method",
    needs=NEEDS,
    name="sb3_ppo_forward",
)
class PpoForward:
    """All that `forward` gives: actions, values and log-probabilities, for two environments."""

    def __init__(self) -> None:
        from stable_baselines3.ppo import MlpPolicy

        net_arch = {"pi": [32, 16], "vf": [64]}
        spaces = box(-10, 10, 8), box(-1, 1, 3)
        kwargs = {"net_arch": net_arch, "activation_fn": nn.ReLU, "log_std_init": -0.7}
        self.policy = trained(MlpPolicy(*spaces, rate, **kwargs))

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        actions, values, log_prob = self.policy(obs, deterministic=True)
        return actions, values, log_prob


@policy("stable_baselines3", inputs={"obs": array(normal(8))}, needs=NEEDS)
def sb3_ppo_predict():
    """`predict` from NumPy to NumPy, without a batch."""
    from stable_baselines3.ppo import MlpPolicy

    actor = trained(MlpPolicy(box(-10, 10, 8), box(-1, 1, 3), rate, net_arch=[32, 32]))

    def step(obs: np.ndarray) -> np.ndarray:
        action, _state = actor.predict(obs, deterministic=True)
        return action

    return step


@policy("stable_baselines3", inputs={"obs": integers(0, 6, 1)}, needs=NEEDS)
def sb3_a2c_discrete():
    """Cells of a grid become one-hot vectors, and the result is a direction."""
    from gymnasium.spaces import Discrete
    from stable_baselines3.a2c import MlpPolicy

    actor = trained(MlpPolicy(Discrete(6), Discrete(4), rate, net_arch=[16]))

    def step(obs: Tensor) -> Tensor:
        return actor._predict(obs, deterministic=True)

    return step


@policy(
    "stable_baselines3",
    inputs={"obs": normal(1, 6)},
    style="method",
    needs=NEEDS,
    name="sb3_ppo_multi_discrete",
)
class PpoMultiDiscrete:
    """Three discrete actions at once, with their entropy."""

    def __init__(self) -> None:
        from gymnasium.spaces import MultiDiscrete
        from stable_baselines3.ppo import MlpPolicy

        spaces = box(-5, 5, 6), MultiDiscrete([3, 2, 5])
        self.policy = trained(MlpPolicy(*spaces, rate, net_arch=[32]))

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        distribution = self.policy.get_distribution(obs)
        actions = distribution.mode()
        entropy = distribution.entropy()
        return actions, entropy


@policy(
    "stable_baselines3",
    inputs={
        "camera": IMAGE,
        "proprio": normal(1, 5),
        "gait": integers(0, 3, 1),
        "contact": flags(0.5, 1, 4),
    },
    needs=NEEDS,
)
def sb3_ppo_multi_input():
    """A Dict space of an image, joints, a mode and contacts."""
    from gymnasium.spaces import Dict, Discrete, MultiBinary
    from stable_baselines3.ppo import MultiInputPolicy

    space = Dict(camera=images(), contact=MultiBinary(4), gait=Discrete(3), proprio=box(-10, 10, 5))
    kwargs = {"net_arch": [32], "features_extractor_kwargs": {"cnn_output_dim": 16}}
    actor = trained(MultiInputPolicy(space, box(-1, 1, 3), rate, **kwargs))

    def step(camera: Tensor, proprio: Tensor, gait: Tensor, contact: Tensor) -> Tensor:
        obs = {"camera": camera, "contact": contact, "gait": gait, "proprio": proprio}
        return actor._predict(obs, deterministic=True)

    return step


@policy("stable_baselines3", inputs={"image": IMAGE}, needs=NEEDS)
def sb3_ppo_cnn():
    """NatureCNN on bytes, which become numbers up to one; extractors of their own."""
    from stable_baselines3.ppo import CnnPolicy

    kwargs = {"features_extractor_kwargs": {"features_dim": 32}, "share_features_extractor": False}
    actor = trained(CnnPolicy(images(), box(-1, 1, 2), rate, **kwargs))

    def step(image: Tensor) -> dict[str, Tensor]:
        actions, values, _log_prob = actor(image, deterministic=True)
        return {"actions": actions, "values": values}

    return step


@policy("stable_baselines3", inputs={"obs": normal(1, 8)}, needs=NEEDS)
def sb3_ppo_gsde():
    """State-dependent exploration that is squashed: deterministic, but with its variance."""
    from stable_baselines3.ppo import MlpPolicy

    kwargs = {"use_sde": True, "squash_output": True, "log_std_init": -2.0, "net_arch": [32, 32]}
    actor = trained(MlpPolicy(box(-10, 10, 8), box(-1, 1, 3), rate, **kwargs))

    def step(obs: Tensor) -> dict[str, Tensor]:
        distribution = actor.get_distribution(obs)
        return {"action": distribution.mode(), "std": distribution.distribution.stddev}

    return step


@policy("stable_baselines3", inputs={"obs": normal(1, 7)}, needs=NEEDS, name="sb3_sac")
class Sac:
    """The squashed actor, and the action scaled to the limits of the space."""

    def __init__(self) -> None:
        from gymnasium.spaces import Box
        from stable_baselines3.sac import MlpPolicy

        self.space = Box(np.float32([-2.0, 0.0]), np.float32([1.0, 5.0]))
        self.policy = MlpPolicy(box(-10, 10, 7), self.space, rate, net_arch=[32, 32])
        self.policy.set_training_mode(False)

    def __call__(self, obs: Tensor) -> Tensor:
        scaled = self.policy._predict(obs, deterministic=True)
        low, high = torch.as_tensor(self.space.low), torch.as_tensor(self.space.high)
        return low + 0.5 * (scaled + 1.0) * (high - low)


@policy("stable_baselines3", inputs={"obs": array(normal(1, 7))}, needs=NEEDS)
def sb3_sac_predict():
    """`predict` with a batch of one, and an action that NumPy rescales."""
    from stable_baselines3.sac import MlpPolicy

    actor = MlpPolicy(box(-10, 10, 7), box(-3, 2, 2), rate, net_arch=[32, 32])

    def step(obs: np.ndarray) -> np.ndarray:
        return actor.predict(obs, deterministic=True)[0]

    return step


@policy(
    "stable_baselines3", inputs={"obs": normal(1, 7)}, style="method", needs=NEEDS, name="sb3_td3"
)
class Td3:
    """The actor with both critics, of which the smaller value counts."""

    def __init__(self) -> None:
        from stable_baselines3.td3 import MlpPolicy

        self.policy = MlpPolicy(box(-10, 10, 7), box(-1, 1, 2), rate, net_arch=[32, 32])
        self.policy.set_training_mode(False)

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        action = self.policy.actor(obs)
        value, _ = torch.min(torch.cat(self.policy.critic(obs, action), dim=1), dim=1, keepdim=True)
        return action, value


@policy("stable_baselines3", inputs={"obs": normal(1, 4)}, needs=NEEDS)
def sb3_dqn():
    from gymnasium.spaces import Discrete
    from stable_baselines3.dqn import MlpPolicy

    q_policy = MlpPolicy(box(-5, 5, 4), Discrete(3), rate, net_arch=[32, 32])
    q_policy.set_training_mode(False)

    def step(obs: Tensor) -> dict[str, Tensor]:
        action = q_policy._predict(obs, deterministic=True)
        return {"action": action, "q": q_policy.q_net(obs)}

    return step


@policy(
    "stable_baselines3", inputs={"frame": IMAGE}, passes=8, needs=NEEDS, name="sb3_frame_stack_dqn"
)
class FrameStackDqn:
    """The last four frames as channels, as VecFrameStack has them, for a convolutional Q net."""

    def __init__(self) -> None:
        from gymnasium.spaces import Discrete
        from stable_baselines3.dqn import CnnPolicy

        kwargs = {"net_arch": [32], "features_extractor_kwargs": {"features_dim": 32}}
        self.policy = livened(CnnPolicy(images(4), Discrete(4), rate, **kwargs))
        self.stacked = torch.zeros(1, 4, 36, 36, dtype=torch.uint8)

    def __call__(self, frame: Tensor) -> Tensor:
        self.stacked = torch.roll(self.stacked, shifts=-1, dims=1)
        self.stacked[:, -1:] = frame
        return self.policy.q_net(self.stacked)


@policy(
    "stable_baselines3",
    inputs={"obs": array(normal(1, 6, s=3.0, m=1.0))},
    needs=NEEDS,
    name="sb3_vec_normalize",
)
class VecNormalize:
    """VecNormalize without training: statistics in float64, clipped, and float32 in the end."""

    def __init__(self) -> None:
        from stable_baselines3.common.running_mean_std import RunningMeanStd
        from stable_baselines3.ppo import MlpPolicy

        self.statistics = RunningMeanStd(shape=(6,))
        for _ in range(5):
            self.statistics.update(3.0 * torch.randn(64, 6).numpy() + 1.0)
        self.policy = trained(MlpPolicy(box(-10, 10, 6), box(-1, 1, 2), rate, net_arch=[32]))

    def normalise(self, obs: np.ndarray) -> np.ndarray:
        centred = (obs - self.statistics.mean) / np.sqrt(self.statistics.var + 1e-8)
        return np.clip(centred, -10.0, 10.0).astype(np.float32)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        action, _ = self.policy.predict(self.normalise(obs), deterministic=True)
        return action


@policy(
    "stable_baselines3",
    inputs={"scan": uniform(0.1, 5.0, 1, 32), "goal": normal(1, 2)},
    needs=NEEDS,
)
def sb3_own_extractor():
    """An extractor of one's own: a laser scan through Conv1d with batch norm, and a goal."""
    from gymnasium.spaces import Dict
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
    from stable_baselines3.ppo import MultiInputPolicy

    class ScanExtractor(BaseFeaturesExtractor):
        def __init__(self, observation_space: Any, features_dim: int = 24) -> None:
            super().__init__(observation_space, features_dim)
            self.scan = nn.Sequential(
                nn.Conv1d(1, 8, 5, stride=2),
                nn.BatchNorm1d(8),
                nn.ReLU(),
                nn.AdaptiveMaxPool1d(4),
                nn.Flatten(),
            )
            self.head = nn.Linear(34, features_dim)

        def forward(self, observations: dict[str, Tensor]) -> Tensor:
            near = 1.0 / observations["scan"].clamp(min=0.1).unsqueeze(1)
            return torch.relu(self.head(torch.cat([self.scan(near), observations["goal"]], 1)))

    space = Dict(goal=box(-10, 10, 2), scan=box(0, 20, 32))
    kwargs = {"net_arch": [32], "features_extractor_class": ScanExtractor}
    actor = trained(MultiInputPolicy(space, box(-1, 1, 2), rate, **kwargs))

    def step(scan: Tensor, goal: Tensor) -> Tensor:
        return actor._predict({"goal": goal, "scan": scan}, deterministic=True)

    return step


@policy(
    "stable_baselines3",
    inputs={"obs": normal(1, 7)},
    passes=7,
    style="method",
    needs=NEEDS,
    name="sb3_sac_on_the_robot",
)
class SacOnTheRobot:
    """Observations of three ticks, an action that is smoothed, limited in its change, and late."""

    def __init__(self) -> None:
        from stable_baselines3.sac import MlpPolicy

        self.policy = MlpPolicy(box(-10, 10, 21), box(-1, 1, 2), rate, net_arch=[32, 32])
        self.policy.set_training_mode(False)
        self.frames = deque([torch.zeros(1, 7)] * 3, maxlen=3)
        self.smooth = torch.zeros(1, 2)
        self.sent = torch.zeros(1, 2)

    def step(self, obs: Tensor) -> Tensor:
        self.frames.append(obs)
        action = self.policy._predict(torch.cat(tuple(self.frames), dim=1), deterministic=True)
        late = self.sent
        self.smooth = self.smooth + 0.4 * (action - self.smooth)
        self.sent = late + (self.smooth - late).clamp(-0.1, 0.1)
        return late


@policy(
    "stable_baselines3",
    inputs={"obs": normal(1, 6)},
    passes=6,
    needs=CONTRIB,
    name="sb3_recurrent_ppo",
)
class RecurrentPpo:
    """RecurrentPPO: the states stand in Python, and no episode begins."""

    def __init__(self) -> None:
        from sb3_contrib.ppo_recurrent import MlpLstmPolicy

        kwargs = {"lstm_hidden_size": 16, "net_arch": [16]}
        self.policy = trained(MlpLstmPolicy(box(-10, 10, 6), box(-1, 1, 2), rate, **kwargs))
        self.states = tuple(torch.zeros(self.policy.lstm_hidden_state_shape) for _ in range(2))
        self.starts = torch.zeros(1)

    def __call__(self, obs: Tensor) -> Tensor:
        action, self.states = self.policy._predict(
            obs, self.states, self.starts, deterministic=True
        )
        return action


@policy(
    "stable_baselines3",
    inputs={"obs": normal(2, 6), "starts": row([1.0, 1.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0])},
    passes=8,
    needs=CONTRIB,
    name="sb3_recurrent_ppo_starts",
)
class RecurrentPpoStarts:
    """`forward` with the states of actor and critic, and with the mask of beginning episodes."""

    def __init__(self) -> None:
        from sb3_contrib.common.recurrent.type_aliases import RNNStates
        from sb3_contrib.ppo_recurrent import MlpLstmPolicy

        kwargs = {"lstm_hidden_size": 16, "net_arch": [16], "n_lstm_layers": 2}
        self.policy = trained(MlpLstmPolicy(box(-10, 10, 6), box(-1, 1, 2), rate, **kwargs))
        actor, critic = ((torch.zeros(2, 2, 16), torch.zeros(2, 2, 16)) for _ in range(2))
        self.states = RNNStates(actor, critic)

    def __call__(self, obs: Tensor, starts: Tensor) -> dict[str, Tensor]:
        actions, values, _, self.states = self.policy(obs, self.states, starts, deterministic=True)
        return {"actions": actions, "values": values}


@policy(
    "stable_baselines3",
    inputs={"obs": array(normal(6))},
    passes=6,
    needs=CONTRIB,
    name="sb3_recurrent_ppo_predict",
)
class RecurrentPpoPredict:
    """The loop of the manual: `predict` takes and gives the states as NumPy arrays."""

    def __init__(self) -> None:
        from sb3_contrib.ppo_recurrent import MlpLstmPolicy

        kwargs = {"lstm_hidden_size": 16, "net_arch": [16], "shared_lstm": True}
        kwargs |= {"enable_critic_lstm": False}
        self.policy = trained(MlpLstmPolicy(box(-10, 10, 6), box(-1, 1, 2), rate, **kwargs))
        self.states = None
        self.starts = np.ones((1,), dtype=bool)

    def __call__(self, obs: np.ndarray) -> np.ndarray:
        action, self.states = self.policy.predict(
            obs, state=self.states, episode_start=self.starts, deterministic=True
        )
        self.starts = np.zeros((1,), dtype=bool)
        return action


@policy(
    "stable_baselines3",
    inputs={"obs": normal(1, 6)},
    style="method",
    needs=CONTRIB,
    name="sb3_qrdqn",
)
class Qrdqn:
    """Quantiles of the return, their mean, and the best action."""

    def __init__(self) -> None:
        from gymnasium.spaces import Discrete
        from sb3_contrib.qrdqn import MlpPolicy

        self.policy = MlpPolicy(box(-5, 5, 6), Discrete(4), rate, n_quantiles=20, net_arch=[32])
        self.policy.set_training_mode(False)

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        quantiles = self.policy.quantile_net(obs)
        action = quantiles.mean(dim=1).argmax(dim=1).reshape(-1)
        return quantiles, action


@policy("stable_baselines3", inputs={"obs": normal(1, 6)}, needs=CONTRIB)
def sb3_tqc():
    """The actor, and the value without the largest quantiles of all critics."""
    from sb3_contrib.tqc import MlpPolicy

    tqc = MlpPolicy(box(-10, 10, 6), box(-1, 1, 2), rate, n_quantiles=10, net_arch=[32, 32])
    tqc.set_training_mode(False)

    def step(obs: Tensor) -> dict[str, Tensor]:
        action = tqc._predict(obs, deterministic=True)
        quantiles, _ = torch.sort(tqc.critic(obs, action).reshape(1, -1))
        return {"action": action, "value": quantiles[:, :-4].mean(dim=1)}

    return step


@policy("stable_baselines3", inputs={"obs": normal(1, 6)}, needs=CONTRIB)
def sb3_crossq():
    """CrossQ: batch renormalisation in the actor, with statistics of training."""
    from sb3_contrib.crossq import MlpPolicy

    crossq = MlpPolicy(box(-10, 10, 6), box(-2, 2, 2), rate, net_arch=[32, 32])
    crossq.set_training_mode(True)
    for _ in range(20):
        crossq.actor.action_log_prob(torch.randn(32, 6))
    crossq.set_training_mode(False)

    def step(obs: Tensor) -> Tensor:
        return crossq._predict(obs, deterministic=True)

    return step


@policy(
    "stable_baselines3",
    inputs={
        "obs": normal(1, 6),
        "mask": row(
            [[True, True, False, True, True]],
            [[False, True, True, True, False]],
            [[True, False, False, False, True]],
        ),
    },
    needs=CONTRIB,
)
def sb3_maskable_ppo():
    """MaskablePPO: the mask of legal actions is an input; the result with its probabilities."""
    from gymnasium.spaces import Discrete
    from sb3_contrib.ppo_mask import MlpPolicy

    actor = trained(MlpPolicy(box(-5, 5, 6), Discrete(5), rate, net_arch=[32]))

    def step(obs: Tensor, mask: Tensor) -> dict[str, Tensor]:
        distribution = actor.get_distribution(obs, mask)
        return {"action": distribution.mode(), "probs": distribution.distribution.probs}

    return step
