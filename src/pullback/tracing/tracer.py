"""Recording a function: run it once with traced payloads (layer 5)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.callsite import with_site
from pullback.eager.tensor import Tensor, wrap
from pullback.eager.traced import Recorder, Ref, Traced
from pullback.errors import ArgumentTypeError
from pullback.tracing.program import Program


def trace(func: Callable[..., Any], *examples: Tensor) -> Program:
    """The program that `func` runs on tensors like `examples`, backward passes included.

    Shapes, dtypes, `requires_grad` and Python values are fixed; a branch on a tensor's value
    raises TracingError at its line.

    >>> import pullback
    >>> program = pullback.tracing.trace(lambda x: x * 2 + 1, pullback.ones(3))
    >>> program.replay(pullback.zeros(3).numpy())[0].tolist()
    [1.0, 1.0, 1.0]
    """
    recorder = Recorder()
    inner = []
    for i, x in enumerate(examples):
        if not isinstance(x, Tensor) or type(x._data) is not np.ndarray:
            raise ArgumentTypeError(
                with_site(f"trace: example {i} must be a plain Tensor, not {type(x).__name__}")
            )
        leaf = wrap(recorder.value(x._data))
        leaf._requires_grad = x._requires_grad
        inner.append(leaf)
    result = func(*inner)
    leaves, _ = tree.flatten(result)
    outputs: list[Any] = []
    for r in leaves:
        payload = r._data if isinstance(r, Tensor) else r
        outputs.append(Ref(payload.number) if isinstance(payload, Traced) else payload)
    return Program(
        range(len(inner)), outputs, recorder.instructions, recorder.shapes
    ).live()
