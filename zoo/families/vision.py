"""vision: encoders, heads and warps as they stand in front of policies, with torchvision."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from attacks.draws import integers, normal, uniform
from torch import Tensor, nn

from zoo.register import policy

_TORCHVISION = ("torchvision",)


def lively(model: nn.Module, gain: float = 1.0) -> nn.Module:
    """Give a network weights and statistics as training leaves them: none is zero or one."""
    with torch.no_grad():
        for value in model.parameters():
            if value.dim() > 1:
                value.normal_(0, gain * value[0].numel() ** -0.5)
            else:
                value.add_(0.1 * torch.randn_like(value))
        for name, value in model.named_buffers():
            if name.endswith("running_mean"):
                value.normal_(0, 0.2)
            if name.endswith("running_var"):
                value.uniform_(0.5, 1.5)
    return model.eval()


def conv_block(channels: int, out: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU(True)
    )


@policy(
    "vision",
    inputs={"image": integers(0, 256, 1, 40, 56, 3, dtype=torch.uint8)},
    needs=_TORCHVISION,
    passes=3,
)
def vision_resnet18():
    """A camera picture, resized with antialias and normalised as for ImageNet."""
    from torchvision.models import resnet18
    from torchvision.transforms import functional as tf

    net = resnet18(weights=None, num_classes=8)
    lively(net, 1.4)

    def step(image: Tensor) -> Tensor:
        x = image.permute(0, 3, 1, 2).float() / 255.0
        x = tf.resize(x, [32, 32], antialias=True)
        x = tf.normalize(x, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
        return net(x)

    return step


@policy(
    "vision",
    inputs={"image": integers(0, 256, 3, 36, 48, dtype=torch.uint8)},
    needs=_TORCHVISION,
)
def vision_transforms_v2():
    """`transforms.v2` as a pipeline, on a single picture, and a few MobileNet blocks."""
    from torchvision.models.mobilenetv2 import InvertedResidual
    from torchvision.transforms import v2

    prepare = v2.Compose(
        [
            v2.Resize(32, antialias=True),
            v2.CenterCrop(28),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.5, 0.5, 0.5], [0.25, 0.25, 0.25]),
        ]
    )
    net = nn.Sequential(
        conv_block(3, 16, 2),
        InvertedResidual(16, 16, 1, 2),
        InvertedResidual(16, 24, 2, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(24, 6),
    )
    lively(net, 1.4)

    def step(image: Tensor) -> Tensor:
        return net(prepare(image).unsqueeze(0))

    return step


@policy("vision", inputs={"image": uniform(0, 1, 1, 3, 32, 32)}, needs=_TORCHVISION)
def vision_deeplab():
    """DeepLabV3 of torchvision on a small backbone: logits, and the class of every pixel."""
    from torchvision.models.segmentation.deeplabv3 import DeepLabHead, DeepLabV3

    class Backbone(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = conv_block(3, 12, 2)
            self.body = nn.Sequential(conv_block(12, 16, 2), conv_block(16, 16))

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"out": self.body(self.stem(x))}

    net = lively(DeepLabV3(Backbone(), DeepLabHead(16, 4, (2, 4))))

    def step(image: Tensor) -> dict[str, Tensor]:
        logits = net((image - 0.45) / 0.225)["out"]
        return {"logits": logits, "kinds": logits.argmax(1)}

    return step


@policy(
    "vision", inputs={"image": uniform(0, 1, 1, 3, 32, 48)}, style="module", name="vision_depth"
)
class DepthNet(nn.Module):
    """Depth with skip connections and bilinear upsampling, and the points that it stands for."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList(
            [conv_block(3, 8, 2), conv_block(8, 16, 2), conv_block(16, 24, 2)]
        )
        self.up = nn.ModuleList([conv_block(24 + 16, 16), conv_block(16 + 8, 8)])
        self.head = nn.Conv2d(8, 1, 3, padding=1, padding_mode="reflect")
        v, u = torch.meshgrid(torch.arange(32.0), torch.arange(48.0), indexing="ij")
        self.register_buffer("rays", torch.stack([(u - 23.5) / 40, (v - 15.5) / 40, 0 * u + 1]))
        lively(self, 1.4)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        x, skips = image, []
        for block in self.down:
            x = block(x)
            skips.append(x)
        for block, skip in zip(self.up, skips[-2::-1], strict=True):
            x = F.interpolate(x, size=skip.shape[-2:], mode="bilinear", align_corners=False)
            x = block(torch.cat([x, skip], dim=1))
        x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True)
        depth = F.softplus(self.head(x)) + 0.1
        return {"depth": depth, "points": (depth * self.rays).flatten(2).transpose(1, 2)}


@policy("vision", inputs={"image": normal(2, 3, 32, 32)})
def vision_keypoints():
    """Soft-argmax of heat maps: places, how wide they are, and how sure."""
    net = nn.Sequential(conv_block(3, 16, 2), conv_block(16, 16), nn.Conv2d(16, 5, 1))
    lively(net, 1.6)
    steps = torch.linspace(-1.0, 1.0, 16)

    def step(image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        heat = net(image)
        shares = F.softmax(heat.flatten(2) / 0.5, dim=-1).view_as(heat)
        x, y = (shares.sum(2) * steps).sum(-1), (shares.sum(3) * steps).sum(-1)
        square = (shares.sum(2) * steps**2).sum(-1) - x.square()
        return torch.stack([x, y], dim=-1), square, shares.amax(dim=(2, 3))

    return step


@policy("vision", inputs={"image": uniform(0, 1, 1, 3, 24, 32)}, passes=6, name="vision_flow_warp")
class FlowWarp:
    """Optical flow between this picture and the last one, which is warped with it."""

    def __init__(self) -> None:
        self.net = nn.Sequential(conv_block(6, 16), conv_block(16, 16), nn.Conv2d(16, 2, 3, 1, 1))
        lively(self.net, 1.2)
        self.before = torch.full((1, 3, 24, 32), 0.5)
        self.flow = torch.zeros(1, 2, 24, 32)

    def __call__(self, image: Tensor) -> dict[str, Tensor]:
        self.flow = 0.5 * self.flow + self.net(torch.cat([self.before, image], 1))
        height, width = image.shape[-2:]
        ys, xs = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        at = torch.stack([xs, ys]).float()[None] + self.flow
        grid = torch.stack([2 * at[:, 0] / (width - 1) - 1, 2 * at[:, 1] / (height - 1) - 1], -1)
        warped = F.grid_sample(
            self.before, grid, mode="bilinear", padding_mode="border", align_corners=True
        )
        error = (warped - image).abs().mean(1, keepdim=True)
        self.before = image
        return {"flow": self.flow, "error": error}


@policy(
    "vision",
    inputs={
        "image": normal(1, 3, 32, 32),
        "corner": uniform(0, 6, 3, 2),
        "size": uniform(3, 9, 3, 2),
    },
    fresh={"corner": uniform(0, 12, 3, 2), "size": uniform(2, 16, 3, 2)},
    needs=_TORCHVISION,
)
def vision_roi_align():
    """Features of boxes that a tracker gives, and a head over them."""
    from torchvision.ops import box_convert, clip_boxes_to_image, roi_align

    backbone = lively(nn.Sequential(conv_block(3, 12, 2), conv_block(12, 16)), 1.4)
    head = lively(nn.Sequential(nn.Flatten(), nn.Linear(16 * 9, 32), nn.ReLU(), nn.Linear(32, 5)))

    def step(image: Tensor, corner: Tensor, size: Tensor) -> dict[str, Tensor]:
        boxes = box_convert(torch.cat([corner, size], dim=1), "xywh", "xyxy")
        boxes = clip_boxes_to_image(boxes, (32, 32))
        features = roi_align(backbone(image), [boxes], 3, 0.5, sampling_ratio=2, aligned=True)
        return {"boxes": boxes, "scores": head(features).softmax(-1)}

    return step


@policy("vision", inputs={"image": normal(1, 3, 32, 32)}, needs=_TORCHVISION)
def vision_detect():
    """A detection head without suppression: peaks of a centre map, the best few of them."""
    from torchvision.ops import FeaturePyramidNetwork

    stem, deep = conv_block(3, 12, 2), conv_block(12, 24, 2)
    fpn = FeaturePyramidNetwork([12, 24], 16)
    heads = nn.ModuleDict({"heat": nn.Conv2d(16, 2, 1), "size": nn.Conv2d(16, 2, 1)})
    for part in (stem, deep, fpn):
        lively(part)
    lively(heads, 0.5)

    def step(image: Tensor) -> dict[str, Tensor]:
        fine = stem(image)
        features = fpn({"fine": fine, "deep": deep(fine)})["fine"]
        heat = heads["heat"](features).sigmoid()
        peaks = heat * (heat == F.max_pool2d(heat, 3, 1, 1))
        scores, index = peaks.flatten(1).topk(5)
        kind, place = index // 256, index % 256
        sizes = F.softplus(heads["size"](features)).flatten(2)
        sizes = sizes.gather(2, place[:, None].expand(-1, 2, -1)).transpose(1, 2)
        centre = torch.stack([place % 16, place // 16], -1) * 2.0 + 1.0
        boxes = torch.cat([centre - sizes, centre + sizes], -1)
        return {"boxes": boxes, "scores": scores, "kinds": kind}

    return step


@policy(
    "vision",
    inputs={"seen": uniform(0, 4, 6, 4), "tracks": uniform(0, 4, 4, 4)},
    needs=_TORCHVISION,
)
def vision_box_ops():
    """What a tracker makes of boxes: overlaps, the best match, areas."""
    from torchvision.ops import box_area, box_convert, box_iou, generalized_box_iou

    def step(seen: Tensor, tracks: Tensor) -> dict[str, Tensor]:
        a, b = (box_convert(boxes, "cxcywh", "xyxy") for boxes in (seen, tracks))
        overlap = box_iou(a, b)
        best, index = overlap.max(dim=0)
        matched = torch.where(best[:, None] > 0.1, a[index], b)
        cost = 1 - generalized_box_iou(a, b)
        return {"matched": matched, "cost": cost, "area": box_area(matched), "index": index}

    return step


@policy("vision", inputs={"image": normal(1, 3, 16, 16)}, needs=_TORCHVISION)
def vision_deform():
    """A deformable convolution whose offsets and mask come from another one."""
    from torchvision.ops import DeformConv2d, SqueezeExcitation

    stem = conv_block(3, 8)
    where, much = nn.Conv2d(8, 18, 3, padding=1), nn.Conv2d(8, 9, 3, padding=1)
    bend, squeeze, head = (
        DeformConv2d(8, 12, 3, padding=1),
        SqueezeExcitation(12, 4),
        nn.Linear(12, 4),
    )
    for part in (stem, where, much, bend, squeeze, head):
        lively(part, 1.3)

    def step(image: Tensor) -> Tensor:
        x = stem(image)
        x = squeeze(bend(x, where(x), much(x).sigmoid()).relu())
        return head(x.amax((2, 3)))

    return step


@policy(
    "vision",
    inputs={"left": normal(1, 3, 16, 24), "right": normal(1, 3, 16, 24)},
    name="vision_correlation",
    style="module",
)
class Correlation(nn.Module):
    """RAFT in small: all pairs, a pyramid, looked up around the flow, two rounds of a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(conv_block(3, 12, 2), nn.Conv2d(12, 16, 3, 1, 1))
        self.gates = nn.Conv2d(16 + 18 + 2, 32, 3, padding=1)
        self.new = nn.Conv2d(16 + 18 + 2, 16, 3, padding=1)
        self.delta = nn.Conv2d(16, 2, 3, padding=1)
        lively(self)

    def look_up(self, pyramid: list[Tensor], at: Tensor) -> Tensor:
        offset = torch.linspace(-1, 1, 3)
        window = torch.stack(torch.meshgrid(offset, offset, indexing="ij"), -1).view(1, 3, 3, 2)
        found = []
        for level, volume in enumerate(pyramid):
            height, width = volume.shape[-2:]
            points = at.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) / 2**level + window
            scale = torch.tensor([width - 1, height - 1])
            values = F.grid_sample(volume, 2 * points / scale - 1, align_corners=True)
            found.append(values.view(1, 8, 12, -1).permute(0, 3, 1, 2))
        return torch.cat(found, dim=1)

    def forward(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        a, b = self.encode(left), self.encode(right)
        volume = torch.einsum("bchw,bcij->bhwij", a, b) / a.shape[1] ** 0.5
        pyramid = [volume.reshape(-1, 1, 8, 12)]
        pyramid.append(F.avg_pool2d(pyramid[0], 2, stride=2))
        ys, xs = torch.meshgrid(torch.arange(8.0), torch.arange(12.0), indexing="ij")
        start = torch.stack([xs, ys])[None]
        at, hidden = start, a.tanh()
        for _ in range(2):
            found = torch.cat([self.look_up(pyramid, at), at - start], 1)
            z, r = self.gates(torch.cat([hidden, found], 1)).sigmoid().chunk(2, 1)
            new = self.new(torch.cat([r * hidden, found], 1)).tanh()
            hidden = (1 - z) * hidden + z * new
            at = at + self.delta(hidden)
        return at - start, hidden.mean((2, 3))


@policy("vision", inputs={"image": normal(2, 1, 20, 20)}, name="vision_stn", style="module")
class SpatialTransformer(nn.Module):
    """A spatial transformer in front of a classifier, near the identity."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(nn.Conv2d(1, 8, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten())
        self.pose = nn.Sequential(nn.Linear(512, 16), nn.ReLU(), nn.Linear(16, 6))
        self.read = nn.Sequential(nn.Flatten(), nn.Linear(400, 24), nn.ELU(), nn.Linear(24, 4))
        self.drop = nn.Dropout2d(0.2)
        self.eval()
        with torch.no_grad():
            self.pose[2].bias.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        theta = self.pose(self.drop(self.look(image))).view(-1, 2, 3)
        grid = F.affine_grid(theta, list(image.size()), align_corners=False)
        return self.read(F.grid_sample(image, grid, align_corners=False)), theta


@policy("vision", inputs={"image": normal(1, 3, 24, 24)}, passes=6, name="vision_siamese")
class Siamese:
    """A tracker that looks for its template with a convolution, and renews it slowly."""

    def __init__(self) -> None:
        self.net = lively(nn.Sequential(conv_block(3, 12, 2), nn.Conv2d(12, 8, 3, padding=1)))
        self.template = torch.randn(1, 8, 5, 5) * 0.3

    def __call__(self, image: Tensor) -> dict[str, Tensor]:
        features = F.normalize(self.net(image), dim=1)
        answer = F.conv2d(features, self.template, padding=2)
        shares = answer.flatten(1).mul(4).softmax(-1)
        flat = features.unfold(2, 5, 1).unfold(3, 5, 1).mean((2, 3))
        self.template = 0.9 * self.template + 0.1 * flat
        return {"answer": answer, "sure": shares.max(-1).values, "template": self.template.clone()}
