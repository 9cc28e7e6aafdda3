"""What a search says while it runs."""

from typing import Protocol


class Monitor(Protocol):
    """Receives the messages and the progress of a search."""

    def say(self, line: str) -> None:
        """Report a line of text, such as a warning."""

    def show(self, text: str, share: float | None = None, bar: float | None = None) -> None:
        """Show the current state; share: fraction of the input read so far, or None; bar: fraction of the step done."""


class Silent:
    """A monitor that shows nothing."""

    def say(self, line: str) -> None:
        """Ignore a line."""

    def show(self, text: str, share: float | None = None, bar: float | None = None) -> None:
        """Ignore the current state."""
