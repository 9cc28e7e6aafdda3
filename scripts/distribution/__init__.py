"""The parts of scripts/wheels."""
