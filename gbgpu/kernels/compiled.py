"""CPU kernels compiled by LLVM: object files, which link.py makes callable in this process or another one."""

import platform
import sys
from functools import cache
from typing import Any

from llvmlite import binding
from llvmlite.binding import newpassmanagers

from .. import settings
from . import entry
from .llvm import translated


def machine_code(text: str, types: entry.Types) -> bytes:
    """The object file of a kernel for arguments of these types. Raises Untranslatable for a text that is no kernel's.

    LLVM is asked by one thread at a time (interrupts.apart).
    """
    if settings.verbose & 4:
        print(text, file=sys.stderr)
    if not text.startswith(entry.ASSEMBLY):
        text = f"{translated(text, types)}\n{entry.text(types)}"
    module, machine = binding.parse_assembly(text), _machine(settings.optimize)
    tuning = binding.create_pipeline_tuning_options(settings.optimize)
    tuning.loop_vectorization = tuning.slp_vectorization = settings.optimize > 1
    passes = binding.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))


@cache
def _machine(level: int) -> Any:
    intel = platform.machine() in ("x86_64", "AMD64")
    return binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=level,
        reloc="static" if intel else "default",
        codemodel="jitdefault",
        jit=True,
    )


def _free_pass_managers() -> None:
    """llvmlite's pass managers inherit a `_dispose` that does nothing before the one that frees them (seen in 0.50):
    each compilation would leave 0.9 MB behind."""
    freed = newpassmanagers.NewPassManager._dispose
    for kind in (newpassmanagers.ModulePassManager, newpassmanagers.FunctionPassManager):
        if kind._dispose is not freed:
            kind._dispose = freed


_free_pass_managers()
binding.initialize_native_target()
binding.initialize_native_asmprinter()
