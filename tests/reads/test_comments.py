"""Test FASTQ comments as SAM tags: which are valid, and the same BAM bytes as htslib writes."""

import gzip
import itertools
import random
import re
import shutil
import struct
from pathlib import Path

import numpy as np
import pysam
import pytest
from examples import reads_of

from readmap.backend import Array, Backend, Kernel, open_backend
from readmap.backend.compilation import host_compiler as host_compiler
from readmap.backend.compilation import nvrtc, sources
from readmap.backend.compilation.declarations import constant
from readmap.cli import main
from readmap.formats.sam import SamEncoding
from readmap.reads import bad_records
from readmap.reads.bad_records import BadRecord
from readmap.reads.parsing import Reads, check_comments

ROOT = Path(__file__).resolve().parents[2]

#: Calls put_comment_tags as the record kernels do.
MODULE = """
#include "mapping/comment_tags.cuh"

KERNEL void measure(Items items, const u8* bytes OF(any), const i64* name_starts OF(items),
                    i64* lengths OF(items), i32 encoding, bool has_read_group) {
    FOR_EACH(read, items) {
        TextSpan comment = comment_of(bytes + name_starts[read]);
        CountingSink sink = {0};
        put_comment_tags(sink, encoding, comment, has_read_group, false);
        lengths[read] = sink.count;
    }
}

KERNEL void write(Items items, const u8* bytes OF(any), const i64* name_starts OF(items),
                  const i64* ends OF(items), u8* out OF(any), i32 encoding, bool has_read_group) {
    FOR_EACH(read, items) {
        TextSpan comment = comment_of(bytes + name_starts[read]);
        ByteSink sink = {out + (read ? ends[read - 1] : 0)};
        put_comment_tags(sink, encoding, comment, has_read_group, false);
    }
}
"""

NUMBERS = "0 1 -1 127 128 -128 -129 255 256 32767 -32768 -32769 65535 65536 2147483647 -2147483648 4294967295 +7 007"
FLOATS = (
    "0 -0 1 0.1 -0.5 .25 3. 1e3 1E-3 2.5e+2 123456.789 16777217 16777219 0.30000001192092896 3.4028234e38 1e39 -1e39 "
    "1.17549435e-38 1e-40 -1.4e-45 1e-50 9007199254740993 3.14159265358979323846264338 "
    "100000000000000000000 1e22 1e-22 8.5e-10"
)
GOOD = [
    "XA:A:a",
    "XX:A:~",
    *(f"Xi:i:{number}" for number in NUMBERS.split()),
    *(f"Xf:f:{number}" for number in FLOATS.split()),
    "RX:Z:ACGT-TTGA",
    "ZZ:Z:",
    "z9:Z:two words: and 3",
    "HH:H:",
    "HH:H:09AF",
    "Bc:B:c,-128,0,127",
    "BC:B:C,0,255",
    "Bs:B:s,-32768,32767",
    "BS:B:S,65535",
    "Bi:B:i,-2147483648,2147483647,5",
    "BI:B:I,4294967295",
    "Bf:B:f,0.1,-2,1e5",
]
_BAD = (  # separated by |
    "1:X:0:ACGT|3:N:0:ACGT|1:N:0:ACGT more|1:N:0:ACGR|1:N:x:ACGT|1:N:|X|XX|XX:Z|XX:Z|XXX:Z:a|1X:Z:a|X_:Z:a|"
    "XX:z:a|XX:Q:1|XX-Z:a|XX:Z-a| |XX:A:|XX:A:ab|XX:A: |XX:i:|XX:i:-|XX:i:1.5|XX:i:4294967296|XX:i:-2147483649|"
    "XX:i:1 |XX:i:99999999999999999999999|XX:f:|XX:f:.|XX:f:1e|XX:f:e5|XX:f:1.2.3|XX:f:nan|XX:f:0x1|XX:Z:\x7f|"
    "XX:Z:\xe9|XX:H:0|XX:H:0g|XX:H:af|XX:B:|XX:B:c,|XX:B:c,1,|XX:B:c,128|XX:B:|XX:B:C,-1|XX:B:Z,a|XX:B:cc,1|"
    "XX:B:i,1.5|XX:B:f,x|XX:B:s1|RX:Z:a\t|\tRX:Z:a|RX:Z:a\t\tQX:Z:b|RX:Z:a\tno|no\tRX:Z:a"
)
BAD = _BAD.split("|")


def fastq(comments: list[str], blank: str = " ", end: str = "\n") -> bytes:
    return "".join(f"@read{blank}{comment}{end}A{end}+{end}I{end}" for comment in comments).encode()


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CR LF"])
def test_valid_and_invalid_comments(backends: str, end: str) -> None:
    backend = open_backend(backends)
    draw = random.Random(3)
    mixed = ["\t".join(draw.sample(GOOD, 1 + number % 5)) for number in range(50)]
    good = fastq(["", *GOOD, *mixed], end=end) + fastq(GOOD, "\t", end) + f"@read/1{end}A{end}+{end}I{end}".encode()
    reads = reads_of(good, backend)
    assert check_comments(reads, backend) == reads
    for comment in BAD:
        bad = check_comments(reads_of(fastq(["RX:Z:good", comment, "worse"], end=end), backend), backend)
        assert (bad.count, bad.bad) == (1, BadRecord(1, bad_records.NOT_TAGS)), comment
        assert len(bad.name_starts) == 1


def test_error_message(backends: str) -> None:
    backend = open_backend(backends)
    data = fastq(["RX:Z:AC", "1:X:0:ACGT"])
    reads = check_comments(reads_of(data, backend), backend)
    assert reads.bad is not None
    record, code = reads.bad
    error = str(bad_records.describe(np.frombuffer(data, np.uint8), record, code, 4, "reads.fq", 7))
    expected = "expected SAM tags such as RX:Z:ACGT, or an Illumina comment such as 1:N:0:ACGT, after the name"
    assert error == f"reads.fq, record 7 (read): {expected}, found '1:X:0:ACGT'"


def test_first_error_is_kept(backends: str) -> None:
    backend = open_backend(backends)
    data = fastq(["RX:Z:AC"]) + b"@read\nA\n+\nII\n" + fastq(["no tags"])
    reads = check_comments(reads_of(data, backend), backend)
    assert (reads.count, reads.bad) == (1, BadRecord(1, bad_records.QUALITY_LENGTH))
    none = check_comments(reads_of(b"@read no\nA\n+\nII\n", backend), backend)
    assert (none.count, none.bad) == (0, BadRecord(0, bad_records.QUALITY_LENGTH))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the kernels with a module that writes comments."""
    folder = tmp_path / "kernels"
    shutil.copytree(ROOT / "kernels", folder)
    (folder / "mapping/comments_alone.cu").write_text(MODULE)
    for user in (sources, host_compiler, nvrtc):
        monkeypatch.setattr(user, "folder", lambda: folder)


def put(reads: Reads, encoding: SamEncoding, has_read_group: bool, backend: Backend) -> list[bytes]:
    """Return what `put_comment_tags` writes for each read."""
    measure, write = Kernel("mapping/comments_alone", "measure"), Kernel("mapping/comments_alone", "write")
    comments = {
        "bytes": reads.bytes,
        "name_starts": reads.name_starts,
        "encoding": constant("mapping/records.cuh", encoding.value),
        "has_read_group": has_read_group,
    }
    lengths: Array = backend.empty(reads.count, np.int64)
    backend.launch(measure, reads.count, **comments, lengths=lengths)
    ends, total = backend.inclusive_sum_with_total(lengths)
    out = backend.empty(total, np.uint8)
    backend.launch(write, reads.count, **comments, ends=ends, out=out)
    data, places = bytes(backend.to_host(out)), [0, *backend.to_host(ends).tolist()]
    return [data[begin:end] for begin, end in itertools.pairwise(places)]


def by_htslib(comments: list[str], folder: Path) -> list[bytes]:
    """Return the tags of BAM records that samtools converts from SAM."""
    lines = "".join(f"r\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\t{comment}\n" for comment in comments)
    (folder / "tags.sam").write_text("@HD\tVN:1.6\n" + lines)
    pysam.samtools.view("-b", "--no-PG", "-o", str(folder / "tags.bam"), str(folder / "tags.sam"), catch_stdout=False)
    data = gzip.decompress((folder / "tags.bam").read_bytes())
    at = 12 + struct.unpack_from("<i", data, 4)[0]
    tags = []
    while at < len(data):
        size = struct.unpack_from("<i", data, at)[0]
        tags.append(data[at + 4 + 32 + 2 + 1 + 1 : at + 4 + size])
        at += 4 + size
    return tags


def test_same_bytes_as_htslib(backends: str, module: None, tmp_path: Path) -> None:
    backend = open_backend(backends)
    draw = random.Random(4)
    own = re.compile("(NM|MD|AS|XS|SA|XA|MC|MQ|ms|PG):")
    good = [tag for tag in GOOD if not own.match(tag)]
    floats = [
        f"ff:f:{draw.uniform(-9, 9) * 10 ** draw.randrange(-30, 30):.{draw.randrange(1, 16)}g}" for _ in range(500)
    ]
    comments = [*good, *floats, *("\t".join(draw.sample(good, 4)) for _ in range(50))]
    reads = reads_of(fastq(comments), backend)
    assert check_comments(reads, backend) == reads
    expected = by_htslib(comments, tmp_path)
    for comment, found, wanted in zip(comments, put(reads, SamEncoding.BINARY, False, backend), expected, strict=True):
        assert found == wanted, comment
    assert put(reads, SamEncoding.TEXT, True, backend) == [f"\t{comment}".encode() for comment in comments]


def test_own_tags_are_dropped(backends: str, module: None) -> None:
    backend = open_backend(backends)
    own = "\t".join(f"{name}:Z:x" for name in ("NM", "MD", "AS", "XS", "SA", "XA", "MC", "MQ", "ms", "PG"))
    reads = reads_of(fastq([f"{own}\tRG:Z:a\tRX:Z:b", "RG:Z:a", "", own]), backend)
    assert put(reads, SamEncoding.TEXT, False, backend) == [b"\tRG:Z:a\tRX:Z:b", b"\tRG:Z:a", b"", b""]
    assert put(reads, SamEncoding.TEXT, True, backend) == [b"\tRX:Z:b", b"", b"", b""]
    assert put(reads, SamEncoding.BINARY, True, backend) == [b"RXZb\0", b"", b"", b""]


def test_illumina_comments(backends: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in samtools import -i: the sample's index as BC, and the flag of failed checks."""
    monkeypatch.chdir(tmp_path)
    expected = {
        "1:N:0:ACGT+TTGA": ("ACGT+TTGA", False),
        "2:Y:18:ACGT": ("ACGT", True),
        "1:N:0:1": (None, False),
        "1:Y:0:7": (None, True),
        "1:N:0:NACG": ("NACG", False),
        "": (None, False),
    }
    Path("ref.fa").write_text(">c\n" + "ACGTTGCAAGTCCTAG" * 20 + "\n")
    records = [f"@r{number} {comment}\nACGTTGCA\n+\nIIIIIIII\n" for number, comment in enumerate(expected)]
    Path("reads.fq").write_text("".join(records))
    assert main(["index", "ref.fa", "-q"]) == 0
    for output in ("out.sam", "out.bam"):
        assert main(["search", "reads.fq", "-x", "ref.fa", "-C", "-o", output, "--device", backends, "-q"]) == 0
        with pysam.AlignmentFile(output) as file:
            found = [(dict(record.get_tags()).get("BC"), record.is_qcfail) for record in file]
        assert found == [*expected.values()]
