"""Declare options as fields of dataclasses, and refuse options that contradict each other."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, dataclass_transform, get_type_hints

import typer

from readmap.cli.common.help import FLAG, help_all_option
from readmap.errors import UsageError
from readmap.formats import wording

#: Maximum score or penalty.
MAX_SCORE = 1000
#: Names of options in their dataclasses, whether giving one of them is wrong, and why.
Conflict = tuple[Iterable[str], Any, str]

Kind = TypeVar("Kind")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def option_group(panel: str | None = None, *, is_advanced: bool = False) -> Callable[[type[Kind]], type[Kind]]:
    """Return a decorator that makes a class a frozen dataclass of options.

    panel: title in the help (default: the title of the base class). is_advanced: only --help-all shows them.
    """

    def decorate(kind: type[Kind]) -> type[Kind]:
        if panel is not None:
            kind.panel = panel  # type: ignore[attr-defined]
        kind.is_advanced = is_advanced  # type: ignore[attr-defined]
        return dataclass(frozen=True, kw_only=True)(kind)

    return decorate


def command(run: Callable[[typer.Context, Any], None]) -> Callable[..., None]:
    """Return the function that typer turns into a command: `run` with one parameter for each option.

    The `options` of `run` are a frozen dataclass. A field is an option, declared by the functions below, or a group: a
    dataclass of further options, which the help shows under the title `panel` of that class.
    """
    kind = get_type_hints(run)["options"]

    def call(context: typer.Context, **values: Any) -> None:
        run(context, _build(kind, values))

    functools.update_wrapper(call, run)
    # One line a paragraph: the help breaks lines itself.
    call.__doc__ = "\n\n".join(" ".join(part.split()) for part in (run.__doc__ or "").split("\n\n"))
    parameter = functools.partial(inspect.Parameter, kind=inspect.Parameter.KEYWORD_ONLY)
    parameters, advanced = [parameter("context", annotation=typer.Context)], set()
    for each, annotation, group in _declarations(kind):
        info = each.metadata["info"]
        info.rich_help_panel = info.rich_help_panel or getattr(group, "panel", None)
        parameters.append(parameter(each.name, default=info, annotation=annotation))
        is_advanced = each.metadata["advanced"]
        if is_advanced or (is_advanced is None and getattr(group, "is_advanced", False)):
            advanced.add(each.name)
    if advanced:
        parameters.append(parameter("help_all", default=help_all_option(), annotation=bool))
    vars(call).update(__signature__=inspect.Signature(parameters), advanced=advanced)
    return call


def names_of(kind: type) -> list[str]:
    """Return the names of all options of a dataclass, groups included."""
    return [each.name for each, _, _ in _declarations(kind)]


def _declarations(kind: type) -> Iterator[tuple[Field[Any], Any, type]]:
    """Yield the field, the type and the class of each option of a dataclass, groups included."""
    types = get_type_hints(kind)
    for each in fields(kind):
        if is_dataclass(group := types[each.name]):
            yield from _declarations(group)  # type: ignore[arg-type]
        else:
            yield each, types[each.name], kind


def _build(kind: type, values: dict[str, Any]) -> Any:
    """Return an instance of `kind`, a dataclass of options and groups, with the values of all options by name."""
    types = get_type_hints(kind)
    names = [each.name for each in fields(kind)]
    return kind(**{name: _build(types[name], values) if is_dataclass(types[name]) else values[name] for name in names})


def values_of(options: Any) -> dict[str, Any]:
    """Return the values of all options of a dataclass, groups included, by name."""
    values: dict[str, Any] = {}
    for each in fields(options):
        value = getattr(options, each.name)
        if is_dataclass(value):
            values |= values_of(value)
        else:
            values[each.name] = value
    return values


def declared(info: Any, advanced: bool | None = None) -> Any:
    """Return a dataclass field for an option or an argument; info: typer's declaration of it."""
    default = MISSING if info.default is ... else info.default
    return field(default=default, metadata={"info": info, "advanced": advanced})


def argument(metavar: str, help: str, default: Any = ...) -> Any:
    """Declare an argument, which is required unless it has a default."""
    return declared(typer.Argument(default, metavar=metavar, help=help, show_default=False))


def option(
    names: str,
    help: str,
    metavar: str,
    *,
    default: Any = None,
    check: Any = None,
    panel: str | None = None,
    advanced: bool | None = None,
    hidden: bool = False,
) -> Any:
    """Declare an option; hidden: no help shows it.

    names: separated by blanks. default: ... if it is required. check: called with the value; returns it or raises.
    panel: title of its group in the help (default: `panel` of the class). advanced: shown by --help-all only (default:
    `is_advanced` of the class, else False).
    """
    info = typer.Option(default, *names.split(), metavar=metavar, help=help, show_default=False, callback=check)
    info.rich_help_panel, info.hidden = panel, hidden
    return declared(info, advanced)


def flag(names: str, help: str, *, default: bool | None = False, **settings: Any) -> Any:
    """Declare an option without a value; only --NAME/--no-NAME can turn it off. settings: of `option`."""
    return option(names, help, FLAG, default=default, **settings)


def no_check_option(noun: str, **settings: Any) -> Any:
    """Declare --no-check; noun: what is not checked."""
    help = f"Skip the check of the {noun} for damage; results from a damaged {noun} are undefined."
    return flag("--no-check", help, advanced=True, **settings)


def number(names: str, help: str, minimum: int, maximum: int, **settings: Any) -> Any:
    """Declare an option with an integer value in a range, without typer's own range, which crowds the help."""

    def check(value: int | None) -> int | None:
        if value is not None and not minimum <= value <= maximum:
            raise typer.BadParameter(f"{value} is not in the range {minimum} to {maximum}.")
        return value

    return option(names, help, "N", check=check, **settings)


def score(names: str, help: str, default: int, minimum: int, maximum: int = MAX_SCORE, **settings: Any) -> Any:
    """Declare an option whose value is a score or a penalty."""
    return number(names, f"{help} (default: {default}).", minimum, maximum, default=default, **settings)


def choice(names: str, help: str, values: Iterable[str], **settings: Any) -> Any:
    """Declare an option whose value is one of `values`, without typer's enumerations, which crowd the help."""
    known = tuple(values)

    def check(value: str | None) -> str | None:
        if value is not None and value not in known:
            raise typer.BadParameter(f"expected {', '.join(known[:-1])} or {known[-1]}, found {value!r}.")
        return value

    return option(names, help, "NAME", check=check, **settings)


def size(name: str, help: str, **settings: Any) -> Any:
    """Declare an option whose value is a size in bytes, such as 8G; `parse_size` converts it."""

    def check(value: str | None) -> str | None:
        parse_size(name, value)
        return value

    return option(name, help, "SIZE", check=check, **settings)


def parse_size(name: str, text: str | None) -> int | None:
    """Return the bytes of a size such as 500M or 1.5G, in powers of 1024; None for None.

    name: spelling of the option. Raises UsageError if the text is not a size.
    """
    try:
        return None if text is None else wording.parse_size(text)
    except ValueError as error:
        raise UsageError(f"{name} {error}") from None


def given_options(context: typer.Context) -> dict[str, str]:
    """Return the options of the command line: their first spelling by the name of their parameter."""
    return {
        each.name: each.opts[0]
        for each in context.command.params
        if each.name and getattr(context.get_parameter_source(each.name), "name", "") == "COMMANDLINE"
    }


@contextlib.contextmanager
def spelling_options(context: typer.Context, groups: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Replace names of options in a UsageError by the spelling of the command line, such as -o for `output`.

    groups: names of parameters that stand for one name; those on the command line are shown.
    """
    spelled = {each.name: each.opts[0] for each in context.command.params if each.name}
    given = given_options(context)

    def spell(name: str) -> str:
        members = groups.get(name, [name])
        shown = [given[each] for each in members if each in given] or [
            spelled[each] for each in members if each in spelled
        ]
        return ", ".join(shown) or f"--{name.replace('_', '-')}"

    try:
        yield
    except UsageError as error:
        raise UsageError(error.spelled(spell)) from None


def refuse_conflicts(context: typer.Context, conflicts: Iterable[Conflict]) -> None:
    """Raise UsageError for the first conflict between options of the command line."""
    given = given_options(context)
    for names, is_wrong, message in conflicts:
        if found := [given[name] for name in names if is_wrong and name in given]:
            raise UsageError(f"{', '.join(found)}: {message}")
