"""What `veracity.parity` is made of, and `rerun`, which runs a repro again without torch."""

from veracity.drift.repro import Rerun, rerun

__all__ = ["Rerun", "rerun"]
