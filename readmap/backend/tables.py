"""Tables: groups of device arrays that are declared once, by a structure of the kernels' sources.

    class WindowTable(Table, struct="mapping/windows.cuh:WindowTable"):
        ...

    windows = WindowTable.allocate(backend, reads=count, fill={"counts": 0})
    backend.launch(KERNEL, count, windows=windows)

The structure gives the arrays their names, dtypes and sizes (`i32* counts OF(reads)` becomes int32 [reads]; structures
become rows of words), and the comments at its members say what they hold.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from readmap.backend.base import Backend
from readmap.backend.compilation.declarations import GENERIC
from readmap.backend.compilation.parameters import Array
from readmap.backend.compilation.signatures import PACKED, Parameter, structure


class Table:
    """Base class of the Python side of a structure that kernels take by value.

    An instance has an attribute for each member of the structure, and for each annotated field of the Python class,
    which kernels do not see. Attributes may be assigned at any time: the next launch passes the new value. But a table
    that is a member of another structure must not change after the first launch that takes the outer structure.
    """

    #: A launch may keep the packed arguments: __setattr__ drops them.
    forgets_packed: ClassVar[bool] = True
    _struct: ClassVar[str]

    def __init_subclass__(cls, struct: str | None = None) -> None:
        """struct: HEADER:NAME of the structure; None if a base class names it."""
        if struct:
            cls._struct = struct

    def __init__(self, **fields: Any) -> None:
        """Set all fields. Raise TypeError if one is unknown or missing."""
        layout = self._layout()
        for wrong, what in ((fields.keys() - layout.fields, "has no"), (layout.required - fields.keys(), "lacks")):
            if wrong:
                raise TypeError(f"{type(self).__name__} {what} {', '.join(sorted(wrong))}")
        self.__dict__.update(fields)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute and drop the launch arguments that were packed from the old value."""
        for key in [key for key in list(self.__dict__) if key.startswith(PACKED)]:
            del self.__dict__[key]
        object.__setattr__(self, name, value)

    @classmethod
    def allocate(cls, backend: Backend, /, *, fill: Mapping[str, int] | None = None, **given: Any) -> Self:
        """Return a table with new arrays for all members that are not given.

        Parameters
        ----------
        backend
            Device of the arrays.
        fill
            Initial values of new arrays by name; other new arrays are uninitialized.
        **given
            Each dimension in the extents of the new arrays, unless a given array has this size; integer members; Python
            fields; existing arrays, or None for an array that is assigned later. For an array declared OF(any), its
            number of elements. For a generic type such as suffix_t, its dtype, unless a given array has it.

        Raises
        ------
        TypeError
            If a dimension, an integer or a field is missing, or a name is unknown.
        """
        layout, fields, fills = cls._layout(), dict[str, Any](), dict(fill or {})
        types = {name: given.pop(name) for name in GENERIC if name in given}
        numbers = {name: int(value) for name, value in given.items() if isinstance(value, int | np.integer)}
        for name, value in given.items():
            array = layout.arrays.get(name)
            if array is None:
                if name not in layout.dimensions:
                    fields[name] = value
            elif name not in numbers:
                fields[name] = value
                if value is not None:
                    numbers.setdefault(array.expected, len(value))
                    types.setdefault(array.type, value.dtype)
        for name, array in layout.arrays.items():
            if name not in fields:
                where = f"{cls.__name__}.allocate: {array.type}* {name} OF({array.extent})"
                dtype = array.dtype or types.get(array.type)
                if dtype is None:
                    raise TypeError(f"{where}: expected the dtype of {array.type}")
                count = numbers[name] if name in numbers else _element_count(array, numbers, where)
                shape = (count, array.words) if array.words > 1 else count
                value = fills.pop(name, None)
                fields[name] = backend.empty(shape, dtype) if value is None else backend.full(shape, value, dtype)
        if fills:
            raise TypeError(f"{cls.__name__}.allocate: fill names {', '.join(sorted(fills))}, expected new arrays")
        return cls(**fields)

    def copy_to(self, backend: Backend) -> Self:
        """Return a copy of the table on another device of the same kind (see Backend.copy_from_peer)."""
        return self.replace(**{name: backend.copy_from_peer(array) for name, array in self.arrays().items()})

    @classmethod
    def _layout(cls) -> _Layout:
        return _read_layout(cls)  # type: ignore[arg-type]  # mypy takes a class for unhashable

    def arrays(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._layout().arrays}

    def replace(self, **changes: Any) -> Self:
        return type(self)(**{name: getattr(self, name) for name in self._layout().fields} | changes)


class _Layout(NamedTuple):
    """The fields of a table: the arrays of its structure and their dimensions, all names, and those without default."""

    arrays: dict[str, Array]
    dimensions: set[str]
    fields: set[str]
    required: set[str]


@functools.cache
def _read_layout(table: type[Table]) -> _Layout:
    """Return the fields of a Table class: members of the structure it names, and its annotated fields."""
    path, name = table._struct.split(":")
    members = dict[str, Parameter]()
    _add_members(structure(path, name).members, members)
    fields = set(members)
    for base in table.__mro__[: table.__mro__.index(Table)]:
        annotations = inspect.get_annotations(base).items()
        fields.update(name for name, annotation in annotations if not str(annotation).startswith("ClassVar"))
    arrays = {name: member for name, member in members.items() if isinstance(member, Array)}
    dimensions = {name for array in arrays.values() for name in array.names}
    required = {name for name in fields if not hasattr(table, name)}
    return _Layout(arrays, dimensions - fields, fields, required)


def _add_members(found: tuple[Parameter, ...], members: dict[str, Parameter]) -> None:
    """Add members by name to `members`; members of a base structure become members of the table."""
    for member in found:
        if isinstance(member, Array) or member.name:
            members[member.name] = member
        else:
            _add_members(member.structure.members, members)  # type: ignore[union-attr]


def _element_count(array: Array, numbers: dict[str, int], where: str) -> int:
    """Evaluate an array's declared extent by `numbers`. Raises TypeError about `where` if that is impossible."""
    if not array.expected:
        raise TypeError(f"{where}: expected the array or its number of elements")
    if missing := array.names - numbers.keys():
        raise TypeError(f"{where}: expected {', '.join(sorted(missing))}")
    return int(eval(array.expected, {"__builtins__": {}}, numbers))
