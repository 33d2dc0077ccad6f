"""Pipelines of several nodes that are wired as they should be."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from veracity import annotate

from attacks.draws import integers, normal
from attacks.registry import ALL, clean


def _net(*sizes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for i in range(len(sizes) - 1):
        layers += [nn.Linear(sizes[i], sizes[i + 1]), nn.ELU()]
    return nn.Sequential(*layers[:-1])


@clean(
    "G",
    style="own",
    rec={"perception/image": normal(1, 3, 8, 8), "estimator/imu": normal(1, 6)},
    passes=4,
    backends=ALL,
)
def outside_full_stack(backend: str):
    """Perception, state estimation, policy, and post-processing of the action."""
    encoder = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4))
    policy = _net(7, 16, 2)
    estimate = torch.zeros(1, 3)
    filtered = torch.zeros(1, 2)

    def step(given):
        nonlocal estimate, filtered
        image = annotate.input_tensors("perception", {"image": given["perception/image"]})
        latent = encoder(image)
        annotate.output_tensors("perception", {"latent": latent}, export_with=backend)

        imu = annotate.input_tensors("estimator", {"imu": given["estimator/imu"]})
        estimate = 0.95 * (estimate + 0.02 * imu[:, :3]) + 0.05 * imu[:, 3:]
        annotate.output_tensors("estimator", {"velocity": estimate}, export_with=backend)

        latent, velocity = annotate.input_tensors(
            "policy", {"latent": latent, "velocity": estimate}
        )
        action = policy(torch.cat([latent, velocity], -1))
        annotate.output_tensors("policy", {"action": action}, export_with=backend)

        action = annotate.input_tensors("post", {"action": action})
        filtered = 0.8 * filtered + 0.2 * action.clamp(-1, 1)
        target = filtered * 0.25 + torch.tensor([0.1, -0.1])
        annotate.output_tensors("post", {"target": target}, export_with=backend)
        return {"post/target": target}

    return step


@clean("G", style="own", rec={"left/q": normal(1, 3), "right/q": normal(1, 3)}, passes=3)
def outside_shared_encoder(backend: str):
    """Two arms, one network."""
    net = _net(3, 8, 2)

    def step(given):
        out = {}
        for side in ("left", "right"):
            q = annotate.input_tensors(side, {"q": given[f"{side}/q"]})
            out[f"{side}/u"] = net(q)
            annotate.output_tensors(side, {"u": out[f"{side}/u"]}, export_with=backend)
        return out

    return step


@clean("G", style="own", rec={"front/imu": normal(1, 3), "back/imu": normal(1, 3)}, passes=4)
def outside_one_class_two_nodes(backend: str):
    """Two instances of one class of filters, each a node."""

    class Node:
        def __init__(self, name: str) -> None:
            self.name, self.y = name, torch.zeros(1, 3)

        def spin(self, imu: Tensor) -> Tensor:
            imu = annotate.input_tensors(self.name, {"imu": imu})
            self.y = self.y + 0.1 * (imu - self.y)
            annotate.output_tensors(self.name, {"y": self.y}, export_with=backend)
            return self.y

    nodes = {name: Node(name) for name in ("front", "back")}
    return lambda given: {f"{n}/y": node.spin(given[f"{n}/imu"]) for n, node in nodes.items()}


@dataclass
class _Blackboard:
    action: Tensor = field(default_factory=lambda: torch.zeros(1, 2))
    estimate: Tensor = field(default_factory=lambda: torch.zeros(1, 2))


@clean("G", style="own", rec={"est/z": normal(1, 2)}, passes=5, backends=("jit", "onnx"))
def outside_loop_over_nodes(backend: str):
    """The estimator takes the last action, the policy the estimate."""
    board, net = _Blackboard(), _net(2, 6, 2)

    def step(given):
        z, action = annotate.input_tensors("est", {"z": given["est/z"], "action": board.action})
        board.estimate = 0.7 * z + 0.3 * action
        annotate.output_tensors("est", {"estimate": board.estimate}, export_with=backend)
        x = annotate.input_tensors("policy", {"x": board.estimate})
        board.action = net(x)
        annotate.output_tensors("policy", {"action": board.action}, export_with=backend)
        return {"policy/action": board.action}

    return step


@clean("G", style="own", rec={"a/q": normal(1, 3)}, passes=4)
def outside_input_goes_twice(backend: str):
    """A node's output goes into two others, which a last one joins."""

    def step(given):
        q = annotate.input_tensors("a", {"q": given["a/q"]})
        y = q.sin()
        annotate.output_tensors("a", {"y": y}, export_with=backend)
        left = annotate.input_tensors("b", {"y": y})
        b = left * 2
        annotate.output_tensors("b", {"b": b}, export_with=backend)
        right = annotate.input_tensors("c", {"y": y})
        c = right + 1
        annotate.output_tensors("c", {"c": c}, export_with=backend)
        b, c = annotate.input_tensors("d", {"b": b, "c": c})
        z = b @ c.T
        annotate.output_tensors("d", {"z": z}, export_with=backend)
        return {"d/z": z}

    return step


@clean("G", style="own", rec={"obs/proprio": normal(1, 4), "obs/goal": integers(0, 5, 1)}, passes=3)
def outside_dict_observations(backend: str):
    """A dict of observations goes into a node as it is, and comes out as one."""
    table, net = nn.Embedding(5, 3), _net(7, 8, 2)

    def step(given):
        obs = {"proprio": given["obs/proprio"], "goal": given["obs/goal"]}
        proprio, goal = annotate.input_tensors("obs", obs)
        features = {"x": torch.cat([proprio, table(goal)], -1), "raw": proprio}
        annotate.output_tensors("obs", features, export_with=backend)
        x = annotate.input_tensors("act", {"x": features["x"]})
        u = net(x)
        annotate.output_tensors("act", {"u": u}, export_with=backend)
        return {"obs/raw": features["raw"], "act/u": u}

    return step


@clean("G", style="own", rec={"pre/scan": normal(12)}, passes=4)
def outside_numpy_node(backend: str):
    """The first node is NumPy, the second torch."""
    net = _net(4, 8, 2)

    def step(given):
        scan = annotate.input_tensors("pre", {"scan": given["pre/scan"]})
        ranges = np.clip(scan.numpy(), 0.0, 2.0).reshape(4, 3)
        features = torch.from_numpy(ranges.mean(axis=1)).unsqueeze(0)
        annotate.output_tensors("pre", {"features": features}, export_with=backend)
        x = annotate.input_tensors("net", {"features": features})
        u = net(x)
        annotate.output_tensors("net", {"u": u}, export_with=backend)
        return {"net/u": u}

    return step


@clean("G", style="own", rec={"a/x": normal(1, 2)}, passes=5)
def outside_one_tick_late(backend: str):
    """The second node always works on what the first gave in the tick before."""
    mail = torch.zeros(1, 2)

    def step(given):
        nonlocal mail
        late = annotate.input_tensors("b", {"late": mail})
        z = late.cos()
        annotate.output_tensors("b", {"z": z}, export_with=backend)
        x = annotate.input_tensors("a", {"x": given["a/x"]})
        mail = x * 3
        annotate.output_tensors("a", {"y": mail}, export_with=backend)
        return {"b/z": z, "a/y": mail}

    return step


@clean("G", style="own", rec={"obs/q": normal(1, 2)}, passes=4)
def outside_mixed_backends(backend: str):
    """Three nodes, each with a backend of its own."""
    net = _net(2, 4, 2)

    def step(given):
        q = annotate.input_tensors("obs", {"q": given["obs/q"]})
        x = q - q.mean()
        annotate.output_tensors("obs", {"x": x}, export_with="jit")
        x = annotate.input_tensors("policy", {"x": x})
        u = net(x)
        annotate.output_tensors("policy", {"u": u}, export_with="onnx")
        u = annotate.input_tensors("post", {"u": u})
        v = u.tanh()
        annotate.output_tensors("post", {"v": v}, export_with="pt2")
        return {"post/v": v}

    return step
