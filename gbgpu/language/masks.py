"""Masks: which entries of an output a statement may write."""

from typing import Any

from .. import settings
from ..errors import DimensionMismatch, InvalidValue, fixed, message
from ..semiring._operators import BinaryOp, SelectOp, UnaryOp
from ..semiring._types import BOOL


class _Replace:
    """The sentinel `replace`: entries of the output that the mask does not let through are deleted."""

    def __repr__(self) -> str:
        return "replace"

    def __reduce__(self) -> str:
        return "replace"


replace = _Replace()


class Mask:
    """The entries that a statement may write: structure (`.S`) or values (`.V`) of an object, or the complement (`~`).

    Masks combine with `&` and `|`.

    Attributes
    ----------
    parent : Vector or Matrix
        The object.
    structural : bool
        Whether the entries that are present count; if not, those that are present and true.
    complement : bool
        Whether it is the complement.
    """

    __slots__ = ("_parent", "_structural", "_complement")
    __array_ufunc__ = None
    parent, structural, complement = fixed("parent"), fixed("structural", "x.S or x.V"), fixed("complement", "~mask")

    def __init__(self, parent: Any, structural: bool, complement: bool = False):
        self._parent, self._structural, self._complement = parent, structural, complement

    structure = property(lambda self: self.structural)
    value = property(lambda self: not self.structural)

    @property
    def name(self) -> str:
        """The mask as text, `~v.S`."""
        return f"{'~' if self.complement else ''}{self.parent.name}.{'S' if self.structural else 'V'}"

    def __invert__(self) -> "Mask":
        return Mask(self.parent, self.structural, not self.complement)

    def __and__(self, other: Any) -> "Mask":
        """Entries that both let through."""
        one, two = self, checked_mask(other)
        if one.complement and two.complement:
            return ~(~one | ~two)
        if one.complement:
            one, two = two, one
        return Mask(one._pattern().dup(mask=two), True)

    def __or__(self, other: Any) -> "Mask":
        """Entries that one of them lets through."""
        other = checked_mask(other)
        if self.complement or other.complement:
            return ~(~self & ~other)
        either = BinaryOp.registry["pair"](self._pattern() | other._pattern())
        return Mask(either.new(BOOL), True)

    __rand__, __ror__ = __and__, __or__

    def _pattern(self) -> Any:
        """True where the mask lets through, nothing elsewhere. The mask must not be a complement."""
        parent = self.parent
        if not self.structural:
            parent = parent.select(SelectOp.registry["valuene"], 0).new()
        return parent.apply(UnaryOp.registry["one"]).new(BOOL)

    def new(
        self, dtype: Any = None, *, complement: bool = False, mask: Any = None, name: str | None = None, **opts: Any
    ) -> Any:
        """An object that is True wherever the mask lets through.

        Parameters
        ----------
        dtype : dtype, optional
            By default BOOL.
        complement : bool
            Whether it is True wherever the mask does not.
        mask : Mask, optional
            A second mask, which must let through as well.
        name : str, optional
            The object's name.
        **opts : str
            Ignored.

        Returns
        -------
        Vector or Matrix
            A new one, of the parent's shape.
        """
        both = self if mask is None else self & checked_mask(mask)
        made = self.parent.dup(BOOL if dtype is None else dtype, clear=True, name=name)
        made(~both if complement else both) << True
        return made

    def __eq__(self, other: object) -> bool:
        raise TypeError("__eq__ not defined for masks. Hint: m.new() makes an object that can be compared")

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("__bool__ not defined for masks. Hint: x.nvals counts entries")

    def __repr__(self) -> str:
        return self.name


def checked_mask(mask: Any) -> Mask:
    """A mask, or a BOOL object or expression taken as its values."""
    if isinstance(mask, Mask):
        return mask
    return Mask(values_of(mask).parent._materialized(), False)


def values_of(x: Any) -> Mask:
    """The values of a BOOL object or expression as a mask. Raises TypeError."""
    if not getattr(x, "ndim", 0) or not hasattr(x, "_computed"):
        raise TypeError(message("a mask such as v.S, ~v.S, v.V", type(x).__name__))
    if x.dtype is not BOOL:
        raise TypeError(
            f"Mask must be a BOOL object (got {x.dtype}) or say what it uses: structure (M.S) or values (M.V)"
        )
    return Mask(x, False)


def fitting(mask: Mask, shape: tuple, session: Any) -> Mask:
    """The mask, if it has this shape and belongs to the session."""
    if mask.parent.shape != shape:
        raise DimensionMismatch(
            message(f"a mask of shape {shape}", f"{mask.parent.shape}", "a mask has the shape of the output")
        )
    one_session(mask.parent, session)
    return mask


def one_session(operand: Any, session: Any) -> None:
    """Raise InvalidValue unless the operand belongs to the session."""
    if operand._session is not session:
        if (recording := settings.recording()) is not None:
            recording.outside()
        raise InvalidValue(
            message("operands of one session", "operands of two", "gb.init ended the first session; make them again")
        )
