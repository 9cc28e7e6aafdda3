"""Searches that follow each other on one device: the next one reads, while the one before maps."""

from __future__ import annotations


class DeviceLease:
    """What a search waits for, and what it tells the next one; this one has its device alone."""

    def is_ahead(self) -> bool:
        """Whether another one maps still, so that nobody waits for the first reads."""
        return False

    def wait_for_device(self) -> None:
        """Wait until no other search has the device; from then on this one has it."""

    def end_reading(self) -> None:
        """All reads have been read: the next search may read its own."""

    def release_device(self) -> None:
        """A thread has no reads left to map: the next search may have the device. It is called by each of them."""
