"""Integer and array parameters of kernels, each checked against its own declaration."""

from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend.compilation.declarations import DTYPES, GENERIC

_BOOLS = (bool, np.bool_)
_NUMBERS = (int, np.integer, np.bool_)

#: A ctypes type of no bytes, to get the address of a buffer.
_START = ctypes.c_char * 0


class Binding:
    """What the arguments bound so far say about a launch or a group.

    Attributes:
        array_type: the type of the backend's arrays.
        types: the choice for each generic type.
        numbers: the integers by name; after the arrays are checked, also the dimensions.
        sizes: the number of elements of each array that has an extent.
    """

    __slots__ = ("array_type", "numbers", "sizes", "types")

    def __init__(self, array_type: type, numbers: dict[str, int]) -> None:
        self.array_type = array_type
        self.numbers = numbers
        self.types: dict[str, str] = {}
        self.sizes: list[int] = []


@dataclass(frozen=True)
class Integer:
    """A parameter that is an integer or a bool."""

    name: str
    type: str

    @property
    def ctype(self) -> Any:
        """The ctypes type."""
        return np.ctypeslib.as_ctypes_type(DTYPES[self.type])

    @functools.cached_property
    def is_bool(self) -> bool:
        """Whether a bool is expected."""
        return self.type == "bool"

    @functools.cached_property
    def limits(self) -> tuple[int, int]:
        """The smallest and the largest value of the type."""
        if self.is_bool:
            return 0, 1
        info = np.iinfo(DTYPES[self.type])
        return info.min, info.max

    def bind(self, value: Any, binding: Binding) -> int:
        """Return the value as an int. Raises TypeError if it is not an integer or out of range."""
        if type(value) is not int or self.is_bool:
            self._check(value)
        number = binding.numbers[self.name] = int(value)
        smallest, largest = self.limits
        if not smallest <= number <= largest:
            raise TypeError(f" is {value}, which {DTYPES[self.type]} does not hold")
        return number

    def _check(self, value: Any) -> None:
        if not isinstance(value, _NUMBERS) or isinstance(value, _BOOLS) != self.is_bool:
            expected = "a bool" if self.is_bool else "an integer"
            raise TypeError(f" is a {type(value).__name__}, expected {expected}")


@dataclass(frozen=True)
class Array:
    """A parameter that is an array.

    Attributes:
        dtype: the dtype of its words; None if the type is generic.
        words: number of words of an element.
        extent: the extent as declared.
        expected: the extent as a Python expression, with the values of constants; empty if it is not checked.
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
        """The integers and dimensions in its extent."""
        return frozenset(compile(self.expected, "OF", "eval").co_names if self.expected else ())

    def bind(self, value: Any, binding: Binding) -> int:
        """Return the address. Raises TypeError for another array type, dtype or row width, or without contiguity."""
        if not isinstance(value, binding.array_type):
            raise TypeError(f" is a {type(value).__name__}, expected {binding.array_type.__module__}.ndarray")
        array: Any = value
        if not array.flags.c_contiguous:
            raise TypeError(" is not contiguous")
        dtype = self.dtype or self._choose(array.dtype, binding.types)
        if array.dtype is not dtype and array.dtype != dtype:
            raise TypeError(f" has dtype {array.dtype}, expected {dtype}")
        elements = array.size
        if self.words > 1:
            if array.ndim != 2 or array.shape[1] != self.words:
                raise TypeError(f" has shape {array.shape}, expected rows of {self.words} words, a {self.type} each")
            elements = array.shape[0]
        if self.expected:
            binding.sizes.append(elements)
        return address(array)

    def _choose(self, dtype: np.dtype[Any], types: dict[str, str]) -> np.dtype[Any]:
        """Return the dtype of the generic type, which the first array declared so decides."""
        choices = GENERIC[self.type]
        fitting = next((choice for choice in choices if DTYPES[choice] == dtype), choices[0])
        return DTYPES[types.setdefault(self.type, fitting)]


def address(array: Any) -> int:
    """Return the address of an array, on the host or on a GPU."""
    if not isinstance(array, np.ndarray):
        return array.data.ptr  # type: ignore[no-any-return]
    buffer: Any = array
    try:
        return ctypes.addressof(_START.from_buffer(buffer))  # a quarter of the time of array.ctypes.data
    except TypeError:  # a read-only array
        return buffer.ctypes.data  # type: ignore[no-any-return]
