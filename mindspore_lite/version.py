"""The version number, in the one place that package, metadata and users read it from."""

__version__ = "0.1.0"
