"""The text of a tensor, character for character as PyTorch prints it (layer 1).

Only what is shown is formatted, so a large tensor costs no more than its edges.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pullback.core import dtypes
from pullback.core.callsite import with_site
from pullback.errors import ArgumentTypeError, ArgumentValueError
from pullback.typing import Array, NumpyDtype


class Options:
    """How tensors print; one set for the process, as in PyTorch."""

    precision: int = 4  # digits after the point
    threshold: float = 1000  # more elements than this are summarised
    edgeitems: int = 3  # shown at each end of a summarised dim
    linewidth: int = 80  # characters
    sci_mode: bool | None = None  # None: decided by the values


PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Change how tensors print.

    precision: digits after the decimal point.  threshold: number of elements above which the middle
    is left out.  edgeitems: elements kept at each end then.  linewidth: characters per line.
    profile: "default", "short" or "full".  sci_mode: force scientific notation on or off; each
    call sets it, None means that the values decide.

    Raises ValueError for an unknown profile.
    """
    if profile is not None:
        if profile not in PROFILES:
            raise ArgumentValueError(
                with_site(
                    f"set_printoptions: profile must be one of {list(PROFILES)}, got {profile!r}"
                )
            )
        for name, value in PROFILES[profile].items():
            setattr(Options, name, value)
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems,
             "linewidth": linewidth}  # fmt: skip
    for name, number in given.items():
        if number is not None:
            setattr(Options, name, number)
    Options.sci_mode = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, by name."""
    return {n: getattr(Options, n) for n in ("precision", "threshold", "edgeitems", "linewidth",
                                             "sci_mode")}  # fmt: skip


@contextlib.contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Options that hold inside a `with` block."""
    before = get_printoptions()
    set_printoptions(**options)
    try:
        yield
    finally:
        set_printoptions(**before)


# ---------------------------------------------------------------- one element
class Format:
    """How the elements of one tensor are written: notation and common width."""

    def __init__(self, values: Array) -> None:
        self.width = 1
        self.floating = values.dtype.kind == "f"
        self.whole = True  # all values are integers: "1." rather than "1.0000"
        self.scientific = False
        if self.floating:
            self._measure(values.astype(np.float64).ravel())
        elif values.size:
            self.width = max(len(str(v)) for v in values.ravel().tolist())

    def _measure(self, values: Array) -> None:
        shown = values[np.isfinite(values) & (values != 0)]
        if not shown.size:
            return
        size = np.abs(shown)
        low, high = float(size.min()), float(size.max())
        self.whole = bool((shown == np.ceil(shown)).all())
        with np.errstate(over="ignore"):
            ratio = float(np.float64(high) / np.float64(low))
        self.scientific = ratio > 1000.0 or high > 1.0e8 or (not self.whole and low < 1.0e-4)
        if Options.sci_mode is not None:
            self.scientific = Options.sci_mode
        precision = Options.precision
        if self.scientific:
            texts = [f"{v:.{precision}e}" for v in shown.tolist()]
        elif self.whole:
            texts = [f"{v:.0f}." for v in shown.tolist()]
        else:
            texts = [f"{v:.{precision}f}" for v in shown.tolist()]
        self.width = max(len(t) for t in texts)

    def text(self, value: Any) -> str:
        """One element, padded to the common width."""
        if not self.floating:
            return str(value).rjust(self.width)
        if self.scientific:
            found = f"{value:.{Options.precision}e}"
        elif self.whole:
            found = f"{value:.0f}" + ("." if math.isfinite(value) else "")
        else:
            found = f"{value:.{Options.precision}f}"
        return found.rjust(self.width)


class ComplexFormat:
    """Real and imaginary parts, each with a width of its own."""

    def __init__(self, values: Array) -> None:
        self.real, self.imag = Format(values.real), Format(values.imag)
        self.width = self.real.width + self.imag.width + 1

    def text(self, value: Any) -> str:
        """`a+bj`, the real part padded."""
        imag = self.imag.text(value.imag).lstrip()
        sign = "" if imag[0] in "+-" else "+"
        return f"{self.real.text(value.real)}{sign}{imag}j"


def format_of(values: Array) -> Format | ComplexFormat:
    """The common format of some values."""
    return ComplexFormat(values) if values.dtype.kind == "c" else Format(values)


# ---------------------------------------------------------------- arrays
def edges(array: Array) -> Array:
    """What a summary shows of an array: the ends of every dim."""
    n = Options.edgeitems
    for axis, size in enumerate(array.shape):
        if size > 2 * n:
            keep = np.r_[0:n, size - n : size]
            array = np.take(array, keep, axis)
    return array


def array_text(array: Array, indent: int, form: Format | ComplexFormat, short: bool) -> str:
    """The bracketed text of an array, continued lines indented."""
    if array.ndim == 0:
        return form.text(array.item())
    if array.ndim == 1:
        return _row(array, indent, form, short)
    n = Options.edgeitems
    if short and len(array) > 2 * n:
        parts = [array_text(a, indent + 1, form, short) for a in array[:n]]
        parts.append("...")
        parts += [array_text(a, indent + 1, form, short) for a in array[len(array) - n :]]
    else:
        parts = [array_text(a, indent + 1, form, short) for a in array]
    separator = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + separator.join(parts) + "]"


def _row(array: Array, indent: int, form: Format | ComplexFormat, short: bool) -> str:
    n = Options.edgeitems
    if short and not n:
        texts = ["..."]
    elif short and len(array) > 2 * n:
        texts = [form.text(v) for v in array[:n].tolist()]
        texts.append(" ...")
        texts += [form.text(v) for v in array[len(array) - n :].tolist()]
    else:
        texts = [form.text(v) for v in array.tolist()]
    per_line = max(1, (Options.linewidth - indent) // (form.width + 2))
    lines = [", ".join(texts[i : i + per_line]) for i in range(0, len(texts), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


# ---------------------------------------------------------------- tensors
def tensor_text(
    array: Array,
    *,
    requires_grad: bool = False,
    grad_fn: str | None = None,
    default_dtype: NumpyDtype = dtypes.FLOAT32,
    prefix: str = "tensor(",
    suffixes: Sequence[str] = (),
    tangent: str | None = None,
) -> str:
    """`repr` of a tensor with these elements and this autograd state."""
    indent = len(prefix)
    notes = []
    plain = (default_dtype, dtypes.complex_of(default_dtype), dtypes.INT64, dtypes.BOOL)
    if not array.size:
        if array.ndim != 1:
            notes.append(f"size={tuple(array.shape)}")
        if array.dtype != default_dtype:
            notes.append(f"dtype={dtypes.public(array.dtype)}")
        body = "[]"
    else:
        if array.dtype not in plain:
            notes.append(f"dtype={dtypes.public(array.dtype)}")
        short = array.size > Options.threshold
        shown = edges(array) if short else array
        body = array_text(array, indent, format_of(shown), short)
    notes += suffixes
    if grad_fn is not None:
        notes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        notes.append("requires_grad=True")
    if tangent is not None:
        notes.append(f"tangent={tangent}")
    return _with_notes(prefix + body, notes, indent)


def _with_notes(text: str, notes: list[str], indent: int) -> str:
    """Notes after the elements, on a new line when the last one is full."""
    used = len(text) - text.rfind("\n") + 1
    for note in notes:
        if used + len(note) + 2 > Options.linewidth:
            text += ",\n" + " " * indent + note
            used = indent + len(note)
        else:
            text += ", " + note
            used += len(note) + 2
    return text + ")"


def parameter_text(array: Array, *, requires_grad: bool, default_dtype: NumpyDtype) -> str:
    """`repr` of a Parameter."""
    body = tensor_text(array, requires_grad=requires_grad, default_dtype=default_dtype)
    return "Parameter containing:\n" + body


def scalar_format(array: Array, spec: str) -> str:
    """`format(tensor, spec)`: of the number that a 0-d tensor holds.

    Raises TypeError for more dims, as `object.__format__` does.
    """
    if array.ndim:
        raise ArgumentTypeError(
            with_site(
                "unsupported format string passed to Tensor.__format__: got "
                f"{spec!r} for a tensor of shape {list(array.shape)}; format x.item() of one "
                "element"
            )
        )
    return format(array.item(), spec)
