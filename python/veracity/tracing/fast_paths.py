"""Paths that torch takes only where nobody listens, and what recording does to give their values.

`nn.TransformerEncoder` with a padding mask runs on nested tensors in evaluation without gradients:
padded places come out as zeros. While a function mode is on, torch takes the other path, on which
they hold whatever attention made of the padding. The other path is recorded, and then the zeros.
Whether the mask is one that torch would take is part of what is recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from veracity.tracing.replaced import Replaced


def install(replaced: Replaced, active: Callable[[], bool]) -> None:
    """Give encoders the values of their fast path while `active`."""
    original = nn.TransformerEncoder.forward

    @functools.wraps(original)
    def forward(
        self: nn.TransformerEncoder,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        padding = src_key_padding_mask
        if padding is None or not active() or not _would_be_nested(self, src, mask):
            return original(self, src, mask, src_key_padding_mask, is_causal)
        last: Any = self.layers[-1]
        checked = getattr(self, "mask_check", True)
        hook = last.register_forward_hook(
            lambda _module, _inputs, result: _with_zeros(result, padding, checked=checked)
        )
        try:
            return original(self, src, mask, src_key_padding_mask, is_causal)
        finally:
            hook.remove()

    replaced.put(nn.TransformerEncoder, "forward", forward)


def _would_be_nested(encoder: nn.TransformerEncoder, src: Tensor, mask: Tensor | None) -> bool:
    """Say what torch decides without a session, all but the look at the mask."""
    enabled = getattr(torch.backends.mha, "get_fastpath_enabled", lambda: True)()
    first: Any = encoder.layers[0]
    learns = torch.is_grad_enabled() and (
        src.requires_grad or any(one.requires_grad for one in first.parameters())
    )
    return (
        enabled
        and bool(getattr(encoder, "use_nested_tensor", False))
        and not first.training
        and src.dim() == 3
        and mask is None
        and not torch.is_autocast_enabled()
        and not learns
    )


def _with_zeros(result: Tensor, padding: Tensor, *, checked: bool) -> Tensor:
    """Return a result with zeros where the sequence is padded at its end."""
    padded = padding if padding.dtype == torch.bool else padding != 0
    if checked:
        valid = padded.logical_not()
        places = torch.arange(valid.shape[1], device=valid.device)
        aligned = (valid == (places < valid.sum(1, keepdim=True))).all()
        padded = padded & aligned
    return result.masked_fill(padded.unsqueeze(-1), 0.0)
