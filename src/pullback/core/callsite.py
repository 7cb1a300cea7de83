"""Where in the user's program something happened (layer 1).

A call site is a pair `(code object, instruction offset)` of the nearest frame outside this package.
It costs about 0.1 us to take, holds no frame (so no local variables stay alive), and is turned
into `file:line` and the source text only when somebody asks.
"""

from __future__ import annotations

import linecache
import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# File name -> does it belong to the package?  Reading a dict is the cheapest test there is.
INTERNAL: dict[str, bool] = {}


def is_internal(filename: str) -> bool:
    """Whether code of this file is ours; remembered by file name."""
    known = INTERNAL.get(filename)
    if known is None:
        # functools and contextlib stand between a decorated function and its caller.
        known = filename.startswith(PACKAGE) or filename.endswith(
            (os.sep + "contextlib.py", os.sep + "functools.py")
        )
        INTERNAL[filename] = known
    return known


def outside(frame: FrameType | None) -> FrameType:
    """The nearest frame, from `frame` outwards, whose code is not ours."""
    inner = frame
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:  # only ours: a thread or a finaliser that we started
        assert inner is not None
        return inner
    return frame


class CallSite(NamedTuple):
    """One place in a program: what `file:line` says, and the text there."""

    file: str
    line: int
    function: str
    source: str | None
    column: int = 0

    def __str__(self) -> str:
        text = f"{short_path(self.file)}:{self.line}"
        return f"{text}: {self.source}" if self.source else text


def short_path(file: str) -> str:
    """`file` relative to the working directory when it lies below it."""
    if file.startswith("<"):
        return file
    try:
        relative = os.path.relpath(file)
    except (ValueError, OSError):
        return file
    return file if relative.startswith("..") else relative


def resolve(code: CodeType, offset: int) -> CallSite:
    """The call site of instruction `offset` of `code`."""
    line, column = code.co_firstlineno, 0
    # Positions come one per two-byte instruction unit; offset is in bytes.
    for unit, (start, _, begin, _) in enumerate(code.co_positions()):
        if unit == offset // 2:
            line, column = start or line, begin or 0
            break
    source = linecache.getline(code.co_filename, line).strip() or None
    return CallSite(code.co_filename, line, code.co_qualname, source, column)


def here(depth: int = 1) -> CallSite:
    """The call site of whoever called into the package."""
    frame = outside(sys._getframe(depth))
    return resolve(frame.f_code, frame.f_lasti)


def at(site: CallSite | None, label: str = "at") -> str:
    """The closing line of a message that points at `site`."""
    return f"\n  {label} {site}" if site is not None else ""


def with_site(message: str, depth: int = 2) -> str:
    """`message` followed by the user's line that led here."""
    return message + at(here(depth))
