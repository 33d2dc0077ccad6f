"""State that rests while it is recorded: latches, held values, timers, modes, small integrals."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attacks.draws import by_tick, either, fixed, integers, normal, row, uniform
from attacks.registry import ALL, hostile

calm, loud = uniform(-0.4, 0.4, 1, 4), normal(1, 4, s=3.0)


@hostile("A", rec={"q": calm}, fresh={"q": loud}, backends=ALL, in_tests=True)
class JointLimitLatch:
    """Once a joint was beyond its limit, torques are cut for good."""

    def __init__(self) -> None:
        self.tripped = torch.zeros(1, dtype=torch.bool)
        self.net = nn.Linear(4, 4)

    def __call__(self, q: Tensor) -> Tensor:
        self.tripped = self.tripped | (q.abs() > 2.5).any()
        return torch.where(self.tripped, torch.zeros(4), self.net(q))


@hostile("A", rec={"tilt": uniform(0, 0.3, 2)}, fresh={"tilt": uniform(0, 1.4, 2)}, in_tests=True)
class FallenFlag:
    """The same as a float that only grows."""

    def __init__(self) -> None:
        self.fallen = torch.zeros(2)

    def __call__(self, tilt: Tensor) -> Tensor:
        self.fallen = torch.maximum(self.fallen, (tilt > 1.0).float())
        return (1.0 - self.fallen) * torch.cos(tilt)


@hostile(
    "A",
    rec={"pose": normal(1, 3, s=0.2), "ok": fixed([[1.0]])},
    fresh={"ok": row([[1.0]], [[1.0]], [[0.0]], [[0.0]], [[1.0]])},
    passes=6,
    in_tests=True,
)
class HoldLastGoodPose:
    """A camera that drops out: the last pose that was good is kept."""

    def __init__(self) -> None:
        self.last = torch.zeros(1, 3)

    def __call__(self, pose: Tensor, ok: Tensor) -> Tensor:
        pose = torch.where(ok > 0.5, pose, self.last)
        self.last = pose
        return pose * 2.0 - 0.1


@hostile(
    "A",
    rec={"force": fixed([[60.0, 55.0, 70.0, 66.0]])},
    fresh={"force": uniform(-40.0, 60.0, 1, 4)},
    passes=5,
    in_tests=True,
)
class FeetAirTime:
    """Isaac Lab's reward term: air time is reset at contact, and all feet stand while recorded."""

    dt = 0.02

    def __init__(self) -> None:
        self.air_time = torch.zeros(1, 4)

    def __call__(self, force: Tensor) -> tuple[Tensor, Tensor]:
        contact = force > 1.0
        landed = (self.air_time > 0.0) & contact
        self.air_time = (self.air_time + self.dt) * (~contact).float()
        return self.air_time * 1.0, landed.float()


@hostile("A", rec={"pos": fixed([[0.3, -0.2, 0.5]])}, fresh={"pos": normal(1, 3)})
class VelocityByDifference:
    """Finite differences of a joint that does not move while recorded."""

    def __init__(self) -> None:
        self.previous = torch.tensor([[0.3, -0.2, 0.5]])

    def __call__(self, pos: Tensor) -> Tensor:
        velocity = (pos - self.previous) / 0.01
        self.previous = pos.clone()
        return torch.cat([pos, velocity], dim=-1)


@hostile("A", rec={"cmd": uniform(-0.05, 0.05, 3)}, fresh={"cmd": normal(3)}, backends=("onnx",))
class StandOrWalkMode:
    """A mode as an integer tensor that stays at stand."""

    def __init__(self) -> None:
        self.mode = torch.zeros((), dtype=torch.int64)
        self.gains = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.8, 0.6], [2.0, 1.5, 1.2]])

    def __call__(self, cmd: Tensor) -> Tensor:
        fast = (cmd.norm() > 0.3).long() + (cmd.norm() > 1.5).long()
        self.mode = torch.maximum(self.mode, fast)
        return self.gains[self.mode] * cmd


@hostile("A", rec={"error": uniform(-0.01, 0.01, 2)}, fresh={"error": normal(2)}, in_tests=True)
class DeadBandIntegrator:
    """Errors below the band are not integrated, and all recorded ones are."""

    def __init__(self) -> None:
        self.integral = torch.zeros(2)

    def __call__(self, error: Tensor) -> Tensor:
        outside = torch.where(error.abs() > 0.05, error, torch.zeros_like(error))
        self.integral += outside * 0.1
        return 1.5 * error + 0.4 * self.integral


@hostile("A", rec={"u": uniform(-0.5, 0.5, 3)}, fresh={"u": normal(3, s=4.0)}, passes=3)
class AntiWindupMemory:
    """What was clipped comes back; nothing is while recorded."""

    def __init__(self) -> None:
        self.excess = torch.zeros(3)

    def __call__(self, u: Tensor) -> Tensor:
        wanted = u + self.excess
        given = wanted.clamp(-1, 1)
        self.excess = 0.5 * (wanted - given)
        return given


@hostile("A", rec={"x": fixed([1.0, 2.0, 3.0])}, fresh={"x": normal(3)}, passes=5)
class MovingAverageAtRest:
    """An average that starts at the value it sees."""

    def __init__(self) -> None:
        self.mean = torch.tensor([1.0, 2.0, 3.0])

    def __call__(self, x: Tensor) -> Tensor:
        self.mean = 0.95 * self.mean + 0.05 * x
        return x - self.mean


@hostile("A", rec={"x": normal(4)}, passes=4, backends=("jit", "onnx"))
class SlowNormaliser:
    """rsl_rl's empirical normalisation with a rate far below the tolerance of a tick."""

    def __init__(self) -> None:
        self.mean = torch.zeros(4)
        self.rate = 1e-7

    def __call__(self, x: Tensor) -> Tensor:
        self.mean = self.mean + self.rate * x
        return (x - self.mean) + self.mean / self.rate * 1e-3


@hostile("A", rec={"x": uniform(0, 1, 2)}, fresh={"x": uniform(2, 9, 2)}, passes=3)
class EnergyMeter:
    """Joules that move less than the tolerance in a tick, shown in kilowatt hours."""

    def __init__(self) -> None:
        self.kwh = torch.zeros(2)

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        self.kwh = self.kwh + x.square() * 1e-8
        return x * 3.0, self.kwh * 1.0


@hostile("A", rec={"x": fixed([0.2, 0.1])}, fresh={"x": normal(2)}, passes=4)
class ToggledTwice:
    """A state that the code itself sets back to its first value within a pass."""

    def __init__(self) -> None:
        self.scratch = torch.zeros(2)

    def __call__(self, x: Tensor) -> Tensor:
        out = x + self.scratch
        self.scratch = torch.where(x.abs() > 0.5, x * 0.3, torch.zeros(2))
        return out


@hostile(
    "A",
    rec={"heading": uniform(-0.2, 0.2, 1)},
    fresh={"heading": by_tick(lambda t: torch.tensor([0.9 * t]) % 6.28 - 3.14)},
)
class YawUnwrap:
    """Turns are counted only when the heading jumps."""

    def __init__(self) -> None:
        self.turns = torch.zeros(1)
        self.last = torch.zeros(1)

    def __call__(self, heading: Tensor) -> Tensor:
        jump = heading - self.last
        self.turns = self.turns + (jump < -3.0).float() - (jump > 3.0).float()
        self.last = heading
        return heading + 6.2831853 * self.turns


@hostile(
    "A",
    rec={"done": fixed([0.0, 0.0]), "r": uniform(0.0, 0.0, 2)},
    fresh={"done": row([0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 1.0]), "r": normal(2)},
)
class EpisodeReturn:
    """A return that stays at zero as rewards are, in an environment of two."""

    def __init__(self) -> None:
        self.ret = torch.zeros(2)

    def __call__(self, done: Tensor, r: Tensor) -> Tensor:
        self.ret = (self.ret + r) * (1 - done)
        return self.ret + r


@hostile(
    "A",
    rec={"btn": fixed(torch.tensor([0]))},
    fresh={"btn": integers(0, 2, 1)},
    passes=7,
    in_tests=True,
)
class DebouncedButton:
    """Three ticks of pressing switch the light; nobody presses while recorded."""

    def __init__(self) -> None:
        self.count = torch.zeros(1, dtype=torch.int64)
        self.light = torch.zeros(1)

    def __call__(self, btn: Tensor) -> Tensor:
        self.count = (self.count + 1) * btn
        self.light = torch.where(self.count == 2, 1.0 - self.light, self.light)
        return self.light + 0.0


class SafetyStop(nn.Module):
    """A latch in a buffer that nobody follows."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.register_buffer("stopped", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.stopped.copy_(torch.maximum(self.stopped, (x.max() > 2.0).float()))
        return self.fc(x) * (1.0 - self.stopped)


hostile("A", name="safety_stop_in_buffer", rec={"x": calm}, fresh={"x": loud})(SafetyStop)
hostile(
    "A",
    name="safety_stop_followed",
    style="module",
    rec={"x": calm},
    fresh={"x": loud},
    in_tests=True,
)(SafetyStop)


@hostile(
    "A",
    style="method",
    rec={"temp": uniform(30, 40, 1)},
    fresh={"temp": uniform(30, 95, 1)},
    in_tests=True,
)
class ThermalHysteresis:
    """On above 80, off below 60, off all along while recorded."""

    def __init__(self) -> None:
        self.on = torch.zeros(1)

    def step(self, temp: Tensor) -> Tensor:
        self.on = torch.where(
            temp > 80, torch.ones(1), torch.where(temp < 60, torch.zeros(1), self.on)
        )
        fan = 0.2 + 0.8 * self.on
        return fan


@hostile("A", rec={"x": fixed([[0.0, 0.0]])}, fresh={"x": normal(1, 2)}, passes=3)
def delayed_by_one():
    """A closure that holds the last input, which is zero while recorded."""
    held = torch.zeros(1, 2)

    def step(x: Tensor) -> Tensor:
        nonlocal held
        out, held = held * 1.0, x * 1.0
        return out

    return step


_STICKY = {"peak": torch.zeros(3)}


@hostile("A", rec={"x": uniform(-1, 0, 3)}, fresh={"x": normal(3)}, in_tests=True)
def peak_hold_in_a_global():
    """A module's dict that holds the largest value so far, never above its start while recorded."""
    _STICKY["peak"] = torch.zeros(3)

    def step(x: Tensor) -> Tensor:
        _STICKY["peak"] = torch.maximum(_STICKY["peak"] * 0.9, x)
        return _STICKY["peak"] - x

    return step


@hostile("A", rec={"x": fixed([0.5])}, fresh={"x": uniform(0, 1, 1)}, passes=6)
class SchmittTrigger:
    """In-place writes into a tensor that keep its value."""

    def __init__(self) -> None:
        self.level = torch.ones(1)

    def __call__(self, x: Tensor) -> Tensor:
        self.level.masked_fill_(x > 0.8, 1.0).masked_fill_(x < 0.2, -1.0)
        return self.level * x


@hostile("A", rec={"a": fixed([[0.1, 0.1, 0.1]])}, fresh={"a": normal(1, 3)}, passes=5)
class ActionRateLimiter:
    """The same action all along: the limit on its change is not felt."""

    def __init__(self) -> None:
        self.last = torch.full((1, 3), 0.1)

    def __call__(self, a: Tensor) -> Tensor:
        self.last = self.last + (a - self.last).clamp(-0.2, 0.2)
        return self.last * 1.0


@hostile(
    "A",
    rec={"z": either(lambda t: t < 9, fixed([0.0]), fixed([1.0]))},
    fresh={"z": normal(1)},
    passes=9,
    backends=("pt2",),
)
class IntegratorOfNothing:
    """Nine passes of zero."""

    def __init__(self) -> None:
        self.sum = torch.zeros(1)

    def __call__(self, z: Tensor) -> Tensor:
        self.sum.add_(z, alpha=0.02)
        return self.sum.exp()


@hostile("A", rec={"gyro": fixed([[0.0, 0.0, 0.0]])}, fresh={"gyro": normal(1, 3)}, backends=ALL)
class QuaternionAtRest:
    """An attitude that starts level while the gyro says nothing."""

    def __init__(self) -> None:
        self.q = torch.tensor([[1.0, 0.0, 0.0, 0.0]])

    def __call__(self, gyro: Tensor) -> Tensor:
        w, x, y, z = self.q.unbind(-1)
        gx, gy, gz = gyro.unbind(-1)
        dot = 0.5 * torch.stack(
            [
                -x * gx - y * gy - z * gz,
                w * gx + y * gz - z * gy,
                w * gy - x * gz + z * gx,
                w * gz + x * gy - y * gx,
            ],
            -1,
        )
        q = self.q + 0.05 * dot
        self.q = q / q.norm(dim=-1, keepdim=True)
        return self.q * 1.0
