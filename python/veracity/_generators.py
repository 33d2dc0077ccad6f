"""torch's random numbers, left as they were, and whether a GPU draws some."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def generators_kept() -> Iterator[None]:
    """Put torch's generators back afterwards: the CPU's, and those of the GPUs if they are in use.

    Asking a GPU that nobody has used yet would take seconds and memory.
    """
    import torch  # noqa: TID251 (only those who use torch come here)

    in_use = range(torch.cuda.device_count()) if gpu_in_use() else ()
    with torch.random.fork_rng(devices=list(in_use)):
        yield


def gpu_in_use() -> bool:
    """Say whether this process has used a GPU."""
    import torch  # noqa: TID251 (as above)

    is_initialized: Callable[[], bool] = torch.cuda.is_initialized
    return is_initialized()
