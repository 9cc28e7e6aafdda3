"""Results on both strands -> the better ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from readmap.pairwise.alignments import PairAlignments
from readmap.pairwise.results import Results


def better(forward: Results, reverse: Results) -> Results:
    """The result of each pair with the better score, the forward one where they tie."""
    chosen = reverse.alignments.scores > forward.alignments.scores
    if not chosen.any():
        return forward
    if chosen.all():
        return reverse
    each_letter = np.repeat(chosen, forward.queries.lengths)
    letters = np.where(each_letter, reverse.queries.letters, forward.queries.letters)
    queries = replace(forward.queries, letters=letters)
    alignments = _choose(chosen, forward.alignments, reverse.alignments)
    return replace(forward, queries=queries, reverse=chosen, alignments=alignments)


def _choose(chosen: NDArray[np.bool_], these: PairAlignments, those: PairAlignments) -> PairAlignments:
    """Alignments of `those` where they are chosen, and of `these` elsewhere."""
    counts = [np.diff(each.operation_ends, prepend=0) for each in (these, those)]
    kept = np.where(chosen, counts[1], counts[0])
    ends = np.cumsum(kept, dtype=np.int64)
    operations = np.empty(int(kept.sum()), np.uint32)
    is_chosen = np.repeat(chosen, kept)
    operations[is_chosen] = those.operations[np.repeat(chosen, counts[1])]
    operations[~is_chosen] = these.operations[np.repeat(~chosen, counts[0])]
    return PairAlignments(
        np.where(chosen, those.scores, these.scores),
        np.where(chosen, those.query_starts, these.query_starts),
        np.where(chosen, those.query_ends, these.query_ends),
        np.where(chosen, those.target_starts, these.target_starts),
        np.where(chosen, those.target_ends, these.target_ends),
        ends,
        operations,
    )
