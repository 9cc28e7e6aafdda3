"""The records that readmap writes, from what has been decided of the reads: places, CIGARs, mapping qualities."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from oracles.alignment import clean, parse_cigar, rescore, reverse_complement
from readmap.search.parameters import Scoring

DEFAULT = Scoring()
TRUSTED = 15  # phred of a base that counts in ms
PROGRAM_TAG = "PG:Z:readmap"


def shown_name(name: str) -> str:
    """Up to the first blank, without /1 and /2, cut at 254 bytes."""
    name = re.split("[ \t]", name)[0]
    if len(name) > 2 and name.endswith(("/1", "/2")):
        name = name[:-2]
    return name[:254] or "*"


@dataclass(frozen=True)
class Mention:
    """A place that XA tells of."""

    contig: str
    start: int
    reverse: bool
    cigar: str


@dataclass(frozen=True)
class Placed:
    """An alignment of a read as SAM tells it; start is 0-based on the contig, and the CIGAR clips softly.

    role: the primary alignment, another "piece" of a split read, or another "place" of one of these.
    """

    contig: str
    start: int
    reverse: bool
    mapq: int
    cigar: str
    second: int
    mentions: tuple[Mention, ...] = ()
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
class Told:
    """A read as it was sequenced, and its alignments, the primary one first; none where it is unmapped."""

    name: str
    bases: str
    quality: str | None
    places: tuple[Placed, ...] = ()

    @property
    def primary(self) -> Placed | None:
        return self.places[0] if self.places else None


@dataclass(frozen=True)
class Book:
    """What all records of a search have in common: the contigs' letters, scores, the read group's tag, -Y and -M."""

    contigs: Mapping[str, str]
    scoring: Scoring = DEFAULT
    read_group: str = ""
    soft_clipped: bool = False
    pieces_secondary: bool = False

    def records(self, read: Told, mate: Told | None = None, number: int = 1, proper: bool = False) -> list[str]:
        """The lines of a read, which is number 1 or 2 of its pair; proper: whether they make a fragment."""
        lines = []
        for place in read.places or (None,):
            fields = [shown_name(read.name), str(self._flag(place, mate, number, proper))]
            fields += [*self._places(read, place, mate), *self._letters(read, place), *self._tags(read, place, mate)]
            lines.append("\t".join(fields) + "\n")
        return lines

    def _flag(self, place: Placed | None, mate: Told | None, number: int, proper: bool) -> int:
        flag = 0
        if place:
            secondary = place.role == "place" or (place.role == "piece" and self.pieces_secondary)
            flag = 16 * place.reverse + 256 * secondary + 2048 * (place.role == "piece" and not secondary)
        if not mate:
            return flag if place else 4
        mates = 32 * mate.primary.reverse if mate.primary else 8
        return flag + 1 + 2 * proper + (0 if place else 4) + mates + (64 if number == 1 else 128)

    def _places(self, read: Told, place: Placed | None, mate: Told | None) -> list[str]:
        """RNAME to TLEN. Of a pair an unmapped read is where its mate is."""
        other = mate.primary if mate else None
        own, partner = place or other, (other or read.primary) if mate else None
        fields = [own.contig, str(own.start + 1)] if own else ["*", "0"]
        fields += [str(place.mapq), self._cigar(place)] if place else ["0", "*"]
        if not own or not partner:
            return [*fields, "*", "0", "0"]
        length = other.fragment_end - place.fragment_end if place and other and place.contig == other.contig else 0
        return [*fields, "=" if partner.contig == own.contig else partner.contig, str(partner.start + 1), str(length)]

    def _cut_off(self, place: Placed) -> bool:
        return place.role != "primary" and not self.soft_clipped

    def _cigar(self, place: Placed) -> str:
        return place.cigar.replace("S", "H") if self._cut_off(place) else place.cigar

    def _letters(self, read: Told, place: Placed | None) -> list[str]:
        """SEQ and QUAL as they lie on the reference."""
        if place and place.role == "place":
            return ["*", "*"]
        shown, marks = clean(read.bases), read.quality or ""
        if place and place.reverse:
            shown, marks = reverse_complement(shown), marks[::-1]
        if place and self._cut_off(place):
            left, right = place.clips
            shown, marks = shown[left : len(shown) - right], marks[left : len(marks) - right]
        return [shown or "*", marks or "*"]

    def _score(self, read: Told, place: Placed | Mention) -> tuple[int, str, int]:
        """NM, MD and AS."""
        oriented = reverse_complement(read.bases) if place.reverse else read.bases
        told = rescore(parse_cigar(place.cigar), oriented, self.contigs[place.contig], place.start, self.scoring)
        assert told.query_length == len(read.bases)
        return told.edit_distance, told.differences, told.score

    def _tags(self, read: Told, place: Placed | None, mate: Told | None) -> list[str]:
        tags = []
        if place:
            edits, differences, score = self._score(read, place)
            tags += [f"NM:i:{edits}", f"MD:Z:{differences}", f"AS:i:{score}", f"XS:i:{place.second}"]
        if mate:
            tags += [f"MC:Z:{mate.primary.cigar}", f"MQ:i:{mate.primary.mapq}"] if mate.primary else []
            phreds = [ord(mark) - 33 for mark in mate.quality or ""]
            tags.append(f"ms:i:{sum(phred for phred in phreds if phred >= TRUSTED)}")
        if place and place.role != "place":
            pieces = [other for other in read.places if other.role != "place" and other is not place]
            tags += ["SA:Z:" + "".join(self._piece(read, other) for other in pieces)] if pieces else []
            mentions = [self._mention(read, mention) for mention in place.mentions]
            tags += ["XA:Z:" + "".join(mentions)] if mentions else []
        return [*tags, *([self.read_group] if self.read_group else []), PROGRAM_TAG]

    def _piece(self, read: Told, place: Placed) -> str:
        strand, (edits, _, _) = "-" if place.reverse else "+", self._score(read, place)
        return f"{place.contig},{place.start + 1},{strand},{place.cigar},{place.mapq},{edits};"

    def _mention(self, read: Told, mention: Mention) -> str:
        strand, (edits, _, _) = "-" if mention.reverse else "+", self._score(read, mention)
        return f"{mention.contig},{strand}{mention.start + 1},{mention.cigar},{edits};"


def told(lines: Sequence[str], name: str, bases: str, quality: str | None) -> Told:
    """What was decided of a read, out of its records; nothing else of them is looked at."""
    places = []
    for line in lines:
        fields = line.rstrip("\n").split("\t")
        flag, tags = int(fields[1]), {field[:2]: field[5:] for field in fields[11:]}
        if flag & 4:
            continue
        mentions = re.findall(r"([^;]+),([+-])(\d+),([^,]+),\d+;", tags.get("XA", ""))
        # Where -M makes secondary alignments of pieces, SA tells which those are.
        role = "primary" if not flag & 2304 else "piece" if flag & 2048 or "SA" in tags else "place"
        places.append(
            Placed(
                *(fields[2], int(fields[3]) - 1, bool(flag & 16), int(fields[4])),
                *(fields[5].replace("H", "S"), int(tags["XS"])),
                tuple(Mention(contig, int(place) - 1, sign == "-", cigar) for contig, sign, place, cigar in mentions),
                role,
            )
        )
    return Told(name, bases, quality, tuple(places))


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
