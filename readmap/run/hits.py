"""The placements of sequences in Python: arrays with a row for each sequence, tables, or one hit at a time."""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from readmap.formats.arrow import Column, stream_capsule, text_column
from readmap.formats.fasta import Contig
from readmap.formats.wording import pluralize
from readmap.mapping.inserts import InsertSize

if TYPE_CHECKING:
    import pandas
    import polars

OPERATIONS = "MIDNS"
#: The number of rows that a notebook shows.
SHOWN = 8


@dataclass(frozen=True)
class Hit:
    """The placement of one read.

    Attributes
    ----------
    query : int
        Index of the sequence or of the pair.
    contig : str
        Name of the reference sequence.
    ref_start, ref_end : int
        Position on the contig, 0-based, half-open.
    strand, mapq : int
        1 forward, -1 reverse; mapping quality, 0 to 60.
    cigar : str
        As in SAM.
    score, edit_distance : int
        Alignment score, without bonuses for reached ends of the read; NM in SAM.
    """

    query: int
    contig: str
    ref_start: int
    ref_end: int
    strand: int
    mapq: int
    cigar: str
    score: int
    edit_distance: int


@dataclass(frozen=True, repr=False, eq=False)
class Hits:
    """The placements of sequences, a row for each in their order; iterating yields a Hit for each mapped sequence.

    The arrays are NumPy's, or CuPy's if they were left on a GPU: other libraries take these by
    `__cuda_array_interface__` and DLPack, and `to_host` copies them. The object is also an Arrow stream of the table
    that `to_pandas` and `to_polars` return.

    Attributes
    ----------
    contigs : int32 [n]
        Index of the contig, -1 for a sequence without a place.
    ref_starts, ref_ends : int64 [n]
        Position on the contig, 0-based, half-open.
    strands, mapqs : int8 [n], uint8 [n]
        1 forward, -1 reverse; mapping quality, 0 to 60.
    scores, edit_distances : int32 [n]
        As in Hit.
    suboptimal_scores : int32 [n]
        Score of the best other placement, 0 if none was found. Placements that are 60 phred less likely are not
        searched for, unless Reporting.max_xa_hits is given.
    cigar_offsets, cigar_lengths : int64 [n], int32 [n]
        The range of each CIGAR in `cigar_operations`.
    cigar_operations : uint32
        length << 4 | operation, as in BAM.
    names : sequence of Contig
        The contigs of the reference.
    first : int
        Index of the first sequence, which later batches of a file continue.
    read_names : sequence of str or None
        Names of the sequences that came from a file.
    """

    contigs: Any
    ref_starts: Any
    ref_ends: Any
    strands: Any
    mapqs: Any
    scores: Any
    suboptimal_scores: Any
    edit_distances: Any
    cigar_offsets: Any
    cigar_lengths: Any
    cigar_operations: Any
    names: Sequence[Contig]
    first: int = 0
    read_names: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.contigs)

    def __iter__(self) -> Iterator[Hit]:
        own = self.to_host()
        for query in np.flatnonzero(own.contigs >= 0).tolist():
            yield own._hit(query)

    def __repr__(self) -> str:
        own = self.to_host()
        placed = int(np.count_nonzero(own.contigs >= 0))
        where = "" if own is self else ", on a GPU"
        return f"<Hits of {pluralize(len(self), 'sequence')}, {placed:,} with a place{where}>"

    def _repr_html_(self) -> str:
        """Return an HTML table of the first SHOWN rows, for notebooks."""
        own = self.to_host()
        titles = ("query", "contig", "ref_start", "ref_end", "strand", "mapq", "cigar", "score", "edit_distance")
        rows = []
        for query in range(min(len(own), SHOWN)):
            hit = own.hit(query)
            cells = dataclasses.astuple(hit) if hit else (own.first + query, "*", *[""] * (len(titles) - 2))
            rows.append("".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells))
        head = "".join(f"<th>{title}</th>" for title in titles)
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table><p>{html.escape(repr(self))}</p>"

    def to_host(self) -> Hits:
        """Return the hits in NumPy arrays; the object itself if its arrays are NumPy's."""
        if isinstance(self.contigs, np.ndarray):
            return self
        arrays = {name: value.get() for name, value in vars(self).items() if hasattr(value, "get")}
        return dataclasses.replace(self, **arrays)

    def hit(self, query: int) -> Hit | None:
        """Return the placement of the sequence in row `query`, or None; raise IndexError if there is no such row."""
        if not 0 <= query < len(self):
            raise IndexError(f"row {query} of {len(self)}")
        own = self.to_host()
        return own._hit(query) if own.contigs[query] >= 0 else None

    def cigar(self, query: int) -> str:
        """Return the CIGAR of the sequence in row `query` as text, "*" if it has no place."""
        own = self.to_host()
        begin = int(own.cigar_offsets[query])
        operations = own.cigar_operations[begin : begin + int(own.cigar_lengths[query])]
        return "".join(f"{int(op) >> 4}{OPERATIONS[int(op) & 15]}" for op in operations) or "*"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return stream_capsule(self._columns())

    def to_pandas(self) -> pandas.DataFrame:
        """Return a table with the columns read (if named), query, contig, ref_start, ref_end, strand, mapq, score,
        suboptimal_score, edit_distance and cigar; unmapped sequences have missing values. Raise ImportError if pandas
        is not installed."""
        import pandas

        own = self.to_host()
        placed = own.contigs >= 0
        columns: dict[str, Any] = {} if own.read_names is None else {"read": list(own.read_names)}
        columns["query"] = own._queries()
        columns["contig"] = pandas.Categorical.from_codes(own.contigs, [contig.name for contig in own.names])
        for column in own._number_columns(placed):
            columns[column.name] = pandas.arrays.IntegerArray(column.values.copy(), ~placed)
        texts = [text.decode() if text is not None else None for text in own._cigars()]
        columns["cigar"] = pandas.array(texts, dtype="string")
        return pandas.DataFrame(columns)

    def to_polars(self) -> polars.DataFrame:
        """Return the table of `to_pandas` for Polars; raise ImportError if Polars is not installed."""
        import polars

        return polars.DataFrame(self)

    def _queries(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.arange(self.first, self.first + len(self), dtype=np.int64)

    def _number_columns(self, placed: np.ndarray[Any, Any]) -> list[Column]:
        """Return the numeric columns of the table; placed: bool [n], rows that have values."""
        names = ("ref_start", "ref_end", "strand", "mapq", "score", "suboptimal_score", "edit_distance")
        return [Column(name, getattr(self, f"{name}s"), placed) for name in names]

    def _columns(self) -> list[Column]:
        """Return the columns of `to_pandas` for Arrow."""
        own = self.to_host()
        placed = own.contigs >= 0
        contigs = [contig.name.encode() for contig in own.names]
        named = [contigs[contig] if contig >= 0 else b"" for contig in own.contigs.tolist()]
        reads = [] if own.read_names is None else [text_column("read", [name.encode() for name in own.read_names])]
        return [
            *reads,
            Column("query", own._queries()),
            text_column("contig", named, placed),
            *own._number_columns(placed),
            text_column("cigar", [text or b"" for text in own._cigars()], placed),
        ]

    def _cigars(self) -> list[bytes | None]:
        """Return the CIGAR of each row, None if unmapped. Few CIGARs differ, so their texts are cached."""
        known: dict[bytes, bytes] = {}
        found: list[bytes | None] = []
        for begin, length in zip(self.cigar_offsets.tolist(), self.cigar_lengths.tolist(), strict=True):
            key = self.cigar_operations[begin : begin + length].tobytes()
            if key not in known:
                operations = np.frombuffer(key, np.uint32).tolist()
                known[key] = "".join(f"{op >> 4}{OPERATIONS[op & 15]}" for op in operations).encode()
            found.append(known[key] if length else None)
        return found

    def _hit(self, query: int) -> Hit:
        """Return the placement in row `query`, which must be mapped; the arrays must be on the host."""
        contig, cigar = self.names[int(self.contigs[query])].name, self.cigar(query)
        start, end = int(self.ref_starts[query]), int(self.ref_ends[query])
        strand, mapq = int(self.strands[query]), int(self.mapqs[query])
        score, edit_distance = int(self.scores[query]), int(self.edit_distances[query])
        return Hit(self.first + query, contig, start, end, strand, mapq, cigar, score, edit_distance)


@dataclass(frozen=True, repr=False, eq=False)
class Pairs:
    """The placements of mates, a row for each pair in their order; iterating yields two Hits, None for an unmapped
    mate.

    Attributes
    ----------
    first, second : Hits
        The placements of the first and of the second mates.
    proper : bool [n]
        True if the mates form a fragment of the library, in orientation and size.
    template_lengths : int64 [n]
        Bases from the first mate's 5' end to the second mate's, negative if the second is left of it; 0 if one
        mate is unmapped or they are on two contigs. It is TLEN of the first mate in SAM.
    insert_sizes : tuple of InsertSize
        Of the library, one for each orientation; empty if the pairs did not show any.
    """

    first: Hits
    second: Hits
    proper: np.ndarray[Any, Any]
    template_lengths: np.ndarray[Any, Any]
    insert_sizes: tuple[InsertSize, ...]

    def __len__(self) -> int:
        return len(self.first)

    def __iter__(self) -> Iterator[tuple[Hit | None, Hit | None]]:
        for query in range(len(self)):
            yield self.first.hit(query), self.second.hit(query)

    def __repr__(self) -> str:
        return f"<Pairs: {pluralize(len(self), 'pair')}, {int(np.count_nonzero(self.proper)):,} proper>"
