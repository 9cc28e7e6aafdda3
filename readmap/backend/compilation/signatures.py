"""Check a kernel's arguments against its declaration, and pack them for a launch.

Arguments are named as the kernel's parameters. The argument for a structure (a group) is any object with attributes
named as the structure's members. The object caches its packed form: a frozen dataclass permanently, and an object whose
members are all arrays as long as these are the same arrays.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import re
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

from readmap.backend.compilation.declarations import DTYPES, GENERIC, Declarations, Member, as_python, declarations
from readmap.backend.compilation.parameters import Array, Binding, Extents, Integer
from readmap.backend.compilation.sources import texts

GenericTypes = tuple[tuple[str, str], ...]  # the choice for each generic type of a variant: (name, type) by name
NUMBER_BYTES = 8  # bytes of an argument in the memory of a launch
UNCHECKED = "any"  # the extent of an array whose number of elements is not checked
PACKED = "packed to "  # prefix of the attributes in which objects cache their packed form
_NAME = re.compile(r"\b[A-Za-z_]\w*")


class Packed(NamedTuple):
    """The packed form of a group, and what its members say about the other arguments, as in Binding."""

    structure: Structure
    memory: Any  # the ctypes structure
    members: list[Any]  # the object's members, groups in packed form; they keep the arrays alive
    array_type: type
    types: dict[str, str]
    numbers: dict[str, int]
    sizes: list[int]  # of the arrays that Extents.open names
    frozen: bool  # the object's members are never replaced

    def is_current(self, value: Any, structure: Structure, array_type: type) -> bool:
        """Return True if packing the object again would give the same result."""
        if self.structure is not structure or self.array_type is not array_type:
            return False
        return self.frozen or all(map(operator.is_, map(getattr, repeat(value), structure.names), self.members))


@dataclass(frozen=True)
class Group:
    """A parameter that is a structure, passed by value."""

    name: str
    structure: Structure

    @property
    def ctype(self) -> Any:
        return self.structure.ctype

    @property
    def extents(self) -> Extents:
        return self.structure.extents

    def bind(self, value: Any, binding: Binding) -> Packed:
        """Return the object packed, and add its types and sizes to `binding`. Raises TypeError that names a member."""
        packed: Packed | None = getattr(value, "__dict__", {}).get(self.structure.key)
        if packed is None or not packed.is_current(value, self.structure, binding.array_type):
            packed = self.structure.pack(value, binding.array_type)
        for generic, chosen in packed.types.items():
            if binding.types.setdefault(generic, chosen) != chosen:
                raise TypeError(f" has {generic} of {DTYPES[chosen]}, expected {DTYPES[binding.types[generic]]}")
        binding.numbers.update(packed.numbers)
        binding.sizes += packed.sizes
        return packed


Parameter = Integer | Array | Group
Bound = int | Packed  # a checked argument: an integer, the address of an array, or a group


@dataclass(frozen=True)
class Structure:
    """The members of a structure; its base, if any, is the first member and has no name. ctype: the ctypes type."""

    name: str
    members: tuple[Parameter, ...]
    ctype: Any = field(init=False, compare=False)

    def __post_init__(self) -> None:
        fields = [(member.name or "base", member.ctype) for member in self.members]
        object.__setattr__(self, "ctype", type(self.name, (ctypes.Structure,), {"_fields_": fields}))

    @functools.cached_property
    def key(self) -> str:
        return PACKED + self.name

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.members)

    @functools.cached_property
    def is_of_arrays(self) -> bool:
        return all(isinstance(member, Array) for member in self.members)

    @functools.cached_property
    def extents(self) -> Extents:
        return Extents(self.name, self.members)

    def pack(self, value: Any, array_type: type) -> Packed:
        """Check and pack an object's members; cache the result in the object if it cannot become outdated unnoticed."""
        binding = Binding(array_type, {})
        members, in_memory = list[Any](), list[Any]()
        for member in self.members:
            try:
                held = getattr(value, member.name) if member.name else value
            except AttributeError:
                raise TypeError(f" is a {type(value).__name__}, which has no {member.name}") from None
            try:
                bound = member.bind(held, binding)
            except TypeError as error:
                raise TypeError(f"{member.name and '.'}{member.name}{error}") from None
            members.append(bound if isinstance(bound, Packed) else held)
            in_memory.append(bound.memory if isinstance(bound, Packed) else bound)
        try:
            self.extents.check(binding.sizes, dict(binding.numbers))
        except TypeError as error:
            raise TypeError(f".{error}") from None
        parameters = getattr(value, "__dataclass_params__", None)
        frozen = getattr(value, "forgets_packed", False) or (parameters is not None and parameters.frozen)
        sizes, memory = [binding.sizes[position] for position in self.extents.open], self.ctype(*in_memory)
        packed = Packed(self, memory, members, array_type, binding.types, binding.numbers, sizes, frozen)
        if (frozen or self.is_of_arrays) and hasattr(value, "__dict__"):
            value.__dict__[self.key] = packed
        return packed


class Signature:
    """The item type of a kernel, one of ITEM_TYPES, and its parameters after the items."""

    def __init__(self, kernel: str, item_type: str, parameters: tuple[Parameter, ...]) -> None:
        """Raises ValueError if a dimension is not the whole extent of any array, or occurs in a single extent."""
        self.kernel, self.item_type, self.parameters = kernel, item_type, parameters
        self.names = frozenset(parameter.name for parameter in parameters)
        self._extents = Extents(kernel, parameters, "items")
        for name, arrays in self._extents.uses.items():
            if name not in self._extents.alone:
                raise ValueError(f"{kernel}: no array has the extent {name} alone, by which others go")
            if arrays == 1:
                found = f"only one array has the extent {name}, which checks nothing"
                raise ValueError(f"{kernel}: {found}: say {UNCHECKED}")

    def bind(self, arguments: Mapping[str, Any], items: int, array_type: type) -> tuple[GenericTypes, list[Bound]]:
        """Check named arguments; return the generic types they select, and the arguments in order. Raises TypeError."""
        binding = Binding(array_type, {"items": items})
        bound: list[Bound] = []
        try:
            for parameter in self.parameters:
                bound.append(parameter.bind(arguments[parameter.name], binding))
        except KeyError:
            self._expect_names(set(arguments))
            raise
        except TypeError as error:
            raise TypeError(f"{self.kernel}: argument {parameter.name}{error}") from None
        if len(arguments) != len(bound):
            self._expect_names(set(arguments))
        try:
            self._extents.check(binding.sizes, binding.numbers)
        except TypeError as error:
            raise TypeError(f"{self.kernel}: argument {error}") from None
        return tuple(sorted(binding.types.items())) if binding.types else (), bound

    def _expect_names(self, given: set[str]) -> None:
        for wrong, what in ((self.names - given, "lacks"), (given - self.names, "has no parameter")):
            if wrong:
                raise TypeError(f"{self.kernel} {what} {', '.join(sorted(wrong))}")


def pack_arguments(arguments: Sequence[Bound], *items: int) -> Any:
    """Return a ctypes array of the arguments' addresses, as a launch takes them; the array also stores the integers.

    items: 64-bit words of a structure that is passed as the first argument. A kernel reads the bytes of the
    parameter's type at its address: the lowest bytes of an integer.
    """
    memory, layout, first = _memory(len(arguments), len(items))
    arguments_memory = memory()
    start = ctypes.addressof(arguments_memory)
    addresses = range(start + first, start + layout.size, NUMBER_BYTES)
    numbers = [0 if type(argument) is Packed else argument for argument in arguments]
    if items:
        layout.pack_into(arguments_memory, 0, start + first - NUMBER_BYTES * len(items), *addresses, *items, *numbers)
    else:
        layout.pack_into(arguments_memory, 0, *addresses, *numbers)
    for i, argument in enumerate(arguments, bool(items)):
        if type(argument) is Packed:
            arguments_memory[i] = ctypes.addressof(argument.memory)
    return arguments_memory


@functools.cache
def _memory(count: int, words: int) -> tuple[Any, struct.Struct, int]:
    """Return the type and layout of a launch's memory, and the offset of the first argument's integer."""
    total = 2 * count + words + bool(words)
    return ctypes.c_int64 * total, struct.Struct(f"{total}q"), NUMBER_BYTES * (count + words + bool(words))


@functools.cache
def kernel_signatures(module: str) -> dict[str, Signature]:
    """Return the signatures of all kernels of kernels/<module>.cu by name."""
    declared = declarations(f"{module}.cu")
    return {
        kernel: Signature(kernel, item_type, tuple(_make_parameter(member, declared) for member in members))
        for kernel, (item_type, members) in declared.kernels().items()
    }


def signature(module: str, name: str) -> Signature:
    """Return the signature of the kernel `name` in kernels/<module>.cu. Raises KeyError if it is unknown."""
    return kernel_signatures(module)[name]


def structure(path: str, name: str) -> Structure:
    """Return the structure `name` that kernels/<path> declares or includes. Raises KeyError if it is unknown."""
    group = _make_parameter(Member("", name), declarations(path))
    assert isinstance(group, Group)
    return group.structure


def _make_parameter(member: Member, declared: Declarations) -> Parameter:
    """Return the Integer, Array or Group that checks the arguments for a declared member."""
    if member.extent is not None:
        return _array(member, member.extent, declared)
    if member.type in DTYPES:
        return Integer(member.name, member.type)
    members = tuple(_make_parameter(one, declared) for one in declared.members(member.type))
    return Group(member.name, _structure(declared.aliases.get(member.type, member.type), members))


def _array(member: Member, extent: str, declared: Declarations) -> Array:
    dtype, words = (None, 1) if member.type in GENERIC else declared.word_layout(member.type)
    expected = _NAME.sub(lambda name: str(declared.constants.get(name[0], name[0])), as_python(extent))
    return Array(member.name, member.type, dtype, words, extent, "" if extent == UNCHECKED else expected)


_made, _making = functools.cache(Structure), threading.Lock()


def _structure(name: str, members: tuple[Parameter, ...]) -> Structure:
    """Return the one Structure of this name: kernels and threads share it, since each has a ctypes type of its own."""
    with _making:
        return _made(name, members)


@functools.cache
def generic_types(module: str) -> tuple[str, ...]:
    """Return the generic types that a module's text mentions, which is faster than parsing its declarations."""
    return tuple(name for name in GENERIC if any(name in text for text in texts(module)))


def variant(module: str, types: GenericTypes) -> GenericTypes:
    """Return the types of a module's variant: of its generic types, the choice in `types` or else the first choice."""
    chosen = dict(types)
    return tuple((name, chosen.get(name, GENERIC[name][0])) for name in generic_types(module))
