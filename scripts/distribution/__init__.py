"""Parts of scripts/wheels, and the build hook."""
