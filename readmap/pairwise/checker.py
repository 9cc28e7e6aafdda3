"""Check alignments independently: score each alignment again from its operations and letters."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from readmap.errors import InternalError
from readmap.formats.wording import decode_name
from readmap.pairwise.alignments import CIGAR_LETTERS, DELETED, DIFFERENT, EQUAL, INSERTED
from readmap.pairwise.parameters import Mode, ScoringScheme, SubstitutionScores
from readmap.pairwise.results import Results

KINDS = (INSERTED, DELETED, EQUAL, DIFFERENT)

#: 1 for letters that match themselves, by byte.
IS_BASE = bytes(byte in b"ACGT" for byte in range(256))


def check(results: Results, scores: ScoringScheme, mode: Mode) -> None:
    """Raise InternalError naming the first pair whose alignment is invalid for the mode or does not have its score."""
    _check_ranges(results, mode)
    if results.score_only:
        return
    _check_operations(results)
    columns = results.expanded
    is_same = columns.query == columns.target
    if isinstance(scores, SubstitutionScores):
        _check_ends(results, (INSERTED, DELETED))
        _check_letters(results, is_same, "code {}")
        is_pair = np.isin(columns.operations, (EQUAL, DIFFERENT))
        pair_scores = scores.scores[columns.query[is_pair], columns.target[is_pair]]
        sums = np.concatenate([[0], np.cumsum(pair_scores, dtype=np.int64)])
        pairs = results.columns(EQUAL) + results.columns(DIFFERENT)
        letters = np.diff(sums[np.cumsum(pairs)], prepend=0)
    else:
        # Operations that only lower the score at the ends.
        forbidden = {Mode.LOCAL: (INSERTED, DELETED, DIFFERENT), Mode.GLOBAL: (), Mode.SEMIGLOBAL: (DELETED,)}[mode]
        _check_ends(results, forbidden)
        is_base = np.frombuffer(columns.query.tobytes().translate(IS_BASE), np.bool_)
        _check_letters(results, is_same & is_base, "{:c}")
        letters = scores.highest * results.columns(EQUAL) + scores.lowest * results.columns(DIFFERENT)
    gaps = results.columns(INSERTED) + results.columns(DELETED)
    score = letters - scores.gap_open * results.gap_openings - scores.gap_extend * gaps
    _expect(results, "the score", score, results.alignments.scores)


def _check_ranges(results: Results, mode: Mode) -> None:
    """Check that alignments lie within the sequences, and reach the sequences' ends as far as the mode requires."""
    alignments = results.alignments
    sides = (
        ("query", results.queries, alignments.query_starts, alignments.query_ends, mode is not Mode.LOCAL),
        ("target", results.targets, alignments.target_starts, alignments.target_ends, mode is Mode.GLOBAL),
    )
    for name, sequences, starts, ends, whole in sides:
        lengths = sequences.lengths
        _expect(results, f"the end in the {name}", lengths if whole else np.clip(ends, 0, lengths), ends)
        first = -1 if results.score_only else 0 if whole else np.clip(starts, 0, ends)
        _expect(results, f"the start in the {name}", first, starts)
    if mode is Mode.LOCAL:
        _expect(results, "the score", np.maximum(alignments.scores, 0), alignments.scores)


def _check_operations(results: Results) -> None:
    """Check that operations are known, not empty, not equal to the operation before, and as long as the alignment."""
    alignments, operations = results.alignments, results.operations
    is_wrong = ~np.isin(operations, KINDS) | (results.lengths == 0)
    _expect(results, "the number of operations that are empty or not I, D, = or X", 0, results.sums(is_wrong))
    continues = np.zeros(len(operations), np.int64)
    continues[1:] = operations[1:] == operations[:-1]
    ends = alignments.operation_ends
    continues[ends[ends < len(operations)]] = 0
    _expect(results, "the number of operations that continue another", 0, results.sums(continues))
    matched = results.columns(EQUAL) + results.columns(DIFFERENT)
    for side, alone, size in (
        ("query", INSERTED, alignments.query_ends - alignments.query_starts),
        ("target", DELETED, alignments.target_ends - alignments.target_starts),
    ):
        found = matched + results.columns(alone)
        _expect(results, f"the number of the {side}'s letters in its operations", size, found)


def _check_ends(results: Results, forbidden: tuple[int, ...]) -> None:
    """Check that no alignment starts or ends with an operation in `forbidden`."""
    ends = results.alignments.operation_ends
    starts = np.concatenate([[0], ends[:-1]])
    has_any = np.flatnonzero(ends > starts)
    for name, indices in (("first", starts[has_any]), ("last", ends[has_any] - 1)):
        found = results.operations[indices]
        wrong = np.isin(found, forbidden)
        if wrong.any():
            i = int(wrong.argmax())
            raise _error(results, int(has_any[i]), f"the {name} operation is {CIGAR_LETTERS[found[i]]}")


def _check_letters(results: Results, is_same: NDArray[np.bool_], letter_format: str) -> None:
    """Check that is_same, bool [columns], is True only and always in columns of =; letter_format: for the message."""
    columns = results.expanded
    wrong = np.flatnonzero(is_same != (columns.operations == EQUAL))
    if not len(wrong):
        return
    sizes = np.cumsum(results.sums(results.lengths))
    pair = int(sizes.searchsorted(wrong[0], "right"))
    column = int(wrong[0]) - (int(sizes[pair - 1]) if pair else 0) + 1
    letters = " and ".join(letter_format.format(side[wrong[0]]) for side in (columns.query, columns.target))
    operation = CIGAR_LETTERS[columns.operations[wrong[0]]]
    raise _error(results, pair, f"column {column} has {letters}, and its operation is {operation}")


def _expect(results: Results, what: str, expected: Any, found: NDArray[Any]) -> None:
    """Raise InternalError for the first pair with `found`, [pairs], other than `expected`; what: name of the value."""
    wrong = np.flatnonzero(found != expected)
    if len(wrong):
        pair = int(wrong[0])
        value = np.broadcast_to(expected, found.shape)[pair]
        raise _error(results, pair, f"{what} is {found[pair]}, expected {value}")


def _error(results: Results, pair: int, what: str) -> InternalError:
    names = (decode_name(sequences.names[pair]) for sequences in (results.queries, results.targets))
    return InternalError(f"{' against '.join(names)}: {what}")
