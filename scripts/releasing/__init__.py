"""What scripts/release, scripts/man and scripts/wheels share: manual pages, completions, and the steps of a release."""
