"""Every file of reads under a folder is mapped: all of its reads have to come out, and nothing of an invalid one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pysam

from attacks import inputs, readers
from attacks.command_runs import judge, must, names_in, run, warm_up
from attacks.outcomes import Outcome, Verdict
from attacks.readers import SECONDARY_OR_SUPPLEMENTARY, Invalid, Read, as_written, difference

ENDINGS = (".fq", ".fastq", ".fa", ".fasta", ".fna", ".ffn", ".bam", ".cram")


class Conformance:
    """The attack; see workers.Attack. A case is a file."""

    batch, limit = 1, 1800.0

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.files = sorted(path for path in folder.rglob("*") if path.is_file() and _ending(path) in ENDINGS)
        self._scratch = scratch
        os.environ["REF_PATH"] = "/nonexistent"  # htslib asks the network for a reference that is missing
        warm_up()
        (scratch / "ref.fa").write_bytes(b"".join(b">%b\n%b\n" % item for item in _named_genome()))
        must(["index", "ref.fa", "-q"], scratch)

    def row(self, number: int) -> str:
        return f"conformance, {_ending(self.files[number])[1:]}"

    def run(self, number: int) -> Outcome:
        path, folder = self.files[number], self._scratch / f"file-{os.getpid()}"
        folder.mkdir()
        try:
            verdict, reason = self._map(path, folder)
        finally:
            shutil.rmtree(folder)
        return Outcome(self.row(number), verdict, f"{path}: {reason}")

    def keep(self, number: int, folder: Path) -> None:
        (folder / "file").write_text(f"{self.files[number]}\n")

    def _map(self, path: Path, folder: Path) -> tuple[Verdict, str]:
        words = ["search", str(path.absolute()), "-x", str(self._scratch / "ref.fa"), "-o", "out.sam", "-q"]
        ended, with_collate = run(words, folder, self.limit), ""
        if ended.code and "--collate" in ended.errors:
            ended, with_collate = run([*words, "--collate"], folder, self.limit), " with --collate"
        verdict, reason = judge(ended, folder, names_in(folder) if ended.code == 0 else (), self.limit)
        if verdict.is_finding:
            return verdict, reason
        try:
            expected, ordered = _read(path)
        except Invalid as error:
            if verdict is Verdict.REFUSED:
                return verdict, f"invalid, and refused: {reason}"
            return Verdict.LOST, f"let in, and invalid: {error}"
        if verdict is Verdict.REFUSED:
            return Verdict.LOST, f"valid, and refused: {reason}"
        found = readers.read_sam((folder / "out.sam").read_bytes())
        sides = [[as_written(read)._replace(mate=0) for read in reads] for reads in (expected, found)]
        if differs := difference(*(sides if ordered else map(sorted, map(_comparable, sides)))):
            return Verdict.LOST, f"differs{with_collate}: {differs}"
        return Verdict.ACCEPTED, f"accepted with every read, {len(found):,}{with_collate}"


def _ending(path: Path) -> str:
    """The ending of a name in small letters, without that of gzip."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".bgz")
    return os.path.splitext(name)[1]


def _named_genome() -> list[tuple[bytes, bytes]]:
    return [(name.encode(), letters) for name, letters in inputs.genome().items()]


def _comparable(reads: list[Read]) -> list[Read]:
    """Without None, which nothing is less than."""
    return [read._replace(quality=read.quality or b"") for read in reads]


def _read(path: Path) -> tuple[list[Read], bool]:
    """The reads as an independent reader has them, and whether they have to come out in that order."""
    if _ending(path) in (".bam", ".cram"):
        return _read_alignments(path), False
    return readers.read_reads(readers.inflated(path.read_bytes())), True


def _read_alignments(path: Path) -> list[Read]:
    """The primary records as htslib has them; Invalid where it, or a rule that README tells, refuses one."""
    try:
        pysam.quickcheck("-u", str(path))
        reads = []
        with pysam.AlignmentFile(str(path), check_sq=False) as file:
            for record in file.fetch(until_eof=True):
                if record.flag & SECONDARY_OR_SUPPLEMENTARY:
                    continue
                bases, phreds = (record.query_sequence or "").encode(), record.query_qualities
                if phreds is not None and len(phreds) and max(phreds) > 93:
                    raise Invalid(f"{record.query_name} has a quality of {max(phreds)}")
                quality = None if phreds is None else bytes(phred + 33 for phred in phreds)
                if record.is_reverse:
                    bases, quality = bases.translate(readers.COMPLEMENT)[::-1], quality and quality[::-1]
                reads.append(readers.checked(Read((record.query_name or "").encode(), bases, quality)))
    except (OSError, ValueError, pysam.SamtoolsError) as error:
        raise Invalid(f"htslib: {str(error).strip()}") from None
    return reads
