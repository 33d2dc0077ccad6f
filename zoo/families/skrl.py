"""skrl: models made of mixins, preprocessors and agents, as its evaluation runs them."""

from __future__ import annotations

import contextlib
import io
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from attacks.draws import normal
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution
from veracity import annotate

from zoo.register import policy

NEEDS = ("skrl",)


def box(size: int, limit: float = 1.0) -> Any:
    from gymnasium.spaces import Box

    return Box(-limit, limit, (size,), np.float32)


def layers(*sizes: int, last: nn.Module | None = None, gain: float = 1.5) -> nn.Sequential:
    """Linear layers with ELU between them, of the size that training gives them."""
    made: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        linear = nn.Linear(fan_in, fan_out)
        nn.init.orthogonal_(linear.weight, gain)
        made += [linear, nn.ELU()]
    return nn.Sequential(*made[:-1], *([last] if last else []))


def make(mixin: str, compute: Callable[..., Any], observations: int, actions: Any, **parts: Any):
    """Make a model in evaluation: a mixin of skrl, its networks, and what `compute` does."""
    import skrl.models.torch as models

    # What the mixins do as they are imported; the harness has undone it since.
    Distribution.set_default_validate_args(False)
    options = parts.pop("options", {})
    base = getattr(models, f"{mixin}Mixin")

    class Made(base, models.Model):
        def __init__(self) -> None:
            spaces = {"observation_space": box(observations, 10.0), "action_space": actions}
            models.Model.__init__(self, device="cpu", **spaces)
            base.__init__(self, **options)
            for name, part in parts.items():
                setattr(self, name, part)

        def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[Tensor, dict[str, Any]]:
            return compute(self, inputs)

    return Made().eval()


def scaler(size: int) -> Any:
    """Make a preprocessor with the statistics of some batches."""
    from skrl.resources.preprocessors.torch import RunningStandardScaler

    made = RunningStandardScaler(size=size, device="cpu")
    for _ in range(5):
        made(2.0 * torch.randn(64, size) + 0.5, train=True)
    return made.eval()


def mean_of_net(model: Any, inputs: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
    return model.net(inputs["observations"]), {"log_std": model.log_std}


def gaussian(size: int = 8, actions: int = 3, **options: Any) -> Any:
    net, log_std = layers(size, 32, 32, actions), nn.Parameter(torch.full((actions,), -0.7))
    parts = {"net": net, "log_std": log_std, "options": options}
    return make("Gaussian", mean_of_net, size, box(actions), **parts)


@policy("skrl", inputs={"obs": normal(2, 8)}, needs=NEEDS)
def skrl_gaussian():
    """Evaluation with mean actions: `act` draws an action as well, which nobody reads."""
    model = gaussian(clip_mean_actions=True)

    def step(obs: Tensor) -> Tensor:
        actions, outputs = model.act({"observations": obs}, role="policy")
        return outputs.get("mean_actions", actions)

    return step


@policy("skrl", inputs={"obs": normal(1, 8)}, style="method", needs=NEEDS, name="skrl_scaled")
class Scaled:
    """What people export: the preprocessor and `compute`, without `act`."""

    def __init__(self) -> None:
        self.preprocessor, self.policy = scaler(8), gaussian()
        self.scale = torch.tensor([0.5, 1.0, 2.0])

    def step(self, obs: Tensor) -> Tensor:
        states = self.preprocessor(obs)
        mean, _outputs = self.policy.compute({"observations": states}, role="policy")
        action = torch.tanh(mean) * self.scale
        return action


@policy("skrl", inputs={"obs": normal(1, 7)}, style="method", needs=NEEDS, name="skrl_td3")
class Td3:
    """A deterministic policy that is clipped, and a critic of states and actions."""

    def __init__(self) -> None:
        self.policy = make(
            "Deterministic",
            lambda model, inputs: (1.5 * model.net(inputs["observations"]), {}),
            7,
            box(2, 0.8),
            net=layers(7, 32, 2, last=nn.Tanh(), gain=0.7),
            options={"clip_actions": True},
        )
        self.critic = make(
            "Deterministic",
            lambda model, inputs: (
                model.net(torch.cat([inputs["observations"], inputs["taken_actions"]], dim=1)),
                {},
            ),
            7,
            box(2, 0.8),
            net=layers(9, 32, 1),
        )

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        inputs = {"observations": obs}
        actions, _ = self.policy.act(inputs, role="policy")
        values, _ = self.critic.act(inputs | {"taken_actions": actions}, role="critic_1")
        return actions, values


@policy("skrl", inputs={"obs": normal(1, 5)}, needs=NEEDS)
def skrl_categorical():
    """The likeliest action and all probabilities."""
    from gymnasium.spaces import Discrete

    def compute(model: Any, inputs: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        return model.net(inputs["observations"]), {}

    net = layers(5, 32, 4)
    model = make("Categorical", compute, 5, Discrete(4), net=net)

    def step(obs: Tensor) -> dict[str, Tensor]:
        logits, _ = model.compute({"observations": obs}, role="policy")
        distribution = Categorical(logits=logits)
        return {"action": distribution.probs.argmax(dim=-1), "probs": distribution.probs}

    return step


@policy("skrl", inputs={"obs": normal(1, 5)}, needs=NEEDS)
def skrl_multi_categorical():
    """Two discrete actions of the network's output, after `act`, with the entropy of both."""
    from gymnasium.spaces import MultiDiscrete

    def compute(model: Any, inputs: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        return model.net(inputs["observations"]), {}

    space = MultiDiscrete([3, 4])
    model = make("MultiCategorical", compute, 5, space, net=layers(5, 32, 7))

    def step(obs: Tensor) -> dict[str, Tensor]:
        _, outputs = model.act({"observations": obs}, role="policy")
        parts = torch.split(outputs["net_output"], space.nvec.tolist(), dim=-1)
        actions = torch.stack([part.argmax(dim=-1) for part in parts], dim=-1)
        return {"actions": actions, "entropy": model.get_entropy(role="policy")}

    return step


@policy("skrl", inputs={"obs": normal(2, 6)}, needs=NEEDS)
def skrl_multivariate_gaussian():
    """Mean and entropy of a multivariate Gaussian whose deviation depends on what is seen."""

    def compute(model: Any, inputs: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        mean, log_std = model.net(inputs["observations"]).chunk(2, dim=-1)
        return mean, {"log_std": log_std - 1.0}

    net = layers(6, 32, 6)
    model = make("MultivariateGaussian", compute, 6, box(3), net=net)

    def step(obs: Tensor) -> dict[str, Tensor]:
        model.act({"observations": obs}, role="policy")
        mean = model.distribution(role="policy").mean
        return {"actions": mean, "entropy": model.get_entropy(role="policy")}

    return step


@policy("skrl", inputs={"obs": normal(1, 8)}, style="method", needs=NEEDS, name="skrl_shared")
class Shared:
    """One model with two roles: the value takes what the policy left of the shared layers."""

    def __init__(self) -> None:
        from skrl.models.torch import DeterministicMixin, GaussianMixin, Model

        class SharedModel(GaussianMixin, DeterministicMixin, Model):
            def __init__(self) -> None:
                spaces = {"observation_space": box(8, 10.0), "action_space": box(3)}
                Model.__init__(self, device="cpu", **spaces)
                GaussianMixin.__init__(self, clip_log_std=True, role="policy")
                DeterministicMixin.__init__(self, role="value")
                self.net = layers(8, 32, 16, last=nn.ELU())
                self.mean_layer = layers(16, 3)
                self.log_std_parameter = nn.Parameter(torch.zeros(3))
                self.value_layer = layers(16, 1)
                self._shared_output: Tensor | None = None

            def act(self, inputs: dict[str, Any], *, role: str = "") -> Any:
                mixin = GaussianMixin if role == "policy" else DeterministicMixin
                return mixin.act(self, inputs, role=role)

            def compute(self, inputs: dict[str, Any], role: str = "") -> Any:
                if role == "policy":
                    self._shared_output = self.net(inputs["observations"])
                    mean = self.mean_layer(self._shared_output)
                    return mean, {"log_std": self.log_std_parameter}
                shared = self._shared_output
                if shared is None:
                    shared = self.net(inputs["observations"])
                self._shared_output = None
                return self.value_layer(shared), {}

        Distribution.set_default_validate_args(False)
        self.model = SharedModel().eval()
        self.preprocessor, self.value_preprocessor = scaler(8), scaler(1)

    def step(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        inputs = {"observations": self.preprocessor(obs)}
        mean, _ = self.model.compute(inputs, role="policy")
        value, _ = self.model.act(inputs, role="value")
        value = self.value_preprocessor(value, inverse=True)
        return mean, value


def recurrent(kind: str, *, batch: int = 1, depth: int = 1, **options: Any) -> Any:
    """Make a recurrent policy as in skrl's examples: the states come and go in dictionaries."""

    def compute(model: Any, inputs: dict[str, Any]) -> tuple[Tensor, dict[str, Any]]:
        observations, states = inputs["observations"], inputs["rnn"]
        hidden = tuple(states) if len(states) > 1 else states[0]
        if model.training:
            raise NotImplementedError("sequences are for training")
        out, hidden = model.rnn(observations.view(-1, 1, observations.shape[-1]), hidden)
        states = list(hidden) if isinstance(hidden, tuple) else [hidden]
        mean = model.net(torch.flatten(out, start_dim=0, end_dim=1))
        return mean, {"log_std": model.log_std, "rnn": states}

    rnn = getattr(nn, kind)(6, 24, num_layers=depth, batch_first=True)
    parts = {"rnn": rnn, "net": layers(24, 32, 3), "log_std": nn.Parameter(torch.zeros(3))}
    model = make("Gaussian", compute, 6, box(3), options=options, **parts)
    count = 2 if kind == "LSTM" else 1
    return model, [torch.zeros(depth, batch, 24) for _ in range(count)]


@policy("skrl", inputs={"obs": normal(1, 6)}, passes=6, needs=NEEDS)
def skrl_gru():
    """The state is a list of one tensor in an attribute of the function."""
    model, initial = recurrent("GRU")

    def step(obs: Tensor) -> Tensor:
        mean, outputs = model.compute({"observations": obs, "rnn": step.states}, role="policy")
        step.states = outputs["rnn"]
        return mean

    step.states = initial
    return step


@policy("skrl", inputs={"obs": normal(2, 6)}, passes=6, needs=NEEDS, name="skrl_lstm")
class Lstm:
    """Two layers and two environments, through `act`, and the states copied as the agent does."""

    def __init__(self) -> None:
        self.model, self.states = recurrent("LSTM", batch=2, depth=2, clip_mean_actions=True)

    def __call__(self, obs: Tensor) -> Tensor:
        _, outputs = self.model.act({"observations": obs, "rnn": self.states}, role="policy")
        for state, final in zip(self.states, outputs["rnn"], strict=True):
            state.copy_(final)
        return outputs["mean_actions"]


@policy(
    "skrl", inputs={"obs": normal(1, 6)}, passes=6, style="method", needs=NEEDS, name="skrl_rnn"
)
class Rnn:
    """A plain RNN with its states in dictionaries by role, initial and final."""

    def __init__(self) -> None:
        self.model, initial = recurrent("RNN")
        self.initial_states: dict[str, list[Tensor]] = {"policy": initial}
        self.final_states: dict[str, list[Tensor]] = {"policy": []}

    def step(self, obs: Tensor) -> Tensor:
        inputs = {"observations": obs} | {"rnn": self.initial_states["policy"]}
        actions, outputs = self.model.compute(inputs, role="policy")
        self.final_states["policy"] = outputs.get("rnn", [])
        self.initial_states = dict(self.final_states)
        return actions


@policy("skrl", inputs={"obs": normal(1, 8)}, needs=NEEDS)
def skrl_instantiated():
    """A model whose class skrl writes as text, from a description as in its YAML files."""
    from skrl.utils.model_instantiators.torch import gaussian_model

    network = [
        {"name": "trunk", "input": "OBSERVATIONS", "layers": [32, 32], "activations": "elu"},
        {"name": "head", "input": "trunk", "layers": [16], "activations": ["tanh"]},
    ]
    spaces = {"observation_space": box(8, 10.0), "action_space": box(3)}
    model = gaussian_model(**spaces, device="cpu", network=network, output="2 * tanh(ACTIONS)")
    model.init_state_dict({"observations": torch.zeros(1, 8)}, role="policy")
    model.eval()

    def step(obs: Tensor) -> Tensor:
        return model.compute({"observations": obs}, role="policy")[0]

    return step


@policy("skrl", inputs={"obs": normal(1, 8)}, needs=NEEDS)
def skrl_ppo_agent():
    """The whole agent: it preprocesses, acts under autocast, and gives the mean actions."""
    from skrl.agents.torch.ppo import PPO
    from skrl.resources.preprocessors.torch import RunningStandardScaler

    value = make(
        "Deterministic",
        lambda model, inputs: (model.net(inputs["observations"]), {}),
        8,
        box(3),
        net=layers(8, 16, 1),
    )
    cfg = {
        "observation_preprocessor": RunningStandardScaler,
        "observation_preprocessor_kwargs": {"size": 8, "device": "cpu"},
    }
    with contextlib.redirect_stdout(io.StringIO()):
        agent = PPO(
            models={"policy": gaussian(), "value": value},
            observation_space=box(8, 10.0),
            action_space=box(3),
            device="cpu",
            cfg=cfg,
        )
    agent.enable_models_training_mode(False)
    agent.training = False
    agent._observation_preprocessor(3.0 * torch.randn(256, 8), train=True)

    def step(obs: Tensor) -> Tensor:
        actions, outputs = agent.act(obs, None, timestep=0, timesteps=1)
        return outputs.get("mean_actions", actions)

    return step


@policy(
    "skrl",
    inputs={"scaler/obs": normal(1, 5), "plant/push": normal(1, 3, s=0.1)},
    passes=6,
    style="own",
    needs=NEEDS,
    name="skrl_three_nodes",
)
class ThreeNodes:
    """Preprocessor, policy and plant; the plant's state is a part of what the policy sees next."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.preprocessor, self.policy = scaler(8), gaussian()
        self.joints = torch.zeros(1, 3)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        inputs = {"obs": given["scaler/obs"], "joints": self.joints}
        obs, joints = annotate.input_tensors("scaler", inputs)
        states = self.preprocessor(torch.cat([obs, joints], dim=-1))
        annotate.output_tensors("scaler", {"states": states}, export_with=self.backend)

        states = annotate.input_tensors("policy", {"states": states})
        _, outputs = self.policy.act({"observations": states}, role="policy")
        action = torch.tanh(outputs["mean_actions"])
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)

        values = {"action": action, "push": given["plant/push"], "joints": self.joints}
        action, push, joints = annotate.input_tensors("plant", values)
        self.joints = 0.9 * joints + 0.1 * action + push
        annotate.output_tensors("plant", {"moved": self.joints}, export_with=self.backend)
        return {"plant/moved": self.joints}
