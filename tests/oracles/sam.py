"""The records that readmap writes, from what has been decided of the reads: places, CIGARs, mapping qualities."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oracles.alignment import clean, parse_cigar, rescore, reverse_complement
from readmap.backend.compilation.declarations import constant
from readmap.search.parameters import Scoring

DEFAULT = Scoring()
TRUSTED = constant("search/sam.cu", "TRUSTED")
PROGRAM_TAG = "PG:Z:readmap"


def shown_name(name: str) -> str:
    """Up to the first blank, without /1 and /2, cut at 254 bytes."""
    name = re.split("[ \t]", name)[0]
    if len(name) > 2 and name.endswith(("/1", "/2")):
        name = name[:-2]
    return name[:254] or "*"


@dataclass(frozen=True)
class XaHit:
    """A place that XA names."""

    contig: str
    start: int
    reverse: bool
    cigar: str


@dataclass(frozen=True)
class Alignment:
    """An alignment of a read as SAM reports it; start is 0-based on the contig, and the CIGAR clips softly.

    role: "primary", "supplementary" or "secondary".
    """

    contig: str
    start: int
    reverse: bool
    mapq: int
    cigar: str
    second: int
    xa_hits: tuple[XaHit, ...] = ()
    role: str = "primary"

    @property
    def end(self) -> int:
        return self.start + sum(length for length, operation in parse_cigar(self.cigar) if operation in "MD")

    @property
    def fragment_end(self) -> int:
        """Where the first of its aligned bases lies, as the read was sequenced; behind it if it is reversed."""
        return self.end if self.reverse else self.start

    @property
    def clips(self) -> tuple[int, int]:
        """Bases that are clipped on the left and on the right."""
        operations = parse_cigar(self.cigar)
        left, right = (length if operation == "S" else 0 for length, operation in (operations[0], operations[-1]))
        return left, right


@dataclass(frozen=True)
class ReportedRead:
    """A read as it was sequenced, and its alignments, the primary one first; none where it is unmapped."""

    name: str
    bases: str
    quality: str | None
    alignments: tuple[Alignment, ...] = ()

    @property
    def primary(self) -> Alignment | None:
        return self.alignments[0] if self.alignments else None


@dataclass(frozen=True)
class Book:
    """What all records of a search have in common: the contigs' letters, scores, the read group's tag, -Y and -M."""

    contigs: Mapping[str, str]
    scoring: Scoring = DEFAULT
    read_group: str = ""
    soft_clipped: bool = False
    supplementary_as_secondary: bool = False

    def records(
        self, read: ReportedRead, mate: ReportedRead | None = None, number: int = 1, proper: bool = False
    ) -> list[str]:
        """The lines of a read, which is number 1 or 2 of its pair; proper: whether they make a fragment."""
        lines = []
        for own in read.alignments or (None,):
            fields = [shown_name(read.name), str(self._flag(own, mate, number, proper))]
            fields += [*self._position(read, own, mate), *self._letters(read, own), *self._tags(read, own, mate)]
            lines.append("\t".join(fields) + "\n")
        return lines

    def _flag(self, own: Alignment | None, mate: ReportedRead | None, number: int, proper: bool) -> int:
        flag = 0
        if own:
            roles = ("secondary", "supplementary") if self.supplementary_as_secondary else ("secondary",)
            flag = 16 * own.reverse + 256 * (own.role in roles)
            flag += 2048 * (own.role == "supplementary" and own.role not in roles)
        if not mate:
            return flag if own else 4
        mates = 32 * mate.primary.reverse if mate.primary else 8
        return flag + 1 + 2 * proper + (0 if own else 4) + mates + (64 if number == 1 else 128)

    def _position(self, read: ReportedRead, own: Alignment | None, mate: ReportedRead | None) -> list[str]:
        """RNAME to TLEN. Of a pair an unmapped read is where its mate is."""
        other = mate.primary if mate else None
        here, partner = own or other, (other or read.primary) if mate else None
        fields = [here.contig, str(here.start + 1)] if here else ["*", "0"]
        fields += [str(own.mapq), self._cigar(own)] if own else ["0", "*"]
        if not here or not partner:
            return [*fields, "*", "0", "0"]
        length = other.fragment_end - own.fragment_end if own and other and own.contig == other.contig else 0
        return [*fields, "=" if partner.contig == here.contig else partner.contig, str(partner.start + 1), str(length)]

    def _cut_off(self, own: Alignment) -> bool:
        return own.role != "primary" and not self.soft_clipped

    def _cigar(self, own: Alignment) -> str:
        return own.cigar.replace("S", "H") if self._cut_off(own) else own.cigar

    def _letters(self, read: ReportedRead, own: Alignment | None) -> list[str]:
        """SEQ and QUAL as they lie on the reference."""
        if own and own.role == "secondary":
            return ["*", "*"]
        shown, marks = clean(read.bases), read.quality or ""
        if own and own.reverse:
            shown, marks = reverse_complement(shown), marks[::-1]
        if own and self._cut_off(own):
            left, right = own.clips
            shown, marks = shown[left : len(shown) - right], marks[left : len(marks) - right]
        return [shown or "*", marks or "*"]

    def _score(self, read: ReportedRead, own: Alignment | XaHit) -> tuple[int, str, int]:
        """NM, MD and AS."""
        oriented = reverse_complement(read.bases) if own.reverse else read.bases
        found = rescore(parse_cigar(own.cigar), oriented, self.contigs[own.contig], own.start, self.scoring)
        assert found.query_length == len(read.bases)
        return found.edit_distance, found.differences, found.score

    def _tags(self, read: ReportedRead, own: Alignment | None, mate: ReportedRead | None) -> list[str]:
        tags = []
        if own:
            edits, differences, score = self._score(read, own)
            tags += [f"NM:i:{edits}", f"MD:Z:{differences}", f"AS:i:{score}", f"XS:i:{own.second}"]
        if mate:
            tags += [f"MC:Z:{mate.primary.cigar}", f"MQ:i:{mate.primary.mapq}"] if mate.primary else []
            phreds = [ord(mark) - 33 for mark in mate.quality or ""]
            tags.append(f"ms:i:{sum(phred for phred in phreds if phred >= TRUSTED)}")
        if own and own.role != "secondary":
            parts = [other for other in read.alignments if other.role != "secondary" and other is not own]
            tags += ["SA:Z:" + "".join(self._sa_entry(read, other) for other in parts)] if parts else []
            xa_hits = [self._xa_hit(read, hit) for hit in own.xa_hits]
            tags += ["XA:Z:" + "".join(xa_hits)] if xa_hits else []
        return [*tags, *([self.read_group] if self.read_group else []), PROGRAM_TAG]

    def _sa_entry(self, read: ReportedRead, own: Alignment) -> str:
        strand, (edits, _, _) = "-" if own.reverse else "+", self._score(read, own)
        return f"{own.contig},{own.start + 1},{strand},{own.cigar},{own.mapq},{edits};"

    def _xa_hit(self, read: ReportedRead, hit: XaHit) -> str:
        strand, (edits, _, _) = "-" if hit.reverse else "+", self._score(read, hit)
        return f"{hit.contig},{strand}{hit.start + 1},{hit.cigar},{edits};"


def reported(lines: Sequence[str], name: str, bases: str, quality: str | None) -> ReportedRead:
    """What was decided of a read, out of its records; nothing else of them is looked at."""
    alignments = []
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        flag, tags = int(fields[1]), {field[:2]: field[5:] for field in fields[11:]}
        if flag & 4:
            continue
        xa_hits = re.findall(r"([^;]+),([+-])(\d+),([^,]+),\d+;", tags.get("XA", ""))
        # Where -M flags supplementary alignments as secondary ones, SA names them.
        role = "primary" if not flag & 2304 else "supplementary" if flag & 2048 or "SA" in tags else "secondary"
        hits = tuple(XaHit(contig, int(start) - 1, sign == "-", cigar) for contig, sign, start, cigar in xa_hits)
        place = fields[2], int(fields[3]) - 1, bool(flag & 16), int(fields[4]), fields[5].replace("H", "S")
        alignments.append(Alignment(*place, int(tags["XS"]), hits, role))
    return ReportedRead(name, bases, quality, tuple(alignments))


def exact_mapq(total: int) -> int:
    return {1: 60, 2: 3, 3: 1, 4: 1}.get(total, 0)


def exact_lines(
    format: str,
    name: str,
    read: str,
    quality: str | None,
    places: Sequence[tuple[int, int, int]],
    contigs: Sequence[str],
    most: int | None = None,
) -> str:
    """The lines of a read that occurs at `places`, of which `most` are written. contigs: their names."""
    name, total = shown_name(name), len(places)
    marks = quality if quality else "*"
    if format == "counts":
        return f"{name}\t{total}\n"
    if not places and format == "sam":
        return f"{name}\t4\t*\t0\t0\t*\t*\t0\t0\t{clean(read) or '*'}\t{marks}\t{PROGRAM_TAG}\n"
    if not places and format == "tsv":
        return f"{name}\t0\t*\t*\t*\t*\n"
    lines = ""
    for number, (contig, start, strand) in enumerate(places[:most]):
        end, sign = start + len(read), "+" if strand == 1 else "-"
        if format == "tsv":
            lines += f"{name}\t{total}\t{contigs[contig]}\t{start + 1}\t{end}\t{sign}\n"
            continue
        if format == "bed":
            lines += f"{contigs[contig]}\t{start}\t{end}\t{name}\t{exact_mapq(total)}\t{sign}\n"
            continue
        shown = "*\t*"
        if number == 0:
            shown = f"{clean(read)}\t{marks}" if strand == 1 else f"{reverse_complement(read)}\t{marks[::-1]}"
        flag = (256 if number else 0) + (16 if strand == -1 else 0)
        place = f"{contigs[contig]}\t{start + 1}\t{exact_mapq(total)}\t{len(read)}M"
        tags = f"NM:i:0\tMD:Z:{len(read)}\tNH:i:{total}\tHI:i:{number + 1}\t{PROGRAM_TAG}"
        lines += f"{name}\t{flag}\t{place}\t*\t0\t0\t{shown}\t{tags}\n"
    return lines
