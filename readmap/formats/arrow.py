"""Columns as an Arrow stream, by the C stream interface: whoever reads Arrow takes it, and nothing is installed for it.

A stream has one schema, a structure of columns, and one array of it. What it points to is kept until whoever took it
calls `release`, of the array, of the schema and of each child for itself, since a child may be moved out of its parent.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

#: Arrow's letters for NumPy's types.
FORMATS = {"int8": "c", "uint8": "C", "int16": "s", "int32": "i", "uint32": "I", "int64": "l", "bool": "b"}

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


_ReleaseSchema = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))
_ReleaseArray = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))
_ReleaseStream = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))
_GetSchema = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))
_GetNext = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))
_GetError = ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", _ReleaseSchema),
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
    ("release", _ReleaseArray),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", _GetSchema),
    ("get_next", _GetNext),
    ("get_last_error", _GetError),
    ("release", _ReleaseStream),
    ("private_data", ctypes.c_void_p),
]

#: What structures point to, by the number in their private_data.
_kept: dict[int, Any] = {}
_numbers = itertools.count(1)


def _keep(structure: Any, *held: Any) -> None:
    """Have what a structure points to live until it is released."""
    structure.private_data = number = next(_numbers)
    _kept[number] = held


def _released(pointer: Any) -> None:
    """Let go of a structure, and of its children that nobody took."""
    structure = pointer.contents
    for i in range(getattr(structure, "n_children", 0)):
        if structure.children[i].contents.release:
            structure.children[i].contents.release(structure.children[i])
    _kept.pop(structure.private_data, None)
    structure.release = type(structure.release)()


_release_schema, _release_array = _ReleaseSchema(_released), _ReleaseArray(_released)
_release_stream = _ReleaseStream(_released)


def _fill_schema(schema: _Schema, format: str, name: str, children: Sequence[_Schema] = ()) -> None:
    pointers = (ctypes.POINTER(_Schema) * len(children))(*map(ctypes.pointer, children))
    schema.format, schema.name, schema.metadata = format.encode(), name.encode(), None
    schema.flags, schema.n_children = NULLABLE, len(children)
    schema.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(_Schema)))
    schema.dictionary, schema.release = None, _release_schema
    _keep(schema, schema.format, schema.name, pointers, children)


def _fill_array(
    array: _Array,
    rows: int,
    buffers: Sequence[np.ndarray[Any, Any] | None],
    children: Sequence[_Array] = (),
    nulls: int = 0,
) -> None:
    held = [None if buffer is None else np.ascontiguousarray(buffer) for buffer in buffers]
    addresses = (ctypes.c_void_p * len(held))(*(None if one is None else one.ctypes.data for one in held))
    pointers = (ctypes.POINTER(_Array) * len(children))(*map(ctypes.pointer, children))
    array.length, array.null_count, array.offset = rows, nulls, 0
    array.n_buffers, array.n_children = len(held), len(children)
    array.buffers = ctypes.cast(addresses, ctypes.POINTER(ctypes.c_void_p))
    array.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(_Array)))
    array.dictionary, array.release = None, _release_array
    _keep(array, held, addresses, pointers, children)


def _array_of(column: Column) -> _Array:
    valid, nulls = None, 0
    if column.valid is not None:
        nulls = int(np.count_nonzero(~column.valid))
        valid = np.packbits(column.valid, bitorder="little")
    values = np.packbits(column.values, bitorder="little") if column.values.dtype == np.bool_ else column.values
    buffers = [valid, values] if column.offsets is None else [valid, column.offsets, values]
    array = _Array()
    _fill_array(array, column.rows, buffers, nulls=nulls)
    return array


def _schema_of(column: Column) -> _Schema:
    schema = _Schema()
    _fill_schema(schema, "U" if column.offsets is not None else FORMATS[column.values.dtype.name], column.name)
    return schema


def stream_capsule(columns: Sequence[Column]) -> Any:
    """What `__arrow_c_stream__` gives: a capsule of a stream of one table."""
    left = [True]

    def get_schema(_: Any, out: Any) -> int:
        _fill_schema(out.contents, "+s", "", [_schema_of(column) for column in columns])
        return 0

    def get_next(_: Any, out: Any) -> int:
        if not left:
            out.contents.release = _ReleaseArray()
            return 0
        left.clear()
        _fill_array(out.contents, columns[0].rows, [None], [_array_of(column) for column in columns])
        return 0

    stream = _Stream()
    stream.get_schema, stream.get_next = _GetSchema(get_schema), _GetNext(get_next)
    stream.get_last_error, stream.release = _GetError(lambda _: None), _release_stream
    _keep(stream, stream.get_schema, stream.get_next, stream.get_last_error)
    capsule = _new_capsule(ctypes.addressof(stream), _NAME, _drop)
    _streams[id(capsule)] = stream
    return capsule


#: The streams of capsules, by the capsules' addresses.
_streams: dict[int, _Stream] = {}

_NAME = b"arrow_array_stream"
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, _Destructor]


def _drop_capsule(capsule: int) -> None:
    """The end of a capsule, whose stream goes too where nobody took it."""
    stream = _streams.pop(capsule)
    if stream.release:
        stream.release(ctypes.pointer(stream))


_drop = _Destructor(_drop_capsule)
