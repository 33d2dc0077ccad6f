"""torch's random numbers, left as they were."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Put torch's generators back afterwards: the CPU's, and those of the GPUs if they are in use.

    Asking a GPU that nobody has used yet would take seconds and memory.
    """
    import torch  # noqa: TID251 (only those who use torch come here)

    is_initialized: Callable[[], bool] = torch.cuda.is_initialized
    in_use = range(torch.cuda.device_count()) if is_initialized() else ()
    with torch.random.fork_rng(devices=list(in_use)):
        yield
