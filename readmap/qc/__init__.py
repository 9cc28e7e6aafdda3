"""Quality control: what a lab looks at before it trusts a run, counted while the records are written.

survey      counts and coverage of sorted records, piece by piece
tally       what was counted of a lane, a library or a sample, and what follows from that
reports     the same for programs, for MultiQC, and as a page
"""
