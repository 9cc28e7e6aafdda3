"""The way of a batch, stage by stage: from its reads to their alignments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from readmap.backend import Array, Backend
from readmap.index.device import DeviceIndex
from readmap.reads.parsing import Reads
from readmap.reads.queries import Queries, pack_queries
from readmap.search.alignments import Alignments, measure_alignments
from readmap.search.batch import Searched
from readmap.search.diagonals import find_diagonals
from readmap.search.extension import align_lines, score_windows
from readmap.search.inserts import Inserts
from readmap.search.matches import Matches, list_diagonals, with_matches
from readmap.search.pairs import pair_mates, rescue_mates
from readmap.search.parameters import CROWDED, SPLIT, SPLIT_WINDOWS, Effort, Pairing, Reporting, Scoring, efforts
from readmap.search.placement import Placements, no_placements, place_reads
from readmap.search.record_plan import Lines, select_lines, traced_where_several
from readmap.search.sample import Sample
from readmap.search.secondaries import tell_places
from readmap.search.seeds import find_seeds
from readmap.search.windows import Windows, add_diagonals, join_diagonals, no_windows


def search_reads(reads: Reads, index: DeviceIndex, scoring: Scoring, backend: Backend) -> Searched:
    """Search a batch of at least one read."""
    queries = pack_queries(reads, backend)
    windows = no_windows(reads.count, backend)
    placements = no_placements(reads.count, backend)
    whole = (backend.full(reads.count, 0, np.int32), queries.lengths)
    for effort in efforts(index.suffix_count):
        parts = (placements.part_begins, placements.part_ends) if effort.takes == SPLIT else whole
        unsettled = backend.to_host(placements.unsettled)
        selected = np.flatnonzero(unsettled & effort.takes).astype(np.int32)
        for stride, slots in _by_stride(selected, queries, effort):
            _search(slots, stride, effort, parts, windows, placements, reads, queries, index, scoring, backend)
    return Searched(reads, queries, windows, placements)


def align_reads(
    searched: Searched,
    sample: Sample,
    index: DeviceIndex,
    scoring: Scoring,
    pairing: Pairing,
    reporting: Reporting,
    backend: Backend,
) -> Iterator[tuple[Searched, Alignments]]:
    """The alignments of a batch, placed anew as the sample asks; mates suit each other where the library has insert
    sizes.

    They come in parts of the batch, one unless all places are told.
    """
    reads, queries, windows, inserts = searched.reads, searched.queries, searched.windows, sample.inserts
    placements = replace(searched.placements, clean_bases=sample.clean_bases)
    place_reads(placements, windows, reads, queries, queries.slot_of, index, scoring, backend)
    if inserts.sizes and pairing.rescue:
        rescue_mates(windows, placements, inserts, reads, queries, index, scoring, backend)
    if inserts.sizes and pairing.joint:
        pair_mates(placements, windows, inserts, queries, index, scoring, backend)
    placed = replace(searched, placements=placements)
    for part, matches in with_matches(placed, index, backend) if reporting.most_places else [(placed, None)]:
        yield part, _align(part, matches, inserts, index, scoring, reporting, backend)


def _align(
    searched: Searched,
    matches: Matches | None,
    inserts: Inserts,
    index: DeviceIndex,
    scoring: Scoring,
    reporting: Reporting,
    backend: Backend,
) -> Alignments:
    """matches: where all places are told."""
    reads, queries, windows, placements = searched.reads, searched.queries, searched.windows, searched.placements

    def aligned(lines: Lines, windows: Windows) -> Alignments:
        extensions = align_lines(lines, windows, queries, index, scoring, backend)
        return measure_alignments(
            extensions, lines, windows, inserts, reads, queries, index, scoring, reporting, backend
        )

    lines = select_lines(placements, windows, queries, reporting, scoring, backend)
    if not matches:
        return aligned(lines, windows)
    # Which parts prove true decides what else is another place of them; the only part of a read always does.
    parts = aligned(traced_where_several(lines, backend), windows).lines
    crowd = list_diagonals(matches, queries, index, scoring, backend)
    return aligned(*tell_places(crowd, parts, placements, windows, queries, reporting, index, scoring, backend))


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
    parts: tuple[Array, Array],
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
    diagonals = find_diagonals(queries, selected, seeds, parts, index, effort, scoring, backend)
    if effort.takes == SPLIT:
        add_diagonals(windows, diagonals, queries, selected, SPLIT_WINDOWS, index, scoring, backend)
    else:
        join_diagonals(windows, diagonals, queries, selected, index, scoring, backend)
    score_windows(windows, queries, selected, index, scoring, backend, long_gaps=not effort.takes & CROWDED)
    place_reads(placements, windows, reads, queries, selected, index, scoring, backend)
