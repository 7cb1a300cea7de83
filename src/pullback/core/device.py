"""The one device there is (layer 1): PyTorch's `device` with nothing but the CPU behind it."""

from __future__ import annotations

from typing import Any

from pullback.core.callsite import with_site
from pullback.errors import ArgumentTypeError, DeviceError


class device:  # noqa: N801  PyTorch's name
    """`device("cpu")`; every other device is refused with what to do instead."""

    __slots__ = ("type", "index")

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:  # noqa: A002
        given: Any = type
        if isinstance(given, device):
            given, index = str(given), given.index
        if not isinstance(given, str):
            raise ArgumentTypeError(
                with_site(f"device(): argument 'type' must be str, not {given.__class__.__name__}")
            )
        name, _, number = given.partition(":")
        if name not in ("cpu", "meta") or name == "meta":
            raise DeviceError(
                with_site(
                    "Torch not compiled with CUDA enabled: Pullback runs on the CPU only, got "
                    f"device {given!r}; use device='cpu'"
                )
            )
        self.type = name
        self.index = int(number) if number else index

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (str(self),)


CPU = device("cpu")


def check_device(given: Any) -> None:
    """Accept None and the CPU; refuse what does not exist."""
    if given is not None and given is not CPU:
        device(given)
