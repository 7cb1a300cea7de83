"""The one device there is (layer 1): PyTorch's `device` with nothing but the CPU behind it."""

from __future__ import annotations

from typing import Any

from pullback.core.callsite import with_site
from pullback.errors import ArgumentRuntimeError, ArgumentTypeError, DeviceError

# The names that PyTorch knows; all but the first are refused where a tensor would go there.
KNOWN = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, "
    "mps, meta, hpu, mtia, privateuseone"
)


class device:  # noqa: N801  PyTorch's name
    """`device("cpu")`; the name of another device can be held, but nothing can be put there.

    Raises RuntimeError for a text that names no device.
    """

    __slots__ = ("type", "index")

    def __init__(self, type: Any = "cpu", index: int | None = None) -> None:  # noqa: A002
        given: Any = type
        if isinstance(given, device):
            given, index = str(given), given.index
        if isinstance(given, int) and not isinstance(given, bool):
            raise ArgumentRuntimeError(
                with_site(
                    "Cannot access accelerator device when none is available: device "
                    f"{given} is the number of a GPU; use device='cpu'"
                )
            )
        if not isinstance(given, str):
            raise ArgumentTypeError(
                with_site(
                    f"argument 'device' must be torch.device, not {given.__class__.__name__}"
                )
            )
        if not given:
            raise ArgumentRuntimeError(with_site("Device string must not be empty"))
        name, colon, number = given.partition(":")
        if not name.isidentifier() or (colon and not number.isdecimal()) or (
            name not in KNOWN.split(", ") and any(c.isdigit() for c in name)
        ):
            raise ArgumentRuntimeError(with_site(f"Invalid device string: '{given}'"))
        if name not in KNOWN.split(", "):
            raise ArgumentRuntimeError(
                with_site(
                    f"Expected one of {KNOWN} device type at start of device string: {name}"
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
    if given is None or given is CPU:
        return
    wanted = given if isinstance(given, device) else device(given)
    if wanted.type != "cpu":
        raise DeviceError(
            with_site(
                "Torch not compiled with CUDA enabled: Pullback runs on the CPU only, got device "
                f"{str(wanted)!r}; use device='cpu'"
            )
        )
