"""`pullback.cuda`: what programs ask before they choose a device (layer 1).  There is none."""

from __future__ import annotations


def is_available() -> bool:
    """False: there is only the CPU."""
    return False


def device_count() -> int:
    """0: there is only the CPU."""
    return 0


def is_initialized() -> bool:
    """False: there is nothing to initialise."""
    return False


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator on a GPU."""


def manual_seed_all(seed: int) -> None:
    """Nothing: there are no generators on GPUs."""
