"""Other mappers, which are timed on the CPU alternating with readmap."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.common import Options, run


@dataclass(frozen=True)
class Peer:
    """Another mapper: its name in tables, and its commands. ending: extension of a file of its index."""

    name: str
    program: str
    search: str
    ending: str

    def index(self, reference: Path, prefix: Path) -> list[str | Path]:
        """Return the command that builds an index."""
        files = [reference, prefix] if self.program == "minibwa" else ["-p", prefix, reference]
        return [self.program, "index", *files]

    def map(self, options: Options, index: Path, reads: Sequence[Path]) -> list[str | Path]:
        """Return the command that writes SAM."""
        return [self.program, self.search, "-t", str(options.threads), index, *reads]


PEERS = {
    "bwa": Peer("bwa mem", "bwa", "mem", "sa"),
    "bwa-mem2": Peer("bwa-mem2 mem", "bwa-mem2", "mem", "bwt.2bit.64"),
    "minibwa": Peer("minibwa map", "minibwa", "map", "mbw"),
}


def peer_of(options: Options) -> Peer | None:
    """Return the mapper to compare with, or None if none is wanted or it is not installed."""
    peer = PEERS.get(options.peer) if options.device == "cpu" else None
    if peer and not shutil.which(peer.program):
        print(f"{peer.program} is not installed, so readmap runs alone")
        return None
    return peer


def index_of(peer: Peer, options: Options, reference: Path) -> Path:
    """Return the prefix of the peer's index; build the index if it does not exist."""
    if Path(f"{reference}.{peer.ending}").exists():
        return reference
    index: Path = options.work / peer.program
    if not Path(f"{index}.{peer.ending}").exists():
        run(peer.index(reference, index), options.work)
    return index
