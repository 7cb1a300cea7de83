"""Native code (layer 6): fused elementwise loops by LLVM; needs the extra `compile`."""

from __future__ import annotations

from pullback.native.fuse import FusedLoop, Instruction

__all__ = ["FusedLoop", "Instruction"]
