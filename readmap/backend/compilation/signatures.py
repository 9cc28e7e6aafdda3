"""A kernel's arguments, held to its declaration: nothing is launched with what it does not expect.

Arguments are named as the kernel's parameters are. A group is any object with attributes named as the members of the
structure that it stands for. It keeps what it was packed to: a frozen dataclass for ever, and an object of arrays alone
as long as they are the same.
"""

from __future__ import annotations

import ctypes
import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from readmap.backend.compilation.declarations import DTYPES, GENERIC, Declarations, Member, as_python, declarations
from readmap.backend.compilation.sources import texts

#: What each generic type of a variant is, by name, in order.
Types = tuple[tuple[str, str], ...]

#: An extent that is not checked.
SOME = "some"

#: The first bytes of an array, none of them.
_START = ctypes.c_char * 0

_CTYPES = {name: np.ctypeslib.as_ctypes_type(dtype) for name, dtype in DTYPES.items()}
_LIMITS = {
    name: (0, 1) if name == "bool" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    for name, dtype in DTYPES.items()
}


class Binding:
    """What the arguments of a launch, or the members of a group, say of each other.

    Attributes:
        array_type: of the backend's arrays.
        types: the choices for generic types.
        numbers: the integers by name; once they are checked, the dimensions too.
        sizes: the elements of the arrays that have an extent.
    """

    __slots__ = ("array_type", "numbers", "sizes", "types")

    def __init__(self, array_type: type, numbers: dict[str, int]) -> None:
        self.array_type = array_type
        self.numbers = numbers
        self.types: dict[str, str] = {}
        self.sizes: list[Size] = []

    def check(self) -> list[Size]:
        """The sizes that are still to be held against what is known elsewhere; WrongSize where one is wrong here."""
        numbers, left, derived = self.numbers, [], []
        for size in self.sizes:
            array, elements = size
            if array.code is not None:
                derived.append(size)
            elif array.extent not in numbers:
                numbers[array.extent] = elements
                left.append(size)
            elif numbers[array.extent] != elements:
                raise WrongSize(size, numbers[array.extent])
        for size in derived:
            array, elements = size
            try:
                expected = eval(array.code, array.constants, numbers)  # type: ignore[arg-type]
            except NameError:
                left.append(size)
                continue
            if expected != elements:
                raise WrongSize(size, expected)
        return left


class WrongSize(TypeError):
    """An array has more or fewer elements than its extent says."""

    def __init__(self, size: Size, expected: int) -> None:
        self.size = size
        array, elements = size
        super().__init__(f" has {elements} elements, expected {expected}, which is {array.extent}")


@dataclass(frozen=True)
class Integer:
    """An integer, or a bool."""

    name: str
    type: str

    @property
    def ctype(self) -> Any:
        """Its type in memory."""
        return _CTYPES[self.type]

    def bind(self, value: Any, binding: Binding) -> Any:
        """NumPy's integer of the type; TypeError where the value is none, or out of range."""
        is_bool = isinstance(value, bool | np.bool_)
        if is_bool != (self.type == "bool") or not (is_bool or isinstance(value, int | np.integer)):
            expected = "a bool" if self.type == "bool" else "an integer"
            raise TypeError(f" is a {type(value).__name__}, expected {expected}")
        number = int(value)
        low, high = _LIMITS[self.type]
        if not low <= number <= high:
            raise TypeError(f" is {value}, which {DTYPES[self.type]} does not hold")
        binding.numbers[self.name] = number
        return DTYPES[self.type].type(value)


@dataclass(frozen=True)
class Array:
    """An array.

    Attributes:
        dtype: of its words; None where the type is generic.
        words: how many make an element.
        extent: as declared.
        code: the extent in Python, where it is more than the name of an integer or a dimension.
        constants: what the code knows beside those.
    """

    name: str
    type: str
    dtype: np.dtype[Any] | None
    words: int
    extent: str
    code: CodeType | None = field(default=None, compare=False)
    constants: dict[str, Any] = field(default_factory=dict, compare=False)
    ctype = ctypes.c_void_p

    def bind(self, value: Any, binding: Binding) -> Any:
        """The array itself; TypeError where it is of another kind, dtype or row width, or not contiguous."""
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
        if self.extent != SOME:
            binding.sizes.append((self, elements))
        return held

    def _choose(self, found: np.dtype[Any], types: dict[str, str]) -> np.dtype[Any]:
        """The dtype for which the generic type stands; the first array so declared decides."""
        choices = GENERIC[self.type]
        return DTYPES[
            types.setdefault(self.type, next((choice for choice in choices if DTYPES[choice] == found), choices[0]))
        ]


@dataclass(frozen=True)
class Group:
    """A structure that is handed over by value."""

    name: str
    structure: Structure

    @property
    def ctype(self) -> Any:
        """Its type in memory."""
        return self.structure.ctype

    def bind(self, value: Any, binding: Binding) -> Packed:
        """The members in memory; TypeError, which names the member, where one is missing or not as declared."""
        structure = self.structure
        try:
            packed = value.__dict__[structure.key]
        except (AttributeError, KeyError):
            packed = None
        if packed is None or not packed.stands_for(value, structure, binding.array_type):
            packed = structure.pack(value, binding.array_type)
        for generic, chosen in packed.types.items():
            if binding.types.setdefault(generic, chosen) != chosen:
                raise TypeError(f" has {generic} of {DTYPES[chosen]}, expected {DTYPES[binding.types[generic]]}")
        binding.numbers.update(packed.numbers)
        binding.sizes += packed.sizes
        return packed  # type: ignore[no-any-return]


Parameter = Integer | Array | Group

#: An array and its elements.
Size = tuple[Array, int]


@dataclass(frozen=True)
class Structure:
    """The members of a group; the base, if any, is the first of them and has no name."""

    name: str
    members: tuple[Parameter, ...]

    @functools.cached_property
    def ctype(self) -> Any:
        """Its type in memory."""
        fields = [(member.name or "base", member.ctype) for member in self.members]
        return type(self.name, (ctypes.Structure,), {"_fields_": fields})

    @functools.cached_property
    def key(self) -> str:
        """Where an object keeps what it was packed to."""
        return f"packed to {self.name}"

    @functools.cached_property
    def spoken(self) -> list[tuple[str, bool]]:
        """As `_spoken` of the members."""
        return _spoken(self.name, self.members)

    def pack(self, value: Any, array_type: type) -> Packed:
        """The group for which an object stands."""
        binding = Binding(array_type, {})
        bound: list[Any] = []
        for member in self.members:
            try:
                held = getattr(value, member.name) if member.name else value
            except AttributeError:
                raise TypeError(f" is a {type(value).__name__}, which has no {member.name}") from None
            try:
                bound.append(member.bind(held, binding))
            except TypeError as error:
                raise TypeError(f"{member.name and '.'}{member.name}{error}") from None
        numbers = dict(binding.numbers)
        try:
            sizes = binding.check()
        except WrongSize as error:
            raise TypeError(f".{_path(error.size, self.members, bound)}{error}") from None
        memory = self.ctype(*map(in_memory, bound))
        parameters = getattr(type(value), "__dataclass_params__", None)
        frozen = parameters is not None and parameters.frozen
        packed = Packed(self, memory, bound, array_type, binding.types, numbers, sizes, frozen)
        if (frozen or all(isinstance(member, Array) for member in self.members)) and hasattr(value, "__dict__"):
            value.__dict__[self.key] = packed
        return packed


class Packed(NamedTuple):
    """A group as a kernel takes it, and what its members say of the other arguments.

    Attributes:
        memory: the structure itself.
        bound: the members, of which the arrays must live as long.
        array_type, types, numbers: as Binding's; sizes: those that are still to be checked.
        frozen: whether the object's members are never replaced.
    """

    structure: Structure
    memory: Any
    bound: list[Any]
    array_type: type
    types: dict[str, str]
    numbers: dict[str, int]
    sizes: list[Size]
    frozen: bool

    def stands_for(self, value: Any, structure: Structure, array_type: type) -> bool:
        """Whether packing the object again would give the same."""
        if self.structure is not structure or self.array_type is not array_type:
            return False
        members = zip(structure.members, self.bound, strict=True)
        return self.frozen or all(getattr(value, member.name) is bound for member, bound in members)


class Signature:
    """The parameters of one kernel behind `begin` and `end`."""

    def __init__(self, kernel: str, parameters: tuple[Parameter, ...]) -> None:
        """Raises ValueError where a dimension has no extent for itself, or but one array has it."""
        self.kernel, self.parameters = kernel, parameters
        self.names = frozenset(parameter.name for parameter in parameters)
        spoken = [(name, alone) for name, alone in _spoken(kernel, parameters) if name != "items"]
        for name, arrays in Counter(name for name, _ in spoken).items():
            if (name, True) not in spoken:
                raise ValueError(f"{kernel}: no array has the extent {name} alone, by which others go")
            if arrays == 1:
                raise ValueError(f"{kernel}: only one array has the extent {name}, which checks nothing: say {SOME}")

    def bind(self, arguments: Mapping[str, Any], items: int, array_type: type) -> tuple[Types, list[Any]]:
        """The generic types that the arguments decide, and the arguments in order: integers as NumPy's, groups packed.

        Raises TypeError, which names kernel and parameter, where they are not what the kernel declares.
        """
        binding = Binding(array_type, {"items": items})
        bound: list[Any] = []
        try:
            for parameter in self.parameters:
                bound.append(parameter.bind(arguments[parameter.name], binding))
            binding.check()
        except KeyError:
            self._expect_names(arguments)
            raise
        except WrongSize as error:
            name = _path(error.size, self.parameters, bound)
            raise TypeError(f"{self.kernel}: argument {name}{error}") from None
        except TypeError as error:
            raise TypeError(f"{self.kernel}: argument {parameter.name}{error}") from None
        if len(arguments) != len(bound):
            self._expect_names(arguments)
        return tuple(sorted(binding.types.items())), bound

    def _expect_names(self, arguments: Mapping[str, Any]) -> None:
        given = set(arguments)
        for wrong, what in ((self.names - given, "lacks"), (given - self.names, "has no parameter")):
            if wrong:
                raise TypeError(f"{self.kernel} {what} {', '.join(sorted(wrong))}")


def in_memory(bound: Any) -> Any:
    """A bound argument as ctypes takes it: a structure, an address or an integer."""
    if isinstance(bound, Packed):
        return bound.memory
    if isinstance(bound, np.generic):
        return bound.item()
    if not isinstance(bound, np.ndarray):
        return bound.data.ptr
    held: Any = bound
    try:
        return ctypes.addressof(_START.from_buffer(held))  # a quarter of the time that held.ctypes.data takes
    except TypeError:  # the array cannot be written
        return held.ctypes.data


def _path(size: Size, parameters: Sequence[Parameter], bound: Sequence[Any]) -> str:
    """The name of an array in messages, behind those of the groups that it is in."""
    for parameter, value in zip(parameters, bound, strict=False):
        if isinstance(value, Packed) and any(size is one for one in value.sizes):
            inner = _path(size, value.structure.members, value.bound)
            return f"{parameter.name}.{inner}" if parameter.name else inner
    return size[0].name


def _spoken(what: str, parameters: Sequence[Parameter]) -> list[tuple[str, bool]]:
    """The names in the parameters' extents that are no integers of theirs, and whether each stands alone there.

    Raises ValueError where a name may be either of two integers.
    """
    integers = Counter(name for parameter in parameters for name in _integers(parameter))
    spoken: list[tuple[str, bool]] = []
    for parameter in parameters:
        if isinstance(parameter, Group):
            spoken += parameter.structure.spoken
        elif isinstance(parameter, Array) and parameter.code is not None:
            spoken += [(name, False) for name in parameter.code.co_names if name not in parameter.constants]
        elif isinstance(parameter, Array) and parameter.extent != SOME:
            spoken.append((parameter.extent, True))
    for name, _ in spoken:
        if integers[name] > 1:
            raise ValueError(f"{what}: {integers[name]} integers have the name {name}, by which an extent goes")
    return [(name, alone) for name, alone in spoken if name not in integers]


def _integers(parameter: Parameter) -> list[str]:
    """The names of the integers that a parameter brings."""
    if isinstance(parameter, Group):
        return [name for member in parameter.structure.members for name in _integers(member)]
    return [parameter.name] if isinstance(parameter, Integer) else []


@functools.cache
def signatures(module: str) -> dict[str, Signature]:
    """Every entry point of a module."""
    declared = declarations(f"{module}.cu")
    return {
        kernel: Signature(kernel, tuple(_parameter(member, declared) for member in members))
        for kernel, members in declared.kernels().items()
    }


def signature(module: str, name: str) -> Signature:
    """The declaration of kernels/<module>.cu's entry point `name`; KeyError where there is none."""
    return signatures(module)[name]


def _parameter(member: Member, declared: Declarations) -> Parameter:
    if member.extent is not None:
        return _array(member, member.extent, declared)
    if member.type in DTYPES:
        return Integer(member.name, member.type)
    members = tuple(_parameter(one, declared) for one in declared.members(member.type))
    return Group(member.name, _structure(declared.aliases.get(member.type, member.type), members))


def _array(member: Member, extent: str, declared: Declarations) -> Array:
    dtype, words = (None, 1) if member.type in GENERIC else declared.words(member.type)
    if extent.isidentifier() and extent not in declared.constants:
        return Array(member.name, member.type, dtype, words, extent)
    code = compile(as_python(extent), "OF", "eval")
    constants = {name: declared.constants[name] for name in code.co_names if name in declared.constants}
    return Array(member.name, member.type, dtype, words, extent, code, {"__builtins__": {}, **constants})


@functools.cache
def _structure(name: str, members: tuple[Parameter, ...]) -> Structure:
    """One for all kernels, so that a group is packed once."""
    return Structure(name, members)


@functools.cache
def generic_types(module: str) -> tuple[str, ...]:
    """The generic types that a module speaks of; reading its declarations for that would take longer."""
    return tuple(name for name in GENERIC if any(name in text for text in texts(module)))


def variant(module: str, types: Types) -> Types:
    """The types of a module's variant: those given that it uses, and the first choice for the rest."""
    chosen = dict(types)
    return tuple((name, chosen.get(name, GENERIC[name][0])) for name in generic_types(module))
