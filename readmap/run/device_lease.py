"""The right of a search to use its device while another search reads ahead."""

from __future__ import annotations


class DeviceLease:
    """What a search waits for and what it releases; this class is for a search that has its devices alone."""

    def is_ahead(self) -> bool:
        """Return True if another search still uses the device, so that nobody waits for this one's first reads."""
        return False

    def wait_for_device(self) -> None:
        """Wait until no other search uses the device; from then on this one uses it."""

    def end_reading(self) -> None:
        """Let the next search read: all reads of this one have been read."""

    def release_device(self) -> None:
        """Let the next search use the device. Each thread that has no reads left to map calls this."""
