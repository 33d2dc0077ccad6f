"""Building observations: histories, commands, gravity, height maps, contacts."""

from __future__ import annotations

from collections import deque

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import flags, integers, normal, uniform
from attacks.registry import clean


@clean("A", passes=5, rec={"obs": normal(2, 5)}, backends=("jit", "onnx"))
class NcHistoryRollFlatten:
    """A history of five observations, rolled and flattened, oldest first."""

    def __init__(self) -> None:
        self.history = torch.zeros(2, 5, 5)

    def __call__(self, obs: Tensor) -> Tensor:
        self.history = torch.roll(self.history, shifts=-1, dims=1)
        self.history[:, -1, :] = obs
        return self.history.flatten(start_dim=1)


@clean("A", passes=4, rec={"obs": normal(1, 4)}, backends="jit")
class NcHistoryCatSlice:
    """A flat history: drop the oldest slice, append the newest."""

    def __init__(self, num_obs: int = 4, length: int = 3) -> None:
        self.num_obs = num_obs
        self.obs_history = torch.zeros(1, num_obs * length)

    def __call__(self, obs: Tensor) -> Tensor:
        self.obs_history = torch.cat((self.obs_history[:, self.num_obs :], obs), dim=-1)
        return self.obs_history


@clean("A", passes=7, rec={"obs": normal(1, 4)}, backends="jit")
class NcDequeOfFrames:
    """A deque of the last three frames, filled with zeros at the start."""

    def __init__(self) -> None:
        self.frames: deque[Tensor] = deque([torch.zeros(1, 4) for _ in range(3)], maxlen=3)

    def __call__(self, obs: Tensor) -> Tensor:
        self.frames.append(obs)
        return torch.cat(list(self.frames), dim=-1)


@clean("A", passes=4, rec={"obs": normal(1, 6)}, backends="jit")
class NcHistoryInPlaceShift:
    """The window is shifted in place through a clone of the overlapping part."""

    def __init__(self) -> None:
        self.window = torch.zeros(4, 6)

    def __call__(self, obs: Tensor) -> Tensor:
        self.window[:-1] = self.window[1:].clone()
        self.window[-1] = obs[0]
        return self.window.mean(dim=0, keepdim=True) + self.window[-1] - self.window[0]


def quat_rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    xyz, w = q[:, :3], q[:, 3:]
    t = 2.0 * torch.cross(xyz, v, dim=-1)
    return v - w * t + torch.cross(xyz, t, dim=-1)


@clean(
    "A",
    passes=4,
    rec={
        "base_quat": normal(1, 4),
        "ang_vel": normal(1, 3),
        "commands": uniform(-1, 1, 1, 3),
        "dof_pos": normal(1, 4),
        "dof_vel": normal(1, 4),
    },
    backends=("jit", "onnx"),
)
class NcLeggedGymObservations:
    """legged_gym's compute_observations with its scales, then a policy whose action is kept."""

    def __init__(self) -> None:
        self.gravity_vec = torch.tensor([[0.0, 0.0, -1.0]])
        self.commands_scale = torch.tensor([2.0, 2.0, 0.25])
        self.default_dof_pos = torch.tensor([[0.1, 0.8, -1.5, 0.0]])
        self.actor = nn.Sequential(nn.Linear(21, 32), nn.ELU(), nn.Linear(32, 4))
        self.actions = torch.zeros(1, 4)

    def __call__(
        self, base_quat: Tensor, ang_vel: Tensor, commands: Tensor, dof_pos: Tensor, dof_vel: Tensor
    ) -> Tensor:
        quat = F.normalize(base_quat, dim=-1)
        obs_buf = torch.cat(
            (
                ang_vel * 0.25,
                quat_rotate_inverse(quat, self.gravity_vec),
                commands * self.commands_scale,
                dof_pos - self.default_dof_pos,
                dof_vel * 0.05,
                self.actions,
            ),
            dim=-1,
        )
        self.actions = self.actor(torch.clip(obs_buf, -100.0, 100.0))
        return self.actions


@clean(
    "H",
    passes=3,
    rec={"points": normal(1, 33, s=0.2), "base_height": uniform(0.3, 0.6, 1, 1)},
    backends="jit",
)
class NcHeightScan:
    """Heights around the robot relative to the base, clipped and scaled."""

    def __call__(self, points: Tensor, base_height: Tensor) -> Tensor:
        return torch.clip(base_height - 0.5 - points, -1.0, 1.0) * 5.0


@clean(
    "H",
    passes=3,
    rec={"grid": uniform(0.0, 0.4, 1, 1, 12, 12), "yaw": normal(1), "xy": uniform(-0.3, 0.3, 1, 2)},
    fresh={"xy": uniform(-0.5, 0.5, 1, 2)},
    backends="jit",
)
class NcHeightMapSampling:
    """Samples a height map around the robot in its yaw frame, by grid_sample."""

    def __init__(self) -> None:
        x, y = torch.meshgrid(
            torch.linspace(-0.3, 0.3, 4), torch.linspace(-0.2, 0.2, 3), indexing="ij"
        )
        self.offsets = torch.stack((x.flatten(), y.flatten()), dim=-1)

    def __call__(self, grid: Tensor, yaw: Tensor, xy: Tensor) -> Tensor:
        c, s = torch.cos(yaw), torch.sin(yaw)
        rotation = torch.stack((torch.stack((c, -s), -1), torch.stack((s, c), -1)), -2)
        places = self.offsets @ rotation.transpose(1, 2) + xy.unsqueeze(1)
        heights = F.grid_sample(
            grid, places.unsqueeze(1), mode="bilinear", padding_mode="border", align_corners=True
        )
        return heights.view(1, -1)


@clean("A", passes=5, rec={"forces": normal(1, 4, 3, s=2.0)}, backends="jit")
class NcContactFilter:
    """Contact flags, held for one more tick, and the air time of each foot, all in tensors."""

    def __init__(self) -> None:
        self.last_contacts = torch.zeros(1, 4, dtype=torch.bool)
        self.feet_air_time = torch.zeros(1, 4)

    def __call__(self, forces: Tensor) -> dict[str, Tensor]:
        contact = forces[:, :, 2] > 1.0
        contact_filt = torch.logical_or(contact, self.last_contacts)
        self.last_contacts = contact
        first_contact = (self.feet_air_time > 0.0) * contact_filt
        self.feet_air_time += 0.02
        landed = self.feet_air_time * first_contact
        self.feet_air_time *= ~contact_filt
        return {"contact": contact_filt, "landed": landed, "air_time": self.feet_air_time.clone()}


@clean("A", passes=4, rec={"obs": normal(1, 5), "reset": flags(0.3, 1)}, backends="onnx")
class NcMaskedReset:
    """The history is zeroed by a mask where a reset flag is set, without branches."""

    def __init__(self) -> None:
        self.buffer = torch.zeros(1, 3, 5)

    def __call__(self, obs: Tensor, reset: Tensor) -> Tensor:
        kept = self.buffer * (~reset).float().view(-1, 1, 1)
        self.buffer = torch.cat((kept[:, 1:], obs.unsqueeze(1)), dim=1)
        return self.buffer.flatten(1)


@clean("A", passes=6, rec={"command": uniform(-1, 1, 1, 3)}, backends="jit")
class NcGaitClockFromTensors:
    """A gait clock: a phase tensor that stands still where the command is small."""

    def __init__(self) -> None:
        self.gait_indices = torch.zeros(1)
        self.offsets = torch.tensor([0.0, 0.5, 0.5, 0.0])

    def __call__(self, command: Tensor) -> Tensor:
        moving = (command.norm(dim=-1) > 0.1).float()
        self.gait_indices = torch.remainder(self.gait_indices + 0.02 * 3.0 * moving, 1.0)
        foot = torch.remainder(self.gait_indices.unsqueeze(-1) + self.offsets, 1.0)
        return torch.cat((torch.sin(2 * torch.pi * foot), command), dim=-1)


@clean(
    "H",
    passes=3,
    style="method",
    rec={"joint_pos": normal(1, 6), "joint_vel": normal(1, 6)},
    backends="jit",
)
class NcJointReorder:
    """Reorders joints from the robot's order to the policy's, and back, by index tensors."""

    ROBOT = ["FL_hip", "FL_knee", "FR_hip", "FR_knee", "R_hip", "R_knee"]
    POLICY = ["FL_hip", "FR_hip", "R_hip", "FL_knee", "FR_knee", "R_knee"]

    def __init__(self) -> None:
        self.to_policy = torch.tensor([self.ROBOT.index(name) for name in self.POLICY])
        self.to_robot = torch.argsort(self.to_policy)
        self.net = nn.Linear(12, 6)

    def step(self, joint_pos: Tensor, joint_vel: Tensor) -> Tensor:
        obs = torch.cat(
            [joint_pos[:, self.to_policy], joint_vel.index_select(1, self.to_policy)], dim=1
        )
        target = self.net(obs)[:, self.to_robot]
        return target


@clean(
    "H",
    passes=3,
    rec={"ranges": uniform(0.1, 9.0, 1, 72)},
    fresh={"ranges": uniform(0.1, 14.0, 1, 72)},
    backends="jit",
)
class NcLidarSectors:
    """The nearest obstacle per sector of a lidar, and the inverse distances."""

    def __call__(self, ranges: Tensor) -> dict[str, Tensor]:
        clipped = ranges.clamp(0.15, 6.0)
        sectors = clipped.view(-1, 12, 6)
        nearest = sectors.amin(dim=-1)
        return {"nearest": nearest, "inverse": 1.0 / nearest, "closest": nearest.argmin(dim=-1)}


@clean("A", passes=4, rec={"q": normal(1, 5)}, backends="pt2")
class NcVelocityByDifference:
    """Joint velocity from positions, low-passed; previous position and velocity are kept."""

    def __init__(self) -> None:
        self.previous = torch.zeros(1, 5)
        self.velocity = torch.zeros(1, 5)

    def __call__(self, q: Tensor) -> Tensor:
        raw = (q - self.previous) / 0.02
        self.velocity = torch.lerp(self.velocity, raw, 0.2)
        self.previous = q.clone()
        return torch.cat([q, self.velocity], dim=-1)


@clean("H", passes=3, rec={"command": integers(0, 4, 2), "obs": normal(2, 5)}, backends="onnx")
class NcSkillOneHot:
    """An integer skill becomes a one-hot and an embedding beside the observation."""

    def __init__(self) -> None:
        self.table = nn.Embedding(4, 3)

    def __call__(self, command: Tensor, obs: Tensor) -> Tensor:
        return torch.cat(
            [obs, F.one_hot(command, num_classes=4).to(obs.dtype), self.table(command)], dim=-1
        )


@clean("A", passes=5, style="module", rec={"obs": normal(1, 6)}, backends="jit")
class NcRunningMeanDeployed(nn.Module):
    """A normaliser that goes on adapting on the robot: mean, variance and count are buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("var", torch.ones(6))
        self.register_buffer("count", torch.tensor(10.0))

    def forward(self, obs: Tensor) -> Tensor:
        delta = obs[0] - self.mean
        self.count += 1.0
        self.mean += delta / self.count
        self.var += (delta * (obs[0] - self.mean) - self.var) / self.count
        return ((obs - self.mean) * torch.rsqrt(self.var + 1e-5)).clamp(-5.0, 5.0)


@clean("A", passes=5, rec={"lin_vel": normal(1, 3), "ang_vel": normal(1, 3)}, backends="jit")
class NcIsaacObservationManager:
    """Isaac Lab's observation manager: terms with scale, clip and history, in a dict of buffers."""

    def __init__(self) -> None:
        self.terms = {
            "lin_vel": {"scale": 2.0, "clip": (-3.0, 3.0), "history": 3},
            "ang_vel": {"scale": 0.25, "clip": None, "history": 0},
        }
        self.buffers = {
            name: torch.zeros(1, cfg["history"], 3)
            for name, cfg in self.terms.items()
            if cfg["history"] > 0
        }

    def __call__(self, lin_vel: Tensor, ang_vel: Tensor) -> Tensor:
        values = {"lin_vel": lin_vel, "ang_vel": ang_vel}
        group = []
        for name, cfg in self.terms.items():
            obs = values[name].clone()
            if cfg["clip"]:
                obs = obs.clip_(min=cfg["clip"][0], max=cfg["clip"][1])
            if cfg["scale"] is not None:
                obs = obs.mul_(cfg["scale"])
            if cfg["history"] > 0:
                self.buffers[name] = torch.cat((self.buffers[name][:, 1:], obs[:, None]), dim=1)
                obs = self.buffers[name].reshape(1, -1)
            group.append(obs)
        return torch.cat(group, dim=-1)
