"""readmap.search and readmap.estimate: the commands of these names in Python."""

from collections.abc import Sequence
from os import PathLike, fspath
from typing import Any

from readmap.formats.output import commit_together
from readmap.run.config import SearchConfig
from readmap.run.estimation import estimate_sample_model
from readmap.run.monitor import Monitor
from readmap.run.sample_model import SampleModel
from readmap.run.search import Summary, open_search

Path = str | PathLike[str]


def search(
    reads: Path | Sequence[Path] = (),
    index: Path | None = None,
    *,
    output: Path,
    monitor: Monitor | None = None,
    **options: Any,
) -> Summary:
    r"""Map the reads of files and write SAM, BAM or CRAM, or find all their exact occurrences.

    The output is the one of `readmap search` with the options of the same names.

    Parameters
    ----------
    reads : str, Path or a sequence of them
        A file of reads, or two files of pairs: FASTQ or FASTA (plain, gzip or bgzip), BAM or CRAM.
    index : str or Path, optional
        The index folder, or the FASTA file it was built from. The default is $READMAP_INDEX, else the only `*.readmap`
        of the current folder.
    output : str or Path
        The output file, whose ending names its format: .sam, .bam or .cram; .gz compresses SAM.
    monitor : Monitor, optional
        An object with methods `say(line)` and `show(text, share=None, bar=None)` that receive messages and progress.
    lanes : sequence, optional
        Lanes of one sample instead of `reads`: `Lane` objects, or tuples of the arguments of `Lane.of`.
    sheet, sample : str, optional
        A sample sheet of lanes, and the sample to map if the sheet lists several.
    interleaved, smart_pairing, collate : bool
        The mates of pairs alternate in one file; they are found by their names; mates of BAM or CRAM are collected
        first.
    split, shard : str, optional
        Table of `readmap split`, and the part of the reads to map, such as "1/8".
    check, alternates : bool, default True
        Check the index for damage; treat the contigs that ref.fa.alt names as ALT contigs.
    format : str, optional
        sam, bam or cram, and for an exact search also tsv or bed.
    sort : bool
        Sort BAM or CRAM by coordinate and write its index; `sort_order="queryname"` sorts by name.
    sort_memory, gpu_memory : int or str, optional
        Limits in bytes, or as text such as "8G".
    level, codec, index_format : int and str, optional
        Compression level 1 to 12; auto, libdeflate or nvcomp; bai or csi.
    unmapped : str, optional
        A FASTQ file for reads without a place.
    read_group : str, optional
        The read group of all reads, such as "@RG\tID:a\tSM:b".
    header : sequence of str, optional
        Lines to add to the header, or files of lines.
    mark_duplicates, remove_duplicates, for_merge, duplicate_type : bool
        Mark duplicates (with `sort`); leave them out; leave them to `readmap merge`; tag their type.
    optical_distance : int, default 100
        Pixels within which duplicates of a tile are optical.
    barcode_tag, metrics : str, optional
        The tag of UMIs; a file for the metrics of duplicates.
    report, multiqc : str, optional
        A quality page (.html) and a folder for MultiQC, of sorted records.
    comments, barcode_name, replace_rg : bool
        Append FASTQ comments as tags; write the eighth field of names as RX; let `read_group` replace the read
        groups of BAM or CRAM.
    keep_tags : str, optional
        Tags of BAM or CRAM reads to keep, such as "RX,BC", or "all".
    exact, count_only : bool
        Find exact occurrences; write only how often each read occurs.
    strand, structure, max_hits, prefix_table
        Of an exact search: both, forward or reverse; array or tree; limit of the occurrences written; use the prefix
        table.
    scoring, pairing, reporting : Scoring, Pairing, Reporting, optional
        Scores; how mates are placed; which records are written.
    sample_model : SampleModel or str, optional
        The result of `readmap.estimate`, or a file of `readmap estimate`.
    device : str, default "auto"
        auto, cpu, cuda or cuda:N.
    gpus : int, str or list of int, default 1
        GPUs that share the work: a count, "all" or indices.
    threads, batch_reads : int, optional
        CPU threads; limit of the reads of a batch.

    Returns
    -------
    SearchSummary or ExactSearchSummary
        What was counted and estimated.

    Raises
    ------
    ReadmapError
        UsageError for invalid options, DataError for invalid reads, BackendError if a device fails, IndexFolderError
        for an index that is missing or damaged.
    OSError
        If a file cannot be read or written. No output appears then.
    """
    with open_search(_config(reads, index, options | {"output": fspath(output)}), monitor) as finished:
        commit_together(finished.outputs)
        return finished.summary


def estimate(
    reads: Path | Sequence[Path] = (), index: Path | None = None, *, monitor: Monitor | None = None, **options: Any
) -> SampleModel:
    """Estimate insert sizes and divergence from the first reads, for searches of all shards.

    Parameters
    ----------
    reads, index, monitor, **options
        As in `readmap.search`: the reads, the index, and the options that the searches of the shards have.

    Returns
    -------
    SampleModel
        To be given to `readmap.search(..., sample_model=...)`.

    Raises
    ------
    ReadmapError, OSError
        As in `readmap.search`.
    """
    return estimate_sample_model(_config(reads, index, options), monitor)


def _config(reads: Path | Sequence[Path], index: Path | None, options: dict[str, Any]) -> SearchConfig:
    """Return the configuration of a search; options: its other fields. Raises TypeError for unknown names."""
    files = (reads,) if isinstance(reads, str | PathLike) else reads
    given = {name: fspath(value) if isinstance(value, PathLike) else value for name, value in options.items()}
    known = SearchConfig.__dataclass_fields__.keys() - {"reads", "index", "is_lenient", "is_distributed"}
    if unknown := [name for name in given if name not in known]:
        raise TypeError(f"search() got an unexpected keyword argument {unknown[0]!r}")
    return SearchConfig(
        reads=tuple(fspath(file) for file in files), index=None if index is None else fspath(index), **given
    )
