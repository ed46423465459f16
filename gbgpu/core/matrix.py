"""The classes of matrices."""

from gbgpu import Matrix, TransposedMatrix

__all__ = ["Matrix", "TransposedMatrix"]
