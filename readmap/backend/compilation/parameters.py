"""The integers and arrays that kernels take, each held to what its declaration says of it alone."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend.compilation.declarations import DTYPES, GENERIC

_BOOLS = (bool, np.bool_)
_NUMBERS = (int, np.integer, np.bool_)

#: The first bytes of an array, none of them.
_START = ctypes.c_char * 0


class Binding:
    """Facts of a launch, or of a group, from the arguments that were looked at.

    Attributes:
        array_type: of the backend's arrays.
        types: the choices for generic types.
        numbers: the integers by name; once the arrays are checked, the dimensions too.
        sizes: the elements of each array that has an extent.
    """

    __slots__ = ("array_type", "numbers", "sizes", "types")

    def __init__(self, array_type: type, numbers: dict[str, int]) -> None:
        self.array_type = array_type
        self.numbers = numbers
        self.types: dict[str, str] = {}
        self.sizes: list[int] = []


@dataclass(frozen=True)
class Integer:
    """An integer, or a bool."""

    name: str
    type: str

    @property
    def ctype(self) -> Any:
        """Its type in memory."""
        return np.ctypeslib.as_ctypes_type(DTYPES[self.type])

    @functools.cached_property
    def is_bool(self) -> bool:
        """Whether it is 0 or 1, and given as a bool."""
        return self.type == "bool"

    @functools.cached_property
    def limits(self) -> tuple[int, int]:
        """The least and the largest of the type."""
        if self.is_bool:
            return 0, 1
        held = np.iinfo(DTYPES[self.type])
        return held.min, held.max

    def bind(self, value: Any, binding: Binding) -> int:
        """The integer; TypeError where the value is none, or out of range."""
        if type(value) is not int or self.is_bool:
            self._check(value)
        number = binding.numbers[self.name] = int(value)
        least, largest = self.limits
        if not least <= number <= largest:
            raise TypeError(f" is {value}, which {DTYPES[self.type]} does not hold")
        return number

    def _check(self, value: Any) -> None:
        if not isinstance(value, _NUMBERS) or isinstance(value, _BOOLS) != self.is_bool:
            expected = "a bool" if self.is_bool else "an integer"
            raise TypeError(f" is a {type(value).__name__}, expected {expected}")


@dataclass(frozen=True)
class Array:
    """An array.

    Attributes:
        dtype: of its words; None where the type is generic.
        words: how many make an element.
        extent: as declared.
        expected: the extent in Python, constants by their values; empty where it is not checked.
    """

    name: str
    type: str
    dtype: np.dtype[Any] | None
    words: int
    extent: str
    expected: str
    ctype = ctypes.c_void_p

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The integers and dimensions by which its extent goes."""
        return frozenset(compile(self.expected, "OF", "eval").co_names if self.expected else ())

    def bind(self, value: Any, binding: Binding) -> int:
        """Its address; TypeError where it is of another kind, dtype or row width, or not contiguous."""
        if not isinstance(value, binding.array_type):
            raise TypeError(f" is a {type(value).__name__}, expected {binding.array_type.__module__}.ndarray")
        held: Any = value
        if not held.flags.c_contiguous:
            raise TypeError(" is not contiguous")
        dtype = self.dtype or self._choose(held.dtype, binding.types)
        if held.dtype is not dtype and held.dtype != dtype:
            raise TypeError(f" has dtype {held.dtype}, expected {dtype}")
        elements = held.size
        if self.words > 1:
            if held.ndim != 2 or held.shape[1] != self.words:
                raise TypeError(f" has shape {held.shape}, expected rows of {self.words} words, a {self.type} each")
            elements = held.shape[0]
        if self.expected:
            binding.sizes.append(elements)
        return address(held)

    def _choose(self, found: np.dtype[Any], types: dict[str, str]) -> np.dtype[Any]:
        """The dtype for which the generic type stands; the first array so declared decides."""
        choices = GENERIC[self.type]
        fitting = next((choice for choice in choices if DTYPES[choice] == found), choices[0])
        return DTYPES[types.setdefault(self.type, fitting)]


def address(array: Any) -> int:
    """The address of the first byte of an array, of the host or of a GPU."""
    if not isinstance(array, np.ndarray):
        return array.data.ptr  # type: ignore[no-any-return]
    held: Any = array
    try:
        return ctypes.addressof(_START.from_buffer(held))  # a quarter of the time that held.ctypes.data takes
    except TypeError:  # the array cannot be written
        return held.ctypes.data  # type: ignore[no-any-return]
