"""Integer and array parameters of kernels: checks of each argument, and of the sizes of arrays against each other."""

from __future__ import annotations

import ctypes
import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from readmap.backend.compilation.declarations import DTYPES, GENERIC

_BOOLS = (bool, np.bool_)
_NUMBERS = (int, np.integer, np.bool_)

_NOTHING_ELSE: dict[str, Any] = {"__builtins__": {}}

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


class Nested(Protocol):
    """A group of parameters with extents of its own."""

    @property
    def name(self) -> str: ...

    @property
    def extents(self) -> Extents: ...


class Extents:
    """The extents of the arrays of a kernel or structure, and those that its groups cannot check themselves.

    Attributes:
        integers: number of integers of each name.
        uses: number of extents that contain each dimension.
        alone: for each dimension that is the whole extent of an array, the index of the first such array.
        open: indices of the arrays that the enclosing structure or kernel must check: those, and those unchecked here.
    """

    def __init__(self, what: str, parameters: Sequence[Integer | Array | Nested], *known: str) -> None:
        """known: names of further integers. Raises ValueError if an extent uses a name that two integers have."""
        self.integers, self.uses = Counter(known), Counter[str]()
        self.alone: dict[str, int] = {}
        self.open: list[int] = []
        self._arrays: list[tuple[str, Array]] = []
        for parameter in parameters:
            self._add(parameter)
        for name in self.uses:
            if self.integers[name] > 1:
                raise ValueError(
                    f"{what}: {self.integers[name]} integers have the name {name}, by which an extent goes"
                )
        for name in self.integers:
            del self.uses[name]
        for position, (_, array) in enumerate(self._arrays):
            if array.expected in self.uses:
                self.alone.setdefault(array.expected, position)
        names, firsts = self.integers.keys() | self.alone, set(self.alone.values())
        self._checked = [i for i, (_, array) in enumerate(self._arrays) if array.names <= names]
        self.open = [i for i in range(len(self._arrays)) if i in firsts or i not in self._checked]
        expected = ", ".join(self._arrays[i][1].expected for i in self._checked)
        self._expected = compile(f"[{expected}]", what, "eval")

    def _add(self, parameter: Integer | Array | Nested) -> None:
        if isinstance(parameter, Integer):
            self.integers[parameter.name] += 1
        elif isinstance(parameter, Array):
            self.uses.update(parameter.names)
            if parameter.expected:
                self._arrays.append((parameter.name, parameter))
        else:
            inner, path = parameter.extents, f"{parameter.name}." if parameter.name else ""
            self.integers += inner.integers
            self.uses += inner.uses
            self._arrays += [(path + name, array) for name, array in map(inner._arrays.__getitem__, inner.open)]

    def check(self, sizes: Sequence[int], numbers: dict[str, int]) -> None:
        """Raise TypeError, which names the array, if an array's size differs from its extent.

        sizes: elements of all arrays. numbers: the integers by name, to which the dimensions are added.
        """
        for name, position in self.alone.items():
            numbers[name] = sizes[position]
        found, expected = [sizes[i] for i in self._checked], eval(self._expected, _NOTHING_ELSE, numbers)
        if found != expected:
            wrong = next(i for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1])
            path, array = self._arrays[self._checked[wrong]]
            raise TypeError(f"{path} has {found[wrong]} elements, expected {expected[wrong]}, which is {array.extent}")
