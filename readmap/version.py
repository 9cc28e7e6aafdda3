"""The version, by itself so that the build reads it and any room may."""

__version__ = "0.1.0"
