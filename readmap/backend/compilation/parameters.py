"""Integer and array parameters of kernels: checks of each argument, and of the sizes of arrays against each other."""

from __future__ import annotations

import ctypes
import functools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from readmap.backend.compilation.declarations import DTYPES, GENERIC

if TYPE_CHECKING:
    from readmap.backend.compilation.signatures import Group

_NOTHING_ELSE: dict[str, Any] = {"__builtins__": {}}

_START = ctypes.c_char * 0  # a ctypes type of no bytes, to get the address of a buffer


class Binding:
    """What the arguments bound so far say about a launch or a group."""

    __slots__ = ("array_type", "numbers", "sizes", "types")

    def __init__(self, array_type: type, numbers: dict[str, int]) -> None:
        self.array_type = array_type  # of the backend's arrays
        self.numbers = numbers  # the integers by name; after the arrays are checked, also the dimensions
        self.types: dict[str, str] = {}  # the choice for each generic type
        self.sizes: list[int] = []  # elements of each array that has an extent


@dataclass(frozen=True)
class Integer:
    """A parameter that is an integer or a bool."""

    name: str
    type: str

    @property
    def ctype(self) -> Any:
        return np.ctypeslib.as_ctypes_type(DTYPES[self.type])

    @functools.cached_property
    def is_bool(self) -> bool:
        return self.type == "bool"

    @functools.cached_property
    def limits(self) -> tuple[int, int]:
        return (0, 1) if self.is_bool else ((info := np.iinfo(DTYPES[self.type])).min, info.max)

    def bind(self, value: Any, binding: Binding) -> int:
        """Return an int and add it to binding.numbers. Raises TypeError if `value` is no integer or out of range."""
        is_number = type(value) is int or isinstance(value, int | np.integer | np.bool_)
        if not is_number or (type(value) is not int and isinstance(value, bool | np.bool_)) != self.is_bool:
            expected = "a bool" if self.is_bool else "an integer"
            raise TypeError(f" is a {type(value).__name__}, expected {expected}")
        number = binding.numbers[self.name] = int(value)
        smallest, largest = self.limits
        if not smallest <= number <= largest:
            raise TypeError(f" is {value}, which {DTYPES[self.type]} does not hold")
        return number


@dataclass(frozen=True)
class Array:
    """A parameter that is an array."""

    name: str
    type: str
    dtype: np.dtype[Any] | None  # of its words; None if the type is generic
    words: int  # of an element
    extent: str  # as declared
    expected: str  # the extent as a Python expression, with the values of constants; "" if it is not checked
    ctype = ctypes.c_void_p

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The integers and dimensions in its extent."""
        return frozenset(compile(self.expected, "OF", "eval").co_names if self.expected else ())

    def bind(self, value: Any, binding: Binding) -> int:
        """Return an array's address; add size and generic type to `binding`. Raises TypeError if not as declared."""
        if not isinstance(value, binding.array_type):
            raise TypeError(f" is a {type(value).__name__}, expected {binding.array_type.__module__}.ndarray")
        array: Any = value
        if not array.flags.c_contiguous:
            raise TypeError(" is not contiguous")
        dtype = self.dtype
        if dtype is None:  # the first array of a generic type decides its dtype
            choices = GENERIC[self.type]
            fitting = next((choice for choice in choices if DTYPES[choice] == array.dtype), choices[0])
            dtype = DTYPES[binding.types.setdefault(self.type, fitting)]
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


def address(array: Any) -> int:
    """Return the address of the data of a NumPy or CuPy array."""
    if not isinstance(array, np.ndarray):
        return array.data.ptr  # type: ignore[no-any-return]
    buffer: Any = array
    try:
        return ctypes.addressof(_START.from_buffer(buffer))  # a quarter of the time of array.ctypes.data
    except TypeError:  # a read-only array
        return buffer.ctypes.data  # type: ignore[no-any-return]


class Extents:
    """The extents of the arrays of a kernel or structure, and those that its groups cannot check themselves."""

    def __init__(self, what: str, parameters: Sequence[Integer | Array | Group], *known: str) -> None:
        """known: names of further integers. Raises ValueError if an extent uses a name that two integers have."""
        self.integers = Counter(known)  # the number of integers of each name
        self.uses = Counter[str]()  # the number of extents that contain each dimension
        #: For each dimension that is the whole extent of an array, the index of the first such array.
        self.alone: dict[str, int] = {}
        self._arrays: list[tuple[str, Array]] = []
        for parameter in parameters:
            self._add_parameter(parameter)
        for name in self.uses:
            if self.integers[name] > 1:
                count = self.integers[name]
                raise ValueError(f"{what}: {count} integers have the name {name}, by which an extent goes")
        for name in self.integers:
            del self.uses[name]
        for position, (_, array) in enumerate(self._arrays):
            if array.expected in self.uses:
                self.alone.setdefault(array.expected, position)
        names, firsts = self.integers.keys() | self.alone, set(self.alone.values())
        self._checked = [i for i, (_, array) in enumerate(self._arrays) if array.names <= names]
        #: The arrays that the enclosing structure or kernel must check: those in `alone`, and those unchecked here.
        self.open = [i for i in range(len(self._arrays)) if i in firsts or i not in self._checked]
        expected = ", ".join(self._arrays[i][1].expected for i in self._checked)
        self._expected = compile(f"[{expected}]", what, "eval")

    def _add_parameter(self, parameter: Integer | Array | Group) -> None:
        """Count the names of integers and dimensions that a parameter has, and list its arrays with an extent."""
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
        """Raise TypeError if an array's size is not its extent; add the dimensions to the integers in `numbers`."""
        for name, position in self.alone.items():
            numbers[name] = sizes[position]
        found, expected = [sizes[i] for i in self._checked], eval(self._expected, _NOTHING_ELSE, numbers)
        if found != expected:
            wrong = next(i for i, pair in enumerate(zip(found, expected, strict=True)) if pair[0] != pair[1])
            path, array = self._arrays[self._checked[wrong]]
            raise TypeError(f"{path} has {found[wrong]} elements, expected {expected[wrong]}, which is {array.extent}")
