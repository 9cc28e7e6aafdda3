"""Kernel declarations, read from the sources: the one place where argument types are written is the kernel itself."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend.compilation.sources import source

DTYPES: dict[str, np.dtype[Any]] = {
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "u16": np.dtype(np.uint16),
    "i32": np.dtype(np.int32),
    "u32": np.dtype(np.uint32),
    "i64": np.dtype(np.int64),
    "u64": np.dtype(np.uint64),
    "Diagonal": np.dtype(np.int64),  # an array of structures travels as rows of words
    "Window": np.dtype(np.int64),
    "Place": np.dtype(np.int64),
    "Edge": np.dtype(np.uint32),
    "Entry": np.dtype(np.int64),
    "Found": np.dtype(np.int32),
    "Frame": np.dtype(np.int32),
    "Tally": np.dtype(np.int64),
}

LIMITS = {name: (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)) for name, dtype in DTYPES.items()}

#: Types that a kernel leaves open; the dtype of the first argument so declared decides which variant is compiled.
GENERIC = {"suffix_t": ("u32", "u64")}

#: What each generic type of a variant is, by name, in order.
Types = tuple[tuple[str, str], ...]

_KERNEL = re.compile(r"KERNEL\s+void\s+(?:RESIDENT\(\d+\)\s+)?(\w+)\s*\(([^)]*)\)")
_TEMPLATE = re.compile(r"KERNEL void (?:RESIDENT\(\d+\) )?name\(")
_MACRO = re.compile(r"^#define\s+(\w+)(?:\([^)]*\))?((?:.*\\\n)*.*)$", re.MULTILINE)
_LIST = re.compile(r"\b\w+_ARGUMENTS\b")
_PARAMETER = re.compile(r"(?:const\s+)?(\w+)\s*(\*?)\s*(\w+)")


@dataclass(frozen=True)
class Parameter:
    """One parameter: its C name, its type's name, and whether it is an array."""

    name: str
    type: str
    array: bool


@dataclass(frozen=True)
class Signature:
    """A kernel's parameters behind `begin` and `end`."""

    kernel: str
    parameters: tuple[Parameter, ...]

    def check(self, arguments: tuple[Any, ...], array_type: type) -> tuple[Types, list[Any]]:
        """The generic types that the arguments decide, and the arguments with integers as NumPy scalars.

        Raises TypeError where an argument is not what the kernel declares.
        """
        if len(arguments) != len(self.parameters):
            raise TypeError(f"{self.kernel} takes {len(self.parameters)} arguments, got {len(arguments)}")
        types: dict[str, str] = {}
        checked = []
        for parameter, argument in zip(self.parameters, arguments, strict=True):
            try:
                if parameter.array:
                    _expect_array(parameter, argument, array_type, types)
                    checked.append(argument)
                else:
                    checked.append(_scalar(parameter, argument))
            except TypeError as error:
                raise TypeError(f"{self.kernel}: argument {parameter.name} {error}") from None
        return tuple(sorted(types.items())), checked


def _expect_array(parameter: Parameter, argument: Any, array_type: type, types: dict[str, str]) -> None:
    """Add what the array decides of the generic types to `types`; TypeError says what it is instead."""
    if not isinstance(argument, array_type):
        raise TypeError(f"is a {type(argument).__name__}, expected {array_type.__module__}.ndarray")
    array: Any = argument
    if not array.flags.c_contiguous:
        raise TypeError("is not contiguous")
    expected = parameter.type
    if expected in GENERIC:
        found = next((t for t in GENERIC[expected] if DTYPES[t] == array.dtype), None)
        expected = types.setdefault(expected, found or GENERIC[expected][0])
    if array.dtype != DTYPES[expected]:
        raise TypeError(f"has dtype {array.dtype}, expected {DTYPES[expected]}")


def _scalar(parameter: Parameter, argument: Any) -> Any:
    dtype: np.dtype[Any] = DTYPES[parameter.type]
    if isinstance(argument, bool) or not isinstance(argument, (int, np.integer)):
        raise TypeError(f"is a {type(argument).__name__}, expected an integer")
    low, high = LIMITS[parameter.type]
    if not low <= int(argument) <= high:
        raise TypeError(f"is {argument}, which {dtype} does not hold")
    return dtype.type(argument)


@functools.cache
def generic_types(module: str) -> tuple[str, ...]:
    """The generic types that a module's kernels use."""
    return tuple(
        name for name in GENERIC if any(p.type == name for s in signatures(module).values() for p in s.parameters)
    )


def variant(module: str, types: Types) -> Types:
    """The types of a module's variant: those given that it uses, and the first choice for the rest."""
    chosen = dict(types)
    return tuple((name, chosen.get(name, GENERIC[name][0])) for name in generic_types(module))


def signature(module: str, name: str) -> Signature:
    """The declaration of kernels/<module>.cu's entry point `name`; KeyError where there is none."""
    return signatures(module)[name]


@functools.cache
def signatures(module: str) -> dict[str, Signature]:
    """Every entry point of a module."""
    text, headers = source(module)
    macros = dict(_MACRO.findall("\n".join([*headers, text])))
    found = {}
    for name, parameters in _KERNEL.findall(_expand_kernels(text, macros)):
        found[name] = Signature(name, _parameters(parameters, macros))
    return found


def _expand_kernels(text: str, macros: dict[str, str]) -> str:
    """Kernels that a macro of the module itself declares (`MACRO(name, ...)` at a line's start) are written out."""
    body = _MACRO.sub("", text)
    for macro, definition in macros.items():
        if _TEMPLATE.search(definition):
            for name in re.findall(rf"^{macro}\((\w+)", body, re.MULTILINE):
                body += _TEMPLATE.sub(f"KERNEL void {name}(", definition.replace("\\\n", " "))
    return body


def _parameters(text: str, macros: dict[str, str]) -> tuple[Parameter, ...]:
    while _LIST.search(text):
        text = _LIST.sub(lambda found: macros[found[0]].replace("\\\n", " "), text)
    parameters = []
    for part in text.split(","):
        words = _PARAMETER.fullmatch(part.strip())
        if words is None:
            raise ValueError(f"cannot read the parameter {part.strip()!r}")
        parameters.append(Parameter(words[3], words[1], bool(words[2])))
    if [p.name for p in parameters[:2]] != ["begin", "end"]:
        raise ValueError("a kernel's first parameters are begin and end")
    return tuple(parameters[2:])
