"""Running NumPy without its floating-point warnings (layer 1).

PyTorch never warns about log(0) or an overflow: the infinity or NaN is the answer.  NumPy warns,
unless its error state says otherwise, and that state is the user's: we may not change it.  Entering
`np.errstate` costs 0.8 us per operation.  NumPy keeps the state in a context variable, so a
`contextvars.Context` in which it was silenced once does the same for 25 ns a call, and leaves the
user's own state alone.  A context cannot be entered by two threads at once: each thread has one.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from typing import Any

import numpy as np


def silent_context() -> contextvars.Context:
    """A new context in which NumPy ignores floating-point conditions."""
    context = contextvars.Context()
    context.run(np.seterr, all="ignore")
    return context


class Quiet(threading.local):
    """`quiet.run(f, *args, **kwargs)` calls f with NumPy silenced, in any thread."""

    def __init__(self) -> None:
        self.run: Callable[..., Any] = silent_context().run
        self.whole_pass: Callable[..., Any] = silent_context().run
        self.busy = False  # whether `whole_pass` is in use: a context cannot be entered twice


quiet = Quiet()


def run_again(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `quiet.run` does, where the thread's context is in use already (a finaliser)."""
    return silent_context().run(function, *args, **kwargs)
