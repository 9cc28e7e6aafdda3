"""Snakemake wrapper of readmap search."""

# ruff: noqa: F821 (Snakemake gives the script its name)

__author__ = "The readmap authors"
__license__ = "MIT"

from snakemake.shell import shell

SORTS = {"none": "", "coordinate": "--sort", "queryname": "--sort --sort-order queryname"}
DUPLICATES = {"keep": "", "mark": "--markdup", "remove": "--remove-duplicates"}


def choose(name, known, default):
    """Return the options for the value of a parameter; raise ValueError if the value is unknown."""
    value = snakemake.params.get(name, default)
    if value not in known:
        raise ValueError(f"params.{name}: expected {', '.join(known)}, found {value!r}")
    return known[value]


reads = [snakemake.input.reads] if isinstance(snakemake.input.reads, str) else list(snakemake.input.reads)
if len(reads) not in (1, 2):
    raise ValueError(f"input.reads: expected one or two files, found {len(reads)}")

options = [choose("sort", SORTS, "none"), choose("duplicates", DUPLICATES, "keep"), snakemake.params.get("extra", "")]
if options[1] and options[0] != SORTS["coordinate"]:
    raise ValueError('params.duplicates: mark and remove require params.sort="coordinate"')
if options[0] and (memory := snakemake.resources.get("mem_mb")):
    # The other half is reserved for the index and the reads.
    options.append(f"--sort-memory {max(int(memory) // 2, 1)}M")
written = {name: snakemake.output.get(name) for name in ("metrics", "report", "json")}
files = [word for name, path in written.items() if path for word in (f"--{name}", path)]

aligned = snakemake.output.get("aln", snakemake.output[0])
log = snakemake.log_fmt_shell(stdout=True, stderr=True)
options = " ".join(filter(None, options))

shell(
    "readmap search {options} {files:q} --threads {snakemake.threads}"
    " --index {snakemake.input.idx:q} --output {aligned:q} {reads:q} {log}"
)
