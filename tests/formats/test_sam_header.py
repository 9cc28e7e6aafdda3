"""Header lines: readmap's, and how lines of the user and of the file of reads change them."""

import pytest

from readmap.errors import UsageError
from readmap.formats.fasta import Contig
from readmap.formats.sam import FIRST_LINE, header_lines, parse_header_lines

CONTIGS = [Contig("one", 70, "0" * 32), Contig("two", 5, "1" * 32)]
OWN = [f"@SQ\tSN:one\tLN:70\tM5:{'0' * 32}", f"@SQ\tSN:two\tLN:5\tM5:{'1' * 32}"]
PROGRAM = "@PG\tID:readmap\tPN:readmap\tVN:9\tCL:readmap search"


def lines(*given: str) -> list[str]:
    return header_lines(CONTIGS, given, "9", "readmap search")


def test_without_further_lines() -> None:
    assert lines() == [FIRST_LINE, *OWN, PROGRAM]
    assert header_lines(CONTIGS, [], "9", "a\tb\nc\udcff")[-1].endswith("CL:a b c\\udcff")


def test_further_lines_keep_their_order() -> None:
    given = ["@RG\tID:a", "@CO\tone", "@RG\tID:b", "@CO\tone"]
    assert lines(*given) == [FIRST_LINE, *OWN, *given, PROGRAM]


def test_the_first_line_is_replaced() -> None:
    assert lines("@CO\tx", "@HD\tVN:1.5") == ["@HD\tVN:1.5", *OWN, "@CO\tx", PROGRAM]
    with pytest.raises(UsageError, match="the header has two lines @HD"):
        lines("@HD\tVN:1.5", "@HD\tVN:1.6")


def test_contigs_are_described_further() -> None:
    given = ["@SQ\tSN:one\tLN:70\tSP:fly", f"@SQ\tSN:two\tM5:{'1' * 32}\tLN:5\tUR:ref.fa"]
    assert lines(*given) == [FIRST_LINE, f"{given[0]}\tM5:{'0' * 32}", given[1], PROGRAM]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (OWN[:1], "found 1 @SQ lines, and the index has 2 contigs"),
        (OWN[::-1], "expected SN:one as in the index, found '@SQ"),
        ([OWN[0], "@SQ\tSN:two\tLN:6"], "expected LN:5 as in the index, found '@SQ"),
        ([OWN[0], f"@SQ\tSN:two\tLN:5\tM5:{'2' * 32}"], "expected M5:1111"),
    ],
)
def test_contigs_of_another_reference(given: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        lines(*given)


def test_programs_are_chained() -> None:
    assert lines("@PG\tID:a", "@PG\tID:b\tPP:a")[-1].startswith("@PG\tID:readmap\tPN:readmap\tPP:b\tVN:9")
    earlier = ["@PG\tID:readmap", "@PG\tID:readmap.1\tPP:readmap"]
    assert lines(*earlier)[-1].startswith("@PG\tID:readmap.2\tPN:readmap\tPP:readmap.1\tVN:9")


@pytest.mark.parametrize("kind", ["@RG", "@PG"])
def test_repeated_ids(kind: str) -> None:
    with pytest.raises(UsageError, match=f"the header has two lines {kind} ID:a"):
        lines(f"{kind}\tID:a", f"{kind}\tID:a\tDS:other")


def test_lines_of_an_option() -> None:
    assert parse_header_lines(r"@CO\tany: text\twith tabs") == ["@CO\tany: text\twith tabs"]
    assert parse_header_lines("@RG\tID:a\tSM:\u00e9") == ["@RG\tID:a\tSM:\u00e9"]
    assert parse_header_lines(r"@HD\tVN:1.6\tSO:unsorted") == ["@HD\tVN:1.6\tSO:unsorted"]
    wrong = ["@", "@CO", "@RG", r"@RG\tID", r"@RG\tID:", r"@rg\tID:a", r"@RG\t\tID:a", "@CO\ta\n@CO\tb"]
    for line in [*wrong, "@RG\tID:a\n@RG\tID:b", "@CO\ta\0b", "@PG\tID:a\r", "@RGID:a"]:
        with pytest.raises(UsageError, match="expected a line such as"):
            parse_header_lines(line)
    with pytest.raises(FileNotFoundError):
        parse_header_lines("no such file")


def test_an_endless_file_of_header_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("readmap.formats.sam.MAX_LETTERS", 1000)
    with pytest.raises(UsageError, match=r"-H /dev/zero: expected header lines, found more than 1,000 characters"):
        parse_header_lines("/dev/zero")
