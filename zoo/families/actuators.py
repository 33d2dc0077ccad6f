"""actuators: what makes torques of targets: gains, limits, networks, delays, springs, friction."""

from __future__ import annotations

import itertools
from collections import deque

import torch
from attacks.draws import normal, row, uniform
from torch import Tensor, nn

from zoo.register import policy

ROBOTS, JOINTS = 2, 3
#: What arrives from the policy and from the encoders.
COMMANDED = {
    "target": normal(ROBOTS, JOINTS, s=0.4),
    "joint_pos": normal(ROBOTS, JOINTS, s=0.3),
    "joint_vel": normal(ROBOTS, JOINTS, s=2.0),
}
KP, KD = torch.tensor([40.0, 60.0, 20.0]), torch.tensor([1.0, 2.0, 0.5])


def livened(made: nn.Module, gain: float = 1.8) -> nn.Module:
    """Make weights as large as training does, so that torques move."""
    with torch.no_grad():
        for weight in made.parameters():
            weight.mul_(gain if weight.dim() > 1 else 0.5)
    return made.eval()


def net(*sizes: int, act: type[nn.Module] = nn.Softsign) -> nn.Module:
    layers: list[nn.Module] = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        layers += [nn.Linear(fan_in, fan_out), act()]
    return livened(nn.Sequential(*layers[:-1]))


class IdealPD:
    """Isaac Lab's explicit actuators: what was computed, and what was applied, are both kept."""

    def __init__(self, effort_limit: float | Tensor, kp: Tensor = KP, kd: Tensor = KD) -> None:
        self.stiffness = torch.zeros(ROBOTS, JOINTS)
        self.damping = torch.zeros(ROBOTS, JOINTS)
        self.stiffness[:], self.damping[:] = kp, kd
        self.effort_limit = effort_limit
        self.computed_effort = torch.zeros(ROBOTS, JOINTS)
        self.applied_effort = torch.zeros_like(self.computed_effort)

    def clip_effort(self, effort: Tensor) -> Tensor:
        return torch.clip(effort, min=-self.effort_limit, max=self.effort_limit)

    def compute(self, target: Tensor, joint_pos: Tensor, joint_vel: Tensor) -> Tensor:
        error = target - joint_pos
        self.computed_effort = self.stiffness * error - self.damping * joint_vel
        self.applied_effort = self.clip_effort(self.computed_effort)
        return self.applied_effort


class DCMotor(IdealPD):
    """A line between stall and the largest speed bounds the torque in all four quadrants."""

    def __init__(self, saturation: float, velocity_limit: float, effort_limit: float) -> None:
        super().__init__(effort_limit)
        self.saturation, self.velocity_limit = saturation, velocity_limit
        self._joint_vel = torch.zeros_like(self.computed_effort)

    def compute(self, target: Tensor, joint_pos: Tensor, joint_vel: Tensor) -> Tensor:
        self._joint_vel[:] = joint_vel
        return super().compute(target, joint_pos, joint_vel)

    def clip_effort(self, effort: Tensor) -> Tensor:
        speed = self._joint_vel / self.velocity_limit
        highest = torch.clip(self.saturation * (1.0 - speed), min=0.0, max=self.effort_limit)
        lowest = torch.clip(self.saturation * (-1.0 - speed), min=-self.effort_limit, max=0.0)
        return torch.clip(effort, min=lowest, max=highest)


class RemotizedPD(IdealPD):
    """The limit of the torque is looked up by the angle of the joint: a knee behind a linkage."""

    def __init__(self, angles: list[float], limits: list[float]) -> None:
        super().__init__(0.0)
        self.x, self.y = torch.tensor(angles), torch.tensor(limits)

    def compute(self, target: Tensor, joint_pos: Tensor, joint_vel: Tensor) -> Tensor:
        above = torch.searchsorted(self.x, joint_pos.flatten())
        below = torch.clamp(above - 1, min=0, max=len(self.x) - 1)
        above = torch.clamp(above, max=len(self.x) - 1)
        width = self.x[above] - self.x[below]
        weight = torch.where(
            width == 0.0, 0.0, (joint_pos.flatten() - self.x[below]) / (width + 1e-9)
        )
        limit = self.y[below] + weight * (self.y[above] - self.y[below])
        self.effort_limit = limit.reshape(joint_pos.shape)
        return super().compute(target, joint_pos, joint_vel)


@policy("actuators", inputs=COMMANDED, style="method", name="actuators_pd")
class Pd:
    """Gains and limits by joint, and what the saturation took away."""

    def __init__(self) -> None:
        self.actuator = IdealPD(torch.tensor([18.0, 25.0, 9.0]))

    def step(self, target: Tensor, joint_pos: Tensor, joint_vel: Tensor) -> tuple[Tensor, Tensor]:
        effort = self.actuator.compute(target, joint_pos, joint_vel)
        lost = (self.actuator.computed_effort - effort).abs().sum(dim=-1)
        return effort, lost


@policy("actuators", inputs=COMMANDED, name="actuators_dc_motor")
class DcMotorGroup:
    """Two groups of joints of one robot: DC motors, and knees with a table."""

    def __init__(self) -> None:
        self.hips = DCMotor(30.0, 9.0, 22.0)
        self.knees = RemotizedPD([-2.0, -1.0, -0.2, 0.6, 1.5], [8.0, 14.0, 20.0, 13.0, 5.0])

    def __call__(self, target: Tensor, joint_pos: Tensor, joint_vel: Tensor) -> Tensor:
        efforts = torch.zeros(ROBOTS, 2 * JOINTS)
        efforts[:, 0::2] = self.hips.compute(target, joint_pos, joint_vel)
        efforts[:, 1::2] = self.knees.compute(1.5 * target, joint_pos, 0.5 * joint_vel)
        return efforts


class Lstm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 8, num_layers=2, batch_first=True)
        self.out = nn.Linear(8, 1)

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        y, state = self.lstm(x, state)
        return self.out(y[:, -1]), state


@policy("actuators", inputs=COMMANDED, passes=6, context="inference", name="actuators_lstm")
class ActuatorNetLSTM:
    """ANYdrive's network: every joint is a row of a scripted LSTM, whose states are written."""

    def __init__(self) -> None:
        self.network = torch.jit.script(livened(Lstm(), 2.5))
        layers, rows = 2, ROBOTS * JOINTS
        self.sea_input = torch.zeros(rows, 1, 2)
        self.sea_hidden_state = torch.zeros(layers, rows, 8)
        self.sea_cell_state = torch.zeros(layers, rows, 8)
        # Views of the same memory by robot and joint, through which single robots are reset.
        shape = (layers, ROBOTS, JOINTS, 8)
        self.sea_hidden_state_per_env = self.sea_hidden_state.view(shape)
        self.sea_cell_state_per_env = self.sea_cell_state.view(shape)
        self.motor = DCMotor(120.0, 7.5, 80.0)

    def __call__(self, target: Tensor, joint_pos: Tensor, joint_vel: Tensor) -> Tensor:
        self.sea_input[:, 0, 0] = (target - joint_pos).flatten()
        self.sea_input[:, 0, 1] = joint_vel.flatten()
        self.motor._joint_vel[:] = joint_vel
        states = (self.sea_hidden_state, self.sea_cell_state)
        torques, (self.sea_hidden_state[:], self.sea_cell_state[:]) = self.network(
            self.sea_input, states
        )
        return self.motor.clip_effort(100.0 * torques.reshape(joint_pos.shape))


@policy("actuators", inputs=COMMANDED, passes=9, style="method", name="actuators_mlp")
class ActuatorNetMLP:
    """Position errors and velocities of this, the second and the fourth tick before, scaled."""

    def __init__(self) -> None:
        self.network = torch.jit.script(net(6, 32, 32, 1))
        self.input_idx = [0, 2, 4]
        self.pos_scale, self.vel_scale, self.torque_scale = -1.0, 0.5, 20.0
        self.pos_error_history = torch.zeros(ROBOTS, 5, JOINTS)
        self.vel_history = torch.zeros(ROBOTS, 5, JOINTS)
        self.motor = DCMotor(33.0, 21.0, 23.0)

    def step(self, target: Tensor, joint_pos: Tensor, joint_vel: Tensor) -> Tensor:
        self.pos_error_history = self.pos_error_history.roll(1, 1)
        self.pos_error_history[:, 0] = target - joint_pos
        self.vel_history = self.vel_history.roll(1, 1)
        self.vel_history[:, 0] = joint_vel
        self.motor._joint_vel[:] = joint_vel

        pos = torch.cat([self.pos_error_history[:, i].unsqueeze(2) for i in self.input_idx], dim=2)
        vel = torch.cat([self.vel_history[:, i].unsqueeze(2) for i in self.input_idx], dim=2)
        pos = pos.view(ROBOTS * JOINTS, -1) * self.pos_scale
        vel = vel.view(ROBOTS * JOINTS, -1) * self.vel_scale
        torques = self.network(torch.cat([pos, vel], dim=1)).view(ROBOTS, JOINTS)
        efforts = self.motor.clip_effort(torques * self.torque_scale)
        return efforts


@policy(
    "actuators",
    inputs={"target": normal(1, 3, s=0.5), "load": normal(1, 3)},
    passes=8,
    name="actuators_delayed_pd",
)
class DelayedPD:
    """Targets three ticks late, and a PD loop that runs four times in a tick on its own model."""

    def __init__(self, delay: int = 3, decimation: int = 4) -> None:
        self.dt, self.decimation = 0.02 / decimation, decimation
        self.queue = deque([torch.zeros(1, 3) for _ in range(delay)], maxlen=delay)
        self.pos, self.vel = torch.zeros(1, 3), torch.zeros(1, 3)
        self.armature = torch.tensor([0.4, 0.6, 0.2])

    def __call__(self, target: Tensor, load: Tensor) -> dict[str, Tensor]:
        late = self.queue.popleft()
        self.queue.append(target)
        power = torch.zeros(1)
        for _ in range(self.decimation):
            torque = torch.clamp(KP * (late - self.pos) - KD * self.vel, -15.0, 15.0)
            self.vel = self.vel + (torque + load) / self.armature * self.dt
            self.pos = self.pos + self.vel * self.dt
            power += (torque * self.vel).clamp(min=0.0).sum(dim=-1)
        return {"torque": torque, "pos": self.pos, "power": power / self.decimation}


@policy(
    "actuators",
    inputs={"torque": normal(1, 4, s=4.0), "load": normal(1, 4, s=2.0)},
    passes=6,
    name="actuators_series_elastic",
)
class SeriesElastic:
    """Motor and link with a spring that hardens; the force of the spring is what is controlled."""

    def __init__(self) -> None:
        self.dt = 0.002
        self.motor = torch.zeros(2, 4)
        self.link = torch.zeros(2, 4)
        self.integral = torch.zeros(1, 4)
        self.inertia = torch.tensor([0.08, 0.08, 0.05, 0.03])

    def spring(self) -> Tensor:
        twist = self.motor[0] - self.link[0]
        return 90.0 * twist + 400.0 * twist**3

    def __call__(self, torque: Tensor, load: Tensor) -> dict[str, Tensor]:
        for _ in range(5):
            force = self.spring()
            error = torque - force
            self.integral = (self.integral + error * self.dt).clamp(-0.5, 0.5)
            slip = self.motor[1] - self.link[1]
            drive = (torque + 0.8 * error + 6.0 * self.integral - 3.0 * slip).clamp(-20.0, 20.0)
            push = force + 0.6 * slip
            accel = (drive[0] - push - 0.2 * self.motor[1]) / self.inertia
            pull = (push + load[0] - 2.0 * self.link[1] - 30.0 * self.link[0]) / 0.3
            self.motor[1] += accel * self.dt
            self.motor[0] += self.motor[1] * self.dt
            self.link[1].add_(pull, alpha=self.dt)
            self.link[0].add_(self.link[1], alpha=self.dt)
        return {"measured": self.spring(), "link": self.link.clone(), "drive": drive}


@policy(
    "actuators",
    inputs={"command": uniform(-1.0, 1.0, 2, 1), "width": uniform(0.0, 0.08, 2)},
    passes=8,
    style="method",
    name="actuators_gripper",
)
class Gripper:
    """Opens and closes with hysteresis, holds what it has after ten ticks without motion."""

    OPEN, CLOSED = 0.08, 0.0

    def __init__(self) -> None:
        self.closing = torch.zeros(2, dtype=torch.bool)
        self.target = torch.full((2,), self.OPEN)
        self.last_width = torch.full((2,), self.OPEN)
        self.still = torch.zeros(2, dtype=torch.int32)

    def step(self, command: Tensor, width: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        wish = command.squeeze(-1)
        closing = torch.where(wish < -0.3, True, torch.where(wish > 0.3, False, self.closing))
        changed = closing ^ self.closing
        self.closing = closing
        moved = (width - self.last_width).abs() > 0.04
        self.still = torch.where(moved | changed, 0, self.still + 1)
        self.last_width = width.clone()
        holding = closing & (self.still >= 2) & (width > 0.01)
        goal = torch.where(closing, self.CLOSED, self.OPEN)
        goal = torch.where(holding, width - 0.004, goal)
        self.target = self.target + (goal - self.target).clamp(-0.006, 0.006)
        fingers = torch.stack([self.target, self.target], dim=-1) / 2
        force = torch.where(holding, 40.0, 10.0)
        return fingers, force, holding


@policy(
    "actuators",
    inputs={
        "action": normal(1, 3, s=0.5),
        "joint_pos": normal(1, 3, s=0.2),
        "joint_vel": normal(1, 3),
        "mode": row(*([[0]] * 4), *([[1]] * 25), *([[2]] * 11)),
    },
    passes=6,
    name="actuators_soft_start",
)
class SoftStart:
    """Damping, standing up and policy: a mode, and ramps by counters that are tensors."""

    STAND = torch.tensor([0.1, 0.8, -1.5])
    GAINS = torch.tensor([[0.0, 2.0], [30.0, 1.0], [45.0, 1.2]])

    def __init__(self, ramp: int = 20) -> None:
        self.ramp = ramp
        self.ticks = torch.zeros(1, dtype=torch.long)
        self.mode = torch.zeros(1, dtype=torch.long)
        self.start = self.STAND.repeat(1, 1)
        self.gains = torch.zeros(2)

    def __call__(
        self, action: Tensor, joint_pos: Tensor, joint_vel: Tensor, mode: Tensor
    ) -> dict[str, Tensor]:
        entered = mode != self.mode
        self.ticks = torch.where(entered, torch.zeros_like(self.ticks), self.ticks + 1)
        self.start = torch.where(entered, joint_pos, self.start)
        self.mode = mode
        share = (self.ticks.float() / self.ramp).clamp(max=1.0)
        smooth = share * share * (3.0 - 2.0 * share)
        standing = torch.lerp(self.start, self.STAND, smooth)
        target = torch.where(mode == 2, self.STAND + 0.25 * action, standing)
        self.gains += 0.1 * (self.GAINS[mode].squeeze(0) - self.gains)
        kp, kd = self.gains
        torque = 12.0 * torch.tanh((kp * (target - joint_pos) - kd * joint_vel) / 12.0)
        return {"torque": torque, "target": target, "kp": kp, "ticks": self.ticks}


@policy("actuators", inputs=COMMANDED, passes=6, name="actuators_friction")
class Friction:
    """Stribeck's curve and the bristles of LuGre, fed forward, and backlash at the output."""

    COULOMB = torch.tensor([0.8, 1.2, 0.4])
    STATIC = torch.tensor([1.3, 1.6, 0.7])

    def __init__(self) -> None:
        self.bristles = torch.zeros(ROBOTS, JOINTS)
        self.gap = torch.zeros(ROBOTS, JOINTS)
        self.actuator = IdealPD(20.0)

    def friction(self, velocity: Tensor) -> Tensor:
        level = self.COULOMB + (self.STATIC - self.COULOMB) * torch.exp(-((velocity / 0.4) ** 2))
        bend = 40.0
        # Implicit Euler: the bristles are stiff.
        self.bristles = (self.bristles + 0.02 * velocity) / (
            1.0 + 0.02 * bend * velocity.abs() / level
        )
        rate = velocity - bend * velocity.abs() / level * self.bristles
        return bend * self.bristles + 0.5 * rate + 0.1 * velocity

    def __call__(self, target: Tensor, joint_pos: Tensor, joint_vel: Tensor) -> dict[str, Tensor]:
        effort = self.actuator.compute(target, joint_pos, joint_vel)
        friction = self.friction(joint_vel)
        self.gap = torch.minimum(torch.maximum(self.gap, joint_pos - 0.05), joint_pos + 0.05)
        signs = torch.sign(joint_vel) * (joint_vel.abs() > 0.1)
        held = (joint_vel.abs() < 0.05) & (effort.abs() < self.STATIC)
        effort = torch.where(held, torch.zeros_like(effort), effort + 0.9 * friction)
        return {"effort": effort, "output": self.gap, "signs": signs.to(torch.int8)}


@policy(
    "actuators",
    inputs={"current": normal(1, 2, s=6.0), "velocity": normal(1, 2, s=3.0)},
    passes=6,
    style="module",
    name="actuators_thermal",
)
class Thermal(nn.Module):
    """Windings and housing heat up; the current is limited before they are too hot."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("winding", torch.full((2,), 25.0))
        self.register_buffer("housing", torch.full((2,), 25.0))
        self.register_buffer("ticks", torch.tensor(0, dtype=torch.int32))
        self.register_buffer("constant", torch.tensor([0.9, 1.4]))

    def forward(self, current: Tensor, velocity: Tensor) -> tuple[Tensor, Tensor]:
        room = ((120.0 - self.winding) / 40.0).clamp(0.0, 1.0)
        limited = current.clamp(min=-15 * room, max=15 * room)
        resistance = 0.3 * (1 + 0.0039 * (self.winding - 25.0))
        heat = (limited.square() * resistance)[0]
        flow = (self.winding - self.housing) / 1.5
        self.winding += 0.1 * (heat - flow)
        self.housing.add_(0.01 * (flow - (self.housing - 25.0) / 3.0))
        self.ticks += 1
        voltage = limited * resistance + self.constant * velocity
        torque = self.constant * limited * (voltage.abs() < 48.0)
        return torque, torch.stack([self.winding, self.housing]) * (self.ticks > 2)
