"""timm: image encoders from `create_model`, with heads for actions."""

from __future__ import annotations

import torch
from attacks.draws import integers, normal, uniform
from torch import Tensor, nn

from zoo.families.vision import lively
from zoo.register import policy

_TIMM = ("timm",)


@policy("timm", inputs={"image": uniform(0, 1, 1, 3, 32, 32)}, needs=_TIMM)
def timm_vit_tiny():
    """A ViT of which all tokens are used, normalised as its configuration says."""
    import timm

    net = timm.create_model(
        "vit_tiny_patch16_224", img_size=32, patch_size=8, embed_dim=48, depth=3, num_heads=3,
        num_classes=0, global_pool="",
    )  # fmt: skip
    lively(net)
    config = timm.data.resolve_model_data_config(net)
    mean, std = (torch.tensor(config[key]).view(1, 3, 1, 1) for key in ("mean", "std"))
    head = nn.Linear(48, 7)

    def step(image: Tensor) -> tuple[Tensor, Tensor]:
        tokens = net.forward_features((image - mean) / std)
        return head(tokens[:, 0]), tokens[:, 1:].mean(1)

    return step


@policy("timm", inputs={"image": normal(1, 3, 48, 48)}, needs=_TIMM, passes=3)
def timm_efficientnet():
    import timm

    return _called(lively(timm.create_model("efficientnet_lite0", num_classes=6), 1.4))


@policy("timm", inputs={"image": normal(1, 4, 32, 32)}, needs=_TIMM)
def timm_convnext_atto():
    """Pictures with depth as the fourth channel."""
    import timm

    net = timm.create_model(
        "convnext_atto", in_chans=4, depths=(1, 1, 2, 1), dims=(16, 24, 32, 48), num_classes=6
    )
    return _called(lively(net))


@policy("timm", inputs={"image": normal(1, 3, 64, 64)}, needs=_TIMM, passes=3)
def timm_edgenext():
    import timm

    net = timm.create_model("edgenext_xx_small", num_classes=6, dims=(16, 24, 32, 48))
    return _called(lively(net))


@policy("timm", inputs={"image": normal(1, 3, 32, 32)}, needs=_TIMM)
def timm_xcit_nano():
    """Attention over channels, and positions from a Fourier encoding."""
    import timm

    net = timm.create_model(
        "xcit_nano_12_p8_224", img_size=32, embed_dim=32, depth=2, num_heads=2, num_classes=6
    )
    return _called(lively(net))


@policy("timm", inputs={"image": normal(1, 3, 64, 64)}, needs=_TIMM, passes=3)
def timm_mobilevit():
    import timm

    return _called(lively(timm.create_model("mobilevit_xxs", num_classes=6), 1.2))


@policy("timm", inputs={"image": normal(1, 3, 64, 64)}, needs=_TIMM, passes=3)
def timm_swin_tiny():
    """Shifted windows, which need a mask."""
    import timm

    net = timm.create_model(
        "swin_tiny_patch4_window7_224", img_size=64, window_size=4, embed_dim=16,
        depths=(2, 2), num_heads=(2, 4), num_classes=6,
    )  # fmt: skip
    return _called(lively(net))


@policy("timm", inputs={"image": normal(1, 3, 48, 48)}, needs=_TIMM, passes=3)
def timm_regnet():
    """The features of several stages, pooled and joined."""
    import timm

    net = timm.create_model("regnety_002", features_only=True, out_indices=(1, 2, 3))
    lively(net, 1.4)
    head = nn.Linear(sum(net.feature_info.channels()), 6)

    def step(image: Tensor) -> Tensor:
        return head(torch.cat([stage.mean((2, 3)) for stage in net(image)], dim=1))

    return step


@policy("timm", inputs={"image": integers(0, 256, 1, 32, 32, 3, dtype=torch.uint8)}, needs=_TIMM)
def timm_mixer():
    from timm.models import MlpMixer

    net = MlpMixer(num_classes=6, img_size=32, patch_size=8, embed_dim=32, num_blocks=2)
    lively(net)

    def step(image: Tensor) -> Tensor:
        return net(image.permute(0, 3, 1, 2) / 127.5 - 1)

    return step


@policy("timm", inputs={"image": normal(1, 3, 64, 64)}, needs=_TIMM, passes=3)
def timm_levit():
    """Attention with learned biases, kept in a cache while it is evaluated."""
    import timm

    net = timm.create_model(
        "levit_128s", img_size=64, embed_dim=(32, 48, 64), depth=(1, 1, 1), num_heads=(2, 3, 4),
        key_dim=8, num_classes=6,
    )  # fmt: skip
    return _called(lively(net, 1.2))


@policy(
    "timm",
    inputs={"image": normal(1, 3, 32, 32)},
    needs=_TIMM,
    passes=6,
    name="timm_history",
)
class History:
    """Features of the last pictures in a queue, which a small attention pool reads."""

    def __init__(self) -> None:
        import timm
        from timm.layers import AttentionPoolLatent

        self.net = lively(
            timm.create_model(
                "resnet10t", num_classes=0, stem_width=8, channels=(8, 16, 24, 32), in_chans=3
            ),
            1.4,
        )
        self.pool = lively(AttentionPoolLatent(32, num_heads=2, mlp_ratio=2.0))
        self.past = [torch.zeros(1, 32) for _ in range(3)]

    def __call__(self, image: Tensor) -> Tensor:
        self.past = [*self.past[1:], self.net(image)]
        return self.pool(torch.stack(self.past, dim=1))


def _called(net: nn.Module):
    def step(image: Tensor) -> Tensor:
        return net(image)

    return step
