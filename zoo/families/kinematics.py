"""kinematics: arms, legs and wheels as batched torch code: poses, Jacobians, inverses, dynamics."""

from __future__ import annotations

import itertools

import torch
from attacks.draws import flags, normal, uniform
from torch import Tensor, nn
from veracity import annotate

from zoo.register import policy

#: Modified Denavit-Hartenberg parameters of an arm with seven joints: a, d, alpha.
ARM = torch.tensor(
    [
        [0.0, 0.333, 0.0],
        [0.0, 0.0, -torch.pi / 2],
        [0.0, 0.316, torch.pi / 2],
        [0.0825, 0.0, torch.pi / 2],
        [-0.0825, 0.384, -torch.pi / 2],
        [0.0, 0.0, torch.pi / 2],
        [0.088, 0.107, torch.pi / 2],
    ]
)
HOME = torch.tensor([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
LOWER = torch.tensor([-2.9, -1.76, -2.9, -3.07, -2.9, -0.02, -2.9])
UPPER = torch.tensor([2.9, 1.76, 2.9, -0.07, 2.9, 3.75, 2.9])


def link_transforms(q: Tensor) -> Tensor:
    """Return the transform of every joint in that before it, for a batch of postures."""
    a, d, alpha = ARM.unbind(-1)
    ct, st = torch.cos(q), torch.sin(q)
    ca, sa = torch.cos(alpha).expand_as(q), torch.sin(alpha).expand_as(q)
    zero, one = torch.zeros_like(q), torch.ones_like(q)
    rows = [
        [ct, -st, zero, a.expand_as(q)],
        [st * ca, ct * ca, -sa, -sa * d],
        [st * sa, ct * sa, ca, ca * d],
        [zero, zero, zero, one],
    ]
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def forward_kinematics(q: Tensor) -> Tensor:
    """Return the frames of all joints in the base, as [batch, joint, 4, 4]."""
    frames = [torch.eye(4).repeat(q.shape[0], 1, 1)]
    for joint in link_transforms(q).unbind(dim=1):
        frames.append(torch.bmm(frames[-1], joint))
    return torch.stack(frames[1:], dim=1)


def geometric_jacobian(frames: Tensor) -> Tensor:
    axes, origins = frames[:, :, :3, 2], frames[:, :, :3, 3]
    reach = origins[:, -1:] - origins
    linear = torch.linalg.cross(axes, reach)
    return torch.cat([linear, axes], dim=-1).transpose(1, 2)


def skew(v: Tensor) -> Tensor:
    x, y, z = v.unbind(-1)
    zero = torch.zeros_like(x)
    return torch.stack([zero, -z, y, z, zero, -x, -y, x, zero], dim=-1).reshape(*v.shape[:-1], 3, 3)


def rotation_log(matrix: Tensor) -> Tensor:
    trace = matrix.diagonal(dim1=-2, dim2=-1).sum(-1)
    angle = torch.acos(((trace - 1) / 2).clamp(-1 + 1e-6, 1 - 1e-6))
    scale = angle / (2 * torch.sin(angle))
    turn = matrix - matrix.mT
    return scale.unsqueeze(-1) * torch.stack(
        [turn[..., 2, 1], turn[..., 0, 2], turn[..., 1, 0]], -1
    )


def exp_coefficients(theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return sin(t)/t, (1-cos(t))/t^2 and (t-sin(t))/t^3 with their series near zero."""
    small = theta < 1e-3
    safe = torch.where(small, torch.ones_like(theta), theta)
    a = torch.where(small, 1 - theta**2 / 6, torch.sin(safe) / safe)
    b = torch.where(small, 0.5 - theta**2 / 24, (1 - torch.cos(safe)) / safe**2)
    c = torch.where(small, 1 / 6 - theta**2 / 120, (safe - torch.sin(safe)) / safe**3)
    return a, b, c


def se3_exp(twist: Tensor) -> Tensor:
    rho, phi = twist[..., :3], twist[..., 3:]
    a, b, c = (x[..., None, None] for x in exp_coefficients(phi.norm(dim=-1)))
    hat, eye = skew(phi), torch.eye(3)
    pose = torch.zeros(*twist.shape[:-1], 4, 4)
    pose[..., :3, :3] = eye + a * hat + b * hat @ hat
    pose[..., :3, 3] = ((eye + b * hat + c * hat @ hat) @ rho.unsqueeze(-1)).squeeze(-1)
    pose[..., 3, 3] = 1.0
    return pose


def se3_log(pose: Tensor) -> Tensor:
    phi = rotation_log(pose[..., :3, :3])
    theta = phi.norm(dim=-1)
    a, b, _ = exp_coefficients(theta)
    tail = torch.where(theta < 1e-3, 1 / 12, (1 - a / (2 * b)) / theta.clamp(min=1e-6) ** 2)
    hat = skew(phi)
    inverse = torch.eye(3) - 0.5 * hat + tail[..., None, None] * hat @ hat
    rho = torch.einsum("...ij,...j->...i", inverse, pose[..., :3, 3])
    return torch.cat([rho, phi], dim=-1)


def inverted(pose: Tensor) -> Tensor:
    turn = pose[..., :3, :3].mT
    shift = -turn @ pose[..., :3, 3:]
    bottom = torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(*pose.shape[:-2], 1, 4)
    return torch.cat([torch.cat([turn, shift], dim=-1), bottom], dim=-2)


@policy("kinematics", inputs={"joint_pos": normal(3, 7, s=0.4)})
def kinematics_forward(joint_pos: Tensor) -> dict[str, Tensor]:
    """All frames of an arm, its hand as position and 6D rotation, and the lowest point."""
    frames = forward_kinematics(HOME + joint_pos)
    hand = frames[:, -1]
    six = hand[:, :3, :2].transpose(1, 2).flatten(1)
    return {
        "position": hand[:, :3, 3],
        "rotation": six,
        "lowest": frames[:, :, 2, 3].amin(dim=1),
    }


@policy(
    "kinematics",
    inputs={"joint_pos": normal(2, 7, s=0.3), "joint_vel": normal(2, 7)},
    style="method",
)
def kinematics_jacobian(joint_pos: Tensor, joint_vel: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The twist of the hand, how well it can be moved, and torques that hold a load."""
    jacobian = geometric_jacobian(forward_kinematics(HOME + joint_pos))
    twist = torch.einsum("bij,bj->bi", jacobian, joint_vel)
    manipulability = torch.sqrt(torch.linalg.det(jacobian @ jacobian.mT).clamp(min=0.0))
    wrench = torch.tensor([0.0, 0.0, 9.81 * 1.5, 0.0, 0.0, 0.0])
    torques = (jacobian.mT @ wrench.unsqueeze(-1)).squeeze(-1)
    return twist, manipulability, torques


@policy(
    "kinematics",
    inputs={"action": normal(1, 6, s=0.3)},
    passes=6,
    name="kinematics_damped_least_squares",
)
class DampedLeastSquares:
    """A relative pose as an action, by three steps of damped least squares, and a posture."""

    def __init__(self) -> None:
        self.q = HOME.repeat(1, 1)
        self.weights = torch.tensor([1.0, 1.0, 1.0, 0.4, 0.4, 0.4])

    def solve(self, error: Tensor, jacobian: Tensor) -> Tensor:
        damped = jacobian @ jacobian.mT + 0.05**2 * torch.eye(6)
        task = jacobian.mT @ torch.linalg.solve(damped, error.unsqueeze(-1))
        free = torch.eye(7) - jacobian.mT @ torch.linalg.solve(damped, jacobian)
        posture = 0.05 * (HOME - self.q).unsqueeze(-1)
        return (task + free @ posture).squeeze(-1)

    def __call__(self, action: Tensor) -> dict[str, Tensor]:
        start = forward_kinematics(self.q)[:, -1]
        delta = 0.05 * torch.tanh(action)
        goal_pos = start[:, :3, 3] + delta[:, :3]
        goal_rot = se3_exp(torch.cat([torch.zeros(1, 3), delta[:, 3:]], -1))[:, :3, :3]
        goal_rot = goal_rot @ start[:, :3, :3]
        for _ in range(3):
            frames = forward_kinematics(self.q)
            hand = frames[:, -1]
            turn = rotation_log(goal_rot @ hand[:, :3, :3].mT)
            error = self.weights * torch.cat([goal_pos - hand[:, :3, 3], turn], dim=-1)
            step = self.solve(error, geometric_jacobian(frames))
            size = torch.linalg.vector_norm(step, dim=-1, keepdim=True)
            step = step * torch.clamp(0.2 / (size + 1e-9), max=1.0)
            self.q = torch.clamp(self.q + step, LOWER, UPPER)
        return {"joint_target": self.q, "error": error.norm(dim=-1)}


@policy(
    "kinematics",
    inputs={"twist": normal(2, 6, s=0.5), "target": normal(2, 6, s=0.5)},
    passes=6,
    style="method",
    name="kinematics_se3",
)
class Se3:
    """A pose that twists move, drawn towards a target on the geodesic between both."""

    def __init__(self) -> None:
        self.pose = torch.eye(4).repeat(2, 1, 1)

    def step(self, twist: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        moved = self.pose @ se3_exp(0.05 * twist)
        error = se3_log(inverted(moved) @ se3_exp(target.clamp(-1.0, 1.0)))
        self.pose = moved @ se3_exp(0.1 * error)
        # Many products leave the rotation a little skewed.
        x = nn.functional.normalize(self.pose[:, :3, 0], dim=-1)
        z = torch.linalg.cross(x, nn.functional.normalize(self.pose[:, :3, 1], dim=-1))
        self.pose[:, :3, :3] = torch.stack([x, torch.linalg.cross(z, x), z], dim=-1)
        pose = self.pose[:, :3]
        return pose, error


def quaternion_product(a: Tensor, b: Tensor) -> Tensor:
    """Hamilton's product of (x, y, z, w)."""
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = aw * bv + bw * av + torch.cross(av, bv, dim=-1)
    return torch.cat([vector, aw * bw - (av * bv).sum(-1, keepdim=True)], dim=-1)


def rotated(quat: Tensor, v: Tensor) -> Tensor:
    twice = 2 * torch.cross(quat[..., :3], v, dim=-1)
    return v + quat[..., 3:] * twice + torch.cross(quat[..., :3], twice, dim=-1)


@policy(
    "kinematics",
    inputs={"gyro": normal(1, 3), "accel": normal(1, 3), "contact": flags(0.3, 1, 1)},
    passes=6,
    name="kinematics_quaternion_integration",
)
class QuaternionIntegration:
    """Strapdown navigation: orientation, velocity and position, held back while feet touch."""

    def __init__(self, dt: float = 0.01) -> None:
        self.dt = dt
        self.quat = torch.tensor([[0.0, 0.0, 0.0, 1.0]])
        self.vel, self.pos = torch.zeros(1, 3), torch.zeros(1, 3)
        self.gravity = torch.tensor([[0.0, 0.0, -9.81]])

    def __call__(self, gyro: Tensor, accel: Tensor, contact: Tensor) -> dict[str, Tensor]:
        half = 0.5 * self.dt * gyro
        angle = half.norm(dim=-1, keepdim=True)
        delta = torch.cat([half * torch.sinc(angle / torch.pi), torch.cos(angle)], dim=-1)
        self.quat = nn.functional.normalize(quaternion_product(self.quat, delta), dim=-1)
        upright = rotated(self.quat * torch.tensor([-1.0, -1.0, -1.0, 1.0]), -self.gravity)
        world = rotated(self.quat, accel + upright) + self.gravity
        self.pos += self.vel * self.dt + 0.5 * world * self.dt**2
        self.vel += world * self.dt
        self.vel *= torch.where(contact, 0.5, 1.0)
        heading = 2 * torch.atan2(self.quat[:, 2], self.quat[:, 3])
        return {"quat": self.quat, "vel": self.vel, "pos": self.pos, "heading": heading}


HIP, THIGH, CALF = 0.08, 0.213, 0.213
#: Left legs have their hip on the other side than right ones.
SIDES = torch.tensor([1.0, -1.0, 1.0, -1.0])


def leg_angles(foot: Tensor) -> Tensor:
    """Return abduction, hip and knee of feet that are given in the frames of their hips."""
    x, y, z = foot.unbind(-1)
    hip = HIP * SIDES
    down = torch.sqrt(torch.clamp(y**2 + z**2 - hip**2, min=1e-6))
    abduction = torch.atan2(y, -z) - torch.atan2(hip, down)
    square = (x**2 + down**2).clamp(max=(THIGH + CALF - 1e-3) ** 2)
    knee = -torch.acos(((square - THIGH**2 - CALF**2) / (2 * THIGH * CALF)).clamp(-1.0, 1.0))
    thigh = torch.atan2(-x, down) - torch.atan2(
        CALF * torch.sin(knee), THIGH + CALF * torch.cos(knee)
    )
    return torch.stack([abduction, thigh, knee], dim=-1)


@policy(
    "kinematics",
    inputs={"command": uniform(-0.6, 0.6, 2, 3), "gravity": normal(2, 3, s=0.1)},
    passes=6,
    name="kinematics_quadruped_trot",
)
class QuadrupedTrot:
    """A trot by phases, feet in closed form, and legs that level the body."""

    def __init__(self) -> None:
        self.phase = torch.zeros(2, 1)
        self.offsets = torch.tensor([0.0, 0.5, 0.5, 0.0])
        self.corners = torch.tensor([[0.19, 0.05], [0.19, -0.05], [-0.19, 0.05], [-0.19, -0.05]])
        self.stride = torch.zeros(2, 4, 2)

    def __call__(self, command: Tensor, gravity: Tensor) -> dict[str, Tensor]:
        self.phase = torch.remainder(self.phase + 0.02 * 2.0, 1.0)
        phase = torch.remainder(self.phase + self.offsets, 1.0)
        swing = phase >= 0.5
        turn = command[:, 2:].unsqueeze(1) * torch.stack(
            [-self.corners[:, 1], self.corners[:, 0]], dim=-1
        )
        wanted = 0.25 * (command[:, :2].unsqueeze(1) + turn)
        self.stride = torch.where(swing.unsqueeze(-1), wanted, self.stride)
        inside = torch.where(swing, 2 * phase - 1, 2 * phase)
        along = torch.where(swing, -0.5 * torch.cos(torch.pi * inside), 0.5 - inside)
        lift = torch.where(swing, 0.06 * torch.sin(torch.pi * inside), 0.0)
        level = (self.corners * gravity[:, None, :2]).sum(-1)
        foot = torch.empty(2, 4, 3)
        foot[..., :2] = self.stride * along.unsqueeze(-1)
        foot[..., 1] += HIP * SIDES
        foot[..., 2] = -0.3 + lift + level.clamp(-0.05, 0.05)
        return {"targets": leg_angles(foot).reshape(2, 12), "swing": swing}


@policy(
    "kinematics",
    inputs={"ticks": normal(1, 2, s=40.0, m=60.0), "goal": normal(1, 2, s=2.0)},
    passes=6,
    style="method",
    name="kinematics_differential_drive",
)
class DifferentialDrive:
    """Odometry of encoders on an arc, and wheel speeds towards a goal of the map."""

    RADIUS, BASE, PER_METRE = 0.1, 0.4, 2400.0

    def __init__(self) -> None:
        self.x, self.y, self.heading = torch.zeros(1), torch.zeros(1), torch.zeros(1)
        self.twist_to_wheels = torch.tensor([[1.0, -0.5 * self.BASE], [1.0, 0.5 * self.BASE]])

    def step(self, ticks: Tensor, goal: Tensor) -> tuple[Tensor, Tensor]:
        left, right = (torch.round(ticks) / self.PER_METRE).unbind(dim=-1)
        forward, turn = (right + left) / 2, (right - left) / self.BASE
        chord = forward * torch.sinc(turn / (2 * torch.pi))
        self.x = self.x + chord * torch.cos(self.heading + turn / 2)
        self.y = self.y + chord * torch.sin(self.heading + turn / 2)
        heading = self.heading + turn
        self.heading = torch.atan2(torch.sin(heading), torch.cos(heading))
        dx, dy = goal[:, 0] - self.x, goal[:, 1] - self.y
        distance = torch.hypot(dx, dy)
        off = torch.remainder(torch.atan2(dy, dx) - self.heading + torch.pi, 2 * torch.pi)
        off = off - torch.pi
        speed = 0.5 * torch.tanh(distance) * torch.cos(off).clamp(min=0.0)
        twist = torch.stack([speed, torch.clamp(1.5 * off, -1.0, 1.0)], dim=-1)
        wheels = twist @ self.twist_to_wheels.T / self.RADIUS
        pose = torch.stack([self.x, self.y, self.heading], dim=-1)
        return wheels, pose


class PlanarArm:
    """Dynamics of three links in a vertical plane, by the Jacobians of their centres of mass."""

    LENGTHS = torch.tensor([0.5, 0.4, 0.25])
    MASSES = torch.tensor([3.0, 2.0, 1.0])
    INERTIAS = torch.tensor([0.06, 0.03, 0.005])

    def jacobians(self, q: Tensor) -> tuple[Tensor, Tensor]:
        """Return those of the centres of mass, [link, 2, joint], and that of the hand."""
        angles = torch.cumsum(q, dim=-1)
        normals = torch.stack([-torch.sin(angles), torch.cos(angles)])
        lower = torch.tril(torch.ones(3, 3))
        reach = lower - 0.5 * torch.eye(3)
        centres = torch.einsum("ik,k,xk,kj->ixj", reach, self.LENGTHS, normals, lower)
        hand = torch.einsum("k,xk,kj->xj", self.LENGTHS, normals, lower)
        return centres, hand

    def mass(self, q: Tensor) -> Tensor:
        centres, _ = self.jacobians(q)
        lower = torch.tril(torch.ones(3, 3))
        linear = torch.einsum("ixj,ixk,i->jk", centres, centres, self.MASSES)
        return linear + torch.einsum("ij,ik,i->jk", lower, lower, self.INERTIAS)

    def gravity(self, q: Tensor) -> Tensor:
        centres, _ = self.jacobians(q)
        return 9.81 * torch.einsum("ij,i->j", centres[:, 1], self.MASSES)

    def hand(self, q: Tensor) -> Tensor:
        angles = torch.cumsum(q, dim=-1)
        return torch.stack([torch.cos(angles), torch.sin(angles)]) @ self.LENGTHS


@policy(
    "kinematics",
    inputs={"goal": normal(2, s=0.15), "disturbance": normal(3, s=0.5)},
    passes=6,
    name="kinematics_operational_space",
)
class OperationalSpace:
    """A force at the hand through the inertia that it feels, on an arm that the code simulates."""

    def __init__(self) -> None:
        self.arm = PlanarArm()
        self.q, self.qd = torch.tensor([0.6, 0.9, 0.5]), torch.zeros(3)
        self.rest = torch.tensor([0.6, 0.9, 0.5])

    def torque(self, goal: Tensor) -> Tensor:
        mass, (_, jacobian) = self.arm.mass(self.q), self.arm.jacobians(self.q)
        root = torch.linalg.cholesky(mass)
        weighted = torch.cholesky_solve(jacobian.T, root)
        felt = torch.linalg.inv(jacobian @ weighted + 1e-3 * torch.eye(2))
        accel = 60.0 * (goal - self.arm.hand(self.q)) - 14.0 * (jacobian @ self.qd)
        free = torch.eye(3) - jacobian.T @ felt @ weighted.T
        posture = mass @ (10.0 * (self.rest - self.q) - 6.0 * self.qd)
        return jacobian.T @ (felt @ accel) + free @ posture + self.arm.gravity(self.q)

    def __call__(self, goal: Tensor, disturbance: Tensor) -> dict[str, Tensor]:
        torque = self.torque(torch.tensor([0.3, 0.8]) + goal).clamp(-40.0, 40.0)
        pushed = torque + disturbance - self.arm.gravity(self.q)
        qdd = torch.linalg.solve(self.arm.mass(self.q), pushed)
        self.qd = self.qd + 0.01 * qdd
        self.q = self.q + 0.01 * self.qd
        return {"torque": torque, "hand": self.arm.hand(self.q)}


@policy(
    "kinematics",
    inputs={"plant/wish": normal(1, 2, s=0.5)},
    passes=6,
    style="own",
    name="kinematics_computed_torque",
)
class ComputedTorque:
    """Two nodes in a loop: a double pendulum, and the torques that make it follow a reference."""

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self.q, self.qd = torch.tensor([[0.3, -0.2]]), torch.zeros(1, 2)
        self.torque = torch.zeros(1, 2)
        self.reference = torch.tensor([[0.3, -0.2]])

    def terms(self, q: Tensor, qd: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mass matrix, and what gravity and the velocities add."""
        c2, s2 = torch.cos(q[:, 1]), torch.sin(q[:, 1])
        m11, m12 = 0.65 + 0.5 * c2, 0.15 + 0.25 * c2
        mass = torch.stack([m11, m12, m12, torch.full_like(c2, 0.15)], -1).view(-1, 2, 2)
        spin = torch.stack(
            [-0.25 * s2 * (2 * qd[:, 0] + qd[:, 1]) * qd[:, 1], 0.25 * s2 * qd[:, 0] ** 2], dim=-1
        )
        low = 2.45 * torch.sin(q[:, 0] + q[:, 1])
        return mass, spin + torch.stack([7.35 * torch.sin(q[:, 0]) + low, low], dim=-1)

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        inputs = {"wish": given["plant/wish"], "torque": self.torque}
        wish, torque = annotate.input_tensors("plant", inputs)
        mass, rest = self.terms(self.q, self.qd)
        qdd = torch.linalg.solve(mass, (torque - rest - 0.1 * self.qd).unsqueeze(-1)).squeeze(-1)
        self.qd = self.qd + 0.01 * qdd
        self.q = self.q + 0.01 * self.qd
        state = torch.cat([self.q, self.qd, torch.tanh(wish)], dim=-1)
        annotate.output_tensors("plant", {"state": state}, export_with=self.backend)

        state = annotate.input_tensors("control", {"state": state})
        q, qd, goal = state.split(2, dim=-1)
        self.reference = torch.lerp(self.reference, goal, 0.05)
        mass, rest = self.terms(q, qd)
        accel = 64.0 * (self.reference - q) - 16.0 * qd
        torque = torch.baddbmm(rest.unsqueeze(-1), mass, accel.unsqueeze(-1)).squeeze(-1)
        self.torque = torque.clamp(-25.0, 25.0)
        annotate.output_tensors("control", {"torque": self.torque}, export_with=self.backend)
        return {"control/torque": self.torque}


@policy(
    "kinematics",
    inputs={"torso": normal(1, 6, s=0.2), "hands": normal(2, 3, s=0.1)},
    context="inference",
    name="kinematics_tree",
)
class Tree:
    """A chain of bodies as URDFs have it: parents by index, fixed offsets, Rodrigues' formula."""

    PARENTS = (-1, 0, 1, 0, 3)

    def __init__(self) -> None:
        generator = torch.Generator().manual_seed(3)
        self.axes = nn.functional.normalize(torch.randn(5, 3, generator=generator), dim=-1)
        self.offsets = 0.3 * torch.randn(5, 3, generator=generator)
        self.net = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 5)).eval()

    def poses(self, q: Tensor, base: Tensor) -> Tensor:
        hat = skew(self.axes)
        angle = q[:, None, None]
        turns = torch.eye(3) + torch.sin(angle) * hat + (1 - torch.cos(angle)) * hat @ hat
        local = torch.eye(4).expand(5, 4, 4).clone()
        local[:, :3, :3], local[:, :3, 3] = turns, self.offsets
        world: dict[int, Tensor] = {-1: base}
        for body, parent in enumerate(self.PARENTS):
            world[body] = world[parent] @ local[body]
        return torch.stack([world[body] for body in range(5)])

    def __call__(self, torso: Tensor, hands: Tensor) -> dict[str, Tensor]:
        q = self.net(torch.cat([torso, hands.reshape(1, -1)], dim=-1)).squeeze(0)
        poses = self.poses(q, se3_exp(torso)[0])
        ends = poses[[2, 4], :3, 3]
        pairs = [(a, b) for a, b in itertools.combinations(range(5), 2) if self.PARENTS[b] != a]
        first, second = (torch.tensor(index) for index in zip(*pairs, strict=True))
        gaps = (poses[first, :3, 3] - poses[second, :3, 3]).norm(dim=-1)
        local = torch.linalg.inv(poses[0]) @ torch.cat([ends + hands, torch.ones(2, 1)], -1).T
        return {"ends": ends, "gap": gaps.min(), "closest": gaps.argmin(), "local": local[:3].T}
