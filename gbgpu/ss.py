"""What python-graphblas has in `graphblas.ss`, under the same name."""

from gbgpu.language.tools import concat, diag

__all__ = ["concat", "diag"]
