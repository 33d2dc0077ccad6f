"""rsl_rl: its models, what they export, and the deployment code that people write around them."""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import torch
from attacks.draws import flags, normal, uniform
from torch import Tensor, nn
from veracity import annotate

from zoo.register import policy

NEEDS = ("rsl_rl",)
#: Default joint positions of a leg, and the limits of its targets.
STANCE = torch.tensor([0.1, 0.8, -1.5, -0.1])
GAUSSIAN = {"class_name": "GaussianDistribution", "init_std": 0.8}


def warmed_up(normaliser: nn.Module, size: int, scale: float = 2.0, shift: float = 1.0) -> None:
    """Let a normaliser see some batches, as in training."""
    normaliser.train()
    for _ in range(5):
        normaliser.update(torch.randn(64, size) * scale + shift)
    normaliser.eval()


def livened(net: nn.Module, gain: float = 1.8) -> nn.Module:
    """Make weights as large as training does, so that actions move."""
    with torch.no_grad():
        for weight in net.parameters():
            weight.mul_(gain if weight.dim() > 1 else 1.0)
    return net.eval()


def make_model(kind: str, shapes: dict[str, tuple[int, ...]], actions: int, **config: Any) -> Any:
    """Make one of rsl_rl's models for groups of observations of these shapes."""
    from rsl_rl import models
    from tensordict import TensorDict

    example = TensorDict({name: torch.zeros(1, *shape) for name, shape in shapes.items()}, [1])
    config = {"hidden_dims": [32, 16], "obs_normalization": True} | config
    model = getattr(models, kind)(example, {"actor": list(shapes)}, "actor", actions, **config)
    if config["obs_normalization"]:
        warmed_up(model.obs_normalizer, model.obs_dim)
    return livened(model)


@policy("rsl_rl", inputs={"obs": normal(1, 12)}, needs=NEEDS)
def rsl_rl_mlp():
    from rsl_rl.modules import MLP, EmpiricalNormalization

    normalise = EmpiricalNormalization((12,))
    for _ in range(5):
        normalise.update(torch.randn(64, 12) * 2 + 1)
    normalise.eval()
    actor = MLP(12, 4, [32, 16], "elu").eval()

    def step(obs: Tensor) -> Tensor:
        return actor(normalise(obs))

    return step


@policy("rsl_rl", inputs={"policy": normal(1, 9), "command": normal(1, 3)}, needs=NEEDS)
def rsl_rl_mlp_model():
    """Two groups of observations in a TensorDict, and the mean of a Gaussian."""
    from tensordict import TensorDict

    shapes = {"policy": (9,), "command": (3,)}
    actor = make_model("MLPModel", shapes, 4, distribution_cfg=GAUSSIAN)

    def step(policy: Tensor, command: Tensor) -> Tensor:
        obs = TensorDict({"policy": policy, "command": command}, batch_size=[policy.shape[0]])
        return actor(obs)

    return step


@policy("rsl_rl", inputs={"obs": normal(3, 8)}, context="inference", needs=NEEDS)
def rsl_rl_beta_actor():
    """The mean of a Beta distribution, for three environments at once."""
    from tensordict import TensorDict

    beta = {"class_name": "BetaDistribution", "action_range": (-2.0, 2.0)}
    actor = make_model("MLPModel", {"policy": (8,)}, 3, distribution_cfg=beta, activation="mish")

    def step(obs: Tensor) -> Tensor:
        return actor(TensorDict({"policy": obs}, batch_size=[3]))

    return step


@policy(
    "rsl_rl",
    inputs={"obs": normal(1, 8), "scan": normal(1, 6)},
    style="method",
    needs=NEEDS,
    name="rsl_rl_actor_critic",
)
class ActorCritic:
    """Actor and critic with groups of their own; the actor also gives its standard deviation."""

    def __init__(self) -> None:
        from rsl_rl.modules import MLP, EmpiricalNormalization, HeteroscedasticGaussianDistribution

        self.distribution = HeteroscedasticGaussianDistribution(3, init_std=0.5, std_type="log")
        self.actor = MLP(8, self.distribution.input_dim, [32, 32], "lrelu")
        self.distribution.init_mlp_weights(self.actor)
        with torch.no_grad():
            for weight in self.actor.parameters():
                weight.add_(0.1 * torch.randn_like(weight))
        self.critic = MLP(14, 1, [32, 32], "selu")
        self.actor_norm, self.critic_norm = EmpiricalNormalization(8), EmpiricalNormalization(14)
        warmed_up(self.actor_norm, 8)
        warmed_up(self.critic_norm, 14)

    def step(self, obs: Tensor, scan: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        self.distribution.update(self.actor(self.actor_norm(obs)))
        mean, std = self.distribution.params
        value = self.critic(self.critic_norm(torch.cat([obs, scan], dim=-1)))
        return mean, std, value


@policy("rsl_rl", inputs={"obs": normal(1, 10)}, passes=6, needs=NEEDS)
def rsl_rl_gru_model():
    """The recurrent model itself: its hidden state is None at first."""
    from tensordict import TensorDict

    config = {"rnn_type": "gru", "rnn_hidden_dim": 24, "distribution_cfg": GAUSSIAN}
    actor = make_model("RNNModel", {"policy": (10,)}, 4, **config)
    actor.reset()

    def step(obs: Tensor) -> Tensor:
        return actor(TensorDict({"policy": obs}, batch_size=[1]))

    return step


@policy("rsl_rl", inputs={"obs": normal(2, 10)}, passes=6, needs=NEEDS)
def rsl_rl_lstm_model():
    """Two layers of an LSTM, two environments, and the hidden state detached after each step."""
    from tensordict import TensorDict

    config = {"rnn_type": "lstm", "rnn_hidden_dim": 16, "rnn_num_layers": 2}
    actor = make_model("RNNModel", {"policy": (10,)}, 4, **config)

    def step(obs: Tensor) -> Tensor:
        actions = actor(TensorDict({"policy": obs}, batch_size=[2]))
        actor.detach_hidden_state()
        return actions

    return step


@policy(
    "rsl_rl",
    inputs={"obs": normal(2, 6), "dones": flags(0.2, 2)},
    passes=6,
    style="method",
    needs=NEEDS,
    name="rsl_rl_memory_with_dones",
)
class MemoryWithDones:
    """Environments that are done get a hidden state of zeros before the next step."""

    def __init__(self) -> None:
        from rsl_rl.modules import MLP

        self.rnn = nn.GRU(6, 16)
        self.actor = MLP(16, 3, [16], "elu").eval()
        self.hidden = torch.zeros(1, 2, 16)

    def step(self, obs: Tensor, dones: Tensor) -> Tensor:
        self.hidden[..., dones, :] = 0.0
        out, self.hidden = self.rnn(obs.unsqueeze(0), self.hidden)
        return self.actor(out.squeeze(0))


@policy(
    "rsl_rl",
    inputs={"obs": normal(1, 8), "depth": uniform(0, 3, 1, 1, 24, 32)},
    needs=NEEDS,
)
def rsl_rl_cnn_model():
    """A depth image and proprioception, each a group of its own."""
    from tensordict import TensorDict

    cnn = {
        "output_channels": [4, 8],
        "kernel_size": [5, 3],
        "stride": 2,
        "padding": "replicate",
        "norm": "layer",
        "max_pool": [True, False],
    }
    shapes = {"policy": (8,), "camera": (1, 24, 32)}
    actor = make_model("CNNModel", shapes, 4, cnn_cfg=cnn, distribution_cfg=GAUSSIAN)

    def step(obs: Tensor, depth: Tensor) -> Tensor:
        return actor(TensorDict({"policy": obs, "camera": depth}, batch_size=[1]))

    return step


@policy("rsl_rl", inputs={"obs": normal(1, 10)}, needs=NEEDS)
def rsl_rl_as_jit():
    """What `export_policy_as_jit` wraps, called in the node."""
    beta = {"class_name": "BetaDistribution"}
    return make_model("MLPModel", {"policy": (10,)}, 4, distribution_cfg=beta).as_jit().eval()


@policy("rsl_rl", inputs={"obs": normal(1, 10)}, passes=6, style="module", needs=NEEDS)
def rsl_rl_lstm_as_jit():
    """The exported LSTM keeps both states in buffers that it writes in place."""
    config = {"rnn_type": "lstm", "rnn_hidden_dim": 16, "rnn_num_layers": 2}
    return make_model("RNNModel", {"policy": (10,)}, 4, **config).as_jit().eval()


@policy("rsl_rl", inputs={"obs": normal(1, 10)}, passes=6, needs=NEEDS)
def rsl_rl_gru_scripted():
    """`policy.pt` as a deployment script has it: the exported GRU, scripted."""
    config = {"rnn_type": "gru", "rnn_hidden_dim": 16, "distribution_cfg": GAUSSIAN}
    scripted = torch.jit.script(make_model("RNNModel", {"policy": (10,)}, 4, **config).as_jit())
    scripted.eval()
    scripted.reset()

    def step(obs: Tensor) -> Tensor:
        return scripted(obs)

    return step


@policy(
    "rsl_rl",
    inputs={"obs": normal(1, 10)},
    passes=6,
    style="method",
    needs=NEEDS,
    name="rsl_rl_lstm_as_onnx",
)
class LstmAsOnnx:
    """The wrapper for ONNX takes and gives both states; the caller keeps them."""

    def __init__(self) -> None:
        config = {"rnn_type": "lstm", "rnn_hidden_dim": 16, "distribution_cfg": GAUSSIAN}
        self.model = make_model("RNNModel", {"policy": (10,)}, 4, **config).as_onnx().eval()
        _, self.h, self.c = self.model.get_dummy_inputs()

    def step(self, obs: Tensor) -> Tensor:
        actions, self.h, self.c = self.model(obs, self.h, self.c)
        return actions


@policy(
    "rsl_rl",
    inputs={
        "obs": normal(1, 6),
        "front": uniform(0, 1, 1, 1, 16, 16),
        "rear": uniform(0, 1, 1, 1, 16, 16),
    },
    needs=NEEDS,
)
def rsl_rl_cnn_as_onnx():
    """Two cameras with an encoder each, in the wrapper for ONNX."""
    cnn = {"output_channels": [4, 8], "kernel_size": 3, "stride": 2, "global_pool": "avg"}
    shapes = {"policy": (6,), "front": (1, 16, 16), "rear": (1, 16, 16)}
    wrapper = make_model("CNNModel", shapes, 3, cnn_cfg=cnn).as_onnx().eval()

    def step(obs: Tensor, front: Tensor, rear: Tensor) -> Tensor:
        return wrapper(obs, front, rear)

    return step


@policy(
    "rsl_rl",
    inputs={"obs": normal(1, 6), "privileged": normal(1, 4)},
    passes=6,
    style="method",
    needs=NEEDS,
    name="rsl_rl_student_teacher",
)
class StudentTeacher:
    """Distillation: a recurrent student acts, and the loss against the teacher is reported."""

    def __init__(self) -> None:
        from rsl_rl.modules import MLP, RNN

        self.memory, self.student = RNN(6, 16, 1, "gru"), MLP(16, 3, [16], "elu")
        self.teacher = MLP(10, 3, [32, 16], "elu").requires_grad_(False)
        for net in (self.memory, self.student, self.teacher):
            net.eval()
        self.losses: list[float] = []

    def step(self, obs: Tensor, privileged: Tensor) -> Tensor:
        actions = self.student(self.memory(obs).squeeze(0))
        with torch.no_grad():
            target = self.teacher(torch.cat([obs, privileged], dim=-1))
        self.losses.append(nn.functional.mse_loss(actions, target).item())
        return actions


@policy(
    "rsl_rl",
    inputs={
        "gyro": normal(1, 3),
        "gravity": normal(1, 3),
        "command": normal(1, 3),
        "joint_pos": normal(1, 4),
        "joint_vel": normal(1, 4, s=3.0),
    },
    passes=5,
    style="method",
    needs=NEEDS,
    name="rsl_rl_joint_targets",
)
class JointTargets:
    """Deployment: scaled observations with the last action, tanh, scale, offset, and limits."""

    SCALES: ClassVar = {"gyro": 0.25, "command": torch.tensor([2.0, 2.0, 0.25]), "joint_vel": 0.05}

    def __init__(self) -> None:
        from rsl_rl.modules import MLP

        self.actor = livened(MLP(21, 4, [64, 32], "elu"))
        self.last_action = torch.zeros(1, 4)
        self.lower, self.upper = STANCE - 0.2, STANCE + 0.15

    def step(
        self, gyro: Tensor, gravity: Tensor, command: Tensor, joint_pos: Tensor, joint_vel: Tensor
    ) -> Tensor:
        obs = torch.cat(
            [
                gyro * self.SCALES["gyro"],
                gravity / gravity.norm(dim=-1, keepdim=True),
                command * self.SCALES["command"],
                joint_pos - STANCE,
                joint_vel * self.SCALES["joint_vel"],
                self.last_action,
            ],
            dim=-1,
        ).clip(-100.0, 100.0)
        action = torch.tanh(self.actor(obs))
        self.last_action = action.clone()
        targets = torch.clamp(0.25 * action + STANCE, self.lower, self.upper)
        return targets


@policy(
    "rsl_rl", inputs={"obs": normal(1, 6)}, passes=8, needs=NEEDS, name="rsl_rl_history_encoder"
)
class HistoryEncoder:
    """Rapid motor adaptation: an encoder of the last five observations, kept in a deque."""

    def __init__(self) -> None:
        from rsl_rl.modules import MLP

        self.encoder = nn.Sequential(
            nn.Conv1d(6, 8, 3), nn.ELU(), nn.Flatten(), nn.Linear(24, 4)
        ).eval()
        self.actor = MLP(10, 3, [32, 16], "elu").eval()
        self.history: deque[Tensor] = deque([torch.zeros(1, 6)] * 5, maxlen=5)

    def __call__(self, obs: Tensor) -> Tensor:
        self.history.append(obs)
        latent = self.encoder(torch.stack(list(self.history), dim=-1))
        return self.actor(torch.cat([obs, latent], dim=-1))


@policy("rsl_rl", inputs={"obs": normal(1, 7)}, passes=8, needs=NEEDS, name="rsl_rl_rolled_history")
class RolledHistory:
    """Three terms with a history of four each, in buffers that are rolled, oldest first."""

    TERMS: ClassVar = {"gyro": 3, "pos": 2, "vel": 2}

    def __init__(self) -> None:
        from rsl_rl.modules import MLP

        self.buffers = {name: torch.zeros(1, 4, size) for name, size in self.TERMS.items()}
        self.actor = MLP(28, 2, [32, 16], "elu").eval()

    def __call__(self, obs: Tensor) -> Tensor:
        terms = obs.split([*self.TERMS.values()], dim=-1)
        for buffer, term in zip(self.buffers.values(), terms, strict=True):
            buffer[:] = torch.roll(buffer, -1, dims=1)
            buffer[:, -1] = term
        flat = torch.cat([buffer.flatten(1) for buffer in self.buffers.values()], dim=-1)
        return self.actor(flat)


@policy(
    "rsl_rl",
    inputs={"obs": normal(1, 8)},
    passes=7,
    needs=NEEDS,
    name="rsl_rl_smoothed_and_delayed",
)
class SmoothedAndDelayed:
    """Actions are smoothed, and sent two ticks late."""

    def __init__(self) -> None:
        self.actor = make_model("MLPModel", {"policy": (8,)}, 4, distribution_cfg=GAUSSIAN).as_jit()
        self.smooth = torch.zeros(1, 4)
        self.pending = deque([torch.zeros(1, 4) for _ in range(2)])

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        action = self.actor(obs).clamp(-1.0, 1.0)
        self.smooth = 0.8 * self.smooth + 0.2 * action
        self.pending.append(self.smooth)
        return {"sent": STANCE + 0.5 * self.pending.popleft(), "action": action}


@policy(
    "rsl_rl",
    inputs={"observer/imu": normal(1, 6), "observer/joints": normal(1, 8)},
    passes=6,
    style="own",
    needs=NEEDS,
    name="rsl_rl_three_nodes",
)
class ThreeNodes:
    """An observer with the last action, the recurrent policy, and a smoothed actuator."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        config = {"rnn_type": "gru", "rnn_hidden_dim": 16, "distribution_cfg": GAUSSIAN}
        self.policy = make_model("RNNModel", {"policy": (18,)}, 4, **config)
        self.last_action = torch.zeros(1, 4)
        self.target = STANCE.clone().unsqueeze(0)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        from tensordict import TensorDict

        inputs = {
            "imu": given["observer/imu"],
            "joints": given["observer/joints"],
            "last_action": self.last_action,
        }
        imu, joints, last = annotate.input_tensors("observer", inputs)
        obs = torch.cat([0.2 * imu, joints[:, :4] - STANCE, 0.05 * joints[:, 4:], last], dim=-1)
        annotate.output_tensors("observer", {"obs": obs}, export_with=self.backend)

        obs = annotate.input_tensors("policy", {"obs": obs})
        action = self.policy(TensorDict({"policy": obs}, batch_size=[1]))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        self.last_action = action

        action = annotate.input_tensors("actuator", {"action": action})
        self.target = torch.lerp(self.target, STANCE + 0.25 * action, 0.3)
        annotate.output_tensors("actuator", {"target": self.target}, export_with=self.backend)
        return {"actuator/target": self.target}
