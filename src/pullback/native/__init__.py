"""Native code (layer 6): one fused elementwise loop, compiled by LLVM; needs the extra `compile`."""

from __future__ import annotations

from pullback.native.fuse import FusedLoop, Instruction

__all__ = ["FusedLoop", "Instruction"]
