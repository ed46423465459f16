"""A hint to the processor, in terms of numba: an element will be read soon."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_READ, _STAYS, _DATA = 0, 3, 1  # how llvm.prefetch is told what is wanted


@intrinsic
def fetch(context: Any, array: Any, at: Any) -> Any:
    """Bring array[at] near, for at >= 0; of a place outside nothing comes, and nothing happens."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = cgutils.create_struct_proxy(signature.args[0])(context, builder, value=arguments[0])
        bytes, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [bytes, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [bytes], kind)
        place = builder.bitcast(builder.gep(held.data, [arguments[1]]), bytes)
        builder.call(hint, [place, number(_READ), number(_STAYS), number(_DATA)])
        return context.get_dummy_value()

    return types.void(array, types.uintp), written
