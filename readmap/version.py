"""The version, in a module without imports, so that the build and every package can read it."""

__version__ = "0.1.0"
