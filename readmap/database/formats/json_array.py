"""JSON output: an array with an object per query that contains its hits; null stands for unknown or absent values."""

import json
import math
from typing import Any

from readmap.database.results import QueryHits, ScanHit
from readmap.formats.wording import decode_name

#: Decimals of an identity.
DIGITS = 6


def records(results: QueryHits) -> list[bytes]:
    """Return the JSON object of a query, a list with one text; each hit is in its own line."""
    query = results.query
    head = json.dumps({"query": decode_name(query.name), "query_length": len(query.letters)})[:-1]
    hits = ",\n".join(json.dumps(_members(hit, results.are_nucleotides)) for hit in results)
    return [f'{head}, "hits": [{chr(10) + hits if hits else ""}]}}'.encode()]


def _members(hit: ScanHit, are_nucleotides: bool) -> dict[str, Any]:
    """Return the members of a hit; positions are 1-based, inclusive, the smaller position of the subject first."""
    columns = hit.size
    return {
        "subject": decode_name(hit.name),
        "title": decode_name(hit.title),
        "subject_length": hit.length,
        "score": hit.score,
        "bit_score": _known(hit.bit_score),
        "evalue": _known(hit.evalue),
        "strand": ("-" if hit.reverse else "+") if are_nucleotides else None,
        "query_start": hit.query_start + 1,
        "query_end": hit.query_end,
        "subject_start": hit.subject_start + 1,
        "subject_end": hit.subject_end,
        "columns": columns,
        "identity": round(hit.equal / columns, DIGITS) if columns else None,
        "identities": hit.equal,
        "positives": hit.positives,
        "mismatches": hit.different,
        "gap_openings": hit.gap_openings,
        "gap_letters": hit.gaps,
        "cigar": hit.cigar.decode(),
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
