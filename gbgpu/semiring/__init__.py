"""The namespace of semirings: `semiring.min_plus`, `from gbgpu.semiring import any_pair`.

Every `<monoid>_<binary>` of the monoids and binary operators that exist is there, composed when it is first asked for.
"""

from gbgpu.semiring._algebra import Semiring, find_semiring, get_semiring, semiring_names
from gbgpu.semiring._names import namespace as _namespace
from gbgpu.semiring._operators import from_string as _from_string

__all__ = ["from_string", "get_semiring", "register_anonymous", "register_new"]

register_new = Semiring.register_new
register_anonymous = Semiring.register_anonymous


def from_string(text: str):
    """The semiring for a string.

    Parameters
    ----------
    text : str
        A name, and a type in brackets if wanted: "min_plus", "min.plus", "min_plus[INT32]".

    Returns
    -------
    Semiring
        Typed, if the string has a type.

    Raises
    ------
    ValueError
        If there is none.
    """
    return _from_string(text, "semiring")


__getattr__, __dir__ = _namespace(globals(), find_semiring, semiring_names)
