"""Options as fields of dataclasses, and the checks of their values."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, field, fields, is_dataclass
from typing import Any, get_type_hints

import typer

from readmap.errors import UsageError
from readmap.formats import wording

#: The metavar of an option that takes no value, which typer would otherwise call <bool>.
FLAG = ""

#: Largest score or penalty that an option takes.
LARGEST_SCORE = 1000


def command(run: Callable[[typer.Context, Any], None]) -> Callable[..., None]:
    """The function that typer makes a command of: `run` with a parameter for each of its options.

    The options of `run` are a frozen dataclass. A field of it is an option, declared as below, or a group: another such
    dataclass, whose options come in its place. The help shows them in the panel that the class names.
    """
    kind = get_type_hints(run)["options"]

    def call(context: typer.Context, **values: Any) -> None:
        run(context, _options_of(kind, values))

    functools.update_wrapper(call, run)
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    vars(call)["__signature__"] = inspect.Signature([context, *_parameters(kind)])
    return call


def names_of(kind: type) -> list[str]:
    """The names of all options of a dataclass."""
    return [parameter.name for parameter in _parameters(kind)]


def _parameters(kind: type) -> Iterator[inspect.Parameter]:
    types = get_type_hints(kind)
    for one in fields(kind):
        if is_dataclass(types[one.name]):
            yield from _parameters(types[one.name])
            continue
        shown = one.metadata["shown"]
        shown.rich_help_panel = shown.rich_help_panel or getattr(kind, "panel", None)
        yield inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=shown, annotation=types[one.name])


def _options_of(kind: type, values: dict[str, Any]) -> Any:
    """The dataclass of the values; values: by the names of all options."""
    types = get_type_hints(kind)
    names = [one.name for one in fields(kind)]
    return kind(
        **{name: _options_of(types[name], values) if is_dataclass(types[name]) else values[name] for name in names}
    )


def values_of(options: Any) -> dict[str, Any]:
    """Return the values of all options of a dataclass, groups included, by name."""
    values: dict[str, Any] = {}
    for one in fields(options):
        value = getattr(options, one.name)
        if is_dataclass(value):
            values |= values_of(value)
        else:
            values[one.name] = value
    return values


def hidden(declaration: Any) -> Any:
    """Return the declaration of an option that the help does not show."""
    declaration.metadata["shown"].hidden = True
    return declaration


def declared(shown: Any) -> Any:
    """A field that is an option or an argument; shown: typer's own declaration of it."""
    return field(default=MISSING if shown.default is ... else shown.default, metadata={"shown": shown})


def argument(metavar: str, help: str, default: Any = ...) -> Any:
    """An argument of a command, which must be given unless it has a default."""
    return declared(typer.Argument(default, metavar=metavar, help=help, show_default=False))


def option(
    names: str, help: str, metavar: str, panel: str | None = None, check: Any = None, default: Any = None
) -> Any:
    """An option of a command.

    names: with blanks between. panel: None for that of the class. check: called with the value, and gives it back.
    """
    shown = typer.Option(default, *names.split(), metavar=metavar, help=help, show_default=False, callback=check)
    shown.rich_help_panel = panel
    return declared(shown)


def flag(names: str, help: str, panel: str | None = None, default: bool | None = False) -> Any:
    """An option without a value, which --NAME/--no-NAME alone can turn off."""
    return option(names, help, FLAG, panel, default=default)


def no_check_option(noun: str, panel: str | None = None) -> Any:
    """--no-check; noun: what is not checked."""
    return flag(
        "--no-check",
        f"Do not check whether the {noun} was altered or damaged: nothing is promised where it was.",
        panel,
    )


def number(names: str, help: str, least: int, most: int, panel: str | None = None, default: int | None = None) -> Any:
    """An option whose value is an integer in a range; typer's own min and max would crowd the help."""

    def check(value: int | None) -> int | None:
        if value is not None and not least <= value <= most:
            raise typer.BadParameter(f"{value} is not in the range {least} to {most}.")
        return value

    return option(names, help, "N", panel, check, default)


def score(names: str, help: str, default: int, least: int, most: int = LARGEST_SCORE) -> Any:
    """An option whose value is a score or a penalty."""
    return number(names, f"{help} (default: {default}).", least, most, default=default)


def choice(names: str, help: str, values: Iterable[str], panel: str | None = None, default: str | None = None) -> Any:
    """An option whose value is one of a few; an enumeration's names would crowd the help as well."""
    known = tuple(values)

    def check(value: str | None) -> str | None:
        if value is not None and value not in known:
            raise typer.BadParameter(f"expected {', '.join(known[:-1])} or {known[-1]}, found {value!r}.")
        return value

    return option(names, help, "NAME", panel, check, default)


def size(name: str, help: str, panel: str | None = None) -> Any:
    """An option whose value is a number of bytes, which parse_size gives."""

    def check(value: str | None) -> str | None:
        parse_size(name, value)
        return value

    return option(name, help, "SIZE", panel, check)


def parse_size(name: str, text: str | None) -> int | None:
    """The bytes of a size such as 500M or 1.5G, in powers of 1024; raises UsageError where it is none.

    name: of the option, whose value is None where it is not given.
    """
    if text is None:
        return None
    try:
        return wording.parse_size(text)
    except ValueError as error:
        raise UsageError(f"{name} {error}") from None
