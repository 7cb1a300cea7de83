"""Recording a function as a program over primitives (layer 5)."""

from __future__ import annotations

from pullback.tracing.program import Program
from pullback.tracing.tracer import trace

__all__ = ["Program", "trace"]
