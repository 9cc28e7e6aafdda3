"""Quality control: counts and coverage of the records while they are written.

survey      counts and coverage of sorted records
tally       counts of a read group, library or sample, and the metrics derived from them
page, json_report, multiqc, samtools    reports
"""
