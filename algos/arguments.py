"""What the commands share: types of their arguments, the session that these ask for, and what goes to stderr."""

import argparse
import os
import sys
from typing import Any

import gbgpu as gb
from algos.graphs import parse_weights
from gbgpu import errors

QUIET = "no progress on stderr"


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def weights(text: str) -> tuple[int, int]:
    try:
        return parse_weights(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def dtype(text: str) -> Any:
    try:
        return gb.dtypes.lookup_dtype(text)
    except (ValueError, errors.NotImplementedException) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def operator(text: str) -> str:
    try:
        gb.binary.from_string(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"unknown operator {text!r}") from None
    return text


def begin(arguments: argparse.Namespace) -> None:
    """The session that the arguments ask for; of several ranks the first one tells what comes of it."""
    name = arguments.partition
    try:
        gb.init(arguments.devices, None if name is None else gb.partition.NAMED[name]())
    except ImportError as error:
        raise errors.InvalidValue(str(error)) from None
    if gb.rank():
        sys.stdout = open(os.devnull, "w")


def say(text: str) -> None:
    """What is no result, on stderr, once."""
    if gb.rank() == 0:
        print(text, file=sys.stderr)
