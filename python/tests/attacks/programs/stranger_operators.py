"""Clean code with one uncommon operator of torch each, in a small setting."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import normal, uniform
from attacks.registry import clean

two = ("jit", "onnx")
image = {"x": normal(1, 2, 8, 8)}


@clean(rec=image, passes=3, backends=two)
def padded_in_three_ways(x: Tensor) -> Tensor:
    return torch.cat(
        [F.pad(x, (1, 2, 1, 0), mode=m) for m in ("reflect", "replicate", "circular", "constant")],
        1,
    )


@clean(rec=image, passes=3, backends=two)
def pooled_with_ceiling(x: Tensor) -> Tensor:
    a = F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)
    return torch.cat([a, F.max_pool2d(x, 3, 2, 1, ceil_mode=True)], 1)


@clean(rec=image, passes=3, backends=two)
def shuffled_pixels(x: Tensor) -> Tensor:
    return F.pixel_shuffle(F.pixel_unshuffle(x, 2) * 2, 2)


@clean(rec=image, passes=3, backends=two)
def patches_by_unfold(x: Tensor) -> Tensor:
    return F.unfold(x, 4, stride=4).transpose(1, 2)


@clean(rec=image, passes=3, backends=two)
class NormsOfImages(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.InstanceNorm2d(2, affine=True), nn.RMSNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x))


@clean(rec={"x": normal(1, 9, 4)}, passes=3, backends=two)
class LstmOverWindow(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(4, 6, num_layers=2, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        out, (h, c) = self.rnn(x)
        return torch.cat([out[:, -1], h[-1], c[0]], -1)


@clean(rec={"q": normal(1, 3, 8), "kv": normal(1, 5, 8)}, passes=3, backends=two)
class CrossAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
        self.eval()

    def forward(self, q: Tensor, kv: Tensor) -> dict[str, Tensor]:
        y, w = self.attn(q, kv, kv)
        return {"y": y, "w": w}


@clean(rec={"x": normal(12)}, passes=3, backends=two)
def strange_differences(x: Tensor) -> Tensor:
    return torch.cat([torch.diff(x), torch.trapezoid(x, dx=0.1).reshape(1), torch.cumsum(x, 0)])


@clean(rec={"x": normal(3, 4)}, passes=3, backends=two)
def triangles(x: Tensor) -> Tensor:
    m = x @ x.T
    return torch.tril(m) + torch.triu(m, 1) * 2 + torch.diag_embed(m.diagonal()) + torch.eye(3)


@clean(rec={"a": normal(2, 3, 3), "b": normal(2, 3)}, passes=3)
def solved_in_batches(a: Tensor, b: Tensor) -> Tensor:
    spd = a @ a.mT + 3 * torch.eye(3)
    return torch.linalg.solve(spd, b) + torch.cholesky_solve(
        b.unsqueeze(-1), torch.linalg.cholesky(spd)
    ).squeeze(-1)


@clean(rec={"x": normal(2, 6)}, passes=3, backends=two)
def activations(x: Tensor) -> Tensor:
    return torch.stack(
        [
            F.celu(x),
            F.selu(x),
            F.hardsigmoid(x),
            F.softshrink(x),
            F.tanhshrink(x),
            F.glu(torch.cat([x, x], -1)),
            F.gelu(x, approximate="tanh"),
        ]
    )


@clean(rec={"x": normal(2, 6), "y": normal(2, 6)}, passes=3, backends=two)
def losses_as_costs(x: Tensor, y: Tensor) -> Tensor:
    return torch.stack(
        [
            F.mse_loss(x, y),
            F.smooth_l1_loss(x, y),
            F.huber_loss(x, y),
            F.l1_loss(x, y),
            F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
        ]
    )


@clean(rec={"x": normal(4, 6)}, passes=3, backends=two)
def indexed_in_many_ways(x: Tensor) -> Tensor:
    rows = torch.tensor([0, 2])
    return torch.cat(
        [
            x[rows][:, [1, 3]],
            x[..., None, 2:4].squeeze(1)[:2],
            x[torch.arange(2), torch.arange(2)].expand(2, 2),
        ],
        -1,
    )


@clean(rec={"x": normal(4, 6)}, passes=3, backends=two)
def written_in_place(x: Tensor) -> Tensor:
    y = x.clone()
    y[1:3, ::2] += 1.0
    y[:, -1].mul_(2)
    y[0] = y[3].flip(0)
    return y.masked_fill_(y > 2, 2.0)


@clean(rec={"x": uniform(0.1, 0.9, 5)}, fresh={"x": uniform(0.1, 0.9, 5)}, passes=3, backends=two)
def probabilities(x: Tensor) -> Tensor:
    return torch.stack(
        [
            torch.logit(x),
            torch.log1p(x),
            torch.expm1(x),
            torch.erf(x),
            torch.xlogy(x, x),
            torch.logaddexp(x, x * 2),
        ]
    )


@clean(rec={"x": normal(3, 5)}, passes=3, backends=two)
def ordered(x: Tensor) -> dict[str, Tensor]:
    values, index = torch.sort(x, dim=-1)
    return {"v": values, "i": index, "top": x.topk(2).values, "rank": index.argsort(-1)}


@clean(rec={"x": normal(2, 3, 4)}, passes=3, backends=two)
def reduced(x: Tensor) -> Tensor:
    return torch.stack(
        [
            x.sum((0, 2)),
            x.mean((0, 2)),
            x.amax((0, 2)),
            x.logsumexp((0, 2)),
            x.norm(dim=(0, 2)),
            x.std((0, 2)),
        ]
    )


@clean(rec={"x": normal(2, 3, 4)}, passes=3, backends=two)
def broadcast(x: Tensor) -> Tensor:
    a, b = torch.broadcast_tensors(x, torch.arange(4.0))
    return (
        torch.baddbmm(a, b[:, :, :3], x)
        + torch.addcmul(a, b, b, value=0.1)
        + torch.addcdiv(x, a, b + 1)
    )


@clean(rec={"x": normal(1, 3, 6, 6)}, passes=3, backends=two)
class DepthwiseSeparable(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.d, self.p = nn.Conv2d(3, 6, 3, groups=3, padding="same"), nn.Conv2d(6, 4, 1)
        self.t = nn.ConvTranspose2d(4, 2, 3, 2, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.t(F.relu6(self.p(self.d(x))))


@clean(rec={"x": normal(1, 2, 3, 6, 6)}, passes=3)
class VideoEncoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv3d(2, 4, (3, 3, 3), padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.adaptive_max_pool3d(self.conv(x), 1).flatten(1)


@clean(rec={"x": normal(1, 3, 9, 9)}, passes=3, backends=two)
def resized(x: Tensor) -> Tensor:
    a = F.interpolate(x, size=(4, 4), mode="bilinear", align_corners=True)
    b = F.interpolate(x, scale_factor=0.5, mode="nearest", recompute_scale_factor=True)
    return a + b


@clean(rec={"x": normal(2, 4), "w": normal(3, 4, 5)}, passes=3, backends=two)
def bilinear_forms(x: Tensor, w: Tensor) -> Tensor:
    return F.bilinear(x, x[:, [0, 1, 2, 3, 0]], w)


@clean(rec={"x": normal(3, 4)}, passes=3, backends=two)
def kron_and_outer(x: Tensor) -> Tensor:
    return (
        torch.kron(x[0], x[1])
        + torch.outer(x[1], x[2]).flatten()
        + torch.cartesian_prod(x[0], x[1]).sum(1)
    )


@clean(rec={"x": normal(4)}, passes=3, backends=two)
def windows_and_ramps(x: Tensor) -> Tensor:
    return (
        x * torch.hamming_window(4)
        + torch.logspace(-1, 1, 4)
        - torch.linspace(0, 1, 4, dtype=x.dtype)
    )
