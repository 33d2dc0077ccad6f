"""torch_geometric: networks on the graph of a body, a swarm or a scene, whose edges are fixed."""

from __future__ import annotations

import itertools

import torch
from attacks.draws import normal, uniform
from torch import Tensor, nn

from zoo.register import policy

NEEDS = ("torch_geometric",)
#: A trunk, and four legs of three joints each.
BODIES = 13
LIMBS = [(0, 1 + 3 * leg) for leg in range(4)]
LIMBS += [(1 + 3 * leg + j, 2 + 3 * leg + j) for leg in range(4) for j in range(2)]
#: What belongs together: the trunk, and each of the legs.
LEG_OF = torch.tensor([0] + [1 + body // 3 for body in range(12)])


def both_ways(pairs: list[tuple[int, int]]) -> Tensor:
    return torch.tensor([*pairs, *((b, a) for a, b in pairs)]).t().contiguous()


def everyone(count: int) -> Tensor:
    return torch.tensor(list(itertools.permutations(range(count), 2))).t().contiguous()


def livened(net: nn.Module, gain: float = 1.6) -> nn.Module:
    """Make weights as training leaves them: large enough to matter, no bias at zero."""
    with torch.no_grad():
        for weight in net.parameters():
            if weight.dim() > 1:
                weight.mul_(gain)
            else:
                weight.add_(0.1 * torch.randn_like(weight))
    return net.eval()


@policy("torch_geometric", inputs={"bodies": normal(BODIES, 6)}, needs=NEEDS)
def torch_geometric_gcn():
    """Two graph convolutions whose normalisation is made in each call, and one that is cached."""
    from torch_geometric.nn import GCNConv

    edge_index = both_ways(LIMBS)
    edge_weight = torch.linspace(0.5, 1.5, edge_index.size(1))
    first, second = livened(GCNConv(6, 16)), livened(GCNConv(16, 16, improved=True))
    last = livened(GCNConv(16, 1, cached=True))
    last(torch.zeros(BODIES, 16), edge_index)

    def step(bodies: Tensor) -> Tensor:
        x = first(bodies, edge_index).relu()
        x = torch.tanh(second(x, edge_index, edge_weight))
        return last(x, edge_index)[1:].flatten()

    return step


@policy(
    "torch_geometric",
    inputs={"bodies": normal(BODIES, 5), "links": normal(24, 3)},
    style="method",
    needs=NEEDS,
    name="torch_geometric_gat",
)
class Gat:
    """Attention over limbs with features of the links; its weights are an output."""

    def __init__(self) -> None:
        from torch_geometric.nn import GATConv, GATv2Conv

        self.edge_index = both_ways(LIMBS)
        self.first = livened(GATConv(5, 8, heads=2, edge_dim=3, residual=True))
        self.second = livened(GATv2Conv(16, 3, heads=2, concat=False, add_self_loops=False))

    def step(self, bodies: Tensor, links: Tensor) -> tuple[Tensor, Tensor]:
        x, (_, attention) = self.first(
            bodies, self.edge_index, links, return_attention_weights=True
        )
        action = torch.tanh(self.second(nn.functional.elu(x), self.edge_index))
        return action, attention


@policy("torch_geometric", inputs={"bodies": normal(2 * BODIES, 6)}, needs=NEEDS)
def torch_geometric_sage():
    """Two robots in one batch: neighbours by maximum and mean, and three ways to pool a robot."""
    from torch_geometric.nn import (
        SAGEConv,
        global_add_pool,
        global_max_pool,
        global_mean_pool,
    )

    one = both_ways(LIMBS)
    edge_index = torch.cat([one, one + BODIES], dim=1)
    batch = torch.arange(2).repeat_interleave(BODIES)
    widest = livened(SAGEConv(6, 16, aggr="max", project=True))
    mean = livened(SAGEConv(16, 8, aggr=["mean", "std"], normalize=True))
    head = livened(nn.Linear(24, 12))

    def step(bodies: Tensor) -> Tensor:
        x = mean(widest(bodies, edge_index).relu(), edge_index)
        pooled = [pool(x, batch) for pool in (global_mean_pool, global_max_pool, global_add_pool)]
        return head(torch.cat(pooled, dim=-1))

    return step


@policy("torch_geometric", inputs={"bodies": normal(BODIES, 6)}, style="module", needs=NEEDS)
def torch_geometric_gin():
    """Isomorphism networks with batch norm in `Sequential`, jumping knowledge, and a value."""
    from torch_geometric.nn import MLP, GINConv, GINEConv, JumpingKnowledge

    class Gin(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("edge_index", both_ways(LIMBS))
            self.register_buffer("kind", torch.randn(self.edge_index.size(1), 16))
            self.first = GINConv(MLP([6, 16, 16], norm="batch_norm"), train_eps=True)
            self.second = GINEConv(MLP([16, 16, 16], norm="layer_norm"), eps=0.2)
            self.jump = JumpingKnowledge("cat")
            self.head, self.value = nn.Linear(32, 1), nn.Linear(32, 1)

        def forward(self, bodies: Tensor) -> tuple[Tensor, Tensor]:
            x = self.first(bodies, self.edge_index).relu()
            y = self.second(x, self.edge_index, self.kind).relu()
            x = self.jump([x, y])
            return self.head(x[1:]).squeeze(-1), self.value(x.mean(dim=0))

    made = livened(Gin())
    made.train()
    for _ in range(5):
        made(torch.randn(BODIES, 6))
    return made.eval()


@policy(
    "torch_geometric",
    inputs={"state": normal(5, 4), "goal": normal(5, 2)},
    passes=6,
    needs=NEEDS,
    name="torch_geometric_swarm",
)
class Swarm:
    """Messages of one's own between five robots, by what lies between them; each has a memory."""

    def __init__(self) -> None:
        from torch_geometric.nn import MessagePassing

        class Interaction(MessagePassing):
            def __init__(self) -> None:
                super().__init__(aggr="add", flow="source_to_target")
                self.edge = nn.Sequential(nn.Linear(21, 16), nn.SiLU(), nn.Linear(16, 16))
                self.gate = nn.Linear(16, 1)

            def forward(self, x: Tensor, pos: Tensor, edge_index: Tensor) -> Tensor:
                return self.propagate(edge_index, x=x, pos=pos)

            def message(self, x_i: Tensor, x_j: Tensor, pos_i: Tensor, pos_j: Tensor) -> Tensor:
                offset = pos_j - pos_i
                distance = offset.norm(dim=-1, keepdim=True)
                near = torch.exp(-distance.square()) * (distance < 3.0)
                sent = self.edge(torch.cat([x_i, x_j, offset, distance], dim=-1))
                return near * torch.sigmoid(self.gate(sent)) * sent

            def update(self, aggregated: Tensor, x: Tensor) -> Tensor:
                return torch.cat([x, aggregated], dim=-1)

        self.edge_index = everyone(5)
        self.interaction = livened(Interaction())
        self.encoder = livened(nn.Linear(14, 9))
        self.memory = livened(nn.GRUCell(25, 8))
        self.head = livened(nn.Linear(8, 2))
        self.hidden = torch.zeros(5, 8)

    def __call__(self, state: Tensor, goal: Tensor) -> Tensor:
        x = torch.tanh(self.encoder(torch.cat([state, goal, self.hidden], dim=-1)))
        x = self.interaction(x, state[:, :2], self.edge_index)
        self.hidden = self.memory(x, self.hidden)
        return self.head(self.hidden)


@policy("torch_geometric", inputs={"bodies": normal(BODIES, 6)}, needs=NEEDS)
def torch_geometric_scatter():
    """Bodies pooled into legs by `scatter`, an attention over legs, and back to the bodies."""
    from torch_geometric.utils import degree, scatter, softmax

    size = degree(LEG_OF, 5, dtype=torch.float32)
    encode, score = livened(nn.Linear(6, 16)), livened(nn.Linear(16, 1))
    legs, head = livened(nn.Linear(64, 16)), livened(nn.Linear(32, 1))

    def step(bodies: Tensor) -> dict[str, Tensor]:
        x = encode(bodies).relu()
        weight = softmax(score(x), LEG_OF, num_nodes=5)
        parts = [scatter(weight * x, LEG_OF, dim=0, dim_size=5, reduce="sum")]
        parts += [scatter(x, LEG_OF, dim=0, reduce=name) for name in ("mean", "max", "min")]
        leg = torch.tanh(legs(torch.cat(parts, dim=-1)))
        load = scatter(bodies[:, 0], LEG_OF, reduce="sum") / size
        return {"action": head(torch.cat([x, leg[LEG_OF]], dim=-1))[1:], "load": load}

    return step


@policy(
    "torch_geometric",
    inputs={"pos": normal(6, 3), "vel": normal(6, 3), "charge": uniform(-1.0, 1.0, 6, 1)},
    passes=6,
    style="method",
    needs=NEEDS,
    name="torch_geometric_equivariant",
)
class Equivariant:
    """EGNN: features by distances, positions by sums of offsets, two layers with residuals."""

    def __init__(self) -> None:
        from torch_geometric.nn import MessagePassing

        class Layer(MessagePassing):
            def __init__(self, width: int) -> None:
                super().__init__(aggr="mean")
                self.edge = nn.Sequential(nn.Linear(2 * width + 1, width), nn.SiLU())
                self.shift = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 1))
                self.node = nn.Sequential(nn.Linear(2 * width, width), nn.SiLU())

            def forward(self, h: Tensor, pos: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
                row, col = edge_index
                offset = pos[row] - pos[col]
                square = (offset**2).sum(dim=-1, keepdim=True)
                sent = self.edge(torch.cat([h[row], h[col], square], dim=-1))
                moved = self.propagate(edge_index, x=torch.zeros_like(pos), sent=sent, off=offset)
                heard = self.aggregate(sent, col, dim_size=h.size(0))
                return h + self.node(torch.cat([h, heard], dim=-1)), pos + moved

            def message(self, sent: Tensor, off: Tensor) -> Tensor:
                return off / (off.norm(dim=-1, keepdim=True) + 1.0) * self.shift(sent)

        self.edge_index = everyone(6)
        self.embed = livened(nn.Linear(2, 12))
        self.layers = nn.ModuleList([livened(Layer(12)) for _ in range(2)])

    def step(self, pos: Tensor, vel: Tensor, charge: Tensor) -> tuple[Tensor, Tensor]:
        h = self.embed(torch.cat([charge, vel.norm(dim=-1, keepdim=True)], dim=-1))
        moved = pos
        for layer in self.layers:
            h, moved = layer(h, moved, self.edge_index)
        force = moved - pos + 0.1 * vel
        return force, h


@policy(
    "torch_geometric",
    inputs={"robot": normal(2, 4), "obstacle": normal(4, 3), "goal": normal(2, 2)},
    needs=NEEDS,
)
def torch_geometric_hetero():
    """A scene of robots, obstacles and goals, each with a relation and a convolution of its own."""
    from torch_geometric.nn import GATConv, HeteroConv, Linear, SAGEConv

    edges = {
        ("obstacle", "near", "robot"): torch.tensor([[0, 1, 2, 2, 3], [0, 0, 0, 1, 1]]),
        ("goal", "of", "robot"): torch.tensor([[0, 1], [0, 1]]),
        ("robot", "meets", "robot"): torch.tensor([[0, 1], [1, 0]]),
    }
    encode = nn.ModuleDict()
    for name, size in {"robot": -1, "obstacle": 3, "goal": 2}.items():
        encode[name] = Linear(size, 12)
    convolution = HeteroConv(
        {
            ("obstacle", "near", "robot"): GATConv((12, 12), 12, add_self_loops=False),
            ("goal", "of", "robot"): SAGEConv((-1, -1), 12),
            ("robot", "meets", "robot"): SAGEConv(12, 12, aggr="max"),
        },
        aggr="sum",
    )
    encode["robot"](torch.zeros(2, 4))
    counts = {"robot": 2, "obstacle": 4, "goal": 2}
    convolution({name: torch.zeros(count, 12) for name, count in counts.items()}, edges)
    head = nn.Linear(24, 2)
    for net in (encode, convolution, head):
        livened(net)

    def step(robot: Tensor, obstacle: Tensor, goal: Tensor) -> Tensor:
        seen = {"robot": robot, "obstacle": obstacle, "goal": goal}
        x = {name: encode[name](value).relu() for name, value in seen.items()}
        found = convolution(x, edges)["robot"]
        return head(torch.cat([x["robot"], torch.tanh(found)], dim=-1))

    return step


@policy("torch_geometric", inputs={"bodies": normal(2, BODIES, 6)}, needs=NEEDS)
def torch_geometric_batched_data():
    """Each robot becomes `Data`, both a `Batch`; a transformer's convolution, and dense results."""
    from torch_geometric.data import Batch, Data
    from torch_geometric.nn import GraphNorm, TransformerConv
    from torch_geometric.utils import to_dense_batch

    edge_index = both_ways(LIMBS)
    convolution = livened(TransformerConv(6, 8, heads=2, beta=True))
    norm, head = livened(GraphNorm(16)), livened(nn.Linear(16, 1))

    def step(bodies: Tensor) -> Tensor:
        batch = Batch.from_data_list([Data(x=x, edge_index=edge_index) for x in bodies])
        x = convolution(batch.x, batch.edge_index)
        x = norm(x, batch.batch, batch.num_graphs).relu()
        dense, _mask = to_dense_batch(head(x), batch.batch)
        return dense.squeeze(-1)[:, 1:]

    return step
