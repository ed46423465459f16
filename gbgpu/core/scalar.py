"""The class of scalars."""

from gbgpu import Scalar

__all__ = ["Scalar"]
