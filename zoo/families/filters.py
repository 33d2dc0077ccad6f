"""filters: what smooths, limits and estimates between sensors, policies and motors."""

from __future__ import annotations

import math
from collections import deque

import torch
from attacks.draws import array, flags, normal, uniform
from torch import Tensor, nn
from torch.nn import functional
from veracity import annotate

from zoo.register import policy

RATE = 50.0


def actor(size: int, out: int, gain: float = 1.6) -> nn.Module:
    net = nn.Sequential(nn.Linear(size, 32), nn.ELU(), nn.Linear(32, 32), nn.ELU())
    net.append(nn.Linear(32, out))
    with torch.no_grad():
        for weight in net.parameters():
            weight.mul_(gain if weight.dim() > 1 else 1.0)
    return net.eval()


def biquad(kind: str, frequency: float, q: float, rate: float = RATE) -> list[float]:
    """Return b0, b1, b2, a1 and a2 of the audio cookbook."""
    omega = 2 * math.pi * frequency / rate
    alpha, cos = math.sin(omega) / (2 * q), math.cos(omega)
    if kind == "lowpass":
        b = [(1 - cos) / 2, 1 - cos, (1 - cos) / 2]
    elif kind == "notch":
        b = [1.0, -2 * cos, 1.0]
    else:
        raise ValueError(f"no filter {kind}")
    return [value / (1 + alpha) for value in [*b, -2 * cos, 1 - alpha]]


class Biquads(nn.Module):
    """Second-order sections in the transposed direct form II, whose memory is a buffer."""

    def __init__(self, sections: list[list[float]], channels: int, batch: int = 1) -> None:
        super().__init__()
        self.register_buffer("sos", torch.tensor(sections))
        self.register_buffer("memory", torch.zeros(len(sections), 2, batch, channels))

    def reset(self) -> None:
        self.memory.zero_()

    def forward(self, x: Tensor) -> Tensor:
        for (b0, b1, b2, a1, a2), z in zip(self.sos, self.memory, strict=True):
            y = b0 * x + z[0]
            z[0] = b1 * x - a1 * y + z[1]
            z[1] = b2 * x - a2 * y
            x = y
        return x


def butterworth(order: int, cutoff: float, channels: int, batch: int = 1) -> Biquads:
    """Make a low pass of an even order."""
    angles = [math.pi * (2 * k + 1) / (2 * order) for k in range(order // 2)]
    sections = [biquad("lowpass", cutoff, 1 / (2 * math.sin(angle))) for angle in angles]
    return Biquads(sections, channels, batch)


@policy("filters", inputs={"obs": normal(1, 8)}, passes=6, name="filters_ema_actions")
class EmaActions:
    """Averaged actions that begin with the first one, by a flag that is a tensor."""

    def __init__(self) -> None:
        self.net = actor(12, 4)
        self.alpha = torch.tensor([0.2, 0.35, 0.5, 0.8])
        self.smoothed = torch.zeros(1, 4)
        self.started = torch.zeros(1, 1, dtype=torch.bool)

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        action = torch.tanh(self.net(torch.cat([obs, self.smoothed], dim=-1)))
        mixed = torch.lerp(self.smoothed, action, self.alpha)
        self.smoothed = torch.where(self.started, mixed, action)
        self.started = torch.ones_like(self.started)
        return {"raw": action, "smoothed": self.smoothed}


@policy("filters", inputs={"obs": normal(2, 6)}, passes=6, name="filters_butterworth")
class ButterworthActions:
    """A low pass of the fourth order behind the actor, with one of its own for each robot."""

    def __init__(self) -> None:
        self.net = actor(6, 3)
        self.low_pass = butterworth(4, 6.0, channels=3, batch=2)
        self.low_pass.reset()

    def __call__(self, obs: Tensor) -> Tensor:
        return self.low_pass(self.net(obs).clamp(-2.0, 2.0))


@policy(
    "filters",
    inputs={"velocity": normal(1, 4), "target": normal(1, 4)},
    passes=6,
    style="module",
    name="filters_notch",
)
class Notch(nn.Module):
    """Takes two resonances out of measured velocities before they are damped."""

    def __init__(self) -> None:
        super().__init__()
        self.notch = Biquads([biquad("notch", 9.0, 1.5), biquad("notch", 17.0, 3.0)], 4)
        self.register_buffer("damping", torch.tensor([3.0, 2.0, 1.0, 0.5]))

    def forward(self, velocity: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        clean = self.notch(velocity)
        return clean, self.damping * (target - clean)


@policy(
    "filters",
    inputs={"gyro": normal(1, 3), "accel": normal(1, 3, s=0.4)},
    passes=6,
    style="method",
    name="filters_complementary",
)
class Complementary:
    """Roll and pitch: the gyroscope's in the short run, gravity's in the long run."""

    def __init__(self, weight: float = 0.97) -> None:
        self.weight, self.dt = weight, 1.0 / RATE
        self.up = torch.tensor([0.0, 0.0, 9.81])
        self.roll, self.pitch = torch.zeros(1), torch.zeros(1)

    def step(self, gyro: Tensor, accel: Tensor) -> tuple[Tensor, Tensor]:
        ax, ay, az = (4.0 * accel + self.up).unbind(-1)
        p, q, r = gyro.unbind(-1)
        sin, cos, tan = self.roll.sin(), self.roll.cos(), self.pitch.tan()
        roll = self.roll + (p + (q * sin + r * cos) * tan) * self.dt
        pitch = self.pitch + (q * cos - r * sin) * self.dt
        self.roll = self.weight * roll + (1 - self.weight) * torch.atan2(ay, az)
        level = torch.atan2(-ax, torch.sqrt(ay**2 + az**2))
        self.pitch = self.weight * pitch + (1 - self.weight) * level
        angles = torch.stack([self.roll, self.pitch], dim=-1)
        sin_cos = torch.cat([angles.sin(), angles.cos()], dim=-1)
        return angles, sin_cos


@policy(
    "filters",
    inputs={"position": normal(1, 2), "accel": normal(1, 2), "seen": flags(0.7, 1)},
    passes=6,
    name="filters_kalman",
)
class Kalman:
    """Position and velocity from a camera that does not see the target in every tick."""

    def __init__(self, dt: float = 0.02) -> None:
        eye, zero = torch.eye(2), torch.zeros(2, 2)
        self.transition = torch.cat([torch.cat([eye, dt * eye], 1), torch.cat([zero, eye], 1)])
        self.control = torch.cat([0.5 * dt**2 * eye, dt * eye])
        self.measured = torch.cat([eye, zero], dim=1)
        self.process = 0.3 * self.control @ self.control.T + 1e-5 * torch.eye(4)
        self.noise = torch.tensor([[0.04, 0.01], [0.01, 0.09]])
        self.mean = torch.zeros(4, 1)
        self.covariance = torch.diag(torch.tensor([1.0, 1.0, 4.0, 4.0]))

    def predict(self, accel: Tensor) -> None:
        self.mean = self.transition @ self.mean + self.control @ accel.mT
        self.covariance = self.transition @ self.covariance @ self.transition.T + self.process

    def update(self, position: Tensor, seen: Tensor) -> Tensor:
        innovation = position.mT - self.measured @ self.mean
        spread = self.measured @ self.covariance @ self.measured.T + self.noise
        inverse = torch.linalg.inv(spread)
        gain = self.covariance @ self.measured.T @ inverse
        kept = torch.eye(4) - gain @ self.measured
        joseph = kept @ self.covariance @ kept.T + gain @ self.noise @ gain.T
        self.mean = torch.where(seen, self.mean + gain @ innovation, self.mean)
        self.covariance = torch.where(seen, joseph, self.covariance)
        return (innovation.T @ inverse @ innovation).squeeze()

    def __call__(self, position: Tensor, accel: Tensor, seen: Tensor) -> dict[str, Tensor]:
        self.predict(accel)
        surprise = self.update(position, seen)
        std = torch.sqrt(torch.diagonal(self.covariance))
        return {"estimate": self.mean.mT, "std": std, "surprise": surprise}


def bearing_error(angle: Tensor) -> Tensor:
    return torch.atan2(torch.sin(angle), torch.cos(angle))


@policy(
    "filters",
    inputs={"odometry": normal(1, 2, s=0.5), "seen": normal(3, 2, s=0.1)},
    passes=6,
    style="method",
    name="filters_extended_kalman",
)
class ExtendedKalman:
    """A planar robot that sees distance and bearing of three landmarks, one after the other."""

    LANDMARKS = torch.tensor([[4.0, 0.0], [-3.0, 3.0], [0.0, -5.0]])

    def __init__(self) -> None:
        self.pose = torch.zeros(3)
        self.covariance = 0.1 * torch.eye(3)
        self.noise = torch.diag(torch.tensor([0.02, 0.005]))

    def predict(self, odometry: Tensor) -> None:
        forward, turn = 0.05 * odometry[0, 0], 0.05 * odometry[0, 1]
        x, y, heading = self.pose
        cos, sin = torch.cos(heading), torch.sin(heading)
        self.pose = torch.stack([x + forward * cos, y + forward * sin, heading + turn])
        jacobian = torch.eye(3)
        jacobian[0, 2], jacobian[1, 2] = -forward * sin, forward * cos
        self.covariance = jacobian @ self.covariance @ jacobian.T + 1e-3 * torch.eye(3)

    def update(self, landmark: Tensor, noise: Tensor) -> None:
        dx, dy = landmark - self.pose[:2]
        square = dx**2 + dy**2
        distance = torch.sqrt(square)
        bearing = torch.atan2(dy, dx) - self.pose[2]
        zero = torch.zeros(())
        rows = [dx * -distance, dy * -distance, zero, dy, -dx, -square]
        jacobian = torch.stack(rows).reshape(2, 3) / square
        spread = jacobian @ self.covariance @ jacobian.T + self.noise
        gain = torch.linalg.solve(spread, jacobian @ self.covariance).T
        # What is seen is given as it differs from the view of a robot that stands at the origin.
        real = torch.stack([landmark.norm(), torch.atan2(landmark[1], landmark[0])]) + noise
        innovation = real - torch.stack([distance, bearing])
        innovation[1] = bearing_error(innovation[1])
        self.pose = self.pose + gain @ innovation
        self.covariance = (torch.eye(3) - gain @ jacobian) @ self.covariance

    def step(self, odometry: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
        self.predict(odometry)
        for landmark, noise in zip(self.LANDMARKS, seen, strict=True):
            self.update(landmark, noise)
        self.pose[2] = bearing_error(self.pose[2])
        pose = self.pose.clone()
        trust = 1.0 / (1.0 + self.covariance.trace())
        return pose, trust


@policy(
    "filters",
    inputs={"gyro": normal(1, 3), "accel": normal(1, 3, s=0.2), "magnet": normal(1, 3, s=0.1)},
    passes=6,
    name="filters_madgwick",
)
class Madgwick:
    """Orientation of nine axes by steps down the gradient, and the heading of it."""

    def __init__(self, beta: float = 0.15) -> None:
        self.beta, self.dt = beta, 1.0 / RATE
        self.quat = torch.tensor([1.0, 0.0, 0.0, 0.0])

    def gradient(self, accel: Tensor, magnet: Tensor) -> Tensor:
        q0, q1, q2, q3 = self.quat
        ax, ay, az = functional.normalize(accel[0], dim=0)
        mx, my, mz = functional.normalize(magnet[0], dim=0)
        hx = 2 * (mx * (0.5 - q2 * q2 - q3 * q3) + my * (q1 * q2 - q0 * q3))
        hx = hx + 2 * mz * (q1 * q3 + q0 * q2)
        hy = 2 * (mx * (q1 * q2 + q0 * q3) + my * (0.5 - q1 * q1 - q3 * q3))
        hy = hy + 2 * mz * (q2 * q3 - q0 * q1)
        bx = torch.hypot(hx, hy)
        bz = 2 * (mx * (q1 * q3 - q0 * q2) + my * (q2 * q3 + q0 * q1))
        bz = bz + 2 * mz * (0.5 - q1 * q1 - q2 * q2)
        error = torch.stack(
            [
                2 * (q1 * q3 - q0 * q2) - ax,
                2 * (q0 * q1 + q2 * q3) - ay,
                1 - 2 * (q1 * q1 + q2 * q2) - az,
                2 * bx * (0.5 - q2 * q2 - q3 * q3) + 2 * bz * (q1 * q3 - q0 * q2) - mx,
                2 * bx * (q1 * q2 - q0 * q3) + 2 * bz * (q0 * q1 + q2 * q3) - my,
                2 * bx * (q0 * q2 + q1 * q3) + 2 * bz * (0.5 - q1 * q1 - q2 * q2) - mz,
            ]
        )
        zero, cx, cz = torch.zeros_like(q0), 2 * bx, 2 * bz
        rows = [
            [-2 * q2, 2 * q3, -2 * q0, 2 * q1],
            [2 * q1, 2 * q0, 2 * q3, 2 * q2],
            [zero, -4 * q1, -4 * q2, zero],
            [-cz * q2, cz * q3, -2 * cx * q2 - cz * q0, -2 * cx * q3 + cz * q1],
            [-cx * q3 + cz * q1, cx * q2 + cz * q0, cx * q1 + cz * q3, -cx * q0 + cz * q2],
            [cx * q2, cx * q3 - 2 * cz * q1, cx * q0 - 2 * cz * q2, cx * q1],
        ]
        jacobian = torch.stack([torch.stack(row) for row in rows])
        return functional.normalize(jacobian.T @ error, dim=0)

    def __call__(self, gyro: Tensor, accel: Tensor, magnet: Tensor) -> dict[str, Tensor]:
        accel = accel + torch.tensor([0.0, 0.0, 1.0])
        magnet = magnet + torch.tensor([0.6, 0.0, -0.5])
        w, x, y, z = self.quat
        p, q, r = gyro[0]
        rate = 0.5 * torch.stack(
            [
                -x * p - y * q - z * r,
                w * p + y * r - z * q,
                w * q - x * r + z * p,
                w * r + x * q - y * p,
            ]
        )
        rate -= self.beta * self.gradient(accel, magnet)
        self.quat = functional.normalize(self.quat + rate * self.dt, dim=0)
        w, x, y, z = self.quat
        yaw = torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        return {"quat": self.quat, "yaw": yaw}


@policy(
    "filters",
    inputs={"hand": normal(1, 3, s=0.3)},
    passes=6,
    style="method",
    name="filters_one_euro",
)
class OneEuro:
    """Teleoperation: a cutoff that rises with the speed, and the first value as it comes."""

    def __init__(self, min_cutoff: float = 1.0, beta: float = 0.4) -> None:
        self.min_cutoff, self.beta = min_cutoff, beta
        self.ticks = torch.zeros((), dtype=torch.int64)
        self.position, self.speed = torch.zeros(1, 3), torch.zeros(1, 3)

    def alpha(self, cutoff: Tensor | float) -> Tensor | float:
        tau = 1.0 / (2 * math.pi * cutoff)
        return 1.0 / (1.0 + tau * RATE)

    def step(self, hand: Tensor) -> tuple[Tensor, Tensor]:
        first = self.ticks == 0
        raw = torch.where(first, torch.zeros_like(hand), (hand - self.position) * RATE)
        self.speed = self.speed + self.alpha(1.0) * (raw - self.speed)
        weight = self.alpha(self.min_cutoff + self.beta * self.speed.abs())
        self.position = torch.where(first, hand, weight * hand + (1 - weight) * self.position)
        self.ticks += 1
        position, speed = self.position, self.speed
        return position, speed


@policy("filters", inputs={"ranges": uniform(0.2, 4.0, 1, 6)}, passes=8, name="filters_hampel")
class Hampel:
    """Distances in a deque: what is far from the median of five is replaced by it."""

    def __init__(self) -> None:
        self.window = deque([torch.ones(1, 6) for _ in range(5)], maxlen=5)
        self.net = actor(12, 2)

    def __call__(self, ranges: Tensor) -> dict[str, Tensor]:
        self.window.append(ranges)
        values = torch.stack(tuple(self.window))
        median = values.median(dim=0).values
        deviation = 1.4826 * (values - median).abs().median(dim=0).values
        outlier = (ranges - median).abs() > 1.5 * deviation
        clean = torch.where(outlier, median, ranges)
        rejected = outlier.sum(dim=-1)
        command = self.net(torch.cat([clean, clean - values[-2]], dim=-1))
        return {"command": command, "rejected": rejected}


@policy(
    "filters",
    inputs={"obs": normal(1, 5, s=2.0, m=1.0)},
    passes=6,
    context="inference",
    name="filters_running_statistics",
)
class RunningStatistics:
    """Welford's mean and variance in float64 that go on being learned on the robot."""

    def __init__(self) -> None:
        self.count = torch.zeros((), dtype=torch.int64)
        self.mean = torch.zeros(5, dtype=torch.float64)
        self.m2 = torch.zeros(5, dtype=torch.float64)
        self.net = actor(5, 3)

    def __call__(self, obs: Tensor) -> dict[str, Tensor]:
        self.count += 1
        delta = obs[0].double() - self.mean
        self.mean += delta / self.count
        self.m2 += delta * (obs[0] - self.mean)
        std = torch.sqrt(self.m2 / torch.clamp(self.count - 1, min=1))
        scaled = (obs - self.mean) / (std + 1e-2)
        action = self.net(torch.clip(scaled, -5.0, 5.0).float())
        return {"action": action, "mean": self.mean.clone(), "std": std}


@policy(
    "filters",
    inputs={"joint_pos": array(normal(4, s=0.2))},
    passes=9,
    name="filters_savitzky_golay",
)
class SavitzkyGolay:
    """Position, velocity and acceleration by a polynomial of the third order through seven."""

    def __init__(self, window: int = 7, order: int = 3) -> None:
        times = torch.arange(-window + 1, 1, dtype=torch.float64) / RATE
        fit = torch.linalg.pinv(torch.vander(times, order + 1, increasing=True))
        factors = torch.tensor([1.0, 1.0, 2.0], dtype=torch.float64)
        self.coefficients = (factors[:, None] * fit[:3]).float()
        self.buffer = torch.zeros(window, 4)
        self.net = actor(12, 4)

    def __call__(self, joint_pos) -> dict[str, Tensor]:
        self.buffer[:-1] = self.buffer[1:].clone()
        self.buffer[-1] = torch.from_numpy(joint_pos)
        position, velocity, acceleration = self.coefficients @ self.buffer
        scaled = torch.cat([position, 0.1 * velocity, 0.002 * acceleration])
        return {"velocity": velocity, "action": torch.tanh(self.net(scaled))}


@policy(
    "filters",
    inputs={"sensors/gyro": normal(1, 3), "sensors/joints": normal(1, 6)},
    passes=7,
    style="own",
    name="filters_around_a_policy",
)
class AroundAPolicy:
    """Low pass and bias of the sensors, the policy, and limits of position, rate and acceleration.

    The mean of the gyroscope is that of a ring whose index is a tensor.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.low_pass = butterworth(2, 10.0, channels=6)
        self.ring, self.at = torch.zeros(8, 3), torch.zeros(1, dtype=torch.long)
        self.net = actor(13, 4)
        self.last = torch.zeros(1, 4)
        self.target, self.rate = torch.zeros(1, 4), torch.zeros(1, 4)

    def sensors(self, gyro: Tensor, joints: Tensor) -> Tensor:
        self.ring[self.at] = gyro
        self.at = (self.at + 1) % len(self.ring)
        return torch.cat([gyro - self.ring.mean(dim=0, keepdim=True), self.low_pass(joints)], -1)

    def limited(self, action: Tensor) -> Tensor:
        wanted = torch.clamp((action - self.target) * RATE, -2.5, 2.5)
        change = torch.clamp(wanted - self.rate, -40.0 / RATE, 40.0 / RATE)
        change = torch.where(change.abs() < 1e-3, 0.0, change)
        self.rate = self.rate + change
        self.target = torch.clamp(self.target + self.rate / RATE, -1.2, 1.2)
        return self.target

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        seen = {name.removeprefix("sensors/"): value for name, value in given.items()}
        gyro, joints = annotate.input_tensors("sensors", seen)
        obs = self.sensors(gyro, joints)
        annotate.output_tensors("sensors", {"obs": obs}, export_with=self.backend)

        obs, last = annotate.input_tensors("policy", {"obs": obs, "last": self.last})
        action = 1.5 * torch.tanh(self.net(torch.cat([obs, last], dim=-1)))
        annotate.output_tensors("policy", {"action": action}, export_with=self.backend)
        self.last = action

        action = annotate.input_tensors("limits", {"action": action})
        target = self.limited(action)
        annotate.output_tensors("limits", {"target": target}, export_with=self.backend)
        return {"limits/target": target}
