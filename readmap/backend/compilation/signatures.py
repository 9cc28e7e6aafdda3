"""A kernel's arguments, held to its declaration: nothing is launched with what it does not expect.

Arguments are named as the kernel's parameters are. A group is any object with attributes named as the members of the
structure that it stands for; frozen dataclasses are packed once.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from readmap.backend.compilation.declarations import DTYPES, GENERIC, Declarations, Member, as_python, declarations

#: What each generic type of a variant is, by name, in order.
Types = tuple[tuple[str, str], ...]

#: An extent that is not checked.
SOME = "some"

_LIMITS = {
    name: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for name, dtype in DTYPES.items() if name != "bool"
}


class Packed(NamedTuple):
    """A group as a kernel takes it: one element of the structure's dtype, arrays as their addresses."""

    structure: str
    data: np.ndarray[Any, Any]


class Size(NamedTuple):
    """What an array has, to be held against what its extent asks for."""

    parameter: Parameter
    owner: str
    elements: int
    scope: Mapping[str, int]

    @property
    def name(self) -> str:
        """The array as messages call it."""
        return f"{self.owner}{self.parameter.name}"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel, or one member of a group.

    dtype: of an integer, or of the words of an array; None for a group.
    words: an array's words that make an element; None for what is no array.
    extent: an array's extent as Python code; as text where it is one name.
    members: those of a group.
    """

    name: str
    type: str
    dtype: np.dtype[Any] | None = None
    words: int | None = None
    extent: CodeType | str | None = None
    text: str = ""
    members: tuple[Parameter, ...] = ()

    @functools.cached_property
    def layout(self) -> np.dtype[Any]:
        """A group in memory, as the compilers lay it out."""
        fields = [
            (m.name, m.layout if m.members else np.dtype(np.uint64) if m.words else m.dtype) for m in self.members
        ]
        return np.dtype(fields, align=True)

    @property
    def extents(self) -> list[tuple[str, ...]]:
        """The names in each extent, its own or those of its members."""
        if self.members:
            return [extent for member in self.members for extent in member.extents]
        if isinstance(self.extent, CodeType):
            return [(*self.extent.co_names, "")]  # not alone
        return [(self.extent,)] if self.extent else []

    @property
    def integers(self) -> set[str]:
        """The integers that it, or its members, bring."""
        if self.members:
            return set().union(*(member.integers for member in self.members))
        return set() if self.words else {self.name}


class Signature:
    """The parameters of one kernel behind `begin` and `end`."""

    def __init__(self, kernel: str, parameters: tuple[Parameter, ...], constants: Mapping[str, int]) -> None:
        """Raises ValueError where a dimension has no extent for itself, or but one array has it."""
        self.kernel, self.parameters, self._constants = kernel, parameters, dict(constants)
        known = {"", "items", SOME, *constants}.union(*(parameter.integers for parameter in parameters))
        extents = [extent for parameter in parameters for extent in parameter.extents]
        spoken = Counter(name for extent in extents for name in extent)
        for name in sorted(set(spoken) - known):
            if (name,) not in extents:
                raise ValueError(f"{kernel}: no array has the extent {name} alone, by which others go")
            if spoken[name] == 1:
                raise ValueError(
                    f"{kernel}: one array alone has the extent {name}, which checks nothing: expected some"
                )

    def bind(self, arguments: Mapping[str, Any], items: int, array_type: type) -> tuple[Types, list[Any]]:
        """The generic types that the arguments decide, and the arguments in order: integers as NumPy's, groups packed.

        Raises TypeError, which names kernel and parameter, where they are not what the kernel declares.
        """
        types: dict[str, str] = {}
        sizes: list[Size] = []
        integers = {**self._constants, "items": items}
        values = []
        try:
            for parameter in self.parameters:
                value = arguments[parameter.name]
                if parameter.members:
                    values.append(_packed(parameter, value, array_type, types, sizes, integers))
                elif parameter.words:
                    values.append(value)
                    sizes.append(Size(parameter, "", _elements(parameter, value, array_type, types), integers))
                else:
                    values.append(_integer(parameter, value))
                    integers[parameter.name] = int(value)
        except KeyError:
            self._expect_names(arguments)
            raise
        except TypeError as error:
            raise TypeError(f"{self.kernel}: argument {parameter.name}{error}") from None
        if len(arguments) != len(values):
            self._expect_names(arguments)
        self._expect_sizes(sizes, integers)
        return tuple(sorted(types.items())), values

    def _expect_names(self, arguments: Mapping[str, Any]) -> None:
        names = {parameter.name for parameter in self.parameters}
        for wrong, what in ((names - set(arguments), "lacks"), (set(arguments) - names, "has no parameter")):
            if wrong:
                raise TypeError(f"{self.kernel}: {what} {', '.join(sorted(wrong))}")

    def _expect_sizes(self, sizes: list[Size], integers: dict[str, int]) -> None:
        """Dimensions get their values first, from the arrays that have them alone."""
        derived = []
        for size in sizes:
            name = size.parameter.extent
            if not isinstance(name, str):
                derived.append(size)
            elif name != SOME:
                expected = size.scope.get(name)
                if expected is None:
                    expected = integers.setdefault(name, size.elements)
                if expected != size.elements:
                    self._refuse(size, expected)
        for size in derived:
            expected = eval(size.parameter.extent, {"__builtins__": {}}, {**integers, **size.scope})  # type: ignore[arg-type]
            if expected != size.elements:
                self._refuse(size, expected)

    def _refuse(self, size: Size, expected: int) -> None:
        raise TypeError(
            f"{self.kernel}: argument {size.name} has {size.elements} elements, expected {expected}, "
            f"which is {size.parameter.text}"
        )


def _packed(
    group: Parameter,
    value: Any,
    array_type: type,
    types: dict[str, str],
    sizes: list[Size],
    integers: dict[str, int],
    owner: str = "",
) -> Packed:
    """The group as the kernel takes it; what its members decide is added to `types`, `sizes` and `integers`."""
    kept = getattr(value, "__dict__", {})
    key = f"_packed {group.type} {owner}{group.name}"
    frozen = kept.get(key)
    if frozen is None:
        own_types: dict[str, str] = {}
        own_sizes: list[Size] = []
        scope: dict[str, int] = {}
        name = f"{owner}{group.name}."
        fields = tuple(_field(m, value, name, array_type, own_types, own_sizes, scope) for m in group.members)
        frozen = Packed(group.type, np.array([fields], group.layout)), own_types, own_sizes, scope, array_type
        parameters = getattr(type(value), "__dataclass_params__", None)
        if parameters is not None and parameters.frozen:
            kept[key] = frozen
    packed, own_types, own_sizes, scope, packed_for = frozen
    if packed_for is not array_type:
        raise TypeError(f" was packed for {packed_for.__module__}, not {array_type.__module__}")
    for generic, chosen in own_types.items():
        if types.setdefault(generic, chosen) != chosen:
            raise TypeError(f" has {generic} of {DTYPES[chosen]}, expected {DTYPES[types[generic]]}")
    sizes += own_sizes
    for integer, number in scope.items():
        integers.setdefault(integer, number)
    return packed


def _field(
    member: Parameter,
    owner: Any,
    name: str,
    array_type: type,
    types: dict[str, str],
    sizes: list[Size],
    scope: dict[str, int],
) -> Any:
    try:
        value = getattr(owner, member.name)
        if member.members:
            return _packed(member, value, array_type, types, sizes, scope, name).data[0]
        if not member.words:
            scope[member.name] = int(_integer(member, value))
            return value
        sizes.append(Size(member, name, _elements(member, value, array_type, types), scope))
        return value.ctypes.data if isinstance(value, np.ndarray) else value.data.ptr
    except AttributeError:
        raise TypeError(f" is a {type(owner).__name__}, which has no {member.name}") from None
    except TypeError as error:
        raise TypeError(f".{member.name}{error}") from None


def _elements(parameter: Parameter, array: Any, array_type: type, types: dict[str, str]) -> int:
    """How many elements an array has, which adds what it decides of the generic types to `types`."""
    if not isinstance(array, array_type):
        raise TypeError(f" is a {type(array).__name__}, expected {array_type.__module__}.ndarray")
    held: Any = array
    if not held.flags.c_contiguous:
        raise TypeError(" is not contiguous")
    dtype, words = parameter.dtype, parameter.words
    if dtype is None:
        choices = GENERIC[parameter.type]
        chosen = types.get(parameter.type)
        if chosen is None:
            chosen = next((t for t in choices if DTYPES[t] == held.dtype), choices[0])
            types[parameter.type] = chosen
        dtype = DTYPES[chosen]
    if held.dtype != dtype:
        raise TypeError(f" has dtype {held.dtype}, expected {dtype}")
    if words == 1:
        return int(held.size)
    if held.ndim != 2 or held.shape[1] != words:
        raise TypeError(f" has shape {held.shape}, expected rows of {words} words, a {parameter.type} each")
    return int(held.shape[0])


def _integer(parameter: Parameter, value: Any) -> Any:
    dtype = parameter.dtype
    assert dtype is not None
    is_bool = isinstance(value, bool | np.bool_)
    if dtype.kind == "b":
        if not is_bool:
            raise TypeError(f" is a {type(value).__name__}, expected a bool")
        return np.bool_(value)
    if is_bool or not isinstance(value, int | np.integer):
        raise TypeError(f" is a {type(value).__name__}, expected an integer")
    low, high = _LIMITS[parameter.type]
    if not low <= int(value) <= high:
        raise TypeError(f" is {value}, which {dtype} does not hold")
    return dtype.type(value)


@functools.cache
def signatures(module: str) -> dict[str, Signature]:
    """Every entry point of a module."""
    declared = declarations(f"{module}.cu")
    return {
        kernel: Signature(kernel, tuple(_parameter(member, declared) for member in members), declared.constants)
        for kernel, members in declared.kernels().items()
    }


def signature(module: str, name: str) -> Signature:
    """The declaration of kernels/<module>.cu's entry point `name`; KeyError where there is none."""
    return signatures(module)[name]


def _parameter(member: Member, declared: Declarations) -> Parameter:
    if member.extent is not None:
        extent = member.extent if member.extent.isidentifier() else compile(as_python(member.extent), "OF", "eval")
        dtype, words = (None, 1) if member.type in GENERIC else declared.words(member.type)
        return Parameter(member.name, member.type, dtype, words, extent, member.extent)
    if member.type in DTYPES:
        return Parameter(member.name, member.type, DTYPES[member.type])
    members = tuple(_parameter(one, declared) for one in declared.members(member.type))
    return Parameter(member.name, member.type, members=members)


@functools.cache
def generic_types(module: str) -> tuple[str, ...]:
    """The generic types that a module's kernels use."""

    def used(parameters: tuple[Parameter, ...]) -> set[str]:
        return {p.type for p in parameters if p.type in GENERIC}.union(*(used(p.members) for p in parameters))

    found = set().union(*(used(one.parameters) for one in signatures(module).values()))
    return tuple(name for name in GENERIC if name in found)


def variant(module: str, types: Types) -> Types:
    """The types of a module's variant: those given that it uses, and the first choice for the rest."""
    chosen = dict(types)
    return tuple((name, chosen.get(name, GENERIC[name][0])) for name in generic_types(module))
