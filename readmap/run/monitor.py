"""What a search says while it runs."""

from typing import Protocol


class Monitor(Protocol):
    """Receives the messages and the progress of a search."""

    def say(self, line: str) -> None:
        """Report a line of text, such as a warning."""

    def show(self, text: str, share: float | None = None, bar: float | None = None) -> None:
        """Show the current state; share: of the input that has been read, if known; bar: of the step in `text`."""


class Silent:
    """A monitor that shows nothing."""

    def say(self, line: str) -> None:
        """Ignore a line."""

    def show(self, text: str, share: float | None = None, bar: float | None = None) -> None:
        """Ignore the current state."""
