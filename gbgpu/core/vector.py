"""The class of vectors."""

from gbgpu import Vector

__all__ = ["Vector"]
