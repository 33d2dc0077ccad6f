"""Vision front ends: resize, normalise, crop, keypoints, depth."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attacks.draws import array, integers, normal, uniform
from attacks.registry import clean

IMAGE = uniform(0, 1, 1, 3, 24, 24)
PIXELS = integers(0, 256, 1, 20, 28, 3, dtype=torch.uint8)


@clean("H", passes=3, rec={"image": IMAGE}, fresh={"image": IMAGE}, backends=("jit", "onnx"))
class NcResizeNormalize:
    """Bilinear resize and ImageNet's mean and deviation."""

    def __init__(self) -> None:
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1)

    def __call__(self, image: Tensor) -> Tensor:
        small = F.interpolate(image, size=(16, 16), mode="bilinear", align_corners=False)
        return (small - self.mean) / self.std


@clean("H", passes=3, rec={"rgb": PIXELS}, backends="jit")
class NcUint8ToTensor:
    """uint8 HWC pixels to float CHW, centre-cropped."""

    def __call__(self, rgb: Tensor) -> Tensor:
        x = rgb.permute(0, 3, 1, 2).float().div(255.0)
        top, left = (x.shape[-2] - 16) // 2, (x.shape[-1] - 16) // 2
        return x[..., top : top + 16, left : left + 16].contiguous()


@clean("H", passes=3, style="module", rec={"image": IMAGE}, fresh={"image": IMAGE}, backends="onnx")
class NcSpatialSoftmax(nn.Module):
    """robomimic's SpatialSoftmax: keypoints as the expectation over a heat map."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 1))
        y, x = torch.meshgrid(torch.linspace(-1, 1, 24), torch.linspace(-1, 1, 24), indexing="ij")
        self.register_buffer("pos_x", x.reshape(1, -1))
        self.register_buffer("pos_y", y.reshape(1, -1))
        self.temperature = nn.Parameter(torch.ones(1) * 0.5, requires_grad=False)

    def forward(self, image: Tensor) -> Tensor:
        feature = self.conv(image).reshape(-1, 24 * 24)
        attention = F.softmax(feature / self.temperature, dim=-1)
        expected_x = torch.sum(self.pos_x * attention, dim=1, keepdim=True)
        expected_y = torch.sum(self.pos_y * attention, dim=1, keepdim=True)
        return torch.cat([expected_x, expected_y], 1).view(-1, 4, 2)


@clean("H", passes=3, style="module", rec={"image": IMAGE}, fresh={"image": IMAGE}, backends="jit")
class NcResnetBasicBlock(nn.Module):
    """A residual block with batch norm in eval mode and group norm behind, pooled."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, 2, 1, bias=False)
        self.bn = nn.BatchNorm2d(8)
        self.bn.running_mean.normal_(0, 0.1)
        self.bn.running_var.uniform_(0.5, 1.5)
        self.block = nn.Sequential(
            nn.Conv2d(8, 8, 3, 1, 1),
            nn.GroupNorm(2, 8),
            nn.ReLU(inplace=True),
            nn.Conv2d(8, 8, 3, 1, 1),
        )
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.eval()

    def forward(self, image: Tensor) -> Tensor:
        x = F.relu(self.bn(self.stem(image)), inplace=True)
        x = F.relu(x + self.block(x))
        return torch.flatten(self.pool(x), 1)


@clean(
    "H",
    passes=3,
    rec={"depth": uniform(0.1, 4.0, 1, 12, 16)},
    fresh={"depth": uniform(0.1, 6.0, 1, 12, 16)},
    backends="jit",
)
class NcDepthToPoints:
    """Back-projects a depth image with constant intrinsics and averages what is in range."""

    def __init__(self) -> None:
        fx = fy = 20.0
        v, u = torch.meshgrid(torch.arange(12.0), torch.arange(16.0), indexing="ij")
        self.rays = torch.stack(((u - 7.5) / fx, (v - 5.5) / fy, torch.ones_like(u)), dim=-1)

    def __call__(self, depth: Tensor) -> dict[str, Tensor]:
        clean_depth = torch.nan_to_num(depth, nan=4.0, posinf=4.0).clamp(0.3, 4.0)
        points = clean_depth.unsqueeze(-1) * self.rays
        valid = ((depth > 0.3) & (depth < 4.0)).unsqueeze(-1)
        total = valid.sum(dim=(1, 2)).clamp(min=1)
        return {"points": points, "centre": (points * valid).sum(dim=(1, 2)) / total}


@clean(
    "A",
    passes=5,
    rec={"frame": uniform(0, 1, 1, 1, 16, 16)},
    fresh={"frame": uniform(0, 1, 1, 1, 16, 16)},
    backends="jit",
)
class NcFrameStackCnn:
    """Four stacked grey frames into a CNN."""

    def __init__(self) -> None:
        self.stack = torch.zeros(1, 4, 16, 16)
        self.net = nn.Sequential(nn.Conv2d(4, 8, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(392, 3))

    def __call__(self, frame: Tensor) -> Tensor:
        self.stack = torch.cat([self.stack[:, 1:], frame], dim=1)
        return self.net(self.stack)


@clean(
    "A",
    passes=4,
    rec={"frame": uniform(0, 1, 1, 1, 12, 12)},
    fresh={"frame": uniform(0, 1, 1, 1, 12, 12)},
    backends="onnx",
)
class NcBackgroundSubtraction:
    """A background that is averaged slowly, and the mass of what moved."""

    def __init__(self) -> None:
        self.background = torch.full((1, 1, 12, 12), 0.5)

    def __call__(self, frame: Tensor) -> dict[str, Tensor]:
        difference = (frame - self.background).abs()
        self.background = 0.95 * self.background + 0.05 * frame
        mask = torch.sigmoid(20.0 * (difference - 0.25))
        return {"mask": mask, "moved": mask.mean(dim=(1, 2, 3))}


@clean(
    "H",
    passes=3,
    rec={"image": IMAGE, "centre": uniform(-0.4, 0.4, 1, 2)},
    fresh={"image": IMAGE, "centre": uniform(-0.4, 0.4, 1, 2)},
    backends="jit",
)
class NcRoiByAffineGrid:
    """A crop around a moving centre without indices: affine_grid and grid_sample."""

    def __call__(self, image: Tensor, centre: Tensor) -> Tensor:
        scale = torch.eye(2).unsqueeze(0) * 0.5
        theta = torch.cat([scale, centre.unsqueeze(-1)], dim=-1)
        grid = F.affine_grid(theta, [1, 3, 8, 8], align_corners=False)
        return F.grid_sample(image, grid, align_corners=False)


@clean("H", passes=3, style="method", rec={"image": IMAGE}, fresh={"image": IMAGE}, backends="jit")
class NcSobelEdges:
    """Sobel gradients with constant kernels; magnitude and orientation."""

    def __init__(self) -> None:
        kx = torch.tensor([[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]])
        self.kernel = torch.stack([kx, kx.T]).unsqueeze(1)
        self.grey = torch.tensor([0.299, 0.587, 0.114]).view(1, 3, 1, 1)

    def step(self, image: Tensor) -> tuple[Tensor, Tensor]:
        grey = (image * self.grey).sum(dim=1, keepdim=True)
        gradient = F.conv2d(F.pad(grey, (1, 1, 1, 1), mode="replicate"), self.kernel)
        magnitude = torch.sqrt(gradient.pow(2).sum(dim=1) + 1e-8)
        pooled = F.max_pool2d(magnitude.unsqueeze(1), 4)
        return magnitude, pooled


@clean("H", passes=3, style="module", rec={"image": IMAGE}, fresh={"image": IMAGE}, backends="pt2")
class NcUnetTiny(nn.Module):
    """A U-Net with one skip and a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 6, 3, 2, 1)
        self.mid = nn.Conv2d(6, 6, 3, 1, 1)
        self.up = nn.ConvTranspose2d(6, 6, 2, 2)
        self.out = nn.Conv2d(9, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        low = F.relu(self.mid(F.relu(self.down(image))))
        return self.out(torch.cat([self.up(low), image], dim=1)).softmax(dim=1)


@clean("H", passes=3, style="module", rec={"image": IMAGE}, fresh={"image": IMAGE}, backends="onnx")
class NcVitPatches(nn.Module):
    """A small vision transformer: patches, a class token, scaled dot-product attention."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 8, 8)
        self.cls = nn.Parameter(torch.randn(1, 1, 16) * 0.1)
        self.pos = nn.Parameter(torch.randn(1, 10, 16) * 0.1)
        self.qkv, self.proj, self.norm = nn.Linear(16, 48), nn.Linear(16, 16), nn.LayerNorm(16)
        self.head = nn.Linear(16, 4)

    def forward(self, image: Tensor) -> Tensor:
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), dim=1) + self.pos
        q, k, v = self.qkv(self.norm(x)).reshape(1, 10, 3, 4, 4).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(1, 10, 16)
        return self.head((x + self.proj(y))[:, 0])


@clean("H", passes=3, rec={"frame": array(PIXELS)}, backends="jit")
class NcNumpyImageToTorch:
    """A camera's NumPy frame: BGR to RGB, from_numpy, channels first."""

    def __init__(self) -> None:
        self.conv = nn.Conv2d(3, 4, 5, stride=3)

    def __call__(self, frame) -> Tensor:
        rgb = frame[..., ::-1].copy()
        x = torch.from_numpy(rgb).permute(0, 3, 1, 2).float() / 127.5 - 1.0
        return self.conv(x).mean(dim=(2, 3))


@clean("H", passes=3, rec={"heat": normal(1, 5, 8, 8)}, backends="jit")
class NcHeatmapArgmaxPeaks:
    """The peak of each heat map, from the flat argmax, refined by a soft-argmax."""

    def __init__(self) -> None:
        self.ticks = torch.arange(8.0)

    def __call__(self, heat: Tensor) -> dict[str, Tensor]:
        flat = heat.flatten(2)
        score, index = flat.max(dim=-1)
        peaks = torch.stack([index % 8, torch.div(index, 8, rounding_mode="floor")], dim=-1)
        p = flat.softmax(-1).view_as(heat)
        soft = torch.stack(
            [(p.sum(2) * self.ticks).sum(-1), (p.sum(3) * self.ticks).sum(-1)], dim=-1
        )
        return {"peaks": peaks, "soft": soft, "score": score}
