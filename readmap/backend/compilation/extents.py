"""Check the sizes of arrays against their declared extents, by integers and by dimensions shared by several arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from readmap.backend.compilation.parameters import Array, Integer

_NOTHING_ELSE: dict[str, Any] = {"__builtins__": {}}


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
