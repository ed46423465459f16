"""`gb.config`: options under python-graphblas's names.

Little is to choose: expressions used as operands are always computed.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .errors import NotImplementedException, message


class Config(Mapping):
    """Options and their values.

    Examples
    --------
        gb.config.get("autocompute")
        with gb.config.set(autocompute=True):
            ...
    """

    def __init__(self, **options: Any):
        self._options = options

    def __getitem__(self, name: str) -> Any:
        return self._options[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def set(self, arguments: Mapping | None = None, **options: Any) -> AbstractContextManager:
        """Ask for values, from now on or in a `with` block.

        Parameters
        ----------
        arguments : Mapping, optional
            Options and values.
        **options : object
            The same by name.

        Returns
        -------
        context manager
            For a `with` block.

        Raises
        ------
        KeyError
            If there is no such option.
        NotImplementedException
            If gbgpu does not have the value.
        """
        for name, value in {**(arguments or {}), **options}.items():
            if value != self._options[name]:
                raise NotImplementedException(message(f"{name}={self._options[name]}", value))
        return nullcontext(self)

    def __repr__(self) -> str:
        return f"Config({self._options})"


config = Config(autocompute=True, mapnumpy=False)
MAX_SIZE = 2**60  # sizes are below it
