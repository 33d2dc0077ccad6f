"""Clean code of the usual kinds: networks, an actor-critic, an environment that is patched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as functional
from torch import Tensor, nn


class Residual(nn.Module):
    """A block as in ResNet, with its in-place activations."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        """Make the two convolutions and the short cut."""
        super().__init__()
        self.first = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.second = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outside)
        self.short = nn.Sequential(
            nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of both paths."""
        out = self.relu(self.first_norm(self.first(x)))
        out = self.second_norm(self.second(out))
        out += self.short(x)
        return self.relu(out)


def resnet() -> nn.Module:
    """Return a small ResNet."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 1, 1),
        Residual(8, 8, 1),
        Residual(8, 16, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 5),
    )


class Inverted(nn.Module):
    """A block as in MobileNetV3: expand, depthwise, squeeze and excite, project."""

    def __init__(self, width: int) -> None:
        """Make the layers."""
        super().__init__()
        self.expand = nn.Conv2d(width, 4 * width, 1)
        self.depthwise = nn.Conv2d(4 * width, 4 * width, 3, padding=1, groups=4 * width)
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(4 * width, 4 * width, 1), nn.Hardsigmoid()
        )
        self.project = nn.Conv2d(4 * width, width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return input plus projection."""
        out = functional.hardswish(self.depthwise(functional.hardswish(self.expand(x))))
        return x + self.project(out * self.squeeze(out))


def mobilenet() -> nn.Module:
    """Return a small MobileNetV3."""
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, 5))
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), Inverted(8), Inverted(8), *head)


class VisionTransformer(nn.Module):
    """Patches, a class token, positions, encoder layers, a head."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 16))
        self.position = nn.Parameter(torch.randn(1, 5, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return class scores."""
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], dim=1)
        return self.head(self.encoder(tokens + self.position)[:, 0])


class GruPolicy(nn.Module):
    """A sequence through a GRU."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.gru, self.head = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Return the last action."""
        out, _ = self.gru(x)
        return self.head(out[:, -1])


class LstmPolicy(nn.Module):
    """A sequence through two layers of LSTM."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.lstm, self.head = nn.LSTM(8, 16, 2, batch_first=True), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Return the last action."""
        out, (hidden, _) = self.lstm(x)
        return self.head(out[:, -1] + hidden[-1])


class Encoder(nn.Module):
    """A transformer encoder with a causal mask."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Tensor) -> Tensor:
        """Return the encoded sequence."""
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        return self.encoder(x, mask=mask, is_causal=True)


class UNet(nn.Module):
    """Down, up, and a skip connection."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.down, self.deep = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return an image of two channels."""
        shallow = functional.relu(self.down(x))
        deep = functional.relu(self.deep(functional.max_pool2d(shallow, 2)))
        return self.out(torch.cat([self.up(deep), shallow], dim=1))


class PointNet(nn.Module):
    """Shared layers over points, then the maximum."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.points = nn.Sequential(nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU())
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        """Return class scores."""
        return self.head(self.points(x.transpose(1, 2)).max(dim=-1).values)


class ActorCritic(nn.Module):
    """As in rsl_rl: a distribution made anew in every step, of which the mean is the action."""

    def __init__(self) -> None:
        """Make both networks."""
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(12, 32), nn.ELU(), nn.Linear(32, 4))
        self.critic = nn.Sequential(nn.Linear(12, 32), nn.ELU(), nn.Linear(32, 1))
        self.std = nn.Parameter(torch.ones(4))
        self.distribution: torch.distributions.Normal | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Return the action that is acted on."""
        mean = self.actor(x)
        self.distribution = torch.distributions.Normal(mean, self.std.expand_as(mean))
        self.distribution.log_prob(mean).sum(dim=-1)
        self.critic(x)
        return self.distribution.mean


def image_encoder() -> nn.Module:
    """Return the convolutions that a policy with a camera has."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 4, 2),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.LazyLinear(6),
        nn.LayerNorm(6),
        nn.Tanh(),
    )


class Normalizer(nn.Module):
    """As rsl_rl normalises observations empirically."""

    mean: Tensor
    deviation: Tensor
    count: Tensor

    def __init__(self) -> None:
        """Start with statistics that are not trivial."""
        super().__init__()
        self.register_buffer("mean", torch.linspace(-1, 1, 12).unsqueeze(0))
        self.register_buffer("deviation", torch.linspace(0.5, 2, 12).unsqueeze(0))
        self.register_buffer("count", torch.tensor(100, dtype=torch.long))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise, and learn while training."""
        if self.training:
            self.count += x.shape[0]
            self.mean = self.mean + (x.mean(0, keepdim=True) - self.mean) / self.count
        return (x - self.mean) / (self.deviation + 1e-2)


def actor_with_normalizer() -> nn.Module:
    """Return a normaliser in front of an actor-critic."""
    return nn.Sequential(Normalizer(), ActorCritic())


_IMAGE = (1, 3, 8, 8)

#: Networks by name, with the shape of their input.
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "resnet": (resnet, _IMAGE),
    "mobilenet": (mobilenet, _IMAGE),
    "vision_transformer": (VisionTransformer, _IMAGE),
    "gru_policy": (GruPolicy, (1, 3, 8)),
    "lstm_policy": (LstmPolicy, (1, 3, 8)),
    "transformer_encoder": (Encoder, (1, 5, 16)),
    "u_net": (UNet, _IMAGE),
    "point_net": (PointNet, (1, 20, 3)),
    "actor_critic": (ActorCritic, (1, 12)),
    "image_encoder": (image_encoder, _IMAGE),
    "actor_with_normalizer": (actor_with_normalizer, (1, 12)),
}


class RobotData:
    """What a simulator says about a robot; the properties are computed on every access."""

    def __init__(self) -> None:
        """Start at rest, away from zero."""
        self.position = torch.full((1, 3), 0.1)
        self.velocity = torch.zeros(1, 3)
        self.target = torch.zeros(1, 3)

    @property
    def joint_pos(self) -> Tensor:
        """Return the joint positions."""
        return self.position

    @property
    def joint_vel(self) -> Tensor:
        """Return the joint velocities."""
        return self.velocity


class Environment:
    """An environment made of managers: observation terms, a policy, an action term, physics."""

    def __init__(self, policy: nn.Module) -> None:
        """Keep the policy, and the action of the step before."""
        self.policy, self.data = policy, RobotData()
        self.default = torch.tensor([[0.1, -0.2, 0.3]])
        self.last_action = torch.zeros(1, 3)
        self.terms: dict[str, Callable[[], Tensor]] = {
            "joint_pos": lambda: self.data.joint_pos - self.default,
            "joint_vel": lambda: self.data.joint_vel * 0.05,
            "command": self.command,
            "actions": lambda: self.last_action,
        }

    def command(self) -> Tensor:
        """Return what the operator wants."""
        return torch.rand(1, 2)

    def observe(self) -> Tensor:
        """Join the terms."""
        return torch.cat([term() for term in self.terms.values()], dim=-1)

    def apply(self, action: Tensor) -> None:
        """Turn an action into joint targets and hand them to the simulator."""
        self.last_action = action
        self.write_targets(self.default + 0.25 * action)

    def write_targets(self, targets: Tensor) -> None:
        """Write the targets into the simulator's memory."""
        self.data.target[:] = targets

    def simulate(self) -> None:
        """Advance the physics, in torch and in place."""
        self.data.velocity.add_(0.5 * (self.data.target - self.data.position))
        self.data.position.add_(0.02 * self.data.velocity)

    def step(self) -> None:
        """Run one tick."""
        self.apply(self.policy(self.observe()))
        self.simulate()


def annotated_by_patching(api: Any, environment: Environment) -> None:
    """Mark what an environment reads and writes without touching its code.

    This is how exporters of simulators work: properties, command terms and action writers are
    replaced by ones that mark what passes through them.
    """
    node, annotate = "policy", api.annotate

    class MarkedData(RobotData):
        @property
        def joint_pos(self) -> Tensor:
            value = super().joint_pos.clone()
            described = api.TensorSemantics(
                name="joint_pos", ref=value, kind=api.InputKindEnum.JOINT_POSITION
            )
            marked: Tensor = annotate.input_tensors(node, described)
            return marked

        @property
        def joint_vel(self) -> Tensor:
            marked: Tensor = annotate.input_tensors(node, {"joint_vel": super().joint_vel.clone()})
            return marked

    environment.data.__class__ = MarkedData
    command, write, last = environment.command, environment.write_targets, "last_action"
    environment.terms["command"] = lambda: annotate.input_tensors(node, {"command": command()})
    environment.terms["actions"] = lambda: annotate.state_tensors(
        node, {last: environment.last_action}
    )

    def write_targets(targets: Tensor) -> None:
        annotate.update_state(node, {last: environment.last_action})
        described = api.TensorSemantics(
            name="targets", ref=targets, kind=api.OutputKindEnum.JOINT_POSITION
        )
        annotate.output_tensors(node, described, export_with="jit")
        write(targets)

    environment.write_targets = write_targets  # type: ignore[method-assign]
