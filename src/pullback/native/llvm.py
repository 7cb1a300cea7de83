"""LLVM by way of llvmlite (layer 6): the only module that imports it, and only when called."""

from __future__ import annotations

import functools
from typing import Any

from pullback.core.callsite import with_site
from pullback.errors import UnsupportedError


@functools.cache
def bindings() -> tuple[Any, Any]:
    """`llvmlite.ir` and `llvmlite.binding`, ready for this machine."""
    try:
        import llvmlite.binding as binding
        import llvmlite.ir as ir
    except ImportError:
        raise UnsupportedError(
            with_site("native code needs llvmlite: run `pip install pullback[compile]`")
        ) from None
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return ir, binding


def target_machine() -> Any:
    """Code for this very processor, with all its vector instructions.

    Each engine needs one of its own, which it frees with itself.
    """
    _, binding = bindings()
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
    )


class Compiled:
    """Machine code of one module, given as text; freed with this object, addresses and all."""

    def __init__(self, text: str) -> None:
        _, binding = bindings()
        machine = target_machine()
        self._parsed = binding.parse_assembly(text)
        self._parsed.verify()
        options = binding.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        builder = binding.create_pass_builder(machine, options)
        builder.getModulePassManager().run(self._parsed, builder)
        self._engine = binding.create_mcjit_compiler(self._parsed, machine)
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function starts."""
        return int(self._engine.get_function_address(name))

    def assembly(self) -> str:
        """The machine code as text."""
        return str(target_machine().emit_assembly(self._parsed))
