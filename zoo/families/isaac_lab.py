"""Isaac Lab, re-stated small: maths, observations, buffers, modifiers, actions, controllers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace

import torch
from attacks.draws import integers, normal, uniform
from torch import Tensor, nn
from veracity import annotate

from zoo.register import policy

# --- Maths: quaternions are (w, x, y, z), and most of it is scripted, as it is there --------------


@torch.jit.script
def normalize(x: Tensor, eps: float = 1e-9) -> Tensor:
    return x / x.norm(p=2, dim=-1).clamp(min=eps).unsqueeze(-1)


@torch.jit.script
def quat_conjugate(q: Tensor) -> Tensor:
    flat = q.reshape(-1, 4)
    return torch.cat((flat[:, :1], -flat[:, 1:]), dim=-1).view(q.shape)


@torch.jit.script
def quat_mul(a: Tensor, b: Tensor) -> Tensor:
    if a.shape != b.shape:
        raise ValueError(f"Expected quaternions of one shape: {a.shape} and {b.shape}.")
    shape = a.shape
    a, b = a.reshape(-1, 4), b.reshape(-1, 4)
    w1, x1, y1, z1 = a[:, 0], a[:, 1], a[:, 2], a[:, 3]
    w2, x2, y2, z2 = b[:, 0], b[:, 1], b[:, 2], b[:, 3]
    ww = (z1 + x1) * (x2 + y2)
    yy = (w1 - y1) * (w2 + z2)
    zz = (w1 + y1) * (w2 - z2)
    xx = ww + yy + zz
    qq = 0.5 * (xx + (z1 - x1) * (x2 - y2))
    w = qq - ww + (z1 - y1) * (y2 - z2)
    x = qq - xx + (x1 + w1) * (x2 + w2)
    y = qq - yy + (w1 - x1) * (y2 + z2)
    z = qq - zz + (z1 + y1) * (w2 - x2)
    return torch.stack([w, x, y, z], dim=-1).view(shape)


@torch.jit.script
def quat_apply(quat: Tensor, vec: Tensor) -> Tensor:
    shape = vec.shape
    quat, vec = quat.reshape(-1, 4), vec.reshape(-1, 3)
    xyz = quat[:, 1:]
    t = xyz.cross(vec, dim=-1) * 2
    return (vec + quat[:, 0:1] * t + xyz.cross(t, dim=-1)).view(shape)


@torch.jit.script
def quat_rotate_inverse(q: Tensor, v: Tensor) -> Tensor:
    w, xyz = q[..., 0], q[..., 1:]
    a = v * (2.0 * w**2 - 1.0).unsqueeze(-1)
    b = torch.cross(xyz, v, dim=-1) * w.unsqueeze(-1) * 2.0
    if xyz.dim() == 2:
        c = xyz * torch.bmm(xyz.view(q.shape[0], 1, 3), v.view(q.shape[0], 3, 1)).squeeze(-1) * 2.0
    else:
        c = xyz * torch.einsum("...i,...i->...", xyz, v).unsqueeze(-1) * 2.0
    return a - b + c


@torch.jit.script
def quat_unique(q: Tensor) -> Tensor:
    return torch.where(q[..., 0:1] < 0, -q, q)


@torch.jit.script
def wrap_to_pi(angles: Tensor) -> Tensor:
    wrapped = (angles + torch.pi) % (2 * torch.pi)
    return torch.where((wrapped == 0) & (angles > 0), torch.pi, wrapped - torch.pi)


@torch.jit.script
def yaw_quat(quat: Tensor) -> Tensor:
    shape = quat.shape
    q = quat.view(-1, 4)
    qw, qx, qy, qz = q[:, 0], q[:, 1], q[:, 2], q[:, 3]
    yaw = torch.atan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))
    flat = torch.zeros_like(q)
    flat[:, 3] = torch.sin(yaw / 2)
    flat[:, 0] = torch.cos(yaw / 2)
    return normalize(flat).view(shape)


@torch.jit.script
def euler_xyz_from_quat(quat: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    w, x, y, z = quat[:, 0], quat[:, 1], quat[:, 2], quat[:, 3]
    roll = torch.atan2(2.0 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    sin_pitch = 2.0 * (w * y - z * x)
    up = torch.sign(sin_pitch) * torch.pi / 2.0
    pitch = torch.where(torch.abs(sin_pitch) >= 1, up, torch.asin(sin_pitch))
    yaw = torch.atan2(2.0 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return roll % (2 * torch.pi), pitch % (2 * torch.pi), yaw % (2 * torch.pi)


@torch.jit.script
def axis_angle_from_quat(quat: Tensor, eps: float = 1.0e-6) -> Tensor:
    quat = quat * (1.0 - 2.0 * (quat[..., 0:1] < 0.0))
    size = torch.linalg.norm(quat[..., 1:], dim=-1)
    angle = 2.0 * torch.atan2(size, quat[..., 0])
    ratio = torch.where(angle.abs() > eps, torch.sin(angle / 2.0) / angle, 0.5 - angle * angle / 48)
    return quat[..., 1:4] / ratio.unsqueeze(-1)


@torch.jit.script
def quat_error_magnitude(q1: Tensor, q2: Tensor) -> Tensor:
    return torch.norm(axis_angle_from_quat(quat_mul(q1, quat_conjugate(q2))), dim=-1)


@torch.jit.script
def matrix_from_quat(quat: Tensor) -> Tensor:
    r, i, j, k = torch.unbind(quat, -1)
    s = 2.0 / (quat * quat).sum(-1)
    rows = [1 - s * (j * j + k * k), s * (i * j - k * r), s * (i * k + j * r)]
    rows += [s * (i * j + k * r), 1 - s * (i * i + k * k), s * (j * k - i * r)]
    rows += [s * (i * k - j * r), s * (j * k + i * r), 1 - s * (i * i + j * j)]
    return torch.stack(rows, -1).reshape(quat.shape[:-1] + (3, 3))  # noqa: RUF005  # scripted


@torch.jit.script
def quat_from_matrix(matrix: Tensor) -> Tensor:
    batch = matrix.shape[:-2]
    flat = matrix.reshape(batch + (9,))  # noqa: RUF005
    m00, m01, m02, m10, m11, m12, m20, m21, m22 = torch.unbind(flat, dim=-1)
    squares = torch.stack(
        [1 + m00 + m11 + m22, 1 + m00 - m11 - m22, 1 - m00 + m11 - m22, 1 - m00 - m11 + m22], -1
    )
    size = torch.zeros_like(squares)
    positive = squares > 0
    size[positive] = torch.sqrt(squares[positive])
    table = torch.stack(
        [
            torch.stack([size[..., 0] ** 2, m21 - m12, m02 - m20, m10 - m01], dim=-1),
            torch.stack([m21 - m12, size[..., 1] ** 2, m10 + m01, m02 + m20], dim=-1),
            torch.stack([m02 - m20, m10 + m01, size[..., 2] ** 2, m12 + m21], dim=-1),
            torch.stack([m10 - m01, m20 + m02, m21 + m12, size[..., 3] ** 2], dim=-1),
        ],
        dim=-2,
    )
    floor = torch.tensor(0.1).to(dtype=size.dtype, device=size.device)
    table = table / (2.0 * size[..., None].max(floor))
    best = nn.functional.one_hot(size.argmax(dim=-1), num_classes=4) > 0.5
    return table[best, :].reshape(batch + (4,))  # noqa: RUF005


@torch.jit.script
def skew_symmetric_matrix(vec: Tensor) -> Tensor:
    if vec.ndim == 1:
        vec = vec.unsqueeze(0)
    skew = torch.zeros(vec.size(0), 3, 3, device=vec.device, dtype=vec.dtype)
    skew[:, 0, 1] = -vec[:, 2]
    skew[:, 0, 2] = vec[:, 1]
    skew[:, 1, 2] = -vec[:, 0]
    skew[:, 1, 0] = vec[:, 2]
    skew[:, 2, 0] = -vec[:, 1]
    skew[:, 2, 1] = vec[:, 0]
    return skew


@torch.jit.script
def combine_frame_transforms(
    t01: Tensor, q01: Tensor, t12: Tensor, q12: Tensor
) -> tuple[Tensor, Tensor]:
    return t01 + quat_apply(q01, t12), quat_mul(q01, q12)


@torch.jit.script
def subtract_frame_transforms(
    t01: Tensor, q01: Tensor, t02: Tensor, q02: Tensor
) -> tuple[Tensor, Tensor]:
    q10 = normalize(quat_conjugate(q01))
    return quat_apply(q10, t02 - t01), quat_mul(q10, q02)


@torch.jit.script
def unscale_transform(x: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    return x * (upper - lower) * 0.5 + (lower + upper) * 0.5


def quat_slerp(a: Tensor, b: Tensor, tau: Tensor) -> Tensor:
    """In batches, as the older torch utilities have it."""
    cos = (a * b).sum(-1)
    b = torch.where((cos < 0).unsqueeze(-1), -b, b)
    cos = cos.abs().unsqueeze(-1)
    half, sin = torch.acos(cos.clamp(max=1.0)), torch.sqrt((1.0 - cos * cos).clamp(min=0.0))
    mixed = (torch.sin((1 - tau) * half) * a + torch.sin(tau * half) * b) / sin
    mixed = torch.where(torch.abs(sin) < 0.001, 0.5 * a + 0.5 * b, mixed)
    return torch.where(torch.abs(cos) >= 1, a, mixed)


def compute_pose_error(
    pos: Tensor, quat: Tensor, target_pos: Tensor, target_quat: Tensor
) -> tuple[Tensor, Tensor]:
    norm = quat_mul(quat, quat_conjugate(quat))[:, 0]
    inverse = quat_conjugate(quat) / norm.unsqueeze(-1)
    return target_pos - pos, axis_angle_from_quat(quat_mul(target_quat, inverse))


# --- Buffers and modifiers ------------------------------------------------------------------------


class CircularBuffer:
    """The newest at the end; older ones move up by copies. The first push fills it."""

    def __init__(self, max_len: int, batch_size: int):
        self.max_len, self.batch_size = max_len, batch_size
        self._all = torch.arange(batch_size)
        self._pushes = torch.zeros(batch_size, dtype=torch.long)
        self._need_reset = True
        self._buffer: Tensor | None = None

    @property
    def buffer(self) -> Tensor:
        return torch.transpose(self._buffer, dim0=0, dim1=1)

    def append(self, data: Tensor) -> None:
        if data.shape[0] != self.batch_size:
            raise ValueError(f"The batch is {data.shape[0]}, and {self.batch_size} was expected.")
        if self._buffer is None:
            self._buffer = torch.empty((self.max_len, *data.shape), dtype=data.dtype)
        for i in range(self.max_len - 1):
            self._buffer[i].copy_(self._buffer[i + 1])
        self._buffer[-1] = data
        if self._need_reset:
            first = (self._pushes == 0).view(1, -1, *([1] * (data.ndim - 1)))
            torch.where(first, data.unsqueeze(0), self._buffer, out=self._buffer)
            self._need_reset = False
        self._pushes += 1

    def __getitem__(self, key: Tensor) -> Tensor:
        """Return what was pushed this many pushes ago, row by row."""
        if len(key) != self.batch_size:
            raise ValueError(f"The key has {len(key)} entries.")
        if self._buffer is None:
            raise RuntimeError("The buffer is empty.")
        keys = torch.clamp(torch.minimum(key, self._pushes - 1), min=0)
        return self._buffer[(self.max_len - 1 - keys).long(), self._all]


class DelayBuffer:
    """A ring whose write index is a tensor; every row has a lag of its own."""

    def __init__(self, history_length: int, batch_size: int):
        self.history_length, self.batch_size = history_length, batch_size
        self._all = torch.arange(batch_size)
        self._write = torch.zeros(1, dtype=torch.long)
        self._pushes = torch.zeros(batch_size, dtype=torch.long)
        self._lags = torch.zeros(batch_size, dtype=torch.int)
        self._buffer: Tensor | None = None

    def set_time_lag(self, lag: Tensor) -> None:
        if lag.min().item() < 0 or lag.max().item() > self.history_length:
            raise ValueError("A lag is out of range.")
        self._lags[:] = lag.to(self._lags.dtype)

    def compute(self, data: Tensor) -> Tensor:
        if self._buffer is None:
            self._buffer = torch.empty((self.history_length + 1, *data.shape), dtype=data.dtype)
        self._buffer.index_copy_(0, self._write, data.unsqueeze(0))
        lag = torch.minimum(self._lags, self._pushes)
        read = (self._write - lag) % (self.history_length + 1)
        result = self._buffer[read, self._all]
        self._pushes.add_(1)
        self._write.add_(1).remainder_(self.history_length + 1)
        return result


def scale(data: Tensor, multiplier: float) -> Tensor:
    return data * multiplier


def bias(data: Tensor, value: float) -> Tensor:
    return data + value


def clip(data: Tensor, bounds: tuple[float | None, float | None]) -> Tensor:
    return data.clip(min=bounds[0], max=bounds[1])


class DigitalFilter:
    """y = B x - A y over the last inputs and outputs."""

    def __init__(self, a: list[float], b: list[float], shape: tuple[int, ...]):
        self.a = torch.tensor(a).unsqueeze(1)
        self.b = torch.tensor(b).unsqueeze(1)
        self.x_n = torch.zeros(*shape, self.b.shape[0])
        self.y_n = torch.zeros(*shape, self.a.shape[0])

    def __call__(self, data: Tensor) -> Tensor:
        self.x_n = torch.roll(self.x_n, shifts=1, dims=-1)
        self.x_n[..., 0] = data
        y = torch.matmul(self.x_n, self.b) - torch.matmul(self.y_n, self.a)
        y.squeeze_(-1)
        self.y_n = torch.roll(self.y_n, shifts=1, dims=-1)
        self.y_n[..., 0] = y
        return y


class Integrator:
    def __init__(self, dt: float, shape: tuple[int, ...]):
        self.dt = dt
        self.integral, self.previous = torch.zeros(shape), torch.zeros(shape)

    def __call__(self, data: Tensor) -> Tensor:
        self.integral += (data + self.previous) / 2 * self.dt
        self.previous[:] = data
        return self.integral


# --- Observations ---------------------------------------------------------------------------------

JOINTS = 12
DEFAULT = torch.tensor([[0.1, -0.1, 0.1, -0.1, 0.8, 0.8, 1.0, 1.0, -1.5, -1.5, -1.5, -1.5]])


@dataclass
class ObsTerm:
    func: Callable[..., Tensor]
    params: dict = field(default_factory=dict)
    modifiers: list[Callable[[Tensor], Tensor]] | None = None
    clip: tuple[float, float] | None = None
    scale: float | tuple[float, ...] | None = None
    history_length: int = 0


def base_lin_vel(env) -> Tensor:
    return quat_rotate_inverse(env.robot.root_quat_w, env.robot.root_lin_vel_w)


def base_ang_vel(env) -> Tensor:
    return quat_rotate_inverse(env.robot.root_quat_w, env.robot.root_ang_vel_w)


def projected_gravity(env) -> Tensor:
    return quat_rotate_inverse(env.robot.root_quat_w, env.robot.gravity_vec_w)


def joint_pos_rel(env, joint_ids=slice(None)) -> Tensor:
    return env.robot.joint_pos[:, joint_ids] - env.robot.default_joint_pos[:, joint_ids]


def joint_vel_rel(env) -> Tensor:
    return env.robot.joint_vel - env.robot.default_joint_vel


def generated_commands(env, command_name: str) -> Tensor:
    return env.commands[command_name]


def last_action(env) -> Tensor:
    return env.action


def height_scan(env, offset: float = 0.5) -> Tensor:
    return env.robot.root_pos_w[:, 2].unsqueeze(1) - env.ray_hits_w[..., 2] - offset


class ObservationManager:
    def __init__(self, terms: dict[str, ObsTerm], env):
        self.terms, self.env = terms, env
        for term in terms.values():
            if isinstance(term.scale, tuple):
                term.scale = torch.tensor(term.scale)
        self.history = {
            name: CircularBuffer(term.history_length, env.num_envs)
            for name, term in terms.items()
            if term.history_length > 0
        }

    def compute(self) -> Tensor:
        found = dict.fromkeys(self.terms)
        for name, term in self.terms.items():
            obs = term.func(self.env, **term.params).clone()
            for modifier in term.modifiers or []:
                obs = modifier(obs)
            if term.clip:
                obs = obs.clip_(min=term.clip[0], max=term.clip[1])
            if term.scale is not None:
                obs = obs.mul_(term.scale)
            if term.history_length > 0:
                self.history[name].append(obs)
                found[name] = self.history[name].buffer.reshape(self.env.num_envs, -1)
            else:
                found[name] = obs
        return torch.cat(list(found.values()), dim=-1)


def make_env(num_envs: int = 1, rays: int = 0) -> SimpleNamespace:
    """What the terms read, as it is after a reset."""
    robot = SimpleNamespace(
        root_pos_w=torch.tensor([[0.0, 0.0, 0.6]]).repeat(num_envs, 1),
        root_quat_w=torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(num_envs, 1),
        root_lin_vel_w=torch.zeros(num_envs, 3),
        root_ang_vel_w=torch.zeros(num_envs, 3),
        gravity_vec_w=torch.tensor([[0.0, 0.0, -1.0]]).repeat(num_envs, 1),
        joint_pos=DEFAULT.repeat(num_envs, 1),
        joint_vel=torch.zeros(num_envs, JOINTS),
        default_joint_pos=DEFAULT.repeat(num_envs, 1),
        default_joint_vel=torch.zeros(num_envs, JOINTS),
    )
    return SimpleNamespace(
        num_envs=num_envs,
        robot=robot,
        commands={"base_velocity": torch.zeros(num_envs, 3)},
        action=torch.zeros(num_envs, JOINTS),
        ray_hits_w=torch.zeros(num_envs, rays, 3),
    )


ROBOT = {
    "quat": normal(1, 4, s=0.3),
    "lin_vel": normal(1, 3),
    "ang_vel": normal(1, 3),
    "joint_pos": normal(1, JOINTS, s=0.4),
    "joint_vel": normal(1, JOINTS),
    "command": uniform(-1.0, 1.0, 1, 3),
}


def update(env, quat, lin_vel, ang_vel, joint_pos, joint_vel, command) -> None:
    upright = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    env.robot.root_quat_w = normalize(quat + upright)
    env.robot.root_lin_vel_w, env.robot.root_ang_vel_w = lin_vel, ang_vel
    env.robot.joint_pos, env.robot.joint_vel = joint_pos + env.robot.default_joint_pos, joint_vel
    env.commands["base_velocity"] = command


def actor(size: int, out: int = JOINTS) -> nn.Module:
    return nn.Sequential(
        nn.Linear(size, 48), nn.ELU(), nn.Linear(48, 32), nn.ELU(), nn.Linear(32, out)
    ).eval()


@policy(
    "isaac_lab", inputs=ROBOT | {"rays": normal(1, 20, 3, s=0.1)}, name="isaac_lab_velocity_rough"
)
class VelocityRough:
    """The observations of the velocity task, its actor, and joint targets with scale and clip."""

    def __init__(self):
        self.env = make_env(rays=20)
        terms = {
            "base_lin_vel": ObsTerm(base_lin_vel, scale=2.0),
            "base_ang_vel": ObsTerm(base_ang_vel, scale=0.25),
            "projected_gravity": ObsTerm(projected_gravity),
            "commands": ObsTerm(
                generated_commands, {"command_name": "base_velocity"}, scale=(2.0, 2.0, 0.25)
            ),
            "joint_pos": ObsTerm(joint_pos_rel),
            "joint_vel": ObsTerm(joint_vel_rel, scale=0.05),
            "actions": ObsTerm(last_action),
            "height_scan": ObsTerm(height_scan, clip=(-1.0, 1.0), scale=5.0),
        }
        self.manager = ObservationManager(terms, self.env)
        self.actor = actor(68)

    def __call__(self, quat, lin_vel, ang_vel, joint_pos, joint_vel, command, rays):
        update(self.env, quat, lin_vel, ang_vel, joint_pos, joint_vel, command)
        self.env.ray_hits_w = rays
        obs = self.manager.compute()
        self.env.action = 3.0 * self.actor(obs)
        targets = (self.env.action * 0.25 + DEFAULT).clamp(-2.0, 2.0)
        return {"obs": obs, "targets": targets}


@policy("isaac_lab", inputs=ROBOT, passes=8, name="isaac_lab_observation_history")
class ObservationHistory:
    """Terms with a history of their own in circular buffers, filled by a reset."""

    def __init__(self):
        self.env = make_env()
        terms = {
            "base_ang_vel": ObsTerm(base_ang_vel, scale=0.25, history_length=3),
            "projected_gravity": ObsTerm(projected_gravity, history_length=3),
            "joint_pos": ObsTerm(joint_pos_rel, clip=(-1.5, 1.5), history_length=4),
            "actions": ObsTerm(last_action, history_length=2),
            "commands": ObsTerm(generated_commands, {"command_name": "base_velocity"}),
        }
        self.manager = ObservationManager(terms, self.env)
        self.actor = actor(93)
        self.manager.compute()

    def __call__(self, quat, lin_vel, ang_vel, joint_pos, joint_vel, command):
        update(self.env, quat, lin_vel, ang_vel, joint_pos, joint_vel, command)
        obs = self.manager.compute()
        self.env.action = 3.0 * self.actor(obs)
        return {"obs": obs, "action": self.env.action}


@policy("isaac_lab", inputs=ROBOT, passes=6, style="method", name="isaac_lab_modifiers")
class Modifiers:
    """Chains of modifiers: functions, an IIR filter, an integrator."""

    def __init__(self):
        self.env = make_env()
        low_pass = DigitalFilter([-0.6, 0.1], [0.3, 0.2], (1, 3))
        average = DigitalFilter([0.0], [0.25] * 4, (1, JOINTS))
        terms = {
            "lin_vel": ObsTerm(
                base_lin_vel, modifiers=[low_pass, partial(clip, bounds=(-2.0, 2.0))]
            ),
            "ang_vel": ObsTerm(
                base_ang_vel,
                modifiers=[partial(scale, multiplier=0.5), Integrator(0.02, (1, 3))],
            ),
            "joint_vel": ObsTerm(
                joint_vel_rel, modifiers=[partial(bias, value=0.1), average], scale=0.5
            ),
        }
        self.manager = ObservationManager(terms, self.env)

    def step(self, quat, lin_vel, ang_vel, joint_pos, joint_vel, command):
        update(self.env, quat, lin_vel, ang_vel, joint_pos, joint_vel, command)
        obs = self.manager.compute()
        return obs  # `annotate.method` names the output by it


@policy(
    "isaac_lab",
    inputs={"data": normal(3, 4), "lag": integers(0, 4, 3)},
    passes=8,
    name="isaac_lab_buffers",
)
class Buffers:
    """A delay buffer whose lags arrive as an input, and a circular buffer that is indexed."""

    def __init__(self):
        self.delay, self.ring = DelayBuffer(3, 3), CircularBuffer(4, 3)
        self.delay.compute(torch.zeros(3, 4))
        self.ring.append(torch.zeros(3, 4))

    def __call__(self, data: Tensor, lag: Tensor) -> dict[str, Tensor]:
        self.delay.set_time_lag(lag)
        delayed = self.delay.compute(data)
        self.ring.append(data)
        return {"delayed": delayed, "older": self.ring[lag], "all": self.ring.buffer.mean(dim=1)}


@policy(
    "isaac_lab",
    inputs={
        "root": normal(4, 7),
        "target": normal(4, 7),
        "offset": normal(4, 3, s=0.2),
    },
)
def isaac_lab_frames(root: Tensor, target: Tensor, offset: Tensor) -> dict[str, Tensor]:
    """Frames of a target in the robot's own, its heading, and back through matrices."""
    quat, goal = normalize(root[:, 3:]), normalize(target[:, 3:])
    pos, rel = subtract_frame_transforms(root[:, :3], quat, target[:, :3], goal)
    tip, turned = combine_frame_transforms(pos, rel, offset, quat_unique(goal))
    heading = quat_apply(yaw_quat(quat), offset)
    matrix = matrix_from_quat(turned)
    spin = skew_symmetric_matrix(offset) @ matrix
    roll, pitch, yaw = euler_xyz_from_quat(quat)
    return {
        "tip": tip,
        "heading": heading,
        "quat": quat_unique(quat_from_matrix(matrix)),
        "spin": spin,
        "angles": torch.sin(torch.stack([roll, pitch, yaw], -1)),
        "wrapped": wrap_to_pi(yaw + 2.0 * offset[:, 0]).cos(),
        "error": quat_error_magnitude(quat, goal),
    }


@policy(
    "isaac_lab",
    inputs={"root": normal(2, 7), "wanted": normal(2, 7)},
    passes=6,
    name="isaac_lab_pose_command",
)
class PoseCommand:
    """A pose command that a slow slerp follows, and its error as an observation."""

    def __init__(self):
        self.pos = torch.zeros(2, 3)
        self.quat = torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(2, 1)
        self.net = actor(13, 3)

    def __call__(self, root: Tensor, wanted: Tensor) -> dict[str, Tensor]:
        tau = torch.full((2, 1), 0.2)
        self.quat = normalize(quat_slerp(self.quat, normalize(wanted[:, 3:]), tau))
        self.pos += 0.2 * (wanted[:, :3] - self.pos)
        shift, turn = compute_pose_error(
            root[:, :3], normalize(root[:, 3:]), self.pos, quat_unique(self.quat)
        )
        obs = torch.cat([self.pos, self.quat, shift, turn], dim=-1)
        return {"action": self.net(obs), "error": turn.norm(dim=-1)}


# --- Actions --------------------------------------------------------------------------------------


class JointPositionToLimitsAction:
    def __init__(self, num_envs: int, limits: Tensor, scale: float = 1.0):
        self.limits, self._scale = limits, scale
        self._raw_actions = torch.zeros(num_envs, limits.shape[0])
        self._processed_actions = torch.zeros_like(self._raw_actions)

    def process_actions(self, actions: Tensor) -> None:
        self._raw_actions[:] = actions
        self._processed_actions = self._raw_actions * self._scale
        inside = self._processed_actions.clamp(-1.0, 1.0)
        inside = unscale_transform(inside, self.limits[:, 0], self.limits[:, 1])
        self._processed_actions[:] = inside[:]


class EMAJointPositionToLimitsAction(JointPositionToLimitsAction):
    def __init__(self, num_envs: int, limits: Tensor, alpha: float | Tensor, scale: float = 1.0):
        super().__init__(num_envs, limits, scale)
        self._alpha = alpha
        self._prev_applied_actions = torch.zeros_like(self._processed_actions)

    def process_actions(self, actions: Tensor) -> None:
        super().process_actions(actions)
        mixed = self._alpha * self._processed_actions
        mixed += (1.0 - self._alpha) * self._prev_applied_actions
        self._processed_actions[:] = torch.clamp(mixed, self.limits[:, 0], self.limits[:, 1])
        self._prev_applied_actions[:] = self._processed_actions[:]


class BinaryJointAction:
    """One number opens or closes all fingers; booleans work as well."""

    def __init__(self, num_envs: int, opened: Tensor, closed: Tensor):
        self.opened, self.closed = opened, closed
        self._raw_actions = torch.zeros(num_envs, 1)
        self._processed_actions = torch.zeros(num_envs, opened.shape[0])

    def process_actions(self, actions: Tensor) -> None:
        self._raw_actions[:] = actions
        closing = actions == 0 if actions.dtype == torch.bool else actions < 0
        self._processed_actions = torch.where(closing, self.closed, self.opened)


@policy("isaac_lab", inputs={"obs": normal(2, 14)}, passes=6, name="isaac_lab_arm_and_gripper")
class ArmAndGripper:
    """An action manager splits the actor's output: an averaged arm, and a gripper."""

    def __init__(self):
        limits = torch.tensor([[-2.9, 2.9], [-1.7, 1.7], [-2.9, 2.9], [-3.0, 0.0]])
        alpha = torch.tensor([0.95, 0.6, 0.3, 0.5]).repeat(2, 1)
        self.terms = {
            "arm": EMAJointPositionToLimitsAction(2, limits, alpha, scale=0.8),
            "gripper": BinaryJointAction(2, torch.tensor([0.04, 0.04]), torch.tensor([0.0, 0.0])),
        }
        self.dims = {"arm": 4, "gripper": 1}
        self.actor = actor(19, 5)
        self.action = torch.zeros(2, 5)
        self.prev_action = torch.zeros(2, 5)

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        action = 4.0 * self.actor(torch.cat([obs, self.action], dim=-1))
        self.prev_action[:] = self.action
        self.action[:] = action
        start = 0
        for name, term in self.terms.items():
            term.process_actions(action[:, start : start + self.dims[name]])
            start += self.dims[name]
        rate = torch.sum(torch.square(self.action - self.prev_action), dim=1)
        return {name: term._processed_actions for name, term in self.terms.items()} | {"rate": rate}


# --- Controllers ----------------------------------------------------------------------------------


class DifferentialIKController:
    """Relative poses by one of several inverses of the Jacobian."""

    def __init__(self, method: str, num_envs: int):
        self.method = method
        self.ee_pos_des = torch.zeros(num_envs, 3)
        self.ee_quat_des = torch.zeros(num_envs, 4)
        self._command = torch.zeros(num_envs, 6)

    def set_command(self, command: Tensor, ee_pos: Tensor, ee_quat: Tensor) -> None:
        self._command[:] = command
        angle = torch.linalg.vector_norm(self._command[:, 3:], dim=1)
        axis = self._command[:, 3:] / angle.unsqueeze(-1)
        half = 0.5 * angle.unsqueeze(-1)
        turn = torch.cat([torch.cos(half), torch.sin(half) * axis], dim=-1)
        still = torch.tensor([1.0, 0.0, 0.0, 0.0]).repeat(len(command), 1)
        turn = torch.where(angle.unsqueeze(-1).repeat(1, 4) > 1e-6, turn, still)
        self.ee_pos_des[:] = ee_pos + self._command[:, :3]
        self.ee_quat_des[:] = quat_mul(turn, ee_quat)

    def compute(self, pos: Tensor, quat: Tensor, jacobian: Tensor, joint_pos: Tensor) -> Tensor:
        shift, turn = compute_pose_error(pos, quat, self.ee_pos_des, self.ee_quat_des)
        error = torch.cat((shift, turn), dim=1)
        return joint_pos + self._delta(error, jacobian)

    def _delta(self, delta_pose: Tensor, jacobian: Tensor) -> Tensor:
        jacobian_t = torch.transpose(jacobian, dim0=1, dim1=2)
        if self.method == "pinv":
            delta = torch.linalg.pinv(jacobian) @ delta_pose.unsqueeze(-1)
        elif self.method == "svd":
            u, s, vh = torch.linalg.svd(jacobian)
            inverse = torch.where(s > 1e-5, 1.0 / s, torch.zeros_like(s))
            tall = torch.transpose(vh, 1, 2)[:, :, :6]
            delta = tall @ torch.diag_embed(inverse) @ torch.transpose(u, 1, 2)
            delta = delta @ delta_pose.unsqueeze(-1)
        elif self.method == "trans":
            delta = jacobian_t @ delta_pose.unsqueeze(-1)
        elif self.method == "dls":
            damping = 0.1**2 * torch.eye(n=jacobian.shape[1])
            inverse = torch.inverse(jacobian @ jacobian_t + damping)
            delta = jacobian_t @ inverse @ delta_pose.unsqueeze(-1)
        else:
            raise ValueError(f"Unsupported inverse-kinematics method: {self.method}")
        return delta.squeeze(-1)


def differential_ik(method: str) -> None:
    inputs = {
        "command": normal(2, 6, s=0.2),
        "pose": normal(2, 7),
        "jacobian": normal(2, 6, 7, s=0.3),
        "joint_pos": uniform(-1.0, 1.0, 2, 7),
    }

    @policy("isaac_lab", inputs=inputs, name=f"isaac_lab_ik_{method}")
    def make():
        controller = DifferentialIKController(method, 2)
        nominal = 2.0 * torch.eye(6, 7)

        def step(command: Tensor, pose: Tensor, jacobian: Tensor, joint_pos: Tensor) -> Tensor:
            quat = normalize(pose[:, 3:])
            controller.set_command(command, pose[:, :3], quat)
            return controller.compute(pose[:, :3], quat, nominal + jacobian, joint_pos)

        return step


for one in ("pinv", "dls", "svd"):
    differential_ik(one)


@policy(
    "isaac_lab",
    inputs={
        "pose": normal(1, 7),
        "target": normal(1, 7),
        "velocity": normal(1, 6),
        "jacobian": normal(1, 6, 7, s=0.3),
        "root": normal(1, 7, 7, s=0.4),
        "joint_pos": uniform(-1.0, 1.0, 1, 7),
        "joint_vel": normal(1, 7),
    },
    name="isaac_lab_operational_space",
)
class OperationalSpace:
    """Forces at the hand through the inverse of the mass matrix, and a pose in its null space."""

    def __init__(self):
        self.stiffness = torch.diag_embed(torch.tensor([[80.0, 80.0, 80.0, 20.0, 20.0, 20.0]]))
        self.damping = torch.diag_embed(2 * self.stiffness.diagonal(0, -2, -1).sqrt())
        self.rest = torch.tensor([[0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.8]])
        self._task_selection = torch.diag_embed(torch.tensor([[1.0, 1.0, 1.0, 1.0, 1.0, 0.0]]))
        self._mass_inv: Tensor | None = None

    def __call__(self, pose, target, velocity, jacobian, root, joint_pos, joint_vel):
        jacobian = jacobian + 2.0 * torch.eye(6, 7)
        mass = root @ root.mT + torch.eye(7)
        shift, turn = compute_pose_error(
            pose[:, :3], normalize(pose[:, 3:]), target[:, :3], normalize(target[:, 3:])
        )
        error = torch.cat([shift, turn], dim=-1)
        accel = self.stiffness @ error.unsqueeze(-1) + self.damping @ -velocity.unsqueeze(-1)
        self._mass_inv = torch.inverse(mass)
        task_mass = torch.inverse(jacobian @ self._mass_inv @ jacobian.mT)
        efforts = (jacobian.mT @ self._task_selection @ task_mass @ accel).squeeze(-1)
        inverse_t = task_mass @ jacobian @ self._mass_inv
        free = torch.eye(7) - jacobian.mT @ inverse_t
        posture = 10.0 * (self.rest - joint_pos) - 6.0 * joint_vel
        efforts += (free @ mass @ posture.unsqueeze(-1)).squeeze(-1)
        return efforts


# --- Terrain, gait, contacts ----------------------------------------------------------------------


@policy(
    "isaac_lab",
    inputs={"heights": normal(2, 187, s=0.3), "proprio": normal(2, 24)},
    name="isaac_lab_height_encoder",
)
class HeightEncoder:
    """A rough-terrain student: a CNN over the height grid, a GRU, an actor."""

    def __init__(self):
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.BatchNorm2d(8),
            nn.ELU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.ELU(),
            nn.AdaptiveMaxPool2d((2, 3)),
            nn.Flatten(),
            nn.Linear(96, 16),
        )
        for _ in range(3):
            self.cnn(torch.randn(32, 1, 11, 17) * 0.3)
        self.cnn.eval()
        self.rnn = nn.GRU(40, 32).eval()
        self.actor = actor(32)
        self.hidden: Tensor | None = None

    def __call__(self, heights: Tensor, proprio: Tensor) -> Tensor:
        grid = heights.clip(-1.0, 1.0).reshape(-1, 1, 11, 17)
        both = torch.cat([3.0 * self.cnn(grid), proprio], dim=-1)
        out, self.hidden = self.rnn(both.unsqueeze(0), self.hidden)
        return 3.0 * self.actor(out.squeeze(0))


@policy(
    "isaac_lab",
    inputs={"forces": uniform(0.0, 2.0, 2, 4, 3), "command": normal(2, 3), "obs": normal(2, 8)},
    passes=8,
    name="isaac_lab_gait_clock",
)
class GaitClock:
    """A phase that runs with the command, and times in the air as the contact sensor has them."""

    def __init__(self):
        self.dt = 0.02
        self.offsets = torch.tensor([0.0, 0.5, 0.5, 0.0])
        self.phase = torch.zeros(2)
        self.episode_length_buf = torch.zeros(2, dtype=torch.long)
        self.current_air_time, self.last_air_time = torch.zeros(2, 4), torch.zeros(2, 4)
        self.current_contact_time, self.last_contact_time = torch.zeros(2, 4), torch.zeros(2, 4)
        self.net_forces_history = torch.zeros(2, 3, 4, 3)
        self.net = actor(25, 4)

    def contacts(self, forces: Tensor) -> Tensor:
        self.net_forces_history = self.net_forces_history.roll(1, dims=1)
        self.net_forces_history[:, 0] = forces
        touching = torch.norm(self.net_forces_history, dim=-1).max(dim=1)[0] > 2.2
        first_contact = (self.current_air_time > 0) * touching
        first_air = (self.current_contact_time > 0) * ~touching
        in_air = self.current_air_time + self.dt
        self.last_air_time = torch.where(first_contact, in_air, self.last_air_time)
        self.current_air_time = torch.where(~touching, in_air, 0.0)
        on_ground = self.current_contact_time + self.dt
        self.last_contact_time = torch.where(first_air, on_ground, self.last_contact_time)
        self.current_contact_time = torch.where(touching, on_ground, 0.0)
        return touching

    def __call__(self, forces: Tensor, command: Tensor, obs: Tensor) -> dict[str, Tensor]:
        touching = self.contacts(forces)
        self.episode_length_buf += 1
        frequency = 1.5 + command.norm(dim=1).clamp(max=1.0)
        self.phase = torch.fmod(self.phase + frequency * self.dt, 1.0)
        angle = 2 * torch.pi * (self.phase.unsqueeze(1) + self.offsets)
        clock = torch.sin(angle)
        age = (self.episode_length_buf / 50.0).unsqueeze(1)
        seen = torch.cat([obs, clock, torch.cos(angle), self.last_air_time, touching.float()], 1)
        action = 3.0 * self.net(torch.cat([seen, age], dim=1))
        wanted = (clock > 0).float()
        reward = 10.0 * torch.sum((self.last_air_time - 0.1) * touching, dim=1)
        return {"action": action, "swing": wanted, "reward": reward, "clock": clock}


@policy(
    "isaac_lab",
    style="own",
    inputs={f"observation/{name}": draw for name, draw in ROBOT.items()},
    passes=8,
    name="isaac_lab_play",
)
class Play:
    """Three nodes: the observation manager with history, the actor, the joint action term."""

    def __init__(self, backend: str):
        self.backend = backend
        self.env = make_env()
        terms = {
            "ang_vel": ObsTerm(base_ang_vel, scale=0.25, history_length=3),
            "gravity": ObsTerm(projected_gravity),
            "commands": ObsTerm(generated_commands, {"command_name": "base_velocity"}),
            "joint_pos": ObsTerm(joint_pos_rel, history_length=2),
            "joint_vel": ObsTerm(joint_vel_rel, scale=0.05, clip=(-20.0, 20.0)),
            "actions": ObsTerm(last_action),
        }
        self.manager = ObservationManager(terms, self.env)
        self.manager.compute()
        self.actor = actor(63)
        limits = torch.stack([DEFAULT[0] - 1.0, DEFAULT[0] + 1.0], dim=-1)
        self.action = EMAJointPositionToLimitsAction(1, limits, 0.4)
        self.last_action = torch.zeros(1, JOINTS)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        seen = {name.removeprefix("observation/"): value for name, value in given.items()}
        *state, last = annotate.input_tensors("observation", seen | {"last": self.last_action})
        self.env.action = last
        update(self.env, *state)
        obs = self.manager.compute()
        annotate.output_tensors("observation", {"obs": obs}, export_with=self.backend)

        obs = annotate.input_tensors("actor", {"obs": obs})
        actions = 2.0 * self.actor(obs)
        annotate.output_tensors("actor", {"actions": actions}, export_with=self.backend)
        self.last_action = actions

        actions = annotate.input_tensors("joints", {"actions": actions})
        self.action.process_actions(actions)
        targets = self.action._processed_actions
        annotate.output_tensors("joints", {"targets": targets}, export_with=self.backend)
        return {"joints/targets": targets}
