"""Columns as an Arrow stream, by the C stream interface: whoever reads Arrow takes it, and nothing is installed for it.

A stream has one schema, a structure of columns, and one array of it. What it points to is kept until whoever took it
calls `release`, of the array, of the schema and of each child for itself, since a child may be moved out of its parent.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

#: Arrow's letters for NumPy's types.
FORMATS = {"int8": "c", "uint8": "C", "int32": "i", "int64": "l"}

NULLABLE = 2


class Column(NamedTuple):
    """A column of a table.

    Attributes:
        name: of the column.
        values: numbers; of text the letters of all rows, uint8, without anything between them.
        valid: bool [rows], False where a row has none; None where all have one.
        offsets: int64 [rows + 1], of text: row i is values[offsets[i]:offsets[i + 1]].
    """

    name: str
    values: np.ndarray[Any, Any]
    valid: np.ndarray[Any, Any] | None = None
    offsets: np.ndarray[Any, Any] | None = None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.values) if self.offsets is None else len(self.offsets) - 1


def text_column(name: str, texts: Sequence[bytes], valid: np.ndarray[Any, Any] | None = None) -> Column:
    """A column of texts."""
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return Column(name, np.frombuffer(b"".join(texts), np.uint8), valid, offsets)


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


# What is called while an error is on its way takes addresses: of them ctypes makes numbers, and no objects.
_Release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_Get = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_GetError = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.c_void_p)

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", _Get),
    ("get_next", _Get),
    ("get_last_error", _GetError),
    ("release", _Release),
    ("private_data", ctypes.c_void_p),
]

#: What structures point to, by the number in their private_data.
_kept: dict[int, Any] = {}
_numbers = itertools.count(1)

#: Where Python puts an error that is on its way: its type, itself, its traceback.
_error = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
_error_places = tuple(map(ctypes.byref, _error))
_fetch = ctypes.PYFUNCTYPE(None)(("PyErr_Fetch", ctypes.pythonapi))
_restore = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 3)(("PyErr_Restore", ctypes.pythonapi))


def _undisturbed(run: Callable[[int], None]) -> Callable[[int], None]:
    """A callback that runs although an error is on its way, and leaves that as it is."""

    def call(address: int) -> None:
        _fetch(*_error_places)  # before all else: what returns while there is an error is one itself
        held = tuple(place.value for place in _error)
        try:
            run(address)
        finally:
            _restore(*held)

    return call


def _keep(structure: Any, *held: Any) -> None:
    """Have what a structure points to live until it is released."""
    structure.private_data = number = next(_numbers)
    _kept[number] = held


def _release(structure: Any) -> None:
    """Let go of a structure, and of its children that nobody took; nothing where it was taken itself."""
    if not structure.release:
        return
    for i in range(getattr(structure, "n_children", 0)):
        _release(structure.children[i].contents)
    structure.release = _Release()
    for held in _kept.pop(structure.private_data):
        if isinstance(held, _Schema | _Array):  # of a stream, which has not given it
            _release(held)


def _released_as(kind: Any) -> Any:
    return _Release(_undisturbed(lambda address: _release(kind.from_address(address))))


_release_schema, _release_array, _release_stream = map(_released_as, (_Schema, _Array, _Stream))


def _schema(format: str, name: str, children: Sequence[_Schema] = ()) -> _Schema:
    schema, texts = _Schema(), (format.encode(), name.encode())
    pointers = (ctypes.POINTER(_Schema) * len(children))(*map(ctypes.pointer, children))
    schema.format, schema.name = texts
    schema.flags, schema.n_children = NULLABLE, len(children)
    schema.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(_Schema)))
    schema.release = _release_schema
    _keep(schema, texts, pointers, children)
    return schema


def _array(
    rows: int, buffers: Sequence[np.ndarray[Any, Any] | None], children: Sequence[_Array] = (), nulls: int = 0
) -> _Array:
    array, held = _Array(), [None if buffer is None else np.ascontiguousarray(buffer) for buffer in buffers]
    addresses = (ctypes.c_void_p * len(held))(*(None if one is None else one.ctypes.data for one in held))
    pointers = (ctypes.POINTER(_Array) * len(children))(*map(ctypes.pointer, children))
    array.length, array.null_count = rows, nulls
    array.n_buffers, array.n_children = len(held), len(children)
    array.buffers = ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p))
    array.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(_Array)))
    array.release = _release_array
    _keep(array, held, addresses, pointers, children)
    return array


def _array_of(column: Column) -> _Array:
    valid, nulls = None, 0
    if column.valid is not None:
        nulls = int(np.count_nonzero(~column.valid))
        valid = np.packbits(column.valid, bitorder="little")
    texts = [] if column.offsets is None else [column.offsets]
    return _array(column.rows, [valid, *texts, column.values], nulls=nulls)


def _schema_of(column: Column) -> _Schema:
    return _schema("U" if column.offsets is not None else FORMATS[column.values.dtype.name], column.name)


def _give(structure: Any, address: int) -> int:
    """Move a structure to where it is asked for; what was given already is a released one there."""
    ctypes.memmove(address, ctypes.addressof(structure), ctypes.sizeof(structure))
    structure.release = _Release()
    return 0


def stream_capsule(columns: Sequence[Column]) -> Any:
    """What `__arrow_c_stream__` gives: a capsule of a stream of one table."""
    schema = _schema("+s", "", [_schema_of(column) for column in columns])
    array = _array(columns[0].rows, [None], [_array_of(column) for column in columns])
    stream = _Stream()
    stream.get_schema = _Get(lambda _, address: _give(schema, address))
    stream.get_next = _Get(lambda _, address: _give(array, address))
    stream.get_last_error, stream.release = _GetError(lambda _: None), _release_stream
    _keep(stream, schema, array, stream.get_schema, stream.get_next, stream.get_last_error)
    capsule = _new_capsule(ctypes.addressof(stream), _NAME, _drop)
    _streams[id(capsule)] = stream
    return capsule


#: The streams of capsules, by the capsules' addresses.
_streams: dict[int, _Stream] = {}

_NAME = b"arrow_array_stream"
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _Release]

#: At the end of a capsule its stream goes too, where nobody took it.
_drop = _Release(_undisturbed(lambda capsule: _release(_streams.pop(capsule))))
