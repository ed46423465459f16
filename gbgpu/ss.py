"""What python-graphblas has in `graphblas.ss`, under the same name."""

from typing import NoReturn

from gbgpu.errors import no_attribute
from gbgpu.language.tools import concat, diag

__all__ = ["concat", "diag"]

# what else python-graphblas has -> what there is
_INSTEAD = {
    "about": "gb.device_info(), gb.__version__",
    "burble": "gb.trace() records what statements do, gb.explain() shows how they are planned",
    "config": 'gb.init("cpu:4") says on how many threads; nothing else need be set',
    **dict.fromkeys(("Context", "global_context"), 'gb.init("cpu:4") says on how many threads, or gb.init("cuda:0")'),
}


def __getattr__(name: str) -> NoReturn:
    raise no_attribute(f"module {__name__!r}", name, _INSTEAD.get(name))
