"""Snakemake wrapper of readmap index."""

# ruff: noqa: F821 (Snakemake gives the script its name)

__author__ = "The readmap authors"
__license__ = "MIT"

from snakemake.shell import shell

extra = snakemake.params.get("extra", "")
log = snakemake.log_fmt_shell(stdout=True, stderr=True)

shell(
    "readmap index {extra} --threads {snakemake.threads} --output {snakemake.output[0]:q} {snakemake.input.ref:q} {log}"
)
