"""Ten networks as people have them: exported right from one pass, without a word."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import veracity
from support.findings import about_the_code
from torch import Tensor, nn
from torchvision import models
from veracity import annotate

NETWORKS = {
    "resnet18": {},
    "mobilenet_v2": {},
    "mobilenet_v3_small": {},
    "efficientnet_b0": {},
    "squeezenet1_1": {},
    "shufflenet_v2_x0_5": {},
    "mnasnet0_5": {},
    "regnet_y_400mf": {},
    "densenet121": {},
    "vit_b_16": {"image_size": 64},
}


pytestmark = pytest.mark.usefixtures("one_thread")


def network(name: str) -> nn.Module:
    """Make a network whose outputs depend on its inputs: untrained ones often give zeros."""
    torch.manual_seed(7)
    made: nn.Module = getattr(models, name)(weights=None, num_classes=8, **NETWORKS[name])
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # the mean over all batches, that is over one
        elif isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5)
    with torch.no_grad():
        made.train()(torch.cat([picture(seed) for seed in range(10, 14)]))
    return made.eval()


def picture(seed: int) -> Tensor:
    return torch.randn(
        1, 3, 64, 64, generator=torch.Generator(torch.get_default_device()).manual_seed(seed)
    )


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_exported_right_and_in_silence(name: str, tmp_path: Path) -> None:
    model = network(name)
    with torch.no_grad(), veracity.session(name, save_path=tmp_path):
        image = annotate.input_tensors("net", {"image": picture(1)})
        annotate.output_tensors("net", {"scores": model(image)}, export_with="jit")
    result = veracity.compile_graph()
    assert result == {"net": True}
    assert not about_the_code(result.diagnostics)

    exported = torch.jit.load(str(tmp_path / name / "net.pt"))
    with torch.no_grad():
        expected, other = model(picture(2)), model(picture(3))
        found = exported(picture(2))
    scale = expected.abs().max()
    assert scale > 1e-3 and not torch.allclose(expected, other, atol=float(scale) / 100)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=float(scale) * 1e-5)
