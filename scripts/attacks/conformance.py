"""Map every file of reads in a folder: all reads of a valid file must be written, and an invalid file refused."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pysam

from attacks import inputs, readers
from attacks.command_runs import judge, names_in, run, run_or_exit, warm_up
from attacks.outcomes import Outcome, Verdict
from attacks.readers import SECONDARY_OR_SUPPLEMENTARY, Invalid, Read, as_written, difference

ENDINGS = (".fq", ".fastq", ".fa", ".fasta", ".fna", ".ffn", ".bam", ".cram")


class Conformance:
    """The attack; see workers.Attack. A case is a file."""

    batch, limit = 1, 1800.0

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.files = sorted(path for path in folder.rglob("*") if path.is_file() and _ending(path) in ENDINGS)
        self._scratch = scratch
        os.environ["REF_PATH"] = "/nonexistent"  # htslib would request missing references from a server
        warm_up()
        (scratch / "ref.fa").write_bytes(b"".join(b">%b\n%b\n" % item for item in _named_genome()))
        run_or_exit(["index", "ref.fa", "-q"], scratch)

    def row(self, case_index: int) -> str:
        return f"conformance, {_ending(self.files[case_index])[1:]}"

    def run(self, case_index: int) -> Outcome:
        path, folder = self.files[case_index], self._scratch / f"file-{os.getpid()}"
        folder.mkdir()
        try:
            verdict, reason = self._map(path, folder)
        finally:
            shutil.rmtree(folder)
        return Outcome(self.row(case_index), verdict, f"{path}: {reason}")

    def keep(self, case_index: int, folder: Path) -> None:
        (folder / "file").write_text(f"{self.files[case_index]}\n")

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
            return Verdict.LOST, f"invalid, and accepted: {error}"
        if verdict is Verdict.REFUSED:
            return Verdict.LOST, f"valid, and refused: {reason}"
        found = readers.read_sam((folder / "out.sam").read_bytes())
        sides = [[as_written(read)._replace(mate=0) for read in reads] for reads in (expected, found)]
        if differs := difference(*(sides if ordered else map(sorted, map(_comparable, sides)))):
            return Verdict.LOST, f"differs{with_collate}: {differs}"
        return Verdict.ACCEPTED, f"accepted with every read, {len(found):,}{with_collate}"


def _ending(path: Path) -> str:
    """Return a name's extension in lower case, ignoring .gz and .bgz."""
    name = path.name.lower().removesuffix(".gz").removesuffix(".bgz")
    return os.path.splitext(name)[1]


def _named_genome() -> list[tuple[bytes, bytes]]:
    return [(name.encode(), letters) for name, letters in inputs.genome().items()]


def _comparable(reads: list[Read]) -> list[Read]:
    """Replace missing qualities by b"", so that reads can be sorted."""
    return [read._replace(quality=read.quality or b"") for read in reads]


def _read(path: Path) -> tuple[list[Read], bool]:
    """Return the reads by an independent reader, and True if their order must be preserved."""
    if _ending(path) in (".bam", ".cram"):
        return _read_alignments(path), False
    return readers.read_reads(readers.inflated(path.read_bytes())), True


def _read_alignments(path: Path) -> list[Read]:
    """Return the primary records by htslib; raise Invalid if htslib or a documented rule refuses a record."""
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
