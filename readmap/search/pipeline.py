"""The way of a batch, stage by stage: from its reads to their alignments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from readmap.backend import Backend
from readmap.formats.reads import Reads
from readmap.index.device import DeviceIndex
from readmap.search.alignments import Alignments, measure_alignments
from readmap.search.diagonals import find_diagonals
from readmap.search.extension import align_chosen, score_windows
from readmap.search.parameters import Effort, Scoring, efforts
from readmap.search.placement import Placements, no_placements, place_reads
from readmap.search.queries import Queries, pack_queries
from readmap.search.seeds import find_seeds
from readmap.search.windows import Windows, join_diagonals, no_windows


@dataclass(frozen=True)
class Mapped:
    """A batch behind the last stage."""

    reads: Reads
    queries: Queries
    alignments: Alignments


def map_batch(reads: Reads, index: DeviceIndex, scoring: Scoring, backend: Backend) -> Mapped:
    """Map a batch of at least one read."""
    queries = pack_queries(reads, backend)
    windows = no_windows(reads.count, backend)
    placements = no_placements(reads.count, backend)
    for effort in efforts(index.suffix_count):
        unsettled = backend.to_host(placements.unsettled)
        selected = np.flatnonzero(unsettled & effort.takes).astype(np.int32)
        for stride, slots in _by_stride(selected, queries, effort):
            _search(slots, stride, effort, windows, placements, reads, queries, index, scoring, backend)
    extensions = align_chosen(windows, placements.chosen, placements.traced, queries, index, scoring, backend)
    alignments = measure_alignments(extensions, placements, windows, queries, index, scoring, backend)
    return Mapped(reads, queries, alignments)


def _by_stride(selected: Any, queries: Queries, effort: Effort) -> list[tuple[int, Any]]:
    """The slots that are long enough for a seed, grouped by the stride of their length; slots are ordered by length."""
    lengths = queries.host_lengths[selected]
    groups: list[tuple[int, Any]] = []
    begin = int(np.searchsorted(lengths, effort.shortest_seed))
    while begin < len(selected):
        stride = effort.stride_of(int(lengths[begin]))
        end = begin + int(
            np.searchsorted(lengths[begin:], _next_length(int(lengths[begin]), stride, effort, int(lengths[-1])))
        )
        groups.append((stride, selected[begin:end]))
        begin = end
    return groups


def _next_length(length: int, stride: int, effort: Effort, longest: int) -> int:
    """The smallest greater length of which the stride is another."""
    if effort.stride_of(longest) == stride:
        return longest + 1
    return next(n for n in range(length + 1, longest + 1) if effort.stride_of(n) != stride)


def _search(
    slots: Any,
    stride: int,
    effort: Effort,
    windows: Windows,
    placements: Placements,
    reads: Reads,
    queries: Queries,
    index: DeviceIndex,
    scoring: Scoring,
    backend: Backend,
) -> None:
    selected = backend.to_device(slots)
    seeds = find_seeds(queries, selected, queries.host_lengths[slots], stride, index, effort, backend)
    diagonals = find_diagonals(queries, selected, seeds, index, effort, scoring, backend)
    join_diagonals(windows, diagonals, queries, selected, index, scoring, backend)
    score_windows(windows, queries, selected, index, scoring, backend)
    place_reads(placements, windows, diagonals.missed, reads, queries, selected, index, scoring, backend)
