"""pypose: Lie groups in controllers and estimators."""

from __future__ import annotations

import torch
from attacks.draws import normal, uniform
from torch import Tensor, nn
from veracity import annotate

from zoo.register import policy


@policy(
    "pypose",
    inputs={"twist": normal(1, 6, s=0.4), "points": normal(5, 3)},
    needs=("pypose",),
    passes=6,
    name="pypose_se3_odometry",
)
class Odometry:
    """Adds twists up to a pose, and moves points of the body into the world."""

    def __init__(self):
        import pypose as pp

        self.pp = pp
        self.pose = pp.identity_SE3(1)

    def __call__(self, twist: Tensor, points: Tensor) -> dict[str, Tensor]:
        self.pose = self.pose @ self.pp.se3(0.1 * twist).Exp()
        return {
            "points": self.pose.Act(points),
            "pose": self.pose.tensor(),
            "log": self.pose.Log().tensor(),
            "matrix": self.pose.matrix(),
        }


@policy(
    "pypose",
    inputs={"attitude": normal(2, 3, s=0.4), "wanted": normal(2, 3, s=0.4), "gyro": normal(2, 3)},
    needs=("pypose",),
)
def pypose_attitude_pd():
    """A controller on SO(3): the logarithm of the error is the proportional term."""
    import pypose as pp

    kp, kd = torch.tensor([8.0, 8.0, 3.0]), torch.tensor([0.6, 0.6, 0.4])

    def step(attitude: Tensor, wanted: Tensor, gyro: Tensor) -> dict[str, Tensor]:
        now, goal = pp.so3(attitude).Exp(), pp.so3(wanted).Exp()
        error = (now.Inv() @ goal).Log().tensor()
        feedforward = (now.Inv() @ goal).Adj(pp.so3(gyro)).tensor()
        return {"torque": kp * error - kd * gyro + 0.1 * feedforward, "euler": now.euler()}

    return step


@policy(
    "pypose",
    inputs={"gyro": normal(1, 3, s=0.5), "acc": normal(1, 3, s=0.3), "up": uniform(9.5, 10, 1, 1)},
    needs=("pypose",),
    passes=6,
    name="pypose_imu_preintegrator",
)
class Imu:
    """pypose's own integrator, which keeps its pose and its covariance."""

    def __init__(self):
        import pypose as pp

        self.integrate = pp.module.IMUPreintegrator(prop_cov=True, reset=False).eval()
        self.dt = torch.full((1, 1, 1), 0.02)

    def __call__(self, gyro: Tensor, acc: Tensor, up: Tensor) -> dict[str, Tensor]:
        felt = torch.cat([acc[:, :2], acc[:, 2:] + 0.4 * up], dim=-1)
        state = self.integrate(dt=self.dt, gyro=gyro[None], acc=felt[None])
        return {
            "rot": state["rot"][0, -1].tensor(),
            "vel": state["vel"][0, -1],
            "pos": 10 * state["pos"][0, -1],
            "cov": 1e3 * state["cov"].diagonal(dim1=-2, dim2=-1),
        }


@policy(
    "pypose",
    inputs={"force": normal(1, 1)},
    needs=("pypose",),
    passes=6,
    name="pypose_lti_plant",
)
class Plant:
    """A linear system of pypose, and feedback of its state."""

    def __init__(self):
        import pypose as pp

        a = torch.tensor([[1.0, 0.1, 0.0], [-0.2, 0.9, 0.1], [0.0, -0.1, 0.8]])
        b, c = torch.tensor([[0.0], [0.1], [0.3]]), torch.eye(3)[:2]
        self.plant = pp.module.LTI(a, b, c, torch.zeros(2, 1), c1=torch.tensor([0.0, 0.0, 0.05]))
        self.x = torch.zeros(1, 3)
        self.gain = torch.tensor([[0.8, 0.5, 0.2]])

    def __call__(self, force: Tensor) -> dict[str, Tensor]:
        u = force - self.x @ self.gain.mT
        self.x, seen = self.plant(self.x, u)
        return {"seen": seen, "u": u}


@policy(
    "pypose",
    inputs={"seen": normal(2, s=0.3), "turn": normal(2, s=0.5)},
    needs=("pypose",),
    passes=6,
    style="method",
    name="pypose_ekf",
)
class Ekf:
    """pypose's extended Kalman filter with a unicycle whose derivatives are written by hand."""

    def __init__(self):
        import pypose as pp

        class Unicycle(pp.module.NLS):
            def state_transition(self, state, input, t=None):
                x, y, heading = state.unbind(-1)
                v, w = input.unbind(-1)
                move = torch.stack([v * heading.cos(), v * heading.sin(), w], -1)
                return torch.stack([x, y, heading], -1) + 0.1 * move

            def observation(self, state, input, t=None):
                return state[..., :2]

            @property
            def A(self):  # noqa: N802
                heading, v = self._ref_state[2], self._ref_input[0]
                jacobian = torch.eye(3)
                jacobian[0, 2] = -0.1 * v * heading.sin()
                jacobian[1, 2] = 0.1 * v * heading.cos()
                return jacobian

            @property
            def B(self):  # noqa: N802
                return torch.zeros(3, 2)

            @property
            def C(self):  # noqa: N802
                return torch.eye(3)[:2]

            @property
            def D(self):  # noqa: N802
                return torch.zeros(2, 2)

        self.ekf = pp.module.EKF(Unicycle(), Q=0.01 * torch.eye(3), R=0.05 * torch.eye(2))
        self.x, self.p = torch.zeros(3), torch.eye(3)

    def step(self, seen: Tensor, turn: Tensor) -> dict[str, Tensor]:
        u = turn + torch.tensor([0.5, 0.1])
        self.x, self.p = self.ekf(self.x, seen, u, self.p)
        estimate, spread = self.x, self.p.diagonal()
        return {"estimate": estimate, "spread": spread}


@policy(
    "pypose",
    style="own",
    inputs={"estimator/gyro": normal(1, 3), "estimator/acc": normal(1, 3, s=0.2, m=0.1)},
    needs=("pypose",),
    passes=6,
    name="pypose_attitude_pipeline",
)
class AttitudePipeline:
    """A complementary filter on the manifold, then a policy, then torques in the world's frame."""

    def __init__(self, backend: str):
        import pypose as pp

        self.pp, self.backend = pp, backend
        self.rot = pp.identity_SO3(1)
        self.net = nn.Sequential(nn.Linear(7, 16), nn.Tanh(), nn.Linear(16, 3)).eval()

    def __call__(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
        pp = self.pp
        gyro, acc = annotate.input_tensors(
            "estimator", {"gyro": given["estimator/gyro"], "acc": given["estimator/acc"]}
        )
        down = self.rot.Inv() @ torch.tensor([[0.0, 0.0, 1.0]])
        felt = nn.functional.normalize(acc + torch.tensor([0.0, 0.0, 1.0]), dim=-1)
        tilt = torch.linalg.cross(felt, down)
        self.rot = self.rot @ pp.so3(0.05 * gyro + 0.1 * tilt).Exp()
        quat = self.rot.tensor()
        annotate.output_tensors("estimator", {"quat": quat}, export_with=self.backend)

        quat, rate = annotate.input_tensors("policy", {"quat": quat, "rate": 0.5 * gyro})
        action = self.net(torch.cat([quat, rate], dim=-1))
        torque = pp.SO3(quat).Act(action)
        annotate.output_tensors(
            "policy", {"torque": torque, "action": action}, export_with=self.backend
        )
        return {"policy/torque": torque, "policy/action": action}
