"""Help of commands: the common options by --help and -h, all options by --help-all."""

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from readmap.formats.wording import pluralize

#: The metavar of an option that takes no value, which typer would otherwise call <bool>.
FLAG = ""
#: Title of the options that all commands have.
GENERAL = "General"
#: Key in the metadata of a context: all options are shown.
SHOWS_ALL = "readmap.shows_all"


def _without_types(parameters: list[Any]) -> list[Any]:
    """Change the parameters in place so that the help of arguments and --help shows no Python types; return them."""
    for each in parameters:
        if each.param_type_name == "argument":
            each.display_type_rich = lambda ctx: None
        elif each.name == "help":
            each.metavar = FLAG
    return parameters


def help_all_option() -> Any:
    """Return typer's declaration of --help-all."""

    def show(context: typer.Context, is_wanted: bool) -> None:
        if is_wanted:
            context.meta[SHOWS_ALL] = True
            typer.echo(context.get_help())
            raise typer.Exit

    return typer.Option(
        False,
        "--help-all",
        metavar=FLAG,
        is_eager=True,
        callback=show,
        help="Show all options.",
        show_default=False,
        rich_help_panel=GENERAL,
    )


class Command(TyperCommand):
    """A command. Options declared as advanced are shown by --help-all only."""

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters, with --help at the end."""
        parameters = _without_types(super().get_params(ctx))
        for each in parameters:
            if each.name == "help":
                each.rich_help_panel = GENERAL
                has_more = getattr(self.callback, "advanced", ())
                each.help = "Show the common options." if has_more else "Show this help."
        return parameters

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """Parse the arguments; a last argument -h is --help, also if -h is an option that takes a value."""
        if args[-1:] == ["-h"] and "--" not in args:
            args = [*args[:-1], "--help"]
        return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Print the help, without advanced options unless --help-all asks for them."""
        names = () if ctx.meta.get(SHOWS_ALL) else getattr(self.callback, "advanced", ())
        rare: list[Any] = [each for each in self.params if each.name in names and not getattr(each, "hidden", False)]
        epilog = self.epilog
        try:
            for each in rare:
                each.hidden = True
            if rare:
                more = f"{pluralize(len(rare), 'more option')}: {ctx.command_path} --help-all"
                self.epilog = f"{epilog}\n\n{more}"
            super().format_help(ctx, formatter)
        finally:
            self.epilog = epilog
            for each in rare:
                each.hidden = False


class Group(TyperGroup):
    """The program with its commands."""

    def get_params(self, ctx: Any) -> Any:
        """Return all parameters."""
        return _without_types(super().get_params(ctx))
